//! CPU time in DPCs, from samples.

use crate::operators::stacks::samples;
use crate::operators::stacks::{Class, Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::sample::SampleRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "dpc",
    about: "CPU time in DPCs, from samples",
    manual: "Only the part of the stack inside of the kernel's dispatcher is a DPC's own; below it stands the \
             thread that was interrupted by chance, which is left out. The sample says whether it interrupted a \
             DPC.",
    unit: Unit::Ns,
    source: Source::Code(reads::<SampleRow>, |db, give| samples::each(db, &[Class::Dpc], give)),
};
