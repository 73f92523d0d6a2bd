//! Duration of ISRs.

use crate::operators::interrupts::Class;
use crate::operators::stacks::durations;
use crate::operators::stacks::{Metric, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "isr-time",
    about: "duration of ISRs",
    manual: "From the event of each ISR, without the ISRs that interrupted it. These events carry no stacks: \
             the routine stands for it.",
    unit: Unit::Ns,
    reads: &["isr"],
    source: Source::Code(|db, give| durations::each(db, Class::Isr, give)),
};
