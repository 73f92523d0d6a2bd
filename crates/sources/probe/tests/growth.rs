//! Known truths: what is quadratic is said to grow, what is linear is not.
//!
//! A process of its own: it measures how times grow.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use etwhy_probe::probe::{EVERYWHERE, Grows};
use etwhy_probe::{Case, Probe, ProbeError, Run, Sample};
use etwhy_stats::growth::{Form, Growth, Point, Verdict, fit};
use support::probe;

fn run(probe: &'static Probe, set: &[(&str, &str)]) -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    support::made(probe, &support::options(folder.path(), set)).samples
}

/// The law of a kind of samples. A busy machine spoils wall time, so CPU time is asked; Windows counts that in ticks that are longer
/// than a sample, so there the median of single operations must do.
fn law(samples: &[Sample], variant: &str) -> Growth {
    let cost = |s: &Sample| match (s.cpu_ns, s.p50_ns) {
        (Some(cpu), _) if cfg!(unix) => cpu as f64 / s.operations.max(1) as f64,
        (_, Some(p50)) => p50 as f64,
        _ => s.value,
    };
    let points: Vec<Point> = samples
        .iter()
        .filter(|s| s.case.variant == variant)
        .map(|s| Point { n: s.case.n.unwrap(), cost: cost(s), weight: s.operations as f64, time: None })
        .collect();
    assert!(points.len() >= etwhy_stats::growth::MIN_POINTS, "{} points", points.len());
    let growth = fit(&points, Form::PerCall);
    println!("{variant}: {} points, {:?}, exponent {:?}", points.len(), growth.verdict, growth.exponent);
    growth
}

/// Turns of a loop of which each takes about a nanosecond.
fn burn(turns: u64) {
    let mut x = 1_u64;
    for i in 0..turns {
        x = std::hint::black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i);
    }
}

/// The n-th call costs what `turns` says.
fn curve(run: &mut Run<'_>, variant: &str, turns: impl Fn(u64) -> u64) -> Result<(), ProbeError> {
    const CALLS: u64 = 4000;
    const STEP: u64 = CALLS / 40;
    for step in 0..40 {
        let first = step * STEP;
        let middle = (first + STEP / 2) as f64;
        run.measure(Case::new("call").when(variant).at(middle), |run, laps| {
            for n in first..first + STEP {
                run.goes_on()?;
                let start = std::time::Instant::now();
                burn(turns(n));
                laps.push(etwhy_probe::clock::nanos(start));
            }
            Ok((STEP, 0))
        })?;
    }
    Ok(())
}

static SYNTHETIC: Probe = Probe {
    name: "synthetic",
    about: "",
    manual: "",
    systems: EVERYWHERE,
    parameters: &[],
    grows: Grows::PerCall,
    n_is: "calls",
    contrasts: &[],
    run: |run| {
        curve(run, "quadratic", |n| 2000 + 20 * n)?;
        curve(run, "linear", |_| 20_000)
    },
    child: None,
    conclude: |_| Vec::new(),
};

#[test]
fn synthetic_laws_come_out() {
    let as_made = || {
        let samples = run(&SYNTHETIC, &[]);
        let (quadratic, linear) = (law(&samples, "quadratic"), law(&samples, "linear"));
        // The n-th call costs n: all together cost the square.
        quadratic.verdict == Verdict::SuperLinear
            && quadratic.exponent.is_some_and(|p| p.low < 1.1 && p.high > 0.9)
            && matches!(linear.verdict, Verdict::Constant | Verdict::Slight)
    };
    assert!(once(as_made));
}

/// Whether `holds` is true of one of a few measurements. Within a round n and time are the same, so that a machine which gets busier
/// looks like growth once in a while; what truly grows does so each time, and what does not is flat as soon as the machine is calm.
fn once(holds: impl Fn() -> bool) -> bool {
    (0..5).any(|_| holds())
}

#[test]
fn searching_for_a_name_grows() {
    let grows = || {
        let samples = run(probe("name-search"), &[("files", "800")]);
        law(&samples, "").verdict == Verdict::SuperLinear
    };
    assert!(once(grows));
}

#[test]
fn searching_for_an_address_grows_and_the_systems_choice_does_not() {
    let set = [("calls", "20000"), ("searched", "1500"), ("variants", "reserve,search")];
    let only_the_search_grows = || {
        let samples = run(probe("virtual-alloc"), &set);
        let search = law(&samples, "the program searches");
        let system = law(&samples, "the system places");
        search.verdict == Verdict::SuperLinear
            && system.verdict != Verdict::SuperLinear
            && system.factor() < search.factor() / 5.0
    };
    assert!(once(only_the_search_grows));
}
