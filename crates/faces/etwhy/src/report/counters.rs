//! Counter logs in words: machines, processors, disks, memory, network.

use etwhy_analysis::derived::counter_cpu::stamp;
use etwhy_base::units::{bytes, decimal, duration_ns, thousands};
use etwhy_counters::tables::{CounterRow, CounterSliceRow};
use etwhy_export::sanitize;
use etwhy_export::text::{
    boxed, pad_end, pad_start, truncate_end, truncate_middle, width as columns_of, wrap,
};
use etwhy_table::{Database, Table};
use std::collections::BTreeMap;
use std::io::{self, Write};

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

    /// A line of bars, `columns` wide at most: the largest mean of the slices that share a bar. `whole`: the value of a full bar, the
    /// largest one if there is none.
    fn line(&self, counter: i64, columns: usize, whole: Option<f64>) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let Some(means) = self.means.get(&counter).filter(|_| columns > 0) else { return String::new() };
        let each = self.count.div_ceil(columns).max(1);
        let groups: Vec<Option<f64>> =
            means.chunks(each).map(|group| group.iter().flatten().copied().reduce(f64::max)).collect();
        let most = groups.iter().flatten().copied().fold(0.0, f64::max);
        let whole = whole.unwrap_or(most).max(f64::MIN_POSITIVE);
        let bar = |value: &Option<f64>| match value {
            None => ' ',
            Some(value) => {
                let step = (value.max(0.0) / whole * 7.0).round().clamp(0.0, 7.0) as usize;
                BARS.get(step).copied().unwrap_or(' ')
            }
        };
        groups.iter().map(bar).collect()
    }
}

/// Prints the machines: what was logged, and how busy they were.
pub fn print(out: &mut impl Write, db: &Database, top: usize, width: usize) -> io::Result<()> {
    let Some(machines) = db.get("counter_machine") else { return Ok(()) };
    let slices = Slices::of(db);
    for row in 0..machines.rows() as u32 {
        let machine = machines.text(row, "machine").unwrap_or("");
        if machines.rows() > 1 {
            writeln!(out, "\n{}", truncate_middle(&sanitize(&format!("═══ {}", name_of(machine))), width))?;
        }
        cpus(out, db, machine, &slices, width)?;
        for (title, objects) in LISTS {
            list(out, db, machine, (title, objects), &slices, top, width)?;
        }
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

/// Prints what was read: machines, time, counters, and what was strange.
pub fn print_quality(out: &mut impl Write, db: &Database, files: &[String], width: usize) -> io::Result<()> {
    let mut lines: Vec<String> = files.iter().take(5).map(|file| sanitize(file).into_owned()).collect();
    if let Some(more) = files.len().checked_sub(5).filter(|more| *more > 0) {
        lines.push(format!("and {more} more files"));
    }
    let inner = width.saturating_sub(4);
    if let Some(machines) = db.get("counter_machine") {
        for row in 0..machines.rows() as u32 {
            lines.extend(wrap(&sanitize(&machine_line(machines, row)), inner));
        }
    }
    if let Some(notes) = db.get("counter_note") {
        for row in 0..notes.rows() as u32 {
            let text = |column| notes.text(row, column).unwrap_or("");
            let count = thousands(notes.i64(row, "count").unwrap_or(0).into());
            let text = format!(
                "{}: {count} x {}: {} (first: {})",
                text("severity"),
                text("name"),
                text("meaning"),
                text("first")
            );
            lines.extend(wrap(&sanitize(&text), inner));
        }
    }
    for line in boxed("Counter logs", &lines, width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
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

fn cpus(out: &mut impl Write, db: &Database, machine: &str, slices: &Slices, width: usize) -> io::Result<()> {
    let Some(table) = db.get("counter_cpu") else { return Ok(()) };
    let mut rows: Vec<u32> =
        (0..table.rows() as u32).filter(|row| table.text(*row, "machine") == Some(machine)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let all = rows.len();
    if all > MOST_CPUS {
        let busy = |row: &u32| table.f64(*row, "busy_mean").unwrap_or(0.0);
        rows.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
        rows.truncate(MOST_CPUS);
        rows.sort_unstable();
    }
    let ids = cpu_counters(db, machine);
    let label = rows
        .iter()
        .filter_map(|row| table.text(*row, "instance"))
        .map(columns_of)
        .max()
        .unwrap_or(3)
        .clamp(6, 12);
    // Three groups of four figures.
    let rest = width.saturating_sub(label + 3 * 22 + 2);
    writeln!(out, "\nProcessors (percent of time; >90: share of samples above 90)")?;
    writeln!(
        out,
        "{}  {}{}{}{}",
        pad_end("", label),
        pad_end("% Processor Time", 22),
        pad_end("% DPC Time", 22),
        pad_end("% Interrupt Time", 22),
        if rest >= 8 { "% Processor Time" } else { "" }.get(..rest.min(16)).unwrap_or("")
    )?;
    let head = format!("{:>5}{:>5}{:>5}{:>5}  ", "mean", "p95", "max", ">90");
    writeln!(out, "{}  {}", pad_end("", label), head.repeat(3).trim_end())?;
    for row in rows {
        let figure = |column: &str| {
            table.f64(row, column).map_or("-".to_owned(), |v| decimal(v, usize::from(v.abs() < 9.95)))
        };
        let group = |name: &str| {
            let share = table
                .f64(row, &format!("{name}_high_share"))
                .map_or("-".to_owned(), |v| format!("{:.0}%", 100.0 * v));
            let [mean, p95, max] = ["mean", "p95", "max"].map(|f| figure(&format!("{name}_{f}")));
            format!("{mean:>5}{p95:>5}{max:>5}{share:>5}  ")
        };
        let instance = table.text(row, "instance").unwrap_or("");
        let line =
            ids.get(instance).map(|id| slices.line(*id, rest.min(128), Some(100.0))).unwrap_or_default();
        let text = format!(
            "{}  {}{}{}{line}",
            pad_start(&truncate_end(&sanitize(instance), label), label),
            group("busy"),
            group("dpc"),
            group("interrupt")
        );
        writeln!(out, "{}", text.trim_end())?;
    }
    if all > MOST_CPUS {
        writeln!(out, "the {MOST_CPUS} busiest of {all}")?;
    }
    Ok(())
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
    out: &mut impl Write,
    db: &Database,
    machine: &str,
    (title, objects): (&str, &[&str]),
    slices: &Slices,
    top: usize,
    width: usize,
) -> io::Result<()> {
    let Some(table) = db.get("counter") else { return Ok(()) };
    let text = |row: u32, column: &str| table.text(row, column).unwrap_or("");
    let mut rows: Vec<u32> = (0..table.rows() as u32)
        .filter(|row| text(*row, "machine") == machine && objects.contains(&text(*row, "object_en")))
        .filter(|row| table.i64(*row, "samples").unwrap_or(0) > 0 && !text(*row, "name_en").is_empty())
        .filter(|row| !NOISE.contains(&text(*row, "name_en")))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    // Those of one name stand together, the largest first; sums are no instances.
    rows.sort_by(|a, b| {
        let key = |row: u32| (text(row, "object_en"), text(row, "name_en"));
        let mean = |row: u32| table.f64(row, "mean_value").unwrap_or(0.0);
        key(*a).cmp(&key(*b)).then(mean(*b).total_cmp(&mean(*a))).then(a.cmp(b))
    });
    let wide = width >= 120;
    let (name_width, figure) = if wide { (52, 13) } else { (29, 10) };
    let rest = width.saturating_sub(name_width + 4 * figure + 1);
    writeln!(out, "\n{title}")?;
    let head = ["mean", "p95", "max", "last"].map(|name| pad_start(name, figure)).concat();
    writeln!(out, "{}{head}", pad_end("", name_width))?;
    let (mut same, mut left) = (("", ""), 0usize);
    let mut shown_rows = 0usize;
    for row in rows {
        let name = (text(row, "object_en"), text(row, "name_en"));
        shown_rows = if name == same { shown_rows + 1 } else { 1 };
        if shown_rows > top {
            left += 1;
            continue;
        }
        same = name;
        let instance = match (text(row, "instance"), table.i64(row, "nth").unwrap_or(0)) {
            ("", _) => String::new(),
            (instance, 0) => format!("{instance} "),
            (instance, nth) => format!("{instance}#{nth} "),
        };
        let unit = text(row, "unit");
        let value = |column: &str| pad_start(&shown(table.f64(row, column), unit), figure);
        let id = table.i64(row, "counter").unwrap_or(-1);
        let line = slices.line(id, rest.min(128), (unit == "percent").then_some(100.0));
        let label = truncate_middle(&sanitize(&format!("{instance}{}", name.1)), name_width);
        let figures = ["mean_value", "p95_value", "max_value", "last_value"].map(value).concat();
        writeln!(out, "{}", format!("{}{figures} {line}", pad_end(&label, name_width)).trim_end())?;
    }
    if left > 0 {
        writeln!(out, "and {} more counters (--top; --dump counter has all)", thousands(left as i128))?;
    }
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

/// Prints the length of a slice, which is what a bar stands for at least.
pub fn print_scale(out: &mut impl Write, db: &Database, width: usize) -> io::Result<()> {
    let slices = Slices::of(db);
    if slices.count == 0 {
        return Ok(());
    }
    let text = format!(
        "Bars: the whole log in slices of {} or more, the largest mean each; percentages of 100, others of their own largest.",
        duration_ns(slices.width)
    );
    writeln!(out)?;
    for line in wrap(&text, width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
