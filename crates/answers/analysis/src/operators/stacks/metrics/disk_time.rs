//! Response time of disk transfers.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::disk_io::DISK_IO;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "disk-time",
    about: "response time of disk transfers",
    manual: "From issue to completion of each transfer, with the stack that issued it. Transfers overlap, so \
             that the sum may exceed the time of the trace; the program need not have waited.",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&DISK_IO, "dur_ns")),
};
