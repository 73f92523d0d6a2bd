//! `counter_wanted`: the counters that findings read, and whether they were logged.

use etwhy_table::{Sym, define_table};

define_table! {
    /// Counters that findings read, for each machine: which of them were logged, and how to log the others.
    pub table COUNTER_WANTED: CounterWantedRow = "counter_wanted" {
        version: 2,
        /// Machine.
        machine: Sym [None, Name],
        /// English name of the object.
        object_en: Sym [None, Name],
        /// English name of the counter.
        name_en: Sym [None, Name],
        /// Path with which it is logged.
        path: Sym [None, Path],
        /// Instances that were logged, at least one value each.
        counters: i64 [Count, Count],
        /// Of these, sums over all instances (`_Total`), which hide single ones.
        totals: i64 [Count, Count],
        /// Instances that were logged and never have a value.
        without_value: i64 [Count, Count],
        /// The most values that one of them has.
        samples: i64 [Count, Count],
        /// A line for the command prompt that logs it.
        command: Sym [None, Message],
    }
}
