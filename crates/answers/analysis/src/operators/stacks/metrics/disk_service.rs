//! Time in which disks worked on transfers.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::disk_io::DISK_IO;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "disk-service",
    about: "time in which disks worked on transfers",
    manual: "The part of the response time in which the disk worked on nothing else, with the stack that issued \
             the transfer. It adds up to the time in which the disks were busy.",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&DISK_IO, "service_ns")),
};
