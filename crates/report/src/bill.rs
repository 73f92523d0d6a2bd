//! The bill, as reports show it.

use etwhy_table::Database;
use serde::Serialize;

/// What one culprit cost. Fields are the columns of the table `bill`; what is not known is null.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BillRow {
    /// process, driver, product, category, or idle and unattributed.
    pub kind: String,
    /// Who.
    pub culprit: String,
    /// CPU time of its own threads.
    pub own_cpu_ns: Option<i64>,
    /// CPU time of its code on threads of others.
    pub others_cpu_ns: Option<i64>,
    /// Time of its DPCs.
    pub dpc_ns: Option<i64>,
    /// Time of its ISRs.
    pub isr_ns: Option<i64>,
    /// Time that it made others wait.
    pub wait_imposed_ns: Option<i64>,
    /// Time that it delayed files.
    pub file_delay_ns: Option<i64>,
    /// Its CPU time as share of the machine, 0 to 1.
    pub share: Option<f64>,
    /// Its CPU time in core-hours.
    pub core_hours: Option<f64>,
    /// Energy, lower bound, watt-hours.
    pub energy_low_wh: Option<f64>,
    /// Energy, best estimate, watt-hours.
    pub energy_mid_wh: Option<f64>,
    /// Energy, upper bound, watt-hours.
    pub energy_high_wh: Option<f64>,
    /// How sure the row is: high, medium or low.
    pub confidence: Option<String>,
}

impl BillRow {
    /// CPU time of all kinds.
    pub fn cpu_ns(&self) -> i64 {
        let parts = [self.own_cpu_ns, self.others_cpu_ns, self.dpc_ns, self.isr_ns];
        parts.into_iter().flatten().fold(0, i64::saturating_add)
    }
}

/// Rows of each kind that are kept.
const PER_KIND: usize = 20;

/// The bill, by CPU time within each kind; nothing without the table.
pub fn read(db: &Database) -> Vec<BillRow> {
    let Some(table) = db.get("bill") else { return Vec::new() };
    let mut rows: Vec<BillRow> = (0..table.rows() as u32)
        .map(|row| BillRow {
            kind: table.text(row, "kind").unwrap_or_default().to_owned(),
            culprit: table.text(row, "culprit").unwrap_or_default().to_owned(),
            own_cpu_ns: table.i64(row, "own_cpu_ns"),
            others_cpu_ns: table.i64(row, "others_cpu_ns"),
            dpc_ns: table.i64(row, "dpc_ns"),
            isr_ns: table.i64(row, "isr_ns"),
            wait_imposed_ns: table.i64(row, "wait_imposed_ns"),
            file_delay_ns: table.i64(row, "file_delay_ns"),
            share: table.f64(row, "share"),
            core_hours: table.f64(row, "core_hours"),
            energy_low_wh: table.f64(row, "energy_low_wh"),
            energy_mid_wh: table.f64(row, "energy_mid_wh"),
            energy_high_wh: table.f64(row, "energy_high_wh"),
            confidence: table.text(row, "confidence").map(str::to_owned),
        })
        .collect();
    rows.sort_by(|a, b| {
        a.kind.cmp(&b.kind).then_with(|| b.cpu_ns().cmp(&a.cpu_ns())).then_with(|| a.culprit.cmp(&b.culprit))
    });
    let mut kept: Vec<BillRow> = Vec::new();
    let (mut kind, mut count) = (String::new(), 0);
    for row in rows {
        if row.kind != kind {
            (kind, count) = (row.kind.clone(), 0);
        }
        count += 1;
        if count <= PER_KIND {
            kept.push(row);
        }
    }
    kept
}
