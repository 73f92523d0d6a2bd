//! The whole program as a user runs it: time and peak anonymous memory of `etwhy why`.

use crate::short;
use crate::walk::one_walk;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Prints what the questions of `etwhy why` add to its time, beside reading.
pub fn findings(file: &Path) -> anyhow::Result<()> {
    let with = run(file, &["why"])?;
    let without = run(file, &["why", "--no-findings"])?;
    println!(
        "  findings add {:.0} % to reading (target 20 % at 1 GB)",
        (with / without.max(1e-9) - 1.0) * 100.0
    );
    Ok(())
}

/// Builds the program in an empty folder; prints how long that took and how large it is.
pub fn build() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let start = Instant::now();
    let status = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--locked", "-p", "etwhy"])
        .env("CARGO_TARGET_DIR", folder.path())
        .status()?;
    anyhow::ensure!(status.success(), "cannot build etwhy");
    let program = folder.path().join("release").join(format!("etwhy{}", std::env::consts::EXE_SUFFIX));
    println!(
        "  cold release build {:.0} s (target 420 s on two cores), stripped program {:.1} MB (target 25 MB)",
        start.elapsed().as_secs_f64(),
        std::fs::metadata(program)?.len() as f64 / 1e6
    );
    Ok(())
}

/// Prints speed and memory of `etwhy ARGUMENTS FILE`, and its ratio to one walk over the records. Gives the seconds.
pub fn run(file: &Path, arguments: &[&str]) -> anyhow::Result<f64> {
    let program = program()?;
    let size = std::fs::metadata(file)?.len();
    let runs = if size > 4_000_000_000 {
        1
    } else if size > 200_000_000 {
        2
    } else {
        5
    };
    let (mut time, mut peak) = (f64::MAX, 0u64);
    for _ in 0..runs {
        let start = Instant::now();
        let mut child = Command::new(&program)
            .args(arguments)
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let status = loop {
            peak = peak.max(anonymous(child.id()));
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        anyhow::ensure!(status.code().is_some_and(|c| c < 2), "etwhy {arguments:?}: {status}");
        time = time.min(start.elapsed().as_secs_f64());
    }
    let start = Instant::now();
    let records = one_walk(file, 1)?;
    let walk = start.elapsed().as_secs_f64();
    // Target: 60 % of the file and 200 MB.
    let allowed = 0.6 * size as f64 + 200e6;
    println!(
        "  {:<44} {:>5.0} MB/s, {:>5.2} M events/s, {:>5.1} x the walk; peak RssAnon {:>5.0} MB = {:>3.0} % of the limit ({:.0} MB, {records} events, {:.2} s)",
        format!("{} {}", arguments.join(" "), short(file)),
        size as f64 / time / 1e6,
        records as f64 / time / 1e6,
        time / walk.max(1e-9),
        peak as f64 / 1e6,
        peak as f64 * 100.0 / allowed,
        size as f64 / 1e6,
        time
    );
    Ok(time)
}

/// Names of all tables, as the program lists them.
pub fn tables() -> anyhow::Result<Vec<String>> {
    let list = Command::new(program()?).args(["dump", "--list"]).output()?;
    let text = String::from_utf8(list.stdout)?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

/// Anonymous memory of a process in bytes (Linux; elsewhere 0).
fn anonymous(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    let kb: u64 = line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    kb * 1024
}

/// The program beside this one, built if it is not there.
pub fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(format!("etwhy{}", std::env::consts::EXE_SUFFIX));
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo).args(["build", "--release", "--quiet", "-p", "etwhy"]).status()?;
    anyhow::ensure!(status.success(), "cannot build etwhy");
    anyhow::ensure!(program.is_file(), "no program at {}", program.display());
    Ok(program)
}
