//! CPU time of threads, from samples.

use crate::operators::stacks::samples;
use crate::operators::stacks::{Class, Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::sample::SampleRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "cpu",
    about: "CPU time of threads, from samples",
    manual: "Each sample stands for the time since the one before. Samples in DPCs and ISRs are nobody's and \
             stand under dpc and isr; those of the idle threads are left out. Few samples are a rough guess: \
             100 of them are right to a tenth.",
    unit: Unit::Ns,
    source: Source::Code(reads::<SampleRow>, |db, give| samples::each(db, &[Class::Thread], give)),
};
