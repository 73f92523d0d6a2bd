//! Results as tables of the contract.

mod rows;

use crate::compare::Comparison;
use crate::law;
use crate::outcome::Outcome;
use crate::summary;
use etwhy_stats::Interval;
use etwhy_table::{Database, Memory, Strings, Sym, TableBuilder, TableError, TableSpec};
pub use rows::*;

/// All tables of this crate.
pub static ALL: &[&TableSpec] = &[
    &PROBE_RUN,
    &PROBE_SERIES,
    &PROBE_LAW,
    &PROBE_MACHINE,
    &PROBE_PRODUCT,
    &PROBE_SUSPECT,
    &PROBE_DIFFERENCE,
];

/// All tables of results: each with the name of its file. `scale`: what laws are extended to.
///
/// # Errors
/// Those of the table builder.
pub fn database(
    files: &[(String, Outcome)],
    comparison: Option<&Comparison>,
    scale: Option<f64>,
    memory: &Memory,
) -> Result<Database, TableError> {
    let mut strings = Strings::new();
    let mut runs = TableBuilder::<ProbeRunRow>::new(memory);
    let mut series = TableBuilder::<ProbeSeriesRow>::new(memory);
    let mut laws = TableBuilder::<ProbeLawRow>::new(memory);
    let mut machines = TableBuilder::<ProbeMachineRow>::new(memory);
    let mut products = TableBuilder::<ProbeProductRow>::new(memory);
    let mut suspects = TableBuilder::<ProbeSuspectRow>::new(memory);
    let mut differences = TableBuilder::<ProbeDifferenceRow>::new(memory);
    for (name, outcome) in files {
        let file = strings.intern(name);
        for fact in &outcome.machine.facts {
            let (name, value) = (strings.intern(&fact.name), strings.intern(&fact.value));
            machines.push(ProbeMachineRow { file, name, value });
        }
        for product in &outcome.products {
            products.push(ProbeProductRow {
                file,
                name: strings.intern(&product.name),
                vendor: product.vendor.as_deref().map(|text| strings.intern(text)),
                kind: strings.intern(&product.kind),
                version: product.version.as_deref().map(|text| strings.intern(text)),
                evidence: strings.intern(&product.evidence),
            });
        }
        for result in &outcome.probes {
            let (probe, state) = (strings.intern(&result.probe), text(&mut strings, &result.state));
            for sample in &result.samples {
                runs.push(ProbeRunRow {
                    file,
                    probe,
                    state,
                    measure: strings.intern(&sample.case.measure),
                    variant: text(&mut strings, &sample.case.variant),
                    n: sample.case.n,
                    round: i64::from(sample.round),
                    start_ns: int(sample.start_ns),
                    operations: int(sample.operations),
                    failures: int(sample.failures),
                    value: sample.value,
                    unit: strings.intern(&sample.unit),
                    more_is_better: sample.more_is_better,
                    wall_ns: int(sample.wall_ns),
                    cpu_ns: sample.cpu_ns.map(int),
                    queue_ns: sample.queue_ns.map(int),
                    blocked_ns: sample.blocked_ns.map(int),
                    waits: sample.waits.map(int),
                    others_cpu_ns: sample.others_cpu_ns.map(int),
                    p50_ns: sample.p50_ns.map(int),
                    p95_ns: sample.p95_ns.map(int),
                    p99_ns: sample.p99_ns.map(int),
                    max_ns: sample.max_ns.map(int),
                });
            }
            for suspect in &result.suspects {
                suspects.push(ProbeSuspectRow {
                    file,
                    probe,
                    state,
                    name: strings.intern(&suspect.name),
                    process: suspect.process.map(i64::from),
                    kind: strings.intern(&suspect.kind),
                    confidence: strings.intern(&suspect.confidence),
                    cpu_ns: suspect.cpu_ns.map(int),
                    blocked_ns: suspect.blocked_ns.map(int),
                    evidence: strings.intern(&suspect.evidence.join("; ")),
                });
            }
        }
        for one in summary::series(outcome) {
            let (low, high) = ends(one.interval);
            series.push(ProbeSeriesRow {
                file,
                probe: strings.intern(&one.key.probe),
                state: text(&mut strings, &one.key.state),
                measure: strings.intern(&one.key.measure),
                variant: text(&mut strings, &one.key.variant),
                n: one.key.n,
                rounds: one.rounds.len() as i64,
                samples: int(one.samples),
                operations: int(one.operations),
                failures: int(one.failures),
                unit: strings.intern(&one.unit),
                more_is_better: one.more_is_better,
                typical: one.median,
                typical_low: low,
                typical_high: high,
                mean: one.mean,
                spread_percent: one.spread.map(|spread| spread * 100.0),
                p50_ns: one.p50_ns.map(float),
                p95_ns: one.p95_ns.map(float),
                p99_ns: one.p99_ns.map(float),
                cpu_ns: one.cpu_ns.map(float),
                blocked_ns: one.blocked_ns.map(float),
                queue_ns: one.queue_ns.map(float),
                waits: one.waits,
            });
        }
        for one in law::curves(outcome, scale) {
            let (low, high) = ends(one.growth.exponent);
            laws.push(ProbeLawRow {
                file,
                probe: strings.intern(&one.probe),
                state: text(&mut strings, &one.state),
                measure: strings.intern(&one.measure),
                variant: text(&mut strings, &one.variant),
                n_is: strings.intern(&one.n_is),
                cost: strings.intern(one.cost.name()),
                unit: strings.intern(&one.unit),
                points: one.growth.points as i64,
                rounds: one.rounds as i64,
                n_from: one.growth.range.0,
                n_to: one.growth.range.1,
                verdict: strings.intern(one.growth.verdict.name()),
                doubt: one.growth.doubt.map(|doubt| strings.intern(doubt.text())),
                law: strings.intern(one.growth.law.name()),
                offset: one.growth.a,
                factor: one.growth.b,
                exponent: one.growth.exponent.map(|exponent| exponent.value),
                exponent_low: low,
                exponent_high: high,
                super_percent: one.growth.super_weight * 100.0,
                scale: one.scale,
                one_at_scale: one.one_at_scale(),
                all_at_scale: one.all_at_scale(),
            });
        }
    }
    for one in comparison.iter().flat_map(|comparison| &comparison.differences) {
        let (low, high) = ends(one.ratio);
        let (more_low, more_high) = ends(one.difference);
        let (mean_low, mean_high) = ends(one.mean_more);
        differences.push(ProbeDifferenceRow {
            probe: strings.intern(&one.probe),
            measure: strings.intern(&one.measure),
            variant: text(&mut strings, &one.variant),
            n: one.n,
            sizes: one.sizes as i64,
            unit: strings.intern(&one.unit),
            paired: one.paired,
            rounds_before: one.rounds[0] as i64,
            rounds_after: one.rounds[1] as i64,
            before: one.typical[0],
            after: one.typical[1],
            difference: one.difference.map(|d| d.value),
            difference_low: more_low,
            difference_high: more_high,
            ratio: one.ratio.map(|ratio| ratio.value),
            ratio_low: low,
            ratio_high: high,
            mean_before: finite(one.mean[0]),
            mean_after: finite(one.mean[1]),
            mean_difference_low: mean_low,
            mean_difference_high: mean_high,
            mean_ratio: one.mean_ratio,
            p: one.p,
            floor_percent: one.floor.map(|floor| (floor - 1.0) * 100.0),
            verdict: strings.intern(one.verdict.name()),
            cpu_before_ns: one.cpu_ns[0].map(float),
            cpu_after_ns: one.cpu_ns[1].map(float),
            others_cpu_before_ns: one.others_cpu_ns[0].map(float),
            others_cpu_after_ns: one.others_cpu_ns[1].map(float),
            blocked_before_ns: one.blocked_ns[0].map(float),
            blocked_after_ns: one.blocked_ns[1].map(float),
        });
    }
    let texts = strings.freeze().map_err(TableError::texts)?;
    let mut db = Database::new();
    for table in [
        runs.finish(&texts)?,
        series.finish(&texts)?,
        laws.finish(&texts)?,
        machines.finish(&texts)?,
        products.finish(&texts)?,
        suspects.finish(&texts)?,
        differences.finish(&texts)?,
    ] {
        db.insert(table);
    }
    Ok(db)
}

fn text(strings: &mut Strings, text: &str) -> Option<Sym> {
    (!text.is_empty()).then(|| strings.intern(text))
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Times of an operation are fractions of nanoseconds; columns have whole ones.
fn float(ns: f64) -> i64 {
    ns.round() as i64
}

fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

fn ends(interval: Option<Interval>) -> (Option<f64>, Option<f64>) {
    let end = |of: fn(&Interval) -> f64| interval.as_ref().map(of).filter(|end| end.is_finite());
    (end(|i| i.low), end(|i| i.high))
}
