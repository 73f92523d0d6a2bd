//! CPU time in charges that do not overlap, from one source.

use super::party::{Parties, Party, is_imposing};
use crate::derived::machine::{MachineRow, running_cpu_ns};
use crate::fold::Class;
use crate::fold::{driver_cost::DriverCostRow, module_cost::ModuleCostRow, system_work::SystemWorkRow};
use crate::operators::add;
use etwhy_knowledge::is_os_driver;
use etwhy_table::Database;
use etwhy_trace::catalog::{interrupt_cost::InterruptCostRow, thread_time::ThreadTimeRow};
use std::collections::BTreeMap;

/// What the CPU column rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Samples.
    Sample,
    /// Context switches, with the events of DPCs and ISRs.
    Cswitch,
    /// Nothing was recorded that tells.
    None,
}

/// CPU time of one class, process and driver.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    /// Thread, DPC or ISR.
    pub class: Class,
    /// Process, -1 if it is not known.
    pub upid: i64,
    /// Driver, or library in a foreign process, that it is charged to.
    pub by: Option<(String, Party)>,
    /// `by` is a driver.
    pub driver: bool,
    /// Nanoseconds.
    pub ns: i64,
}

/// Where the machine's time went.
pub(crate) struct Time {
    /// What it rests on.
    pub source: Source,
    /// Observed time of processors: what shares are shares of (table `machine`).
    pub capacity: i64,
    /// What was not observed of processors times duration.
    pub unobserved: i64,
    /// Idle time.
    pub idle: i64,
    /// What of the observed time neither is charged nor was idle.
    pub unattributed: i64,
    /// Busy time; no moment of a processor is in two of them.
    pub charges: Vec<Charge>,
    /// Of the charges to the System process, what drivers had it do, and what may be theirs.
    pub system: Vec<SystemTime>,
    /// More time was counted than the machine has: all was scaled by this.
    pub scale: f64,
    /// Idle time can be told from missing samples.
    pub idle_seen: bool,
}

/// CPU time of threads of the System process.
#[derive(Clone, Debug)]
pub(crate) struct SystemTime {
    /// The process.
    pub upid: i64,
    /// Driver whose routine ran; none where no stack tells whose it was.
    pub driver: Option<String>,
    /// Nanoseconds.
    pub ns: i64,
}

/// What [`Time::read`] reads.
pub(crate) type TimeRows =
    (MachineRow, ModuleCostRow, DriverCostRow, SystemWorkRow, ThreadTimeRow, InterruptCostRow);

/// More than this above the observed time is scaled down (the sum must hold within it).
const TOLERANCE: f64 = 0.001;

impl Time {
    /// Reads it.
    pub fn read(db: &Database, parties: &Parties) -> Option<Time> {
        let machine = db.read_or_empty::<MachineRow>();
        let machine = machine.first()?;
        let source = if machine.sampled_busy_ns().is_some() {
            Source::Sample
        } else if machine.switched_busy_ns().is_some() {
            Source::Cswitch
        } else {
            Source::None
        };
        let elapsed = running_cpu_ns(machine);
        let (capacity, charges) = match source {
            Source::Sample => (machine.capacity_ns().max(0), sampled(db, parties)),
            Source::Cswitch => (machine.capacity_ns().max(0), switched(db, parties)),
            Source::None => (0, Vec::new()),
        };
        let mut time = Time {
            source,
            capacity,
            unobserved: elapsed.saturating_sub(capacity).max(0),
            idle: 0,
            unattributed: 0,
            charges,
            system: if source == Source::Sample { system(db) } else { Vec::new() },
            scale: 1.0,
            idle_seen: machine.idle_ns().is_some(),
        };
        // Where nobody tells idle time from missing samples, what is not busy counts as idle, and the row says so.
        let busy = machine.busy_ns().unwrap_or(0);
        time.idle = machine.idle_ns().unwrap_or_else(|| capacity.saturating_sub(busy)).max(0);
        time.balance();
        Some(time)
    }

    /// Time of all charges.
    pub fn busy(&self) -> i64 {
        self.charges.iter().fold(0, |sum, charge| sum.saturating_add(charge.ns))
    }

    /// Makes charged, idle and unattributed time add up to the observed time.
    fn balance(&mut self) {
        let counted = self.busy().saturating_add(self.idle);
        if counted > self.capacity {
            let scale = self.capacity as f64 / counted as f64;
            if 1.0 - scale > TOLERANCE {
                self.scale = scale;
                self.idle = (self.idle as f64 * scale) as i64;
                for charge in &mut self.charges {
                    charge.ns = (charge.ns as f64 * scale) as i64;
                }
                for part in &mut self.system {
                    part.ns = (part.ns as f64 * scale) as i64;
                }
            }
            return;
        }
        self.unattributed = self.capacity.saturating_sub(counted);
    }
}

/// What drivers had the System process do, from the stacks of samples.
fn system(db: &Database) -> Vec<SystemTime> {
    let rows = db.read_or_empty::<SystemWorkRow>();
    let theirs =
        rows.iter().filter(|row| row.disk().is_none() && row.cpu_ns() > 0 && row.whose() != "windows");
    theirs
        .map(|row| SystemTime {
            upid: row.upid().unwrap_or(-1),
            driver: row.driver().map(str::to_owned),
            ns: row.cpu_ns(),
        })
        .collect()
}

/// Charges of samples: `driver_cost`, less the time of libraries that a foreign product has put into a process.
fn sampled(db: &Database, parties: &Parties) -> Vec<Charge> {
    let mut out = Vec::new();
    let mut injected: BTreeMap<i64, i64> = BTreeMap::new();
    for row in &db.read_or_empty::<ModuleCostRow>() {
        let (upid, ns) = (row.upid().unwrap_or(-1), row.exclusive_ns());
        if row.class() != "thread" || row.kind() != "user" || ns <= 0 {
            continue;
        }
        let party = Party::of_module(row.module().unwrap_or(""), row.vendor(), row.product(), row.category());
        if !is_imposing(&party.category) || parties.process(upid).is_same(&party) {
            continue;
        }
        add(injected.entry(upid).or_default(), ns);
        let by = Some((row.module().unwrap_or("").to_owned(), party));
        out.push(Charge { class: Class::Thread, upid, by, driver: false, ns });
    }
    for row in &db.read_or_empty::<DriverCostRow>() {
        let class = Class::named(row.class());
        let (upid, mut ns) = (row.upid().unwrap_or(-1), row.charged_ns());
        let by = row.driver().map(|name| {
            let (vendor, product) = (row.vendor(), row.product());
            (name.to_owned(), Party::of_module(name, vendor, product, row.category()))
        });
        if by.is_none() && class == Class::Thread {
            // A library's own time has no driver below it: it is part of this row.
            ns = ns.saturating_sub(injected.get(&upid).copied().unwrap_or(0)).max(0);
        }
        if ns > 0 {
            out.push(Charge { class, upid, driver: by.is_some(), by, ns });
        }
    }
    out
}

/// Charges of context switches, and of the events of DPCs and ISRs.
fn switched(db: &Database, parties: &Parties) -> Vec<Charge> {
    let mut threads: BTreeMap<i64, i64> = BTreeMap::new();
    for row in &db.read_or_empty::<ThreadTimeRow>() {
        let upid = row.upid().unwrap_or(-1);
        if !parties.is_idle(upid) {
            let sum = threads.entry(upid).or_default();
            add(sum, row.cpu_ns());
            add(sum, row.open_run_ns());
        }
    }
    let threads = threads.into_iter().filter(|&(_, ns)| ns > 0);
    let mut out: Vec<Charge> = threads
        .map(|(upid, ns)| Charge { class: Class::Thread, upid, by: None, driver: false, ns })
        .collect();
    for row in db.read_or_empty::<InterruptCostRow>().iter().filter(|&row| row.level() == "module") {
        let class = if row.class() == "isr" { Class::Isr } else { Class::Dpc };
        let name = row.module().unwrap_or("");
        let party = parties.driver(name);
        let blamed = !name.is_empty() && !name.starts_with('[') && !is_os_driver(name, &party.company);
        let by = blamed.then(|| (name.to_owned(), party));
        out.push(Charge { class, upid: -1, driver: blamed, by, ns: row.exclusive_ns().max(0) });
    }
    out
}
