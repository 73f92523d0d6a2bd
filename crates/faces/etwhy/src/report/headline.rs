//! The sentence that a manager understands.

use etwhy_analysis::derived::machine::MachineRow;
use etwhy_base::units::{digits, energy_range, energy_unit};
use etwhy_report::BillRow;
use etwhy_rules::{Answer, Hit, Outcome, Severity, Subject};
use etwhy_sql::Cell;
use etwhy_table::Database;

/// Below this share of the machine the cost on processors is not what matters of a culprit.
const LEAST_PERCENT: f64 = 1.0;

/// Who, what it cost, what it did: the worst finding, whose cost is priced like its line of the bill. `None` if nothing above info was found.
/// What logs beside the trace tell of other times, and perhaps of other computers, does not say why it was slow in the trace.
pub fn sentence(db: &Database, outcomes: &[Outcome], bill: &[BillRow]) -> Option<String> {
    let worst = |o: &&Outcome| {
        o.over == Subject::Trace && o.answer == Answer::Found && o.severity > Some(Severity::Info)
    };
    let hit = outcomes.iter().find(worst)?.hits.first()?;
    Some(priced(db, hit, bill).unwrap_or_else(|| format!("{}.", hit.headline.trim_end_matches('.'))))
}

/// What the finding, not the whole process, cost on the processors: only findings whose cost is CPU time say what its effect was.
fn priced(db: &Database, hit: &Hit, bill: &[BillRow]) -> Option<String> {
    let effect = hit.effect.as_ref()?;
    let (row, who) = charged(hit, bill)?;
    // A session's cost is more than what its driver is charged with; the bill has the driver.
    let cost = hit.cost_ns.filter(|_| hit.culprit_kind != "session").unwrap_or(row.total_cpu_ns);
    // Waiting is not on the bill.
    let part = Some(cost as f64 / row.total_cpu_ns as f64).filter(|part| (0.0..=1.01).contains(part))?;
    let share = row.share_percent.map(|share| share * part).filter(|share| *share >= LEAST_PERCENT)?;
    let all =
        db.read_or_empty::<MachineRow>().first().map_or(0.0, |machine| machine.capacity_ns() as f64) / 3.6e12;
    let (used, whole, unit) = core_time(row.core_hours? * part, all);
    let joules = row.energy_j.zip(row.energy_low_j).zip(row.energy_high_j);
    let energy = joules.map_or(String::new(), |((mid, low), high)| {
        format!(", about {}", energy_range([mid, low, high].map(|j| j * part), energy_unit(mid * part)))
    });
    Some(format!(
        "{who} cost this machine {} % of its CPU, {used} of {whole} core-{unit}{energy}, and {effect}.",
        digits(share)
    ))
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
    // Processes are listed with their id: of two with the same name only one is meant.
    let listed = hit.instance.as_ref().map(|instance| format!("{name} ({})", instance.pid));
    let rows = || bill.iter().filter(|row| row.kind == kind && row.part == "culprit");
    let row = match &listed {
        Some(listed) => rows().find(|row| row.culprit == *listed)?,
        None => {
            let mut named =
                rows().filter(|r| r.culprit == name || r.culprit.starts_with(&format!("{name} (")));
            // Nothing tells which of several is meant.
            named.next().filter(|_| named.next().is_none())?
        }
    };
    let name = hit.instance.as_ref().map_or(name, |instance| instance.label.as_str());
    let product = hit.values.get("product").and_then(Cell::text).filter(|p| is_name(p));
    Some((row, product.map_or_else(|| name.to_owned(), |product| format!("{product} ({name})"))))
}

/// Who made a driver may be unknown: findings then have words in place of the product's name.
fn is_name(product: &str) -> bool {
    product != "product unknown" && !product.starts_with("its ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_rules::Instance;
    use std::collections::BTreeMap;

    fn row(culprit: &str, total_cpu_ns: i64, share: f64) -> BillRow {
        BillRow {
            kind: "process".into(),
            part: "culprit".into(),
            culprit: culprit.into(),
            total_cpu_ns,
            share_percent: Some(share),
            core_hours: Some(total_cpu_ns as f64 / 3.6e12),
            ..BillRow::default()
        }
    }

    fn hit(cost_ns: Option<i64>, pid: Option<i64>) -> Hit {
        Hit {
            culprit: "svchost.exe".into(),
            culprit_kind: "process".into(),
            instance: pid.map(|pid| Instance {
                label: "svchost.exe (EventLog)".into(),
                role: Some("EventLog".into()),
                pid,
            }),
            severity: Severity::Warning,
            headline: "svchost.exe is slow".into(),
            effect: Some("all of that was spinning".into()),
            explanation: String::new(),
            fix: String::new(),
            cost_ns,
            share: None,
            confidence: None,
            values: BTreeMap::new(),
        }
    }

    #[test]
    fn the_innocent_twin_is_not_in_the_sentence() {
        let bill =
            [row("svchost.exe (800)", 9_000_000_000, 90.0), row("svchost.exe (900)", 1_000_000_000, 10.0)];
        let db = Database::new();
        let said = priced(&db, &hit(Some(500_000_000), Some(900)), &bill).unwrap();
        assert!(said.starts_with("svchost.exe (EventLog) cost this machine 5 % of its CPU"), "{said}");
        // Who is meant is not known, waits longer than it runs, or is not on the bill.
        for (cost_ns, pid) in [(500_000_000, None), (5_000_000_000, Some(900)), (500_000_000, Some(7))] {
            assert_eq!(priced(&db, &hit(Some(cost_ns), pid), &bill), None);
        }
    }
}
