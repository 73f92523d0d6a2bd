//! The sentence that a manager understands, and the bill in a few lines.

use etwhy_analysis::derived::machine::MachineRow;
use etwhy_base::prose::{digits, duration, energy_range};
use etwhy_export::sanitize;
use etwhy_export::text::{pad_end, pad_start, truncate_middle, wrap};
use etwhy_report::{BillRow, unobserved};
use etwhy_rules::{Answer, Hit, Outcome, Severity, Subject};
use etwhy_sql::Cell;
use etwhy_table::Database;
use std::io::{self, Write};

/// Below this share of the machine the cost on processors is not what matters of a culprit.
const LEAST_PERCENT: f64 = 1.0;

/// Who, what it cost, what it did: the worst finding with its line of the bill. `None` if nothing above info was found. What logs beside
/// the trace tell of other times, and perhaps of other computers, does not say why it was slow in the trace.
pub fn sentence(db: &Database, outcomes: &[Outcome], bill: &[BillRow]) -> Option<String> {
    let worst = |o: &&Outcome| {
        o.over == Subject::Trace && o.answer == Answer::Found && o.severity > Some(Severity::Info)
    };
    let hit = outcomes.iter().find(worst)?.hits.first()?;
    let Some((row, who)) = charged(hit, bill) else {
        return Some(format!("{}.", hit.headline.trim_end_matches('.')));
    };
    let share = row.share_percent.filter(|share| *share >= LEAST_PERCENT);
    let (Some(share), Some(hours)) = (share, row.core_hours) else {
        return Some(format!("{}.", hit.headline.trim_end_matches('.')));
    };
    let machine = db.read_or_empty::<MachineRow>();
    let all = machine.first().map_or(0.0, |machine| machine.capacity_ns() as f64) / 3.6e12;
    let (used, whole, unit) = core_time(hours, all);
    let joules = row.energy_j.zip(row.energy_low_j).zip(row.energy_high_j);
    let cost = joules
        .map_or(String::new(), |((mid, low), high)| format!(", about {}", energy_range(mid, low, high)));
    let effect = hit.effect.as_ref().map_or(String::new(), |effect| format!(", and {effect}"));
    let mut text = format!(
        "{who} cost this machine {} % of its CPU, {used} of {whole} core-{unit}{cost}{effect}.",
        digits(share)
    );
    if hit.effect.is_none() {
        text.push_str(&format!(" {}.", hit.headline.trim_end_matches('.')));
    }
    Some(text)
}

/// The line of the bill that a culprit has, and what to call it.
fn charged<'b>(hit: &Hit, bill: &'b [BillRow]) -> Option<(&'b BillRow, String)> {
    // A finding about a session names the driver that it belongs to.
    let driver = hit.values.get("driver").and_then(Cell::text).filter(|_| hit.culprit_kind == "session");
    let name = driver.unwrap_or(hit.culprit.as_str());
    let kind = match hit.culprit_kind.as_str() {
        "process" | "service" => "process",
        "driver" | "session" | "module" => "driver",
        _ => return None,
    };
    // Processes stand with their id.
    let is = |row: &&BillRow| {
        row.kind == kind
            && row.part == "culprit"
            && (row.culprit == name || row.culprit.starts_with(&format!("{name} (")))
    };
    let row = bill.iter().find(is)?;
    let product = hit.values.get("product").and_then(Cell::text).filter(|p| *p != "product unknown");
    Some((row, product.map_or_else(|| name.to_owned(), |product| format!("{product} ({name})"))))
}

/// Core-hours in a unit that has digits.
fn core_time(hours: f64, all: f64) -> (String, String, &'static str) {
    let (factor, unit) = if all >= 1.0 {
        (1.0, "hours")
    } else if all >= 1.0 / 60.0 {
        (60.0, "minutes")
    } else {
        (3600.0, "seconds")
    };
    (digits(hours * factor), digits(all * factor), unit)
}

/// Lines of the bill that a terminal shows.
const SHOWN: usize = 6;

/// Prints what products and programs cost.
pub fn print_bill(out: &mut impl Write, bill: &[BillRow], width: usize) -> io::Result<()> {
    let rows: Vec<&BillRow> =
        bill.iter().filter(|row| row.kind == "product" && row.total_cpu_ns > 0).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let known = rows.iter().any(|row| row.energy_j.is_some());
    writeln!(
        out,
        "\nThe bill: CPU time, share of the observed time{}",
        if known { ", energy above idle (low to high)" } else { "" }
    )?;
    let (culprits, others): (Vec<&BillRow>, Vec<&BillRow>) =
        rows.into_iter().partition(|row| row.part == "culprit");
    for row in culprits.into_iter().take(SHOWN).chain(others) {
        let energies = row.energy_j.zip(row.energy_low_j).zip(row.energy_high_j);
        let watt = energies.map_or(String::new(), |((mid, low), high)| energy_range(mid, low, high));
        let head = format!(
            "{} {}  {}",
            pad_start(&duration(row.total_cpu_ns as f64), 11),
            pad_start(&row.share_percent.map_or(String::new(), |s| format!("{s:.1} %")), 8),
            pad_end(&watt, if known { 26 } else { 0 })
        );
        let category = row.category.as_ref().map_or(String::new(), |c| format!("  [{c}]"));
        let room = width.saturating_sub(head.chars().count() + 2).max(10);
        writeln!(out, "{head}  {}", truncate_middle(&sanitize(&format!("{}{category}", row.culprit)), room))?;
    }
    if let Some(text) = unobserved(bill) {
        for line in wrap(&sanitize(&text), width.saturating_sub(4)) {
            writeln!(out, "    {line}")?;
        }
    }
    let ask =
        "          etwhy dump bill says the same by process, driver and category, with waits and delays";
    writeln!(out, "{}", truncate_middle(ask.trim_start(), width))
}
