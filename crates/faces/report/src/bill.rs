//! The bill, as reports show it.

use etwhy_analysis::derived::bill;
use etwhy_base::units::{self, duration_ns};
use etwhy_table::Database;
use serde::Serialize;

/// What one culprit cost: a row of the table `bill`. Within a kind, `total_cpu_ns` adds up to the observed time of the processors, but
/// for culprits that are too small to be shown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BillRow {
    /// Kind of culprit: process, driver, product or category.
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
    Some(format!("{} of processor time were not observed and are in no share; {why}", duration_ns(ns)))
}

/// The unit of all energies of a bill, in each of its lists: that of the largest.
pub fn energy_unit(rows: &[BillRow]) -> (f64, &'static str) {
    units::energy_unit(rows.iter().filter_map(|row| row.energy_j).fold(0.0, f64::max))
}

/// The bill by kind: culprits by CPU time, then what is nobody's. Nothing without the table.
pub fn read(db: &Database) -> Vec<BillRow> {
    let own = |text: Option<&str>| text.map(str::to_owned);
    let table = db.read_or_empty::<bill::BillRow>();
    let mut rows: Vec<BillRow> = table
        .iter()
        .map(|row| BillRow {
            kind: row.kind().to_owned(),
            part: row.part().to_owned(),
            is_idle: row.is_idle(),
            is_unattributed: row.is_unattributed(),
            culprit: row.culprit().to_owned(),
            vendor: own(row.vendor()),
            category: own(row.category()),
            own_cpu_ns: row.own_cpu_ns(),
            frames_cpu_ns: row.frames_cpu_ns(),
            dpc_ns: row.dpc_ns(),
            isr_ns: row.isr_ns(),
            total_cpu_ns: row.total_cpu_ns(),
            share_percent: row.share_percent(),
            core_hours: Some(row.core_hours()),
            unobserved_ns: row.unobserved_ns(),
            imposed_wait_ns: row.imposed_wait_ns(),
            filter_ns: row.filter_ns(),
            file_ns: row.file_ns(),
            registry_ns: row.registry_ns(),
            hard_fault_ns: row.hard_fault_ns(),
            energy_j: row.energy_j(),
            energy_low_j: row.energy_low_j(),
            energy_high_j: row.energy_high_j(),
            confidence: row.confidence().to_owned(),
            why: own(row.why()),
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
