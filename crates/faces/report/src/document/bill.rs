//! What products, programs and drivers cost.

use super::dash;
use crate::{BillRow, energy_unit, unobserved};
use etwhy_base::units::{duration_ns, energy_range};
use etwhy_doc::{Column, Doc, Line, Table};

/// Culprits of a kind that are shown where there is little room.
const SHOWN: usize = 6;

/// The bill: of products, or in `full` of all kinds of culprits.
pub(super) fn section(doc: &mut Doc, bill: &[BillRow], full: bool) {
    // What was not observed is no row of a partition.
    let wanted = |row: &&BillRow| full || row.kind == "product" && row.total_cpu_ns > 0;
    let rows: Vec<&BillRow> = bill.iter().filter(|row| row.unobserved_ns.is_none()).filter(wanted).collect();
    if rows.is_empty() && !full {
        return;
    }
    doc.heading("The bill");
    if rows.is_empty() {
        return doc.text("Cannot tell: nothing was recorded that could be charged.");
    }
    doc.text("CPU time, share of the observed time, energy above idle (low to high)");
    for rows in rows.chunk_by(|a, b| a.kind == b.kind) {
        // Culprits come first.
        let left_out = |at: usize, row: &BillRow| !full && row.part == "culprit" && at >= SHOWN;
        let shown = rows.iter().enumerate().filter(|(at, row)| !left_out(*at, row)).map(|(_, row)| *row);
        doc.table(table(rows.first().map_or("", |row| &row.kind), shown, energy_unit(bill)));
    }
    doc.space();
    if let Some(text) = unobserved(bill) {
        doc.text(format!("{text}."));
    }
    if !full {
        doc.text("etwhy dump bill says the same by process, driver and category, with waits and delays");
    }
}

fn table<'b>(kind: &str, rows: impl Iterator<Item = &'b BillRow>, unit: (f64, &str)) -> Table {
    let numbers = [
        "CPU",
        "share",
        "energy",
        "own threads",
        "on others' threads",
        "DPC, ISR",
        "made others wait",
        "files",
        "registry",
    ];
    let columns = std::iter::once(Column::name(kind).least(32)).chain(numbers.map(Column::number));
    // They add up: who sees only some must not take them for all.
    let mut table = Table::new(columns.chain([Column::word("confidence")])).naming_left_out();
    let time = |ns: i64| if ns == 0 { dash() } else { duration_ns(ns) };
    let known = |ns: Option<i64>| ns.map_or_else(dash, duration_ns);
    for row in rows {
        let category = row.category.as_ref().map(|category| format!(" [{category}]"));
        let energy = row.energy_j.zip(row.energy_low_j).zip(row.energy_high_j);
        let figures = [
            duration_ns(row.total_cpu_ns),
            row.share_percent.map_or_else(dash, |share| format!("{share:.1} %")),
            energy.map_or_else(dash, |((mid, low), high)| energy_range([mid, low, high], unit)),
            time(row.own_cpu_ns),
            time(row.frames_cpu_ns),
            time(row.dpc_ns.saturating_add(row.isr_ns)),
            known(row.imposed_wait_ns),
            known(row.file_ns),
            known(row.registry_ns),
            row.confidence.clone(),
        ];
        let name = Line::name(&row.culprit).and(category.unwrap_or_default());
        table.row(std::iter::once(name).chain(figures.map(Line::from)));
    }
    table
}
