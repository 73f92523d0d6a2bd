//! What is said of one trace, as rows: its facts, its answers, its culprits.

use crate::error::Result;
use crate::ids::MachineId;
use crate::tables::{FindingHitRow, FindingRow, RecordingRow};
use etwhy_analysis::derived::bill::BillRow;
use etwhy_analysis::derived::machine::MachineRow;
use etwhy_analysis::derived::module::ModuleRow;
use etwhy_base::time::{filetime, filetime_text};
use etwhy_rules::{Answer, Hit, Outcome, Severity};
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, TableError};
use etwhy_trace::catalog::ledger::LedgerRow;
use etwhy_trace::catalog::trace::TraceRow as FileRow;

/// Facts of a trace that its table `trace` has for each file.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// `recording_id`: names its content.
    pub trace_id: String,
    /// `machine_id`: the machine in this boot.
    pub boot_id: String,
    /// Computer name, where recorded.
    pub computer: Option<String>,
}

impl Facts {
    /// Those of what was read.
    pub fn of(db: &Database) -> Facts {
        let files = db.read_or_empty::<FileRow>();
        let first = files.first();
        Facts {
            trace_id: first.map_or_else(String::new, |row| row.recording_id().to_owned()),
            boot_id: first.map_or_else(String::new, |row| row.machine_id().to_owned()),
            computer: files.iter().find_map(|row| row.computer()).map(str::to_owned),
        }
    }
}

/// The tables `recording`, `finding` and `finding_hit` of a trace.
///
/// # Errors
/// Those of the table builder.
pub fn tables(
    db: &Database,
    outcomes: &[Outcome],
    sentence: &str,
    machine: &MachineId,
) -> Result<Vec<Table>> {
    let memory = Memory::default();
    let mut strings = Strings::new();
    let mut traces = TableBuilder::<RecordingRow>::new(&memory);
    trace(db, sentence, machine, &mut strings).into_iter().for_each(|row| traces.push(row));
    let mut findings = TableBuilder::<FindingRow>::new(&memory);
    let mut hits = TableBuilder::<FindingHitRow>::new(&memory);
    for outcome in outcomes {
        findings.push(finding(outcome, &mut strings));
        for (number, hit) in outcome.hits.iter().enumerate() {
            hits.push(finding_hit(db, outcome, hit, number, &mut strings));
        }
    }
    let texts = strings.freeze().map_err(TableError::texts)?;
    Ok(vec![traces.finish(&texts)?, findings.finish(&texts)?, hits.finish(&texts)?])
}

fn trace(db: &Database, sentence: &str, machine: &MachineId, strings: &mut Strings) -> Option<RecordingRow> {
    let files = db.read_or_empty::<FileRow>();
    // The file that begins first says when, the largest what.
    let first = files.iter().min_by_key(|row| row.start_unix_ns())?;
    let largest = files.iter().max_by_key(|row| row.size_bytes())?;
    let ends = files.iter().map(|row| row.last_ns()).max()?;
    let begins = files.iter().map(|row| row.first_ns()).min()?;
    let captured = filetime_text(filetime(first.start_unix_ns()), 3);
    let day = captured.get(..10).unwrap_or_default().to_owned();
    let own = |strings: &mut Strings, text: Option<&str>| text.map(|text| strings.intern(text));
    Some(RecordingRow {
        path: strings.intern(files.first()?.file()),
        files: i32::try_from(files.iter().count()).unwrap_or(i32::MAX),
        size_bytes: files.iter().map(|row| row.size_bytes()).fold(0, i64::saturating_add),
        captured_utc: strings.intern(&captured),
        captured_unix_ns: first.start_unix_ns(),
        captured_day: strings.intern(&day),
        duration_ns: ends.saturating_sub(begins),
        machine_basis: strings.intern(machine.basis),
        boot_id: strings.intern(largest.machine_id()),
        computer: own(strings, files.iter().find_map(|row| row.computer())),
        model: own(strings, files.iter().find_map(|row| row.platform())),
        processor: own(strings, files.iter().find_map(|row| row.processor())),
        os: strings.intern(largest.os()),
        os_build: i32::try_from(largest.os_build()).unwrap_or(0),
        events_lost: files.iter().map(|row| row.events_lost()).fold(0, i64::saturating_add),
        buffers_lost: files.iter().map(|row| row.buffers_lost()).fold(0, i64::saturating_add),
        finalised: files.iter().all(|row| row.finalised()),
        sentence: strings.intern(sentence),
        clock_broken: Some(clock_is_broken(db)),
    })
}

/// A trace that lasted longer has times that cannot be: 100 days.
const LONGEST_NS: i64 = 8_640_000_000_000_000;

/// True if times of the trace cannot be. One event at a wrong time makes a trace of seconds one of hours or weeks in which nothing happened, which
/// would outweigh all others of a fleet. No Windows that runs is that idle: busy for less than one hundred-thousandth of the time, or, where
/// records were out of their order besides, as they are behind one from the future, for less than a thousandth.
fn clock_is_broken(db: &Database) -> bool {
    let machines = db.read_or_empty::<MachineRow>();
    let Some(machine) = machines.first() else { return false };
    let ledger = db.read_or_empty::<LedgerRow>();
    let disorder = ledger.iter().any(|row| row.name() == "records_out_of_order");
    // So long that some samples or switches would be there.
    let (least_ns, idle) = if disorder { (10_000_000_000, 1_000) } else { (1_000_000_000_000, 100_000) };
    let capacity = machine.capacity_ns();
    let is_dead = |busy: i64| capacity >= least_ns && busy.saturating_mul(idle) < capacity;
    machine.duration_ns() >= LONGEST_NS || machine.busy_ns().is_some_and(is_dead)
}

fn finding(outcome: &Outcome, strings: &mut Strings) -> FindingRow {
    let mut some = |text: String| (!text.is_empty()).then(|| strings.intern(&text));
    let reasons: Vec<&str> = outcome.reasons.iter().map(|reason| reason.text.as_str()).collect();
    let reason = some(reasons.join("\n"));
    let record = some(outcome.reasons.iter().find_map(|reason| reason.record.clone()).unwrap_or_default());
    let caveats = some(outcome.caveats.join("\n"));
    let severity = some(outcome.severity.map_or("", Severity::name).to_owned());
    FindingRow {
        finding_id: strings.intern(&outcome.id),
        title: strings.intern(&outcome.title),
        topic: strings.intern(&outcome.topic),
        answer: strings.intern(Answer::name(outcome.answer)),
        severity,
        reason,
        record,
        caveats,
        hits: i32::try_from(outcome.hits.len()).unwrap_or(i32::MAX),
        cost_ns: outcome.hits.iter().filter_map(|hit| hit.cost_ns).max(),
    }
}

fn finding_hit(
    db: &Database,
    outcome: &Outcome,
    hit: &Hit,
    number: usize,
    strings: &mut Strings,
) -> FindingHitRow {
    let modules = db.read_or_empty::<ModuleRow>();
    let same = |name: &str| name.eq_ignore_ascii_case(&hit.culprit);
    // Of several builds of a file that which used most CPU is meant.
    let module = modules
        .iter()
        .filter(|row| same(row.name()))
        .max_by_key(|row| (row.cpu_inclusive_ns().unwrap_or(0), row.file_version().is_some()));
    let bill = db.read_or_empty::<BillRow>();
    let bill = bill.iter().find(|row| row.kind() == hit.culprit_kind && same(row.culprit()));
    let vendor = bill.and_then(|row| row.vendor()).or_else(|| module.and_then(|row| row.vendor()));
    let some =
        |text: Option<&str>, strings: &mut Strings| -> Option<Sym> { text.map(|text| strings.intern(text)) };
    let figures = serde_json::to_string(&hit.values).unwrap_or_default();
    FindingHitRow {
        finding_id: strings.intern(&outcome.id),
        number: i32::try_from(number).unwrap_or(i32::MAX),
        culprit: strings.intern(&hit.culprit),
        culprit_kind: strings.intern(&hit.culprit_kind),
        vendor: some(vendor, strings),
        file_version: some(module.and_then(|row| row.file_version()), strings),
        severity: strings.intern(hit.severity.name()),
        headline: strings.intern(&hit.headline),
        cost_ns: hit.cost_ns,
        share: hit.share,
        energy_j: bill.and_then(|row| row.energy_j()),
        confidence: some(hit.confidence.as_deref(), strings),
        figures: strings.intern(&figures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_broken(duration_s: i64, capacity_s: i64, busy_ms: Option<i64>, disorder: bool) -> bool {
        let (memory, mut strings) = (Memory::default(), Strings::new());
        let mut machines = TableBuilder::<MachineRow>::new(&memory);
        machines.push(MachineRow {
            os_build: 0,
            cpus: 8,
            numa_nodes: 1,
            memory_bytes: None,
            duration_ns: duration_s * 1_000_000_000,
            observed_ns: None,
            stood_still_ns: None,
            stood_still_start_ns: None,
            elapsed_cpu_ns: 0,
            capacity_ns: capacity_s * 1_000_000_000,
            sampled_capacity_ns: None,
            switched_capacity_ns: None,
            event_capacity_ns: 0,
            sampled_busy_ns: None,
            sampled_stack_ns: 0,
            switched_busy_ns: None,
            busy_ns: busy_ms.map(|ms| ms * 1_000_000),
            idle_ns: None,
            busy_percent: None,
            sample_interval_ns: None,
            events_lost: 0,
            buffers_lost: 0,
        });
        let mut ledger = TableBuilder::<LedgerRow>::new(&memory);
        if disorder {
            let mut text = |text: &str| strings.intern(text);
            let (name, severity, stage) = (text("records_out_of_order"), text("warning"), text("order"));
            ledger.push(LedgerRow { name, severity, stage, count: 30, meaning: stage, first: None });
        }
        let texts = strings.freeze().unwrap();
        let mut db = Database::new();
        db.insert(machines.finish(&texts).unwrap());
        db.insert(ledger.finish(&texts).unwrap());
        clock_is_broken(&db)
    }

    #[test]
    fn a_clock_is_broken_if_nothing_happened_for_hours() {
        let (day, hour) = (86_400, 3_600);
        // A server that was idle for a day, busy for a minute; and one with an event at a wrong time.
        assert!(!is_broken(day, 8 * day, Some(60_000), false));
        assert!(is_broken(20 * day, 160 * day, Some(6), false));
        // Seconds in which no sample met a busy processor are no wonder.
        assert!(!is_broken(10, 80, Some(0), false));
        // Records out of order alone say little, and with an hour of nothing much.
        assert!(!is_broken(10, 80, Some(200), true));
        assert!(is_broken(hour, 8 * hour, Some(2_000), true));
        assert!(!is_broken(hour, 8 * hour, Some(2_000), false));
        // What has neither samples nor switches may last long.
        assert!(!is_broken(20 * day, 160 * day, None, true));
        assert!(is_broken(101 * day, 808 * day, None, false));
    }
}
