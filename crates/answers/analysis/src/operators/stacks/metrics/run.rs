//! Time in which threads ran, from context switches.

use crate::operators::stacks::{Metric, Source, WeightedStack, idle_processes, marked};
use etwhy_table::{Database, Unit, reads};
use etwhy_trace::catalog::cswitch::CSwitchRow;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "run",
    about: "time in which threads ran, from context switches",
    manual: "Exact, without the DPCs and ISRs that interrupted the run. The stack is the one with which the thread was switched in, as in \
             WPA (CPU Usage Precise, New Thread Stack): it shows where the thread had waited, not what it then did; cpu shows \
             that. The whole run belongs to the moment at which it began. Idle threads are left out.",
    unit: Unit::Ns,
    source: Source::Code(reads::<CSwitchRow>, each),
};

/// Also what energy is made of where nothing was sampled.
pub(super) fn each(db: &Database, give: &mut dyn FnMut(WeightedStack)) {
    let idle = idle_processes(db);
    for row in db.read_or_empty::<CSwitchRow>().iter().filter(|&row| !marked(&idle, row.new_upid())) {
        let Some(weight) = row.cpu_ns().filter(|&ns| ns >= 0) else { continue };
        give(WeightedStack {
            ts_ns: Some(row.ts_ns()),
            upid: row.new_upid(),
            utid: Some(row.new_utid()),
            cpu: Some(row.cpu()),
            stack: row.stack_id(),
            weight,
            count: 1,
            ..WeightedStack::default()
        });
    }
}
