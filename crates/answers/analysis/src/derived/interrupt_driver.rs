//! The drivers that run inside of the DPCs and ISRs of each module, and how long those are.
//!
//! # How it is computed
//!
//! From `interrupt_sample`. Frameworks (`ndis.sys`, `storport.sys`, `Wdf01000.sys`, the kernel for its timers) register routines and call the drivers of
//! several devices from them. Each sample is charged as in `driver_cost`: to the innermost driver on the stack that is not Windows itself, unless it
//! merely handed the work on; else to the module of the routine. `device_driver` is whose device it is, as in `interrupt_path`: NDIS and TCP/IP work in
//! its DPCs, too, and so may a filter. A sample stands for as many DPCs of its length as fit into the time between two
//! samples, which estimates how many of them are each device's. Those above Microsoft's limits (100 µs for a DPC, 25 µs for an ISR) are also
//! summed apart: one device may have most of the time, and another all of the long ones. A single long one is that driver's that has more than half of
//! its samples.
//!
//! # What fools it
//!
//! Without samples, or without their stacks, the framework stands in for its drivers: `interrupt_host` says where. Counts are estimates: a driver with 20 samples has, in 19 of
//! 20 cases, between half and one and a half times as many. Without names of the kernel its dispatcher cannot be seen on the stack; then only what
//! lies inside of the registered module counts.

mod host;

use super::interrupt_path::{device_driver, is_kernel};
use crate::derive::DerivedSpec;
use crate::fold::{Class, Facts, FactsRows, Fold, Stack, Stacks, StacksRows, freeze_plain};
use crate::operators::add;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::interrupt_cost::{DPC_LIMIT_NS, ISR_LIMIT_NS, InterruptCostRow};
use etwhy_trace::catalog::interrupt_sample::InterruptSampleRow;
use foldhash::HashMap;
pub use host::{INTERRUPT_HOST, InterruptHostRow};
use std::collections::BTreeMap;

define_table! {
    /// Drivers inside of the DPCs and ISRs of each module, from samples.
    ///
    /// `cpu` says what a row sums over: one processor, or all of them where it is null. Take rows of one kind only.
    pub table INTERRUPT_DRIVER: InterruptDriverRow = "interrupt_driver" {
        version: 2,
        /// dpc or isr.
        class: Sym [None, Kind],
        /// Module whose routine was registered.
        host: Sym [None, Name],
        /// Processor; null for all of them together.
        cpu: Option<i32> [None, Cpu],
        /// Driver of the device, as in `interrupt_path`; the host where there is none.
        device_driver: Sym [None, Name],
        /// Driver that is charged; the host where it is nobody else.
        driver: Sym [None, Name],
        /// Sampled time.
        cost_ns: i64 [Ns, Weight],
        /// Part of the sampled time of the host's routines, 0 to 1.
        share: f64 [None, Other],
        /// Samples.
        samples: i64 [Count, Count],
        /// DPCs or ISRs that these samples stand for (estimate).
        count: i64 [Count, Count],
        /// Samples in those above Microsoft's limit.
        long_samples: i64 [Count, Count],
        /// Sampled time of these.
        long_ns: i64 [Ns, Other],
        /// Part of the sampled time of the host's routines above the limit, 0 to 1; 0 if it has none.
        long_share: f64 [None, Other],
        /// DPCs or ISRs above the limit that these samples stand for (estimate).
        long_count: i64 [Count, Count],
        /// The longest above the limit of whose samples this row has more than half, without what interrupted it; 0 if there is none.
        longest_ns: i64 [Ns, Duration],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&INTERRUPT_DRIVER, &INTERRUPT_HOST],
    reads: reads::<(InsidesRows, InterruptCostRow)>,
    on_demand: false,
    make,
};

/// What [`Insides::read`] reads.
pub(crate) type InsidesRows = (InterruptSampleRow, FactsRows, StacksRows);

/// Samples of a processor in the whole trace below which a share is chance.
const LEAST_SAMPLES: i64 = 20;

/// Samples in a time range from which they alone tell.
const LEAST_IN_RANGE: i64 = 10;

/// A sample in a DPC or ISR.
struct Inside {
    class: Class,
    cpu: i64,
    ts_ns: i64,
    start_ns: i64,
    /// Module of the routine, the device's driver, and the one that is charged.
    host: u32,
    device: u32,
    driver: u32,
    told: Told,
    exclusive_ns: i64,
    weight_ns: i64,
}

/// What a sample says of the drivers for which a routine ran.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Nothing: it has no stack.
    NoStack,
    /// Nothing: the routine cannot be found on its stack, because functions of the kernel have no names.
    NoRoutine,
    /// Whether there is one, and which.
    All,
}

/// Whose work a framework's routines do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind<'i> {
    /// This driver's.
    Driver(&'i str),
    /// The module's own, or that of several, or it is no framework.
    Itself,
    /// Some driver's, and no stacks tell whose.
    Hidden,
}

/// Names of modules without regard to case.
#[derive(Default)]
struct Names {
    all: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        *self.numbers.entry(name.to_ascii_lowercase()).or_insert_with(|| {
            self.all.push(name.to_owned());
            (self.all.len() - 1) as u32
        })
    }

    fn name(&self, number: u32) -> Option<&str> {
        self.all.get(number as usize).map(String::as_str)
    }
}

/// All samples in DPCs and ISRs with whom they are charged to, by processor in time order.
#[derive(Default)]
pub(crate) struct Insides {
    names: Names,
    all: Vec<Inside>,
}

/// A processor and a time range of it.
pub(crate) type Range = (i64, i64, i64);

impl Insides {
    /// Reads the tables.
    pub fn read(db: &Database) -> Insides {
        let rows = db.read_or_empty::<InterruptSampleRow>();
        let mut out = Insides::default();
        if rows.is_empty() {
            return out;
        }
        let fold = Fold { facts: Facts::read(db, false), stacks: Stacks::read(db), groups: Vec::new() };
        let mut drivers: HashMap<(i64, u32), ([u32; 2], Told)> = HashMap::default();
        for row in &rows {
            let (host, stack) = (out.names.number(row.module()), row.stack_id().unwrap_or(-1));
            let ([device, driver], told) = match drivers.get(&(stack, host)) {
                Some(drivers) => *drivers,
                None => {
                    let (known, told) = on_stack(&fold, stack, row.module());
                    let number = |module: u32| match fold.facts.module(module) {
                        Some(module) => out.names.number(&module.name),
                        None => host,
                    };
                    let known = (known.map(number), told);
                    drivers.insert((stack, host), known);
                    known
                }
            };
            out.all.push(Inside {
                class: Class::named(row.class()),
                cpu: row.cpu(),
                ts_ns: row.ts_ns(),
                start_ns: row.start_ns(),
                host,
                device,
                driver,
                told,
                exclusive_ns: row.exclusive_ns(),
                weight_ns: row.weight_ns(),
            });
        }
        out.all.sort_by_key(|inside| (inside.cpu, inside.ts_ns));
        out
    }

    /// The driver with more than half of the sampled time that routines of `module` had in these ranges. Where too few samples lie in them, all of these
    /// processors tell.
    pub fn behind(&self, module: &str, ranges: &[Range]) -> Behind<'_> {
        let unknown = if host::is_framework(module) { Behind::Hidden } else { Behind::Itself };
        let Some(host) = self.names.numbers.get(&module.to_ascii_lowercase()) else { return unknown };
        let named = |driver: Option<u32>| {
            let other = driver.filter(|driver| driver != host).and_then(|driver| self.names.name(driver));
            other.map_or(Behind::Itself, Behind::Driver)
        };
        let (samples, driver) = self.most(*host, ranges);
        if samples >= LEAST_IN_RANGE {
            return named(driver);
        }
        let mut whole: Vec<Range> = ranges.iter().map(|&(cpu, ..)| (cpu, i64::MIN, i64::MAX)).collect();
        whole.sort_unstable();
        whole.dedup();
        let (samples, driver) = self.most(*host, &whole);
        if samples >= LEAST_SAMPLES { named(driver) } else { unknown }
    }

    /// Samples of a host in these ranges that tell whose they are, and whose more than half of their time is.
    fn most(&self, host: u32, ranges: &[Range]) -> (i64, Option<u32>) {
        let (mut samples, mut all_ns) = (0i64, 0i64);
        let mut sums: BTreeMap<u32, i64> = BTreeMap::new();
        for &(cpu, from, to) in ranges {
            let begin = self.all.partition_point(|inside| (inside.cpu, inside.ts_ns) < (cpu, from));
            let end = self.all.partition_point(|inside| (inside.cpu, inside.ts_ns) < (cpu, to));
            let within = self.all.get(begin..end).unwrap_or_default();
            for inside in within.iter().filter(|inside| inside.host == host && inside.told == Told::All) {
                samples = samples.saturating_add(1);
                add(&mut all_ns, inside.weight_ns);
                add(sums.entry(inside.driver).or_default(), inside.weight_ns);
            }
        }
        (samples, most(&sums, all_ns))
    }
}

/// Who has more than half.
fn most<K: Copy>(sums: &BTreeMap<K, i64>, all_ns: i64) -> Option<K> {
    sums.iter().find(|(_, ns)| ns.saturating_mul(2) > all_ns).map(|(driver, _)| *driver)
}

/// Numbers of the device's driver and of the one that a sample in a routine of `host` is charged to, as far as the stack names them.
fn on_stack(fold: &Fold, stack: i64, host: &str) -> ([u32; 2], Told) {
    let facts = &fold.facts;
    let mut part = fold.part(Class::Dpc, stack);
    if !part.kernel.last().is_some_and(|frame| facts.is_dispatch(*frame)) {
        // Beyond the routine the stack goes on with the thread that was interrupted.
        let is_host = |frame: &u32| {
            let module = facts.module(facts.module_of(*frame));
            module.is_some_and(|module| module.name.eq_ignore_ascii_case(host))
        };
        // Of the kernel's own routines only a stack that begins in one: no thread, and nothing without a name, is below it.
        let is_named = |frame: u32| {
            let function = facts.functions.get(facts.function_of(frame) as usize);
            facts.is_named(frame) && function.is_some_and(|(label, _)| !label.ends_with("!?"))
        };
        let begins =
            |&frame: &u32| is_named(frame) && !facts.is_thread_start(frame) && !facts.starts_work(frame);
        let alone = part.user.is_empty() && part.kernel.last().is_some_and(begins);
        let end = part.kernel.iter().rposition(is_host).filter(|_| !is_kernel(host) || alone);
        let own = end.and_then(|end| part.kernel.get(..=end)).unwrap_or_default();
        part = Stack { kernel: own, user: &[] };
    }
    let told = match part.kernel.is_empty() {
        _ if fold.stacks.is_leaf_only(stack) => Told::NoStack,
        true => Told::NoRoutine,
        false => Told::All,
    };
    ([device_driver(facts, part.kernel), fold.owner(&part)], told)
}

/// Sums of a driver.
#[derive(Clone, Copy, Default)]
struct Sum {
    ns: i64,
    samples: i64,
    count: f64,
}

impl Sum {
    fn add(&mut self, inside: &Inside) {
        add(&mut self.ns, inside.weight_ns);
        add(&mut self.samples, 1);
        self.count += inside.weight_ns as f64 / inside.exclusive_ns.max(1) as f64;
    }
}

/// Sums of all, and of those above the limit.
#[derive(Clone, Copy, Default)]
struct Cost {
    all: Sum,
    long: Sum,
    longest_ns: i64,
}

impl Cost {
    fn add(&mut self, inside: &Inside) {
        self.all.add(inside);
        if is_long(inside) {
            self.long.add(inside);
        }
    }
}

fn is_long(inside: &Inside) -> bool {
    let limit = if inside.class == Class::Isr { ISR_LIMIT_NS } else { DPC_LIMIT_NS };
    inside.exclusive_ns > limit
}

/// Class, host, and processor or all of them.
type Host = (Class, u32, Option<i64>);

/// A long DPC or ISR: its host, its length, and whose samples are in it.
type Long = (u32, i64, BTreeMap<[u32; 2], i64>);

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let insides = Insides::read(db);
    let mut hosts: BTreeMap<Host, Cost> = BTreeMap::new();
    let mut drivers: BTreeMap<(Host, [u32; 2]), Cost> = BTreeMap::new();
    // By class, processor and begin.
    let mut long: BTreeMap<(Class, i64, i64), Long> = BTreeMap::new();
    for inside in &insides.all {
        for cpu in [None, Some(inside.cpu)] {
            let host = (inside.class, inside.host, cpu);
            hosts.entry(host).or_default().add(inside);
            drivers.entry((host, [inside.device, inside.driver])).or_default().add(inside);
        }
        if is_long(inside) {
            let key = (inside.class, inside.cpu, inside.start_ns);
            let one = long.entry(key).or_insert_with(|| (inside.host, inside.exclusive_ns, BTreeMap::new()));
            add(one.2.entry([inside.device, inside.driver]).or_default(), inside.weight_ns);
        }
    }
    for ((class, cpu, _), (host, exclusive_ns, sums)) in &long {
        let all_ns = sums.values().fold(0i64, |all, ns| all.saturating_add(*ns));
        let Some(driver) = most(sums, all_ns) else { continue };
        for cpu in [None, Some(*cpu)] {
            let cost = drivers.entry(((*class, *host, cpu), driver)).or_default();
            cost.longest_ns = cost.longest_ns.max(*exclusive_ns);
        }
    }
    let mut rows = TableBuilder::<InterruptDriverRow>::new(memory);
    let mut strings = Strings::new();
    let share = |part: i64, all: i64| part as f64 / all.max(1) as f64;
    for ((host, [device, driver]), cost) in &drivers {
        let all = hosts.get(host).copied().unwrap_or_default();
        let (class, module, cpu) = host;
        let mut name = |number: u32| strings.intern(insides.names.name(number).unwrap_or(""));
        let (module, device_driver, driver) = (name(*module), name(*device), name(*driver));
        rows.push(InterruptDriverRow {
            class: strings.intern(class.name()),
            host: module,
            cpu: cpu.and_then(|cpu| i32::try_from(cpu).ok()),
            device_driver,
            driver,
            cost_ns: cost.all.ns,
            share: share(cost.all.ns, all.all.ns),
            samples: cost.all.samples,
            count: cost.all.count.round() as i64,
            long_samples: cost.long.samples,
            long_ns: cost.long.ns,
            long_share: share(cost.long.ns, all.long.ns),
            long_count: cost.long.count.round() as i64,
            longest_ns: cost.longest_ns,
        });
    }
    Ok(vec![rows.finish(&freeze_plain(strings)?)?, host::table(db, &insides, memory)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::{sampled, table};
    use etwhy_table::Value;

    const DISPATCH: &str = "ntoskrnl.exe!KiExecuteAllDpcs ntoskrnl.exe!KiRetireDpcList";

    /// Samples as processor, host, length of the DPC in microseconds, number of its stack.
    fn database(stacks: &[String], samples: &[(i64, &'static str, i64, i64)]) -> Database {
        let of: Vec<(&str, i64, i64, &str)> = stacks.iter().map(|s| ("dpc", 1, 1, s.as_str())).collect();
        let mut db = sampled(&of);
        let row = |(at, &(cpu, host, us, stack)): (usize, &(i64, &'static str, i64, i64))| {
            let ts = at as i64 * 1_000_000;
            vec![
                Value::Text("dpc"),
                Value::I64(ts),
                Value::I64(cpu),
                Value::Text(host),
                Value::I64(ts - 1),
                Value::I64(us * 1_000),
                Value::I64(stack),
                Value::I64(1_000_000),
            ]
        };
        let rows: Vec<Vec<Value<'_>>> = samples.iter().enumerate().map(row).collect();
        let columns = "class ts_ns cpu module start_ns exclusive_ns stack_id weight_ns";
        db.insert(table("interrupt_sample", columns, &rows));
        db
    }

    fn stacks() -> Vec<String> {
        vec![
            format!("eth.sys!Receive ndis.sys!ndisInterruptDpc {DISPATCH}"),
            format!("wlan.sys!Receive ndis.sys!ndisInterruptDpc {DISPATCH}"),
            format!("poll.sys!Timer ntoskrnl.exe!IopTimerDispatch {DISPATCH}"),
            // NDIS and TCP/IP work in the device's DPCs.
            format!(
                "tcpip.sys!Receive ndis.sys!NdisMIndicateReceiveNetBufferLists wlan.sys!Receive ndis.sys!ndisInterruptDpc {DISPATCH}"
            ),
            // The dispatcher is not known: what lies outside of the routine is the thread's.
            "ntoskrnl.exe!? other.sys!Thread ntoskrnl.exe!?".to_owned(),
        ]
    }

    #[test]
    fn one_device_has_most_of_the_time_and_another_all_of_the_long_ones() {
        let mut samples = vec![(0, "ndis.sys", 20, 0); 60];
        samples.extend([(4, "NDIS.SYS", 250, 1); 40]);
        samples.extend([(4, "NDIS.SYS", 250, 3); 10]);
        let made = make(&database(&stacks(), &samples), &Memory::default()).unwrap();
        let of = |driver: &str, cpu: Option<i64>| {
            let at = (0..made[0].rows() as u32)
                .find(|&row| made[0].text(row, "driver") == Some(driver) && made[0].i64(row, "cpu") == cpu)
                .unwrap();
            ["samples", "count", "long_samples", "long_count", "longest_ns"]
                .map(|column| made[0].i64(at, column).unwrap())
        };
        assert_eq!(made[0].rows(), 6);
        assert_eq!(of("eth.sys", None), [60, 3_000, 0, 0, 0]);
        assert_eq!(of("wlan.sys", None), [40, 160, 40, 160, 250_000]);
        assert_eq!(of("wlan.sys", Some(4)), [40, 160, 40, 160, 250_000]);
        assert_eq!(of("ndis.sys", Some(4)), [10, 40, 10, 40, 250_000]);
        let of_wlan =
            (0..made[0].rows() as u32).filter(|&row| made[0].text(row, "device_driver") == Some("wlan.sys"));
        assert_eq!(of_wlan.count(), 4);
    }

    #[test]
    fn the_range_and_its_processor_tell_whose_they_are() {
        let mut samples = vec![(0, "ndis.sys", 20, 0); 60];
        samples.extend([(4, "ndis.sys", 250, 1); 40]);
        samples.extend([(2, "ntoskrnl.exe", 16_000, 2); 20]);
        samples.extend([(2, "ntoskrnl.exe", 16_000, 4); 10]);
        let insides = Insides::read(&database(&stacks(), &samples));
        let all = (i64::MIN, i64::MAX);
        let behind = |host: &str, cpu, (from, to)| insides.behind(host, &[(cpu, from, to)]);
        assert_eq!(behind("NDIS.sys", 0, all), Behind::Driver("eth.sys"));
        assert_eq!(behind("ndis.sys", 4, all), Behind::Driver("wlan.sys"));
        // Too few of them in the range: the processor tells.
        assert_eq!(behind("ndis.sys", 4, (60_000_000, 62_000_000)), Behind::Driver("wlan.sys"));
        assert_eq!(behind("ntoskrnl.exe", 2, all), Behind::Driver("poll.sys"));
        // Stacks on which the routine cannot be found tell nothing, and neither does a framework without samples.
        assert_eq!(behind("ntoskrnl.exe", 2, (120_000_000, i64::MAX)), Behind::Driver("poll.sys"));
        assert_eq!(behind("storport.sys", 2, all), Behind::Hidden);
        assert_eq!(behind("nic.sys", 2, all), Behind::Itself);
    }
}
