//! Time in which windows did not react.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::ui_delay::UI_DELAY;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "ui-delay",
    about: "time in which windows did not react",
    manual: "Of each delay the part that no earlier one of the thread and kind covers. The stack is that of the \
             moment at which the delay was reported.",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&UI_DELAY, "fresh_ns")),
};
