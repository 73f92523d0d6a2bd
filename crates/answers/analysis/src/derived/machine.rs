//! The machine in one row: what shares are shares of.
//!
//! # How it is computed
//!
//! From `trace` (the longest file counts), `cpu` and `stack_cost`. What was not observed is neither busy nor idle: a share of CPU time
//! is one of the time in which that kind of event was recorded, and this table is the only place that says how long that was.
//!
//! * By samples (`sampled_capacity_ns`): the time of all samples, those of idle processors included. Where Windows leaves sleeping
//!   processors without samples, the idle time that context switches show on top belongs to it, as far as samples were taken at
//!   all. If idle processors have neither samples nor switches, it is processors times the time from the first to the last sample.
//! * By context switches (`switched_capacity_ns`): the time of threads, idle threads, DPCs and ISRs on processors that switched.
//! * By events of DPCs and ISRs (`event_capacity_ns`): they come from the same session of the kernel, so it is the longer one of
//!   these two; processors times duration if there are neither.
//!
//! `capacity_ns` is that of what `busy_ns` rests on.
//!
//! Rates and shares of the trace's own time are of `observed_ns`: the duration, less the end of the trace from which on no kernel events came
//! although others did (`kernel_class.stopped`: the session was taken or stopped), less its beginning if by the same measure none came yet (a
//! circular recording has overwritten it, or the session began later), and less what buffers that are missing left unobserved.
//! The latter only where they are spread evenly over time and processors, so that a mean says something: how much of it was
//! not observed is measured by samples or context switches (`event_capacity_ns`), and is no more than the ranges of `unobserved`. Else a rate
//! is of the whole time, and so a lower bound.
//!
//! `stood_still_ns` is the longest pause of all samples (`kernel_class`), less one interval: what seems to have run through it (a DPC, a
//! garbage collection, a wait) took that much less. It counts from 10 ms, and only where samples are taken of idle processors too: samples
//! cover 60 % of the processors' time outside the pause. On an idle machine that nobody samples a pause means nothing. A wait, a transfer or
//! a callback that holds this moment is the machine's and nobody's only where `stood_still_start_ns` is known: no other class of events that
//! never ceases went on for more than a quarter of the pause, and losses do not explain it. Ranges of `unobserved` do if every
//! processor has one in the pause; lost buffers of which no range is known do; lost events of which none is known do if they
//! are as many as the samples that the pause lacks. A pause that is known is in none of `observed_ns`, `sampled_capacity_ns`, and idle time.

mod pause;

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use crate::gaps::Gaps;
use crate::operators::{add, span};
use etwhy_table::{Database, Memory, RowOf, Rows, Strings, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::{
    cpu_time::CpuRow,
    kernel_class::{self, KernelClassRow},
    stack::StackRow,
    stack_cost::StackCostRow,
    trace::TraceRow,
    unobserved::UnobservedRow,
};
use pause::{may_be_loss, pause, stood_still_ns};

define_table! {
    /// The machine and the trace in one row: what shares are shares of.
    ///
    /// Empty if no trace was read.
    pub table MACHINE: MachineRow = "machine" {
        version: 3,
        /// Windows build number.
        os_build: i32 [None, Other],
        /// Logical processors.
        cpus: i32 [Count, Count],
        /// NUMA nodes; 1 where not recorded.
        numa_nodes: i32 [Count, Count],
        /// Memory, where recorded.
        memory_bytes: Option<i64> [Bytes, Bytes],
        /// From the first to the last event.
        duration_ns: i64 [Ns, Duration],
        /// Part of it in which kernel events were recorded and the machine did not stand still, a mean over the processors: what rates are of.
        /// Nothing is taken off for losses that are not even; null in extracts and stores of before it was known.
        observed_ns: Option<i64> [Ns, Duration],
        /// Longest time in which no processor took a sample although idle ones are sampled: the host paused the machine, or somebody set the
        /// clock that the trace takes its times from. 0 if there was none of 10 ms; null in extracts and stores of before it was known.
        stood_still_ns: Option<i64> [Ns, Duration],
        /// When that began. Null if the samples alone may have paused: other kernel events went on, or what was lost may have been all of them.
        stood_still_start_ns: Option<i64> [Ns, Time],
        /// Processors times duration, whether observed or not.
        elapsed_cpu_ns: i64 [Ns, Duration],
        /// Observed time of processors, of which `busy_ns` is a part: what shares of CPU time are shares of. Where neither samples nor context
        /// switches were recorded, as `elapsed_cpu_ns`.
        capacity_ns: i64 [Ns, Duration],
        /// Time of processors that samples observed; null without samples.
        sampled_capacity_ns: Option<i64> [Ns, Duration],
        /// Time of processors that context switches observed; null without.
        switched_capacity_ns: Option<i64> [Ns, Duration],
        /// Time of processors in which DPCs and ISRs would have been recorded.
        event_capacity_ns: i64 [Ns, Duration],
        /// Time of samples that were not idle; null without samples.
        sampled_busy_ns: Option<i64> [Ns, Duration],
        /// Part of it whose samples have a stack.
        sampled_stack_ns: i64 [Ns, Duration],
        /// Time of threads, DPCs and ISRs by context switches; null without.
        switched_busy_ns: Option<i64> [Ns, Duration],
        /// Busy time: by samples where there are any, else by context switches.
        busy_ns: Option<i64> [Ns, Duration],
        /// The rest of `capacity_ns`; null where idle time cannot be distinguished from missing samples.
        idle_ns: Option<i64> [Ns, Duration],
        /// `busy_ns` as share of `capacity_ns`.
        busy_percent: Option<f64> [Percent, Other],
        /// Interval of CPU samples, where recorded.
        sample_interval_ns: Option<i64> [Ns, Duration],
        /// Events lost, as the headers say.
        events_lost: i64 [Count, Count],
        /// Buffers lost, as the headers say.
        buffers_lost: i64 [Count, Count],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&MACHINE],
    reads: reads::<(TraceRow, CpuRow, StackCostRow, StackRow, UnobservedRow, KernelClassRow)>,
    on_demand: false,
    make,
};

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<MachineRow>::new(memory);
    let trace = db.read_or_empty::<TraceRow>();
    if !trace.is_empty() {
        rows.push(row(db, &trace));
    }
    Ok(vec![rows.finish(&freeze_plain(Strings::new())?)?])
}

/// The rows of the machine of the largest file: facts of a machine are not put together from those of two.
fn of_one_machine<'r, 'a>(trace: &'r Rows<'a, TraceRow>) -> Vec<RowOf<'r, 'a, TraceRow>> {
    let largest = trace
        .iter()
        .reduce(|a, b| if b.size_bytes() > a.size_bytes() { b } else { a })
        .map(|row| row.machine_id());
    trace.iter().filter(|row| Some(row.machine_id()) == largest).collect()
}

fn row(db: &Database, trace: &Rows<'_, TraceRow>) -> MachineRow {
    let all = of_one_machine(trace);
    macro_rules! most {
        ($column:ident) => {
            all.iter().filter_map(|row| Option::<i64>::from(row.$column())).max()
        };
    }
    let interval = most!(sample_interval_ns).unwrap_or(DEFAULT_INTERVAL_NS);
    let observed = Observed::read(db, interval);
    // Without a recorded stack the instruction pointer alone is one.
    let bare: Vec<bool> = db.read_or_empty::<StackRow>().iter().map(|row| row.leaf_only()).collect();
    let has_stack = |id: Option<i64>| {
        id.is_some_and(|id| !bare.get(usize::try_from(id).unwrap_or(0)).copied().unwrap_or(false))
    };
    let mut with_stack = 0i64;
    for row in db.read_or_empty::<StackCostRow>().iter().filter(|&row| has_stack(row.stack_id())) {
        with_stack = with_stack.saturating_add(row.weight_ns());
    }
    let cpus = most!(cpus).unwrap_or(0).max(observed.processors);
    let duration = most!(duration_ns).unwrap_or(0);
    let elapsed = duration.saturating_mul(cpus);
    let silent = unrecorded_ns(db);
    let recorded = duration.saturating_sub(silent).max(0).saturating_mul(cpus);
    let (events_lost, buffers_lost) = lost(&all);
    let gaps = Gaps::read(db);
    let (still, still_from) =
        stood_still(db, &observed, (cpus, recorded), interval, (events_lost, buffers_lost));
    let paused = still_from.map_or(0, |_| still);
    let sampled = observed.sampled_capacity(cpus, paused);
    let switched = observed.switched.map(|(busy, idle)| busy.saturating_add(idle));
    let sampled_busy = sampled.map(|_| observed.sampled_busy);
    let switched_busy = observed.switched.map(|(busy, _)| busy);
    let capacity = sampled.or(switched).unwrap_or(elapsed);
    let busy = sampled_busy.or(switched_busy);
    let running = switched.map(|ns| ns.saturating_sub(paused.saturating_mul(observed.switching)).max(0));
    let events = sampled.max(running).unwrap_or(elapsed);
    let narrow = |n: Option<i64>| n.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    MachineRow {
        os_build: narrow(most!(os_build)),
        cpus: narrow(Some(cpus)),
        numa_nodes: narrow(most!(numa_nodes)).max(1),
        memory_bytes: most!(memory_bytes),
        duration_ns: duration,
        observed_ns: Some(observed_ns(duration, cpus, silent.saturating_add(paused), &gaps, events)),
        stood_still_ns: Some(still),
        stood_still_start_ns: still_from,
        elapsed_cpu_ns: elapsed,
        capacity_ns: capacity,
        sampled_capacity_ns: sampled,
        switched_capacity_ns: switched,
        event_capacity_ns: events,
        sampled_busy_ns: sampled_busy,
        sampled_stack_ns: with_stack,
        switched_busy_ns: switched_busy,
        busy_ns: busy,
        idle_ns: busy.filter(|_| observed.knows_idle()).map(|busy| capacity.saturating_sub(busy)),
        busy_percent: busy.filter(|_| capacity > 0).map(|busy| 100.0 * busy as f64 / capacity as f64),
        sample_interval_ns: most!(sample_interval_ns),
        events_lost,
        buffers_lost,
    }
}

/// Events and buffers lost, as the headers say.
fn lost(all: &[RowOf<'_, '_, TraceRow>]) -> (i64, i64) {
    let events = all.iter().map(|row| row.events_lost()).fold(0, i64::saturating_add);
    let buffers = all.iter().map(|row| row.buffers_lost()).fold(0, i64::saturating_add);
    (events, buffers)
}

/// How long the machine stood still, and since when, where that is known.
fn stood_still(
    db: &Database,
    observed: &Observed,
    (cpus, recorded): (i64, i64),
    interval: i64,
    lost: (i64, i64),
) -> (i64, Option<i64>) {
    let (pause, from) = pause(db);
    let still = stood_still_ns(pause, interval, observed.samples(), (cpus, recorded));
    let samples = cpus.saturating_mul(pause / interval.max(1));
    (still, from.filter(|&from| still > 0 && !may_be_loss(db, (from, pause), samples, cpus, lost)))
}

/// Tables that [`standstill`] reads.
pub(crate) type StandstillRows = (TraceRow, CpuRow, UnobservedRow, KernelClassRow);

/// When the machine stood still, from and to, where that is known: as this table says, without the stacks that other columns need.
pub(crate) fn standstill(db: &Database) -> Option<(i64, i64)> {
    let trace = db.read_or_empty::<TraceRow>();
    let all = of_one_machine(&trace);
    let interval = all.iter().filter_map(|row| row.sample_interval_ns()).max().unwrap_or(DEFAULT_INTERVAL_NS);
    let observed = Observed::read(db, interval);
    let cpus = all.iter().map(|row| row.cpus()).max().unwrap_or(0).max(observed.processors);
    let duration = all.iter().map(|row| row.duration_ns()).max().unwrap_or(0);
    let recorded = duration.saturating_sub(unrecorded_ns(db)).max(0).saturating_mul(cpus);
    let (still, from) = stood_still(db, &observed, (cpus, recorded), interval, lost(&all));
    from.map(|from| (from, from.saturating_add(still)))
}

/// Windows samples once a millisecond unless told otherwise.
const DEFAULT_INTERVAL_NS: i64 = 1_000_000;

/// Processors times duration, without the time in which the whole machine is known to have stood still: nobody could run, or be recorded.
pub fn running_cpu_ns<'a>(machine: RowOf<'a, 'a, MachineRow>) -> i64 {
    let paused = machine.stood_still_start_ns().and_then(|_| machine.stood_still_ns()).unwrap_or(0).max(0);
    machine.elapsed_cpu_ns().saturating_sub(paused.saturating_mul(machine.cpus())).max(0)
}

/// How long no kernel events came although the recording went on: at its start, and at its end.
pub fn silent_ns(db: &Database) -> (i64, i64) {
    let classes = db.read_or_empty::<KernelClassRow>();
    let late = span(db).map_or(0, |span| kernel_class::late_ns(&classes, span));
    if !classes.iter().any(|class| class.stopped()) {
        return (late, 0);
    }
    (late, classes.iter().map(|class| class.silent_ns()).min().unwrap_or(0).max(0))
}

/// For how much of the trace no kernel events were recorded at its ends: nothing was lost there.
pub fn unrecorded_ns(db: &Database) -> i64 {
    let (late, silent) = silent_ns(db);
    late.saturating_add(silent)
}

/// The part of `duration` that rates are of. `silent`: how long no events came although it went on, or the machine stood still. `events`:
/// time of processors in which events were recorded, as samples or switches show it.
fn observed_ns(duration: i64, cpus: i64, silent: i64, gaps: &Gaps, events: i64) -> i64 {
    let most = duration.saturating_sub(silent).max(0);
    if gaps.even(cpus as f64, duration as f64).is_none() || cpus <= 0 {
        return most;
    }
    let least = most as f64 - gaps.total() / cpus as f64;
    (events as f64 / cpus as f64).clamp(least.min(most as f64).max(0.0), most as f64) as i64
}

/// A processor without samples for less than this part of the time was not asleep.
const SLEEPY: i64 = 20;

/// For how long threads of a processor ran without samples; 0 if that may be chance: a twentieth of their time, and four standard
/// deviations of a count of samples (Poisson: the root of time times interval).
fn unsampled(threads: i64, sampled: i64, interval: i64) -> i64 {
    let chance = threads as f64 / 20.0 + 4.0 * (threads as f64 * interval as f64).sqrt();
    let lacking = threads.saturating_sub(sampled).max(0);
    if lacking as f64 > chance { lacking } else { 0 }
}

/// Times of all processors, as samples and context switches show them.
#[derive(Default)]
struct Observed {
    processors: i64,
    sampled_busy: i64,
    sampled_idle: i64,
    /// Busy and idle by context switches.
    switched: Option<(i64, i64)>,
    /// Processors that switched.
    switching: i64,
    /// First and last sample of any processor.
    span: Option<(i64, i64)>,
    /// Of each processor: time of samples, and idle time by switches above that of samples.
    each: Vec<(i64, i64)>,
    /// Of each processor on which threads ran: for how long without samples.
    unsampled: Vec<i64>,
}

impl Observed {
    /// `interval`: from one sample of a processor to the next, ns.
    fn read(db: &Database, interval: i64) -> Observed {
        let mut out = Observed::default();
        for row in &db.read_or_empty::<CpuRow>() {
            out.processors += 1;
            let (thread, idle) = (row.thread_ns().unwrap_or(0).max(0), row.idle_ns().unwrap_or(0).max(0));
            let (busy, free) = (row.sampled_busy_ns().max(0), row.sampled_idle_ns().max(0));
            let lacking = unsampled(thread, busy, interval);
            if row.thread_ns().is_some() {
                out.switching += 1;
                let sums = out.switched.get_or_insert((0, 0));
                for ns in [thread, row.dpc_ns().max(0), row.isr_ns().max(0)] {
                    add(&mut sums.0, ns);
                }
                add(&mut sums.1, idle);
                if thread > 0 {
                    out.unsampled.push(lacking);
                }
            }
            add(&mut out.sampled_busy, busy);
            add(&mut out.sampled_idle, free);
            let unseen = idle.saturating_sub(free).max(0);
            // Where threads ran without samples the processor did not sleep: its idle time was not observed either.
            let unseen = if lacking > 0 { 0 } else { unseen };
            out.each.push((busy.saturating_add(free), unseen));
            if let (Some(first), Some(last)) = (row.first_sample_ns(), row.last_sample_ns()) {
                let (from, to) = out.span.unwrap_or((first, last));
                out.span = Some((from.min(first), to.max(last)));
            }
        }
        out.unsampled.sort_unstable();
        out
    }

    /// The time that samples stand for, of idle processors too.
    fn samples(&self) -> i64 {
        self.sampled_busy.saturating_add(self.sampled_idle)
    }

    /// Time in which no processor took a sample although threads ran: what half of the processors miss is no chance. A machine that
    /// stands still is not idle.
    fn stood_still(&self) -> i64 {
        self.unsampled.get(self.unsampled.len() / 2).copied().unwrap_or(0)
    }

    /// Samples, or context switches, tell idle processors from those that nobody looked at.
    fn knows_idle(&self) -> bool {
        self.sampled_idle > 0 || self.switched.is_some()
    }

    /// The time that samples observed; `None` without samples. `paused`: for so long the whole machine stood still, idle processors as well.
    fn sampled_capacity(&self, cpus: i64, paused: i64) -> Option<i64> {
        let all = self.samples();
        if all <= 0 {
            return None;
        }
        let span = self.span.map_or(0, |(from, to)| to.saturating_sub(from).saturating_sub(paused).max(0));
        if !self.knows_idle() {
            return Some(span.saturating_mul(cpus).max(all));
        }
        let still = self.stood_still().max(paused);
        Some(self.each.iter().fold(0, |sum, &(sampled, unseen)| {
            // A few samples too few are chance.
            let room = span.saturating_sub(sampled).max(0);
            let room = if room >= span / SLEEPY { room } else { 0 };
            let asleep = unseen.saturating_sub(still).max(0).min(room);
            sum.saturating_add(sampled).saturating_add(asleep)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{derived, table};
    use Value::{I64 as N, Text as T};
    use etwhy_table::Value;
    use etwhy_testkit::Are as _;

    const S: i64 = 1_000_000_000;

    #[test]
    fn rates_are_of_the_time_that_was_observed() {
        // Four processors, 10 s, of which 40 ranges of 100 ms each may be missing, evenly or on one processor.
        let even = Gaps::new((0..40).map(|n| (n % 4, 1e8)).collect());
        let one = Gaps::new((0..40).map(|_| (2, 1e8)).collect());
        let none = Gaps::default();
        // Nothing is missing: what samples did not cover is no loss.
        assert_eq!(observed_ns(10 * S, 4, 0, &none, 30 * S), 10 * S);
        // The session was taken halfway.
        assert_eq!(observed_ns(10 * S, 4, 5 * S, &none, 20 * S), 5 * S);
        // As measured, no less than without all ranges, no more than the duration.
        assert_eq!(observed_ns(10 * S, 4, 0, &even, 38 * S), 9 * S + S / 2);
        assert_eq!(observed_ns(10 * S, 4, 0, &even, 12 * S), 9 * S);
        assert_eq!(observed_ns(10 * S, 4, 0, &even, 50 * S), 10 * S);
        assert_eq!(observed_ns(10 * S, 4, 5 * S, &even, 19 * S), 4 * S + 3 * S / 4);
        // Nobody knows what a single processor did.
        assert_eq!(observed_ns(10 * S, 4, 0, &one, 38 * S), 10 * S);
        assert_eq!(observed_ns(0, 0, 0, &none, 0), 0);
    }

    /// What a trace of ten seconds has of the time of two processors: kernel events of these classes, each with its first and last.
    fn observed_of(classes: &[(&'static str, i64, i64)]) -> (i64, (i64, i64)) {
        let mut db = Database::new();
        let trace = vec![N(10 * S), N(2), N(0), N(10 * S)];
        db.insert(table("trace", "duration_ns cpus first_ns last_ns", &[trace]));
        let row = |&(class, first, last): &(&'static str, i64, i64)| {
            vec![
                T(class),
                N(1000),
                N(first),
                N(last),
                N(S / 100),
                N(10 * S - last),
                Value::Bool(10 * S - last > 2 * S),
            ]
        };
        let rows: Vec<_> = classes.iter().map(row).collect();
        let columns = "class events first_ns last_ns pause_ns silent_ns stopped";
        db.insert(table("kernel_class", columns, &rows));
        derived(&mut db, &["machine"]);
        (db.get("machine").unwrap().i64(0, "observed_ns").unwrap(), silent_ns(&db))
    }

    #[test]
    fn rates_are_of_what_a_circular_recording_has_kept() {
        // Neither end is missing.
        assert_eq!(observed_of(&[("CSWITCH", 0, 10 * S)]), (10 * S, (0, 0)));
        // All before the last two seconds is overwritten.
        assert_eq!(
            observed_of(&[("CSWITCH", 8 * S, 10 * S), ("PROFILE", 9 * S, 10 * S)]),
            (2 * S, (8 * S, 0))
        );
        // The session began late and was taken, beside others.
        assert_eq!(observed_of(&[("PROFILE", 3 * S, 6 * S)]), (3 * S, (3 * S, 4 * S)));
        // Disk transfers were recorded before the switches; a class that comes as it likes says nothing.
        assert_eq!(observed_of(&[("CSWITCH", 8 * S, 10 * S), ("DISK_IO", 0, 9 * S)]).0, 10 * S);
        assert_eq!(observed_of(&[("DISK_IO", 8 * S, 10 * S)]).0, 10 * S);
    }

    #[test]
    fn a_known_pause_is_in_no_time_that_was_observed() {
        let of = |lost: i64| {
            let mut db = Database::new();
            let trace = vec![N(10 * S), N(2), N(0), N(10 * S), N(lost)];
            db.insert(table("trace", "duration_ns cpus first_ns last_ns events_lost", &[trace]));
            // A thread of the first processor had it from 2 s to 6 s, in which nobody ran.
            let cpu = |cpu, ran, idle| vec![N(cpu), N(ran), N(idle), N(S), N(5 * S), N(0), N(10 * S)];
            let columns =
                "cpu thread_ns idle_ns sampled_busy_ns sampled_idle_ns first_sample_ns last_sample_ns";
            db.insert(table("cpu", columns, &[cpu(0, 5 * S, 5 * S), cpu(1, S, 9 * S)]));
            let class = |class: &'static str| {
                vec![T(class), N(9000), N(0), N(10 * S), N(2 * S), N(4 * S), N(0), Value::Bool(false)]
            };
            let columns = "class events first_ns last_ns pause_start_ns pause_ns silent_ns stopped";
            db.insert(table("kernel_class", columns, &[class("PROFILE"), class("CSWITCH")]));
            derived(&mut db, &["machine"]);
            let machine = db.get("machine").unwrap();
            let columns = [
                "stood_still_start_ns",
                "observed_ns",
                "sampled_capacity_ns",
                "event_capacity_ns",
                "idle_ns",
            ];
            columns.map(|column| machine.i64(0, column))
        };
        const MS: i64 = 1_000_000;
        let known = [2 * S, 6 * S + MS, 12 * S, 12 * S + 2 * MS, 10 * S].map(Some);
        assert_eq!([of(0), of(7999)], [known; 2]);
        let lost = [None, Some(10 * S), Some(12 * S), Some(20 * S), Some(10 * S)];
        assert_eq!(of(8000), lost, "as many events were lost as the pause lacks samples");
    }

    #[test]
    fn time_without_samples_is_not_observed() {
        // Two processors, 10 s, of which samples cover the first 8.
        let both = Observed {
            processors: 2,
            sampled_busy: 4 * S,
            sampled_idle: 12 * S,
            switched: Some((5 * S, 15 * S)),
            switching: 2,
            span: Some((0, 8 * S)),
            each: vec![(8 * S, 2 * S), (8 * S, S)],
            unsampled: vec![0, S / 100],
        };
        assert_eq!(both.sampled_capacity(2, 0), Some(16 * S));
        // Sleeping processors without samples were idle, as far as samples were taken at all.
        let sleeping =
            Observed { sampled_busy: 2 * S, sampled_idle: S, each: vec![(2 * S, 9 * S), (S, 4 * S)], ..both };
        assert_eq!(sleeping.sampled_capacity(2, 0), Some(13 * S - S / 100));
        // Threads that ran for four seconds without a sample: for so long nobody looked.
        let still = Observed { unsampled: vec![4 * S, 4 * S], ..sleeping };
        assert_eq!(still.sampled_capacity(2, 0), Some(8 * S));
        // Both idled through a pause of four seconds.
        let idle = Observed {
            unsampled: vec![0, 0],
            span: Some((0, 12 * S)),
            each: vec![(8 * S, 4 * S); 2],
            ..still
        };
        assert_eq!([0, 4 * S].map(|paused| idle.sampled_capacity(2, paused)), [Some(24 * S), Some(16 * S)]);
        let sleeping = still;
        let bare = Observed { sampled_idle: 0, switched: None, ..sleeping };
        assert_eq!((bare.knows_idle(), bare.sampled_capacity(2, 0)), (false, Some(16 * S)));
        assert_eq!(Observed::default().sampled_capacity(2, 0), None);
        const MS: i64 = 1_000_000;
        [(2 * S, 0), (2 * S, S), (S / 10, 0)].map(|(t, s)| unsampled(t, s, MS)).are(&[2 * S, S, S / 10]);
        assert_eq!([(2 * S, 2 * S - S / 10), (S / 50, S / 100)].map(|(t, s)| unsampled(t, s, MS)), [0, 0]);
        // Ten times fewer samples say less: what is no chance above is one here.
        assert_eq!((unsampled(S, S - S / 4, MS), unsampled(S, S - S / 4, 10 * MS)), (S / 4, 0));
    }
}
