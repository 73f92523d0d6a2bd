//! Bytes that disks moved.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::disk_io::DISK_IO;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "disk-bytes",
    about: "bytes that disks moved",
    manual: "Of each transfer its size, with the stack that issued it. Only traces with Init events \
             (DISK_IO_INIT) have stacks. Writes are often issued by the system for others, much later than the \
             program wrote.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&DISK_IO, "size_bytes")),
};
