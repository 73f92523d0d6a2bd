//! `counter_sample`: every value of a counter log.

use etwhy_table::define_table;

define_table! {
    /// One row per value of a counter log, in the order of the files.
    ///
    /// Only made when it is asked for: a log of 500 counters and 100,000 samples has 50 million rows.
    pub table COUNTER_SAMPLE: CounterSampleRow = "counter_sample" {
        version: 1, evidence: Verified("Python's csv module, value by value"),
        /// When the sample was taken, since the earliest sample of all logs.
        ts_ns: i64 [Ns, Time],
        /// The same since 1970 (UTC); the log's local time if it names no zone (`counter_machine.zone` is null).
        utc_ns: i64 [Ns, Other],
        /// The counter, as in `counter`.
        counter: i32 [None, Id],
        /// Its value.
        value: f64 [None, Other],
    }
}
