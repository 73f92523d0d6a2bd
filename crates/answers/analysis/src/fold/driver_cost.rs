//! CPU time that drivers are charged with, by class, process and driver.
//!
//! # How it is computed
//!
//! Each sample is charged once: to the innermost module of the kernel part of its stack that is not Windows itself. The
//! kernel, its file systems and frameworks that host other drivers (`fltmgr.sys`, `ndis.sys`, `storport.sys` and others)
//! are nobody. A driver's cost has three parts:
//!
//! * *own*: its own code (`exclusive_ns`);
//! * *on its behalf*: what Windows does because the driver asked (`os_below_ns`): locks, memory, copies, names, requests of its own;
//! * *passed on*: work of layers to which the driver merely hands a packet, an I/O request or a system call, and which would do it without
//!   the driver (`passed_on_ns`, not charged). The functions that hand over are facts (`layer_crossings.tsv`): `IofCallDriver`,
//!   `FltPerformSynchronousIo`, `NdisFIndicateReceiveNetBufferLists` and others, the dispatch routines of Windows' file systems and
//!   protocols, and the system call behind a hook. Time of another driver further inside is passed on too, and charged to that one.
//!
//! Samples without such a driver are the rows without one, so that `charged_ns` adds up to the sampled time that was not idle.
//!
//! # What fools it
//!
//! Without symbols of Windows a hand-over cannot be told from a request: what lies beyond a function without a name is not charged, so that
//! only the driver's own code is. A filter that passes everything on had been charged with the file system. `inclusive_ns` must not be added up over drivers. Microsoft's drivers for devices
//! and its filters (Defender, BitLocker) are drivers of their own. Of a DPC or ISR only the part inside of the kernel's
//! dispatcher counts; without symbols of the kernel the whole kernel part does, which may blame a driver that was
//! only interrupted. A module is recognised as Windows by a list of names, else by its company; a module of
//! which neither is known counts as a driver.

use super::{Cell, Fold, Group, NONE, Seen, Sums, freeze, id, text};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};
use std::collections::BTreeMap;

define_table! {
    /// CPU time that drivers are charged with, from samples: each sample once.
    pub table DRIVER_COST: DriverCostRow = "driver_cost" {
        version: 2,
        /// thread, dpc or isr.
        class: Sym [None, Kind],
        /// Process in which the driver ran; for DPCs and ISRs the one that they interrupted.
        upid: Option<i32> [None, Process],
        /// File name of the driver; null: no driver but Windows itself stands on the stack, or there is none.
        driver: Option<Sym> [None, Name],
        /// Who makes it, from the knowledge base or the version resource.
        vendor: Option<Sym> [None, Name],
        /// What it belongs to, from the version resource or the knowledge base.
        product: Option<Sym> [None, Name],
        /// What it is for, from the knowledge base.
        category: Option<Sym> [None, Kind],
        /// Time charged to it: its own and that of Windows on its behalf.
        charged_ns: i64 [Ns, Weight],
        /// Of this in the driver itself.
        exclusive_ns: i64 [Ns, Weight],
        /// Of this in Windows on its behalf: it would vanish with the driver.
        os_below_ns: i64 [Ns, Weight],
        /// Time of other layers and drivers that it handed work to: not charged to it.
        passed_on_ns: i64 [Ns, Weight],
        /// Of this in requests that it handed to disks and volumes itself: file systems do, filters of files do not. Null in extracts and stores
        /// of before it was known.
        to_disk_ns: Option<i64> [Ns, Weight],
        /// Time with it on the stack, other drivers below it included.
        inclusive_ns: i64 [Ns, Weight],
        /// Samples with it on the stack.
        samples: i64 [Count, Count],
    }
}

/// Sums on the way to the table.
pub(crate) struct DriverCosts {
    rows: TableBuilder<DriverCostRow>,
    strings: Strings,
    sums: Sums,
    /// Time of requests to disks.
    disks: Sums,
    /// Number that stands for no driver.
    nobody: u32,
}

impl DriverCosts {
    /// Nothing yet.
    pub fn new(fold: &Fold, memory: &Memory) -> DriverCosts {
        let count = fold.facts.modules.len();
        DriverCosts {
            rows: TableBuilder::new(memory),
            strings: Strings::new(),
            sums: Sums::new(count + 1),
            disks: Sums::new(count),
            nobody: count as u32,
        }
    }

    /// Adds a stack.
    pub fn stack(&mut self, fold: &Fold, seen: &Seen<'_>) {
        let (samples, weight) = (seen.row.samples, seen.row.weight);
        self.sums.next();
        self.disks.next();
        if seen.owner == NONE {
            self.sums.on_stack(self.nobody, samples, weight);
        }
        // The two frames that the present one had called.
        let (mut callee, mut below) = (None, None);
        // What stands below a file system, or between volumes, is a filter of them: a file system of its own is above all of it.
        let outermost = seen.part.kernel.iter().rposition(|&frame| fold.facts.is_storage(frame));
        for (at, &frame) in seen.part.kernel.iter().enumerate() {
            let module = fold.facts.module_of(frame);
            if fold.facts.is_driver(module) {
                self.sums.on_stack(module, samples, weight);
                let handed = callee.filter(|callee| fold.facts.hands_on(*callee, None)).and(below);
                let between = !fold.facts.is_disk(frame) && outermost.is_some_and(|outermost| outermost > at);
                if !between && callee.into_iter().chain(handed).any(|frame| fold.facts.is_disk(frame)) {
                    self.disks.on_stack(module, samples, weight);
                }
            }
            (callee, below) = (Some(frame), callee);
        }
        let owner = if seen.owner == NONE { self.nobody } else { seen.owner };
        let own = seen.part.leaf().is_some_and(|leaf| fold.facts.module_of(leaf) == owner);
        if let Some(cell) = self.sums.cell(owner) {
            cell.charged = cell.charged.saturating_add(weight);
            if own {
                cell.exclusive = cell.exclusive.saturating_add(weight);
            }
        }
    }

    /// Writes the rows of a group.
    pub fn flush(&mut self, fold: &Fold, group: &Group) {
        let disks: BTreeMap<u32, Cell> = self.disks.take().into_iter().collect();
        for (number, cell) in self.sums.take() {
            let module = fold.facts.module(number).cloned().unwrap_or_default();
            self.rows.push(DriverCostRow {
                class: self.strings.intern(group.class.name()),
                upid: id(group.upid),
                driver: text(&mut self.strings, &module.name),
                vendor: text(&mut self.strings, &module.vendor),
                product: text(&mut self.strings, &module.product),
                category: text(&mut self.strings, &module.category),
                charged_ns: cell.charged,
                exclusive_ns: cell.exclusive,
                os_below_ns: if number == self.nobody {
                    0
                } else {
                    cell.charged.saturating_sub(cell.exclusive)
                },
                passed_on_ns: if number == self.nobody {
                    0
                } else {
                    cell.inclusive.saturating_sub(cell.charged)
                },
                to_disk_ns: Some(disks.get(&number).map_or(0, |cell| cell.inclusive)),
                inclusive_ns: cell.inclusive,
                samples: cell.samples,
            });
        }
    }

    /// The table.
    pub fn finish(self, db: &Database) -> etwhy_table::Result<Table> {
        self.rows.finish(&freeze(self.strings, db)?)
    }
}
