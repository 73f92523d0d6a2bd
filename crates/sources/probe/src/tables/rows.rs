//! The tables.

use etwhy_table::{Sym, define_table};

define_table! {
    /// One row per sample of a probe: some operations of one kind, done one after the other.
    ///
    /// Times are of the threads that did the work, added up. What the system does not tell is null.
    pub table PROBE_RUN: ProbeRunRow = "probe_run" {
        version: 1,
        /// File of results.
        file: Sym [None, Path],
        /// Probe.
        probe: Sym [None, Name],
        /// State of the machine with --ab: on, off, off-1, off-2 (the two that show the noise); null without.
        state: Option<Sym> [None, Kind],
        /// What was done.
        measure: Sym [None, Name],
        /// Under which conditions.
        variant: Option<Sym> [None, Name],
        /// Size, where the probe has one.
        n: Option<f64> [None, Other],
        /// Round, from 0: samples of a round were taken close to each other.
        round: i64 [None, Other],
        /// When it began, since the probe's start.
        start_ns: i64 [Ns, Duration],
        /// Operations.
        operations: i64 [Count, Other],
        /// Operations that failed as they may, such as a file that is denied.
        failures: i64 [Count, Other],
        /// What one operation took, in `unit`, unless the probe says otherwise.
        value: f64 [None, Other],
        /// Unit of `value`: ns, or what the probe's manual says.
        unit: Sym [None, Kind],
        /// True if more is better.
        more_is_better: bool [None, Other],
        /// Time on the clock.
        wall_ns: i64 [Ns, Duration],
        /// CPU time, user and kernel.
        cpu_ns: Option<i64> [Ns, Duration],
        /// Time that threads were ready and had no processor.
        queue_ns: Option<i64> [Ns, Duration],
        /// Time that threads waited for something else.
        blocked_ns: Option<i64> [Ns, Duration],
        /// Times that a thread gave up its processor to wait.
        waits: Option<i64> [Count, Other],
        /// CPU time that those proven or likely at work took meanwhile; null where it was not measured by operation.
        others_cpu_ns: Option<i64> [Ns, Duration],
        /// Half of the operations took at most this; null where single ones were not timed.
        p50_ns: Option<i64> [Ns, Duration],
        /// 95 % took at most this.
        p95_ns: Option<i64> [Ns, Duration],
        /// 99 % took at most this.
        p99_ns: Option<i64> [Ns, Duration],
        /// The slowest.
        max_ns: Option<i64> [Ns, Duration],
    }
}

define_table! {
    /// One row per kind of sample: its rounds together.
    ///
    /// A round is one value, since samples of a round share what the machine did just then. Figures are medians over rounds.
    pub table PROBE_SERIES: ProbeSeriesRow = "probe_series" {
        version: 1,
        /// File of results.
        file: Sym [None, Path],
        /// Probe.
        probe: Sym [None, Name],
        /// State of the machine with --ab; null without.
        state: Option<Sym> [None, Kind],
        /// What was done.
        measure: Sym [None, Name],
        /// Under which conditions.
        variant: Option<Sym> [None, Name],
        /// Size, where the probe has one.
        n: Option<f64> [None, Other],
        /// Rounds.
        rounds: i64 [Count, Other],
        /// Samples.
        samples: i64 [Count, Other],
        /// Operations.
        operations: i64 [Count, Other],
        /// Operations that failed as they may.
        failures: i64 [Count, Other],
        /// Unit of values.
        unit: Sym [None, Kind],
        /// True if more is better.
        more_is_better: bool [None, Other],
        /// Typical value: median over rounds, of medians of single operations where these were timed.
        typical: f64 [None, Other],
        /// Lower end of its 95 % interval; null below six rounds.
        typical_low: Option<f64> [None, Other],
        /// Upper end.
        typical_high: Option<f64> [None, Other],
        /// Mean of all operations: times their number it is what they took together.
        mean: f64 [None, Other],
        /// How far rounds differ: middle half of them, as a share of the typical value.
        spread_percent: Option<f64> [Percent, Other],
        /// Median of operations.
        p50_ns: Option<i64> [Ns, Duration],
        /// 95th percentile of operations.
        p95_ns: Option<i64> [Ns, Duration],
        /// 99th percentile of operations.
        p99_ns: Option<i64> [Ns, Duration],
        /// CPU time of an operation.
        cpu_ns: Option<i64> [Ns, Duration],
        /// Time of an operation that its thread was neither on a processor nor waiting for one.
        blocked_ns: Option<i64> [Ns, Duration],
        /// Time of an operation that its thread waited for a processor: what a busy machine adds.
        queue_ns: Option<i64> [Ns, Duration],
        /// Times that a thread gave up the processor, per operation.
        waits: Option<f64> [None, Other],
    }
}

define_table! {
    /// One row per curve: by which law the cost of a measure grows with n.
    pub table PROBE_LAW: ProbeLawRow = "probe_law" {
        version: 1,
        /// File of results.
        file: Sym [None, Path],
        /// Probe.
        probe: Sym [None, Name],
        /// State of the machine with --ab; null without.
        state: Option<Sym> [None, Kind],
        /// What was done.
        measure: Sym [None, Name],
        /// Under which conditions.
        variant: Option<Sym> [None, Name],
        /// What n counts.
        n_is: Sym [None, Name],
        /// What the cost is: cpu, wall_less_queue, wall, or value (what the probe measures is no time).
        cost: Sym [None, Kind],
        /// Unit of the cost.
        unit: Sym [None, Kind],
        /// Points that the law rests on.
        points: i64 [Count, Other],
        /// Rounds that they come from; of a single one, n and time are the same.
        rounds: i64 [Count, Other],
        /// Smallest n.
        n_from: f64 [None, Other],
        /// Largest n.
        n_to: f64 [None, Other],
        /// constant, logarithmic, linear, slight, super_linear, with_time, cannot_tell.
        verdict: Sym [None, Kind],
        /// Why it cannot be determined.
        doubt: Option<Sym> [None, Name],
        /// The law of one operation: 1, log n, n, n log n, n^2, …
        law: Sym [None, Kind],
        /// Cost without n: a of a + b f(n).
        offset: f64 [None, Other],
        /// Factor of the law: b of a + b f(n).
        factor: f64 [None, Other],
        /// Exponent of a + b n^p; null where nothing grows.
        exponent: Option<f64> [None, Other],
        /// Lower end of its 95 % interval.
        exponent_low: Option<f64> [None, Other],
        /// Upper end; null if there is none.
        exponent_high: Option<f64> [None, Other],
        /// Probability that the law is one of those that are super-linear.
        super_percent: f64 [Percent, Other],
        /// The user's n (--scale), or ten times the largest.
        scale: f64 [None, Other],
        /// What one operation costs there, by the law; null where it cannot be determined.
        one_at_scale: Option<f64> [None, Other],
        /// What all up to there cost together.
        all_at_scale: Option<f64> [None, Other],
    }
}

define_table! {
    /// One row per fact of the machine.
    pub table PROBE_MACHINE: ProbeMachineRow = "probe_machine" {
        version: 1,
        /// File of results.
        file: Sym [None, Path],
        /// Which fact.
        name: Sym [None, Kind],
        /// As the system says it.
        value: Sym [None, Name],
    }
}

define_table! {
    /// One row per security product, or part of one, that was found running.
    pub table PROBE_PRODUCT: ProbeProductRow = "probe_product" {
        version: 1,
        /// File of results.
        file: Sym [None, Path],
        /// Its name.
        name: Sym [None, Name],
        /// Who makes it.
        vendor: Option<Sym> [None, Name],
        /// process, fanotify listener, minifilter, service.
        kind: Sym [None, Kind],
        /// Version.
        version: Option<Sym> [None, Name],
        /// How it was found.
        evidence: Sym [None, Name],
    }
}

define_table! {
    /// One row per process or driver that was seen at work while a probe ran.
    pub table PROBE_SUSPECT: ProbeSuspectRow = "probe_suspect" {
        version: 1,
        /// File of results.
        file: Sym [None, Path],
        /// Probe.
        probe: Sym [None, Name],
        /// State of the machine with --ab; null without.
        state: Option<Sym> [None, Kind],
        /// Name of the program or driver.
        name: Sym [None, Name],
        /// Number of the process; null for drivers.
        process: Option<i64> [None, Pid],
        /// process, fanotify listener, minifilter, tracer.
        kind: Sym [None, Kind],
        /// proven: the probe was seen waiting for it; likely: it must answer what the probe asks; possible: it may have had a part in it.
        confidence: Sym [None, Kind],
        /// CPU time that it took while the probe ran.
        cpu_ns: Option<i64> [Ns, Duration],
        /// Time that the probe's threads stood waiting for it, as far as it was seen.
        blocked_ns: Option<i64> [Ns, Duration],
        /// What speaks against it.
        evidence: Sym [None, Name],
    }
}

define_table! {
    /// One row per kind of sample that both sides of a comparison have.
    pub table PROBE_DIFFERENCE: ProbeDifferenceRow = "probe_difference" {
        version: 2,
        /// Probe.
        probe: Sym [None, Name],
        /// What was done.
        measure: Sym [None, Name],
        /// Under which conditions.
        variant: Option<Sym> [None, Name],
        /// Size, where the probe has one and few sizes were measured.
        n: Option<f64> [None, Other],
        /// How many sizes were put together (geometric mean); 0 if none were.
        sizes: i64 [Count, Other],
        /// Unit of values.
        unit: Sym [None, Kind],
        /// True if rounds of both sides are pairs (--ab).
        paired: bool [None, Other],
        /// Rounds before.
        rounds_before: i64 [Count, Other],
        /// Rounds after.
        rounds_after: i64 [Count, Other],
        /// Typical value before: median over rounds.
        before: f64 [None, Other],
        /// Typical value after.
        after: f64 [None, Other],
        /// How much more it is.
        difference: Option<f64> [None, Other],
        /// Lower end of the 95 % interval of the difference; null below six rounds a side.
        difference_low: Option<f64> [None, Other],
        /// Upper end.
        difference_high: Option<f64> [None, Other],
        /// Typical cost after divided by that before; null if one is 0.
        ratio: Option<f64> [None, Other],
        /// Lower end of its 95 % interval, of all rows together: it excludes 1 exactly if the verdict says that there is a difference.
        ratio_low: Option<f64> [None, Other],
        /// Upper end.
        ratio_high: Option<f64> [None, Other],
        /// Mean of all operations before: times their number it is what they took together.
        mean_before: Option<f64> [None, Other],
        /// Mean of all operations after.
        mean_after: Option<f64> [None, Other],
        /// Lower end of the 95 % interval of the difference of means, by which costs per day go; null below six rounds a side.
        mean_difference_low: Option<f64> [None, Other],
        /// Upper end.
        mean_difference_high: Option<f64> [None, Other],
        /// Ratio of means, which rare slow operations move.
        mean_ratio: Option<f64> [None, Other],
        /// Probability of such a difference by chance in any of the rows, if nothing differs.
        p: Option<f64> [None, Other],
        /// By how much two rounds in the same state typically differ here.
        floor_percent: Option<f64> [Percent, Other],
        /// slower, faster, small (two rounds in the same state differ as much), not_shown, too_few_rounds.
        verdict: Sym [None, Kind],
        /// Mean CPU time of an operation before.
        cpu_before_ns: Option<i64> [Ns, Duration],
        /// Mean CPU time of an operation after.
        cpu_after_ns: Option<i64> [Ns, Duration],
        /// Mean CPU time that those proven or likely at work took during an operation, before; null if it cannot be separated.
        others_cpu_before_ns: Option<i64> [Ns, Duration],
        /// The same after.
        others_cpu_after_ns: Option<i64> [Ns, Duration],
        /// Mean time of an operation that it was blocked, before.
        blocked_before_ns: Option<i64> [Ns, Duration],
        /// Mean time of an operation that it was blocked, after.
        blocked_after_ns: Option<i64> [Ns, Duration],
    }
}
