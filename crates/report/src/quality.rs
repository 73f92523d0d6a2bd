//! How good the trace is.

use etwhy_query::cpu::Cpu;
use etwhy_table::Database;
use serde::Serialize;

/// How good the trace is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Quality {
    /// Files.
    pub files: Vec<String>,
    /// Windows version.
    pub os: String,
    /// Logical processors.
    pub cpus: i64,
    /// Memory.
    pub memory_bytes: Option<i64>,
    /// Start, UTC.
    pub start_utc: String,
    /// From the first to the last event.
    pub duration_ns: i64,
    /// Events read.
    pub events: u64,
    /// Events lost, as the headers say.
    pub events_lost: i64,
    /// Buffers lost, as the headers say.
    pub buffers_lost: i64,
    /// Kinds of events.
    pub event_types: usize,
    /// Kinds of events that nothing describes.
    pub undecoded_types: usize,
    /// Share of busy CPU time with a stack, 0 to 100; none without samples.
    pub stacks_percent: Option<f64>,
    /// Share of busy CPU time with a function name.
    pub named_percent: Option<f64>,
    /// Interval of CPU samples.
    pub sample_interval_ns: Option<i64>,
    /// Everything in the ledger, worst first.
    pub ledger: Vec<LedgerLine>,
}

/// A line of the ledger.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerLine {
    /// error, data_loss, warning or info.
    pub severity: String,
    /// How often.
    pub count: i64,
    /// Name of the anomaly.
    pub name: String,
    /// What it does to results; ends with the place of the first one, where it is known.
    pub meaning: String,
}

pub(crate) fn percent(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

impl Quality {
    /// Collects it from tables.
    pub fn read(db: &Database, cpu: &Cpu) -> Quality {
        let mut quality = Quality { ledger: ledger(db), ..Quality::default() };
        if let Some(trace) = db.get("trace") {
            for row in 0..trace.rows() as u32 {
                let number = |column: &str| trace.i64(row, column).unwrap_or(0);
                quality.files.push(trace.text(row, "file").unwrap_or("").to_owned());
                // Files of another machine, read together because somebody said --merge, have processors of their own.
                if trace.text(row, "machine_id") == trace.text(0, "machine_id") {
                    quality.cpus = quality.cpus.max(number("cpus"));
                }
                quality.events_lost = quality.events_lost.saturating_add(number("events_lost"));
                quality.buffers_lost = quality.buffers_lost.saturating_add(number("buffers_lost"));
                quality.duration_ns = quality.duration_ns.max(number("duration_ns"));
                if row == 0 {
                    let product = trace.text(row, "product").map(|p| format!(" ({p})")).unwrap_or_default();
                    quality.os = format!("{}{product}", trace.text(row, "os").unwrap_or(""));
                    quality.start_utc = trace.text(row, "start_utc").unwrap_or("").to_owned();
                    quality.memory_bytes = trace.i64(row, "memory_bytes");
                    quality.sample_interval_ns = trace.i64(row, "sample_interval_ns");
                }
            }
        }
        quality.cpus = quality.cpus.max(cpu.cpus);
        if let Some(types) = db.get("event_type") {
            quality.event_types = types.rows();
            let counts =
                (0..types.rows() as u32).filter_map(|row| u64::try_from(types.i64(row, "count")?).ok());
            quality.events = counts.fold(0, u64::saturating_add);
            let none = |row: &u32| types.text(*row, "decoded_by") == Some("none");
            quality.undecoded_types = (0..types.rows() as u32).filter(none).count();
        }
        if cpu.busy_ns > 0 {
            quality.stacks_percent = Some(percent(cpu.with_stack_ns, cpu.busy_ns));
            quality.named_percent = Some(percent(cpu.named_ns, cpu.busy_ns));
        }
        quality
    }
}

/// The ledger, worst first.
pub fn ledger(db: &Database) -> Vec<LedgerLine> {
    let Some(table) = db.get("ledger") else { return Vec::new() };
    let text = |row, column| table.text(row, column).unwrap_or("").to_owned();
    let mut rows: Vec<LedgerLine> = (0..table.rows() as u32)
        .map(|row| {
            let count = table.i64(row, "count").unwrap_or(0);
            let (mut meaning, first) = (text(row, "meaning"), text(row, "first"));
            if !first.is_empty() {
                meaning = format!("{meaning} First: {first}.");
            }
            LedgerLine { severity: text(row, "severity"), count, name: text(row, "name"), meaning }
        })
        .collect();
    let rank = |severity: &str| match severity {
        "error" => 0,
        "data_loss" => 1,
        "warning" => 2,
        _ => 3,
    };
    rows.sort_by(|a, b| rank(&a.severity).cmp(&rank(&b.severity)).then_with(|| a.name.cmp(&b.name)));
    rows
}
