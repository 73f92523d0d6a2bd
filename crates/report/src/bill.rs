//! The bill, as reports show it.

use etwhy_query::findings::text::duration;
use etwhy_table::{Database, Value};
use serde::Serialize;

/// What one culprit cost: a row of the table `bill`. Within a kind, `total_cpu_ns` adds up to the observed time of the processors, but
/// for culprits that are too small to be shown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BillRow {
    /// What is told apart: process, driver, product or category.
    pub kind: String,
    /// culprit, rest (threads without a driver), interrupt (DPCs and ISRs that are nobody's), idle, unattributed or unobserved.
    pub part: String,
    /// Idle time: nobody's cost.
    pub is_idle: bool,
    /// Unattributed or not observed: nobody can be charged.
    pub is_unattributed: bool,
    /// Name of the culprit; in brackets if it is none.
    pub culprit: String,
    /// Vendor of a driver or product, if known.
    pub vendor: Option<String>,
    /// Category, from the knowledge base.
    pub category: Option<String>,
    /// CPU time of its own threads.
    pub own_cpu_ns: i64,
    /// CPU time of its drivers and libraries on the threads of others.
    pub frames_cpu_ns: i64,
    /// CPU time of its DPCs.
    pub dpc_ns: i64,
    /// CPU time of its ISRs.
    pub isr_ns: i64,
    /// All of these; of parts idle and unattributed the time itself.
    pub total_cpu_ns: i64,
    /// Share of the observed time of the processors; null of what was not observed.
    pub share_percent: Option<f64>,
    /// CPU time in hours of one processor.
    pub core_hours: Option<f64>,
    /// Time of processors that was not observed, for part unobserved: it may have been busy or idle.
    pub unobserved_ns: Option<i64>,
    /// Waiting that it imposed on other processes; null where waits were not recorded.
    pub imposed_wait_ns: Option<i64>,
    /// Callbacks of its file system filters.
    pub filter_ns: Option<i64>,
    /// Time of its file operations.
    pub file_ns: Option<i64>,
    /// Time of its registry operations.
    pub registry_ns: Option<i64>,
    /// Its waits for hard page faults.
    pub hard_fault_ns: Option<i64>,
    /// Energy of its CPU time above idle, in joules: the most likely value.
    pub energy_j: Option<f64>,
    /// Lower bound: one machine in ten shows less.
    pub energy_low_j: Option<f64>,
    /// Upper bound: one machine in ten shows more.
    pub energy_high_j: Option<f64>,
    /// How sure it is: high, medium, low, or cannot tell.
    pub confidence: String,
    /// Why it is not surer, and what the energy rests on.
    pub why: Option<String>,
}

/// Culprits of each kind that are kept.
const PER_KIND: usize = 20;

/// What was not observed, in a sentence; it is in no share.
pub fn unobserved(rows: &[BillRow]) -> Option<String> {
    let (ns, row) = rows.iter().find_map(|row| Some((row.unobserved_ns?, row)))?;
    let why = row.why.as_deref().unwrap_or("nothing was recorded");
    Some(format!("{} of processor time were not observed and are in no share: {why}", duration(ns as f64)))
}

/// The bill by kind: culprits by CPU time, then what is nobody's. Nothing without the table.
pub fn read(db: &Database) -> Vec<BillRow> {
    let Some(table) = db.get("bill") else { return Vec::new() };
    let mut rows: Vec<BillRow> = (0..table.rows() as u32)
        .map(|row| {
            let text = |column: &str| table.text(row, column).map(str::to_owned);
            let time = |column: &str| table.i64(row, column);
            let flag = |column: &str| table.value(row, column) == Value::Bool(true);
            BillRow {
                kind: text("kind").unwrap_or_default(),
                part: text("part").unwrap_or_default(),
                is_idle: flag("is_idle"),
                is_unattributed: flag("is_unattributed"),
                culprit: text("culprit").unwrap_or_default(),
                vendor: text("vendor"),
                category: text("category"),
                own_cpu_ns: time("own_cpu_ns").unwrap_or(0),
                frames_cpu_ns: time("frames_cpu_ns").unwrap_or(0),
                dpc_ns: time("dpc_ns").unwrap_or(0),
                isr_ns: time("isr_ns").unwrap_or(0),
                total_cpu_ns: time("total_cpu_ns").unwrap_or(0),
                share_percent: table.f64(row, "share_percent"),
                core_hours: table.f64(row, "core_hours"),
                unobserved_ns: time("unobserved_ns"),
                imposed_wait_ns: time("imposed_wait_ns"),
                filter_ns: time("filter_ns"),
                file_ns: time("file_ns"),
                registry_ns: time("registry_ns"),
                hard_fault_ns: time("hard_fault_ns"),
                energy_j: table.f64(row, "energy_j"),
                energy_low_j: table.f64(row, "energy_low_j"),
                energy_high_j: table.f64(row, "energy_high_j"),
                confidence: text("confidence").unwrap_or_default(),
                why: text("why"),
            }
        })
        .collect();
    let nobody = |row: &BillRow| row.part != "culprit";
    // What made others wait without using the CPU is a culprit too.
    let cost = |row: &BillRow| (row.total_cpu_ns, row.imposed_wait_ns.unwrap_or(0));
    rows.sort_by(|a, b| {
        (&a.kind, nobody(a))
            .cmp(&(&b.kind, nobody(b)))
            .then_with(|| cost(b).cmp(&cost(a)))
            .then_with(|| a.culprit.cmp(&b.culprit))
    });
    let (mut kind, mut count) = (String::new(), 0);
    rows.retain(|row| {
        if row.kind != kind {
            (kind, count) = (row.kind.clone(), 0);
        }
        count += 1;
        count <= PER_KIND || nobody(row)
    });
    rows
}
