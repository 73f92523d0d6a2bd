//! The short campaign: the same mutants in every run.

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

/// Seeds that are there to be refused: what users mistake for something else, and what has nothing of what is looked for.
const REFUSED: &[(&str, &str)] = &[
    ("archive", "7z"),
    ("archive", "evtx"),
    ("counters", "binary"),
    // What they unpack to is no trace.
    ("seven-zip", "lzma"),
    ("seven-zip", "lzma2"),
    ("seven-zip", "packed contents"),
    ("chunks", "manifest [3, 1]"),
    ("chunks", "provider [3, 1]"),
    ("filter", "share<=1e-3"),
    ("filter", "share=NaN"),
    ("filter", "sort name,-pid"),
];

#[test]
fn every_seed_gets_past_the_gate() {
    let corpus = etwhy_fuzz::seeds::corpus_folder();
    let mut wrong = Vec::new();
    for target in etwhy_fuzz::targets::ALL {
        let seeds = (target.seeds)(&corpus, LIMIT);
        assert!(!seeds.is_empty() || !corpus.is_dir(), "{} has no seeds", target.name);
        // Whole passes over traces take their time, and each trace is a seed of `walk` too.
        let step = if target.name == "analyse" { 8 } else { 1 };
        for seed in seeds.iter().step_by(step) {
            // How a trace is damaged stands before it; a number that leaves it whole does not matter here.
            let data =
                if target.name == "damage" { [&[0; 8], &seed.data[..]].concat() } else { seed.data.clone() };
            let refused = REFUSED.contains(&(target.name, seed.name.as_str()));
            if etwhy_fuzz::targets::accepts(target, &data) == refused {
                wrong.push(format!("{}: {}", target.name, seed.name));
            }
        }
    }
    assert!(wrong.is_empty(), "seeds that test nothing (or are refused no more): {wrong:#?}");
}

#[test]
fn the_corpus_is_there_if_it_must_be() {
    // Without it, written traces are all that is damaged.
    etwhy_testkit::corpus();
}
