//! The time that was sampled on stacks.

use etwhy_table::Database;
use etwhy_trace::catalog::{sample::SampleRow, stack_cost::StackCostRow};
use etwhy_trace::stacks::Class;

/// Sampled time of one class and process.
pub(crate) struct Group {
    /// The class.
    pub class: Class,
    /// Process, -1 if it is not known.
    pub upid: i64,
    /// Its stacks.
    pub rows: Vec<Row>,
}

/// Sampled time of one stack.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Stack, -1 if there is none.
    pub stack: i64,
    /// Samples.
    pub samples: i64,
    /// Time that they stand for.
    pub weight: i64,
}

/// The rows of `stack_cost` in groups.
pub(crate) fn groups(db: &Database) -> Vec<Group> {
    let mut all = Vec::new();
    for row in &db.read_or_empty::<StackCostRow>() {
        let class = Class::named(row.class());
        let (samples, weight) = (row.samples(), row.weight_ns());
        let stack = row.stack_id().unwrap_or(-1);
        all.push((class, row.upid().unwrap_or(-1), Row { stack, samples, weight }));
    }
    grouped(all)
}

/// The samples in DPCs and ISRs for which `wanted` is true, in groups: what `stack_cost` would hold of these.
pub(crate) fn interrupts(db: &Database, wanted: &[bool]) -> Vec<Group> {
    let mut all = Vec::new();
    for (row, _) in db.read_or_empty::<SampleRow>().iter().zip(wanted).filter(|(_, wanted)| **wanted) {
        let class = Class::of_sample(row.in_dpc(), row.in_isr());
        if class != Class::Thread {
            let stack = row.stack_id().unwrap_or(-1);
            all.push((class, row.upid().unwrap_or(-1), Row { stack, samples: 1, weight: row.weight_ns() }));
        }
    }
    grouped(all)
}

/// Rows by class and process, one for each stack.
fn grouped(mut all: Vec<(Class, i64, Row)>) -> Vec<Group> {
    all.sort_by_key(|(class, upid, row)| (*class, *upid, row.stack));
    all.dedup_by(|(class, upid, row), (kept_class, kept_upid, kept)| {
        let same = (*class, *upid, row.stack) == (*kept_class, *kept_upid, kept.stack);
        if same {
            kept.samples = kept.samples.saturating_add(row.samples);
            kept.weight = kept.weight.saturating_add(row.weight);
        }
        same
    });
    let mut out: Vec<Group> = Vec::new();
    for (class, upid, row) in all {
        match out.last_mut() {
            Some(group) if (group.class, group.upid) == (class, upid) => group.rows.push(row),
            _ => out.push(Group { class, upid, rows: vec![row] }),
        }
    }
    out
}
