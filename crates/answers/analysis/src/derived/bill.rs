//! The bill: who cost the machine how much time and energy.
//!
//! # How it is computed
//!
//! Four times the same time, each a partition of its own (`kind`): by process, by driver, by product, by category.
//! Within a kind, the `total_cpu_ns` of all rows add up to the observed time of the processors (`machine.capacity_ns`), and
//! `share_percent` to 100: `part` is `culprit`, `rest` (time of threads that no driver is charged with), `interrupt` (DPCs and ISRs that
//! are nobody's), `idle`, or `unattributed` (busy, but whose time it was is not known). What was not observed is no CPU time and in no
//! share: row `unobserved` has it in a column of its own.
//!
//! The whole CPU column has one source, named in `source`. With CPU samples it is these: threads, drivers (`driver_cost`) and DPCs
//! and ISRs, each sample once. Without any it is context switches, and the events of DPCs and ISRs; then no driver can be
//! seen inside of threads. Idle time is that of `machine`, of the same source. If more is counted than was observed (clocks and
//! timers differ a little), all is scaled down, and `why` says so. Without samples and switches nothing was observed, and nobody has a
//! share.
//!
//! By process, a thread's time is its process's whoever stands on the stack, and all DPCs and ISRs are one row. Only the System process works
//! for others: what its threads do for a driver (table `system_work`) is a row of that driver. By
//! product and category, drivers are charged for what `driver_cost` says, and so are libraries that a security product has put
//! into foreign processes, for the time in themselves (`frames_cpu_ns`); drivers that come with Windows leave the time
//! to the process. Parts of a security product go by their vendor.
//!
//! Waiting is in its own columns and never added to CPU time. `imposed_wait_ns` are waits of other processes that the culprit
//! ended and that were for it: answers over LPC and ALPC, locks, and waits inside of the kernel for a security product's service. What a
//! thread of the System process ended is the driver's whose routine it ran; nobody's where no stack tells (`wait_chain`).
//! A wait for any other event is not counted: a thread without work waits in the same way.
//!
//! Energy is that of CPU time above idle: seconds times marginal watts (`crates/model/knowledge`, percentiles of published
//! SPECpower results of the processor's family, else of all) times (frequency / nominal frequency) to the power of 1 to 3,
//! where frequencies were recorded. The bounds hold what 80 % of such machines would show, and the sampling error.
//!
//! # What fools it
//!
//! Fewer than a hundred samples are a rough guess. The watts are those of servers, at the wall socket, under a Java load; there is no
//! such data for clients. A library that hooks functions is charged for its own code only. Callbacks of filters may lie
//! inside each other. What ends a wait need not be what made it long.

use super::machine::{MachineRow, running_cpu_ns};
use crate::bill::charge::{Charge, Source, SystemTime, Time, TimeRows};
use crate::bill::energy::{Model, ModelRows};
use crate::bill::party::{OTHER, OTHER_DRIVER, Parties, PartiesRows, Party};
use crate::bill::side::{Side, Sides, SidesRows};
use crate::derive::DerivedSpec;
use crate::fold::{Class, freeze, id, text};
use crate::gaps::Gaps;
use crate::operators::add;
use etwhy_base::units;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::trace::TraceRow;
use etwhy_trace::catalog::{cpu_time::CpuRow, ledger::LedgerRow, unobserved::UnobservedRow};
use std::collections::BTreeMap;

define_table! {
    /// The bill: what each process, driver, product and category cost in CPU time, waiting and energy.
    ///
    /// Take rows of one `kind` only: their `total_cpu_ns` add up to the observed time of the processors.
    pub table BILL: BillRow = "bill" {
        version: 2,
        /// Kind of culprit: process, driver, product or category.
        kind: Sym [None, Kind],
        /// culprit, rest (threads without a driver), interrupt (DPCs and ISRs that are nobody's), idle, unattributed or unobserved.
        part: Sym [None, Kind],
        /// Idle time: nobody's cost.
        is_idle: bool [None, Flag],
        /// Unattributed or not observed: nobody can be charged.
        is_unattributed: bool [None, Flag],
        /// Name of the culprit; in brackets if it is none.
        culprit: Sym [None, Name],
        /// Process, for kind process.
        upid: Option<i32> [None, Process],
        /// Vendor of a driver or product, if known.
        vendor: Option<Sym> [None, Name],
        /// Category, from the knowledge base.
        category: Option<Sym> [None, Kind],
        /// CPU time of its own threads; for part rest that of all threads.
        own_cpu_ns: i64 [Ns, Weight],
        /// CPU time of its drivers and libraries on the threads of others.
        frames_cpu_ns: i64 [Ns, Weight],
        /// CPU time of its DPCs.
        dpc_ns: i64 [Ns, Weight],
        /// CPU time of its ISRs.
        isr_ns: i64 [Ns, Weight],
        /// All of these; of parts idle and unattributed the time itself.
        total_cpu_ns: i64 [Ns, Weight],
        /// Share of the observed time of the processors (`machine.capacity_ns`); null of what was not observed.
        share_percent: Option<f64> [Percent, Other],
        /// CPU time in hours of one processor.
        core_hours: f64 [None, Other],
        /// Time of processors that was not observed, for part unobserved: it may have been busy or idle.
        unobserved_ns: Option<i64> [Ns, Duration],
        /// Waiting that it imposed on other processes; null where waits were not recorded.
        imposed_wait_ns: Option<i64> [Ns, Duration],
        /// Callbacks of its file system filters, without the callbacks of filters that ran inside them.
        filter_ns: Option<i64> [Ns, Duration],
        /// Time of its file operations.
        file_ns: Option<i64> [Ns, Duration],
        /// Time of its registry operations.
        registry_ns: Option<i64> [Ns, Duration],
        /// Its waits for hard page faults.
        hard_fault_ns: Option<i64> [Ns, Duration],
        /// Energy of its CPU time above idle, in joules: the most likely value.
        energy_j: Option<f64> [None, Other],
        /// Lower bound: one machine in ten shows less.
        energy_low_j: Option<f64> [None, Other],
        /// Upper bound: one machine in ten shows more.
        energy_high_j: Option<f64> [None, Other],
        /// `energy_j` in watt-hours.
        energy_wh: Option<f64> [None, Other],
        /// What the CPU time rests on: sample, cswitch, or none.
        source: Sym [None, Kind],
        /// How sure it is: high, medium, low, or cannot tell.
        confidence: Sym [None, Kind],
        /// Why it is not surer, and what the energy rests on.
        why: Option<Sym> [None, Message],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&BILL],
    reads: reads::<((TraceRow, LedgerRow, UnobservedRow), CpuRow, PartiesRows, TimeRows, SidesRows, ModelRows)>,
    on_demand: false,
    make,
};

/// One row before it is priced.
#[derive(Default)]
struct Item {
    culprit: String,
    upid: Option<i32>,
    vendor: String,
    category: String,
    own: i64,
    frames: i64,
    dpc: i64,
    isr: i64,
    /// Of `own` in the System process, what no stack tells whose it was.
    unknown: i64,
    side: Side,
    /// The largest charge so far names the product.
    largest: i64,
}

impl Item {
    fn total(&self) -> i64 {
        [self.own, self.frames, self.dpc, self.isr].into_iter().fold(0, i64::saturating_add)
    }
}

/// Order of rows: culprits first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RowKind {
    Culprit,
    Rest,
    Interrupt,
}

impl RowKind {
    fn name(self) -> &'static str {
        ["culprit", "rest", "interrupt"].get(self as usize).copied().unwrap_or("")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Process,
    Driver,
    Product,
    Category,
}

impl Kind {
    fn name(self) -> &'static str {
        ["process", "driver", "product", "category"].get(self as usize).copied().unwrap_or("")
    }
}

type Items = BTreeMap<(RowKind, String), Item>;

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<BillRow>::new(memory);
    let mut strings = Strings::new();
    let parties = Parties::read(db);
    if let Some(time) = Time::read(db, &parties).filter(|time| time.capacity > 0 || time.unobserved > 0) {
        let sides = Sides::read(db, &parties);
        let printer = Printer::new(db, &time, sides.waits);
        for kind in [Kind::Process, Kind::Driver, Kind::Product, Kind::Category] {
            let mut items = Items::new();
            for charge in &time.charges {
                charge_to(&mut items, kind, charge, &parties);
            }
            if kind == Kind::Process {
                time.system.iter().for_each(|part| system_part(&mut items, part, &parties));
            }
            side_costs(&mut items, kind, &sides, &parties);
            printer.print(kind, items, &mut rows, &mut strings);
        }
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}

/// The row of an owner.
fn item_of<'i>(items: &'i mut Items, kind: Kind, party: &Party, ns: i64) -> &'i mut Item {
    let key = if kind == Kind::Category { party.category.clone() } else { party.key() };
    let item = items.entry((RowKind::Culprit, key)).or_default();
    if item.culprit.is_empty() || ns > item.largest {
        item.largest = ns;
        let name = if kind == Kind::Category { &party.category } else { &party.product };
        item.culprit.clone_from(name);
        item.category.clone_from(&party.category);
        if kind == Kind::Product {
            item.vendor.clone_from(&party.vendor);
        }
    }
    item
}

/// A row that is no culprit's.
fn nobody(items: &mut Items, part: RowKind) -> &mut Item {
    let item = items.entry((part, String::new())).or_default();
    item.culprit = if part == RowKind::Interrupt { "[DPC and ISR]" } else { "[no driver]" }.to_owned();
    item
}

fn process_item<'i>(items: &'i mut Items, upid: i64, parties: &Parties) -> &'i mut Item {
    let item = items.entry((RowKind::Culprit, format!("{upid:020}"))).or_default();
    let party = parties.process(upid);
    parties.label(upid).clone_into(&mut item.culprit);
    item.upid = id(upid);
    (item.vendor, item.category) = (party.vendor.clone(), party.category.clone());
    item
}

fn driver_item<'i>(items: &'i mut Items, name: &str, party: &Party) -> &'i mut Item {
    let item = items.entry((RowKind::Culprit, name.to_ascii_lowercase())).or_default();
    name.clone_into(&mut item.culprit);
    (item.vendor, item.category) = (party.vendor.clone(), party.category.clone());
    item
}

fn charge_to(items: &mut Items, kind: Kind, charge: &Charge, parties: &Parties) {
    let thread = charge.class == Class::Thread;
    // Of the columns, which one.
    let mut own = false;
    let item = match (kind, &charge.by) {
        (Kind::Process, _) if thread => {
            own = true;
            process_item(items, charge.upid, parties)
        }
        (Kind::Process, _) => nobody(items, RowKind::Interrupt),
        (Kind::Driver, Some((name, party))) if charge.driver => driver_item(items, name, party),
        (Kind::Driver, _) if thread => {
            own = true;
            nobody(items, RowKind::Rest)
        }
        (Kind::Product | Kind::Category, Some((_, party))) if !party.is_windows() => {
            own = thread && parties.process(charge.upid).is_same(party);
            item_of(items, kind, party, charge.ns)
        }
        (Kind::Product | Kind::Category, _) if thread => {
            own = true;
            item_of(items, kind, parties.process(charge.upid), charge.ns)
        }
        _ => nobody(items, RowKind::Interrupt),
    };
    let cell = match charge.class {
        Class::Thread if own => &mut item.own,
        Class::Thread => &mut item.frames,
        Class::Dpc => &mut item.dpc,
        Class::Isr => &mut item.isr,
    };
    add(cell, charge.ns);
}

/// Work that a driver had the System process do is the driver's, in a row of its own.
fn system_part(items: &mut Items, part: &SystemTime, parties: &Parties) {
    let system = process_item(items, part.upid, parties);
    let Some(driver) = &part.driver else {
        add(&mut system.unknown, part.ns);
        return;
    };
    let ns = part.ns.min(system.own);
    system.own = system.own.saturating_sub(ns);
    add(&mut driver_item(items, driver, &parties.driver(driver)).own, ns);
}

fn side_costs(items: &mut Items, kind: Kind, sides: &Sides, parties: &Parties) {
    if kind != Kind::Driver {
        for (&upid, side) in sides.processes.iter().filter(|(_, side)| !side.is_nothing()) {
            let item = match kind {
                Kind::Process => process_item(items, upid, parties),
                _ => item_of(items, kind, parties.process(upid), 0),
            };
            item.side.add(side);
        }
    }
    for (name, side) in sides.drivers.values() {
        let party = parties.driver(name);
        match kind {
            // A driver is beside the processes for what it had the System process do, and for nothing else.
            Kind::Process => {
                let waits = Side { imposed_ns: side.imposed_ns, ..Side::default() };
                if !waits.is_nothing() {
                    driver_item(items, name, &party).side.add(&waits);
                }
            }
            Kind::Driver => driver_item(items, name, &party).side.add(side),
            _ => item_of(items, kind, &party, 0).side.add(side),
        }
    }
}

/// Prices rows.
struct Printer<'t> {
    time: &'t Time,
    model: Option<Model>,
    waits: bool,
    /// What makes all rows less sure.
    doubts: Vec<String>,
    unobserved: String,
    with_stack: f64,
}

/// Of idle time that only is what is left.
const UNSEEN_IDLE: &str =
    "idle processors were not sampled: idle time and missing samples cannot be distinguished";

/// Above this share of time that is unattributed or was not observed, no row is sure.
const MUCH: f64 = 0.05;

impl<'t> Printer<'t> {
    fn new(db: &Database, time: &'t Time, waits: bool) -> Printer<'t> {
        let machine = db.read_or_empty::<MachineRow>();
        let machine = machine.first();
        let lost = machine.is_some_and(|m| m.events_lost().max(m.buffers_lost()) > 0) || buffers_missing(db);
        let percent = |part: i64, whole: i64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        let mut doubts = Vec::new();
        for (share, what) in [
            (percent(time.unattributed, time.capacity), "of the observed time is unattributed"),
            (
                percent(time.unobserved, time.capacity.saturating_add(time.unobserved)),
                "of the recorded time was not observed",
            ),
        ] {
            if share > MUCH {
                doubts.push(format!("{:.0} % {what}", share * 100.0));
            }
        }
        if time.source != Source::None && !time.idle_seen {
            doubts.push(UNSEEN_IDLE.to_owned());
        }
        if 1.0 - time.scale > 0.01 {
            doubts
                .push(format!("more time was counted than was observed, all is scaled by {:.2}", time.scale));
        }
        let mut why = match time.source {
            Source::None => "neither CPU samples nor context switches were recorded".to_owned(),
            Source::Sample => {
                unsampled_part(db, time.unobserved, machine.and_then(|m| m.sample_interval_ns()))
            }
            Source::Cswitch => {
                "before the first and behind the last switch of each processor, and in gaps".to_owned()
            }
        };
        if lost {
            why.push_str("; events were lost");
            doubts.push("events were lost".to_owned());
        }
        let busy = machine.and_then(|m| m.sampled_busy_ns()).unwrap_or(0).max(1) as f64;
        Printer {
            time,
            model: Model::read(db, time.source == Source::Sample),
            waits,
            doubts,
            unobserved: why,
            with_stack: machine.map_or(0, |m| m.sampled_stack_ns()) as f64 / busy,
        }
    }

    fn print(&self, kind: Kind, items: Items, rows: &mut TableBuilder<BillRow>, strings: &mut Strings) {
        let mut items: Vec<(RowKind, Item)> =
            items.into_iter().map(|((part, _), item)| (part, item)).collect();
        items.sort_by(|(a, x), (b, y)| (a, y.total()).cmp(&(b, x.total())));
        for (part, item) in &items {
            if item.total() > 0 || !item.side.is_nothing() {
                rows.push(self.row(kind, *part, item, strings));
            }
        }
        let nobody = |part: &'static str, label: &str, strings: &mut Strings| {
            let item = Item { culprit: label.to_owned(), ..Item::default() };
            let mut row = self.row(kind, RowKind::Rest, &item, strings);
            row.part = strings.intern(part);
            row.is_idle = part == "idle";
            row.is_unattributed = part != "idle";
            row.why = None;
            row
        };
        let observed = self.time.source != Source::None;
        for (part, ns) in [("idle", self.time.idle), ("unattributed", self.time.unattributed)] {
            if !observed || (part == "unattributed" && ns == 0) {
                continue;
            }
            let mut row = nobody(part, &format!("[{part}]"), strings);
            row.total_cpu_ns = ns;
            row.share_percent = self.share(ns);
            row.core_hours = hours(ns);
            row.why = match part {
                "idle" => (!self.time.idle_seen).then(|| strings.intern(UNSEEN_IDLE)),
                _ => Some(strings.intern("busy, but whose time it was cannot be determined")),
            };
            rows.push(row);
        }
        if self.time.unobserved > 0 {
            let mut row = nobody("unobserved", "[not observed]", strings);
            row.share_percent = None;
            row.unobserved_ns = Some(self.time.unobserved);
            row.why = Some(strings.intern(&self.unobserved));
            rows.push(row);
        }
    }

    fn share(&self, ns: i64) -> Option<f64> {
        (self.time.capacity > 0).then(|| 100.0 * ns as f64 / self.time.capacity as f64)
    }

    fn row(&self, kind: Kind, part: RowKind, item: &Item, strings: &mut Strings) -> BillRow {
        let total = item.total();
        let (confidence, mut why) = self.confidence(kind, total);
        if item.unknown > 0 {
            let share = 100.0 * item.unknown as f64 / total.max(1) as f64;
            let separator = if why.is_empty() { "" } else { "; " };
            why.push_str(&format!(
                "{separator}for {share:.0} % no stack tells whether a driver had queued the work"
            ));
        }
        let joules = self.model.as_ref().filter(|_| total > 0).map(|model| model.joules(total));
        // Waits are of processes; where none were recorded nothing is known.
        let imposed = item.side.imposed_ns.or((self.waits && kind != Kind::Driver && total > 0).then_some(0));
        BillRow {
            kind: strings.intern(kind.name()),
            part: strings.intern(part.name()),
            is_idle: false,
            is_unattributed: false,
            culprit: strings.intern(&item.culprit),
            upid: item.upid,
            vendor: text(strings, &item.vendor),
            category: text(strings, &item.category)
                .filter(|_| ![OTHER, OTHER_DRIVER].contains(&item.category.as_str())),
            own_cpu_ns: item.own,
            frames_cpu_ns: item.frames,
            dpc_ns: item.dpc,
            isr_ns: item.isr,
            total_cpu_ns: total,
            share_percent: self.share(total),
            core_hours: hours(total),
            unobserved_ns: None,
            imposed_wait_ns: imposed.filter(|_| part == RowKind::Culprit),
            filter_ns: item.side.filter_ns,
            file_ns: item.side.file_ns,
            registry_ns: item.side.registry_ns,
            hard_fault_ns: item.side.fault_ns,
            energy_j: joules.map(|j| short(j.mid)),
            energy_low_j: joules.map(|j| short(j.low)),
            energy_high_j: joules.map(|j| short(j.high)),
            energy_wh: joules.map(|j| short(j.mid / 3600.0)),
            source: strings.intern(match self.time.source {
                Source::Sample => "sample",
                Source::Cswitch => "cswitch",
                Source::None => "none",
            }),
            confidence: strings.intern(confidence),
            why: text(strings, &why),
        }
    }

    fn confidence(&self, kind: Kind, ns: i64) -> (&'static str, String) {
        if self.time.source == Source::None {
            return ("cannot tell", String::new());
        }
        let mut why = self.doubts.clone();
        let mut level = usize::from(!why.is_empty());
        if let Some(samples) = self.model.as_ref().and_then(|model| model.samples(ns)).filter(|_| ns > 0) {
            // 1,000 samples are sure within 3 %, 100 within 10 %.
            if samples < 100 {
                level = 2;
            } else if samples < 1000 {
                level = level.max(1);
            }
            if samples < 1000 {
                let error = 100.0 / (samples.max(1) as f64).sqrt();
                let s = if samples == 1 { "" } else { "s" };
                why.push(format!("{samples} sample{s} (± {error:.0} %)"));
            }
        }
        if kind != Kind::Process {
            if self.time.source == Source::Cswitch {
                level = 2;
                why.push("without samples drivers and libraries inside of threads cannot be seen".to_owned());
            } else if self.with_stack < 0.9 {
                level = level.max(1);
                why.push(format!("{:.0} % of the samples have a stack", self.with_stack * 100.0));
            }
        }
        if let Some(model) = self.model.as_ref().filter(|_| ns > 0) {
            let machines = if model.known {
                "servers like this one"
            } else {
                "servers of all ages, the processor is not known"
            };
            let frequency = if model.frequency { "recorded frequencies" } else { "nominal frequency" };
            why.push(format!("energy: model, {machines} ({}), {frequency}", model.group()));
        }
        (["high", "medium", "low"].get(level).copied().unwrap_or("low"), why.join("; "))
    }
}

/// Anomalies that mean that whole stretches of events are missing.
const LOSSES: [&str; 5] =
    ["buffers_missing", "buffers_lost", "events_lost", "fewer_buffers_than_written", "file_truncated"];

fn buffers_missing(db: &Database) -> bool {
    db.read_or_empty::<LedgerRow>().iter().any(|row| LOSSES.contains(&row.name()))
}

/// Why samples do not account for `unobserved` of the time of the processors, where they should come every `interval`.
fn unsampled_part(db: &Database, unobserved: i64, interval: Option<i64>) -> String {
    let seconds = |ns: i64| ns as f64 / 1e9;
    let (mut span, mut length, mut steps): (Option<(i64, i64)>, f64, f64) = (None, 0.0, 0.0);
    let cpus = db.read_or_empty::<CpuRow>();
    // The machine that stands still takes no samples, and those of lost buffers did come.
    let machine = db.read_or_empty::<MachineRow>();
    let paused =
        machine.first().map_or(0, |m| m.elapsed_cpu_ns().saturating_sub(running_cpu_ns(m)) / m.cpus().max(1));
    let lost = Gaps::read(db).total();
    for row in cpus.iter() {
        let Some((first, last)) = row.first_sample_ns().zip(row.last_sample_ns()) else { continue };
        span = Some(span.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
        length += last.saturating_sub(first).saturating_sub(paused) as f64;
        steps += row.samples().saturating_sub(1).max(0) as f64;
    }
    let trace = db.read_or_empty::<TraceRow>();
    let ends = trace.first().map(|trace| (trace.first_ns(), trace.last_ns()));
    let Some(((from, to), (begin, end))) = span.zip(ends) else {
        return "no samples: time in which nothing was recorded".to_owned();
    };
    let outside = from.saturating_sub(begin).max(0).saturating_add(end.saturating_sub(to).max(0));
    let outside = outside as f64 * cpus.iter().count() as f64;
    let mean = (length - lost) / steps.max(1.0);
    if outside >= unobserved as f64 / 2.0 {
        let (from, to, end) = (seconds(from), seconds(to), seconds(end));
        return format!("no samples before {from:.3} s and after {to:.3} s of {end:.3} s");
    }
    // By less than this, timers differ anyway.
    match interval.filter(|&interval| interval > 0 && mean > 1.005 * interval as f64) {
        Some(interval) => format!(
            "samples came every {} on average rather than every {}",
            units::duration(mean),
            units::duration_ns(interval)
        ),
        None => "gaps between the samples".to_owned(),
    }
}

fn hours(ns: i64) -> f64 {
    ns as f64 / 3.6e12
}

/// Three significant digits: more are not known.
fn short(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10f64.powi(value.log10().floor() as i32 - 2);
    let rounded = (value / unit).round() * unit;
    // Written out again, since a product of floats has stray digits.
    format!("{rounded:.3e}").parse().unwrap_or(rounded)
}
