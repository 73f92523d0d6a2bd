//! What every command takes: a file in the place of a command, `-v` and `ETWHY_LOG`.

use crate::ETWHY;
use etwhy_testkit::text;
use std::path::Path;

/// Exit code, standard output, standard error.
fn etwhy(folder: &Path, log: &str, line: &str) -> (Option<i32>, String, String) {
    let mut command = ETWHY.command(&line.split(' ').collect::<Vec<_>>());
    let output = command.current_dir(folder).env("ETWHY_CACHE", "").env("ETWHY_LOG", log).output().unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A folder with a small trace `t.etl`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, said) = etwhy(folder.path(), "", "synth --demo --scale 0.02 -o t.etl --quiet");
    assert_eq!(code, Some(0), "{said}");
    folder
}

#[test]
fn a_file_in_the_place_of_a_command_is_explained() {
    let folder = folder();
    let run = |line: &str| etwhy(folder.path(), "", line);
    let plain = run("why t.etl --top 3");
    assert_eq!(run("t.etl --top 3"), plain);
    // As many characters as t.etl, so that lines break alike.
    std::fs::copy(folder.path().join("t.etl"), folder.path().join("sql")).unwrap();
    assert_eq!(run("./sql --top 3").1.replace("./sql", "t.etl"), plain.1);
    let (code, _, said) = run("sql");
    assert!(code == Some(2) && said.contains("TRACE"), "the command of that name: {said}");
    let (code, _, said) = run("missing.etl");
    assert!(code == Some(2) && said.contains("missing.etl: "), "{said}");
    std::fs::write(folder.path().join("log.evtx"), b"ElfFile\0").unwrap();
    assert_eq!(run("log.evtx"), run("evtx why log.evtx"));
    for none in ["wyh", "policy.csv", "result.json", "symbols t.etl"] {
        std::fs::write(folder.path().join("policy.csv"), "x").unwrap();
        let (code, out, said) = run(none);
        assert!(code == Some(2) && out.is_empty() && said.contains("unrecognized subcommand"), "{said}");
    }
    let (code, _, said) = run("wy x");
    assert!(code == Some(2) && said.contains("did you mean `etwhy why`?"), "{said}");
    for wrong in ["why t.etl --top abc", "why t.etl --frames -1x"] {
        let (code, _, said) = run(wrong);
        assert!(code == Some(2) && !said.contains("digit found"), "{said}");
    }
    assert!(run("why t.etl --top abc").2.contains("not a whole number"));
}

#[test]
fn what_is_done_is_said_beside_the_results() {
    let folder = folder();
    let plain = etwhy(folder.path(), "", "why t.etl --quiet");
    assert_eq!(plain.2, "");
    let stages = [
        "t.etl: opened, ",
        "input: ",
        "pass: ",
        "stacks and symbols: ",
        "derived tables: ",
        "findings: ",
        "all: ",
    ];
    for line in ["-v why t.etl --quiet", "why t.etl --quiet -v", "-v t.etl --quiet"] {
        let (code, out, said) = etwhy(folder.path(), "", line);
        assert_eq!((code, &out), (plain.0, &plain.1));
        for stage in stages {
            assert!(said.contains(stage), "{line}: {stage}: {said}");
        }
        assert!(said.lines().all(|l| l.starts_with("etwhy: [")) && !said.contains("finding "), "{said}");
    }
    for (log, line) in
        [("", "why t.etl --quiet -vv"), ("etwhy_rules=debug,etwhy_analysis=debug", "why t.etl --quiet")]
    {
        let (_, out, said) = etwhy(folder.path(), log, line);
        assert_eq!(out, plain.1);
        assert!(said.contains("finding dpc.") && said.contains("derived table "), "{said}");
        assert_eq!(said.contains("input: "), log.is_empty(), "{said}");
    }
    let (code, _, said) = etwhy(folder.path(), "etwhy=loud", "info t.etl");
    assert!(code == Some(2) && said.contains("try info, debug or"), "{said}");
}
