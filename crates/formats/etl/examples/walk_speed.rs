//! Walks each file given N times and prints records per second.
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use std::path::Path;
use std::time::Instant;

fn main() {
    let threads: usize = std::env::var("THREADS").ok().and_then(|t| t.parse().ok()).unwrap_or(1);
    for path in std::env::args().skip(1) {
        let mut best = f64::MAX;
        let mut records = 0;
        for _ in 0..15 {
            let start = Instant::now();
            let Ok(file) = EtlFile::open(Path::new(&path), Path::new(&path), &OpenOptions::default()) else {
                continue;
            };
            let files = [file];
            let timeline = Timeline::read(&files, &mut Ledger::new());
            let walks = Walk::new(&files, &timeline).split(threads);
            records = std::thread::scope(|scope| {
                let handles: Vec<_> = walks
                    .into_iter()
                    .map(|walk| {
                        scope.spawn(move || {
                            let mut counts = vec![0u64; 65536];
                            let stats = walk.for_each(&mut Ledger::new(), |record, _| {
                                if let Some(n) = counts.get_mut(usize::from(record.hook())) {
                                    *n += 1;
                                }
                            });
                            (stats.records, counts.iter().sum::<u64>())
                        })
                    })
                    .collect();
                handles.into_iter().filter_map(|h| h.join().ok()).map(|(n, _)| n).sum::<u64>()
            });
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{path}: {records} records, {:.2} ms, {:.1} M records/s",
            best * 1e3,
            records as f64 / best / 1e6
        );
    }
}
