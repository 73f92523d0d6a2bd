//! The sentence that a manager understands.

use etwhy_base::prose::{digits, energy_range};
use etwhy_report::BillRow;
use etwhy_rules::{Answer, Hit, Outcome, Severity, Subject};
use etwhy_sql::Cell;
use etwhy_table::Database;

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
    let all = db.get("machine").and_then(|m| m.f64(0, "capacity_ns")).unwrap_or(0.0) / 3.6e12;
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
