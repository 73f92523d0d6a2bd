//! Duration of DPCs.

use crate::operators::stacks::{Class, Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::dpc::DPC;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "dpc-time",
    about: "duration of DPCs",
    manual: "From the event of each DPC, without the ISRs and DPCs that interrupted it. These events carry no \
             stacks: the routine stands for it.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        stack: None,
        frame: Some("frame_id"),
        class: Some(Class::Dpc),
        ..Rows::weighted(&DPC, "exclusive_ns")
    }),
};
