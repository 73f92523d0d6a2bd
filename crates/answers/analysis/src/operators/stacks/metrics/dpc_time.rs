//! Duration of DPCs.

use crate::operators::interrupts::Class;
use crate::operators::stacks::durations;
use crate::operators::stacks::{Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::dpc::DpcRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "dpc-time",
    about: "duration of DPCs",
    manual: "From the event of each DPC, without the ISRs and DPCs that interrupted it. These events carry no \
             stacks: the routine stands for it.",
    unit: Unit::Ns,
    source: Source::Code(reads::<DpcRow>, |db, give| durations::each(db, Class::Dpc, give)),
};
