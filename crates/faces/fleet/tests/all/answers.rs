//! Planted truth, and the same answers in DuckDB.

use crate::made::Made;
use etwhy_base::rng::Rng;
use etwhy_fleet::outliers::{compared, outliers};
use etwhy_fleet::regressions::{pairs, regressions};
use etwhy_fleet::trend::{By, courses};
use etwhy_fleet::{Fleet, views};
use etwhy_table::{Table, Value};
use etwhy_testkit::script;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

const MODELS: [&str; 4] = ["Contoso Book 1", "Contoso Book 2", "Fabrikam T", "Fabrikam X"];

/// 200 machines in 4 models with 4 traces each. From day 20 on `new.sys` 2.0 costs 3 % more, machine 17 has a driver that takes a
/// third of its time, `everywhere.sys` is on all of them, and costs most, and never changed its cost.
fn planted() -> Made {
    let (mut made, mut rng) = (Made::default(), Rng::new(7));
    for machine in 0..200i64 {
        let own = 0.02 * (rng.normal() * 0.6).exp();
        for (n, day) in [3, 12, 25, 33].into_iter().enumerate() {
            let mut near = |share: f64| share * (rng.normal() * 0.03).exp();
            let mut trace = made.trace(&format!("t{machine}-{n}"), &format!("m{machine:03}"));
            trace.facts(MODELS[machine as usize % 4], day);
            trace.nobody();
            let after = day >= 20;
            trace.driver(
                "new.sys",
                if after { "2.0" } else { "1.0" },
                near(own * if after { 1.03 } else { 1.0 }),
            );
            trace.driver("everywhere.sys", if after { "8.1" } else { "8.0" }, near(0.08));
            if machine == 17 {
                trace.driver("rogue.sys", "1.0", near(0.33));
            }
            trace.finding(
                "dpc.flood",
                match machine % 10 {
                    0 => "found",
                    1..=4 => "not_found",
                    _ => "cannot_tell",
                },
            );
        }
    }
    made
}

fn fleet(made: &Made, folder: &Path) -> Fleet {
    Fleet::new(made.store(&folder.join("store"))).unwrap()
}

fn find(table: &Table, column: &str, value: &str) -> u32 {
    (0..table.rows() as u32).find(|&row| table.text(row, column) == Some(value)).unwrap()
}

#[test]
fn what_was_planted_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet(&planted(), folder.path());
    assert_eq!(fleet.traces(), 800);

    let rank = fleet.ask("rank").unwrap();
    let names: Vec<&str> = (0..rank.rows() as u32).map(|row| rank.text(row, "culprit").unwrap()).collect();
    assert_eq!(names, ["everywhere.sys", "new.sys", "rogue.sys"], "idle and unattributed time are nobody");
    assert!((rank.f64(0, "share_percent").unwrap() - 8.0).abs() < 0.1);
    assert!((rank.f64(0, "p50_percent").unwrap() - 8.0).abs() < 0.2);
    let rogue = find(&rank, "culprit", "rogue.sys");
    let of_all = rank.f64(rogue, "share_percent").unwrap();
    assert!((of_all - 33.0 / 200.0).abs() < 0.02, "{of_all}");
    assert_eq!((rank.i64(rogue, "machines"), rank.i64(rogue, "machines_able")), (Some(1), Some(200)));
    // 100 s, which were observed, are 1/864 of a day.
    let wh = rank.f64(0, "wh_per_day").unwrap();
    assert!((wh - 0.08 * 0.5 * 864.0).abs() < 1.0, "{wh}");

    let found = regressions(&pairs(&fleet.ask("version_pairs").unwrap()));
    let certain: Vec<_> = found.iter().filter(|change| change.certain).collect();
    assert_eq!(certain.len(), 1, "{certain:?}");
    let change = certain[0];
    assert_eq!((change.change.culprit.as_str(), change.machines), ("new.sys", 200));
    let ratio = change.ratio.unwrap();
    assert!(ratio.holds(1.03) && ratio.low > 1.0 && ratio.high < 1.06, "{ratio:?}");

    let shares = fleet.ask("machine_shares").unwrap();
    assert_eq!(compared(&shares), 200, "50 of each model");
    let found = outliers(&shares);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].machine_id.as_str(), found[0].culprit.as_str()), ("m017", "rogue.sys"));

    let findings = fleet.ask("rank_findings").unwrap();
    assert_eq!(findings.i64(0, "could_tell"), Some(400), "half of the machines cannot tell");
    assert_eq!(findings.f64(0, "found_percent"), Some(20.0));
    let coverage = fleet.ask("coverage").unwrap();
    assert_eq!(coverage.f64(0, "could_tell_percent"), Some(50.0));

    let courses = courses(&fleet.ask("trend").unwrap(), "driver", By::Day);
    assert_eq!(courses[0].percent.len(), 4);
    assert!(courses.iter().all(|course| !course.certain), "four days make no trend");
}

/// A recording that lost names has more of what nobody knows; its machine is no other for that.
#[test]
fn names_that_were_lost_make_no_outlier() {
    let folder = tempfile::tempdir().unwrap();
    let (mut made, mut rng) = (Made::default(), Rng::new(3));
    for machine in 0..12 {
        let mut trace = made.trace(&format!("t{machine}"), &format!("m{machine:02}"));
        trace.facts("Contoso Book 1", 3);
        trace.driver("quiet.sys", "1", 0.1 * (rng.normal() * 0.03).exp());
        match machine {
            3 => trace.driver("[unknown]", "1", 0.5),
            5 => trace.driver("rogue.sys", "1", 0.5),
            _ => {}
        }
    }
    let found = outliers(&fleet(&made, folder.path()).ask("machine_shares").unwrap());
    let culprits: Vec<&str> = found.iter().map(|outlier| outlier.culprit.as_str()).collect();
    assert_eq!(culprits, ["rogue.sys"]);
}

/// A trace of which nobody knows how long it was changes no share, and its findings count.
#[test]
fn an_event_at_a_wrong_time_changes_no_share() {
    let (whole, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut made = planted();
    let before = fleet(&made, whole.path());
    let mut of = made.trace("broken", "m017");
    of.row(
        "recording",
        &[("captured_day", "2026-01-01".into()), ("duration_ns", 1i64.into()), ("clock_broken", true.into())],
    );
    of.row("machine", &[("capacity_ns", 4_000_000_000_000_000i64.into()), ("busy_ns", 6i64.into())]);
    of.row(
        "bill",
        &[
            ("kind", "driver".into()),
            ("part", "culprit".into()),
            ("culprit", "rogue.sys".into()),
            ("source", "sample".into()),
            ("total_cpu_ns", 6i64.into()),
        ],
    );
    of.finding("dpc.flood", "found");
    let after = fleet(&made, one.path());
    assert_eq!(after.traces(), before.traces() + 1);
    for view in ["rank", "machine_shares", "runs", "trend", "version_pairs"] {
        let rows = |fleet: &Fleet| {
            let table = fleet.ask(view).unwrap();
            let cells = |row: u32| {
                (0..table.spec().columns.len())
                    .map(|at| format!("{:?}", table.cell(row, at)))
                    .collect::<Vec<_>>()
            };
            let mut all: Vec<_> = (0..table.rows() as u32).map(cells).collect();
            all.sort();
            all
        };
        assert_eq!(rows(&after), rows(&before), "{view}");
    }
    let found = |fleet: &Fleet| fleet.ask("rank_findings").unwrap().i64(0, "found").unwrap();
    assert_eq!(found(&after), found(&before) + 1);
}

#[test]
fn the_latest_reading_of_a_file_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::default();
    let mut add = |trace: &str, reading: &str, file: &str, batch: i64, share: f64| {
        let mut of = made.reading(trace, "m", reading, file, batch);
        of.facts("x", batch);
        of.driver("a.sys", "1", share);
    };
    add("t", "old-program", "f1", 1, 0.1);
    add("u", "1", "f2", 1, 0.1);
    add("t", "new-program", "f1", 2, 0.2);
    // Another file of the recording of `u` came.
    add("v", "1", "f2", 3, 0.3);
    let fleet = fleet(&made, folder.path());
    assert_eq!(fleet.traces(), 2);
    let rank = fleet.ask("rank").unwrap();
    assert!((rank.f64(0, "share_percent").unwrap() - 25.0).abs() < 1e-9, "0.2 and 0.3, not the others");
}

/// Damaged traces of 292 years would be all of the fleet's time, and more than fits.
#[test]
fn a_broken_clock_costs_only_its_own_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::default();
    let mut good = made.trace("good", "m1");
    good.facts("x", 1);
    good.driver("a.sys", "1", 0.1);
    for trace in ["bad", "worse"] {
        let mut of = made.trace(trace, "m2");
        let ever = ["capacity_ns", "duration_ns", "busy_ns"].map(|name| (name, i64::MAX.into()));
        of.row("machine", &ever);
        of.row("recording", &[("duration_ns", i64::MAX.into()), ("captured_day", "1601-01-01".into())]);
        of.driver("b.sys", "1", 0.1);
    }
    let fleet = fleet(&made, folder.path());
    assert_eq!(fleet.traces(), 3);
    assert_eq!(compared(&fleet.ask("machine_shares").unwrap()), 0, "one machine has no peers");
    let rank = fleet.ask("rank").unwrap();
    assert_eq!(
        (rank.rows(), rank.text(0, "culprit"), rank.i64(0, "machines_able")),
        (1, Some("a.sys"), Some(1))
    );
    for view in ["machine_shares", "runs", "trend", "version_pairs"] {
        let rows = fleet.ask(view).unwrap();
        assert!((0..rows.rows() as u32).all(|row| rows.text(row, "culprit") != Some("b.sys")), "{view}");
    }
}

/// What is there twice would count twice, and a store with thousands of such rows in a few kilobytes makes joins without end.
#[test]
fn two_rows_where_a_trace_has_one_are_damage() {
    for table in ["machine", "recording"] {
        let folder = tempfile::tempdir().unwrap();
        let mut made = Made::default();
        let mut of = made.trace("t", "m");
        of.facts("x", 1);
        of.driver("a.sys", "1", 0.1);
        of.row(table, &[("duration_ns", 1i64.into())]);
        let error = fleet(&made, folder.path()).ask("rank").unwrap_err();
        assert!(error.to_string().contains("a trace has several rows"), "{table}: {error}");
    }
}

/// Rows without their order, numbers to nine digits.
fn comparable(rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut rows: Vec<String> = rows.map(|row| row.join(" | ")).collect();
    rows.sort();
    rows
}

#[test]
fn duckdb_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = planted();
    made.reading("t5-1", "m005", "again", "t5-1", 2).facts("Contoso Book 2", 12);
    let fleet = fleet(&made, folder.path());
    let Some(mut python) = script("query_store.py") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("views");
    let mut child = python
        .arg(fleet.store().path())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"").unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    let said: serde_json::Value = serde_json::from_str(&text).unwrap();
    let number = |n: f64| format!("{n:.8e}");
    let mut compared = 0;
    for view in views::all() {
        let ours = fleet.ask(view.name).unwrap();
        let theirs = &said[view.name];
        assert!(theirs["error"].is_null(), "{}: {}", view.name, theirs["error"]);
        let row = |row: u32| {
            let cell = |at: usize| match ours.cell(row, at) {
                Value::Null => "null".to_owned(),
                Value::Text(text) => format!("{text:?}"),
                Value::Bool(flag) => number(f64::from(u8::from(flag))),
                Value::I64(n) => number(n as f64),
                Value::F64(n) => number(n),
            };
            (0..ours.spec().columns.len()).map(cell).collect()
        };
        let cell = |value: &serde_json::Value| value.as_f64().map_or_else(|| value.to_string(), number);
        let theirs = theirs["rows"].as_array().unwrap();
        let theirs = comparable(theirs.iter().map(|row| row.as_array().unwrap().iter().map(cell).collect()));
        let ours = comparable((0..ours.rows() as u32).map(row));
        assert_eq!(ours, theirs, "{}", view.name);
        compared += ours.len();
    }
    println!("{compared} rows are the same in DuckDB");
    assert!(compared > 1_000);
}

#[test]
fn the_run_of_a_step_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (mut made, mut rng) = (Made::default(), Rng::new(9));
    for run in 0..20i64 {
        let mut trace = made.trace(&format!("t{run}"), "lab");
        trace.facts("Contoso Book 1", run);
        let factor = if run < 12 { 1.0 } else { 1.1 };
        trace.driver("grows.sys", "1", 0.1 * factor * (rng.normal() * 0.01).exp());
        trace.driver("quiet.sys", "1", 0.2 * (rng.normal() * 0.01).exp());
    }
    let fleet = fleet(&made, folder.path());
    let found = courses(&fleet.ask("runs").unwrap(), "driver", By::Run);
    let steps: Vec<(&str, Vec<usize>)> =
        found.iter().map(|c| (c.culprit.as_str(), c.steps.iter().map(|step| step.at).collect())).collect();
    assert_eq!(steps, [("quiet.sys", vec![]), ("grows.sys", vec![12])]);
    assert!(found[1].steps[0].ratio.unwrap().holds(1.1));
    // A day of this store is a run.
    let days = courses(&fleet.ask("trend").unwrap(), "driver", By::Day);
    assert_eq!(days[1].steps[0].at, 12);
}
