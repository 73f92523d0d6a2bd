//! Event logs: the three tiers of `etwhy evtx` against `evtx_dump`, in one run on each log.

use crate::evtx_log;
use etwhy_evtx::binxml::{Decoder, Event, Fault};
use etwhy_evtx::columns::columns;
use etwhy_evtx::counts;
use etwhy_evtx::filter::Filter;
use etwhy_evtx::json::Lines;
use etwhy_evtx::read::{LogFile, RecordRef};
use etwhy_evtx::render::Renderer;
use etwhy_evtx::scan::{Reader, ScanOptions, scan};
use etwhy_messages::{Messages, Options};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

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

/// Writes records as `etwhy evtx --json` or `--xml` does, and drops the text when it has so many bytes as the program hands over.
struct Text {
    lines: Option<Lines>,
    text: Vec<u8>,
    records: u64,
}

impl Text {
    fn json() -> Text {
        Text { lines: Some(Lines::default()), text: Vec::new(), records: 0 }
    }

    fn xml() -> Text {
        Text { lines: None, text: Vec::new(), records: 0 }
    }
}

impl Reader for Text {
    type Output = u64;

    const CHUNKS: usize = 16;

    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let event = event?;
        self.records += 1;
        match &mut self.lines {
            Some(lines) => lines.push(decoder, record, &event, None, &mut self.text),
            None => decoder.push_xml::<true>(&event, &mut self.text),
        }
    }

    fn finish(&mut self) -> u64 {
        std::hint::black_box(&self.text);
        self.text.clear();
        std::mem::take(&mut self.records)
    }
}

/// Measures on a log, or on two that are put together from full chunks of the corpus: one of Security logs, one of all kinds.
pub fn run(file: Option<PathBuf>, corpus: &Path, messages: Option<PathBuf>) -> anyhow::Result<()> {
    let texts = messages.map(|path| Messages::open(&[path], &Options::default())).transpose()?;
    if let Some(file) = file {
        return one(&file, texts.as_ref());
    }
    let folder = tempfile::tempdir()?;
    for (name, bytes, provider) in
        [("uniform.evtx", 265_000_000, Some("Security-Auditing")), ("mixed.evtx", 125_000_000, None)]
    {
        let file = folder.path().join(name);
        evtx_log::written(corpus, &file, bytes, provider)?;
        one(&file, texts.as_ref())?;
        std::fs::remove_file(file)?;
    }
    Ok(())
}

fn one(file: &Path, texts: Option<&Messages>) -> anyhow::Result<()> {
    let log = LogFile::open(file, file)?;
    println!(
        "\n{}: {} MB; targets: counts 5x, JSON and XML 1.2x, with two threads 1.5x evtx_dump -t1; per thread columns 3, messages 2 M/s",
        file.display(),
        log.size / 1_000_000
    );
    let dumps = (dump(file, "jsonl")?, dump(file, "xml")?);
    let mut rows: Vec<Row> = Vec::new();
    let before = resident();
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
        rows.push(best("JSON", threads, || summed(&log, &options, Text::json))?);
        rows.push(best("XML", threads, || summed(&log, &options, Text::xml))?);
        if let Some(texts) = texts {
            let make = || Render(Renderer::new(texts), String::new(), 0);
            rows.push(best("messages", threads, || summed(&log, &options, make))?);
        }
    }
    for row in &rows {
        let alone = rows.iter().find(|other| other.name == row.name && other.threads == 1);
        let scale = alone.map_or(1.0, |alone| alone.wall / row.wall);
        // One thread: its own time, whatever else the machine does. Two: what a clock on the wall shows.
        let (seconds, kind) = if row.threads == 1 { (row.cpu, "CPU") } else { (row.wall, "wall") };
        let dump = if row.name == "XML" { &dumps.1 } else { &dumps.0 };
        let dump = dump.as_ref().map(|dump| if row.threads == 1 { dump.cpu } else { dump.wall });
        let ratio = dump.map_or_else(|| "-".to_owned(), |dump| format!("{:.2}x", dump / seconds));
        println!(
            "  {:<15} {} thread(s)  {:>8} in {:>7.1} ms {kind:<4}  {:>5.2} M/s {:>5.0} MB/s  scale {scale:.2}x  evtx_dump -t1 {ratio}  peak {:.0} MB",
            row.name,
            row.threads,
            row.records,
            seconds * 1e3,
            row.records as f64 / seconds / 1e6,
            log.size as f64 / seconds / 1e6,
            row.peak as f64 / 1e6,
        );
        if row.name == "messages" && row.threads == 1 {
            // DESIGN: 60,232 messages took 35 s through WMI.
            println!(
                "  60,232 messages at this rate: {:.3} s (35 s through WMI on the machine of the case)",
                60_232.0 * seconds / row.records as f64
            );
        }
    }
    why(file, rows.iter().map(|row| row.records).max().unwrap_or(0))?;
    let tiers: Vec<(&str, f64)> = rows
        .iter()
        .filter(|row| row.threads == 1 && row.name != "counts")
        .map(|row| (row.name, row.cpu / row.records as f64))
        .collect();
    crate::evtx_peers::compare(file, &tiers)?;
    println!(
        "  resident before: {:.0} MB; peaks hold it and at most 4 MiB of the file for each thread",
        before as f64 / 1e6
    );
    Ok(())
}

/// What a tier took.
struct Row {
    name: &'static str,
    threads: usize,
    records: u64,
    /// Seconds of the thread that asked; all of them if there is one.
    cpu: f64,
    /// Seconds on the clock.
    wall: f64,
    /// Most bytes that were resident.
    peak: u64,
}

/// CPU time of this thread in seconds (Linux); 0 elsewhere.
pub fn cpu() -> f64 {
    // Reading `stat` brings the figure of `schedstat` up to date.
    let _ = std::fs::read_to_string("/proc/self/stat");
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// CPU time of children that ended, in seconds (Linux, ticks of 10 ms); 0 elsewhere.
fn cpu_of_children() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have blanks: cutime and cstime are the 16th and 17th field (proc_pid_stat(5)).
    let behind = text.rsplit(") ").next().unwrap_or("");
    behind.split(' ').skip(13).take(2).filter_map(|n| n.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Bytes of this process that are in memory (Linux); 0 elsewhere.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
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

/// The least times of nine runs, and the most memory of one more.
fn best(
    name: &'static str,
    threads: usize,
    mut run: impl FnMut() -> anyhow::Result<u64>,
) -> anyhow::Result<Row> {
    let mut row = Row { name, threads, records: 0, cpu: f64::MAX, wall: f64::MAX, peak: 0 };
    for _ in 0..9 {
        let (start, begin) = (Instant::now(), cpu());
        row.records = run()?;
        row.wall = row.wall.min(start.elapsed().as_secs_f64());
        row.cpu = row.cpu.min(cpu() - begin);
    }
    if row.cpu <= 0.0 {
        row.cpu = row.wall;
    }
    let (done, peak) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(resident(), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let result = run();
        done.store(true, Ordering::Relaxed);
        result
    })?;
    row.peak = peak.into_inner();
    Ok(row)
}

/// What a program took.
struct Dump {
    cpu: f64,
    wall: f64,
}

/// What `evtx_dump -t 1` takes, the least of five; `None` if it is not installed (`cargo install evtx`).
fn dump(file: &Path, format: &str) -> anyhow::Result<Option<Dump>> {
    let program = std::env::var_os("ETWHY_EVTX_DUMP").unwrap_or_else(|| "evtx_dump".into());
    let least = least(0, || {
        let mut command = Command::new(&program);
        command.args(["-t", "1", "-o", format]).arg(file);
        command
    });
    match &least {
        Some(least) => println!(
            "  evtx_dump -t 1 -o {format}: {:.0} ms CPU, {:.0} ms",
            least.cpu * 1e3,
            least.wall * 1e3
        ),
        None => {
            println!("  evtx_dump is not there (`cargo install evtx`, or ETWHY_EVTX_DUMP): no comparison");
        }
    }
    Ok(least)
}

/// Prints what `etwhy evtx why` takes as a whole: reading, tables that are made of the records, findings, report.
fn why(file: &Path, records: u64) -> anyhow::Result<()> {
    let program = crate::child::program()?;
    for threads in ["1", "2"] {
        // 1: something of what was read is damaged.
        let least = least(1, || {
            let mut command = Command::new(&program);
            command.args(["evtx", "why", "--quiet", "--threads", threads]).arg(file);
            command
        });
        let Some(Dump { cpu, wall }) = least else { anyhow::bail!("evtx why failed on {}", file.display()) };
        let seconds = if threads == "1" { cpu } else { wall };
        println!(
            "  evtx why, {threads} thread(s): {:.0} ms CPU, {:.0} ms, {:.2} M records/s (target 1 on the uniform log, 0.5 on the mixed one)",
            cpu * 1e3,
            wall * 1e3,
            records as f64 / seconds / 1e6
        );
    }
    Ok(())
}

/// The least of five runs of a command; `None` if one cannot run or ends with a higher code than `most`.
fn least(most: i32, mut command: impl FnMut() -> Command) -> Option<Dump> {
    let mut least = Dump { cpu: f64::MAX, wall: f64::MAX };
    for _ in 0..5 {
        let (start, begin) = (Instant::now(), cpu_of_children());
        let status = command().stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.ok().filter(|status| status.code().is_some_and(|code| code <= most))?;
        least.wall = least.wall.min(start.elapsed().as_secs_f64());
        least.cpu = least.cpu.min(cpu_of_children() - begin);
    }
    if least.cpu <= 0.0 {
        least.cpu = least.wall;
    }
    Some(least)
}
