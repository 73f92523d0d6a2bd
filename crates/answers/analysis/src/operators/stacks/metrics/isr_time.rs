//! Duration of ISRs.

use crate::operators::stacks::{Class, Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::isr::ISR;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "isr-time",
    about: "duration of ISRs",
    manual: "From the event of each ISR, without the ISRs that interrupted it. These events carry no stacks: \
             the routine stands for it.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        stack: None,
        frame: Some("frame_id"),
        class: Some(Class::Isr),
        ..Rows::weighted(&ISR, "exclusive_ns")
    }),
};
