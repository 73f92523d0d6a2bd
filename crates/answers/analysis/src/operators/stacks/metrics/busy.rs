//! CPU time of threads, DPCs and ISRs, from samples.

use crate::operators::stacks::samples;
use crate::operators::stacks::{Class, Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::sample::SampleRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "busy",
    about: "CPU time of threads, DPCs and ISRs, from samples",
    manual: "cpu, dpc and isr together: what the processors did. DPCs and ISRs stand apart from the threads \
             that they interrupted.",
    unit: Unit::Ns,
    source: Source::Code(reads::<SampleRow>, |db, give| {
        samples::each(db, &[Class::Thread, Class::Dpc, Class::Isr], give)
    }),
};
