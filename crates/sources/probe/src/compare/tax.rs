//! The tax: what a difference costs somebody who does this all day, in sentences for people who are no experts.

use super::{Comparison, Difference, Verdict};
use crate::amount::{factor, time, value};
use etwhy_base::units::{decimal, energy_range, energy_unit, thousands};
use etwhy_knowledge::{WattGroup, watt_groups, watts_of};
use etwhy_stats::Interval;

/// Operations per day that are assumed if nobody says more: about what a build of some thousand files, or a day of office
/// work with a synchronised folder, opens. It is an assumption, and said with each figure.
pub const PER_DAY: f64 = 10_000.0;

/// If not even such a factor can be excluded, nothing was learned: rounds of one side differ too much, as when a product came up late.
/// That is not to be called *none*.
const LARGEST_NONE: f64 = 2.0;

/// Up to which factor a tax may be there although none was shown, if that is a lot.
fn unknown(one: &Difference) -> Option<f64> {
    let high = one.sure().filter(|_| one.verdict == Verdict::NotShown)?.high;
    (high > LARGEST_NONE).then_some(high)
}

/// What a difference costs.
#[derive(Clone, Debug)]
pub struct Tax {
    /// The sentence.
    pub sentence: String,
    /// Time per day, nanoseconds: the difference of means times the operations of a day, with its interval; absent if the interval holds 0.
    pub day_ns: Option<Interval>,
    /// CPU time per day, of the program and of those who were seen at work for it, as far as it can be separated by operation.
    pub day_cpu_ns: Option<Interval>,
    /// Energy of that CPU time per day: the most likely, and what one machine in ten stays below and goes above.
    pub day_joules: Option<[f64; 3]>,
}

/// Watts of a busy logical processor of this machine, and whether its kind is known.
fn watts(cpu: &str) -> (Option<&'static WattGroup>, bool) {
    match watts_of(cpu) {
        Some(group) => (Some(group), true),
        None => (watt_groups().first(), false),
    }
}

/// The tax of one difference; `per_day` operations.
pub fn estimate(comparison: &Comparison, one: &Difference, per_day: f64) -> Tax {
    let [before, after] = one.typical;
    let what = format!("{}: {}", one.probe, one.title());
    let shown = |v: f64| value(v, &one.unit);
    let mut tax = Tax { sentence: String::new(), day_ns: None, day_cpu_ns: None, day_joules: None };
    let [off, on] = &comparison.labels;
    tax.sentence = match one.verdict {
        Verdict::TooFew => format!(
            "{what}: cannot tell. {} against {}, of {} and {} rounds; a statement needs 6 on each side: run with --rounds 6 or more.",
            shown(after),
            shown(before),
            one.rounds[1],
            one.rounds[0]
        ),
        Verdict::NotShown if unknown(one).is_some() => format!(
            "{what}: cannot tell. {} ({on}) and {} ({off}): no difference was shown, and one of up to {} is not excluded, because rounds in \
             the same state differ too much. More rounds help, --ab helps more.",
            shown(after),
            shown(before),
            unknown(one).map_or_else(String::new, factor)
        ),
        Verdict::NotShown => {
            let limit = match one.sure() {
                Some(sure) if sure.high > 1.0 => {
                    format!(" If there is a tax, it is at most {}.", factor(sure.high))
                }
                Some(_) => " It is not slower.".to_owned(),
                None => String::new(),
            };
            format!("{what}: none measurable. {} ({on}) and {} ({off}).{limit}", shown(after), shown(before))
        }
        Verdict::Small => format!(
            "{what}: none measurable. {} ({on}) and {} ({off}), {}; two rounds in the same state differ as much here ({}).",
            shown(after),
            shown(before),
            one.ratio.map_or_else(String::new, |ratio| factor(ratio.value)),
            one.floor.map_or_else(String::new, |floor| format!("{:.0} %", (floor - 1.0) * 100.0))
        ),
        Verdict::Slower | Verdict::Faster => changed(one, off, on, &what),
    };
    let is_time = one.unit == "ns" && !one.more_is_better;
    if is_time && matches!(one.verdict, Verdict::Slower | Verdict::Faster) {
        day(&mut tax, comparison, one, per_day);
    }
    tax
}

fn changed(one: &Difference, off: &str, on: &str, what: &str) -> String {
    let [before, after] = one.typical;
    let slower = one.verdict == Verdict::Slower;
    let how =
        match one.sure().map(|sure| if slower { (sure.value, sure.low) } else { (sure.value, sure.high) }) {
            // The end of the interval that is nearer to no difference.
            Some((ratio, least)) => format!(" ({}, at least {})", factor(ratio), factor(least)),
            None => String::new(),
        };
    format!(
        "{what} took {} ({on}) instead of {} ({off}){how}.",
        value(after, &one.unit),
        value(before, &one.unit)
    )
    .replace(" took ", if one.unit == "ns" { " took " } else { " was " })
}

/// What so many operations cost together. A median times their number would leave out rare slow ones: means are what adds up.
fn day(tax: &mut Tax, comparison: &Comparison, one: &Difference, per_day: f64) {
    let count = if per_day.fract() == 0.0 { thousands(per_day as i128) } else { decimal(per_day, 1) };
    let Some(more) = one.mean_more.map(|more| times(more, per_day)) else { return };
    if more.holds(0.0) {
        tax.sentence.push_str(&format!(
            " What {count} a day cost together cannot be determined: from {} saved to {} lost, because rare slow operations decide it.",
            time(-more.low),
            time(more.high)
        ));
        return;
    }
    tax.day_ns = Some(more);
    let word = if more.value >= 0.0 { "cost" } else { "save" };
    tax.sentence.push_str(&format!(" {count} a day {word} {}", range(more)));
    if let Some(cpu) = one.cpu_more.map(|cpu| times(cpu, per_day)).filter(|cpu| cpu.low > 0.0) {
        tax.day_cpu_ns = Some(cpu);
        let (group, known) = watts(&comparison.cpu);
        if let Some(group) = group {
            let energy = [group.p50, group.p10, group.p90].map(|watts| watts * cpu.value / 1e9);
            tax.day_joules = Some(energy);
            let [likely, ..] = energy;
            tax.sentence.push_str(&format!(
                ", {} of CPU time and about {}{}",
                range(cpu),
                energy_range(energy, energy_unit(likely)),
                if known { "" } else { " for any kind of machine" }
            ));
        }
    }
    tax.sentence.push('.');
    if let Some(names) = comparison.not_separated.get(&one.probe) {
        tax.sentence.push_str(&format!(
            " CPU time of {names} is not part of it: these results do not separate it by operation."
        ));
    }
}

fn times(one: Interval, count: f64) -> Interval {
    Interval { value: one.value * count, low: one.low * count, high: one.high * count }
}

/// A time with its interval, without a sign.
fn range(ns: Interval) -> String {
    let (near, far) = (ns.low.abs().min(ns.high.abs()), ns.low.abs().max(ns.high.abs()));
    format!("{} ({}–{})", time(ns.value.abs()), time(near), time(far))
}

/// The sentence of the whole comparison.
pub fn summary(comparison: &Comparison) -> String {
    let all = &comparison.differences;
    let of = |verdict: Verdict| all.iter().filter(move |d| d.verdict == verdict);
    let worst = of(Verdict::Slower).max_by(|a, b| {
        let ratio = |d: &Difference| d.ratio.map_or(f64::INFINITY, |r| r.low);
        ratio(a).total_cmp(&ratio(b))
    });
    let [off, on] = &comparison.labels;
    let counts = format!(
        "{} compared: {} slower, {} faster, {} without a difference that counts",
        all.len(),
        of(Verdict::Slower).count(),
        of(Verdict::Faster).count(),
        of(Verdict::NotShown).count() + of(Verdict::Small).count()
    );
    match worst {
        Some(worst) => {
            let [before, after] = worst.typical;
            let sure = worst
                .sure()
                .map(|s| format!(" ({}, at least {})", factor(s.value), factor(s.low)))
                .unwrap_or_default();
            format!(
                "{}, {}: {} ({on}) instead of {} ({off}){sure}. {counts}.",
                worst.probe,
                worst.title(),
                value(after, &worst.unit),
                value(before, &worst.unit)
            )
        }
        None if of(Verdict::TooFew).count() == all.len() => {
            "Cannot tell: there are too few rounds. Run with --rounds 6 or more.".to_owned()
        }
        None => match all.iter().filter_map(unknown).max_by(f64::total_cmp) {
            Some(high) => format!(
                "Cannot tell: no tax was shown, and one of up to {} is not excluded, because rounds in the same state differ too much. \
                 {counts}.",
                factor(high)
            ),
            None => format!("Tax: none measurable. {counts}."),
        },
    }
}
