//! CPU time in ISRs, from samples.

use crate::operators::stacks::{Class, Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::sample::SAMPLE;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "isr",
    about: "CPU time in ISRs, from samples",
    manual: "As dpc, for interrupt service routines. Where interrupts are off while they run, no sample can hit \
             them: compare isr-time.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        only: &["in_isr=yes"],
        class: Some(Class::Isr),
        ..Rows::weighted(&SAMPLE, "weight_ns")
    }),
};
