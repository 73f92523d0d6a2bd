//! Times the tiers on a log: `cargo run --release -p etwhy-evtx --example tiers -- FILE [THREADS]`.

use etwhy_evtx::{counts, read::LogFile};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("a file")?;
    let threads = arguments.next().map_or(Ok(1), |n| n.parse())?;
    for _ in 0..3 {
        let start = Instant::now();
        let log = LogFile::open(Path::new(&file), Path::new(&file))?;
        let counts = counts::count(&log, threads)?;
        let s = start.elapsed().as_secs_f64();
        println!(
            "counts: {} records, {} kinds, {:.1} ms, {:.2} M records/s, {:.2} GB/s",
            counts.all.records,
            counts.types.len(),
            s * 1e3,
            counts.all.records as f64 / s / 1e6,
            log.size as f64 / s / 1e9
        );
    }
    Ok(())
}
