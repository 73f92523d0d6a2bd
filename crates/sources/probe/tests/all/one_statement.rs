//! One statement is one number, whichever probe it is of and wherever it is shown.
//!
//! Each probe runs once with its smallest numbers, so that its kinds of samples are those of the program. From these runs of both states are
//! made, with tails as heavy as those of scanners, and compared as states and as files. Then everything that is shown must agree: typical values
//! with their ratio, the ratio with its interval, the interval with verdict and p, totals with the sum of samples, sentences with
//! tables, and text with page and rows.

use crate::support::{options, outcome, tried};
use etwhy_base::rng::Rng;
use etwhy_doc::{Line, Span, terminal::Terminal};
use etwhy_probe::compare::{ALPHA, Comparison, OFF, ON, Verdict, contrasts, files, states, tax};
use etwhy_probe::outcome::ProbeOutcome;
use etwhy_probe::probe::Kind;
use etwhy_probe::probes::ALL;
use etwhy_probe::show::{compared, operations, page, results};
use etwhy_probe::{Probe, Sample, amount, summary, tables};
use etwhy_table::Memory;
use std::collections::BTreeSet;

const N: f64 = 10_000.0;

/// What a probe measures with its smallest numbers; nothing if it cannot run here.
fn base(probe: &'static Probe) -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    let mut set: Vec<(&str, String)> = Vec::new();
    for parameter in probe.parameters {
        if let Kind::Number { min, quick, .. } = parameter.kind {
            let small = if parameter.name == "threads" { 2 } else { min.max(quick / 20).min(quick.max(min)) };
            set.push((parameter.name, small.to_string()));
        }
    }
    let set: Vec<(&str, &str)> = set.iter().map(|(name, value)| (*name, value.as_str())).collect();
    tried(probe, &options(folder.path(), &set)).samples
}

/// Rounds of one state: each value with noise, some operations much slower.
fn rounds(probe: &str, base: &[Sample], state: &str, factor: f64, rng: &mut Rng) -> ProbeOutcome {
    let mut samples = Vec::new();
    for round in 0..7 {
        for sample in base {
            let noise = (0.05 * rng.normal()).exp() * factor;
            let tail = if rng.uniform() < 0.3 { 1.0 + 20.0 * rng.uniform() } else { 1.2 };
            let times = |ns: Option<u64>, by: f64| ns.map(|ns| (ns as f64 * by).ceil() as u64);
            samples.push(Sample {
                round,
                value: sample.value * noise * if sample.p50_ns.is_some() { tail } else { 1.0 },
                p50_ns: times(sample.p50_ns, noise),
                p99_ns: times(sample.p99_ns, noise * tail),
                cpu_ns: times(sample.cpu_ns, noise),
                ..sample.clone()
            });
        }
    }
    ProbeOutcome { probe: probe.into(), state: state.into(), samples, ..ProbeOutcome::default() }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Operations and what they took together, of one kind in these results.
fn sums(result: &ProbeOutcome, measure: &str, variant: &str, n: Option<f64>) -> (f64, f64) {
    let of_kind = |s: &&Sample| {
        s.case.measure == measure && s.case.variant == variant && (n.is_none() || s.case.n == n)
    };
    result.samples.iter().filter(of_kind).fold((0.0, 0.0), |(count, sum), s| {
        let operations = s.operations.max(1) as f64;
        (count + operations, sum + s.value * operations)
    })
}

fn check(comparison: &Comparison, sides: [&ProbeOutcome; 2]) {
    for one in &comparison.differences {
        let said = format!("{}: {}: {one:?}", one.probe, one.title());
        let different = matches!(one.verdict, Verdict::Slower | Verdict::Faster | Verdict::Small);
        let [before, after] = one.typical;
        let (interval, none) = match one.ratio {
            Some(ratio) => {
                assert!(
                    near(ratio.value, if one.more_is_better { before / after } else { after / before }),
                    "{said}"
                );
                (ratio, 1.0)
            }
            None => (one.difference.unwrap(), 0.0),
        };
        assert!(interval.low <= interval.value && interval.value <= interval.high, "{said}");
        assert_eq!(different, !interval.holds(none), "{said}");
        assert_eq!(different, !one.difference.unwrap().holds(0.0), "{said}");
        assert!(near(one.difference.unwrap().value, after - before), "{said}");
        if let Some(p) = one.p {
            assert_eq!(different, p <= ALPHA, "{said}");
        }
        // Totals are the sums of samples.
        let totals = sides.map(|side| sums(side, &one.measure, &one.variant, one.n));
        for ((operations, sum), mean) in totals.into_iter().zip(one.mean) {
            assert!(near(sum, mean * operations), "{said}: {sum} {operations}");
        }
        let more = one.mean_more.unwrap();
        assert!(near(more.value, one.mean[1] - one.mean[0]) && more.holds(more.value), "{said}");
        let cost = tax::estimate(comparison, one, N);
        if let Some(day) = cost.day_ns {
            let [(old, old_sum), (new, new_sum)] = totals;
            assert!(day.holds((new_sum / new - old_sum / old) * N), "{said}: {cost:?}");
        }
    }
}

/// Numbers before ` times` in a text.
fn factors(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let before =
        |pair: &[&str]| pair[1].starts_with("times").then(|| pair[0].trim_start_matches('(').to_owned());
    let all: Vec<String> = words.windows(2).filter_map(before).collect();
    all.into_iter().filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).collect()
}

/// Times of a text, such as `1.80 ms`.
fn times(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let unit = |word: &str| word.trim_end_matches([',', '.', ';', ':', ')']).to_owned();
    let time = |pair: &[&str]| {
        let number = pair[0].trim_start_matches('(');
        let is_time = ["ns", "us", "µs", "ms", "s"].contains(&unit(pair[1]).as_str());
        (is_time && number.starts_with(|c: char| c.is_ascii_digit() || c == '<'))
            .then(|| format!("{number} {}", unit(pair[1])))
    };
    words.windows(2).filter_map(time).collect()
}

/// Sentences of a probe: no ratio of their own, and no time that the figures of the tables do not have.
fn sentences(probe: &Probe, result: &ProbeOutcome) {
    let all = summary::of_probe(result);
    let rounds = 7.0;
    let mut known = BTreeSet::new();
    for one in &all {
        let each = one.operations as f64 / one.samples.max(1) as f64;
        let figures = [
            Some(one.median),
            Some(one.mean),
            one.p50_ns,
            one.p95_ns,
            one.p99_ns,
            Some(one.mean * each),
            Some(one.median * 52.0 / 4.0),
        ];
        known.extend(figures.into_iter().flatten().map(amount::time));
        // Kinds that have a time in their name.
        known.extend(times(&one.key.measure).into_iter().chain(times(&one.key.variant)));
        // All of one kind together, of a round.
        let of_kind = result
            .samples
            .iter()
            .filter(|s| s.case.measure == one.key.measure && s.case.variant == one.key.variant);
        known.insert(amount::time(of_kind.map(|s| s.wall_ns as f64).sum::<f64>() / rounds));
    }
    for sentence in (probe.conclude)(&result.samples) {
        assert_eq!(factors(&sentence), Vec::<String>::new(), "{}: {sentence}", probe.name);
        assert!(!sentence.contains("()") && !sentence.contains("  "), "{}: {sentence}", probe.name);
        for time in times(&sentence) {
            assert!(known.contains(&time), "{}: {time} is in no table: {sentence}\n{known:?}", probe.name);
        }
    }
    let tables = operations(result, true);
    for cell in tables.iter().flat_map(|table| table.rows.iter().flatten()).map(plain) {
        assert!(
            !cell.contains("()") && !cell.contains("e-") && !cell.contains(".0)"),
            "{}: {cell}",
            probe.name
        );
    }
    // What contrasts say is what the table says, with the ratio of these two figures.
    for one in contrasts(result) {
        let d = &one.difference;
        assert_eq!(
            matches!(d.verdict, Verdict::NotShown),
            d.sure().is_some_and(|s| s.holds(1.0))
                || d.ratio.is_none() && d.difference.is_some_and(|d| d.holds(0.0))
        );
        for typical in d.typical {
            assert!(all.iter().any(|series| near(series.median, typical)), "{}: {one:?}", probe.name);
        }
    }
}

#[test]
fn every_probe_says_one_number_for_one_statement_everywhere() {
    let mut rng = Rng::new(2);
    let mut seen = 0;
    for probe in ALL.iter().copied().filter(|probe| probe.runs_here()) {
        let base = base(probe);
        if base.is_empty() {
            etwhy_testkit::skipped(&format!("{} cannot run here", probe.name));
            continue;
        }
        seen += 1;
        let factor = [1.0, 3.0, 0.4][seen % 3];
        let off = rounds(probe.name, &base, OFF, 1.0, &mut rng);
        let on = rounds(probe.name, &base, ON, factor, &mut rng);
        sentences(probe, &off);
        let alone = |result: &ProbeOutcome, started| {
            let result = ProbeOutcome { state: String::new(), ..result.clone() };
            [("file".to_owned(), outcome(vec![result], started))]
        };
        let run = outcome(vec![off.clone(), on.clone()], 1);
        let names = || ["off".to_owned(), "on".to_owned()];
        let pairs = states(&run, names()).unwrap();
        let two = files(&alone(&off, 1), &alone(&on, 2), names()).unwrap();
        for comparison in [&pairs, &two] {
            check(comparison, [&off, &on]);
            shown_alike(comparison, &run);
        }
        // The report of the same file: factors are those of contrasts and laws, and nothing is empty or in powers of ten.
        let report = Terminal::plain(160).render(&results::document(&run, None, true));
        assert!(!report.contains("()") && !report.contains("(10.0)"), "{report}");
    }
    assert!(seen >= 8, "{seen} probes ran");
}

/// The words of a cell.
fn plain(line: &Line) -> String {
    let [Span::Text(text) | Span::Mark(_, text)] = line.0.as_slice() else { panic!("{line:?}") };
    text.clone()
}

/// Text, page and rows of one comparison.
fn shown_alike(comparison: &Comparison, run: &etwhy_probe::Outcome) {
    let shown = Terminal::plain(200).render(&compared::text(comparison, N, true));
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let html = page::comparison(comparison, run, N, true);
    let mut known = BTreeSet::new();
    for one in &comparison.differences {
        if let Some(ratio) = one.ratio {
            known.extend(
                [ratio.value, ratio.low, ratio.high].map(|r| amount::factor(r).replace(" times", "")),
            );
            assert!(html.contains(&*etwhy_doc::escape_markup(&amount::ratio(&ratio))), "{one:?}");
        }
    }
    for (at, one) in comparison.differences.iter().take(60).enumerate() {
        let row = &compared::table(comparison).rows[at];
        assert_eq!(plain(&row[4]), one.verdict.text());
        assert_eq!(
            plain(&row[3]),
            one.ratio.map_or_else(
                || amount::difference(&one.difference.unwrap(), &one.unit),
                |r| amount::ratio(&r)
            )
        );
    }
    let sentences = compared::taxes(comparison, N).join(" ") + &tax::summary(comparison);
    for factor in factors(&sentences).into_iter().chain(factors(&shown)) {
        // `5 times below ten rounds` is of the method.
        assert!(
            known.contains(&factor) || factor == "5" || factor == "2.5",
            "{factor}: {sentences}\n{shown}"
        );
    }
    for sentence in compared::taxes(comparison, N) {
        assert!(html.contains(&*etwhy_doc::escape_markup(&sentence)), "{sentence}");
    }
    let db = tables::database(&[], Some(comparison), None, &Memory::with_budget(1 << 26, None)).unwrap();
    let table = db.get("probe_difference").unwrap();
    assert_eq!(table.rows(), comparison.differences.len());
}
