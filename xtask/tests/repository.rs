//! The repository is as its own rules want it.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

use std::process::Command;

fn passes(task: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(task).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn generated_files_are_fresh() {
    passes(&["gen", "--check"]);
}

#[test]
fn dependencies_go_one_way() {
    passes(&["layers"]);
}

#[test]
fn files_are_short_and_documents_name_what_exists() {
    passes(&["files"]);
}

#[test]
fn texts_for_readers_use_the_terms_of_the_field() {
    passes(&["words"]);
}

#[test]
fn the_page_is_built_from_its_sources() {
    passes(&["web"]);
}

#[test]
fn a_wrong_task_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("nonsense").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown task `nonsense`"));
}
