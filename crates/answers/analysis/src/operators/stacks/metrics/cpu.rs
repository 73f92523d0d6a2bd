//! CPU time of threads, from samples.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::sample::SAMPLE;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "cpu",
    about: "CPU time of threads, from samples",
    manual: "Each sample stands for the time since the one before. Samples in DPCs and ISRs are nobody's and \
             stand under dpc and isr; those of the idle threads are left out. Few samples are a rough guess: \
             100 of them are right to a tenth.",
    unit: Unit::Ns,
    source: Source::Rows(Rows {
        only: &["in_dpc=no", "in_isr=no"],
        idle: false,
        ..Rows::weighted(&SAMPLE, "weight_ns")
    }),
};
