//! CPU time in ISRs, from samples.

use crate::operators::stacks::{Class, Metric, Rows, Source};
use etwhy_table::Unit;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "isr",
    about: "CPU time in ISRs, from samples",
    manual: "As dpc, for interrupt service routines. Where interrupts are off while they run, no sample can hit \
             them: compare isr-time.",
    unit: Unit::Ns,
    reads: &["sample"],
    source: Source::Rows(Rows {
        only: &["in_isr=yes"],
        class: Some(Class::Isr),
        ..Rows::of("sample", "weight_ns")
    }),
};
