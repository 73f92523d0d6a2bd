//! Security logs as costs, by machine.

use crate::exit::Exit;
use crate::open::logs::{LogReading, Logs as Opened};
use etwhy_analysis::derived::audit_cost::AuditCostRow;
use etwhy_audit::Policy;
use etwhy_audit::advise::{LogCost, Measured};
use etwhy_etl::Severity;
use etwhy_evtx::tables::LogFileRow;
use etwhy_table::{Database, RowOf};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// One machine's logs.
pub struct Machine {
    /// What they cost, put together.
    pub cost: LogCost,
    /// The machine's name, where the logs have one.
    pub computer: Option<String>,
    /// Files.
    pub files: Vec<String>,
    /// Earliest record, since 1970 (UTC).
    pub first_utc_ns: Option<i64>,
    /// Latest record, since 1970 (UTC).
    pub last_utc_ns: Option<i64>,
}

/// What was read.
pub struct Logs {
    /// By machine, the costliest first. Only those whose logs hold audit records.
    pub machines: Vec<Machine>,
    /// Logs that were read.
    pub read: usize,
    /// How opening them ended: in part if one is none, which was reported.
    pub exit: Exit,
    /// Logs that hold no audit records.
    pub without: usize,
    /// What went wrong.
    pub faults: Vec<String>,
}

/// Reads logs: files, folders, archives, standard input.
pub fn read(paths: &[PathBuf], policies: &[(String, Policy)], reading: &LogReading) -> anyhow::Result<Logs> {
    let mut found = Logs { machines: Vec::new(), read: 0, exit: Exit::Done, without: 0, faults: Vec::new() };
    if paths.is_empty() {
        return Ok(found);
    }
    let opened = crate::open::logs::open(paths, reading)?;
    found.read = opened.files.len();
    found.exit = Opened::exit_of(&opened.ledger)?;
    let memory = opened.memory.clone();
    let options = etwhy_evtx::tables::Options {
        threads: opened.threads,
        zero_utc_ns: None,
        ids: Vec::new(),
        filter: etwhy_evtx::filter::Filter::default(),
        records: false,
        fields: etwhy_evtx::tables::Fields::None,
        memory: memory.clone(),
    };
    let made = etwhy_evtx::tables::make(&opened.files, &options)?;
    for (path, damage) in &made.damage {
        // What is only worth knowing, such as a log that was not closed, changes no count.
        for entry in damage.entries().filter(|entry| entry.anomaly.severity != Severity::Info) {
            found.faults.push(format!(
                "{}: {} ({}): {}",
                path.display(),
                entry.anomaly.name,
                entry.count,
                entry.first
            ));
        }
    }
    let mut db = Database::new();
    for table in made.tables {
        db.insert(table);
    }
    db.insert(etwhy_audit::table::table(policies, &memory)?);
    let wanted = BTreeSet::from(["audit_cost".to_owned()]);
    etwhy_analysis::derive(&mut db, Some(&wanted), &memory, 1)?;
    machines(&db, &mut found);
    Ok(found)
}

fn machines(db: &Database, found: &mut Logs) {
    let (files, costs) = (db.read_or_empty::<LogFileRow>(), db.read_or_empty::<AuditCostRow>());
    let of_log: BTreeMap<i64, RowOf<'_, '_, LogFileRow>> = files.iter().map(|row| (row.log(), row)).collect();
    let with_audit: BTreeSet<i64> = costs.iter().map(|row| row.log()).collect();
    found.without = of_log.len().saturating_sub(with_audit.len());
    let mut by_name: BTreeMap<String, Machine> = BTreeMap::new();
    for log in &with_audit {
        let Some(row) = of_log.get(log) else { continue };
        let file = row.file().to_owned();
        let computer = row.computer().map(str::to_owned);
        let name = computer.clone().unwrap_or_else(|| file.clone());
        let machine = by_name.entry(name.to_lowercase()).or_insert_with(|| Machine {
            cost: LogCost { name, ..LogCost::default() },
            computer,
            files: Vec::new(),
            first_utc_ns: None,
            last_utc_ns: None,
        });
        let (first, last) = (row.first_utc_ns(), row.last_utc_ns());
        let span = last.unwrap_or(0).saturating_sub(first.unwrap_or(0)).max(0);
        let size = row.size_bytes();
        // Archives of one machine follow each other; their times add up.
        machine.cost.span_ns = machine.cost.span_ns.saturating_add(span);
        if size >= machine.cost.size_bytes {
            machine.cost.size_bytes = size;
            // Record ids go on when a log is cleared, so an overwritten log is one that is full besides.
            machine.cost.wrapped = row.wrapped() && row.record_bytes() >= size / 10 * 8;
        }
        machine.first_utc_ns = machine.first_utc_ns.or(first).min(first.or(machine.first_utc_ns));
        machine.last_utc_ns = machine.last_utc_ns.max(last);
        machine.files.push(file);
        for cost in costs.iter().filter(|cost| cost.log() == *log) {
            let measured = measured(cost);
            machine.cost.records = machine.cost.records.saturating_add(measured.records);
            machine.cost.bytes = machine.cost.bytes.saturating_add(measured.bytes);
            machine.cost.rows.push(measured);
        }
    }
    found.machines = by_name.into_values().collect();
    for machine in found.machines.iter_mut().filter(|machine| machine.files.len() > 1) {
        machine.cost.wrapped = false;
    }
    found.machines.sort_by_key(|machine| std::cmp::Reverse(machine.cost.bytes));
}

fn measured(cost: RowOf<'_, '_, AuditCostRow>) -> Measured {
    Measured {
        guid: cost.guid().map(str::to_owned),
        switch: cost.switch_guid().map(str::to_owned),
        success: match cost.outcome() {
            "success" => Some(true),
            "failure" => Some(false),
            _ => None,
        },
        records: cost.records(),
        bytes: cost.bytes(),
    }
}
