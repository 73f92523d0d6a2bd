//! What else culprits cost others: waits, callbacks of file system filters, time in files, the registry and page faults.

use super::party::{Parties, is_imposing};
use crate::operators::{add, for_each_batch};
use etwhy_table::Database;
use std::collections::BTreeMap;

/// Costs by process, or by driver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Side {
    /// Waits of other processes that it ended, and that were for it.
    pub imposed_ns: Option<i64>,
    /// Callbacks of its file system filters.
    pub filter_ns: Option<i64>,
    /// File operations.
    pub file_ns: Option<i64>,
    /// Registry operations.
    pub registry_ns: Option<i64>,
    /// Waits for hard page faults.
    pub fault_ns: Option<i64>,
}

impl Side {
    /// Adds another.
    pub fn add(&mut self, other: &Side) {
        let sum = |a: &mut Option<i64>, b: Option<i64>| {
            if let Some(b) = b {
                *a = Some(a.unwrap_or(0).saturating_add(b));
            }
        };
        sum(&mut self.imposed_ns, other.imposed_ns);
        sum(&mut self.filter_ns, other.filter_ns);
        sum(&mut self.file_ns, other.file_ns);
        sum(&mut self.registry_ns, other.registry_ns);
        sum(&mut self.fault_ns, other.fault_ns);
    }

    /// Nothing is known, or all is nothing.
    pub fn is_nothing(&self) -> bool {
        let all = [self.imposed_ns, self.filter_ns, self.file_ns, self.registry_ns, self.fault_ns];
        all.into_iter().flatten().all(|ns| ns == 0)
    }
}

/// Reasons of waits (`KWAIT_REASON`) that are for somebody: an answer, or a lock that he holds. Threads without work wait
/// for other reasons.
const FOR_SOMEBODY: [&str; 8] = [
    "WrLpcReply",
    "WrResource",
    "WrPushLock",
    "WrFastMutex",
    "WrGuardedMutex",
    "WrMutex",
    "WrRundown",
    "WrKeyedEvent",
];

/// All side costs.
pub(crate) struct Sides {
    /// By process.
    pub processes: BTreeMap<i64, Side>,
    /// By driver, lower case; with the name as it is written.
    pub drivers: BTreeMap<String, (String, Side)>,
    /// Waits were recorded.
    pub waits: bool,
}

impl Sides {
    /// Reads them.
    pub fn read(db: &Database, parties: &Parties) -> Sides {
        let mut out = Sides { processes: BTreeMap::new(), drivers: BTreeMap::new(), waits: false };
        out.read_waits(db, parties);
        out.read_filters(db);
        out.by_process(db, "file_usage", "total_ns", |side| &mut side.file_ns);
        out.by_process(db, "registry_usage", "total_ns", |side| &mut side.registry_ns);
        out.by_process(db, "hard_fault", "dur_ns", |side| &mut side.fault_ns);
        out
    }

    fn read_waits(&mut self, db: &Database, parties: &Parties) {
        let columns = ["waiting_upid", "readying_upid", "wait_reason", "wait_sum_ns"];
        for_each_batch(db, "wait_chain", columns, |rows, [waiting, readying, reason, ns]| {
            self.waits |= rows > 0;
            for row in 0..rows {
                let (Some(waiting), Some(readying)) = (waiting.i64(row), readying.i64(row)) else { continue };
                let Some(reason) = reason.text(row) else { continue };
                if waiting == readying || parties.is_kernel(waiting) || parties.is_kernel(readying) {
                    continue;
                }
                // A filter driver that asks its service lets the thread wait inside of the kernel.
                let asked = reason == "Executive" && is_imposing(&parties.process(readying).category);
                if asked || FOR_SOMEBODY.contains(&reason) {
                    let side = self.processes.entry(readying).or_default();
                    add(side.imposed_ns.get_or_insert(0), ns.i64(row).unwrap_or(0));
                }
            }
        });
    }

    fn read_filters(&mut self, db: &Database) {
        for_each_batch(db, "minifilter_cost", ["module", "total_ns"], |rows, [module, ns]| {
            for row in 0..rows {
                let Some(name) = module.text(row) else { continue };
                let entry = self.drivers.entry(name.to_ascii_lowercase());
                let (_, side) = entry.or_insert_with(|| (name.to_owned(), Side::default()));
                add(side.filter_ns.get_or_insert(0), ns.i64(row).unwrap_or(0));
            }
        });
    }

    fn by_process(
        &mut self,
        db: &Database,
        table: &str,
        column: &str,
        field: fn(&mut Side) -> &mut Option<i64>,
    ) {
        for_each_batch(db, table, ["upid", column], |rows, [upid, ns]| {
            for row in 0..rows {
                let Some(upid) = upid.i64(row) else { continue };
                let side = self.processes.entry(upid).or_default();
                add(field(side).get_or_insert(0), ns.i64(row).unwrap_or(0));
            }
        });
    }
}
