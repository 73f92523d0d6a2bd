//! Results do not depend on how a trace is read: threads, mapping, pieces, memory. Each case of `tests/golden` is run in all
//! ways and compared with its expected output; `BLESS=1` writes that anew.
//!
//! A case is a folder with `command` (one line of arguments; `CORPUS` stands for the folder of real traces, `DEMO` for the
//! demonstration trace) and `expected.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn corpus() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder =
        std::env::var_os("ETWHY_CORPUS").map_or_else(|| root.join("../shared/corpus"), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("ETWHY_CORPUS_REQUIRED").is_none(), "no corpus at {}", folder.display());
    println!("skipped: golden cases on real traces, no corpus at {}", folder.display());
    None
}

fn run(arguments: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_etwhy"))
        .args(arguments)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let code = output.status.code().unwrap_or(-1);
    assert!(code == 0 || code == 1, "{arguments:?}: {code}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn golden_cases_in_every_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let corpus = corpus();
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo.etl").to_str().unwrap().to_owned();
    run(&["synth".into(), "--demo".into(), "-o".into(), demo.clone(), "--quiet".into()]);
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root.join("tests/golden"))
        .unwrap()
        .map(|c| c.unwrap().path())
        .filter(|c| c.is_dir())
        .collect();
    cases.sort();
    assert!(cases.len() >= 8, "{} cases", cases.len());
    for case in cases {
        let command = std::fs::read_to_string(case.join("command")).unwrap();
        if command.contains("CORPUS") && corpus.is_none() {
            continue;
        }
        let place = corpus.as_ref().map_or(String::new(), |c| c.to_str().unwrap().to_owned());
        let arguments: Vec<String> =
            command.split_whitespace().map(|a| a.replace("CORPUS", &place).replace("DEMO", &demo)).collect();
        // Where the traces are differs from machine to machine.
        let clean = |text: String| {
            let text = text.replace(&place, "CORPUS").replace(folder.path().to_str().unwrap(), "FOLDER");
            let lines: Vec<&str> =
                text.lines().filter(|l| !l.contains("CORPUS") && !l.contains("FOLDER")).collect();
            lines.join("\n") + "\n"
        };
        let with = |more: &[&str]| {
            let mut all = arguments.clone();
            all.extend(more.iter().map(|m| (*m).to_owned()));
            clean(run(&all))
        };
        let expected = case.join("expected.txt");
        let first = with(&["--threads", "1"]);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &first).unwrap();
        }
        let wanted = std::fs::read_to_string(&expected).unwrap();
        let ways: [&[&str]; 4] = [
            &["--threads", "1"],
            &["--threads", "4"],
            &["--threads", "3", "--chunk", "100"],
            &["--memory", "1MB"],
        ];
        for way in ways {
            let got = with(way);
            assert!(got == wanted, "{} {way:?}:\n{got}\nexpected:\n{wanted}", case.display());
        }
    }
}
