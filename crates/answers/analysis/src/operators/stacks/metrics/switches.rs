//! Context switches.

use crate::operators::stacks::{Metric, Source};
use etwhy_table::{Unit, reads};
use etwhy_trace::catalog::cswitch::CSwitchRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "switches",
    about: "context switches",
    manual: "One for each time that a thread was switched in, with the stack with which it came back. Idle threads are left out. \
             Threads that often wait for a moment only show up here.",
    unit: Unit::Count,
    source: Source::Code(reads::<CSwitchRow>, |db, give| {
        super::run::each(db, &mut |mut switch| {
            switch.weight = 1;
            give(switch);
        })
    }),
};
