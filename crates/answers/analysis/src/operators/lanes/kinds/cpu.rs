//! Who ran on each processor, and on all of them: context switches tell it exactly; a processor without any is drawn from samples.
//!
//! # How it is computed
//!
//! A run of a thread is cut at the borders of buckets. DPCs and ISRs are part of the run that they interrupt and have bands of their own
//! besides (those that run in threads have none). In a bucket of a processor the processes with the most time have bands, the others one. What is in no run is unknown: before the first switch, behind missing
//! buffers, and runs whose end was not recorded. User and kernel share rest on samples.
//!
//! # What fools it
//!
//! A sample stands for the interval before it, so lanes of samples are blurred by one interval.

use crate::operators::lanes::index::{Entry, Group, Index};
use crate::operators::lanes::spans::by_key;
use crate::operators::lanes::who::{IDLE, IN_DPC, IN_ISR, NOBODY, Read, dpc, isr, run, sample};
use crate::operators::lanes::{
    Ask, Band, Extent, Grid, Kind, Lane, Mark, Series, Shape, Source, process_name,
};
use crate::operators::process_names;
use etwhy_table::Database;
use etwhy_trace::catalog::trace::TraceRow;
use foldhash::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Declaration.
pub static KIND: Kind = Kind {
    name: "cpu",
    about: "who ran on each processor and on all of them, DPCs and ISRs, idle time, and where nothing tells",
    tables: &["cswitch", "sample"],
    open,
};

/// Processes with bands of their own on the lane of all processors.
const TOP: usize = 12;
/// Places where buffers are missing, at most.
const GAPS: usize = 100_000;

struct Cpu {
    extent: Extent,
    names: Vec<(String, i64)>,
    runs: Index,
    dpcs: Index,
    isrs: Index,
    samples: OnceLock<Index>,
    gaps: Vec<(i64, i64, i64)>,
    pointer_size: i64,
}

fn build(extent: Extent, (rows, read): (u32, impl Read)) -> Index {
    Index::build(rows, extent, |row| read(row).map(|(cpu, _)| cpu), |row| read(row).map(|(_, item)| item))
}

fn open(db: &Database, extent: Extent) -> Box<dyn Source> {
    let names = process_names(db);
    let runs = build(extent, run(db, &names));
    let pointer_size = db.read_or_empty::<TraceRow>().first().map_or(8, |trace| trace.pointer_size());
    let mut gaps = Vec::new();
    let (_, read) = run(db, &names);
    for group in &runs.groups {
        let mut known: Option<i64> = None;
        for item in group.rows().filter_map(&read).map(|(_, item)| item) {
            if let Some(end) = known
                && item.from_ns > end
                && gaps.len() < GAPS
            {
                gaps.push((end, item.from_ns, group.id));
            }
            known = Some(known.unwrap_or(i64::MIN).max(item.to_ns));
        }
    }
    drop(read);
    gaps.sort_unstable();
    Box::new(Cpu {
        extent,
        runs,
        dpcs: build(extent, dpc(db)),
        isrs: build(extent, isr(db)),
        samples: OnceLock::new(),
        gaps,
        pointer_size,
        names,
    })
}

fn group_of(index: &Index, id: i64) -> Option<&Group> {
    index.groups.iter().find(|group| group.id == id)
}

/// Sums of one processor's buckets.
fn sum(index: &Index, cpu: i64, ask: &Ask<'_>, (_, read): (u32, impl Read)) -> Vec<Entry> {
    let Some(group) = group_of(index, cpu) else { return Vec::new() };
    index.sum(group, &ask.grid, false, |row| read(row).map(|(_, item)| item), ask.given_up)
}

/// The part of each bucket that is in the trace.
fn lengths(grid: &Grid, extent: Extent) -> Vec<i64> {
    let mut out = vec![0; grid.count];
    grid.cut(extent.first_ns, extent.end_ns, |bucket, ns| {
        if let Some(length) = out.get_mut(bucket) {
            *length = ns;
        }
    });
    out
}

impl Cpu {
    fn samples(&self, db: &Database) -> &Index {
        self.samples.get_or_init(|| build(self.extent, sample(db, &self.names, self.pointer_size)))
    }

    fn series(&self, key: i32, values: Vec<(u32, f64)>) -> Series {
        match key {
            NOBODY => Series::new(Band::Unknown, "process not known", values),
            IDLE => Series::new(Band::Idle, "idle", values),
            IN_DPC => Series::new(Band::Dpc, "DPC", values),
            IN_ISR => Series::new(Band::Isr, "ISR", values),
            upid => {
                let upid = i64::from(upid);
                let name = process_name(&self.names, upid);
                Series { upid: Some(upid), ..Series::new(Band::Process, name, values) }
            }
        }
    }

    /// Who ran: entries with processes as keys, and the table that tells.
    fn ran(&self, db: &Database, cpu: i64, ask: &Ask<'_>) -> (&'static str, Vec<Entry>) {
        if group_of(&self.runs, cpu).is_some() {
            return ("cswitch", sum(&self.runs, cpu, ask, run(db, &self.names)));
        }
        let entries = sum(self.samples(db), cpu, ask, sample(db, &self.names, self.pointer_size));
        let mut out: Vec<Entry> = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = entry.key >> 1;
            match out.iter_mut().rev().take_while(|one| one.bucket == entry.bucket).find(|one| one.key == key)
            {
                Some(one) => one.amount = one.amount.saturating_add(entry.amount),
                None => out.push(Entry { key, ..entry }),
            }
        }
        ("sample", out)
    }

    fn sql(&self, source: &str, cpu: Option<i64>, grid: &Grid) -> String {
        let (from, to) = (grid.start_ns, grid.end_ns);
        let only = cpu.map_or_else(String::new, |cpu| format!("cpu = {cpu} AND "));
        if source == "cswitch" {
            format!(
                "SELECT p.name, p.pid, sum(min(s.ts_ns + s.run_ns, {to}) - max(s.ts_ns, {from})) AS ran_ns\nFROM cswitch s LEFT JOIN process p ON p.upid = s.new_upid\n\
                 WHERE {only}s.ts_ns < {to} AND s.ts_ns + s.run_ns > {from}\nGROUP BY s.new_upid ORDER BY ran_ns DESC"
            )
        } else {
            format!(
                "SELECT p.name, p.pid, s.in_dpc, s.in_isr, sum(s.weight_ns) AS ran_ns\nFROM sample s LEFT JOIN process p ON p.upid = s.upid\n\
                 WHERE {only}s.ts_ns >= {from} AND s.ts_ns < {to}\nGROUP BY s.upid, s.in_dpc, s.in_isr ORDER BY ran_ns DESC"
            )
        }
    }
}

/// Keeps the bands with the most time of each bucket, and those of `keep`; the others are one.
fn largest(entries: &[Entry], most: usize, keep: &HashSet<i32>) -> (Vec<Entry>, Vec<(u32, f64)>) {
    let (mut kept, mut rest) = (Vec::with_capacity(entries.len()), Vec::new());
    for bucket in entries.chunk_by(|a, b| a.bucket == b.bucket) {
        let mut list = bucket.to_vec();
        list.sort_by_key(|entry| {
            (entry.key >= NOBODY && !keep.contains(&entry.key), std::cmp::Reverse(entry.amount))
        });
        let always = list.iter().take_while(|entry| entry.key < NOBODY || keep.contains(&entry.key)).count();
        let others: i64 = list.iter().skip(always + most).map(|entry| entry.amount).sum();
        kept.extend(list.iter().take(always + most));
        if let (true, Some(first)) = (others > 0, list.first()) {
            rest.push((first.bucket, others as f64));
        }
    }
    (kept, rest)
}

impl Source for Cpu {
    fn draw(&self, db: &Database, ask: &Ask<'_>) -> Vec<Lane> {
        let of_switches = self.runs.groups.iter().map(|group| group.id);
        let mut cpus: BTreeSet<i64> = of_switches.collect();
        // Reading samples costs time: only if a processor has nothing else.
        let count = db.read_or_empty::<TraceRow>().first().map_or(0, |trace| trace.cpus());
        if i64::try_from(cpus.len()).unwrap_or(i64::MAX) < count || cpus.is_empty() {
            cpus.extend(self.samples(db).groups.iter().map(|group| group.id));
        }
        cpus.retain(|cpu| ask.wants_cpu(*cpu));
        let most = match cpus.len() {
            0..=8 => 6,
            9..=32 => 3,
            _ => 2,
        };
        let wanted = ask.named().filter_map(|upid| i32::try_from(upid).ok());
        let keep: HashSet<i32> = wanted.collect();
        let lengths = lengths(&ask.grid, self.extent);
        let mut lanes = Vec::new();
        let mut all: HashMap<(i32, u32), i64> = HashMap::default();
        let mut exact = false;
        for cpu in &cpus {
            if (ask.given_up)() {
                return Vec::new();
            }
            let (source, entries) = self.ran(db, *cpu, ask);
            exact |= source == "cswitch";
            let mut lane = Lane::new("cpu", format!("CPU {cpu}"), "ns", Shape::Share);
            lane.id = format!("cpu:{cpu}");
            lane.cpu = Some(*cpu);
            lane.source = source;
            lane.full = ask.grid.bucket_ns as f64;
            lane.sql = self.sql(source, Some(*cpu), &ask.grid);
            let mut unknown = lengths.clone();
            for entry in &entries {
                let sum = all.entry((entry.key, entry.bucket)).or_default();
                *sum = sum.saturating_add(entry.amount);
                if let Some(left) = unknown.get_mut(entry.bucket as usize) {
                    *left = left.saturating_sub(entry.amount);
                }
            }
            let (kept, rest) = largest(&entries, most, &keep);
            let mut bands: Vec<(i32, Vec<(u32, f64)>)> = by_key(&kept).into_iter().collect();
            bands.sort_by_key(|(key, _)| *key);
            lane.series.extend(bands.into_iter().rev().map(|(key, values)| self.series(key, values)));
            if !rest.is_empty() {
                lane.series.push(Series::new(Band::Rest, "other processes", rest));
            }
            let left = unknown.iter().enumerate().filter(|(_, ns)| source == "cswitch" && **ns > 0);
            let left: Vec<(u32, f64)> = left.map(|(bucket, ns)| (bucket as u32, *ns as f64)).collect();
            if !left.is_empty() {
                lane.series.push(Series::new(Band::Unknown, "not recorded", left));
            }
            let dpcs = sum(&self.dpcs, *cpu, ask, dpc(db));
            let isrs = sum(&self.isrs, *cpu, ask, isr(db));
            for (entries, key) in [(dpcs, IN_DPC), (isrs, IN_ISR)] {
                if source == "cswitch" && !entries.is_empty() {
                    for entry in &entries {
                        let sum = all.entry((key, entry.bucket)).or_default();
                        *sum = sum.saturating_add(entry.amount);
                    }
                    lane.series.extend(by_key(&entries).into_values().map(|values| self.series(key, values)));
                }
            }
            if ask.modes {
                let entries = sum(self.samples(db), *cpu, ask, sample(db, &self.names, self.pointer_size));
                let busy = entries.into_iter().filter(|entry| entry.key >> 1 != IDLE);
                let busy = busy.map(|entry| Entry { key: entry.key & 1, ..entry }).collect();
                let busy = crate::operators::lanes::spans::together(vec![busy]);
                let mut values = by_key(&busy);
                for (key, band, name) in [(1, Band::Kernel, "kernel"), (0, Band::User, "user")] {
                    lane.series.extend(values.remove(&key).map(|values| Series::new(band, name, values)));
                }
            }
            lanes.push(lane);
        }
        if cpus.is_empty() {
            return lanes;
        }
        let mut process = Lane::new("process", "CPU by process", "ns", Shape::Share);
        process.full = ask.grid.bucket_ns as f64 * cpus.len() as f64;
        process.source = if exact { "cswitch" } else { "sample" };
        process.sql = self.sql(process.source, None, &ask.grid);
        process.series = self.processes(all, ask);
        lanes.push(process);
        lanes.extend(self.lost(&ask.grid));
        lanes
    }
}

impl Cpu {
    /// The lane of all processors.
    fn processes(&self, all: HashMap<(i32, u32), i64>, ask: &Ask<'_>) -> Vec<Series> {
        let mut by: HashMap<i32, Vec<(u32, f64)>> = HashMap::default();
        for ((key, bucket), amount) in all {
            by.entry(key).or_default().push((bucket, amount as f64));
        }
        let mut rest: HashMap<u32, f64> = HashMap::default();
        let mut bands: Vec<Series> = Vec::new();
        for (key, mut values) in by {
            values.sort_by_key(|(bucket, _)| *bucket);
            bands.push(self.series(key, values));
        }
        let wanted = |series: &Series| ask.named().next().is_some() && ask.wants(series.upid);
        bands.sort_by(|a, b| {
            let rank = |s: &Series| (s.band != Band::Process, !wanted(s));
            rank(a).cmp(&rank(b)).then(b.total.total_cmp(&a.total)).then(a.upid.cmp(&b.upid))
        });
        let mut out = Vec::new();
        for (number, series) in bands.into_iter().enumerate() {
            if series.band == Band::Process && number >= TOP {
                for (bucket, value) in series.values {
                    *rest.entry(bucket).or_default() += value;
                }
            } else {
                out.push(series);
            }
        }
        if !rest.is_empty() {
            let mut rest: Vec<(u32, f64)> = rest.into_iter().collect();
            rest.sort_by_key(|(bucket, _)| *bucket);
            out.push(Series::new(Band::Rest, "other processes", rest));
        }
        out
    }

    /// Where switches of a processor are missing; those that share a bucket are one mark.
    fn lost(&self, grid: &Grid) -> Option<Lane> {
        let (from, to) = (grid.start_ns, grid.end_ns);
        let mut marks: Vec<Mark> = Vec::new();
        for (start, end, cpu) in self.gaps.iter().filter(|(start, end, _)| *start < to && *end > from) {
            let near = marks.last_mut().filter(|mark| mark.to_ns.saturating_add(grid.bucket_ns) >= *start);
            match near {
                Some(mark) => {
                    mark.to_ns = mark.to_ns.max(*end);
                    mark.count += 1;
                }
                None => marks.push(Mark {
                    from_ns: *start,
                    to_ns: *end,
                    text: format!("events are missing (first on CPU {cpu})"),
                    what: "lost",
                    upid: None,
                    count: 1,
                }),
            }
        }
        let mut lane = Lane::new("lost", "Missing events", "", Shape::Marks);
        lane.sql = "SELECT file, session, events_lost, buffers_lost FROM trace".to_owned();
        lane.marks = marks;
        (!lane.marks.is_empty()).then_some(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use crate::operators::among::Among;
    use etwhy_table::ColumnType::{Bool, I32, I64, Text};
    use etwhy_table::Value;

    fn db() -> Database {
        let mut db = Database::new();
        let process = |name, pid| vec![Value::Text(name), Value::I64(pid)];
        let rows = [process("Idle", 0), process("a.exe", 4), process("b.exe", 8)];
        db.insert(table("process", &[("name", Text), ("pid", I32)], &rows));
        let run = |ts, run: Option<i64>, cpu, upid| {
            vec![Value::I64(ts), run.map_or(Value::Null, Value::I64), Value::I64(cpu), Value::I64(upid)]
        };
        // Processor 0: a 10–25, idle 25–40, then b until nobody knows, a again 60–80.
        let rows = [
            run(10, Some(15), 0, 1),
            run(25, Some(15), 0, 0),
            run(40, None, 0, 2),
            run(60, Some(20), 0, 1),
            run(0, Some(100), 1, 2),
        ];
        db.insert(table(
            "cswitch",
            &[("ts_ns", I64), ("run_ns", I64), ("cpu", I32), ("new_upid", I32)],
            &rows,
        ));
        let dpc = |from, to, kind| vec![Value::I64(from), Value::I64(to), Value::I64(0), Value::Text(kind)];
        let columns = [("start_ns", I64), ("ts_ns", I64), ("cpu", I32), ("kind", Text)];
        db.insert(table("dpc", &columns, &[dpc(28, 36, "DPC"), dpc(11, 14, "ThreadedDPC")]));
        let sample = |ts, cpu, ip, dpc| {
            vec![
                Value::I64(ts),
                Value::I64(7),
                Value::I64(cpu),
                Value::I64(1),
                Value::I64(ip),
                Value::Bool(dpc),
                Value::Bool(false),
            ]
        };
        let columns = [
            ("ts_ns", I64),
            ("weight_ns", I64),
            ("cpu", I32),
            ("upid", I32),
            ("ip", I64),
            ("in_dpc", Bool),
            ("in_isr", Bool),
        ];
        let rows = [
            sample(12, 0, -9, false),
            sample(13, 0, 5, false),
            sample(13, 2, 5, false),
            sample(14, 2, 5, true),
        ];
        db.insert(table("sample", &columns, &rows));
        let trace = [vec![Value::I64(3), Value::I64(8)]];
        db.insert(table("trace", &[("cpus", I32), ("pointer_size", I32)], &trace));
        db
    }

    fn draw() -> Vec<Lane> {
        let (db, extent) = (db(), Extent { first_ns: 0, end_ns: 100 });
        let ask = Ask {
            grid: Grid::plain(0, 32, 4),
            processes: Among::default(),
            cpus: Among::default(),
            modes: true,
            given_up: &|| false,
        };
        open(&db, extent).draw(&db, &ask)
    }

    #[allow(clippy::type_complexity)]
    fn shown(lane: &Lane) -> Vec<(Band, &str, Vec<(u32, f64)>)> {
        lane.series.iter().map(|s| (s.band, s.name.as_str(), s.values.clone())).collect()
    }

    #[test]
    fn runs_are_cut_and_what_is_unknown_is_said() {
        let lanes = draw();
        let ids: Vec<&str> = lanes.iter().map(|lane| lane.id.as_str()).collect();
        assert_eq!(ids, ["cpu:0", "cpu:1", "cpu:2", "process", "lost"]);
        assert_eq!(
            shown(&lanes[0]),
            [
                (Band::Process, "a.exe (4)", vec![(0, 15.0), (1, 4.0), (2, 16.0)]),
                (Band::Idle, "idle", vec![(0, 7.0), (1, 8.0)]),
                (Band::Unknown, "not recorded", vec![(0, 10.0), (1, 20.0), (2, 16.0), (3, 4.0)]),
                (Band::Dpc, "DPC", vec![(0, 4.0), (1, 4.0)]),
                (Band::Kernel, "kernel", vec![(0, 7.0)]),
                (Band::User, "user", vec![(0, 7.0)]),
            ]
        );
        assert_eq!(
            shown(&lanes[2])[..2],
            [(Band::Process, "a.exe (4)", vec![(0, 7.0)]), (Band::Dpc, "DPC", vec![(0, 7.0)])]
        );
        let process = shown(&lanes[3]);
        assert_eq!(process[0], (Band::Process, "b.exe (8)", vec![(0, 32.0), (1, 32.0), (2, 32.0), (3, 4.0)]));
        assert_eq!(process[1], (Band::Process, "a.exe (4)", vec![(0, 22.0), (1, 4.0), (2, 16.0)]));
        assert_eq!((lanes[4].marks[0].from_ns, lanes[4].marks[0].to_ns), (40, 60));
    }

    #[test]
    fn small_bands_become_one() {
        let entry = |key, amount| Entry { bucket: 3, key, amount };
        let entries = [entry(5, 10), entry(IDLE, 1), entry(6, 30), entry(7, 2), entry(8, 1)];
        let (kept, rest) = largest(&entries, 1, &[7].into_iter().collect());
        let keys: BTreeSet<i32> = kept.iter().map(|entry| entry.key).collect();
        assert_eq!(keys, [IDLE, 6, 7].into_iter().collect());
        assert_eq!(rest, [(3, 11.0)]);
    }
}
