//! Registry operations by the stack that asked for them.

use super::Operation;
use crate::analysis::{Filled, Finish};
use crate::model::stack::{Stacks, Unsettled};
use crate::owner::Owner;
use etwhy_decode::kernel::events::Registry;
use etwhy_table::{Memory, Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// Registry operations by process, stack and operation, the most frequent first.
    ///
    /// Sums of `registry`. It answers which code reads the registry so often.
    pub table REGISTRY_STACK: RegistryStackRow = "registry_stack" {
        version: 1,
        /// Process.
        upid: Option<i32> [None, Process],
        /// Stack (table `stack`); none for operations without one.
        stack_id: Option<i32> [None, Stack],
        /// Operation, as in `registry`.
        op: Sym [None, Kind],
        /// Operations.
        count: i64 [Count, Count],
        /// Operations that ended with an error.
        failed: i64 [Count, Count],
        /// Time of all with a known duration.
        total_ns: i64 [Ns, Duration],
    }
}

#[derive(Clone, Copy, Default)]
struct Sums {
    count: i64,
    failed: i64,
    total_ns: i64,
}

impl Sums {
    fn merge(&mut self, other: &Sums) {
        self.count += other.count;
        self.failed += other.failed;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }
}

/// Sums so far.
pub(super) struct ByStack {
    waiting: Unsettled<(Owner, u8, Sums)>,
    /// By shared number of the stack, with a ticket that has it.
    sums: HashMap<(u32, Owner, u8), (i32, Sums)>,
    rows: TableBuilder<RegistryStackRow>,
}

impl ByStack {
    pub(super) fn new(memory: &Memory) -> ByStack {
        let rows = TableBuilder::new(memory);
        ByStack { waiting: Unsettled::default(), sums: HashMap::default(), rows }
    }

    /// Counts an operation with the ticket of its stack.
    pub(super) fn add(&mut self, operation: &Operation, ticket: i32, stacks: &mut Stacks) {
        let Operation { op, owner, failed, dur_ns, .. } = *operation;
        let sums = Sums { count: 1, failed: i64::from(failed), total_ns: dur_ns.unwrap_or(0) };
        self.waiting.push(ticket, (owner, op, sums), stacks, |number, ticket, (owner, op, sums)| {
            let slot = self.sums.entry((number, owner, op));
            slot.or_insert((ticket, Sums::default())).1.merge(&sums);
        });
    }

    /// The table.
    pub(super) fn finish(mut self, end: &mut Finish<'_>) -> Filled {
        let mut sums: BTreeMap<(Option<u32>, Option<i32>, u8), Sums> = BTreeMap::new();
        let settled = self.sums.iter().map(|((_, owner, op), (ticket, sums))| (*owner, *ticket, *op, *sums));
        let waiting = self.waiting.into_items().into_iter();
        let waiting = waiting.map(|(ticket, (owner, op, sums))| (owner, ticket, op, sums));
        for (owner, ticket, op, more) in settled.chain(waiting) {
            let by = (owner.upid(end.model), end.resolved.stack_of_ticket(ticket), op);
            sums.entry(by).or_default().merge(&more);
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.count));
        for ((upid, stack_id, op), sums) in rows {
            self.rows.push(RegistryStackRow {
                upid: upid.map(|u| u as i32),
                stack_id,
                op: end.strings.intern(Registry::name(op)),
                count: sums.count,
                failed: sums.failed,
                total_ns: sums.total_ns,
            });
        }
        self.rows.into()
    }
}
