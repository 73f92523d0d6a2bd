//! CPU time of threads, DPCs and ISRs, from samples.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::sample::SAMPLE;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "busy",
    about: "CPU time of threads, DPCs and ISRs, from samples",
    manual: "cpu, dpc and isr together: what the processors did. DPCs and ISRs stand apart from the threads \
             that they interrupted.",
    unit: Unit::Ns,
    source: Source::Rows(ROWS),
};

/// Also what energy is made of.
pub(super) const ROWS: Rows = Rows { class: None, idle: false, ..Rows::weighted(&SAMPLE, "weight_ns") };
