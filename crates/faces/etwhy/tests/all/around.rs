//! `etwhy why FOLDER --at`: files of one session that went on in new files, of which only the first and the last say who is who.

use crate::{ETWHY, Str as _};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::write::{TraceSetup, TraceWriter};
use etwhy_testkit::text;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Seconds of each file; the demonstration takes eight.
const EACH_S: i64 = 2;

/// The demonstration as a rotating recording would have left it: each header states when the session began.
fn rotated(folder: &Path, whole: &Path) -> Vec<PathBuf> {
    let made = ETWHY.output(&["synth", "--demo", "-q", "-o", whole.str()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let files = [EtlFile::open(whole, whole, &OpenOptions::default()).unwrap()];
    let (header, clock) = (files[0].header(), files[0].clock());
    let first = clock.anchor_ticks;
    let paths: Vec<PathBuf> =
        (1..=4).map(|number| folder.join(format!("kernel-1-{number:03}.etl"))).collect();
    let mut writers: Vec<_> = paths
        .iter()
        .map(|path| {
            let setup = TraceSetup {
                processors: header.processors,
                start_time: header.start_time,
                start_ticks: first,
                boot_time: header.boot_time,
                perf_freq: header.perf_freq,
                cpu_mhz: header.cpu_speed_mhz,
                os_build: header.os_build,
                time_zone_bias: header.time_zone.bias,
                session_name: "NT Kernel Logger".to_owned(),
                log_file_name: format!("D:\\traces\\{}", path.file_name().unwrap().to_string_lossy()),
                ..TraceSetup::default()
            };
            TraceWriter::create(path, setup).unwrap()
        })
        .collect();
    let timeline = Timeline::read(&files, &mut Ledger::new());
    let each = EACH_S * clock.frequency;
    Walk::new(&files, &timeline).for_each(&mut Ledger::new(), |record, _| {
        if record.kind.is_system() && record.hook() == 0 {
            return;
        }
        let part = usize::try_from((record.ticks - first).max(0) / each).unwrap().min(3);
        writers[part].write_bytes(record.cpu, record.ticks, record.bytes).unwrap();
    });
    for writer in writers {
        writer.finish().unwrap();
    }
    paths
}

fn why(arguments: &[&str]) -> Value {
    let out = ETWHY.output(&[&["why", "--json", "--quiet"], arguments].concat());
    assert!(out.status.code().is_some_and(|code| code < 2), "{arguments:?}: {}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// CPU time of processes that have a name, by name.
fn named(report: &Value) -> Vec<(String, i64)> {
    let rows = report["bill"].as_array().unwrap().iter().filter(|row| row["kind"] == "process");
    let named = rows.filter(|row| row["is_idle"] == false && row["is_unattributed"] == false);
    let mut all: Vec<(String, i64)> = named
        .map(|row| (row["culprit"].as_str().unwrap().to_owned(), row["total_cpu_ns"].as_i64().unwrap()))
        .filter(|(name, ns)| !name.starts_with("[unknown]") && *ns > 0)
        .collect();
    all.sort();
    all
}

#[test]
fn files_around_a_time_know_who_is_who_from_their_neighbours() {
    let (folder, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = beside.path().join("demo.etl");
    let files = rotated(folder.path(), &whole);
    // All of them are one recording, although each says that it began with the session.
    let all = ETWHY.output(&["info", "--quiet", folder.path().str()]);
    assert!(all.status.success(), "{}", text(&all.stderr));
    let alone = why(&[files[2].str()]);
    assert!(!named(&alone).iter().any(|(name, _)| name.starts_with("build.exe")), "{:?}", named(&alone));
    let around = why(&[folder.path().str(), "--at", "2025-06-02T09:15:05Z"]);
    let truth = why(&[whole.str(), "--from", "4s", "--to", "6s"]);
    let (seen, truth_rows) = (named(&around), named(&truth));
    assert!(seen.iter().any(|(name, _)| name.starts_with("build.exe")), "{seen:?}");
    let names = |rows: &[(String, i64)]| rows.iter().map(|row| row.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&seen), names(&truth_rows));
    for ((name, seen), (_, truth)) in seen.iter().zip(&truth_rows) {
        assert!(
            seen.abs_diff(*truth) * 50 <= truth.unsigned_abs() + 100_000_000,
            "{name}: {seen} and {truth}"
        );
    }
    // Only what lies in the third file counts.
    let duration = around["quality"]["duration_ns"].as_i64().unwrap();
    assert!((1_800_000_000..=2_200_000_000).contains(&duration), "{duration}");
    let said = ETWHY.output(&["why", "--quiet", folder.path().str(), "--at", "2025-06-02T09:15:05Z"]);
    assert!(text(&said.stdout).contains("who is who"), "{}", text(&said.stdout));
    let none = ETWHY.output(&["why", folder.path().str(), "--at", "2025-06-02T10:00Z"]);
    assert!(none.status.code() == Some(2) && text(&none.stderr).contains("no file covers that time"));
}
