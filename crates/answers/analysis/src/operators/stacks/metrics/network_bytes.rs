//! Bytes that were sent and received.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::network::NETWORK;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "network-bytes",
    about: "bytes that were sent and received",
    manual: "Of TCP and UDP. Tracing of the network has no stacks that tell who sent: completions come in DPCs. \
             The sums are those of processes.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows { utid: None, stack: None, ..Rows::weighted(&NETWORK, "size_bytes") }),
};
