//! `counter_slice`: counters over time, in at most 128 slices.

use etwhy_table::define_table;

define_table! {
    /// Counters over time: sums over slices of equal length, at most 128 for the whole of the logs.
    ///
    /// The length is a power of two seconds, the same for all counters; the first slice begins with the machine's first sample, the last ends
    /// with its last. Slices without a value have no row.
    pub table COUNTER_SLICE: CounterSliceRow = "counter_slice" {
        version: 2,
        /// The counter, as in `counter`.
        counter: i32 [None, Id],
        /// When the slice begins.
        ts_ns: i64 [Ns, Time],
        /// The same since 1970 (UTC).
        utc_ns: i64 [Ns, Other],
        /// Length of the slice.
        dur_ns: i64 [Ns, Duration],
        /// Samples with a value.
        samples: i64 [Count, Count],
        /// Mean of them.
        mean_value: f64 [None, Other],
        /// Smallest.
        min_value: f64 [None, Other],
        /// Largest.
        max_value: f64 [None, Other],
    }
}
