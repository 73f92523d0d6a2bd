//! Are the intervals of `compare` honest? Shown by simulation on recorded runs.
//!
//! `data/*.csv` are real runs (`record.rs`) of six workloads in which nothing changed, on a virtual machine with two processors: busy
//! (builds by others, load 8) and quieter (the same with priority over them). From these, runs of both states are drawn in blocks of four
//! rounds in a row, all workloads together, so that neighbours resemble each other as they did; one state is then made slower by a
//! known factor. Drift (35 % slower at the end than at the beginning) and outliers (each twentieth value five times as large) come
//! on top. Counted are: intervals that hold the factor; runs without a difference in which any of the six series was called different
//! (false alarms, family-wise); differences that were found.
//!
//! Run with `--nocapture` to see the table that the manual shows.

use crate::support::outcome;
use etwhy_base::rng::Rng;
use etwhy_probe::compare::{OFF, ON, Verdict, files, states};
use etwhy_probe::outcome::ProbeOutcome;
use etwhy_probe::{Case, Sample};
use std::collections::BTreeMap;

const BLOCK: usize = 4;
/// Runs of both states for each row of the table; fewer where only a share of finds is counted.
const TRIALS: [usize; 2] = [250, 30];
const SHIFTS: [f64; 5] = [1.0, 1.02, 1.1, 1.5, 3.0];

/// By measure, the value of each round.
type Recorded = BTreeMap<String, Vec<f64>>;

fn recorded(text: &str) -> Recorded {
    let mut all = Recorded::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        all.entry(cells[0].to_owned()).or_default().push(cells[2].parse().unwrap());
    }
    assert!(all.len() == 6 && all.values().all(|rounds| rounds.len() == 240));
    all
}

#[derive(Clone, Copy, PartialEq)]
enum Noise {
    AsRecorded,
    Drift,
    Outliers,
}

/// Rounds in their order of time: blocks of recorded ones.
fn drawn(data: &Recorded, rounds: usize, noise: Noise, rng: &mut Rng) -> Vec<Vec<f64>> {
    let mut picked = Vec::new();
    while picked.len() < rounds {
        let from = rng.index(240 - BLOCK);
        picked.extend(from..from + BLOCK);
    }
    picked.truncate(rounds);
    let value = |at: usize, round: usize, values: &[f64], rng: &mut Rng| {
        values[round]
            * match noise {
                Noise::AsRecorded => 1.0,
                Noise::Drift => (0.3 * at as f64 / rounds as f64).exp(),
                Noise::Outliers if rng.uniform() < 0.05 => 5.0,
                Noise::Outliers => 1.0,
            }
    };
    let row = |(at, round): (usize, &usize)| data.values().map(|v| value(at, *round, v, rng)).collect();
    picked.iter().enumerate().map(row).collect()
}

fn result(data: &Recorded, state: &str, rows: &[Vec<f64>], factor: f64) -> ProbeOutcome {
    let mut samples = Vec::new();
    for (round, row) in (0..).zip(rows) {
        for (measure, value) in data.keys().zip(row) {
            samples.push(Sample {
                case: Case::new(measure.clone()),
                round,
                operations: 1,
                value: value * factor,
                unit: "ns".into(),
                ..Sample::default()
            });
        }
    }
    ProbeOutcome { probe: "recorded".into(), state: state.into(), samples, ..ProbeOutcome::default() }
}

/// Of all intervals those that hold the factor; of all runs those with an alarm; of all series those called different.
fn simulate(data: &Recorded, paired: bool, rounds: usize, noise: Noise, factor: f64) -> (f64, f64, f64) {
    let mut rng = Rng::new(17 + rounds as u64);
    let (mut held, mut all, mut alarms, mut found) = (0, 0, 0, 0);
    let names = || ["off".to_owned(), "on".to_owned()];
    let trials = TRIALS[usize::from(factor != 1.0)];
    for _ in 0..trials {
        let compared = if paired {
            let (mut off, mut on) = (Vec::new(), Vec::new());
            for (at, pair) in drawn(data, 2 * rounds, noise, &mut rng).chunks(2).enumerate() {
                // As `--ab` does it: off on, on off, off on, …
                off.push(pair[at % 2].clone());
                on.push(pair[1 - at % 2].clone());
            }
            states(&outcome(vec![result(data, OFF, &off, 1.0), result(data, ON, &on, factor)], 1), names())
        } else {
            let mut side = |started, factor| {
                let rows = drawn(data, rounds, noise, &mut rng);
                [("file".to_owned(), outcome(vec![result(data, "", &rows, factor)], started))]
            };
            files(&side(1, 1.0), &side(2, factor), names())
        }
        .unwrap();
        let different = |v: Verdict| matches!(v, Verdict::Slower | Verdict::Faster | Verdict::Small);
        alarms += usize::from(compared.differences.iter().any(|one| different(one.verdict)));
        for one in &compared.differences {
            all += 1;
            held += usize::from(one.sure().unwrap().holds(factor));
            found += usize::from(one.verdict == Verdict::Slower);
        }
    }
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    (share(held, all), share(alarms, trials), share(found, all))
}

#[test]
fn intervals_hold_the_truth_and_alarms_are_rare() {
    let sets = [
        ("busy", recorded(include_str!("../data/busy.csv"))),
        ("quieter", recorded(include_str!("../data/quieter.csv"))),
    ];
    println!(
        "machine  design     rounds  noise        coverage  false alarms  found of x1.02  x1.1  x1.5  x3"
    );
    let mut bad = Vec::new();
    for (machine, data) in &sets {
        for (design, paired) in [("--ab", true), ("two files", false)] {
            for rounds in [6, 10] {
                for (name, noise) in
                    [("recorded", Noise::AsRecorded), ("drift", Noise::Drift), ("outliers", Noise::Outliers)]
                {
                    let all = SHIFTS.map(|factor| simulate(data, paired, rounds, noise, factor));
                    // A known factor moves an interval of logarithms and its truth alike: most trials are where alarms are counted too.
                    let [(coverage, alarms, _), x2, x10, x50, x200] = all;
                    let line = format!(
                        "{machine:7}  {design:9}  {rounds:6}  {name:11}  {:7.1} %  {:10.1} %  {:12.0} %  {:3.0} %  {:3.0} %  {:3.0} %",
                        coverage * 100.0,
                        alarms * 100.0,
                        x2.2 * 100.0,
                        x10.2 * 100.0,
                        x50.2 * 100.0,
                        x200.2 * 100.0
                    );
                    println!("{line}");
                    if coverage < 0.90 || alarms > 0.07 {
                        bad.push(line);
                    }
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
