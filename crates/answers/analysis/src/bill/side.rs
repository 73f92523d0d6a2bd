//! What else culprits cost others: waits, callbacks of file system filters, time in files, the registry and page faults.

use super::party::{Parties, is_imposing};
use crate::operators::add;
use etwhy_table::Database;
use etwhy_trace::catalog::{
    file_io::FileUsageRow, hard_fault::HardFaultRow, minifilter::MinifilterCostRow,
    registry::RegistryUsageRow, wait_chain::WaitChainRow,
};
use std::collections::BTreeMap;

/// Costs by process, or by driver.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Side {
    /// Waits of other processes that it ended, and that were for it.
    pub imposed_ns: Option<i64>,
    /// Callbacks of its file system filters, without those that ran inside them.
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

/// What [`Sides::read`] reads.
pub(crate) type SidesRows = (FileUsageRow, RegistryUsageRow, HardFaultRow, WaitChainRow, MinifilterCostRow);

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
        let (files, keys) = (db.read_or_empty::<FileUsageRow>(), db.read_or_empty::<RegistryUsageRow>());
        out.by_process(files.iter().map(|row| (row.upid(), row.total_ns())), |side| &mut side.file_ns);
        out.by_process(keys.iter().map(|row| (row.upid(), row.total_ns())), |side| &mut side.registry_ns);
        let faults = db.read_or_empty::<HardFaultRow>();
        out.by_process(faults.iter().map(|row| (row.upid(), row.dur_ns())), |side| &mut side.fault_ns);
        out
    }

    fn read_waits(&mut self, db: &Database, parties: &Parties) {
        let rows = db.read_or_empty::<WaitChainRow>();
        self.waits |= !rows.is_empty();
        for row in &rows {
            let (Some(waiting), Some(readying)) = (row.waiting_upid(), row.readying_upid()) else { continue };
            // For somebody are waits for an answer and for a lock; threads without work wait for other reasons.
            let class = row.wait_class();
            if waiting == readying || parties.is_kernel(waiting) {
                continue;
            }
            let executive = row.wait_reason() == Some("Executive");
            let side = if parties.is_kernel(readying) {
                // The System process works for others; whose routine it ran is known or nobody's.
                let Some(driver) = row.readying_driver() else { continue };
                if class != "lock" && !(executive && is_imposing(&parties.driver(driver).category)) {
                    continue;
                }
                self.driver(driver)
            } else {
                // A filter driver that asks its service lets the thread wait inside of the kernel.
                let asked = || executive && is_imposing(&parties.process(readying).category);
                if !matches!(class, "lock" | "call") && !asked() {
                    continue;
                }
                self.processes.entry(readying).or_default()
            };
            add(side.imposed_ns.get_or_insert(0), row.wait_sum_ns());
        }
    }

    fn driver(&mut self, name: &str) -> &mut Side {
        let entry = self.drivers.entry(name.to_ascii_lowercase());
        &mut entry.or_insert_with(|| (name.to_owned(), Side::default())).1
    }

    fn read_filters(&mut self, db: &Database) {
        for row in &db.read_or_empty::<MinifilterCostRow>() {
            let Some(name) = row.module() else { continue };
            let ns = row.exclusive_ns().unwrap_or(row.total_ns());
            add(self.driver(name).filter_ns.get_or_insert(0), ns);
        }
    }

    fn by_process(
        &mut self,
        costs: impl Iterator<Item = (Option<i64>, i64)>,
        field: fn(&mut Side) -> &mut Option<i64>,
    ) {
        for (upid, ns) in costs {
            let Some(upid) = upid else { continue };
            add(field(self.processes.entry(upid).or_default()).get_or_insert(0), ns);
        }
    }
}
