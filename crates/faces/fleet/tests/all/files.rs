//! From a trace back to its files, as the ledger names them.

use etwhy_fleet::Store;
use etwhy_fleet::files::Files;
use etwhy_fleet::tables::{InputRow, RunRow};
use etwhy_table::{Memory, Strings, TableBuilder};
use std::path::Path;

/// Files of an inbox: path, what it says of itself, and the traces that were read from it.
type Given<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, &'a str)]);

/// A store whose ledger has these, a batch for each list.
fn store(folder: &Path, batches: &[&[Given<'_>]]) -> Store {
    let (store, _lock) = Store::create(&folder.join("store")).unwrap();
    for (number, given) in (1..).zip(batches) {
        let (memory, mut strings) = (Memory::default(), Strings::new());
        let (mut runs, mut inputs) =
            (TableBuilder::<RunRow>::new(&memory), TableBuilder::<InputRow>::new(&memory));
        for (path, identity, traces) in *given {
            let mut text = |text: &str| strings.intern(text);
            let path = folder.join(path).display().to_string();
            std::fs::write(&path, "12345").unwrap();
            let extract = text(&format!("reading-{}", traces[0].1));
            inputs.push(InputRow {
                trace_id: text(traces[0].1),
                machine_id: None,
                extract_id: extract,
                path: text(&path),
                size_bytes: 5,
                modified_unix_ns: 0,
                content_id: text(&path),
                identity: identity.map(&mut text),
                settings_id: text("s"),
                sha256: None,
            });
            for (member, trace) in *traces {
                runs.push(RunRow {
                    trace_id: text(trace),
                    machine_id: None,
                    extract_id: extract,
                    batch: number,
                    outcome: text("read"),
                    exit_code: Some(0),
                    reason: None,
                    path: text(&format!("{path}{member}")),
                    files: 1,
                    size_bytes: 5,
                    cpu_ns: None,
                    wall_ns: None,
                    peak_memory_bytes: None,
                    program: text("test"),
                    settings_id: text("s"),
                    sha256: None,
                });
            }
        }
        let texts = strings.freeze().unwrap();
        store.commit(number, &[runs.finish(&texts).unwrap(), inputs.finish(&texts).unwrap()], &[]).unwrap();
    }
    store
}

/// An archive with several traces is the file of none of them, and a copy in an archive is no second part of a trace.
#[test]
fn an_archive_is_the_file_of_a_trace_that_is_alone_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let early: &[Given<'_>] = &[
        ("two.zip", None, &[("!a.etl", "a"), ("!pc/b.etl", "b")]),
        ("one.zip", None, &[("!c.etl", "c")]),
        ("d.etl", Some("{}"), &[("", "d")]),
        ("d.etl.gz", None, &[("", "d")]),
        ("same.zip", None, &[("!e.etl", "e"), ("!copy.etl", "e")]),
        ("latest.zip", None, &[("!f.etl", "old")]),
    ];
    let late: &[Given<'_>] = &[("b.etl", Some("{}"), &[("", "b")]), ("latest.zip", None, &[("!f.etl", "f")])];
    let store = store(folder.path(), &[early, late]);
    let files = Files::of(&store, &[]).unwrap();
    let at = |name: &str| Ok(vec![folder.path().join(name)]);
    let why = files.of_trace("a").unwrap_err();
    assert!(why.contains("two.zip!a.etl") && why.contains("unpack"), "{why}");
    assert_eq!(files.of_trace("b"), at("b.etl"));
    assert_eq!(files.of_trace("c"), at("one.zip"));
    assert_eq!(files.of_trace("d"), at("d.etl"), "not the file and its copy");
    assert!(files.of_trace("e").is_err(), "twice in its archive");
    assert_eq!(files.of_trace("f"), at("latest.zip"));
    std::fs::remove_file(folder.path().join("d.etl")).unwrap();
    assert_eq!(files.of_trace("d"), at("d.etl.gz"));
}

/// The name of a trace becomes the name of a folder.
#[test]
fn a_trace_whose_name_is_a_path_is_damage() {
    for id in ["x/../../escaped", r"x\..\escaped", "..", "a\u{1b}[31m"] {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), &[&[("a.etl", Some("{}"), &[("", id)])]]);
        let error = Files::of(&store, &[]).unwrap_err();
        assert!(matches!(error, etwhy_fleet::FleetError::Damaged { .. }), "{id}: {error}");
    }
}
