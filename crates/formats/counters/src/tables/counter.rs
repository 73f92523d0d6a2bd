//! `counter`: one row per counter and instance.

use etwhy_table::{Sym, define_table};

define_table! {
    /// One row per counter and instance of a counter log: its names, and how its values are spread.
    ///
    /// Values that are missing (`" "` in the file, as for the first sample of a rate) count in `missing` and nowhere else. Logs
    /// of one machine that follow each other are one: a counter keeps its number when the file changes.
    ///
    /// Percentiles are nearest-rank. They are exact up to 1,024 samples, and within 0.4 % of the value beyond.
    pub table COUNTER: CounterRow = "counter" {
        version: 1, evidence: Verified("Python's csv module and statistics, over generated logs"),
        /// Number of the counter in this analysis; other tables refer to it.
        counter: i32 [None, Id],
        /// Machine, without the `\\` in front; empty where the log names none.
        machine: Sym [None, Name],
        /// Object (`Processor`) as the log has it.
        object: Sym [None, Name],
        /// Instance's parent (`explorer` in `Thread(explorer/0)`).
        parent: Option<Sym> [None, Name],
        /// Instance (`_Total`, `0`, `C:`), without `#2`; null for objects that have none.
        instance: Option<Sym> [None, Name],
        /// Which of several instances of one name, from `#2`; 0 for the first.
        nth: i32 [None, Other],
        /// Counter (`% DPC Time`) as the log has it.
        name: Sym [None, Name],
        /// English name of the object, where it is known. Findings go by it.
        object_en: Option<Sym> [None, Name],
        /// English name of the counter, where it is known. Findings go by it.
        name_en: Option<Sym> [None, Name],
        /// What it is measured in, guessed from the English name: percent, seconds, bytes, bytes/s, MiB, KiB, per second, count.
        unit: Sym [None, Kind],
        /// It is the sum over all instances (`_Total`).
        is_total: bool [None, Flag],
        /// Logical processor that the instance is, where it is one and its number is known.
        cpu: Option<i32> [None, Cpu],
        /// Path as the log has it.
        path: Sym [None, Path],
        /// Samples with a value.
        samples: i64 [Count, Count],
        /// Samples without a value.
        missing: i64 [Count, Count],
        /// Smallest value.
        min_value: Option<f64> [None, Other],
        /// Mean of the values.
        mean_value: Option<f64> [None, Other],
        /// Median.
        p50_value: Option<f64> [None, Other],
        /// 95th percentile.
        p95_value: Option<f64> [None, Other],
        /// 99th percentile.
        p99_value: Option<f64> [None, Other],
        /// Largest value.
        max_value: Option<f64> [None, Other],
        /// Value of the first sample that has one.
        first_value: Option<f64> [None, Other],
        /// Value of the last sample that has one.
        last_value: Option<f64> [None, Other],
        /// First sample with a value, since 1970 (UTC).
        first_utc_ns: Option<i64> [Ns, Other],
        /// Last sample with a value, since 1970 (UTC).
        last_utc_ns: Option<i64> [Ns, Other],
        /// Samples above 90; null where the unit is not percent.
        above_90_samples: Option<i64> [Count, Count],
        /// Longest time in which every sample was above 90, within one file and without a gap of more than twice the usual time between
        /// samples; null where the unit is not percent.
        above_90_ns: Option<i64> [Ns, Duration],
        /// When that began, since 1970 (UTC): the sample before the first one above 90.
        above_90_utc_ns: Option<i64> [Ns, Other],
    }
}
