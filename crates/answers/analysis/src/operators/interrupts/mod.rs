//! DPCs and ISRs of a part of a trace: durations by driver and routine, in classes, and the load of each processor.
//!
//! # How it is computed
//!
//! Rows of `dpc` and `isr` whose end lies in the range. Ten classes of durations per decade (those of table `dpc_histogram` are coarser) count
//! what each took itself, as limits do, so the classes above the limit hold what is over it. Limits are those of that table;
//! percentiles are exact, by nearest rank, as the SQL function `percentiles` has them (those of table `interrupt_cost` are within
//! 0.4 %). A processor is *hot* for a driver if it has at least half as much of its time as the busiest one, as in table
//! `interrupt_spread`. [`Interrupts::sql`] has the same as queries.
//!
//! # What fools it
//!
//! `total_ns` counts an ISR inside a DPC twice, `exclusive_ns` nothing. The driver is that of the routine: a network filter
//! below NDIS shows on stacks of samples alone (table `interrupt_path`).

mod sql;
#[cfg(test)]
mod tests;

use crate::derived::interrupt_path::{self, InterruptPathRow};
use crate::operators::add;
use crate::operators::pivot::{Condition, PivotError, Selected};
use etwhy_table::{CHUNK_ROWS, Database, Matcher, Sym, TableSpec};
use etwhy_trace::catalog::{dpc::DpcRow, isr::IsrRow};
use foldhash::HashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use ts_rs::TS;

/// Upper borders of classes of durations, ns: preferred numbers (series R10 of ISO 3), so that classes are equally wide on a logarithmic
/// scale, the same in every trace, and end at the limits of 25 µs and 100 µs.
#[rustfmt::skip]
pub const BORDERS_NS: [i64; 51] = [
    1_000, 1_250, 1_600, 2_000, 2_500, 3_150, 4_000, 5_000, 6_300, 8_000,
    10_000, 12_500, 16_000, 20_000, 25_000, 31_500, 40_000, 50_000, 63_000, 80_000,
    100_000, 125_000, 160_000, 200_000, 250_000, 315_000, 400_000, 500_000, 630_000, 800_000,
    1_000_000, 1_250_000, 1_600_000, 2_000_000, 2_500_000, 3_150_000, 4_000_000, 5_000_000, 6_300_000, 8_000_000,
    10_000_000, 12_500_000, 16_000_000, 20_000_000, 25_000_000, 31_500_000, 40_000_000, 50_000_000, 63_000_000, 80_000_000,
    100_000_000,
];

/// The page that says how long they should take.
pub const LIMIT_SOURCE: &str = "Microsoft, WDK, \"Example 15: Measuring DPC/ISR Time\"";

/// DPC or ISR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "InterruptClass")]
pub enum Class {
    /// Table `dpc`.
    Dpc,
    /// Table `isr`.
    Isr,
}

impl Class {
    /// Both.
    pub const ALL: [Class; 2] = [Class::Dpc, Class::Isr];

    /// Its table, and the word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Dpc => "dpc",
            Class::Isr => "isr",
        }
    }

    /// How long one should take at most, ns ([`LIMIT_SOURCE`]).
    pub const fn limit_ns(self) -> i64 {
        match self {
            Class::Dpc => 100_000,
            Class::Isr => 25_000,
        }
    }
}

/// Sums of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, TS)]
#[ts(rename = "InterruptSums")]
pub struct Sums {
    /// How many.
    pub count: i64,
    /// With what interrupted them.
    pub total_ns: i64,
    /// Without.
    pub exclusive_ns: i64,
    /// Mean duration.
    pub mean_ns: i64,
    /// Half took no longer.
    pub p50_ns: i64,
    /// 95 % took no longer.
    pub p95_ns: i64,
    /// 99 % took no longer.
    pub p99_ns: i64,
    /// The longest.
    pub max_ns: i64,
    /// Longer than the limit, without what interrupted them.
    pub over_limit: i64,
    /// Duration of those.
    pub over_limit_ns: i64,
}

/// A class of durations, without what interrupted them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, TS)]
#[ts(rename = "InterruptBin")]
pub struct Bin {
    /// Above this.
    pub above_ns: i64,
    /// Up to this; none for the last class.
    pub up_to_ns: Option<i64>,
    /// How many.
    pub count: i64,
    /// Their durations.
    pub total_ns: i64,
    /// The class lies above the limit.
    pub over_limit: bool,
}

/// DPCs or ISRs of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
#[ts(rename = "InterruptDriver")]
pub struct Driver {
    /// DPC or ISR.
    pub class: Class,
    /// Module of the routines; none for all of a class.
    pub module: Option<String>,
    /// Sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// Time of each processor on which any ran, without what interrupted them.
    pub cpus: BTreeMap<i64, i64>,
    /// Processors with at least half as much time as the busiest.
    pub hot: Vec<i64>,
    /// Time on those.
    pub hot_ns: i64,
    /// Classes that hold any.
    pub bins: Vec<Bin>,
    /// Its routines, the costliest first.
    pub routines: Vec<Routine>,
    /// Routines that are not listed.
    pub more_routines: usize,
}

/// One routine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
#[ts(rename = "InterruptRoutine")]
pub struct Routine {
    /// `module!function`.
    pub routine: String,
    /// Sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// Processors on which it ran.
    pub cpus: usize,
}

/// The load of a processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, TS)]
pub struct CpuLoad {
    /// Number.
    pub cpu: i64,
    /// DPCs, without what interrupted them.
    pub dpc_ns: i64,
    /// ISRs, likewise.
    pub isr_ns: i64,
    /// How many of both.
    pub count: i64,
    /// The module with most of it, and its time.
    pub top: Option<(String, i64)>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interrupts {
    /// All DPCs, all ISRs: no module.
    pub all: Vec<Driver>,
    /// By driver, the costliest first.
    pub drivers: Vec<Driver>,
    /// By processor.
    pub cpus: Vec<CpuLoad>,
    /// Queries for the sums by module, and for their classes of durations.
    pub sql: Vec<String>,
}

/// Routines listed of each driver.
const MOST_ROUTINES: usize = 100;

/// Durations that belong together.
#[derive(Default)]
struct Group {
    durations: Vec<i64>,
    /// By class, how many and their time, without what interrupted them.
    bins: BTreeMap<usize, (i64, i64)>,
    exclusive_ns: i64,
    /// How many took longer than the limit themselves, and that time.
    over: (i64, i64),
    cpus: BTreeMap<i64, i64>,
}

impl Group {
    fn merge(&mut self, other: &Group) {
        self.durations.extend_from_slice(&other.durations);
        for (&class, &(count, ns)) in &other.bins {
            let bin = self.bins.entry(class).or_default();
            *bin = (bin.0 + count, bin.1.saturating_add(ns));
        }
        add(&mut self.exclusive_ns, other.exclusive_ns);
        self.over = (self.over.0 + other.over.0, self.over.1.saturating_add(other.over.1));
        for (&cpu, &ns) in &other.cpus {
            add(self.cpus.entry(cpu).or_default(), ns);
        }
    }

    fn sums(&mut self) -> Sums {
        let durations = &mut self.durations;
        durations.sort_unstable();
        let count = durations.len();
        let total = durations.iter().fold(0i64, |sum, ns| sum.saturating_add(*ns));
        let rank = |percent: usize| {
            let at = count.saturating_mul(percent).div_ceil(100).max(1) - 1;
            durations.get(at).copied().unwrap_or(0)
        };
        Sums {
            count: count as i64,
            total_ns: total,
            exclusive_ns: self.exclusive_ns,
            mean_ns: total / (count as i64).max(1),
            p50_ns: rank(50),
            p95_ns: rank(95),
            p99_ns: rank(99),
            max_ns: durations.last().copied().unwrap_or(0),
            over_limit: self.over.0,
            over_limit_ns: self.over.1,
        }
    }

    /// Classes that hold any.
    fn bins(&self, limit: i64) -> Vec<Bin> {
        let border = |at: Option<usize>| at.and_then(|at| BORDERS_NS.get(at)).copied();
        let bin = |(&at, &(count, total_ns)): (&usize, &(i64, i64))| {
            let above_ns = border(at.checked_sub(1)).unwrap_or(0);
            Bin { above_ns, up_to_ns: border(Some(at)), count, total_ns, over_limit: above_ns >= limit }
        };
        self.bins.iter().map(bin).collect()
    }

    fn driver(mut self, class: Class, module: Option<String>) -> Driver {
        let sums = self.sums();
        let busiest = self.cpus.values().copied().max().unwrap_or(0);
        let is_hot = |ns: i64| ns > 0 && ns.saturating_mul(2) >= busiest;
        let hot: Vec<i64> = self.cpus.iter().filter(|(_, ns)| is_hot(**ns)).map(|(cpu, _)| *cpu).collect();
        let hot_ns =
            self.cpus.values().filter(|ns| is_hot(**ns)).fold(0i64, |sum, ns| sum.saturating_add(*ns));
        Driver {
            class,
            module,
            sums,
            hot,
            hot_ns,
            bins: self.bins(class.limit_ns()),
            cpus: self.cpus,
            routines: Vec::new(),
            more_routines: 0,
        }
    }
}

/// What the rows of `dpc` and `isr` have in common.
pub struct InterruptRow<'a> {
    /// When it ended.
    pub ts_ns: i64,
    /// How long it took.
    pub dur_ns: i64,
    /// Of this without what interrupted it.
    pub exclusive_ns: i64,
    /// Processor.
    pub cpu: i64,
    /// Process whose thread was interrupted.
    pub upid: Option<i64>,
    /// Thread that was interrupted.
    pub utid: Option<i64>,
    /// The routine.
    pub frame_id: Option<i64>,
    /// Module of the routine.
    pub module: &'a str,
    /// Its name.
    pub routine: &'a str,
    /// Numbers of both texts.
    pub names: (Option<Sym>, Option<Sym>),
}

/// Hands over the rows of `dpc` or `isr`, none if the table is absent.
pub fn each_interrupt<'a>(db: &'a Database, class: Class, mut give: impl FnMut(InterruptRow<'a>)) {
    macro_rules! each {
        ($row:ty) => {
            for row in &db.read_or_empty::<$row>() {
                give(InterruptRow {
                    ts_ns: row.ts_ns(),
                    dur_ns: row.dur_ns(),
                    exclusive_ns: row.exclusive_ns(),
                    cpu: row.cpu(),
                    upid: row.upid(),
                    utid: row.utid(),
                    frame_id: row.frame_id(),
                    module: row.module(),
                    routine: row.routine(),
                    names: (row.views.module.sym(row.at), row.views.routine.sym(row.at)),
                });
            }
        };
    }
    match class {
        Class::Dpc => each!(DpcRow),
        Class::Isr => each!(IsrRow),
    }
}

/// DPCs and ISRs that fulfil the conditions which `conditions` makes for a table. `go_on` is asked now and then.
///
/// # Errors
/// If conditions make no sense.
pub fn interrupts(
    db: &Database,
    conditions: &dyn Fn(&TableSpec) -> Vec<Condition>,
    mut go_on: impl FnMut() -> bool,
) -> Result<Interrupts, PivotError> {
    let mut out = Interrupts::default();
    let mut loads: BTreeMap<i64, (CpuLoad, HashMap<String, i64>)> = BTreeMap::new();
    for class in Class::ALL {
        let Some(table) = db.get(class.name()).filter(|table| table.rows() > 0) else { continue };
        let selected = Selected::new(db, table, &conditions(table.spec()))?;
        out.sql.extend([sql::sql(class, &selected.from), sql::histogram_sql(&selected.from)]);
        let mut wanted = Matcher::new(table, &selected.conditions).mask().into_iter();
        // By module and routine; names are looked up once for each routine, not for each row.
        let mut numbers: HashMap<(Option<Sym>, Option<Sym>), usize> = HashMap::default();
        let mut groups: Vec<(String, String, Group)> = Vec::new();
        let (mut seen, mut stopped) = (0usize, false);
        each_interrupt(db, class, |row| {
            stopped |= seen.is_multiple_of(CHUNK_ROWS) && !go_on();
            seen += 1;
            if wanted.next() != Some(true) || stopped {
                return;
            }
            let place = *numbers.entry(row.names).or_insert_with(|| {
                groups.push((row.module.to_owned(), row.routine.to_owned(), Group::default()));
                groups.len() - 1
            });
            let Some((_, _, group)) = groups.get_mut(place) else { return };
            group.durations.push(row.dur_ns);
            let bin = group
                .bins
                .entry(BORDERS_NS.partition_point(|border| *border < row.exclusive_ns))
                .or_default();
            *bin = (bin.0 + 1, bin.1.saturating_add(row.exclusive_ns));
            add(&mut group.exclusive_ns, row.exclusive_ns);
            if row.exclusive_ns > class.limit_ns() {
                group.over = (group.over.0 + 1, group.over.1.saturating_add(row.exclusive_ns));
            }
            add(group.cpus.entry(row.cpu).or_default(), row.exclusive_ns);
            loads.entry(row.cpu).or_default().0.count += 1;
        });
        let mut all = Group::default();
        let mut modules: BTreeMap<String, (Group, Vec<Routine>)> = BTreeMap::new();
        for (module, routine, mut group) in groups {
            all.merge(&group);
            for (&cpu, &ns) in &group.cpus {
                let (load, by) = loads.entry(cpu).or_default();
                add(if class == Class::Dpc { &mut load.dpc_ns } else { &mut load.isr_ns }, ns);
                add(by.entry(module.clone()).or_default(), ns);
            }
            let (sum, routines) = modules.entry(module).or_default();
            sum.merge(&group);
            let cpus = group.cpus.len();
            routines.push(Routine { routine, sums: group.sums(), cpus });
        }
        if !all.durations.is_empty() {
            out.all.push(all.driver(class, None));
        }
        for (module, (group, mut routines)) in modules {
            let mut driver = group.driver(class, Some(module));
            routines.sort_by(|a, b| {
                b.sums.exclusive_ns.cmp(&a.sums.exclusive_ns).then_with(|| a.routine.cmp(&b.routine))
            });
            driver.more_routines = routines.len().saturating_sub(MOST_ROUTINES);
            routines.truncate(MOST_ROUTINES);
            driver.routines = routines;
            out.drivers.push(driver);
        }
    }
    out.drivers.sort_by(|a, b| {
        b.sums
            .exclusive_ns
            .cmp(&a.sums.exclusive_ns)
            .then_with(|| (a.class, &a.module).cmp(&(b.class, &b.module)))
    });
    out.cpus = loads
        .into_iter()
        .map(|(cpu, (load, by))| {
            let top = by.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
            CpuLoad { cpu, top, ..load }
        })
        .collect();
    Ok(out)
}

/// Sampled time of a driver inside of the DPCs or ISRs of another.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct OnStack {
    /// DPC or ISR.
    pub class: String,
    /// Module whose routine was called.
    pub host: String,
    /// Innermost driver that is not Windows itself.
    pub driver: String,
    /// Who makes it.
    pub vendor: Option<String>,
    /// What it belongs to.
    pub product: Option<String>,
    /// What it is for.
    pub category: Option<String>,
    /// A security product.
    pub security: bool,
    /// Sampled time.
    pub cost_ns: i64,
    /// Of all sampled time in the host's DPCs or ISRs, percent.
    pub percent: f64,
    /// Samples.
    pub samples: i64,
}

/// Who is on the stacks of the DPCs and ISRs whose samples fulfil the conditions, costliest first: [`on_stacks`] of a trace that has no
/// other samples.
///
/// # Errors
/// If conditions make no sense.
pub fn on_stacks_where(db: &Database, conditions: &[Condition]) -> Result<Vec<OnStack>, PivotError> {
    let Some(table) = db.get("sample") else { return Ok(Vec::new()) };
    let selected = Selected::new(db, table, conditions)?;
    let wanted: Vec<bool> = Matcher::new(table, &selected.conditions).mask();
    let mut part = Database::new();
    part.insert(interrupt_path::of_samples(db, &wanted)?);
    Ok(on_stacks(&part))
}

/// Who is on the stacks of DPCs and ISRs (table `interrupt_path`), costliest first.
pub fn on_stacks(db: &Database) -> Vec<OnStack> {
    let mut hosts: HashMap<(String, String), i64> = HashMap::default();
    let mut sums: BTreeMap<(String, String, String), OnStack> = BTreeMap::new();
    for row in &db.read_or_empty::<InterruptPathRow>() {
        let Some(of) = row.host() else { continue };
        let class = row.class().to_owned();
        let cost = row.cost_ns();
        add(hosts.entry((class.clone(), of.to_owned())).or_default(), cost);
        let Some(name) = row.driver() else { continue };
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let key = (class.clone(), of.to_owned(), name.to_owned());
        let sum = sums.entry(key).or_insert_with(|| OnStack {
            class,
            host: of.to_owned(),
            driver: name.to_owned(),
            vendor: owned(row.vendor()),
            product: owned(row.product()),
            category: owned(row.category()),
            security: row.category().is_some_and(etwhy_knowledge::is_security),
            cost_ns: 0,
            percent: 0.0,
            samples: 0,
        });
        add(&mut sum.cost_ns, cost);
        add(&mut sum.samples, row.samples());
    }
    let mut out: Vec<OnStack> = sums.into_values().collect();
    for one in &mut out {
        let whole = hosts.get(&(one.class.clone(), one.host.clone())).copied().unwrap_or(0).max(1);
        one.percent = 100.0 * one.cost_ns as f64 / whole as f64;
    }
    out.sort_by_key(|one| std::cmp::Reverse(one.cost_ns));
    out
}
