//! How fast logs are read: `cargo run --release -p etwhy-counters --example speed -- FILE…`.

use etwhy_counters::{Options, read};
use etwhy_table::Memory;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let bytes: u64 = files.iter().map(|f| std::fs::metadata(f).map_or(0, |m| m.len())).sum();
    for (what, tables) in
        [("counters", vec!["counter"]), ("counters and samples", vec!["counter", "counter_sample"])]
    {
        let wanted: BTreeSet<String> = tables.into_iter().map(str::to_owned).collect();
        let memory = Memory::with_budget(256 << 20, None);
        let start = Instant::now();
        let logs = read(&files, &Options::default(), &memory.wanting(wanted))?;
        let seconds = start.elapsed().as_secs_f64();
        let values: u64 = logs.files.iter().map(|f| f.values).sum();
        println!(
            "{what}: {values} values, {bytes} bytes in {seconds:.2} s: {:.0} MB/s, {:.1} million values/s, {} MB of tables in memory at most",
            bytes as f64 / 1e6 / seconds,
            values as f64 / 1e6 / seconds,
            memory.peak() / 1_000_000
        );
    }
    Ok(())
}
