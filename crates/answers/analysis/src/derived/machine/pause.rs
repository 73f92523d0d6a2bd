//! Pauses in which nothing was recorded of any processor: whether the machine stood still, or records are missing.

use etwhy_table::{Database, RowOf};
use etwhy_trace::catalog::{kernel_class::KernelClassRow, unobserved::UnobservedRow};
use std::collections::BTreeSet;

/// Classes whose events never cease while a machine runs, beside its samples.
const CEASELESS: [&str; 5] = ["CSWITCH", "DPC", "INTERRUPT", "DISPATCHER", "SYSCALL"];
/// A class with fewer events pauses by chance.
const LEAST_EVENTS: i64 = 100;

/// The longest pause of the samples of all processors, and when it began if other classes paused as well: samples may pause by themselves.
pub(super) fn pause(db: &Database) -> (i64, Option<i64>) {
    let classes = db.read_or_empty::<KernelClassRow>();
    let Some(samples) = classes.iter().find(|class| class.class() == "PROFILE") else { return (0, None) };
    let (pause, quarter) = (samples.pause_ns(), samples.pause_ns() / 4);
    let paused = |start: i64, class: RowOf<'_, '_, KernelClassRow>| {
        class.pause_start_ns().is_some_and(|other| {
            let end = other.saturating_add(class.pause_ns());
            other.saturating_sub(start) <= quarter
                && start.saturating_add(pause).saturating_sub(end) <= quarter
        })
    };
    let ceaseless = |class: &RowOf<'_, '_, KernelClassRow>| {
        CEASELESS.contains(&class.class()) && class.events() >= LEAST_EVENTS
    };
    let others: Vec<_> = classes.iter().filter(ceaseless).collect();
    let all_paused = |start: i64| !others.is_empty() && others.iter().all(|&class| paused(start, class));
    (pause, samples.pause_start_ns().filter(|&start| all_paused(start)))
}

/// A shorter pause of all samples is none, as for the finding `machine.stall`.
const LEAST_STILL_NS: i64 = 10_000_000;
/// Where samples cover less than this part of the processors' time outside the pause, idle processors are not sampled.
const SAMPLED_SHARE: f64 = 0.6;

/// How long a machine of so many processors, with their recorded time, stood still in a pause of its samples, which cover so much of that time.
pub(super) fn stood_still_ns(pause: i64, interval: i64, sampled: i64, (cpus, elapsed): (i64, i64)) -> i64 {
    let outside = elapsed as f64 - cpus as f64 * pause as f64;
    if pause < LEAST_STILL_NS || (sampled as f64) < SAMPLED_SHARE * outside {
        return 0;
    }
    pause.saturating_sub(interval).max(0)
}

/// Whether records that are missing, and no stop of the machine, may be why nobody was sampled in a pause (its start and length), which
/// lacks so many samples. Ranges without records are known by their processors, and a processor without any in the pause stood still. Of
/// single events that found no buffer nobody may know when they came; fewer than the samples that the pause lacks do not make one.
pub(super) fn may_be_loss(
    db: &Database,
    (start, pause): (i64, i64),
    samples: i64,
    cpus: i64,
    (events, buffers): (i64, i64),
) -> bool {
    let gaps = db.read_or_empty::<UnobservedRow>();
    if gaps.is_empty() {
        return buffers > 0 || (events > 0 && events >= samples);
    }
    let end = start.saturating_add(pause);
    let in_pause =
        gaps.iter().filter(|gap| gap.start_ns() < end && gap.start_ns().saturating_add(gap.dur_ns()) > start);
    let processors: BTreeSet<i64> = in_pause.map(|gap| gap.cpu()).collect();
    i64::try_from(processors.len()).unwrap_or(i64::MAX) >= cpus
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use Value::{I64 as N, Text as T};
    use etwhy_table::Value;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_machine_stands_still_where_idle_processors_are_sampled() {
        const MS: i64 = 1_000_000;
        // Four processors and 6 s, after which somebody set the clock by an hour.
        let whole = (4, 4 * 3606 * S);
        assert_eq!(stood_still_ns(3600 * S + MS, MS, 24 * S, whole), 3600 * S);
        assert_eq!(stood_still_ns(3600 * S + MS, MS, 3 * S, whole), 0);
        // A pause of a moment counts from ten milliseconds on.
        assert_eq!([9, 12].map(|ms| stood_still_ns(ms * MS, MS, 24 * S, (4, 24 * S))), [0, 11 * MS]);
        assert_eq!(stood_still_ns(i64::MAX, MS, 0, (i64::MAX, i64::MAX)), i64::MAX - MS);
        assert_eq!(stood_still_ns(0, 0, 0, (0, 0)), 0);
    }

    #[test]
    fn the_machine_stands_still_where_all_events_pause() {
        let from = |switches: (i64, i64), dpcs: i64| {
            let mut db = Database::new();
            let row = |class, events, (start, pause)| vec![T(class), N(events), N(start), N(pause)];
            let rows = [
                row("PROFILE", 8000, (2 * S, 4 * S)),
                row("CSWITCH", 4000, switches),
                row("DPC", dpcs, (0, S / 10)),
            ];
            db.insert(table("kernel_class", "class events pause_start_ns pause_ns", &rows));
            pause(&db)
        };
        assert_eq!(from((2 * S, 4 * S), 9), (4 * S, Some(2 * S)));
        assert_eq!(from((S, 5 * S), 9), (4 * S, Some(2 * S)));
        assert_eq!(from((4 * S, 2 * S), 9), (4 * S, None), "switches went on for half of it");
        assert_eq!(from((2 * S, 2 * S), 9), (4 * S, None));
        assert_eq!(from((2 * S, 4 * S), 900), (4 * S, None), "DPCs never paused");
        assert_eq!(pause(&Database::new()), (0, None));
        let mut samples = Database::new();
        let row = vec![T("PROFILE"), N(8000), N(2 * S), N(4 * S)];
        samples.insert(table("kernel_class", "class events pause_start_ns pause_ns", &[row]));
        assert_eq!(pause(&samples), (4 * S, None), "samples alone");
    }

    #[test]
    fn records_that_are_missing_elsewhere_do_not_hide_a_stall() {
        // Two processors stand still from 2 s to 4 s, which lacks 4000 samples.
        let hides = |gaps: &[(i64, i64, i64)], events: i64, buffers: i64| {
            let mut db = Database::new();
            let rows: Vec<_> = gaps.iter().map(|&(start, dur, cpu)| vec![N(start), N(dur), N(cpu)]).collect();
            db.insert(table("unobserved", "start_ns dur_ns cpu", &rows));
            may_be_loss(&db, (2 * S, 2 * S), 4000, 2, (events, buffers))
        };
        assert!(!hides(&[], 0, 0));
        // Single events, too few for a pause; enough for it; buffers of which nobody knows when.
        assert_eq!(
            [(22, 0), (4000, 0), (0, 1)].map(|(events, buffers)| hides(&[], events, buffers)),
            [false, true, true]
        );
        let (before, first, second) = ((S, S / 2, 0), (S, 4 * S, 0), (3 * S, S / 2, 1));
        assert!(!hides(&[before], 9000, 3));
        assert!(!hides(&[before, first], 0, 3), "the second processor was observed, and stood still as well");
        assert!(hides(&[first, second], 0, 3));
    }
}
