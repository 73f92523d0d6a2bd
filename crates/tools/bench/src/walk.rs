//! Reading without analysing: unpacking, and walking in time order.

use crate::{best, short};
use etwhy_base::Bytes;
use etwhy_decode::EventTypes;
use etwhy_etl::decompress::{self, SLACK};
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::{Ledger, abi::buffer};
use std::path::Path;

/// Unpacks all compressed buffers of a file.
pub fn xpress_parts(bytes: &[u8]) -> Vec<(&[u8], usize)> {
    let mut parts = Vec::new();
    let mut pos = 0usize;
    while let Some(size) = bytes.u32_at(pos + buffer::BUFFER_SIZE).filter(|s| *s as usize >= buffer::LEN) {
        let want = bytes.u32_at(pos + buffer::SAVED_OFFSET).unwrap_or(0) as usize;
        let flags = bytes.u16_at(pos + buffer::BUFFER_FLAG).unwrap_or(0);
        if flags & buffer::FLAG_COMPRESSED != 0
            && let Some(data) = bytes.get(pos + buffer::LEN..pos + size as usize)
        {
            parts.push((data, want.saturating_sub(buffer::LEN)));
        }
        pos += size as usize;
    }
    parts
}

/// Prints the speed of unpacking.
pub fn xpress(file: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(file)?;
    let parts = xpress_parts(&bytes);
    if parts.is_empty() {
        return Ok(());
    }
    let mut out = vec![0u8; buffer::MAX_SIZE as usize + SLACK];
    let (time, total) =
        best(21, || parts.iter().map(|(data, want)| xpress_one(data, &mut out, *want)).sum::<usize>());
    let total = total.unwrap_or(0);
    println!(
        "  {:<32} {:>6.2} GB/s out  ({} -> {} bytes, {:.2} ms)",
        short(file),
        total as f64 / time / 1e9,
        bytes.len(),
        total,
        time * 1e3
    );
    Ok(())
}

fn xpress_one(data: &[u8], out: &mut [u8], want: usize) -> usize {
    out.get_mut(..want + SLACK).map_or(0, |target| decompress::xpress(data, target, want))
}

/// Prints the speed of a time-ordered walk with one and two threads.
pub fn walk(file: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(file)?;
    let (memory, _) =
        best(15, || bytes.chunks_exact(8).map(|w| w.u64_at(0).unwrap_or(0)).fold(0u64, u64::wrapping_add));
    let mut speeds = Vec::new();
    let mut records = 0;
    for threads in [1, 2] {
        let (time, n) = best(15, || one_walk(file, threads).unwrap_or(0));
        records = n.unwrap_or(0);
        speeds.push(time);
    }
    let [one, two] = [speeds.first().copied().unwrap_or(1.0), speeds.get(1).copied().unwrap_or(1.0)];
    println!(
        "  {:<32} {:>6.1} M records/s, {:>6.0} MB/s; two threads {:.2}x; plain sum is {:.1}x faster ({} records, {:.2} ms)",
        short(file),
        records as f64 / one / 1e6,
        bytes.len() as f64 / one / 1e6,
        one / two,
        one / memory,
        records,
        one * 1e3
    );
    Ok(())
}

/// Opens, walks in time order, counts by type; returns the number of records.
pub fn one_walk(file: &Path, threads: usize) -> anyhow::Result<u64> {
    let files = [EtlFile::open(file, file, &OpenOptions::default())?];
    let timeline = Timeline::read(&files, &mut Ledger::new());
    let walks = Walk::new(&files, &timeline).split(threads);
    let count = |walk: Walk<'_>| {
        let mut types = EventTypes::new();
        walk.for_each(&mut Ledger::new(), |record, _| {
            types.index(record);
        });
        types.all().iter().map(|t| t.count).sum::<u64>()
    };
    Ok(std::thread::scope(|scope| {
        let handles: Vec<_> = walks.into_iter().map(|walk| scope.spawn(move || count(walk))).collect();
        handles.into_iter().filter_map(|h| h.join().ok()).sum()
    }))
}
