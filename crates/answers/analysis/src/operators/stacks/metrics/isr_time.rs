//! Duration of ISRs.

use crate::operators::interrupts::Class;
use crate::operators::stacks::durations;
use crate::operators::stacks::{Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::isr::IsrRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "isr-time",
    about: "duration of ISRs",
    manual: "From the event of each ISR, without the ISRs that interrupted it. These events carry no stacks: \
             the routine stands for it.",
    unit: Unit::Ns,
    source: Source::Code(reads::<IsrRow>, |db, give| durations::each(db, Class::Isr, give)),
};
