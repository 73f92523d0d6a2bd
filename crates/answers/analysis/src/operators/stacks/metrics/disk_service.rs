//! Time in which disks worked on transfers.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "disk-service",
    about: "time in which disks worked on transfers",
    manual: "The part of the response time in which the disk worked on nothing else, with the stack that issued \
             the transfer. It adds up to the time in which the disks were busy.",
    unit: Unit::Ns,
    reads: &["disk_io"],
    source: Source::Rows(Rows::of("disk_io", "service_ns")),
};
