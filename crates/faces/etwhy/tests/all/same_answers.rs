//! Results do not depend on how a trace is read: threads, mapping, pieces, memory. Each case of `tests/golden` is run in all
//! ways and compared with its expected output; `BLESS=1` writes that anew.
//!
//! A case is a folder with `command` (one line of arguments; `CORPUS` stands for the folder of real traces, `DEMO` for the
//! demonstration trace, `SCENARIO` for that of `scenarios/event_log.toml`; `COLUMNS=n` may stand in front) and
//! `expected.txt`. Queries of findings are left out of it: they stand in the files of the findings, and a change there is no other answer.

use crate::{ETWHY, Str as _};
use std::path::{Path, PathBuf};

/// Runs the program in `folder`, so that outputs do not depend on where things are.
fn run(folder: &Path, arguments: &[String]) -> String {
    let wide = arguments.first().and_then(|a| a.strip_prefix("COLUMNS="));
    let output = ETWHY
        .command(arguments.get(usize::from(wide.is_some())..).unwrap_or_default())
        .current_dir(folder)
        .env("COLUMNS", wide.unwrap_or("100"))
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let code = output.status.code().unwrap_or(-1);
    assert!(code == 0 || code == 1, "{arguments:?}: {code}\n{}", etwhy_testkit::text(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_inclusive('\n').map(without_query).collect()
}

/// The line with `…` for a query.
fn without_query(line: &str) -> &str {
    if line.trim_start().starts_with("\"sql\": \"") { "\"sql\": …\n" } else { line }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn golden_cases_in_every_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let corpus = etwhy_testkit::corpus();
    let folder = tempfile::tempdir().unwrap();
    // In folders of their own: each has symbols beside it.
    std::fs::create_dir(folder.path().join("scenario")).unwrap();
    run(folder.path(), &words("synth --demo -o demo.etl --quiet"));
    let story = root.join("scenarios/event_log.toml").canonicalize().unwrap().str().to_owned();
    let mut synth = words("synth STORY -o scenario/event_log.etl --scale 0.05 --quiet");
    synth[1] = story;
    run(folder.path(), &synth);
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root.join("tests/golden"))
        .unwrap()
        .map(|c| c.unwrap().path())
        .filter(|c| c.is_dir())
        .collect();
    cases.sort();
    assert!(cases.len() >= 8, "{} cases", cases.len());
    for case in cases {
        let command = std::fs::read_to_string(case.join("command")).unwrap();
        let place = match &corpus {
            _ if !command.contains("CORPUS/") => folder.path(),
            Some(corpus) => corpus,
            None => continue,
        };
        let command = command.replace("CORPUS/", "").replace("DEMO", "demo.etl");
        let arguments = words(&command.replace("SCENARIO", "scenario/event_log.etl"));
        let with = |more: &[&str]| {
            let mut all = arguments.clone();
            all.extend(more.iter().map(|m| (*m).to_owned()));
            run(place, &all)
        };
        let expected = case.join("expected.txt");
        let first = with(&["--threads", "1"]);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &first).unwrap();
        }
        let wanted = std::fs::read_to_string(&expected).unwrap();
        let ways: [&[&str]; 5] = [
            &["--threads", "1"],
            &["--threads", "4"],
            &["--chunk", "100"],
            &["--threads", "3", "--chunk", "4096"],
            &["--memory", "1MB"],
        ];
        for way in ways {
            let got = with(way);
            assert!(got == wanted, "{} {way:?}:\n{got}\nexpected:\n{wanted}", case.display());
        }
    }
}
