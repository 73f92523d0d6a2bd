//! Input that is no trace, damaged, or newer than known: one clear message, the right exit code, and everything that could be
//! read on standard output.

use crate::{ETWHY, Str as _};
use etwhy_testkit::{Run as _, text};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The demonstration trace, written once into `folder`.
fn demo(folder: &Path) -> PathBuf {
    let path = folder.join("demo.etl");
    ETWHY.demo(&path);
    path
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.str().to_owned()
}

#[test]
fn what_is_no_trace_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty.etl", b"", "empty"),
        ("notes.etl", b"These are notes and no trace at all, however long they get.\n", "text"),
        ("picture.etl", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR and so on and so on", "not an event trace"),
        ("log.evtx", b"ElfFile\0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "event log"),
        ("zeros.etl", &[0; 4096], "not an event trace"),
        ("short.etl", &[0x00, 0x00, 0x01, 0x00, 0x48, 0x00], "not an event trace"),
    ];
    for (name, bytes, hint) in cases {
        let file = write(folder.path(), name, bytes);
        let output = ETWHY.output(&["why", &file]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{name}: {message}");
        assert!(message.contains(name), "{name}: {message}");
        assert!(message.to_lowercase().contains(hint), "{name}: {message}");
        assert_eq!(message.lines().count(), 1, "{name}: {message}");
        assert!(output.stdout.is_empty());
    }
    let missing = ETWHY.output(&["info", folder.path().join("missing.etl").str()]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("missing.etl"));
}

#[test]
fn wrong_use_is_told_with_what_there_is() {
    let output = ETWHY.output(&["dump", "samples", "x.etl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("sample"), "{}", text(&output.stderr));
    assert_eq!(ETWHY.output(&["frobnicate"]).status.code(), Some(2));
    // A file in the place of a command.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let output = ETWHY.output(&[file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(&format!("`etwhy why {file}`")), "{}", text(&output.stderr));
    assert_eq!(ETWHY.output(&["why"]).status.code(), Some(2));
    assert_eq!(ETWHY.output(&["--help"]).status.code(), Some(0));
}

#[test]
fn a_cut_trace_gives_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(demo(folder.path())).unwrap();
    let records = |file: &str| -> (u64, Option<i32>, String) {
        let output = ETWHY.output(&["info", file, "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (report["records"].as_u64().unwrap_or(0), output.status.code(), text(&output.stderr))
    };
    let (all, code, _) = records(&write(folder.path(), "whole.etl", &whole));
    assert_eq!(code, Some(0));
    let mut last = 0;
    for tenth in 1..10 {
        // Not at a buffer's end.
        let cut = whole.len() * tenth / 10 + 777;
        let (n, code, message) = records(&write(folder.path(), "cut.etl", &whole[..cut]));
        assert!(n > last && n < all, "{tenth}: {n} of {all}");
        assert!(n as f64 > all as f64 * (tenth as f64 - 1.0) / 10.0 * 0.8, "{tenth}: {n} of {all}");
        assert_eq!(code, Some(1), "{message}");
        assert!(message.contains(" 1 x file_truncated"), "{message}");
        last = n;
    }
}

#[test]
fn a_form_that_is_newer_than_known_has_its_own_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(demo(folder.path())).unwrap();
    // LogFormat major version: byte 2 of the version behind buffer header, record header and BufferSize.
    let at = 0x48 + 32 + 4 + 2;
    bytes[at] = 9;
    let output = ETWHY.output(&["info", &write(folder.path(), "newer.etl", &bytes)]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("newer than this program knows"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("SampledProfile"));
}

#[test]
fn a_bomb_is_refused_with_the_option_that_allows_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut zip = Vec::new();
    {
        use std::io::Write;
        let mut encoder = zstd::Encoder::new(&mut zip, 3).unwrap();
        // What does not begin like a trace is not unpacked at all.
        encoder.write_all(&std::fs::read(demo(folder.path())).unwrap()[..4096]).unwrap();
        let piece = vec![0u8; 1 << 20];
        for _ in 0..64 {
            encoder.write_all(&piece).unwrap();
        }
        encoder.finish().unwrap();
    }
    let file = write(folder.path(), "bomb.etl.zst", &zip);
    let output = ETWHY.output(&["why", &file, "--max-unpacked", "10MB"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("--max-unpacked"), "{}", text(&output.stderr));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let trace = demo(folder.path());
    let mut child = ETWHY
        .command(&["dump", "sample", trace.str(), "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .started();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn names_from_a_trace_reach_no_terminal_unescaped() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = ETWHY.output(&["synth", "--demo", "--print"]);
    let hostile = text(&scenario.stdout).replace("build.exe", "b\\u001b[31m\\u202eld.exe");
    let file = write(folder.path(), "hostile.toml", hostile.as_bytes());
    let trace = folder.path().join("hostile.etl");
    ETWHY.synth(Path::new(&file), &trace, &[]);
    for arguments in [vec!["why"], vec!["info"], vec!["dump", "process"], vec!["dump", "image"]] {
        let mut arguments = arguments;
        arguments.push(trace.str());
        let output = ETWHY.output(&arguments);
        for stream in [text(&output.stdout), text(&output.stderr)] {
            assert!(!stream.contains('\u{1b}') && !stream.contains('\u{202e}'), "{arguments:?}");
        }
    }
}

/// What options name for names and descriptions is said if it is missing, of the wrong kind, empty, or nothing of what it should be; a trace
/// that is whole need not be copied again for that.
#[test]
fn what_options_name_in_vain_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let trace = demo(folder.path());
    let garbage = write(folder.path(), "garbage", b"neither XML nor messages\n");
    let other = write(folder.path(), "other.xml", b"<configuration><a/></configuration>");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let [empty, missing] = [empty, folder.path().join("none")].map(|path| path.str().to_owned());
    for (option, wrong) in [
        ("--symbols", vec![&missing, &garbage]),
        ("--images", vec![&missing, &garbage]),
        ("--manifests", vec![&missing, &garbage, &other, &empty]),
        ("--tmf", vec![&missing, &garbage, &empty]),
    ] {
        for path in wrong {
            let output = ETWHY.output(&["info", trace.str(), option, path]);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{option} {path}: {message}");
            assert!(message.contains("given_unusable") && message.contains(path), "{option}: {message}");
            assert!(!message.contains("copy it again"), "{option}: {message}");
        }
    }
    assert_eq!(ETWHY.output(&["info", trace.str(), "--symbols", &empty]).status.code(), Some(0));
}

/// Following says what reading says.
#[test]
fn what_is_followed_and_is_no_trace_or_is_cut_is_told() {
    let (folder, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(folder.path(), "x.etl", b"this is a text and no trace, whatever its name says");
    let (code, _, errors) = ETWHY.ran(&["follow", folder.path().str(), "--patience", "100ms"]);
    assert!(code == 3 && errors.contains("x.etl"), "{code}: {errors}");
    let bytes = std::fs::read(demo(made.path())).unwrap();
    let cut = write(made.path(), "cut.etl", &bytes[..bytes.len() / 2 + 100]);
    let (code, _, errors) = ETWHY.ran(&["follow", &cut, "--patience", "100ms"]);
    assert!(code == 1 && errors.contains("file_truncated"), "{code}: {errors}");
}

/// What makes no sense is refused with what is meant, perhaps; an empty answer would look like one about the trace.
#[test]
fn mistyped_names_and_impossible_ranges_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let trace = demo(folder.path());
    let trace = trace.str();
    let log =
        write(folder.path(), "log.evtx", b"ElfFile\0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    let missing = folder.path().join("missing.etl");
    let missing = missing.str();
    let cases: [(&[&str], i32, &str); 35] = [
        (&["dump", "proces", trace], 2, "did you mean `process`?"),
        (&["dump", "proces"], 2, "did you mean `process`?"),
        (&["dump", trace, "process", "--sort", "x"], 2, "unknown column `x` in table `process`"),
        (&["dump", trace], 2, "which table of it? `etwhy dump --list` names them"),
        (&["dump", "process"], 2, "which trace? `etwhy dump process TRACE.etl`"),
        (&["dump"], 2, "<TRACE>"),
        (&["dump"], 2, "`etwhy dump --list` names the tables"),
        (&["live"], 2, "`etwhy record --list` names the profiles"),
        (&["fleet", "rank", "processes"], 2, "`etwhy fleet run FOLDER -o STORE`"),
        (&["dump", "--demo"], 2, "which table?"),
        (&["extract", trace, "-o", "x.tables", "--only", "smple"], 2, "did you mean `sample`?"),
        (&["sql", trace, "SELECT * FROM proces"], 2, "did you mean `process`?"),
        (&["sql", "SELECT * FROM proces", trace], 2, "did you mean `process`?"),
        (&["tree", trace, "--metric", "cpuu"], 2, "did you mean `cpu`?"),
        (&["rules", "show", "dpc.overlimit"], 2, "did you mean `dpc.over-limit`?"),
        (&["follow", trace, "--until-finding", "dpc.overlimit"], 2, "did you mean `dpc.over-limit`?"),
        (&["sql", missing], 2, "missing.etl: cannot open"),
        (&["segments", missing], 2, "missing.etl: cannot open"),
        (&["diff", trace, missing], 2, "missing.etl: cannot open"),
        (&["symbols", "verify", missing], 2, "missing.etl: cannot open"),
        (&["follow", &log], 3, "an event log"),
        (&["evtx", "whyy", &log], 2, "did you mean `why`?"),
        (&["evtx", "dump", &log], 2, "`evtx` has no command `dump`, and there is no file of this name"),
        (&["probe", "compare", &log], 2, "log.evtx: no results of probes"),
        (&["dump", "sample", trace, "--from", "3s", "--to", "2s"], 2, "--to must be later than --from"),
        (&["why", trace, "--from", "3s", "--to", "2s"], 2, "--to must be later than --from"),
        (&["why", trace, "--from", "1h"], 2, "no event lies between --from and --to"),
        (&["path", trace, "--from", "1s"], 2, "--thread"),
        (&["dump", "sample", trace, "--process", "buld"], 2, "did you mean `build`?"),
        (&["dump", "event", trace, "--process", "nosuch", "--format", "csv"], 2, "no process of this trace"),
        (&["modules", trace, "--process", "nosuch"], 2, "`etwhy dump process` lists them"),
        (&["tree", trace, "--process", "buld"], 2, "did you mean `build`?"),
        (&["path", trace, "--process", "buld"], 2, "did you mean `build`?"),
        (&["path", trace, "--thread", "nosuch"], 2, "no thread of this trace matches `nosuch`"),
        (&["info", trace, "--chunk", "0"], 2, "too small"),
    ];
    for (arguments, code, said) in cases {
        let output = ETWHY.output(arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(said), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
    }
    assert_eq!(ETWHY.run(&["rules", "list"]), ETWHY.run(&["rules"]));
}
