//! Symbols that come later: an extract made without any, named by `etwhy symbols apply`, says what a pass with symbols says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    // What one run has read must not name anything in the next.
    Command::new(env!("CARGO_BIN_EXE_etwhy")).args(arguments).env("ETWHY_CACHE", "").output().unwrap()
}

fn etwhy(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn ask(input: &str, query: &str, options: &[&str]) -> Vec<Value> {
    let json = etwhy(&[&["sql", input, query, "--format", "json", "--quiet"], options].concat());
    match serde_json::from_str(&json).unwrap() {
        Value::Array(rows) => rows,
        other => other["rows"].as_array().unwrap().clone(),
    }
}

/// What must be the same: names, sums by name, stacks by name. Numbers of frames may differ.
const QUESTIONS: [&str; 7] = [
    "SELECT module, function, file, line, symbol_source, inlined, count(*) AS n FROM frame \
     GROUP BY module, function, file, line, symbol_source, inlined ORDER BY 1, 2, 3, 4, 5, 6",
    "SELECT class, module, function, inclusive_ns, exclusive_ns, samples FROM function_cost \
     ORDER BY class, module, function, inclusive_ns, exclusive_ns",
    "SELECT class, category, tag, inclusive_ns, exclusive_ns FROM tag_cost ORDER BY 1, 2, 3, 4, 5",
    "SELECT stack_id, depth, kernel_depth, leaf, root, tag FROM stack ORDER BY stack_id",
    "SELECT s.stack_id, s.position, f.label FROM stack_frame s JOIN frame f ON f.frame_id = s.frame_id ORDER BY 1, 2",
    "SELECT kind, routine, module, count(*) AS n, sum(exclusive_ns) AS ns FROM dpc GROUP BY kind, routine, module ORDER BY 1, 2, 3",
    "SELECT start_function, count(*) AS n FROM thread GROUP BY start_function ORDER BY 1",
];

fn check(trace: &Path, symbols: &Path, folder: &Path) -> String {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (bare, later, direct) = (path("bare"), path("later"), path("direct"));
    let (trace, symbols) = (trace.to_str().unwrap(), symbols.to_str().unwrap());
    etwhy(&["extract", trace, "-o", &bare, "--quiet"]);
    etwhy(&["extract", trace, "-o", &direct, "--quiet", "--symbols", symbols]);
    let output = run(&["symbols", "apply", &bare, "-o", &later, "--symbols", symbols]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    for question in QUESTIONS {
        let (a, b) = (ask(&direct, question, &[]), ask(&later, question, &[]));
        let first = a.iter().zip(&b).find(|(a, b)| a != b);
        assert_eq!((a.len(), first), (b.len(), None), "{question}");
        assert!(!a.is_empty() || question.contains("FROM dpc"), "{question}");
    }
    // In place, the same.
    etwhy(&["symbols", "apply", &bare, "--symbols", symbols]);
    assert_eq!(ask(&bare, QUESTIONS[1], &[]), ask(&later, QUESTIONS[1], &[]));
    said
}

#[test]
fn a_story_named_later_is_the_story() {
    let folder = tempfile::tempdir().unwrap();
    let story = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/syscall_hook.toml");
    let trace = folder.path().join("story.etl");
    etwhy(&["synth", story.to_str().unwrap(), "-o", trace.to_str().unwrap(), "--scale", "0.02", "--quiet"]);
    // Symbols beside the trace would be used by themselves.
    let away = folder.path().join("away");
    std::fs::rename(folder.path().join("symbols"), &away).unwrap();
    let said = check(&trace, &away, folder.path());
    assert!(said.contains("places without a name have one now"), "{said}");
}

#[test]
fn a_real_trace_named_later_is_the_same() {
    let set = std::env::var_os("ETWHY_CORPUS").map(PathBuf::from);
    let corpus =
        set.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"));
    let trace = corpus.join("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl");
    if !trace.is_file() {
        assert!(set.is_none(), "no corpus at {}", corpus.display());
        println!("skipped: a real trace named later, there is no corpus (ETWHY_CORPUS)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("trace.etl");
    std::fs::copy(&trace, &copy).unwrap();
    check(&copy, &corpus.join("etl/microsoft+perfview/symbols"), folder.path());
}

#[test]
fn a_trace_is_no_extract() {
    let output = run(&["symbols", "apply", "/nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no extract"));
}
