//! How good the trace is.

use etwhy_analysis::cpu::Cpu;
use etwhy_base::units::{counted, duration_ns, percent};
use etwhy_table::Database;
use etwhy_trace::catalog::{
    event_type::EventTypeRow, ledger::LedgerRow, trace::TraceRow, unobserved::UnobservedRow,
};
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
    /// Whether CPU samples were recorded, in the part that was asked for or outside of it.
    pub samples_recorded: bool,
    /// Time in which records of processors may be missing, summed over processors.
    pub unobserved_ns: i64,
    /// Time ranges of that.
    pub unobserved_ranges: usize,
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

impl Quality {
    /// Collects it from tables.
    pub fn read(db: &Database, cpu: &Cpu) -> Quality {
        let mut quality = Quality { ledger: ledger(db), ..Quality::default() };
        let trace = db.read_or_empty::<TraceRow>();
        if let Some(first) = trace.first() {
            let product = first.product().map(|p| format!(" ({p})")).unwrap_or_default();
            quality.os = format!("{}{product}", first.os());
            quality.start_utc = first.start_utc().to_owned();
            quality.memory_bytes = first.memory_bytes();
            quality.sample_interval_ns = first.sample_interval_ns();
            for row in &trace {
                quality.files.push(row.file().to_owned());
                // Files of another machine, read together because somebody said --merge, have processors of their own.
                if row.machine_id() == first.machine_id() {
                    quality.cpus = quality.cpus.max(row.cpus());
                }
                quality.events_lost = quality.events_lost.saturating_add(row.events_lost());
                quality.buffers_lost = quality.buffers_lost.saturating_add(row.buffers_lost());
                quality.duration_ns = quality.duration_ns.max(row.duration_ns());
            }
        }
        quality.cpus = quality.cpus.max(cpu.cpus);
        let gaps = db.read_or_empty::<UnobservedRow>();
        quality.unobserved_ranges = gaps.len();
        quality.unobserved_ns = gaps.iter().map(|gap| gap.dur_ns()).fold(0, i64::saturating_add);
        let types = db.read_or_empty::<EventTypeRow>();
        // What is only behind the part is no event of it.
        quality.event_types = types.iter().filter(|row| row.count() > 0).count();
        let counts = types.iter().filter_map(|row| u64::try_from(row.count()).ok());
        quality.events = counts.fold(0, u64::saturating_add);
        quality.undecoded_types =
            types.iter().filter(|row| row.count() > 0 && row.decoded_by() == "none").count();
        quality.samples_recorded = types.iter().any(|row| {
            let name = row.name();
            row.provider() == "Windows Kernel"
                && name.rsplit('/').next().is_some_and(|name| name.starts_with("SampledProfile"))
        });
        if cpu.busy_ns > 0 {
            quality.stacks_percent = Some(percent(cpu.with_stack_ns, cpu.busy_ns));
            quality.named_percent = Some(percent(cpu.named_ns, cpu.busy_ns));
        }
        quality
    }

    /// Why nobody can be charged where there are no CPU samples.
    pub fn no_samples(&self) -> &'static str {
        match self.samples_recorded {
            true => "the trace has CPU samples, but none in this part of it",
            false => "the trace holds no CPU samples",
        }
    }

    /// What is missing of it, in time and share; `None` if nothing is.
    pub fn missing(&self) -> Option<String> {
        let whole = self.duration_ns.saturating_mul(self.cpus.max(1));
        (self.unobserved_ns > 0 && whole > 0).then(|| {
            format!(
                "records may be missing in {} of {} of the processors' time ({:.1} %), in {} (etwhy dump unobserved)",
                duration_ns(self.unobserved_ns),
                duration_ns(whole),
                percent(self.unobserved_ns, whole),
                counted(self.unobserved_ranges as i128, "time range", "time ranges"),
            )
        })
    }
}

/// The ledger, worst first.
pub fn ledger(db: &Database) -> Vec<LedgerLine> {
    let table = db.read_or_empty::<LedgerRow>();
    let lines = table.iter().map(|row| {
        let first = row.first().filter(|first| !first.is_empty());
        let first = first.map_or_else(String::new, |first| format!(" First: {first}."));
        let (severity, name) = (row.severity().to_owned(), row.name().to_owned());
        LedgerLine { severity, count: row.count(), name, meaning: row.meaning().to_owned() + &first }
    });
    let mut rows: Vec<LedgerLine> = lines.collect();
    let rank = |severity: &str| match severity {
        "error" => 0,
        "data_loss" => 1,
        "warning" => 2,
        _ => 3,
    };
    rows.sort_by(|a, b| rank(&a.severity).cmp(&rank(&b.severity)).then_with(|| a.name.cmp(&b.name)));
    rows
}
