//! Counter logs in words: machines, processors, disks, memory, network.

use etwhy_analysis::derived::counter_cpu::{CounterCpuRow, stamp};
use etwhy_base::units::{bytes, counted, decimal, duration_ns, thousands};
use etwhy_counters::tables::{CounterMachineRow, CounterNoteRow, CounterRow, CounterSliceRow};
use etwhy_doc::{Column, Doc, Line, Span};
use etwhy_table::{Absent, Database, RowOf};
use std::collections::BTreeMap;

/// Processors that are all listed; of more, the busiest.
const MOST_CPUS: usize = 64;

/// Machines that are shown; of more, the first.
const MOST_MACHINES: usize = 50;

/// Machines whose log is described above the findings, which should not begin on the third page of a fleet.
const MOST_TOLD: usize = 10;

/// Means of each counter in the slices of the log.
pub struct Slices {
    width: i64,
    count: usize,
    means: BTreeMap<i64, Vec<Option<f64>>>,
}

impl Slices {
    /// Reads `counter_slice`.
    ///
    /// # Errors
    /// If it is not there.
    pub fn read(db: &Database) -> Result<Slices, Absent> {
        let rows = db.read::<CounterSliceRow>()?;
        let (mut first, mut last, mut width) = (i64::MAX, i64::MIN, 0);
        for row in &rows {
            let begin = row.utc_ns();
            (first, last) = (first.min(begin), last.max(begin));
            // The first and the last slice may be shorter.
            width = width.max(row.dur_ns());
        }
        let count = if width > 0 {
            usize::try_from(last.div_euclid(width).saturating_sub(first.div_euclid(width)) + 1)
                .unwrap_or(1)
                .min(1024)
        } else {
            0
        };
        let mut means: BTreeMap<i64, Vec<Option<f64>>> = BTreeMap::new();
        for row in &rows {
            let (counter, begin) = (row.counter(), row.utc_ns());
            let slice = |ns: i64| ns.div_euclid(width.max(1));
            let at = usize::try_from(slice(begin).saturating_sub(slice(first))).unwrap_or(0);
            if let Some(place) = means.entry(counter).or_insert_with(|| vec![None; count]).get_mut(at) {
                *place = Some(row.mean_value());
            }
        }
        Ok(Slices { width, count, means })
    }

    /// The means of a counter as bars. `whole`: the value of a full bar, the largest one if there is none.
    fn bars(&self, counter: i64, whole: Option<f64>) -> Line {
        let means = self.means.get(&counter).cloned().unwrap_or_default();
        let most = means.iter().flatten().copied().fold(0.0, f64::max);
        Span::Spark(means, whole.unwrap_or(most)).into()
    }
}

/// Adds the machines: what was logged, and how busy they were.
///
/// # Errors
/// If a table is not there.
pub fn add(doc: &mut Doc, db: &Database, top: usize) -> Result<(), Absent> {
    let machines = db.read::<CounterMachineRow>()?;
    let slices = Slices::read(db)?;
    for machine in machines.iter().take(MOST_MACHINES).map(|row| row.machine()) {
        if machines.len() > 1 {
            doc.heading(format!("═══ {}", name_of(machine)));
        }
        cpus(doc, db, machine, &slices)?;
        for (title, objects) in LISTS {
            list(doc, db, machine, (title, objects), &slices, top)?;
        }
    }
    if machines.len() > MOST_MACHINES {
        doc.space();
        let all = thousands(machines.len() as i128);
        doc.text(format!(
            "The first {MOST_MACHINES} of {all} machines; --dump counter has the counters of all."
        ));
    }
    if slices.count > 0 {
        doc.space();
        doc.text(format!(
            "Bars: the whole log in slices of {} or more, the largest mean each; percentages of 100, others of their own largest.",
            duration_ns(slices.width)
        ));
    }
    Ok(())
}

/// Lists of counters with the objects that they show.
const LISTS: [(&str, &[&str]); 5] = [
    ("System", &["System"]),
    ("Memory", &["Memory", "Paging File"]),
    ("Disks", &["PhysicalDisk", "LogicalDisk"]),
    ("Network", &["Network Interface", "Network Adapter", "TCPv4", "TCPv6"]),
    ("Processes", &["Process", "Process V2"]),
];

fn name_of(machine: &str) -> &str {
    if machine.is_empty() { "(machine not named)" } else { machine }
}

/// Adds what was read: machines, time, counters, and what was strange.
///
/// # Errors
/// If a table is not there.
pub fn add_quality(doc: &mut Doc, db: &Database, files: &[String]) -> Result<(), Absent> {
    let mut lines: Vec<Line> = files.iter().take(5).map(Line::from).collect();
    if let Some(more) = files.len().checked_sub(5).filter(|more| *more > 0) {
        lines.push(format!("and {}", counted(more as i64, "more file", "more files")).into());
    }
    let machines = db.read::<CounterMachineRow>()?;
    lines.extend(machines.iter().take(MOST_TOLD).map(|row| machine_line(row).into()));
    if let Some(more) = machines.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        let more = counted(more as i64, "more machine", "more machines");
        lines.push(format!("and {more} (--dump counter_machine)").into());
    }
    for row in &db.read::<CounterNoteRow>()? {
        let count = thousands(row.count().into());
        let note = format!(": {count} x {}: {} (first: {})", row.name(), row.meaning(), row.first());
        lines.push(Line::mark(row.severity()).and(note));
    }
    doc.facts("Counter logs", lines);
    Ok(())
}

fn machine_line(machine: RowOf<'_, '_, CounterMachineRow>) -> String {
    let bias = machine.bias_min().unwrap_or(0);
    let local = |utc: i64| stamp(utc.saturating_sub(bias.saturating_mul(60_000_000_000)));
    let (first, last) = (machine.first_utc_ns(), machine.last_utc_ns());
    let cpus =
        machine.cpus().map_or(String::new(), |n| format!(", {}", counted(n, "processor", "processors")));
    let every = machine.interval_ns().map(|ns| format!(", every {}", duration_ns(ns))).unwrap_or_default();
    let zone = machine.zone().map_or("zone not named".to_owned(), |zone| {
        format!(
            "{zone}, UTC{}{:02}:{:02}",
            if bias > 0 { '-' } else { '+' },
            bias.abs() / 60,
            bias.abs() % 60
        )
    });
    let unknown = match machine.unknown_counters() {
        0 => String::new(),
        1 => " (1 of them is of no finding and not judged)".to_owned(),
        n => format!(" ({} of them are of no finding and not judged)", thousands(n.into())),
    };
    let gaps = match machine.gaps() {
        0 => String::new(),
        n => format!(
            "; {} without samples, {} in all",
            counted(n, "gap", "gaps"),
            duration_ns(machine.gap_ns())
        ),
    };
    let language = machine.unknown_language().map_or(String::new(), |example| {
        format!("; the language of its counters is not known ({example}), so they are not judged")
    });
    format!(
        "{}: {}{unknown}{cpus}{every}, {} from {} to {} ({zone}){gaps}{language}",
        name_of(machine.machine()),
        counted(machine.counters(), "counter", "counters"),
        duration_ns(last.saturating_sub(first)),
        local(first),
        local(last)
    )
}

fn cpus(doc: &mut Doc, db: &Database, machine: &str, slices: &Slices) -> Result<(), Absent> {
    let table = db.read::<CounterCpuRow>()?;
    let mut rows: Vec<_> = table.iter().filter(|row| row.machine() == machine).enumerate().collect();
    if rows.is_empty() {
        return Ok(());
    }
    let all = rows.len();
    if all > MOST_CPUS {
        let busy = |(_, row): &(usize, RowOf<'_, '_, CounterCpuRow>)| row.busy_mean().unwrap_or(0.0);
        rows.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        rows.truncate(MOST_CPUS);
        rows.sort_unstable_by_key(|(at, _)| *at);
    }
    let ids = cpu_counters(db, machine)?;
    doc.heading("Processors (percent of time; >90: share of samples above 90)");
    let groups = ["% Processor Time", "% DPC Time", "% Interrupt Time"];
    let figures = groups
        .iter()
        .flat_map(|group| ["mean", "p95", "max", ">90"].map(|head| Column::number(head).below(*group)));
    let bars = Column::rest("").below("% Processor Time (bars)");
    let mut list = etwhy_doc::Table::new(
        std::iter::once(Column::number("")).chain(figures).chain(std::iter::once(bars)),
    );
    let figure = |value: Option<f64>| {
        Line::from(value.map_or("-".to_owned(), |v| decimal(v, usize::from(v.abs() < 9.95))))
    };
    for (_, row) in rows {
        let instance = row.instance();
        let mut cells = vec![Line::from(instance)];
        for (figures, share) in [
            ([row.busy_mean(), row.busy_p95(), row.busy_max()], row.busy_high_share()),
            ([row.dpc_mean(), row.dpc_p95(), row.dpc_max()], row.dpc_high_share()),
            ([row.interrupt_mean(), row.interrupt_p95(), row.interrupt_max()], row.interrupt_high_share()),
        ] {
            cells.extend(figures.map(figure));
            cells.push(share.map_or("-".to_owned(), |v| format!("{:.0}%", 100.0 * v)).into());
        }
        cells.extend(ids.get(instance).map(|id| slices.bars(*id, Some(100.0))));
        list.row(cells);
    }
    doc.table(list);
    if all > MOST_CPUS {
        doc.text(format!("the {MOST_CPUS} busiest of {all}"));
    }
    Ok(())
}

/// Counters of `% Processor Time`, by instance.
fn cpu_counters(db: &Database, machine: &str) -> Result<BTreeMap<String, i64>, Absent> {
    let mut ids = BTreeMap::new();
    for row in &db.read::<CounterRow>()? {
        let is_cpu = matches!(row.object_en(), Some("Processor" | "Processor Information"));
        if let (true, Some("% Processor Time"), Some(instance)) =
            (is_cpu && row.machine() == machine, row.name_en(), row.instance())
        {
            ids.entry(instance.to_owned()).or_insert(row.counter());
        }
    }
    Ok(ids)
}

/// A value in its unit, short.
fn shown(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else { return "-".to_owned() };
    let whole = value.clamp(-9e18, 9e18) as i64;
    match unit {
        "percent" => format!("{} %", decimal(value, 1)),
        "seconds" if value.abs() < 9e9 => duration_ns((value * 1e9) as i64),
        "bytes" => bytes(whole),
        "bytes/s" => format!("{}/s", bytes(whole)),
        "MiB" if value.abs() < 8e12 => bytes((value * 1_048_576.0) as i64),
        "KiB" if value.abs() < 8e15 => bytes((value * 1024.0) as i64),
        "bits/s" => format!("{} Mbit/s", decimal(value / 1e6, 0)),
        "per second" => format!("{}/s", plain(value)),
        _ => plain(value),
    }
}

fn plain(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => decimal(value, 0),
        size if size >= 1.0 => decimal(value, 1),
        _ => decimal(value, 3),
    }
}

fn list(
    doc: &mut Doc,
    db: &Database,
    machine: &str,
    (title, objects): (&str, &[&str]),
    slices: &Slices,
    top: usize,
) -> Result<(), Absent> {
    let table = db.read::<CounterRow>()?;
    let mut rows: Vec<_> = table
        .iter()
        .filter(|row| row.machine() == machine && row.samples() > 0)
        .map(|row| ((row.object_en().unwrap_or(""), row.name_en().unwrap_or("")), row))
        .filter(|((object, name), _)| objects.contains(object) && !name.is_empty() && !NOISE.contains(name))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    // Those of one name stand together, the largest first; sums are no instances.
    rows.sort_by(|(name, row), (other, than)| {
        let mean = |row: &RowOf<'_, '_, CounterRow>| row.mean_value().unwrap_or(0.0);
        name.cmp(other).then(mean(than).total_cmp(&mean(row)))
    });
    doc.heading(title);
    let figures = ["mean", "p95", "max", "last"].map(Column::number);
    let bars = std::iter::once(Column::rest(""));
    let mut list =
        etwhy_doc::Table::new(std::iter::once(Column::name("").least(26)).chain(figures).chain(bars));
    list.hint = "--top; --dump counter has all".to_owned();
    let mut same = ("", "");
    let mut shown_rows = 0usize;
    for (name, row) in rows {
        shown_rows = if name == same { shown_rows + 1 } else { 1 };
        if shown_rows > top {
            list.more += 1;
            continue;
        }
        same = name;
        let instance = match (row.instance().unwrap_or(""), row.nth()) {
            ("", _) => String::new(),
            (instance, 0) => format!("{instance} "),
            (instance, nth) => format!("{instance}#{nth} "),
        };
        let unit = row.unit();
        let mut cells = vec![Line::name(format!("{instance}{}", name.1))];
        let values = [row.mean_value(), row.p95_value(), row.max_value(), row.last_value()];
        cells.extend(values.map(|value| Line::from(shown(value, unit))));
        cells.push(slices.bars(row.counter(), (unit == "percent").then_some(100.0)));
        list.row(cells);
    }
    doc.table(list);
    Ok(())
}

/// Counters that say nothing about how busy something is.
const NOISE: [&str; 7] = [
    "ID Process",
    "Creating Process ID",
    "Elapsed Time",
    "Priority Base",
    "System Up Time",
    "Current Bandwidth",
    "Connection Failures",
];
