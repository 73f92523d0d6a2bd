//! Processors in counter logs: how busy, and how much of it is DPCs and interrupts.
//!
//! # How it is computed
//!
//! From `counter` and `counter_slice`: the instances of `Processor`, or of `Processor Information` where it has more of them.
//! A slice is *pegged* if the mean of `% Processor Time` in it is 90 or more; DPC and interrupt time are taken from the same
//! slices. In `counter_pegged` a processor counts as pegged with at least three samples and half of its slices, or ten minutes,
//! pegged; it is so *by interrupts* if `% DPC Time` and `% Interrupt Time` are at least half of `% Processor Time` then.
//!
//! # What fools it
//!
//! Windows charges by the clock: with few samples or short slices values scatter. Slices of long logs hide short peaks.

use crate::derive::DerivedSpec;
use crate::fold::freeze_plain;
use etwhy_base::time::{filetime, filetime_text};
use etwhy_counters::tables::{CounterMachineRow, CounterRow, CounterSliceRow};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use std::collections::{BTreeMap, BTreeSet};

define_table! {
    /// Processors of counter logs, one row for each and one for all of them (`_Total`): how busy they were.
    ///
    /// Percent of time, 0 to 100. Null where the counter was not logged.
    pub table COUNTER_CPU: CounterCpuRow = "counter_cpu" {
        version: 1,
        /// Machine.
        machine: Sym [None, Name],
        /// Processor as the log names it.
        instance: Sym [None, Name],
        /// It is the sum of all.
        is_total: bool [None, Flag],
        /// Node, where the log tells it; 0 else.
        node: i32 [None, Other],
        /// Number within its node; -1 for the sum.
        number: i32 [None, Other],
        /// Mean of `% Processor Time`.
        busy_mean: Option<f64> [Percent, Other],
        /// 95th percentile of it.
        busy_p95: Option<f64> [Percent, Other],
        /// Largest.
        busy_max: Option<f64> [Percent, Other],
        /// Share of samples above 90, 0 to 1.
        busy_high_share: Option<f64> [None, Other],
        /// Mean of `% DPC Time`.
        dpc_mean: Option<f64> [Percent, Other],
        /// 95th percentile of it.
        dpc_p95: Option<f64> [Percent, Other],
        /// Largest.
        dpc_max: Option<f64> [Percent, Other],
        /// Share of samples above 90, 0 to 1.
        dpc_high_share: Option<f64> [None, Other],
        /// Mean of `% Interrupt Time`.
        interrupt_mean: Option<f64> [Percent, Other],
        /// 95th percentile of it.
        interrupt_p95: Option<f64> [Percent, Other],
        /// Largest.
        interrupt_max: Option<f64> [Percent, Other],
        /// Share of samples above 90, 0 to 1.
        interrupt_high_share: Option<f64> [None, Other],
        /// Mean of `% Privileged Time`.
        privileged_mean: Option<f64> [Percent, Other],
        /// Mean of `% User Time`.
        user_mean: Option<f64> [Percent, Other],
        /// Samples of `% Processor Time`.
        samples: i64 [Count, Count],
        /// Slices of time that have any.
        observed_ns: i64 [Ns, Duration],
        /// Slices that are pegged.
        pegged_ns: i64 [Ns, Duration],
        /// Begin of the first one, since 1970 (UTC).
        pegged_utc_ns: Option<i64> [Ns, Other],
        /// Mean of `% Processor Time` in pegged slices.
        pegged_busy: Option<f64> [Percent, Other],
        /// Mean of `% DPC Time` in pegged slices.
        pegged_dpc: Option<f64> [Percent, Other],
        /// Mean of `% Interrupt Time` in pegged slices.
        pegged_interrupt: Option<f64> [Percent, Other],
    }
}

define_table! {
    /// Machines of counter logs: which processors are pegged, and which of them by DPCs and interrupts.
    pub table COUNTER_PEGGED: CounterPeggedRow = "counter_pegged" {
        version: 1,
        /// Machine.
        machine: Sym [None, Name],
        /// Processors.
        cpus: i32 [Count, Count],
        /// DPC or interrupt time was logged for processors.
        has_interrupts: bool [None, Flag],
        /// by `interrupts`, or by `threads` (or not known).
        kind: Sym [None, Kind],
        /// Processors that are pegged in this way.
        pegged_cpus: i32 [Count, Count],
        /// Their numbers.
        processors: Sym [None, Message],
        /// The longest time that one of them was pegged.
        pegged_ns: i64 [Ns, Duration],
        /// For how long it was observed.
        observed_ns: i64 [Ns, Duration],
        /// When the first of them began to be, in the log's local time.
        since: Sym [None, Message],
        /// Their mean `% Processor Time` then.
        busy: f64 [Percent, Other],
        /// Their mean `% DPC Time` then; 0 where not logged.
        dpc: f64 [Percent, Other],
        /// Their mean `% Interrupt Time` then; 0 where not logged.
        interrupt: f64 [Percent, Other],
        /// Mean `% Processor Time` of all processors that are not pegged in this way; null if there are none.
        others_busy: Option<f64> [Percent, Other],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&COUNTER_CPU, &COUNTER_PEGGED],
    reads: reads::<(CounterRow, CounterSliceRow, CounterMachineRow)>,
    on_demand: true,
    make,
};

/// What makes a slice pegged.
const PEGGED: f64 = 90.0;
/// A processor that is pegged for so long is pegged, however long the log is.
const LONG_NS: i64 = 600_000_000_000;
/// Samples below which nothing is said.
const LEAST_SAMPLES: i64 = 3;

/// One counter of one processor.
#[derive(Clone, Default)]
struct Figures {
    counter: i64,
    mean: Option<f64>,
    p95: Option<f64>,
    max: Option<f64>,
    high: Option<f64>,
    samples: i64,
}

/// Counters of one processor, by English name.
type Cpu = BTreeMap<String, Figures>;

/// Machine, object and instance.
type Key = (String, String, String);

const NAMES: [&str; 5] =
    ["% Processor Time", "% DPC Time", "% Interrupt Time", "% Privileged Time", "% User Time"];

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let cpus = cpus_of(db);
    let slices = slices_of(db, &cpus);
    let mut strings = Strings::new();
    let mut rows = Vec::new();
    let clocks = clocks_of(db);
    for ((machine, _, instance), counters) in &cpus {
        let clock = clocks.get(machine).copied().unwrap_or_default();
        rows.push(cpu_row((machine, clock), instance, counters, &slices, &mut strings));
    }
    rows.sort_by(|a, b| {
        let key = |r: &CounterCpuRow| (strings.get(r.machine).to_owned(), r.is_total, r.node, r.number);
        key(a).cmp(&key(b))
    });
    let mut pegged = TableBuilder::<CounterPeggedRow>::new(memory);
    for row in pegged_rows(&rows, &clocks, &mut strings) {
        pegged.push(row);
    }
    let mut table = TableBuilder::<CounterCpuRow>::new(memory);
    rows.into_iter().for_each(|row| table.push(row));
    let texts = freeze_plain(strings)?;
    Ok(vec![table.finish(&texts)?, pegged.finish(&texts)?])
}

/// What is known of a machine's time.
#[derive(Clone, Copy, Default)]
struct Clock {
    /// Minutes from local time to UTC.
    bias_min: i64,
    /// Usual time between samples.
    interval_ns: i64,
    /// The last sample; `None` if it is not known.
    last_utc_ns: Option<i64>,
}

/// Clocks by machine.
fn clocks_of(db: &Database) -> BTreeMap<String, Clock> {
    let machines = db.read_or_empty::<CounterMachineRow>();
    let clock = machines.iter().map(|row| {
        let clock = Clock {
            bias_min: row.bias_min().unwrap_or(0),
            interval_ns: row.interval_ns().unwrap_or(0),
            last_utc_ns: Some(row.last_utc_ns()),
        };
        (row.machine().to_owned(), clock)
    });
    clock.collect()
}

/// Slices with the time that their values speak of: where samples are further apart than slices are long, as far as to the next sample.
fn reaching(slices: &[(i64, i64, f64)], clock: Clock) -> Vec<(i64, i64, f64)> {
    let next = slices.iter().skip(1).map(|slice| Some(slice.0)).chain([clock.last_utc_ns]);
    let reach = |((begin, length, mean), next): (&(i64, i64, f64), Option<i64>)| {
        let room = next.map_or(*length, |next| next.saturating_sub(*begin));
        (*begin, (*length).max(clock.interval_ns.min(room)), *mean)
    };
    slices.iter().zip(next).map(reach).collect()
}

/// Processors with their counters, of the object that has more of them.
fn cpus_of(db: &Database) -> BTreeMap<Key, Cpu> {
    let mut all: BTreeMap<Key, Cpu> = BTreeMap::new();
    for row in &db.read_or_empty::<CounterRow>() {
        let (Some(object @ ("Processor" | "Processor Information")), Some(name), Some(instance)) =
            (row.object_en(), row.name_en(), row.instance())
        else {
            continue;
        };
        let count = row.samples();
        if !NAMES.contains(&name) || row.nth() != 0 || count == 0 {
            continue;
        }
        let counter = row.counter();
        let (mean, p95, max) = (row.mean_value(), row.p95_value(), row.max_value());
        let high = row.above_90_samples().map(|high| high as f64 / count as f64);
        let key = (row.machine().to_owned(), object.to_owned(), instance.to_owned());
        let figures = Figures { counter, mean, p95, max, high, samples: count };
        all.entry(key).or_default().entry(name.to_owned()).or_insert(figures);
    }
    let mut count: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (machine, object, _) in all.keys() {
        *count.entry((machine.clone(), object.clone())).or_default() += 1;
    }
    let number = |machine: &str, object: &str| {
        count.get(&(machine.to_owned(), object.to_owned())).copied().unwrap_or(0)
    };
    all.retain(|(machine, object, _), _| {
        let more = number(machine, "Processor Information") > number(machine, "Processor");
        (object == "Processor Information") == more
    });
    // Sums of single nodes would be counted twice.
    all.retain(|(_, object, instance), _| {
        object == "Processor" || !(is_total(instance) && instance.contains(','))
    });
    all
}

fn is_total(instance: &str) -> bool {
    instance.to_ascii_lowercase().contains("_to")
}

/// Slices of the counters of processors: begin, length, mean.
type Slices = BTreeMap<i64, Vec<(i64, i64, f64)>>;

fn slices_of(db: &Database, cpus: &BTreeMap<Key, Cpu>) -> Slices {
    let wanted: BTreeSet<i64> = cpus.values().flat_map(|c| c.values().map(|f| f.counter)).collect();
    let mut slices = Slices::new();
    for row in &db.read_or_empty::<CounterSliceRow>() {
        if !wanted.contains(&row.counter()) {
            continue;
        }
        let slice = (row.utc_ns(), row.dur_ns(), row.mean_value());
        slices.entry(row.counter()).or_default().push(slice);
    }
    slices
}

fn cpu_row(
    (machine, clock): (&str, Clock),
    instance: &str,
    cpu: &Cpu,
    slices: &Slices,
    strings: &mut Strings,
) -> CounterCpuRow {
    let of = |name: &str| cpu.get(name).cloned().unwrap_or_default();
    let none = Vec::new();
    let slices_of = |name: &str| cpu.get(name).and_then(|f| slices.get(&f.counter)).unwrap_or(&none);
    let all = reaching(slices_of("% Processor Time"), clock);
    let pegged: Vec<&(i64, i64, f64)> = all.iter().filter(|slice| slice.2 >= PEGGED).collect();
    let begins: BTreeSet<i64> = pegged.iter().map(|slice| slice.0).collect();
    let mean_then = |name: &str| {
        mean(slices_of(name).iter().filter(|slice| begins.contains(&slice.0)).map(|slice| slice.2))
    };
    let length = |slices: &mut dyn Iterator<Item = i64>| slices.fold(0i64, i64::saturating_add);
    let total = is_total(instance);
    let (node, number) = place(instance);
    let [busy, dpc, interrupt] = ["% Processor Time", "% DPC Time", "% Interrupt Time"].map(of);
    CounterCpuRow {
        machine: strings.intern(machine),
        instance: strings.intern(instance),
        is_total: total,
        node,
        number: if total { -1 } else { number },
        busy_mean: busy.mean,
        busy_p95: busy.p95,
        busy_max: busy.max,
        busy_high_share: busy.high,
        dpc_mean: dpc.mean,
        dpc_p95: dpc.p95,
        dpc_max: dpc.max,
        dpc_high_share: dpc.high,
        interrupt_mean: interrupt.mean,
        interrupt_p95: interrupt.p95,
        interrupt_max: interrupt.max,
        interrupt_high_share: interrupt.high,
        privileged_mean: of("% Privileged Time").mean,
        user_mean: of("% User Time").mean,
        samples: busy.samples,
        observed_ns: length(&mut all.iter().map(|slice| slice.1)),
        pegged_ns: length(&mut pegged.iter().map(|slice| slice.1)),
        pegged_utc_ns: begins.first().copied(),
        pegged_busy: mean_then("% Processor Time"),
        pegged_dpc: mean_then("% DPC Time"),
        pegged_interrupt: mean_then("% Interrupt Time"),
    }
}

/// Node and number of `3` and `1,3`.
fn place(instance: &str) -> (i32, i32) {
    let (node, number) = instance.split_once(',').unwrap_or(("0", instance));
    (node.trim().parse().unwrap_or(0), number.trim().parse().unwrap_or(i32::MAX))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

fn pegged_rows(
    cpus: &[CounterCpuRow],
    clocks: &BTreeMap<String, Clock>,
    strings: &mut Strings,
) -> Vec<CounterPeggedRow> {
    let mut rows = Vec::new();
    for of_machine in cpus.chunk_by(|a, b| a.machine == b.machine) {
        let single: Vec<&CounterCpuRow> = of_machine.iter().filter(|cpu| !cpu.is_total).collect();
        let has_interrupts = single.iter().any(|cpu| cpu.dpc_mean.is_some() || cpu.interrupt_mean.is_some());
        let nodes = single.iter().any(|cpu| cpu.node > 0);
        for kind in ["interrupts", "threads"] {
            let here: Vec<&CounterCpuRow> = single
                .iter()
                .filter(|cpu| is_pegged(cpu) && by_interrupts(cpu) == (kind == "interrupts"))
                .copied()
                .collect();
            let Some(longest) = here.iter().max_by_key(|cpu| cpu.pegged_ns) else { continue };
            let names: Vec<String> = here
                .iter()
                .map(
                    |cpu| if nodes { format!("{}:{}", cpu.node, cpu.number) } else { cpu.number.to_string() },
                )
                .collect();
            let of =
                |figure: fn(&CounterCpuRow) -> Option<f64>| mean(here.iter().filter_map(|cpu| figure(cpu)));
            let others = single.iter().filter(|cpu| !here.iter().any(|h| h.instance == cpu.instance));
            let minutes = clocks.get(strings.get(longest.machine)).map_or(0, |clock| clock.bias_min);
            let first = here.iter().filter_map(|cpu| cpu.pegged_utc_ns).min().unwrap_or(0);
            rows.push(CounterPeggedRow {
                machine: longest.machine,
                cpus: single.len() as i32,
                has_interrupts,
                kind: strings.intern(kind),
                pegged_cpus: here.len() as i32,
                processors: strings.intern(&names.join(", ")),
                pegged_ns: longest.pegged_ns,
                observed_ns: longest.observed_ns,
                since: strings.intern(&stamp(first.saturating_sub(minutes.saturating_mul(60_000_000_000)))),
                busy: of(|cpu| cpu.pegged_busy).unwrap_or(0.0),
                dpc: of(|cpu| cpu.pegged_dpc).unwrap_or(0.0),
                interrupt: of(|cpu| cpu.pegged_interrupt).unwrap_or(0.0),
                others_busy: mean(others.filter_map(|cpu| cpu.busy_mean)),
            });
        }
    }
    rows
}

fn is_pegged(cpu: &CounterCpuRow) -> bool {
    cpu.samples >= LEAST_SAMPLES
        && cpu.pegged_ns > 0
        && (cpu.pegged_ns >= LONG_NS || cpu.pegged_ns.saturating_mul(2) >= cpu.observed_ns)
}

fn by_interrupts(cpu: &CounterCpuRow) -> bool {
    let share = cpu.pegged_dpc.unwrap_or(0.0) + cpu.pegged_interrupt.unwrap_or(0.0);
    cpu.pegged_busy.is_some_and(|busy| 2.0 * share >= busy)
}

/// `2024-05-01 10:30:00` of nanoseconds since 1970.
pub fn stamp(ns: i64) -> String {
    filetime_text(filetime(ns), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use etwhy_table::Value;

    const S: i64 = 1_000_000_000;

    /// Processors with busy, DPC and interrupt time in each of ten minutes.
    fn log(cpus: &[[[f64; 3]; 10]]) -> Database {
        use Value::{F64, I64, Null, Text};
        let (mut counters, mut slices) = (Vec::new(), Vec::new());
        let names = ["0", "1", "2", "3", "_Total"];
        for (cpu, minutes) in cpus.iter().enumerate() {
            for (at, name) in ["% Processor Time", "% DPC Time", "% Interrupt Time"].into_iter().enumerate() {
                let counter = I64((cpu * 3 + at) as i64);
                let values: Vec<f64> = minutes.iter().map(|m| m[at]).collect();
                let high = values.iter().filter(|v| **v > 90.0).count() as i64;
                let sum: f64 = values.iter().sum();
                let text = [Text("SRV"), Text("Processor"), Text(name), Text(names[cpu])];
                let numbers = [I64(0), I64(10), I64(high), F64(sum / 10.0), Null, Null];
                counters.push([&[counter][..], &text, &numbers].concat());
                for (minute, value) in values.iter().enumerate() {
                    slices.push(vec![counter, I64(minute as i64 * 64 * S), I64(64 * S), F64(*value)]);
                }
            }
        }
        let mut db = Database::new();
        db.insert(table(
            "counter",
            "counter machine object_en name_en instance nth samples above_90_samples mean_value p95_value max_value",
            &counters,
        ));
        db.insert(table("counter_slice", "counter utc_ns dur_ns mean_value", &slices));
        db.insert(table(
            "counter_machine",
            "machine bias_min interval_ns last_utc_ns",
            &[vec![Text("SRV"), I64(480), I64(10 * S), Null]],
        ));
        db
    }

    #[test]
    fn a_value_speaks_of_the_time_to_the_next_sample() {
        let clock = Clock { bias_min: 0, interval_ns: 60, last_utc_ns: Some(250) };
        let slices = [(0, 8, 1.0), (56, 8, 1.0), (120, 8, 1.0), (240, 8, 1.0)];
        let lengths: Vec<i64> = reaching(&slices, clock).iter().map(|slice| slice.1).collect();
        // What nobody saw after 180 is not covered.
        assert_eq!(lengths, [56, 60, 60, 10]);
        assert_eq!(reaching(&slices[..1], Clock::default())[0].1, 8);
    }

    #[test]
    fn who_pegs_a_processor() {
        let mut dpc = [[20.0, 5.0, 0.0]; 10];
        dpc[4..].fill([100.0, 70.0, 10.0]);
        let thread = [[99.0, 1.0, 0.5]; 10];
        let mut short = [[10.0, 0.0, 0.0]; 10];
        short[9] = [100.0, 100.0, 0.0];
        let made = make(
            &log(&[dpc, thread, short, [[30.0, 1.0, 1.0]; 10], [[50.0, 10.0, 1.0]; 10]]),
            &Memory::default(),
        )
        .unwrap();
        let (cpu, pegged) = (&made[0], &made[1]);
        assert_eq!(
            (cpu.rows(), cpu.text(4, "instance"), cpu.i64(4, "number")),
            (5, Some("_Total"), Some(-1))
        );
        assert_eq!(
            (cpu.f64(0, "busy_mean"), cpu.f64(0, "dpc_mean"), cpu.f64(0, "busy_high_share")),
            (Some(68.0), Some(44.0), Some(0.6))
        );
        assert_eq!(
            (cpu.i64(0, "pegged_ns"), cpu.i64(0, "observed_ns"), cpu.i64(0, "pegged_utc_ns")),
            (Some(6 * 64 * S), Some(640 * S), Some(256 * S))
        );
        assert_eq!((cpu.f64(0, "pegged_dpc"), cpu.f64(0, "pegged_interrupt")), (Some(70.0), Some(10.0)));
        assert_eq!(pegged.rows(), 2);
        let row = |row| {
            (
                pegged.text(row, "kind").unwrap(),
                pegged.text(row, "processors").unwrap(),
                pegged.i64(row, "cpus").unwrap(),
                pegged.i64(row, "pegged_cpus").unwrap(),
            )
        };
        assert_eq!((row(0), row(1)), (("interrupts", "0", 4, 1), ("threads", "1", 4, 1)));
        // 256 s after 1970 began, eight hours west.
        assert_eq!(
            (pegged.text(0, "since"), pegged.f64(0, "dpc")),
            (Some("1969-12-31 16:04:16"), Some(70.0))
        );
        assert_eq!(pegged.f64(0, "others_busy"), Some((99.0 + 19.0 + 30.0) / 3.0));
    }

    #[test]
    fn stamps() {
        assert_eq!(stamp(1_330_367_760 * S), "2012-02-27 18:36:00");
        assert_eq!(stamp(0), "1970-01-01 00:00:00");
        assert_eq!(stamp(951_825_599 * S), "2000-02-29 11:59:59");
    }
}
