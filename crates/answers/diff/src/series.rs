//! Runs of one benchmark, in order: from which run on does it cost more or less?
//!
//! Each run is read once and leaves only its figures: how long it took, how busy it was, what each process, driver, module and
//! function took. A figure over the runs is a course; [`etwhy_stats::steps`] finds where its level changes. With many courses
//! some change by chance, so each must be as sure as all of them together are to be (Bonferroni within a kind). Figures are sums of
//! the whole run: runs of a benchmark do the same work, and work that takes longer looks the same per second. A run that lost records
//! has no figures that the loss could change: it is left out and said.

use super::entities::costs;
use super::scale::{Scale, Side};
use etwhy_stats::FALSE_ALARMS;
use etwhy_stats::percentile::median;
use etwhy_stats::steps::{self, steps};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Least runs.
pub const LEAST: usize = steps::LEAST;
/// Least share of the machine that a name must have had in one of the runs.
const LEAST_SHARE: f64 = 0.001;
/// Courses without a step that are kept of each kind.
const QUIET: usize = 10;

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct Run {
    scale: Scale,
    /// Findings that were found, as `id culprit`.
    found: BTreeSet<String>,
    /// Nanoseconds by kind and name.
    costs: BTreeMap<&'static str, BTreeMap<String, f64>>,
}

impl Run {
    /// Reads the figures of a trace, which is not needed afterwards.
    pub fn read(side: &Side<'_>) -> Run {
        let scale = Scale::read(side);
        let mut all: BTreeMap<&'static str, BTreeMap<String, f64>> = BTreeMap::new();
        for (kind, costs) in costs(side, &scale) {
            all.insert(kind, costs.into_iter().map(|(name, cost)| (name, cost.ns)).collect());
        }
        let mut whole = BTreeMap::from([("duration".to_owned(), scale.duration_ns as f64)]);
        whole.extend(scale.busy_ns.map(|ns| ("CPU time".to_owned(), ns as f64)));
        all.insert("run", whole);
        let hits =
            side.findings.iter().flat_map(|o| o.hits.iter().map(|hit| format!("{} {}", o.id, hit.culprit)));
        Run { scale, found: hits.collect(), costs: all }
    }
}

/// Where a course changes its level.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// The first run of the new level, counted from 0.
    pub run: usize,
    /// Its name.
    pub label: String,
    /// Level before, nanoseconds.
    pub before_ns: f64,
    /// Level from this run on, nanoseconds.
    pub after_ns: f64,
    /// New level divided by the old one; none if there was nothing in one of the runs.
    pub ratio: Option<f64>,
    /// Lower end of its interval of 95 %.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// How sure it is that there is a step, all courses of the kind considered: 0.96 to 1.
    pub confidence: f64,
}

impl Step {
    /// It costs at least that many per cent more than before.
    pub fn is_slower(&self, percent: f64) -> bool {
        self.after_ns > self.before_ns * (1.0 + percent / 100.0)
    }
}

/// A figure over the runs.
#[derive(Clone, Debug, Serialize)]
pub struct Course {
    /// run, process, driver, module or function.
    pub kind: &'static str,
    /// duration, CPU time, or a name.
    pub name: String,
    /// Nanoseconds in each run; none where it could not be determined.
    pub values_ns: Vec<Option<f64>>,
    /// Typical value, nanoseconds.
    pub median_ns: f64,
    /// Where it changes, in order.
    pub steps: Vec<Step>,
}

/// A finding that some runs have and others have not.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The finding and who.
    pub finding: String,
    /// For each run: it was found.
    pub found: Vec<bool>,
}

/// All courses of some runs.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Version of this form.
    pub schema: &'static str,
    /// The runs, in order.
    pub runs: Vec<Scale>,
    /// What must be known before the figures are read.
    pub caveats: Vec<String>,
    /// Courses: those with steps first, the largest change first.
    pub courses: Vec<Course>,
    /// Findings that not all runs have.
    pub findings: Vec<Found>,
}

/// Finds the steps.
pub fn series(runs: &[Run]) -> Series {
    let mut courses: Vec<Course> = ["run", "process", "driver", "module", "function"]
        .into_iter()
        .flat_map(|kind| of_kind(kind, runs))
        .collect();
    let change =
        |course: &Course| course.steps.iter().map(|s| (s.after_ns - s.before_ns).abs()).fold(0.0, f64::max);
    courses.sort_by(|a, b| change(b).total_cmp(&change(a)));
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| &run.found).collect();
    let findings = names
        .into_iter()
        .map(|name| Found {
            finding: name.clone(),
            found: runs.iter().map(|run| run.found.contains(name)).collect(),
        })
        .filter(|found| found.found.contains(&false))
        .collect();
    Series {
        schema: "etwhy.series/1",
        runs: runs.iter().map(|run| run.scale.clone()).collect(),
        caveats: caveats(runs),
        courses,
        findings,
    }
}

fn of_kind(kind: &'static str, runs: &[Run]) -> Vec<Course> {
    let share = |run: &Run, name: &String| {
        let ns = run.costs.get(kind).and_then(|costs| costs.get(name));
        ns.is_some_and(|ns| kind == "run" || run.scale.share(*ns) >= LEAST_SHARE)
    };
    let all: BTreeSet<&String> =
        runs.iter().filter_map(|run| run.costs.get(kind)).flat_map(BTreeMap::keys).collect();
    let names: Vec<&String> =
        all.into_iter().filter(|name| runs.iter().any(|run| share(run, name))).collect();
    let alpha = FALSE_ALARMS / names.len().max(1) as f64;
    let mut courses: Vec<Course> =
        names.iter().map(|name| course(kind, name, runs, alpha, names.len())).collect();
    courses.sort_by(|a, b| {
        a.steps.is_empty().cmp(&b.steps.is_empty()).then_with(|| b.median_ns.total_cmp(&a.median_ns))
    });
    let with_steps = courses.iter().filter(|course| !course.steps.is_empty()).count();
    courses.truncate(with_steps + QUIET);
    courses
}

/// Smaller steps are none, however sure.
const LEAST_STEP: f64 = 0.002;

fn course(kind: &'static str, name: &str, runs: &[Run], alpha: f64, compared: usize) -> Course {
    let value = |run: &Run| {
        let costs = run.costs.get(kind)?;
        // Where the machine was observed, who is not there took nothing.
        let ns = costs.get(name).copied().or_else(|| (kind != "run" && !costs.is_empty()).then_some(0.0))?;
        run.scale.is_whole().then_some(ns)
    };
    let values_ns: Vec<Option<f64>> = runs.iter().map(value).collect();
    let known: Vec<(usize, f64)> =
        values_ns.iter().enumerate().filter_map(|(run, v)| Some((run, (*v)?))).collect();
    let mut values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let found = steps(&values, alpha).into_iter().filter_map(|step| {
        // Runs that hardly differ differ in what nobody asks for.
        step.ratio.as_ref().is_none_or(|r| (r.value - 1.0).abs() >= LEAST_STEP).then_some(())?;
        let run = known.get(step.at)?.0;
        Some(Step {
            run,
            label: runs.get(run)?.scale.label.clone(),
            before_ns: step.before,
            after_ns: step.after,
            ratio: step.ratio.map(|ratio| ratio.value),
            ratio_low: step.ratio.map(|ratio| ratio.low),
            ratio_high: step.ratio.map(|ratio| ratio.high),
            confidence: 1.0 - (step.p * compared as f64).min(1.0),
        })
    });
    let steps = found.collect();
    Course { kind, name: name.to_owned(), values_ns, median_ns: median(&mut values).unwrap_or(0.0), steps }
}

fn caveats(runs: &[Run]) -> Vec<String> {
    let mut caveats = Vec::new();
    let list = |chosen: &dyn Fn(&Run) -> bool| {
        let names: Vec<&str> =
            runs.iter().filter(|run| chosen(run)).map(|run| run.scale.label.as_str()).collect();
        let more = names.len().saturating_sub(3);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty())
            .then(|| format!("{}{rest}", names.iter().take(3).copied().collect::<Vec<_>>().join(", ")))
    };
    if let Some(names) = list(&|run| !run.scale.is_whole()) {
        caveats.push(format!("records are missing in {names}: left out of the courses"));
    }
    if let Some(names) = list(&|run| run.scale.busy_ns.is_none()) {
        caveats.push(format!("neither samples nor context switches were recorded in {names}: no CPU time"));
    }
    let cpus: BTreeSet<i64> = runs.iter().map(|run| run.scale.cpus).collect();
    if cpus.len() > 1 {
        caveats.push("the runs are of machines with different numbers of processors".to_owned());
    }
    let usable = runs.iter().filter(|run| run.scale.is_whole()).count();
    if usable < LEAST {
        caveats
            .push(format!("a step needs at least {LEAST} runs without missing records, there are {usable}"));
    } else if usable < steps::ENOUGH {
        caveats.push(format!(
            "with fewer than {} runs the noise between runs is taken as normal; an outlier can look like a step",
            steps::ENOUGH
        ));
    }
    caveats
}
