//! Times the tiers on a log: `cargo run --release -p etwhy-evtx --example tiers -- FILE [THREADS [MESSAGES]]`.

use etwhy_evtx::binxml::{Decoder, Event, Fault};
use etwhy_evtx::columns::columns;
use etwhy_evtx::filter::Filter;
use etwhy_evtx::read::{LogFile, RecordRef};
use etwhy_evtx::render::Renderer;
use etwhy_evtx::scan::{Reader, ScanOptions, scan};
use etwhy_evtx::{counts, json};
use etwhy_messages::{Messages, Options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Renders and counts.
struct Render<'m>(Renderer<'m>, String, (u64, u64));

impl Reader for Render<'_> {
    type Output = (u64, u64);

    fn record(
        &mut self,
        decoder: &mut Decoder,
        _: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        self.1.clear();
        if self.0.message(decoder, &event?, &mut self.1)? {
            self.2.0 += 1;
            self.2.1 += self.1.len() as u64;
        }
        Ok(())
    }

    fn finish(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.2)
    }
}

/// Fields as JSON.
struct Json(String, u64);

impl Reader for Json {
    type Output = u64;

    fn record(
        &mut self,
        decoder: &mut Decoder,
        _: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        self.0.clear();
        json::push_fields(decoder, &event?, &mut self.0)?;
        self.1 += 1;
        Ok(())
    }

    fn finish(&mut self) -> u64 {
        std::mem::take(&mut self.1)
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("a file")?;
    let threads = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let messages = arguments.next().map(PathBuf::from);
    let log = LogFile::open(Path::new(&file), Path::new(&file))?;
    let options = ScanOptions { threads, in_order: true };
    let best = |name: &str, run: &mut dyn FnMut() -> Outcome<u64>| -> Outcome<()> {
        let (mut least, mut records) = (f64::MAX, 0);
        for _ in 0..5 {
            let start = Instant::now();
            records = run()?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        let (rate, bytes) = (records as f64 / least / 1e6, log.size as f64 / least / 1e9);
        println!("{name:<10} {records:>8} in {:>7.1} ms  {rate:.2} M/s  {bytes:.2} GB/s", least * 1e3);
        Ok(())
    };
    println!("{file}: {} MB, {threads} thread(s), the best of five", log.size / 1_000_000);
    best("counts", &mut || Ok(counts::count(&log, threads)?.all.records))?;
    best("columns", &mut || {
        let rows = AtomicU64::new(0);
        let take = |batch: &etwhy_evtx::columns::Batch, _: &etwhy_evtx::Codes| {
            rows.fetch_add(batch.rows() as u64, Ordering::Relaxed);
        };
        columns(&log, &options, &|_, _| true, &Filter::default(), &take)?;
        Ok(rows.into_inner())
    })?;
    best("json", &mut || {
        let mut sum = 0;
        scan(
            &log,
            &options,
            || Json(String::new(), 0),
            |n| {
                sum += n;
                true
            },
        )?;
        Ok(sum)
    })?;
    if let Some(path) = messages {
        let messages = Messages::open(&[path], &Options::default())?;
        best("messages", &mut || {
            let mut sum = 0;
            scan(
                &log,
                &options,
                || Render(Renderer::new(&messages), String::new(), (0, 0)),
                |(n, _)| {
                    sum += n;
                    true
                },
            )?;
            Ok(sum)
        })?;
    }
    Ok(())
}
