//! The short campaign: the same mutants in every run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::Command;

/// Runs targets with as many mutants of each seed as they say.
fn short(targets: &[&str], limit: usize) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etwhy-fuzz"));
    command.args(["--short", "--limit", &limit.to_string()]);
    for target in targets {
        command.args(["--target", target]);
    }
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/findings");
    let output = command.args(["--findings", folder]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Large traces are cut to the first and last few buffers.
const LIMIT: usize = 384 * 1024;

#[test]
fn whole_passes_over_damaged_traces() {
    short(&["analyse"], LIMIT);
}

#[test]
fn what_is_not_damaged_is_read() {
    short(&["damage", "walk"], LIMIT);
}

#[test]
fn every_other_parser() {
    let others: Vec<&str> = etwhy_fuzz::targets::ALL
        .iter()
        .map(|t| t.name)
        .filter(|name| !["analyse", "damage", "walk"].contains(name))
        .collect();
    short(&others, LIMIT);
}

#[test]
fn the_corpus_is_there_if_it_must_be() {
    let corpus = etwhy_fuzz::seeds::corpus_folder();
    if corpus.is_dir() {
        return;
    }
    println!("skipped: no corpus at {}, written traces only", corpus.display());
    assert!(std::env::var("ETWHY_CORPUS_REQUIRED").map_or(true, |v| v != "1"));
}
