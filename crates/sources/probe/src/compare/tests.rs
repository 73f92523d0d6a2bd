use super::*;
use crate::sample::{Case, Sample};
use crate::support::outcome;
use crate::who::Suspect;
use etwhy_base::rng::Rng;

fn results(state: &str, rounds: u32, scale: f64, seed: u64) -> ProbeOutcome {
    let mut rng = Rng::new(seed);
    let mut samples = Vec::new();
    for round in 0..rounds {
        for (measure, cost) in [("list", 1_000.0), ("open", 2_000.0)] {
            let taxed = if measure == "open" { scale } else { 1.0 };
            let typical = cost * taxed * (1.0 + 0.05 * rng.normal());
            samples.push(Sample {
                case: Case::new(measure).when("first run"),
                round,
                operations: 1000,
                value: typical * 1.3,
                unit: "ns".into(),
                p50_ns: Some(typical as u64),
                cpu_ns: Some((cost * 1000.0) as u64),
                ..Sample::default()
            });
        }
    }
    ProbeOutcome {
        probe: "file-open".into(),
        state: state.into(),
        parameters: BTreeMap::from([("files".into(), "1000".into())]),
        samples,
        ..ProbeOutcome::default()
    }
}

fn names() -> [String; 2] {
    ["off".into(), "on".into()]
}

#[test]
fn states_of_one_run() {
    let mut on = results("on", 6, 850.0, 2);
    // 2 ms for each of the 6,000 opens, and none for listing.
    for sample in &mut on.samples {
        sample.others_cpu_ns = Some(if sample.case.measure == "open" { 2_000_000_000 } else { 0 });
    }
    on.suspects.push(Suspect {
        name: "clamd".into(),
        process: Some(7),
        kind: "process".into(),
        evidence: Vec::new(),
        cpu_ns: Some(12_000_000_000),
        blocked_ns: None,
        confidence: "proven".into(),
    });
    let run = outcome(vec![results("off", 6, 1.0, 1), on], 1);
    let compared = states(&run, names()).unwrap();
    let [list, open] = compared.differences.as_slice() else { panic!("{compared:?}") };
    assert_eq!((list.verdict, open.verdict), (Verdict::NotShown, Verdict::Slower));
    let ratio = open.sure().unwrap();
    assert!(ratio.holds(850.0) && ratio.low > 600.0 && ratio.high < 1_200.0, "{ratio:?}");
    assert_eq!(open.p, Some(1.0 / 32.0));
    let tax = tax::estimate(&compared, open, 10_000.0);
    assert!(tax.sentence.contains("(on) instead of "), "{}", tax.sentence);
    assert!(tax.sentence.contains("10,000 a day cost 2"), "{}", tax.sentence);
    assert!(
        ["at least 8", "at least 7", "at least 6"].iter().any(|w| tax.sentence.contains(w)),
        "{}",
        tax.sentence
    );
    // 850 times 2 us are 1.7 ms, and the mean is 1.3 times that; times 10,000 are 22.1 s. CPU: 2 ms times 10,000 are 20 s, at 3.66 W of any
    // machine 73.2 J.
    assert!((tax.day_ns.unwrap().value / 22.1e9 - 1.0).abs() < 0.1, "{tax:?}");
    assert!((tax.day_joules.unwrap()[0] / 73.2 - 1.0).abs() < 0.01, "{tax:?}");
    assert_eq!((list.others_cpu_ns, open.others_cpu_ns), ([Some(0.0); 2], [Some(0.0), Some(2_000_000.0)]));
    assert!(tax::estimate(&compared, list, 10_000.0).sentence.contains("none measurable"));
    assert!(tax::summary(&compared).contains("file-open, open, first run"));
}

#[test]
fn cpu_time_that_was_not_measured_by_operation_is_not_divided() {
    let mut on = results("on", 6, 850.0, 2);
    on.suspects.push(Suspect {
        name: "clamd".into(),
        process: Some(7),
        kind: "process".into(),
        evidence: Vec::new(),
        cpu_ns: Some(12_000_000_000),
        blocked_ns: None,
        confidence: "proven".into(),
    });
    let compared = states(&outcome(vec![results("off", 6, 1.0, 1), on], 1), names()).unwrap();
    assert!(compared.differences.iter().all(|one| one.others_cpu_ns == [None; 2]));
    let said = tax::estimate(&compared, &compared.differences[1], 10_000.0);
    assert!(said.sentence.contains("CPU time of clamd is not part of it"), "{said:?}");
    assert_eq!(said.day_joules, None);
}

#[test]
fn rare_slow_operations_are_part_of_totals() {
    // Half of all opens take 603 us at most, and the mean is 2.354 ms: 10,000 a day are 23.5 s and not 6.
    let heavy = |state: &str, p50: u64, mean: f64| {
        let mut result = results(state, 8, 1.0, 3);
        for (at, sample) in result.samples.iter_mut().enumerate() {
            let noise = 1.0 + 0.002 * (at % 5) as f64;
            sample.p50_ns = Some((p50 as f64 * noise) as u64);
            sample.value = mean * noise;
        }
        result
    };
    let run = outcome(vec![heavy("off", 2_000, 2_500.0), heavy("on", 603_000, 2_354_000.0)], 1);
    let compared = states(&run, names()).unwrap();
    let tax = tax::estimate(&compared, &compared.differences[1], 10_000.0);
    assert!((tax.day_ns.unwrap().value / 23.5e9 - 1.0).abs() < 0.01, "{tax:?}");
    assert!(tax.sentence.contains("10,000 a day cost 23."), "{tax:?}");
}

#[test]
fn five_rounds_cannot_tell() {
    let run = outcome(vec![results("off", 5, 1.0, 1), results("on", 5, 850.0, 2)], 1);
    let compared = states(&run, names()).unwrap();
    assert!(compared.differences.iter().all(|one| one.verdict == Verdict::TooFew));
    assert!(tax::estimate(&compared, &compared.differences[1], 1.0).sentence.contains("--rounds 6"));
    assert!(tax::summary(&compared).contains("Cannot tell"));
}

#[test]
fn files_and_what_speaks_against_them() {
    let before = [("a.json".to_owned(), outcome(vec![results("", 6, 1.0, 1)], 1))];
    let mut other = outcome(vec![results("", 6, 3.0, 2)], 2);
    other.version = "0.2.0".into();
    other.machine.push("cpu", Some("another".into()));
    other.probes[0].parameters.insert("files".into(), "500".into());
    let mut after = [("b.json".to_owned(), other)];
    let compared = files(&before, &after, names()).unwrap();
    let open = &compared.differences[1];
    assert_eq!((open.measure.as_str(), open.verdict, open.paired), ("open", Verdict::Slower, false));
    assert!(open.sure().unwrap().holds(3.0));
    let text = compared.warnings.join("\n");
    assert!(text.contains("versions") && text.contains("files 1000 / 500"), "{text}");
    assert!(files(&before, &before, names()).unwrap_err().contains("same run"));
    after[0].1.probes[0].probe = "other".into();
    assert!(files(&before, &after, names()).unwrap_err().contains("nothing in common"));
    assert!(states(&before[0].1, names()).is_err());
}

#[test]
fn more_can_be_better_and_zero_can_be_measured() {
    let throughput = |rate: f64, rounds: u32| -> ProbeOutcome {
        let mut result = results("", rounds, 1.0, rate as u64);
        result.samples.retain(|s| s.case.measure == "open");
        for (at, sample) in result.samples.iter_mut().enumerate() {
            sample.more_is_better = true;
            sample.unit = "1/s".into();
            sample.value = rate * (1.0 + 0.01 * at as f64);
        }
        result
    };
    let compared = files(
        &[("a".into(), outcome(vec![throughput(1000.0, 6)], 1))],
        &[("b".into(), outcome(vec![throughput(500.0, 6)], 2))],
        names(),
    )
    .unwrap();
    let one = &compared.differences[0];
    assert_eq!(one.verdict, Verdict::Slower);
    assert!((one.ratio.unwrap().value - 2.0).abs() < 0.1, "{one:?}");
    // From nothing to something there is no factor.
    let zero = files(
        &[(
            "a".into(),
            outcome(
                vec![{
                    let mut r = throughput(0.0, 6);
                    r.samples.iter_mut().for_each(|s| s.more_is_better = false);
                    r
                }],
                1,
            ),
        )],
        &[(
            "b".into(),
            outcome(
                vec![{
                    let mut r = throughput(500.0, 6);
                    r.samples.iter_mut().for_each(|s| s.more_is_better = false);
                    r
                }],
                2,
            ),
        )],
        names(),
    )
    .unwrap();
    assert_eq!((zero.differences[0].verdict, zero.differences[0].ratio), (Verdict::Slower, None));
}

#[test]
fn a_product_that_came_up_late_is_not_called_none() {
    // Of six rounds with the product the first was without it: the largest effect there is, and no test may show it.
    let mut late = results("", 6, 500.0, 2);
    let first = late.samples.iter_mut().find(|s| s.round == 0 && s.case.measure == "open").unwrap();
    first.p50_ns = Some(2_000);
    let compared = files(
        &[("a".into(), outcome(vec![results("", 6, 1.0, 1)], 1))],
        &[("b".into(), outcome(vec![late], 2))],
        names(),
    )
    .unwrap();
    let [list, open] = compared.differences.as_slice() else { panic!("{compared:?}") };
    assert_eq!((list.verdict, open.verdict), (Verdict::NotShown, Verdict::NotShown));
    let said = tax::estimate(&compared, open, 10_000.0).sentence;
    assert!(said.contains("cannot tell") && said.contains("not excluded"), "{said}");
    assert!(tax::estimate(&compared, list, 10_000.0).sentence.contains("none measurable"));
    let summary = tax::summary(&compared);
    assert!(summary.starts_with("Cannot tell: no tax was shown"), "{summary}");
}
