//! Exceptions of .NET.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::clr_exception::CLR_EXCEPTION;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "exceptions",
    about: "exceptions of .NET",
    manual: "One for each exception that was thrown, caught or not. The runtime records the stack with the \
             event.",
    unit: Unit::Count,
    source: Source::Rows(Rows::counted(&CLR_EXCEPTION)),
};
