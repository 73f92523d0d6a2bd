//! CPU time in DPCs, from samples.

use crate::operators::stacks::{Class, Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::sample::SAMPLE;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "dpc",
    about: "CPU time in DPCs, from samples",
    manual: "Only the part of the stack inside of the kernel's dispatcher is a DPC's own; below it stands the \
             thread that was interrupted by chance, which is left out. The sample says whether it interrupted a \
             DPC.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        only: &["in_dpc=yes", "in_isr=no"],
        class: Some(Class::Dpc),
        ..Rows::weighted(&SAMPLE, "weight_ns")
    }),
};
