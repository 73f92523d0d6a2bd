//! The benchmark: everything in one run on one machine, so that ratios mean something.
//!
//! ```text
//! cargo run --release -p etwhy-bench                     corpus files and a written trace of 1 GB
//! cargo run --release -p etwhy-bench -- --size 100MB     smaller
//! cargo run --release -p etwhy-bench -- a.etl b.etl      your own traces
//! cargo run --release -p etwhy-bench -- --tables --size 1GB   why and every dump of a trace with all classes
//! cargo run --release -p etwhy-bench -- --huge 10GB      why and large dumps of such a trace with --memory 2G
//! cargo run --release -p etwhy-bench -- --sql 10000000   SQL and views over tables of so many rows
//! cargo run --release -p etwhy-bench -- --sql EXTRACT    SQL over an extract against DuckDB
//! cargo run --release -p etwhy-bench -- --symbols [PDB...]   symbols against llvm-symbolizer
//! cargo run --release -p etwhy-bench -- --evtx [LOG [MESSAGES]]   event logs against evtx_dump
//! cargo run --release -p etwhy-bench -- --build          the program built from nothing: time and size
//! ```
//!
//! `ETWHY_PYTHON` names a Python with the packages `dissect.etl` and `duckdb` for the comparisons with these.
#![forbid(unsafe_code)]

mod child;
mod evtx;
mod evtx_log;
mod evtx_peers;
mod python;
mod sql;
mod sql_extract;
mod symbols;
mod walk;

use std::path::{Path, PathBuf};

fn main() -> anyhow::Result<()> {
    let mut size = 1_000_000_000u64;
    let (mut tables, mut huge) = (false, None);
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--size" => size = parse_size(&arguments.next().unwrap_or_default())?,
            "--tables" => tables = true,
            "--sql" => {
                let what = arguments.next().unwrap_or_else(|| "10000000".to_owned());
                machine();
                return match Path::new(&what) {
                    folder if folder.is_dir() => sql_extract::run(folder),
                    _ => sql::run(what.parse()?),
                };
            }
            "--symbols" => {
                machine();
                return symbols::run(&arguments.map(PathBuf::from).collect::<Vec<_>>());
            }
            "--evtx" => {
                machine();
                let mut rest = arguments.map(PathBuf::from);
                let file = rest.next().filter(|file| file.as_os_str() != "-");
                return evtx::run(file, &corpus(), rest.next());
            }
            "--build" => {
                machine();
                return child::build();
            }
            "--huge" => huge = Some(parse_size(&arguments.next().unwrap_or_default())?),
            "--help" | "-h" => {
                println!(
                    "etwhy-bench [--size SIZE] [--tables] [--huge SIZE] [--sql ROWS|EXTRACT] [--symbols [PDB...]] [--evtx [LOG|- [MESSAGES]]] [--build] [TRACE...]"
                );
                return Ok(());
            }
            file => files.push(PathBuf::from(file)),
        }
    }
    if let Some(bytes) = huge {
        machine();
        return all_classes(bytes, &["cswitch", "syscall", "sample"], &["--memory", "2GB"]);
    }
    if tables {
        machine();
        return all_classes(size, &[], &[]);
    }
    if files.is_empty() {
        files = corpus_files();
    }
    machine();
    println!("\nXPRESS, one thread (target 2 GB/s of output)");
    for file in &files {
        walk::xpress(file)?;
    }
    println!("\nAll records in time order, counted by type, against a plain sum over the same bytes");
    for file in &files {
        walk::walk(file)?;
    }
    println!(
        "\nAgainst dissect.etl, one thread (targets 150x walking, 300x compressed and 500x raw decoding)"
    );
    for file in &files {
        python::compare(file)?;
    }
    println!("\n`etwhy why`");
    let folder = tempfile::tempdir()?;
    let big = folder.path().join("written.etl");
    if size > 0 {
        let mut scenario = etwhy_synth::Scenario::parse(etwhy_synth::DEMO, "demo")?;
        scenario.scale_to_bytes(size)?;
        etwhy_synth::write(&scenario, &big, &mut |_| {})?;
        files.push(big);
    }
    for file in &files {
        child::findings(file)?;
    }
    Ok(())
}

/// `why` and dumps of the tables named (all tables if none is) over a written trace with all classes of events.
fn all_classes(bytes: u64, tables: &[&str], options: &[&str]) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("all_classes.etl");
    let mut scenario = etwhy_synth::Scenario::parse(include_str!("all_classes.toml"), "all_classes")?;
    scenario.scale_to_bytes(bytes)?;
    etwhy_synth::write(&scenario, &trace, &mut |_| {})?;
    println!("\nA written trace with all classes of events (target for each command: 300 MB/s on two cores)");
    child::run(&trace, &[&["why"], options].concat())?;
    let all = child::tables()?;
    let mut names: Vec<&str> =
        if tables.is_empty() { all.iter().map(String::as_str).collect() } else { tables.to_vec() };
    names.sort_unstable();
    for name in names {
        child::run(&trace, &[&["dump", name, "--top", "100"], options].concat())?;
    }
    Ok(())
}

fn parse_size(text: &str) -> anyhow::Result<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse()?;
    Ok(match text.get(digits.len()..).unwrap_or("").to_ascii_uppercase().as_str() {
        "GB" => number * 1_000_000_000,
        "MB" => number * 1_000_000,
        "KB" => number * 1000,
        "" => number,
        unit => anyhow::bail!("unknown unit {unit}"),
    })
}

/// The three traces of the published comparison, where the corpus is.
/// The folder of real traces and logs.
fn corpus() -> PathBuf {
    std::env::var_os("ETWHY_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus"),
        PathBuf::from,
    )
}

fn corpus_files() -> Vec<PathBuf> {
    let corpus = corpus();
    let files: Vec<PathBuf> = [
        "microsoft+perfview/net.4.5.2.x64.etl",
        "microsoft+perfview/net.4.5.x86_PerfViewData.etl",
        "Siemens-Healthineers+ETWAnalyzer/TraceLoggingTester.etl",
    ]
    .iter()
    .map(|f| corpus.join("etl").join(f))
    .filter(|f| f.is_file())
    .collect();
    if files.is_empty() {
        println!("no corpus at {} (set ETWHY_CORPUS); only the written trace is measured", corpus.display());
    }
    files
}

/// Says what the numbers come from.
fn machine() {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or(": unknown");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("machine: {threads} x{}, load {}", model.trim_start_matches([' ', '\t', ':']), load.trim());
}

/// Name of a file for a line of output.
fn short(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Shortest time of `n` runs, in seconds, and the last result.
fn best<T>(n: usize, mut run: impl FnMut() -> T) -> (f64, Option<T>) {
    let mut best = f64::MAX;
    let mut last = None;
    for _ in 0..n {
        let start = std::time::Instant::now();
        last = Some(std::hint::black_box(run()));
        best = best.min(start.elapsed().as_secs_f64());
    }
    (best, last)
}
