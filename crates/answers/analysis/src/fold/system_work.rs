//! Whose work the threads of the System process do: that of the drivers whose routines they run, or Windows' own.
//!
//! # How it is computed
//!
//! Samples and disk transfers of threads of process 4, by the outer end of their stacks. Below the functions that begin a system thread or run
//! queued work (`work_hosts.tsv`: `ExpWorkerThread`, `IopProcessWorkItem` and those of frameworks) stands the routine whose work it is. If it
//! is a driver's, all that it does is the driver's (`cpu_ns`), except what the driver merely hands on to another layer (`passed_on_ns`, as
//! in `driver_cost`). If it is Windows' own (the cache's lazy writer, the memory manager), it is charged to no driver, whatever drivers it
//! meets further in.
//!
//! # What fools it
//!
//! Without stacks, or without names of the kernel's functions, whose work it is cannot be determined: rows `unknown`. Disk transfers have
//! stacks only where their begin was recorded. A filter that hands a request to a worker thread to finish it there is charged with what it
//! does itself, not with the file system below. Work that one driver asks another one to queue is the other one's.

use super::{Fold, Group, Seen, Stacks, Whose, freeze, id, text, whose_work};
use crate::derived::disk_cost::is_low;
use crate::fold::Class;
use crate::operators::{ProcessRow, add};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table};
use etwhy_trace::catalog::disk_io::DiskIoRow;
use foldhash::HashSet;
use std::collections::BTreeMap;

define_table! {
    /// Work of the System process by whose routine runs: a driver's, or Windows' own.
    pub table SYSTEM_WORK: SystemWorkRow = "system_work" {
        version: 1,
        /// The System process.
        upid: Option<i32> [None, Process],
        /// driver, windows, or unknown (no stack tells).
        whose: Sym [None, Kind],
        /// File name of the driver whose routine it is.
        driver: Option<Sym> [None, Name],
        /// Who makes it, from the knowledge base or the version resource.
        vendor: Option<Sym> [None, Name],
        /// Routine that the thread was started with, or that a worker thread took from its queue.
        routine: Option<Sym> [None, Name],
        /// It was queued to a worker thread; else the thread was started for it.
        queued: bool [None, Flag],
        /// Physical disk, for rows of transfers; null for rows of CPU time.
        disk: Option<i32> [None, Other],
        /// CPU time of the routine and of all that it calls.
        cpu_ns: i64 [Ns, Weight],
        /// CPU time of other layers that a driver only hands work to: not in `cpu_ns`.
        passed_on_ns: i64 [Ns, Weight],
        /// Samples, of both.
        samples: i64 [Count, Count],
        /// Disk transfers and flushes.
        transfers: i64 [Count, Count],
        /// Bytes read and written.
        moved_bytes: i64 [Bytes, Bytes],
        /// Time in which the disk worked on nothing else.
        service_ns: i64 [Ns, Duration],
        /// Part of it of reads and writes of priority Low or VeryLow, which Windows lets wait for others; null in extracts and stores of before
        /// it was known.
        low_service_ns: Option<i64> [Ns, Duration],
    }
}

/// Process, whose work, and the disk of transfers.
type Key = (i64, Whose, Option<i64>);

#[derive(Clone, Copy, Default)]
struct Cost {
    cpu: i64,
    passed_on: i64,
    samples: i64,
    transfers: i64,
    bytes: i64,
    service: i64,
    low_service: i64,
}

/// Sums on the way to the table.
pub(crate) struct SystemWork {
    system: HashSet<i64>,
    costs: BTreeMap<Key, Cost>,
}

/// Process id of the System process.
const SYSTEM: i64 = 4;

impl SystemWork {
    /// Nothing yet.
    pub fn new(db: &Database) -> SystemWork {
        let processes = db.read_or_empty::<ProcessRow>();
        let system = processes.iter().enumerate().filter(|(_, row)| row.pid() == SYSTEM);
        SystemWork { system: system.map(|(upid, _)| upid as i64).collect(), costs: BTreeMap::new() }
    }

    /// Adds a stack.
    pub fn stack(&mut self, fold: &Fold, group: &Group, seen: &Seen<'_>) {
        if group.class != Class::Thread || !self.system.contains(&group.upid) {
            return;
        }
        let (whose, passed_on) = whose_work(&fold.facts, &seen.part);
        let cost = self.costs.entry((group.upid, whose, None)).or_default();
        add(if passed_on { &mut cost.passed_on } else { &mut cost.cpu }, seen.row.weight);
        add(&mut cost.samples, seen.row.samples);
    }

    /// Adds transfers of disks.
    pub fn disks(&mut self, fold: &Fold, db: &Database) {
        if self.system.is_empty() {
            return;
        }
        // Without samples the fold has read no stacks.
        let own = fold.stacks.is_empty().then(|| (super::Facts::read(db, false), Stacks::read(db)));
        let (facts, stacks) = own.as_ref().map_or((&fold.facts, &fold.stacks), |(f, s)| (f, s));
        for row in &db.read_or_empty::<DiskIoRow>() {
            let Some(upid) = row.upid().filter(|upid| self.system.contains(upid)) else { continue };
            let (whose, _) = whose_work(facts, &stacks.get(row.stack_id()));
            let cost = self.costs.entry((upid, whose, Some(row.disk()))).or_default();
            add(&mut cost.transfers, 1);
            add(&mut cost.bytes, row.size_bytes());
            add(&mut cost.service, row.service_ns());
            if row.op() != "flush" && is_low(row.priority()) {
                add(&mut cost.low_service, row.service_ns());
            }
        }
    }

    /// The table, the largest first.
    pub fn finish(self, fold: &Fold, db: &Database, memory: &Memory) -> etwhy_table::Result<Table> {
        let own = fold.facts.modules.is_empty().then(|| super::Facts::read(db, false));
        let facts = own.as_ref().unwrap_or(&fold.facts);
        let mut rows = TableBuilder::<SystemWorkRow>::new(memory);
        let mut strings = Strings::new();
        let mut costs: Vec<(Key, Cost)> = self.costs.into_iter().collect();
        costs.sort_by_key(|((upid, _, disk), cost)| {
            (*upid, *disk, std::cmp::Reverse(cost.cpu), std::cmp::Reverse(cost.service))
        });
        for ((upid, whose, disk), cost) in costs {
            let (name, module, routine, queued) = match whose {
                Whose::Driver { module, routine, queued } => {
                    ("driver", facts.module(module).cloned().unwrap_or_default(), Some(routine), queued)
                }
                Whose::Windows { routine } => ("windows", Default::default(), Some(routine), false),
                Whose::Unknown => ("unknown", Default::default(), None, false),
            };
            let routine = routine.and_then(|at| facts.functions.get(at as usize));
            rows.push(SystemWorkRow {
                upid: id(upid),
                whose: strings.intern(name),
                driver: text(&mut strings, &module.name),
                vendor: text(&mut strings, &module.vendor),
                routine: routine.map(|(label, _)| strings.intern(label)),
                queued,
                disk: disk.and_then(id),
                cpu_ns: cost.cpu,
                passed_on_ns: cost.passed_on,
                samples: cost.samples,
                transfers: cost.transfers,
                moved_bytes: cost.bytes,
                service_ns: cost.service,
                low_service_ns: Some(cost.low_service),
            });
        }
        rows.finish(&freeze(strings, db)?)
    }
}
