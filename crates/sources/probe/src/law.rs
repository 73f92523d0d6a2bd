//! How what a probe measures grows, and what that means for the user's numbers.

use crate::outcome::{Outcome, ProbeOutcome};
use crate::probe::{Grows, Probe};
use crate::sample::Sample;
use crate::summary::{middle, typical};
use etwhy_stats::growth::{Form, Growth, MIN_POINTS, Point, Verdict, fit};
use std::collections::BTreeMap;

/// What was taken as the cost of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// CPU time of the probe's threads: what else the machine does changes it least.
    Cpu,
    /// Time on the clock without the time that threads waited for a processor.
    Unqueued,
    /// Time on the clock.
    Wall,
    /// What the probe measures, which is no time.
    Value,
}

impl Cost {
    /// `cpu`, `wall_less_queue`, `wall` or `value`.
    pub fn name(self) -> &'static str {
        match self {
            Cost::Cpu => "cpu",
            Cost::Unqueued => "wall_less_queue",
            Cost::Wall => "wall",
            Cost::Value => "value",
        }
    }

    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Cost::Cpu => "CPU time",
            Cost::Unqueued => "time without waiting for a processor",
            Cost::Wall => "time on the clock, which a busy machine inflates",
            Cost::Value => "measured value",
        }
    }
}

/// A curve: samples of one measure and variant over n, and the law that they follow.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Probe.
    pub probe: String,
    /// State.
    pub state: String,
    /// What was done.
    pub measure: String,
    /// Under which conditions.
    pub variant: String,
    /// What n counts.
    pub n_is: String,
    /// What the cost is.
    pub cost: Cost,
    /// Unit of the cost.
    pub unit: String,
    /// n and the median cost over rounds, by n.
    pub points: Vec<(f64, f64)>,
    /// The law.
    pub growth: Growth,
    /// Rounds that it rests on. In a single one n and time are the same.
    pub rounds: usize,
    /// n of what follows: the user's, or ten times the largest measured.
    pub scale: f64,
}

impl Curve {
    /// Measure and variant.
    pub fn title(&self) -> String {
        if self.variant.is_empty() {
            self.measure.clone()
        } else {
            format!("{}, {}", self.measure, self.variant)
        }
    }

    /// True if something can be said about other n than those measured.
    pub fn extends(&self) -> bool {
        self.growth.verdict != Verdict::CannotTell && self.growth.verdict != Verdict::WithTime
    }

    /// What one operation costs at [`Curve::scale`].
    pub fn one_at_scale(&self) -> Option<f64> {
        Some(self.growth.cost_at(self.scale)).filter(|cost| self.extends() && cost.is_finite())
    }

    /// What all up to [`Curve::scale`] cost together; absent where an operation is work on n things.
    pub fn all_at_scale(&self) -> Option<f64> {
        let total = (self.growth.form == Form::PerCall).then(|| self.growth.total_at(self.scale));
        total.filter(|cost| self.extends() && cost.is_finite())
    }
}

/// The curves of all probes of `outcome` that measure sizes. `scale`: the user's n.
pub fn curves(outcome: &Outcome, scale: Option<f64>) -> Vec<Curve> {
    let of = |result: &ProbeOutcome| {
        let all = crate::probes::ALL;
        let probe = all.iter().find(|probe: &&&Probe| probe.name == result.probe);
        probe.map(|probe| of_probe(result, probe.grows, probe.n_is, scale)).unwrap_or_default()
    };
    outcome.probes.iter().flat_map(of).collect()
}

/// Most curves of one probe: what a file of results may ask for.
const MOST_CURVES: usize = 200;
/// Most points of one curve: fits take time with each.
const MOST_POINTS: usize = 2_000;

/// The curves of one result.
pub fn of_probe(result: &ProbeOutcome, grows: Grows, n_is: &str, scale: Option<f64>) -> Vec<Curve> {
    let form = match grows {
        Grows::No => return Vec::new(),
        Grows::PerCall => Form::PerCall,
        Grows::Total => Form::Total,
    };
    let mut groups: BTreeMap<(&str, &str), Vec<&Sample>> = BTreeMap::new();
    for sample in result.samples.iter().filter(|s| s.case.n.is_some_and(|n| n.is_finite() && n >= 0.0)) {
        groups.entry((&sample.case.measure, &sample.case.variant)).or_default().push(sample);
    }
    let curve = |((measure, variant), samples): (&(&str, &str), &Vec<&Sample>)| {
        let cost = choose(samples);
        let unit = samples.first().map_or("", |s| s.unit.as_str());
        let all: Vec<(f64, f64)> =
            samples.iter().filter_map(|s| Some((s.case.n?, cost_of(s, cost)?))).take(MOST_POINTS).collect();
        let mut sizes: Vec<f64> = all.iter().map(|point| point.0).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        sizes.dedup();
        if sizes.len() < 3 {
            return None;
        }
        let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (n, cost) in &all {
            // Bits of positive floats are in their order.
            by_size.entry(n.abs().to_bits()).or_default().push(*cost);
        }
        let points: Vec<(f64, f64)> = by_size
            .iter()
            .filter_map(|(n, costs)| Some((f64::from_bits(*n), middle(costs.iter().copied())?)))
            .collect();
        // A law needs points. Where sizes are few, each round gives its own; else the rounds' medians are steadier.
        let fitted = if points.len() >= MIN_POINTS { &points } else { &all };
        let as_point = |&(n, cost): &(f64, f64)| Point { n, cost, weight: 1.0, time: None };
        let growth = fit(&fitted.iter().map(as_point).collect::<Vec<Point>>(), form);
        let mut rounds: Vec<u32> = samples.iter().map(|s| s.round).collect();
        rounds.sort_unstable();
        rounds.dedup();
        let largest = sizes.last().copied().unwrap_or(1.0);
        Some(Curve {
            probe: result.probe.clone(),
            state: result.state.clone(),
            measure: (*measure).to_owned(),
            variant: (*variant).to_owned(),
            n_is: n_is.to_owned(),
            cost,
            unit: if cost == Cost::Value { unit.to_owned() } else { "ns".to_owned() },
            points,
            growth,
            rounds: rounds.len(),
            scale: scale.unwrap_or(largest * 10.0),
        })
    };
    groups.iter().take(MOST_CURVES).filter_map(curve).collect()
}

/// What the cost of these samples is. Wall time grows with everything else that runs: a fit to it finds growth that is none.
/// CPU time does not know what others do for the thread, so it serves only where it is most of the work.
fn choose(samples: &[&Sample]) -> Cost {
    if samples.iter().any(|s| s.unit != "ns" || s.more_is_better) {
        return Cost::Value;
    }
    let sum = |of: fn(&Sample) -> Option<u64>| -> Option<u64> {
        samples.iter().try_fold(0_u64, |sum, s| Some(sum.saturating_add(of(s)?)))
    };
    let wall = sum(|s| Some(s.wall_ns)).unwrap_or(0);
    let queue = sum(|s| s.queue_ns);
    let cpu = sum(|s| s.cpu_ns);
    let work = wall.saturating_sub(queue.unwrap_or(0));
    match (cpu, queue) {
        (Some(cpu), _) if cpu > 0 && cpu >= work / 2 => Cost::Cpu,
        (_, Some(_)) if wall > 0 => Cost::Unqueued,
        _ => Cost::Wall,
    }
}

fn cost_of(sample: &Sample, cost: Cost) -> Option<f64> {
    let each = |ns: u64| ns as f64 / sample.operations.max(1) as f64;
    let cost = match cost {
        Cost::Cpu => each(sample.cpu_ns?),
        Cost::Unqueued => each(sample.wall_ns.saturating_sub(sample.queue_ns?)),
        Cost::Wall => typical(sample),
        Cost::Value => sample.value,
    };
    (cost.is_finite() && cost > 0.0).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Case;
    use etwhy_base::rng::Rng;
    use etwhy_stats::growth::Law;

    /// Wall time is the CPU time times what a busy machine makes of it; it rises over the run.
    fn result(cost: impl Fn(f64) -> f64) -> ProbeOutcome {
        let mut rng = Rng::new(4);
        let mut samples = Vec::new();
        for round in 0..6 {
            for step in 1..=40_u32 {
                let n = f64::from(step) * 50.0;
                let cpu = cost(n) * 100.0 * (1.0 + 0.05 * rng.normal());
                let queue = cpu * (f64::from(step) / 10.0) * rng.uniform();
                samples.push(Sample {
                    case: Case::new("call").at(n),
                    round,
                    operations: 100,
                    unit: "ns".into(),
                    value: (cpu + queue) / 100.0,
                    wall_ns: (cpu + queue) as u64,
                    cpu_ns: Some(cpu as u64),
                    queue_ns: Some(queue as u64),
                    ..Sample::default()
                });
            }
        }
        ProbeOutcome { probe: "made-up".into(), samples, ..ProbeOutcome::default() }
    }

    #[test]
    fn known_laws_come_out_though_the_machine_is_busy() {
        let constant = of_probe(&result(|_| 1_000.0), Grows::PerCall, "calls", None);
        assert_eq!((constant[0].growth.verdict, constant[0].cost), (Verdict::Constant, Cost::Cpu));
        // Each call costs n: all together the square.
        let rising = of_probe(&result(|n| 80.0 + n), Grows::PerCall, "calls", Some(10_000.0));
        assert_eq!((rising[0].growth.verdict, rising[0].growth.law), (Verdict::SuperLinear, Law::Linear));
        let one = rising[0].one_at_scale().unwrap();
        assert!((one / 10_080.0 - 1.0).abs() < 0.1, "{one}");
        let all = rising[0].all_at_scale().unwrap();
        assert!((all / (80.0 * 1e4 + 1e8 / 2.0) - 1.0).abs() < 0.1, "{all}");
        let square = of_probe(&result(|n| 500.0 + n * n), Grows::Total, "calls", None);
        assert_eq!((square[0].growth.verdict, square[0].growth.law), (Verdict::SuperLinear, Law::Square));
        assert_eq!(square[0].all_at_scale(), None);
        assert!(of_probe(&result(|n| n), Grows::No, "", None).is_empty());
    }
}
