//! Records real runs for `coverage.rs`: six workloads with nothing changed between rounds.
//!
//! ```text
//! ETWHY_RECORD=crates/sources/probe/tests/data/busy.csv cargo test -p etwhy-probe --test all record:: -- --ignored
//! ```

use crate::support;
use etwhy_probe::probe::{EVERYWHERE, Grows, Probe};
use etwhy_probe::run::Options;
use etwhy_probe::{Case, ProbeError, Run};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

static PROBE: Probe = Probe {
    name: "recorded",
    about: "",
    manual: "",
    systems: EVERYWHERE,
    parameters: &[],
    grows: Grows::No,
    n_is: "",
    contrasts: &[],
    run,
    child: None,
    conclude: |_| Vec::new(),
};

fn nanos(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap()
}

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let scratch = run.scratch(0)?;
    let files: Vec<_> = (0..100).map(|n| scratch.path().join(format!("file{n}"))).collect();
    run.measure(Case::new("create"), |_, laps| {
        for file in &files {
            let start = Instant::now();
            std::fs::File::create(file).unwrap().write_all(&[7; 4096]).unwrap();
            laps.push(nanos(start));
        }
        Ok((100, 0))
    })?;
    for (what, read) in [("open", false), ("read 4 KB", true)] {
        run.measure(Case::new(what), |_, laps| {
            for file in &files {
                let start = Instant::now();
                let file = std::fs::File::open(file).unwrap();
                if read {
                    let read = std::io::Read::read(&mut &file, &mut [0; 4096]).unwrap();
                    assert_eq!(read, 4096);
                }
                drop(file);
                laps.push(nanos(start));
            }
            Ok((100, 0))
        })?;
    }
    run.measure(Case::new("start a process"), |_, laps| {
        for _ in 0..4 {
            let start = Instant::now();
            std::process::Command::new("true").status().unwrap();
            laps.push(nanos(start));
        }
        Ok((4, 0))
    })?;
    run.measure(Case::new("yield"), |_, _| {
        for _ in 0..500 {
            std::thread::yield_now();
        }
        Ok((500, 0))
    })?;
    run.measure(Case::new("sleep 1 ms"), |_, laps| {
        for _ in 0..5 {
            let start = Instant::now();
            std::thread::sleep(std::time::Duration::from_millis(1));
            laps.push(nanos(start));
        }
        Ok((5, 0))
    })?;
    scratch.remove()
}

#[test]
#[ignore = "writes the data of coverage.rs"]
fn record() {
    let path = std::env::var("ETWHY_RECORD").expect("ETWHY_RECORD names no file");
    let folder = tempfile::tempdir().unwrap();
    let options = Options { quick: false, rounds: 240, ..support::options(folder.path(), &[]) };
    let made = support::made(&PROBE, &options);
    let mut text = String::from("measure,round,typical_ns,mean_ns,cpu_ns\n");
    for sample in &made.samples {
        let typical = etwhy_probe::summary::typical(sample);
        let cpu = sample.cpu_ns.unwrap_or(0) / sample.operations;
        writeln!(text, "{},{},{typical:.0},{:.0},{cpu}", sample.case.measure, sample.round, sample.value)
            .unwrap();
    }
    std::fs::write(std::path::Path::new("../../..").join(path), text).unwrap();
}
