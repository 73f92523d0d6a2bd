//! Counter logs in words: machines, processors, disks, memory, network.

use etwhy_analysis::derived::counter_cpu::stamp;
use etwhy_base::units::{bytes, decimal, duration_ns, thousands};
use etwhy_counters::tables::{CounterRow, CounterSliceRow};
use etwhy_doc::{Column, Doc, Line, Span};
use etwhy_table::{Database, Table};
use std::collections::BTreeMap;

/// Processors that are all listed; of more, the busiest.
const MOST_CPUS: usize = 64;

/// Means of each counter in the slices of the log.
pub struct Slices {
    width: i64,
    count: usize,
    means: BTreeMap<i64, Vec<Option<f64>>>,
}

impl Slices {
    /// Reads `counter_slice`.
    pub fn of(db: &Database) -> Slices {
        let (mut first, mut last, mut width) = (i64::MAX, i64::MIN, 0);
        for row in &db.read_or_empty::<CounterSliceRow>() {
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
        for row in &db.read_or_empty::<CounterSliceRow>() {
            let (counter, begin) = (row.counter(), row.utc_ns());
            let slice = |ns: i64| ns.div_euclid(width.max(1));
            let at = usize::try_from(slice(begin).saturating_sub(slice(first))).unwrap_or(0);
            if let Some(place) = means.entry(counter).or_insert_with(|| vec![None; count]).get_mut(at) {
                *place = Some(row.mean_value());
            }
        }
        Slices { width, count, means }
    }

    /// The means of a counter as bars. `whole`: the value of a full bar, the largest one if there is none.
    fn bars(&self, counter: i64, whole: Option<f64>) -> Line {
        let means = self.means.get(&counter).cloned().unwrap_or_default();
        let most = means.iter().flatten().copied().fold(0.0, f64::max);
        Span::Spark(means, whole.unwrap_or(most)).into()
    }
}

/// Adds the machines: what was logged, and how busy they were.
pub fn add(doc: &mut Doc, db: &Database, top: usize) {
    let Some(machines) = db.get("counter_machine") else { return };
    let slices = Slices::of(db);
    for row in 0..machines.rows() as u32 {
        let machine = machines.text(row, "machine").unwrap_or("");
        if machines.rows() > 1 {
            doc.heading(format!("═══ {}", name_of(machine)));
        }
        cpus(doc, db, machine, &slices);
        for (title, objects) in LISTS {
            list(doc, db, machine, (title, objects), &slices, top);
        }
    }
    if slices.count > 0 {
        doc.space();
        doc.text(format!(
            "Bars: the whole log in slices of {} or more, the largest mean each; percentages of 100, others of their own largest.",
            duration_ns(slices.width)
        ));
    }
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
pub fn add_quality(doc: &mut Doc, db: &Database, files: &[String]) {
    let mut lines: Vec<Line> = files.iter().take(5).map(Line::from).collect();
    if let Some(more) = files.len().checked_sub(5).filter(|more| *more > 0) {
        lines.push(format!("and {more} more files").into());
    }
    if let Some(machines) = db.get("counter_machine") {
        lines.extend((0..machines.rows() as u32).map(|row| machine_line(machines, row).into()));
    }
    if let Some(notes) = db.get("counter_note") {
        for row in 0..notes.rows() as u32 {
            let text = |column| notes.text(row, column).unwrap_or("");
            let count = thousands(notes.i64(row, "count").unwrap_or(0).into());
            let note =
                format!(": {count} x {}: {} (first: {})", text("name"), text("meaning"), text("first"));
            lines.push(Line::mark(text("severity")).and(note));
        }
    }
    doc.facts("Counter logs", lines);
}

fn machine_line(machines: &Table, row: u32) -> String {
    let number = |column| machines.i64(row, column);
    let bias = number("bias_min").unwrap_or(0);
    let local = |utc: i64| stamp(utc.saturating_sub(bias.saturating_mul(60_000_000_000)));
    let (first, last) = (number("first_utc_ns").unwrap_or(0), number("last_utc_ns").unwrap_or(0));
    let cpus =
        number("cpus").map_or(String::new(), |n| format!(", {n} processor{}", if n == 1 { "" } else { "s" }));
    let every = number("interval_ns").map(|ns| format!(", every {}", duration_ns(ns))).unwrap_or_default();
    let zone = machines.text(row, "zone").map_or("zone not named".to_owned(), |zone| {
        format!(
            "{zone}, UTC{}{:02}:{:02}",
            if bias > 0 { '-' } else { '+' },
            bias.abs() / 60,
            bias.abs() % 60
        )
    });
    let unknown = match number("unknown_counters").unwrap_or(0) {
        0 => String::new(),
        n => format!(" ({} of them are of no finding and not judged)", thousands(n.into())),
    };
    let gaps = match number("gaps").unwrap_or(0) {
        0 => String::new(),
        n => format!(
            "; {} gap{} without samples, {} in all",
            thousands(n.into()),
            if n == 1 { "" } else { "s" },
            duration_ns(number("gap_ns").unwrap_or(0))
        ),
    };
    let language = machines.text(row, "unknown_language").map_or(String::new(), |example| {
        format!("; the language of its counters is not known ({example}), so they are not judged")
    });
    format!(
        "{}: {} counters{unknown}{cpus}{every}, {} from {} to {} ({zone}){gaps}{language}",
        name_of(machines.text(row, "machine").unwrap_or("")),
        thousands(number("counters").unwrap_or(0).into()),
        duration_ns(last.saturating_sub(first)),
        local(first),
        local(last)
    )
}

fn cpus(doc: &mut Doc, db: &Database, machine: &str, slices: &Slices) {
    let Some(table) = db.get("counter_cpu") else { return };
    let mut rows: Vec<u32> =
        (0..table.rows() as u32).filter(|row| table.text(*row, "machine") == Some(machine)).collect();
    if rows.is_empty() {
        return;
    }
    let all = rows.len();
    if all > MOST_CPUS {
        let busy = |row: &u32| table.f64(*row, "busy_mean").unwrap_or(0.0);
        rows.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        rows.truncate(MOST_CPUS);
        rows.sort_unstable();
    }
    let ids = cpu_counters(db, machine);
    doc.heading("Processors (percent of time; >90: share of samples above 90)");
    let groups = [("busy", "% Processor Time"), ("dpc", "% DPC Time"), ("interrupt", "% Interrupt Time")];
    let figures = groups
        .iter()
        .flat_map(|(_, group)| ["mean", "p95", "max", ">90"].map(|head| Column::number(head).below(*group)));
    let bars = Column::rest("").below("% Processor Time (bars)");
    let mut list = etwhy_doc::Table::new(
        std::iter::once(Column::number("")).chain(figures).chain(std::iter::once(bars)),
    );
    for row in rows {
        let figure = |column: String| {
            table.f64(row, &column).map_or("-".to_owned(), |v| decimal(v, usize::from(v.abs() < 9.95)))
        };
        let instance = table.text(row, "instance").unwrap_or("");
        let mut cells = vec![Line::from(instance)];
        for (name, _) in groups {
            cells.extend(["mean", "p95", "max"].map(|f| Line::from(figure(format!("{name}_{f}")))));
            let share = table.f64(row, &format!("{name}_high_share"));
            cells.push(share.map_or("-".to_owned(), |v| format!("{:.0}%", 100.0 * v)).into());
        }
        cells.extend(ids.get(instance).map(|id| slices.bars(*id, Some(100.0))));
        list.row(cells);
    }
    doc.table(list);
    if all > MOST_CPUS {
        doc.text(format!("the {MOST_CPUS} busiest of {all}"));
    }
}

/// Counters of `% Processor Time`, by instance.
fn cpu_counters(db: &Database, machine: &str) -> BTreeMap<String, i64> {
    let mut ids = BTreeMap::new();
    for row in &db.read_or_empty::<CounterRow>() {
        let is_cpu = matches!(row.object_en(), Some("Processor" | "Processor Information"));
        if let (true, Some("% Processor Time"), Some(instance)) =
            (is_cpu && row.machine() == machine, row.name_en(), row.instance())
        {
            ids.entry(instance.to_owned()).or_insert(row.counter());
        }
    }
    ids
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
) {
    let Some(table) = db.get("counter") else { return };
    let text = |row: u32, column: &str| table.text(row, column).unwrap_or("");
    let mut rows: Vec<u32> = (0..table.rows() as u32)
        .filter(|row| text(*row, "machine") == machine && objects.contains(&text(*row, "object_en")))
        .filter(|row| table.i64(*row, "samples").unwrap_or(0) > 0 && !text(*row, "name_en").is_empty())
        .filter(|row| !NOISE.contains(&text(*row, "name_en")))
        .collect();
    if rows.is_empty() {
        return;
    }
    // Those of one name stand together, the largest first; sums are no instances.
    rows.sort_by(|a, b| {
        let key = |row: u32| (text(row, "object_en"), text(row, "name_en"));
        let mean = |row: u32| table.f64(row, "mean_value").unwrap_or(0.0);
        key(*a).cmp(&key(*b)).then(mean(*b).total_cmp(&mean(*a))).then(a.cmp(b))
    });
    doc.heading(title);
    let figures = ["mean", "p95", "max", "last"].map(Column::number);
    let bars = std::iter::once(Column::rest(""));
    let mut list =
        etwhy_doc::Table::new(std::iter::once(Column::name("").least(26)).chain(figures).chain(bars));
    list.hint = "--top; --dump counter has all".to_owned();
    let mut same = ("", "");
    let mut shown_rows = 0usize;
    for row in rows {
        let name = (text(row, "object_en"), text(row, "name_en"));
        shown_rows = if name == same { shown_rows + 1 } else { 1 };
        if shown_rows > top {
            list.more += 1;
            continue;
        }
        same = name;
        let instance = match (text(row, "instance"), table.i64(row, "nth").unwrap_or(0)) {
            ("", _) => String::new(),
            (instance, 0) => format!("{instance} "),
            (instance, nth) => format!("{instance}#{nth} "),
        };
        let unit = text(row, "unit");
        let value = |column: &str| Line::from(shown(table.f64(row, column), unit));
        let id = table.i64(row, "counter").unwrap_or(-1);
        let mut cells = vec![Line::name(format!("{instance}{}", name.1))];
        cells.extend(["mean_value", "p95_value", "max_value", "last_value"].map(value));
        cells.push(slices.bars(id, (unit == "percent").then_some(100.0)));
        list.row(cells);
    }
    doc.table(list);
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
