//! Durations of DPCs and ISRs, at their routines.

use super::{Class, WeightedStack};
use crate::operators::interrupts::{Class as Kind, each_interrupt};
use etwhy_table::Database;

/// Hands over the rows of `dpc` or `isr`.
pub(super) fn each(db: &Database, kind: Kind, give: &mut dyn FnMut(WeightedStack)) {
    each_interrupt(db, kind, |row| {
        give(WeightedStack {
            ts_ns: Some(row.ts_ns),
            upid: row.upid,
            utid: row.utid,
            cpu: Some(row.cpu),
            class: if kind == Kind::Isr { Class::Isr } else { Class::Dpc },
            stack: None,
            frame: row.frame_id,
            weight: row.exclusive_ns.max(0),
            count: 1,
        });
    });
}
