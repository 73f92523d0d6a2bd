//! Unpacks all compressed buffers of a file N times and prints output bytes per second.
use etwhy_base::Bytes;
use etwhy_etl::decompress::{SLACK, xpress};
use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let mut parts = Vec::new();
        let mut pos = 0usize;
        while let Some(size) = bytes.u32_at(pos).filter(|s| *s >= 72) {
            let want = bytes.u32_at(pos + 4).unwrap_or(0) as usize;
            if bytes.u16_at(pos + 0x34).unwrap_or(0) & 0x40 != 0 {
                parts.push((bytes.get(pos + 72..pos + size as usize).unwrap_or(&[]), want - 72));
            }
            pos += size as usize;
        }
        let mut out = vec![0u8; 16 << 20];
        let mut best = f64::MAX;
        let mut total = 0;
        for _ in 0..21 {
            let start = Instant::now();
            total = parts
                .iter()
                .map(|(p, want)| xpress(p, out.get_mut(..want + SLACK).unwrap_or(&mut []), *want))
                .sum();
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{path}: {total} bytes, {:.2} ms, {:.2} GB/s", best * 1e3, total as f64 / best / 1e9);
    }
}
