//! The time that was sampled on stacks.

use etwhy_table::Database;
use etwhy_trace::{catalog::stack_cost::StackCostRow, stacks::Class};

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
    let mut all: Vec<(Class, i64, Row)> = Vec::new();
    for row in &db.read_or_empty::<StackCostRow>() {
        let class = Class::named(row.class());
        let (samples, weight) = (row.samples(), row.weight_ns());
        let stack = row.stack_id().unwrap_or(-1);
        all.push((class, row.upid().unwrap_or(-1), Row { stack, samples, weight }));
    }
    all.sort_by_key(|(class, upid, row)| (*class, *upid, row.stack));
    let mut out: Vec<Group> = Vec::new();
    for (class, upid, row) in all {
        match out.last_mut() {
            Some(group) if (group.class, group.upid) == (class, upid) => group.rows.push(row),
            _ => out.push(Group { class, upid, rows: vec![row] }),
        }
    }
    out
}
