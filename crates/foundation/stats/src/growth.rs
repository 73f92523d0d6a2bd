//! Growth laws: does a cost grow with n, and how?
//!
//! # How it is computed
//! Eight laws `y = a + b * f(n)` with a, b >= 0 are fitted by least relative error ([`Law`]): the offset matters, because a
//! square that grows behind a large constant looks flat in a log-log plot. That is why the obvious test, the slope of log y over log
//! n, finds next to none of those. Laws are compared by Akaike weights (AICc): the weight of a law is the probability, among
//! those compared, that it describes the next points best. *Super-linear* is said when the laws that are super-linear have more than
//! 0.99 of the weight together, never because one of them fits.
//!
//! Neighbours that depend on each other count for less: with lag-1 autocorrelation r of the residuals, N points are worth N (1 -
//! r) / (1 + r).
//!
//! A rise must also beat two explanations that are no growth: that the cost rose at once ([`Doubt::Step`]), and that it rises
//! with time ([`Doubt::Time`]). Where calls come at a steady pace n *is* time, and the answer is that they cannot be distinguished.
//!
//! The exponent is that of `y = a + b * n^p`, with the interval of all p that fit nearly as well (profile likelihood). A large
//! offset makes it wide: honest, and another reason not to decide by it.
//!
//! # What fools it
//! Fewer than 20 points, or n over less than a factor of 8, decide nothing: the verdict is *cannot tell*. Whoever looks at many
//! operations finds some by chance: correct for that outside ([`Growth::trend`] has a p value). The figures in
//! `tests/all/growth_power.rs` are for log-normal noise with outliers, drift and autocorrelation; other noise was not tried.

mod fit;
mod law;
mod other;
mod point;

pub use law::{Form, LAWS, Law};
pub use point::Point;

use crate::Interval;
use crate::normal::student_quantile;
use crate::rank::{Trend, mann_kendall};
use fit::{Fit, affine, aicc, autocorrelation, mean_square, trust};

/// Points that a verdict needs.
pub const MIN_POINTS: usize = 20;
/// Largest n divided by the smallest that a verdict needs.
pub const MIN_RANGE: f64 = 8.0;
/// Weight of all super-linear laws together from which on it is said.
pub const MIN_WEIGHT: f64 = 0.99;
/// Cost at the end divided by that at the start below which growth is called slight: an expert would not act on it.
pub const MIN_FACTOR: f64 = 1.5;
/// The same below which a cost is called constant, however sure the rise.
const MIN_VISIBLE: f64 = 1.05;
/// Weight from which on the constant may be the law.
const MAY_BE: f64 = 0.05;
/// By how much AICc must be better than with time: 6 is odds of 20 to 1.
const MIN_OVER_TIME: f64 = 6.0;

/// What the points say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The cost does not depend on n.
    Constant,
    /// It grows like log n.
    Logarithmic,
    /// It grows like n or n log n: only of [`Form::Total`], where that is as it should be.
    Linear,
    /// It grows, but to less than one and a half times of what it was ([`MIN_FACTOR`]).
    Slight,
    /// It grows so that all work together is super-linear.
    SuperLinear,
    /// It grows with time; the number of calls does not explain it as well.
    WithTime,
    /// The points do not decide.
    CannotTell,
}

impl Verdict {
    /// `constant`, `logarithmic`, `linear`, `slight`, `super_linear`, `with_time` or `cannot_tell`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Constant => "constant",
            Verdict::Logarithmic => "logarithmic",
            Verdict::Linear => "linear",
            Verdict::Slight => "slight",
            Verdict::SuperLinear => "super_linear",
            Verdict::WithTime => "with_time",
            Verdict::CannotTell => "cannot_tell",
        }
    }
}

/// Why the points do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Fewer than [`MIN_POINTS`].
    Points,
    /// n covers less than [`MIN_RANGE`].
    Range,
    /// Several laws fit.
    Laws,
    /// One rise at some point fits as well.
    Step,
    /// Time explains it as well as n.
    Time,
}

impl Doubt {
    /// A sentence for people.
    pub fn text(self) -> &'static str {
        match self {
            Doubt::Points => "there are fewer than 20 points with a cost",
            Doubt::Range => "n covers less than a factor of 8",
            Doubt::Laws => "several laws fit, ordinary ones among them",
            Doubt::Step => "the cost rose at once at some point rather than steadily",
            Doubt::Time => "the calls came so that time explains the rise as well as their number",
        }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Growth {
    /// What the cost is.
    pub form: Form,
    /// What the points say.
    pub verdict: Verdict,
    /// Why they do not decide; `None` if they do.
    pub doubt: Option<Doubt>,
    /// The law with the most weight; the constant where it may be and the rise is slight.
    pub law: Law,
    /// Offset of that law.
    pub a: f64,
    /// Factor of that law.
    pub b: f64,
    /// Weight of each law, in the order of [`LAWS`]; they add up to 1.
    pub weights: [f64; 8],
    /// Weight of all super-linear laws together.
    pub super_weight: f64,
    /// Points used: those with positive, finite n and cost.
    pub points: usize,
    /// Points that they are worth, given that neighbours resemble each other.
    pub worth: f64,
    /// Smallest and largest n.
    pub range: (f64, f64),
    /// Share of the variation of log cost that the law explains, 0 to 1.
    pub r2: f64,
    /// Typical distance of points from the law: 0.1 is about 10 %.
    pub scatter: f64,
    /// Exponent p of `a + b * n^p` with its 95 % interval; `None` where nothing grows or too little is known.
    pub exponent: Option<Interval>,
    /// By how much AICc is better with n than with time; `None` without times.
    pub over_time: Option<f64>,
    /// By how much AICc is better than that of a step; `None` for very few points.
    pub over_step: Option<f64>,
    /// Whether costs rise in the order of n at all.
    pub trend: Option<Trend>,
    /// Weights of the points that residuals were compared with, less those of outliers.
    trust: Vec<f64>,
}

/// Points that can be used, in the order of n.
fn usable(points: &[Point]) -> Vec<Point> {
    let usable =
        |p: &&Point| p.n > 0.0 && p.n.is_finite() && p.cost > 0.0 && p.cost.is_finite() && p.weight > 0.0;
    let mut points: Vec<Point> = points.iter().filter(usable).copied().collect();
    points.sort_by(|a, b| a.n.total_cmp(&b.n));
    points
}

/// Fits and compares the laws, and finds the exponent if something grows. Points need no order.
pub fn fit(points: &[Point], form: Form) -> Growth {
    let mut growth = compare(points, form);
    if growth.points >= MIN_POINTS && growth.law != Law::Constant {
        growth.exponent = exponent(&usable(points), &growth.trust, growth.worth);
    }
    growth
}

/// As [`fit`], of pairs (n, cost) of one call each, whose time is not known.
pub fn fit_pairs(pairs: &[(f64, f64)], form: Form) -> Growth {
    let points: Vec<Point> =
        pairs.iter().map(|&(n, cost)| Point { n, cost, weight: 1.0, time: None }).collect();
    fit(&points, form)
}

/// As [`fit`], without the exponent, which takes most of the time.
pub fn compare(points: &[Point], form: Form) -> Growth {
    let points = usable(points);
    let y: Vec<f64> = points.iter().map(|p| p.cost).collect();
    let w = weights(&points);
    let models: Vec<(Law, Fit)> = LAWS
        .into_iter()
        .filter(|law| law.compared(form))
        .map(|law| (law, affine(&points.iter().map(|p| law.f(p.n)).collect::<Vec<f64>>(), &y, &w)))
        // A law that needs no factor is the constant once more.
        .filter(|(law, fit)| *law == Law::Constant || fit.b > 0.0)
        .collect();
    let closest = models.iter().map(|(_, fit)| (fit.spread(), fit)).min_by(|a, b| a.0.total_cmp(&b.0));
    let (scale, trust) = closest.map_or((0.0, Vec::new()), |(s, fit)| (s, trust(&fit.residuals, &w, s)));
    let square = |fit: &Fit| mean_square(&fit.residuals, &trust, &w);
    let parameters = |law: Law| if law == Law::Constant { 2.0 } else { 3.0 };
    let criteria = |worth: f64| -> Vec<f64> {
        models.iter().map(|(law, fit)| aicc(square(fit), worth, parameters(*law))).collect()
    };
    let least = |criteria: &[f64]| {
        let best = criteria.iter().zip(&models).min_by(|a, b| a.0.total_cmp(b.0));
        best.map_or((f64::NAN, Law::Constant), |(criterion, (law, _))| (*criterion, *law))
    };
    let fit_of = |law: Law| models.iter().find(|(l, _)| *l == law).map(|(_, fit)| fit);
    // How much neighbours resemble each other is told by what the best of all explanations leaves, be it a law or not.
    let count = points.len() as f64;
    let drifts = other::drift(&points, &y, &w);
    let step = other::step(&y);
    let criterion =
        |residuals: &[f64], worth, parameters| aicc(mean_square(residuals, &trust, &w), worth, parameters);
    let (least_now, law_now) = least(&criteria(count));
    let law_residuals = fit_of(law_now).map(|fit| (least_now, fit.residuals.as_slice()));
    let drift_residuals =
        drifts.iter().flatten().map(|d| (criterion(&d.residuals, count, 3.0), d.residuals.as_slice()));
    let step_residuals = step.iter().map(|s| (criterion(s, count, 4.0), s.as_slice()));
    let best_residuals = law_residuals
        .into_iter()
        .chain(drift_residuals)
        .chain(step_residuals)
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let r = best_residuals.map_or(0.0, |(_, residuals)| autocorrelation(residuals, scale));
    let worth = count * (1.0 - r) / (1.0 + r);
    let criteria = criteria(worth);
    let (best, law) = least(&criteria);
    let mut shares = [0.0; 8];
    let sum: f64 = criteria.iter().map(|c| ((best - c) / 2.0).exp()).sum();
    for ((law, _), criterion) in models.iter().zip(&criteria) {
        if let Some(share) = shares.get_mut(*law as usize) {
            *share = ((best - criterion) / 2.0).exp() / sum;
        }
    }
    let super_weight =
        LAWS.iter().zip(shares).filter(|(law, _)| law.super_linear(form)).map(|(_, s)| s).sum();
    let range = (points.first().map_or(0.0, |p| p.n), points.last().map_or(0.0, |p| p.n));
    // What is left when resembling points count for less is no proof that nothing grows.
    let law = if law == Law::Constant { law_now } else { law };
    // Of two laws that may both be, and do not differ much, the simpler one.
    let at = |n: f64| fit_of(law).map_or(0.0, |fit| fit.a + fit.b * law.f(n));
    let simple = shares.first().is_some_and(|&constant| constant >= MAY_BE);
    let slight = at(range.1) < at(range.0) * if simple { MIN_FACTOR } else { MIN_VISIBLE };
    let law = if slight { Law::Constant } else { law };
    let chosen = fit_of(law);
    let squares = |fit: &Fit| fit.residuals.iter().zip(&w).map(|(r, w)| w * r * r).sum::<f64>();
    let flat = fit_of(Law::Constant).map_or(0.0, squares);
    let over = |residuals: &[f64], parameters| criterion(residuals, worth, parameters) - best;
    let mut growth = Growth {
        form,
        verdict: Verdict::CannotTell,
        doubt: None,
        law,
        a: chosen.map_or(0.0, |fit| fit.a),
        b: chosen.map_or(0.0, |fit| fit.b),
        weights: shares,
        super_weight,
        points: points.len(),
        worth,
        range,
        r2: if flat > 0.0 { (1.0 - chosen.map_or(flat, squares) / flat).max(0.0) } else { 0.0 },
        scatter: chosen.map_or(0.0, |fit| fit.scale),
        exponent: None,
        over_time: drifts
            .map(|drifts| drifts.iter().map(|d| over(&d.residuals, 3.0)).fold(f64::INFINITY, f64::min)),
        over_step: step.map(|residuals| over(&residuals, 4.0)),
        trust: trust.clone(),
        trend: mann_kendall(&points.iter().map(|p| (p.n, p.cost)).collect::<Vec<_>>()),
    };
    (growth.verdict, growth.doubt) = growth.judge();
    growth
}

/// Weights of points: 1 for those of as many calls as most, less for those of fewer.
fn weights(points: &[Point]) -> Vec<f64> {
    let mut counts: Vec<f64> = points.iter().map(|p| p.weight).collect();
    let usual = crate::percentile::median(&mut counts).unwrap_or(1.0);
    points.iter().map(|p| (p.weight / usual).min(1.0)).collect()
}

/// The exponent of a free power: all that fit nearly as well as the best one are its interval.
fn exponent(points: &[Point], trust: &[f64], worth: f64) -> Option<Interval> {
    let top = points.last()?.n;
    let y: Vec<f64> = points.iter().map(|p| p.cost).collect();
    let w = weights(points);
    let square = |p: f64| {
        let f: Vec<f64> = points.iter().map(|point| (point.n / top).powf(p)).collect();
        mean_square(&affine(&f, &y, &w).residuals, trust, &w)
    };
    let grid: Vec<(f64, f64)> = (1..=80).map(|i| f64::from(i) * 0.05).map(|p| (p, square(p))).collect();
    let (value, least) = grid.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    // Refined around the best one of the grid, and where the limit is passed.
    let (value, least) = (-9..=9)
        .map(|i| value + f64::from(i) * 0.005)
        .map(|p| (p, square(p)))
        .chain([(value, least)])
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let freedom = (worth - 4.0).max(1.0);
    let limit = least * (1.0 + student_quantile(0.975, freedom).powi(2) / freedom);
    let fits = |p: f64| square(p) <= limit;
    let edge = |mut inside: f64, mut outside: f64| {
        for _ in 0..6 {
            let middle = (inside + outside) / 2.0;
            if fits(middle) { inside = middle } else { outside = middle }
        }
        outside
    };
    let below = grid.iter().rev().find(|(p, square)| *p < value && *square > limit).map(|(p, _)| *p);
    let above = grid.iter().find(|(p, square)| *p > value && *square > limit).map(|(p, _)| *p);
    let low = below.map_or(0.0, |p| edge(value, p));
    let high = above.map_or(f64::INFINITY, |p| edge(value, p));
    Some(Interval { value, low, high })
}

impl Growth {
    fn judge(&self) -> (Verdict, Option<Doubt>) {
        let doubt = |doubt| (Verdict::CannotTell, Some(doubt));
        if self.points < MIN_POINTS {
            return doubt(Doubt::Points);
        }
        if self.range.1 < MIN_RANGE * self.range.0 {
            return doubt(Doubt::Range);
        }
        if self.super_weight <= MIN_WEIGHT || self.law == Law::Constant {
            let ordinary = match self.law {
                Law::Constant => Verdict::Constant,
                // The law of the points each for itself, which the weights do not bear out.
                law if self.weight(law) < self.weight(Law::Constant) && self.factor() >= MIN_FACTOR => {
                    return doubt(Doubt::Laws);
                }
                Law::Log => Verdict::Logarithmic,
                law if !law.super_linear(self.form) => Verdict::Linear,
                _ => {
                    return if self.factor() < MIN_FACTOR {
                        (Verdict::Slight, None)
                    } else {
                        doubt(Doubt::Laws)
                    };
                }
            };
            return (ordinary, None);
        }
        if self.form == Form::PerCall && self.factor() < MIN_FACTOR {
            return (Verdict::Slight, None);
        }
        if self.over_time.is_some_and(|over| over < -MIN_OVER_TIME) {
            return (Verdict::WithTime, None);
        }
        if self.over_step.is_some_and(|over| over < 0.0) {
            return doubt(Doubt::Step);
        }
        if self.over_time.is_some_and(|over| over < MIN_OVER_TIME) {
            return doubt(Doubt::Time);
        }
        (Verdict::SuperLinear, None)
    }

    /// Weight of a law.
    pub fn weight(&self, law: Law) -> f64 {
        self.weights.get(law as usize).copied().unwrap_or(0.0)
    }

    /// Cost at n by the law with the most weight.
    pub fn cost_at(&self, n: f64) -> f64 {
        self.a + self.b * self.law.f(n)
    }

    /// Cost of all calls up to the n-th; of work in all, the cost itself.
    pub fn total_at(&self, n: f64) -> f64 {
        match self.form {
            Form::PerCall => self.a * n + self.b * self.law.sum(n),
            Form::Total => self.cost_at(n),
        }
    }

    /// Cost at the largest n divided by that at the smallest.
    pub fn factor(&self) -> f64 {
        self.cost_at(self.range.1) / self.cost_at(self.range.0).max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    fn points(count: u32, step: f64, cost: impl Fn(f64) -> f64) -> Vec<Point> {
        let point = |n: f64| Point { n, cost: cost(n), weight: 1.0, time: None };
        (1..=count).map(|i| point(f64::from(i) * step)).collect()
    }

    #[test]
    fn exact_laws_are_named() {
        for (law, a) in LAWS.into_iter().flat_map(|law| [(law, 0.0), (law, 0.5)]) {
            let offset = 1.0 + a * law.f(3_200.0);
            let growth = fit(&points(64, 100.0, |n| offset + law.f(n)), Form::PerCall);
            assert_eq!(growth.law, law, "{growth:?}");
            assert!(growth.weight(law) > 0.99, "{growth:?}");
            if law != Law::Constant {
                assert!((growth.b - 1.0).abs() < 0.01, "{growth:?}");
            }
        }
    }

    #[test]
    fn the_search_from_the_top_is_a_square_in_all() {
        // 250,000 calls of 48 ns for each earlier one: 1,500 s in all.
        let growth = fit(&points(64, 3906.25, |n| 48.0 * n), Form::PerCall);
        assert_eq!((growth.verdict, growth.law), (Verdict::SuperLinear, Law::Linear));
        assert_eq!(growth.law.total_name(), "n^2");
        assert!((growth.total_at(250_000.0) / 1.5e12 - 1.0).abs() < 1e-4, "{growth:?}");
        assert!((growth.total_at(2.5e6) / growth.total_at(250_000.0) - 100.0).abs() < 0.1);
        let exponent = growth.exponent.unwrap();
        assert!(exponent.holds(1.0) && exponent.high - exponent.low < 0.02, "{exponent:?}");
    }

    #[test]
    fn reading_a_file_of_n_bytes_is_linear() {
        let growth = fit(&points(40, 4096.0, |n| 20_000.0 + n), Form::Total);
        assert_eq!((growth.verdict, growth.law), (Verdict::Linear, Law::Linear));
        let square = fit(&points(40, 4096.0, |n| 20_000.0 + n * n), Form::Total);
        assert_eq!((square.verdict, square.law), (Verdict::SuperLinear, Law::Square));
    }

    #[test]
    fn too_little_decides_nothing() {
        let few = fit(&points(19, 1.0, |n| n), Form::PerCall);
        assert_eq!((few.verdict, few.doubt), (Verdict::CannotTell, Some(Doubt::Points)));
        let narrow: Vec<Point> = points(90, 1.0, |n| n).split_off(40);
        let narrow = fit(&narrow, Form::PerCall);
        assert_eq!((narrow.verdict, narrow.doubt), (Verdict::CannotTell, Some(Doubt::Range)));
        for none in [fit(&[], Form::PerCall), fit(&points(40, 1.0, |_| f64::NAN), Form::PerCall)] {
            assert_eq!((none.verdict, none.points), (Verdict::CannotTell, 0));
            assert_eq!(none.cost_at(5.0), 0.0);
        }
    }

    #[test]
    fn a_steady_pace_makes_time_and_number_one() {
        let timed = |time: fn(f64) -> f64| -> Vec<Point> {
            let mut rng = Rng::new(1);
            let points = points(64, 1.0, |n| 10.0 + n).into_iter();
            points
                .map(|p| Point { time: Some(time(p.n)), cost: p.cost * (1.0 + 0.1 * rng.normal()), ..p })
                .collect()
        };
        let same = fit(&timed(|n| n), Form::PerCall);
        assert_eq!((same.verdict, same.doubt), (Verdict::CannotTell, Some(Doubt::Time)));
        let apart = fit(&timed(|n| n * n), Form::PerCall);
        assert_eq!((apart.verdict, apart.law), (Verdict::SuperLinear, Law::Linear));
    }

    #[test]
    fn a_phase_is_no_growth() {
        let mut rng = Rng::new(2);
        let mut phases = points(64, 10.0, |n| if n < 300.0 { 10.0 } else { 80.0 });
        phases.iter_mut().for_each(|p| p.cost *= 1.0 + 0.1 * rng.normal());
        let growth = fit(&phases, Form::PerCall);
        assert_eq!((growth.verdict, growth.doubt), (Verdict::CannotTell, Some(Doubt::Step)), "{growth:?}");
    }

    #[test]
    fn waves_on_a_clear_rise_do_not_hide_it() {
        // Missing buffers and phases move neighbours alike, which leaves few independent points, but 49 times is 49 times.
        let waves = points(45, 512.0, |n| 48.0 * n * (1.0 + 0.05 * (n / 2_000.0).sin()));
        let growth = fit(&waves, Form::PerCall);
        assert_eq!((growth.verdict, growth.law), (Verdict::SuperLinear, Law::Linear), "{growth:?}");
        assert!(growth.worth < 20.0, "{growth:?}");
    }

    #[test]
    fn a_rise_too_small_to_see_is_none() {
        let mut rng = Rng::new(3);
        let mut small = points(64, 10.0, |n| 4_386.0 + n.ln());
        small.iter_mut().for_each(|p| p.cost *= 1.0 + 0.005 * rng.normal());
        assert_eq!(fit(&small, Form::PerCall).verdict, Verdict::Constant);
    }
}
