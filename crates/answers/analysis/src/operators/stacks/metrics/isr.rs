//! CPU time in ISRs, from samples.

use crate::operators::stacks::samples;
use crate::operators::stacks::{Class, Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::sample::SampleRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "isr",
    about: "CPU time in ISRs, from samples",
    manual: "As dpc, for interrupt service routines. Where interrupts are off while they run, no sample can hit \
             them: compare isr-time.",
    unit: Unit::Ns,
    source: Source::Code(reads::<SampleRow>, |db, give| samples::each(db, &[Class::Isr], give)),
};
