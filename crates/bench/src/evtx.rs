//! Event logs: the three tiers of `etwhy evtx` against `evtx_dump`, in one run on one log.

use etwhy_evtx::binxml::{Decoder, Event, Fault};
use etwhy_evtx::columns::columns;
use etwhy_evtx::counts;
use etwhy_evtx::filter::Filter;
use etwhy_evtx::json;
use etwhy_evtx::read::{LogFile, RecordRef};
use etwhy_evtx::render::Renderer;
use etwhy_evtx::scan::{Reader, ScanOptions, scan};
use etwhy_messages::{Messages, Options};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Chunks with less in them are left out: they say little about large logs.
const LEAST_USED: usize = 40_000;
const CHUNK: usize = 65_536;

/// Renders messages and drops them.
struct Render<'m>(Renderer<'m>, String, u64);

impl Reader for Render<'_> {
    type Output = u64;

    fn record(
        &mut self,
        decoder: &mut Decoder,
        _: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        self.1.clear();
        self.2 += u64::from(self.0.message(decoder, &event?, &mut self.1)?);
        Ok(())
    }

    fn finish(&mut self) -> u64 {
        std::mem::take(&mut self.2)
    }
}

/// Writes fields as JSON and drops them.
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

/// Measures on a log, or on one that is put together from full chunks of the corpus.
pub fn run(file: Option<PathBuf>, corpus: &Path, messages: Option<PathBuf>) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = match file {
        Some(file) => file,
        None => {
            let file = folder.path().join("security.evtx");
            written(corpus, &file, 265_000_000)?;
            file
        }
    };
    let log = LogFile::open(&file, &file)?;
    println!(
        "\n{}: {} MB; targets per thread: counts 5, columns 3, messages 2 M/s; two threads 1.7x",
        file.display(),
        log.size / 1_000_000
    );
    let dump = dump(&file)?;
    let texts = messages.map(|path| Messages::open(&[path], &Options::default())).transpose()?;
    let mut rows: Vec<(&str, usize, u64, f64)> = Vec::new();
    for threads in [1, 2] {
        let options = ScanOptions { threads, in_order: true };
        rows.push(best("counts", threads, || Ok(counts::count(&log, threads)?.all.records))?);
        rows.push(best("columns", threads, || {
            let rows = AtomicU64::new(0);
            let take = |batch: &etwhy_evtx::columns::Batch, _: &etwhy_evtx::Codes| {
                rows.fetch_add(batch.rows() as u64, Ordering::Relaxed);
            };
            columns(&log, &options, &|_, _| true, &Filter::default(), &take)?;
            Ok(rows.into_inner())
        })?);
        rows.push(best("fields as JSON", threads, || summed(&log, &options, || Json(String::new(), 0)))?);
        if let Some(texts) = &texts {
            let make = || Render(Renderer::new(texts), String::new(), 0);
            rows.push(best("messages", threads, || summed(&log, &options, make))?);
        }
    }
    for (name, threads, records, seconds) in &rows {
        let alone = rows.iter().find(|(other, one, ..)| other == name && *one == 1);
        let scale = alone.map_or(1.0, |(.., one)| one / seconds);
        let ratio = dump.map_or_else(|| "-".to_owned(), |dump| format!("{:.2}x", dump / seconds));
        println!(
            "  {name:<15} {threads} thread(s)  {records:>8} in {:>7.1} ms  {:>5.2} M/s  scale {scale:.2}x  evtx_dump -t1 {ratio}",
            seconds * 1e3,
            *records as f64 / seconds / 1e6
        );
        if *name == "messages" && *threads == 1 {
            // DESIGN: 60,232 messages took 35 s through WMI.
            let story = 60_232.0 * seconds / *records as f64;
            println!(
                "  60,232 messages at this rate: {:.3} s (35 s through WMI on the machine of the case)",
                story
            );
        }
    }
    Ok(())
}

fn summed<R: Reader<Output = u64>>(
    log: &LogFile,
    options: &ScanOptions,
    make: impl Fn() -> R + Sync,
) -> anyhow::Result<u64> {
    let mut sum = 0;
    scan(log, options, make, |n| {
        sum += n;
        true
    })?;
    Ok(sum)
}

/// The least time of five.
fn best(
    name: &'static str,
    threads: usize,
    mut run: impl FnMut() -> anyhow::Result<u64>,
) -> anyhow::Result<(&'static str, usize, u64, f64)> {
    let (mut least, mut records) = (f64::MAX, 0);
    for _ in 0..5 {
        let start = Instant::now();
        records = run()?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok((name, threads, records, least))
}

/// Seconds that `evtx_dump -t 1 -o jsonl` takes, the least of three; `None` if it is not installed (`cargo install evtx`).
fn dump(file: &Path) -> anyhow::Result<Option<f64>> {
    let program = std::env::var_os("ETWHY_EVTX_DUMP").unwrap_or_else(|| "evtx_dump".into());
    let mut least: Option<f64> = None;
    for _ in 0..3 {
        let start = Instant::now();
        let mut command = std::process::Command::new(&program);
        command.args(["-t", "1", "-o", "jsonl"]).arg(file);
        let status = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
        match status {
            Ok(status) if status.success() => {
                let seconds = start.elapsed().as_secs_f64();
                least = Some(least.map_or(seconds, |l| l.min(seconds)));
            }
            _ => {
                println!(
                    "  evtx_dump is not there (`cargo install evtx`, or ETWHY_EVTX_DUMP): no comparison"
                );
                return Ok(None);
            }
        }
    }
    if let Some(seconds) = least {
        println!("  evtx_dump -t1 (fields and system values as JSON): {:.1} ms", seconds * 1e3);
    }
    Ok(least)
}

/// Full, valid chunks of Security logs under a fresh header, as often as it takes. Repeats are kind to caches.
fn written(corpus: &Path, to: &Path, bytes: usize) -> anyhow::Result<()> {
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let wanted: Vec<u8> = "Security-Auditing".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut files = Vec::new();
    for folder in std::fs::read_dir(corpus.join("evtx"))? {
        let folder = folder?.path();
        if folder.is_dir() {
            for file in std::fs::read_dir(folder)? {
                files.push(file?.path());
            }
        }
    }
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "evtx")) {
        let data = std::fs::read(file)?;
        for chunk in data.get(4096..).unwrap_or(&[]).chunks_exact(CHUNK) {
            let get = |at: usize| {
                chunk.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
            };
            let used = get(48) as usize;
            let sound = chunk.starts_with(b"ElfChnk\0")
                && (LEAST_USED..=CHUNK).contains(&used)
                && crc32fast::hash(chunk.get(512..used).unwrap_or(&[])) == get(52);
            if sound && chunk.windows(wanted.len()).any(|w| w == wanted) {
                chunks.push(chunk.to_vec());
            }
        }
    }
    anyhow::ensure!(!chunks.is_empty(), "no logs in {}", corpus.display());
    let count = bytes / CHUNK;
    let mut out = vec![0u8; 4096];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = out.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, b"ElfFile\0");
    put(16, &(count as u64 - 1).to_le_bytes());
    put(32, &128u32.to_le_bytes());
    put(36, &1u16.to_le_bytes());
    put(38, &3u16.to_le_bytes());
    put(40, &4096u16.to_le_bytes());
    put(42, &(count as u16).to_le_bytes());
    let checksum = crc32fast::hash(out.get(..120).unwrap_or(&[]));
    if let Some(place) = out.get_mut(124..128) {
        place.copy_from_slice(&checksum.to_le_bytes());
    }
    for chunk in chunks.iter().cycle().take(count) {
        out.extend_from_slice(chunk);
    }
    std::fs::write(to, out)?;
    println!("written from {} chunks of the corpus, each {} times", chunks.len(), count / chunks.len());
    Ok(())
}
