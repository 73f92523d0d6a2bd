//! The scenarios of the repository are written, read by an independent reader, and compared with their truth.

use crate::EVERYTHING;
use etwhy_synth::{DEMO, Scenario, write};
use etwhy_testkit::{dissected, scenarios};
use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("etwhy-synth-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn check(text: &str, name: &str) {
    let out = folder(name).join("out.etl");
    let scenario = Scenario::parse(text, name).unwrap();
    let report = write(&scenario, &out, &mut |_| ()).unwrap();
    assert_eq!(report.events.values().sum::<u64>(), report.records);
    assert!(report.symbol_files > 0 && report.truth.exists());
    if let Some(counted) = dissected(&out, &[]) {
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

/// Writing fails when a scenario does not hold its own truth, at whatever scale.
#[test]
fn shipped_scenarios_hold_their_truth_at_every_scale() {
    let files = scenarios(&["scenarios", "scenarios/tables"]);
    assert!(files.len() >= 30, "{}", files.len());
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let table = path.parent().unwrap().ends_with("tables");
        for scale in if table { [0.5, 1.0] } else { [0.01, 0.05] } {
            let mut scenario = Scenario::parse(&text, &path.display().to_string()).unwrap();
            scenario.scale(scale).unwrap();
            let out = folder(&name).join("out.etl");
            let report = write(&scenario, &out, &mut |_| ()).unwrap();
            assert!(report.records > 300, "{name}: {} records", report.records);
            std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
        }
    }
}

/// What the truth section states stands in the truth file, scaled; a story that cannot hold it is refused.
#[test]
fn stated_truth_is_written_and_checked() {
    let text = include_str!("../../../../../scenarios/dpc_flood.toml");
    let mut scenario = Scenario::parse(text, "flood").unwrap();
    scenario.scale(0.01).unwrap();
    let out = folder("stated").join("out.etl");
    write(&scenario, &out, &mut |_| ()).unwrap();
    let truth = std::fs::read_to_string(out.with_extension("truth.json")).unwrap();
    let stated = truth.split("\"stated\"").nth(1).unwrap();
    assert!(stated.contains("\"count\": 1632"), "163,230 / 100");
    assert!(stated.contains("\"count\": 1230"), "123,000 / 100");
    let wrong = text.replacen("count = 163230\ntotal_ms", "count = 163231\ntotal_ms", 1);
    let error = write(&Scenario::parse(&wrong, "flood").unwrap(), &out, &mut |_| ()).unwrap_err().to_string();
    assert!(error.starts_with("flood:24:9") && error.contains("163231"), "{error}");
    std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
}

#[test]
fn buffers_can_be_left_out() {
    let out = folder("dropped").join("out.etl");
    let report = write(&Scenario::parse(EVERYTHING, "dropped").unwrap(), &out, &mut |_| ()).unwrap();
    let dropped = etwhy_synth::drop_buffers(&out, 0.3, 1).unwrap();
    assert_eq!(dropped.of + 1, report.buffers);
    assert!((0.1..0.5).contains(&(dropped.buffers as f64 / dropped.of as f64)), "{dropped:?}");
    assert!(std::fs::metadata(&out).unwrap().len() < report.bytes);
    if let Some(counted) = dissected(&out, &[]) {
        assert!(counted.values().sum::<u64>() < report.records);
    }
    std::fs::remove_dir_all(out.parent().unwrap()).unwrap();
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

/// What writing a scenario says.
fn refused(name: &str, text: &str) -> Option<String> {
    let folder = folder(name);
    let text = format!("[machine]\ncpus = 2\nduration = \"1s\"\n{text}");
    let written =
        Scenario::parse(&text, "test.toml").map_err(|error| error.to_string()).and_then(|scenario| {
            write(&scenario, &folder.join("out.etl"), &mut |_| ()).map_err(|error| error.to_string())
        });
    std::fs::remove_dir_all(folder).unwrap();
    written.err()
}

#[test]
fn offsets_behind_an_image_are_refused() {
    let image = "[[image]]\nname = \"a.exe\"\nsize = 0x10000\nfunctions = [{ name = \"Scan\", rva = 0x5000, size = 0x400 }]\n";
    let sampled = |frame: &str| {
        format!("[[process]]\nname = \"a.exe\"\n[[samples]]\nprocess = \"a.exe\"\nstack = \"{frame}\"\n")
    };
    for (frame, wrong) in [
        ("a.exe+0xffff", None),
        ("a.exe+0x10000", Some("image a.exe: size 0x10000 is too small, a frame names offset 0x10000")),
        ("a.exe!Scan+0xafff", None),
        ("a.exe!Scan+0xb000", Some("frame a.exe!Scan+0xb000 lies behind its image, which has 0x10000 bytes")),
    ] {
        let said = refused("offsets", &format!("{image}{}", sampled(frame)));
        assert_eq!(said.is_some(), wrong.is_some(), "{frame}: {said:?}");
        assert!(said.unwrap_or_default().contains(wrong.unwrap_or_default()), "{frame}");
        // Without a given size the image is as large as it must be.
        let free = refused("offsets", &sampled(frame));
        assert!(free.is_none() || frame.contains('!'), "{frame}: {free:?}");
    }
}

#[test]
fn thread_ids_that_collide_are_refused() {
    let two = |first: &str, second: &str| {
        format!(
            "[[process]]\nname = \"a.exe\"\nthreads = [{{ name = \"x\", tid = 100 }}]\n{first}\n\
             [[process]]\nname = \"b.exe\"\nthreads = [{{ name = \"y\", tid = 100 }}]\n{second}\n\
             [[samples]]\nprocess = \"a.exe\"\nstack = \"a.exe!Main\"\n"
        )
    };
    let said = refused("threads", &two("", "")).unwrap();
    assert!(said.contains("tid 100: threads x and y have it at the same time"), "{said}");
    assert_eq!(refused("threads", &two("end = \"400ms\"", "start = \"500ms\"")), None);
    // Ids that are given out stay clear of those that are given.
    let threads = "threads = [{ name = \"x\", tid = 5004 }, { name = \"y\" }]";
    assert_eq!(
        refused(
            "threads",
            &format!(
                "[[process]]\nname = \"a.exe\"\n{threads}\n[[samples]]\nprocess = \"a.exe\"\nstack = \"a.exe!Main\"\n"
            )
        ),
        None
    );
}
