//! How often the method of growth laws is right, by simulation: false alarms for laws that are ordinary, power for those that are
//! not. The figures are printed (`--nocapture`) and asserted with a margin.

use etwhy_base::rng::Rng;
use etwhy_stats::growth::{Form, Law, Point, Verdict, compare, fit};

/// A kind of data.
#[derive(Clone, Copy)]
struct Case {
    law: Law,
    /// Offset, as a multiple of the law's term at half of the largest n.
    offset: f64,
    points: usize,
    range: f64,
    /// Standard deviation of log cost.
    sigma: f64,
    /// Share of points that cost 5 to 50 times as much.
    outliers: f64,
    /// The cost also grows with time, by this factor, n being independent of time.
    drift: f64,
    /// Lag-1 autocorrelation of the noise.
    dependence: f64,
}

const PLAIN: Case = Case {
    law: Law::Linear,
    offset: 0.0,
    points: 50,
    range: 32.0,
    sigma: 0.3,
    outliers: 0.0,
    drift: 1.0,
    dependence: 0.0,
};

/// n is the number of the call; calls come at a steady pace or each as soon as the last one is done.
fn calls(case: &Case, rng: &mut Rng, even: bool) -> Vec<Point> {
    let low = 1000.0 / case.range;
    let n = |i: usize| low + (1000.0 - low) * (i as f64 + 0.5) / case.points as f64;
    data(case, rng, (0..case.points).map(n).collect(), |cost, time| time + if even { 1.0 } else { cost })
}

/// n is a size, in no order, evenly over its logarithm.
fn sizes(case: &Case, rng: &mut Rng) -> Vec<Point> {
    let n = |rng: &mut Rng| 1e6 / case.range * case.range.powf(rng.uniform());
    let mut all: Vec<f64> = (0..case.points).map(|_| n(rng)).collect();
    // The range is that of the case.
    all[0] = 1e6;
    all[1] = 1e6 / case.range;
    data(case, rng, all, |_, time| time + 1.0)
}

fn data(case: &Case, rng: &mut Rng, ns: Vec<f64>, next: impl Fn(f64, f64) -> f64) -> Vec<Point> {
    let top = ns.iter().copied().fold(0.0, f64::max);
    let middle = case.law.f(top / 2.0).max(1e-9);
    let (mut time, mut noise, count) = (0.0, rng.normal(), ns.len() as f64);
    let fresh = (1.0 - case.dependence * case.dependence).sqrt();
    ns.into_iter()
        .enumerate()
        .map(|(i, n)| {
            noise = case.dependence * noise + fresh * rng.normal();
            let base = if case.law == Law::Constant { 1.0 } else { case.offset + case.law.f(n) / middle };
            let mut cost = base * (case.sigma * noise).exp() * case.drift.powf(i as f64 / count);
            if rng.uniform() < case.outliers {
                cost *= 5.0 * 10f64.powf(rng.uniform());
            }
            time = next(base, time);
            Point { n, cost, weight: 1.0, time: Some(time) }
        })
        .collect()
}

const RUNS: usize = 100;

/// Share of runs in which it is called super-linear.
fn share(case: &Case, form: Form, even: bool) -> f64 {
    let mut rng = Rng::new(977);
    let made = |rng: &mut Rng| match form {
        Form::PerCall => calls(case, rng, even),
        Form::Total => sizes(case, rng),
    };
    let hits = (0..RUNS).filter(|_| compare(&made(&mut rng), form).verdict == Verdict::SuperLinear).count();
    hits as f64 / RUNS as f64
}

fn row(name: &str, case: &Case, share: f64) {
    println!(
        "{name:30} {:8} offset {:<4} N {:<3} range {:<4} sigma {:<4} outliers {:.0} % dependence {:.1}: {:5.1} %",
        case.law.name(),
        case.offset,
        case.points,
        case.range,
        case.sigma,
        case.outliers * 100.0,
        case.dependence,
        share * 100.0
    );
}

/// Shapes of data: few and close points, more, noisy, outliers, dependent noise.
fn shapes() -> Vec<Case> {
    vec![
        Case { points: 20, range: 8.0, ..PLAIN },
        PLAIN,
        Case { sigma: 0.6, ..PLAIN },
        Case { points: 64, range: 64.0, sigma: 0.6, outliers: 0.05, ..PLAIN },
        Case { outliers: 0.05, ..PLAIN },
        Case { points: 20, range: 8.0, outliers: 0.05, ..PLAIN },
        Case { points: 64, dependence: 0.5, ..PLAIN },
        Case { points: 64, dependence: 0.8, ..PLAIN },
    ]
}

#[test]
fn ordinary_costs_of_calls_are_no_alarm() {
    let mut worst = 0.0_f64;
    for shape in shapes() {
        for (law, even) in
            [(Law::Constant, true), (Law::Log, true), (Law::Constant, false), (Law::Log, false)]
        {
            let case = Case { law, ..shape };
            let share = share(&case, Form::PerCall, even);
            row(if even { "per call, steady pace" } else { "per call, back to back" }, &case, share);
            worst = worst.max(share);
        }
    }
    assert!(worst <= 0.02, "{worst}");
}

#[test]
fn costs_that_drift_with_time_are_no_growth_with_calls() {
    for (law, drift) in [(Law::Constant, 2.0), (Law::Constant, 5.0), (Law::Constant, 20.0), (Law::Log, 3.0)] {
        for shape in shapes() {
            let case = Case { law, drift, ..shape };
            let share = share(&case, Form::PerCall, true);
            row(&format!("per call, drift to {drift}x"), &case, share);
            assert!(share <= 0.05, "{share}");
        }
    }
}

#[test]
fn growing_costs_of_calls_are_found() {
    // A rise behind a large offset looks like a drift with time, unless costs scatter little: points are bins of many calls.
    for (law, offset, sigma, least) in [
        (Law::Linear, 0.0, 0.15, 0.85),
        (Law::Linear, 0.25, 0.15, 0.85),
        (Law::Linear, 1.0, 0.03, 0.85),
        (Law::Square, 0.0, 0.15, 0.9),
        (Law::Square, 1.0, 0.03, 0.8),
    ] {
        for case in [PLAIN, Case { outliers: 0.05, ..PLAIN }, Case { points: 64, dependence: 0.3, ..PLAIN }] {
            let case = Case { law, offset, sigma, ..case };
            let share = share(&case, Form::PerCall, false);
            row("per call, growing", &case, share);
            assert!(share >= least, "{share}");
        }
    }
}

#[test]
fn ordinary_work_of_a_size_is_no_alarm() {
    let mut worst = 0.0_f64;
    for shape in shapes() {
        for law in [Law::Constant, Law::Linear, Law::NLogN] {
            for offset in [0.0, 1.0] {
                let case = Case { law, offset, drift: 1.5, dependence: 0.0, ..shape };
                let share = share(&case, Form::Total, true);
                row("by size, drift to 1.5x", &case, share);
                worst = worst.max(share);
            }
        }
    }
    assert!(worst <= 0.03, "{worst}");
}

#[test]
fn super_linear_work_of_a_size_is_found() {
    for (law, offset, least) in
        [(Law::Square, 0.0, 0.95), (Law::Square, 0.25, 0.6), (Law::Cube, 0.0, 0.99), (Law::Cube, 1.0, 0.7)]
    {
        for case in [PLAIN, Case { outliers: 0.05, ..PLAIN }, Case { points: 200, range: 100.0, ..PLAIN }] {
            let case = Case { law, offset, ..case };
            let share = share(&case, Form::Total, true);
            row("by size, growing", &case, share);
            assert!(share >= least, "{share}");
        }
    }
    // n^1.5 lies between: it is found with many points only.
    let case = Case { law: Law::N15, points: 200, range: 100.0, ..PLAIN };
    let found = share(&case, Form::Total, true);
    row("by size, growing", &case, found);
    assert!(found >= 0.5, "{found}");
}

#[test]
fn the_interval_of_the_exponent_holds_the_truth() {
    for (law, exponent) in [(Law::Linear, 1.0), (Law::N15, 1.5), (Law::Square, 2.0)] {
        for case in [PLAIN, Case { outliers: 0.05, ..PLAIN }, Case { offset: 0.25, ..PLAIN }] {
            let case = Case { law, ..case };
            let mut rng = Rng::new(978);
            let made = (0..RUNS).filter_map(|_| fit(&calls(&case, &mut rng, false), Form::PerCall).exponent);
            let (mut held, mut count, mut width) = (0, 0, 0.0);
            for interval in made {
                held += usize::from(interval.holds(exponent));
                count += 1;
                width += (interval.high.min(4.0) - interval.low) / RUNS as f64;
            }
            let share = held as f64 / count as f64;
            println!(
                "exponent {exponent}, offset {}, outliers {}: in {:.1} % of {count} intervals, mean width {width:.2}",
                case.offset,
                case.outliers,
                share * 100.0
            );
            assert!(share >= 0.88 && count >= RUNS * 9 / 10, "{share}");
        }
    }
}
