//! The scenarios of the repository are written, read by an independent reader, and compared with their truth.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etwhy_synth::{DEMO, Scenario, write};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const EVERYTHING: &str = include_str!("everything.toml");

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("etwhy-synth-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Counts of dissect.etl by type, or `None` when there is no interpreter that has it.
fn dissect(path: &Path) -> Option<BTreeMap<String, u64>> {
    let Some(python) = std::env::var_os("ETWHY_PYTHON") else {
        assert_ne!(std::env::var("ETWHY_CORPUS_REQUIRED").as_deref(), Ok("1"), "ETWHY_PYTHON is not set");
        println!("skipped: ETWHY_PYTHON is not set");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/count_records.py");
    let output = Command::new(python).arg(script).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(
        text.lines()
            .map(|l| l.rsplit_once(' ').unwrap())
            .map(|(k, n)| (k.into(), n.parse().unwrap()))
            .collect(),
    )
}

fn check(text: &str, name: &str) {
    let out = folder(name).join("out.etl");
    let scenario = Scenario::parse(text, name).unwrap();
    let report = write(&scenario, &out, &mut |_| ()).unwrap();
    assert_eq!(report.events.values().sum::<u64>(), report.records);
    assert!(report.symbol_files > 0 && report.truth.exists());
    if let Some(counted) = dissect(&out) {
        assert_eq!(counted, report.events, "{name}");
    }
    std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
}

#[test]
fn the_demo_is_read_as_written() {
    check(DEMO, "demo");
}

#[test]
fn every_kind_of_event_is_read_as_written() {
    check(EVERYTHING, "everything");
}

#[test]
fn other_machines_are_read_as_written() {
    for (name, from, to) in [
        ("compressed", "cpus = 4", "cpus = 4\ncompressed = true"),
        ("narrow", "cpus = 4", "cpus = 4\npointer_size = 4"),
        ("system_clock", "cpus = 4", "cpus = 4\nclock = 'system'"),
        ("unmerged", "cpus = 4", "cpus = 4\nmerged = false\nbuffer_size = '8KB'"),
        ("keys", "cpus = 4", "cpus = 4\nstack_style = 'keys'"),
    ] {
        check(&EVERYTHING.replacen(from, to, 1), name);
    }
}

#[test]
fn all_scenarios_of_the_repository_can_be_written() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(scenarios).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let scenario = Scenario::parse(&std::fs::read_to_string(&path).unwrap(), &name).unwrap();
        let out = folder(&name).join("out.etl");
        let report = write(&scenario, &out, &mut |_| ()).unwrap();
        assert!(report.records > 1000, "{name}");
        std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
        count += 1;
    }
    assert!(count >= 5);
}

#[test]
fn equal_seeds_give_equal_files() {
    let folder = folder("seed");
    let bytes = |text: &str, name: &str| {
        let out = folder.join(name);
        write(&Scenario::parse(text, "seed").unwrap(), &out, &mut |_| ()).unwrap();
        std::fs::read(out).unwrap()
    };
    let first = bytes(EVERYTHING, "a.etl");
    assert!(first == bytes(EVERYTHING, "b.etl"));
    assert!(first != bytes(&EVERYTHING.replacen("cpus = 4", "cpus = 4\nseed = 9", 1), "c.etl"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_scenario_grows_to_a_size() {
    let mut scenario = Scenario::parse(EVERYTHING, "size").unwrap();
    scenario.scale_to_bytes(20_000_000).unwrap();
    let out = folder("size").join("out.etl");
    let report = write(&scenario, &out, &mut |_| ()).unwrap();
    assert!((19_000_000..21_000_000).contains(&report.bytes), "{}", report.bytes);
    std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
}

#[test]
fn mistakes_name_the_line_and_what_is_allowed() {
    let error = |text: &str| Scenario::parse(text, "s.toml").unwrap_err().to_string();
    for (text, place, hint) in [
        ("[machine]\ncpu = 4\n", "s.toml:2:1", "cpus"),
        ("[machine]\ncpus = \"many\"\n", "s.toml:2:8", "u16"),
        ("[[sample]]\n", "s.toml:1:3", "samples"),
        ("[[process]]\nname = 'a.exe'\n[[samples]]\nprocess = 'b.exe'\n", "s.toml:3:1", "a.exe"),
        ("[[process]]\nname = 'a.exe'\n[[samples]]\nprocess = 'a.exe'\nthread = 'x'\n", "s.toml:3:1", "main"),
        ("[[mark]]\ntext = 'm'\nrate = { gauss = 1 }\n", "s.toml:3:8", "uniform"),
        ("[[mark]]\ntext = 'm'\nrate = 1\ncount = 2\n", "s.toml:1:1", "only one"),
        ("[[disk_io]]\nop = 'erase'\n", "s.toml:1:1", "read, write or flush"),
        ("[[event]]\ntype = 'DiskIo/Nope'\n", "s.toml:1:1", "DiskIo/Read"),
        ("[[event]]\ntype = 'DiskIo/Read'\nfields = { Size = 1 }\n", "s.toml:1:1", "TransferSize"),
        (
            "[[tracelogging]]\nprovider = 'p'\nname = 'n'\nfields = { a = { type = 'x' } }\n",
            "s.toml:1:1",
            "utf16",
        ),
        ("[[samples]]\nprocess = 'System'\nstack = 'justaname'\n", "s.toml:1:1", "module!function"),
    ] {
        let message = error(text);
        assert!(message.starts_with(place) && message.contains(hint), "{text}\n{message}");
    }
}

#[test]
fn shares_of_the_processor_are_as_asked() {
    let text = "[machine]\ncpus = 10\nduration = '10s'\n[[process]]\nname = 'a.exe'\nthreads = 4\n\
        [[process]]\nname = 'b.exe'\n[[samples]]\nprocess = 'a.exe'\ncpu_percent = 25\nstack = 'a.exe!f'\n\
        [[samples]]\nprocess = 'b.exe'\ncpu_time = '3s'\nstack = 'b.exe!g'\n";
    let out = folder("share").join("out.etl");
    write(&Scenario::parse(text, "share").unwrap(), &out, &mut |_| ()).unwrap();
    let truth = std::fs::read_to_string(out.with_extension("truth.json")).unwrap();
    let value = |key: &str| -> f64 {
        let rest = truth.split(key).nth(1).unwrap();
        rest.trim_start_matches([':', ' ']).split([',', '\n']).next().unwrap().parse().unwrap()
    };
    assert!((value("\"a.exe (1004)\"") - 25_000.0).abs() < 30.0);
    assert!((value("\"b.exe (1008)\"") - 3_000.0).abs() < 10.0);
    assert!((value("\"idle_ms\"") - 72_000.0).abs() < 50.0);
    std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
}
