//! `counter_machine`: the machines of counter logs.

use etwhy_table::{Sym, define_table};

define_table! {
    /// One row per machine of the counter logs: from when to when, how often, in which time zone.
    pub table COUNTER_MACHINE: CounterMachineRow = "counter_machine" {
        version: 2,
        /// Machine; empty where the log names none.
        machine: Sym [None, Name],
        /// Files that have counters of it.
        files: i64 [Count, Count],
        /// Counters.
        counters: i64 [Count, Count],
        /// Counters whose English name is not known, so that no finding reads them.
        unknown_counters: i64 [Count, Count],
        /// A counter whose name is not known, where the log seems to be in a language that is not; null else.
        unknown_language: Option<Sym> [None, Path],
        /// Logical processors, by the instances of `Processor` and `Processor Information`; null without them.
        cpus: Option<i32> [Count, Count],
        /// Gaps: times between samples that are more than three times the usual one.
        gaps: i64 [Count, Count],
        /// Their length together.
        gap_ns: i64 [Ns, Duration],
        /// First sample, since 1970 (UTC).
        first_utc_ns: i64 [Ns, Other],
        /// Last sample, since 1970 (UTC).
        last_utc_ns: i64 [Ns, Other],
        /// Zero of `ts_ns`, since 1970 (UTC).
        zero_utc_ns: i64 [Ns, Other],
        /// Time between two samples: the median.
        interval_ns: Option<i64> [Ns, Duration],
        /// Time zone as the log names it; null if it names none. `utc_ns` is local time then.
        zone: Option<Sym> [None, Name],
        /// Minutes from local time to UTC as the log has them (480 for Pacific Standard Time).
        bias_min: Option<i32> [Min, Other],
    }
}
