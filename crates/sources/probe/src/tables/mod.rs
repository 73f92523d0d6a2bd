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

/// A row: cells of its own, and those that are called as fields of other structs.
macro_rules! row {
    ($strings:ident, $Row:ident { $($own:ident $(: $value:expr)?),* } $(, $from:expr => { $($field:ident),* })*) => {
        $Row { $($own $(: $value)?,)* $($($field: Cell::cell(&$from.$field, &mut $strings),)*)* }
    };
}

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
            machines.push(row!(strings, ProbeMachineRow { file }, fact => { name, value }));
        }
        for product in &outcome.products {
            let row =
                row!(strings, ProbeProductRow { file }, product => { name, vendor, kind, version, evidence });
            products.push(row);
        }
        for result in &outcome.probes {
            let (probe, state) = (strings.intern(&result.probe), result.state.cell(&mut strings));
            for sample in &result.samples {
                runs.push(row!(
                    strings,
                    ProbeRunRow { file, probe, state },
                    sample.case => { measure, variant, n },
                    sample => {
                        round, start_ns, operations, failures, value, unit, more_is_better,
                        wall_ns, cpu_ns, queue_ns, blocked_ns, waits, others_cpu_ns,
                        p50_ns, p95_ns, p99_ns, max_ns
                    }
                ));
            }
            for suspect in &result.suspects {
                let evidence = strings.intern(&suspect.evidence.join("; "));
                suspects.push(row!(
                    strings,
                    ProbeSuspectRow { file, probe, state, evidence },
                    suspect => { name, process, kind, confidence, cpu_ns, blocked_ns }
                ));
            }
        }
        for one in summary::series(outcome) {
            let (typical_low, typical_high) = ends(one.interval);
            let spread_percent = one.spread.map(|spread| spread * 100.0);
            let (typical, rounds) = (one.median, one.rounds.len() as i64);
            series.push(row!(
                strings,
                ProbeSeriesRow { file, typical, typical_low, typical_high, spread_percent, rounds },
                one.key => { probe, state, measure, variant, n },
                one => {
                    samples, operations, failures, unit, more_is_better, mean,
                    p50_ns, p95_ns, p99_ns, cpu_ns, blocked_ns, queue_ns, waits
                }
            ));
        }
        for one in law::curves(outcome, scale) {
            let (growth, (exponent_low, exponent_high)) = (&one.growth, ends(one.growth.exponent));
            laws.push(row!(
                strings,
                ProbeLawRow {
                    file,
                    cost: strings.intern(one.cost.name()),
                    n_from: growth.range.0,
                    n_to: growth.range.1,
                    verdict: strings.intern(growth.verdict.name()),
                    doubt: growth.doubt.map(|doubt| strings.intern(doubt.text())),
                    law: strings.intern(growth.law.name()),
                    offset: growth.a,
                    factor: growth.b,
                    exponent: growth.exponent.map(|exponent| exponent.value),
                    exponent_low,
                    exponent_high,
                    super_percent: growth.super_weight * 100.0,
                    one_at_scale: one.one_at_scale(),
                    all_at_scale: one.all_at_scale()
                },
                growth => { points },
                one => { probe, state, measure, variant, n_is, unit, rounds, scale }
            ));
        }
    }
    for one in comparison.iter().flat_map(|comparison| &comparison.differences) {
        let (ratio_low, ratio_high) = ends(one.ratio);
        let (difference_low, difference_high) = ends(one.difference);
        let (mean_difference_low, mean_difference_high) = ends(one.mean_more);
        let [rounds_before, rounds_after] = one.rounds.map(|rounds| rounds as i64);
        let [before, after] = one.typical;
        let [mean_before, mean_after] = one.mean.map(finite);
        let [cpu_before_ns, cpu_after_ns] = one.cpu_ns.map(|ns| ns.map(float));
        let [others_cpu_before_ns, others_cpu_after_ns] = one.others_cpu_ns.map(|ns| ns.map(float));
        let [blocked_before_ns, blocked_after_ns] = one.blocked_ns.map(|ns| ns.map(float));
        differences.push(row!(
            strings,
            ProbeDifferenceRow {
                rounds_before, rounds_after, before, after, difference_low, difference_high, ratio_low, ratio_high,
                mean_before, mean_after, mean_difference_low, mean_difference_high, cpu_before_ns, cpu_after_ns,
                others_cpu_before_ns, others_cpu_after_ns, blocked_before_ns, blocked_after_ns,
                difference: one.difference.map(|d| d.value),
                ratio: one.ratio.map(|ratio| ratio.value),
                floor_percent: one.floor.map(|floor| (floor - 1.0) * 100.0),
                verdict: strings.intern(one.verdict.name())
            },
            one => { probe, measure, variant, n, sizes, unit, paired, mean_ratio, p }
        ));
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

/// A field that becomes a cell: the same name, the type of the column.
trait Cell<C> {
    fn cell(&self, strings: &mut Strings) -> C;
}

/// Fields whose cells need no thought.
macro_rules! cells {
    ($($Field:ty => $Column:ty: |$field:ident, $strings:pat_param| $cell:expr;)*) => {$(
        impl Cell<$Column> for $Field {
            fn cell(&self, $strings: &mut Strings) -> $Column {
                let $field = self;
                $cell
            }
        }
    )*};
}

cells! {
    String => Sym: |text, strings| strings.intern(text);
    String => Option<Sym>: |text, strings| (!text.is_empty()).then(|| strings.intern(text));
    Option<String> => Option<Sym>: |text, strings| text.as_deref().map(|text| strings.intern(text));
    bool => bool: |yes, _| *yes;
    f64 => f64: |number, _| *number;
    Option<f64> => Option<f64>: |number, _| *number;
    Option<f64> => Option<i64>: |ns, _| ns.map(float);
    u32 => i64: |number, _| i64::from(*number);
    Option<u32> => Option<i64>: |number, _| number.map(i64::from);
    usize => i64: |number, _| *number as i64;
    u64 => i64: |number, _| int(*number);
    Option<u64> => Option<i64>: |number, _| number.map(int);
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
