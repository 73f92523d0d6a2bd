//! Security logs as costs, by machine.

use anyhow::Context as _;
use etwhy_audit::Policy;
use etwhy_audit::advise::{LogCost, Measured};
use etwhy_etl::Severity;
use etwhy_evtx::read::LogFile;
use etwhy_table::{Database, Memory, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

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
    /// Logs that hold no audit records.
    pub without: usize,
    /// What went wrong.
    pub faults: Vec<String>,
}

/// Reads logs and folders of logs.
pub fn read(
    paths: &[PathBuf],
    policies: &[(String, Policy)],
    threads: Option<usize>,
) -> anyhow::Result<Logs> {
    let mut found = Logs { machines: Vec::new(), read: 0, without: 0, faults: Vec::new() };
    if paths.is_empty() {
        return Ok(found);
    }
    let mut files = Vec::new();
    for path in paths {
        for file in files_of(path)? {
            match LogFile::open(&file, &file) {
                Ok(log) => files.push(log),
                Err(error) if path.is_dir() => found.faults.push(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
    }
    found.read = files.len();
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let memory = Memory::default();
    let options = etwhy_evtx::tables::Options {
        threads: threads.max(1),
        zero_utc_ns: None,
        filter: etwhy_evtx::filter::Filter::default(),
        records: false,
        memory: memory.clone(),
    };
    let made = etwhy_evtx::tables::make(&files, &options)?;
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
    etwhy_query::derive::derive(&mut db, Some(&wanted), &memory)?;
    machines(&db, &mut found);
    Ok(found)
}

/// The file, or the logs of a folder.
fn files_of(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("{}: cannot read", path.display()))? {
        let file = entry.with_context(|| format!("{}: cannot read", path.display()))?.path();
        if file.extension().is_some_and(|e| e.eq_ignore_ascii_case("evtx")) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        anyhow::bail!("{}: no .evtx file in this folder", path.display());
    }
    Ok(files)
}

fn machines(db: &Database, found: &mut Logs) {
    let (Some(files), Some(costs)) = (db.get("log_file"), db.get("audit_cost")) else { return };
    let of_log: BTreeMap<i64, u32> =
        rows(files).filter_map(|row| Some((files.i64(row, "log")?, row))).collect();
    let with_audit: BTreeSet<i64> = rows(costs).filter_map(|row| costs.i64(row, "log")).collect();
    found.without = of_log.len().saturating_sub(with_audit.len());
    let mut by_name: BTreeMap<String, Machine> = BTreeMap::new();
    for log in &with_audit {
        let Some(&row) = of_log.get(log) else { continue };
        let file = files.text(row, "file").unwrap_or("").to_owned();
        let computer = files.text(row, "computer").map(str::to_owned);
        let name = computer.clone().unwrap_or_else(|| file.clone());
        let machine = by_name.entry(name.to_lowercase()).or_insert_with(|| Machine {
            cost: LogCost { name, ..LogCost::default() },
            computer,
            files: Vec::new(),
            first_utc_ns: None,
            last_utc_ns: None,
        });
        let get = |column: &str| files.i64(row, column);
        let (first, last) = (get("first_utc_ns"), get("last_utc_ns"));
        let span = last.unwrap_or(0).saturating_sub(first.unwrap_or(0)).max(0);
        let size = get("size_bytes").unwrap_or(0);
        // Archives of one machine follow each other; their times add up.
        machine.cost.span_ns = machine.cost.span_ns.saturating_add(span);
        if size >= machine.cost.size_bytes {
            machine.cost.size_bytes = size;
            // Record ids go on when a log is cleared, so an overwritten log is one that is full besides.
            let is_full = get("record_bytes").unwrap_or(0) >= size / 10 * 8;
            machine.cost.wrapped = get("wrapped") == Some(1) && is_full;
        }
        machine.first_utc_ns = machine.first_utc_ns.or(first).min(first.or(machine.first_utc_ns));
        machine.last_utc_ns = machine.last_utc_ns.max(last);
        machine.files.push(file);
        for row in rows(costs).filter(|row| costs.i64(*row, "log") == Some(*log)) {
            let measured = measured(costs, row);
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

fn rows(table: &Table) -> std::ops::Range<u32> {
    0..u32::try_from(table.rows()).unwrap_or(u32::MAX)
}

fn measured(costs: &Table, row: u32) -> Measured {
    let text = |column: &str| costs.text(row, column).map(str::to_owned);
    Measured {
        guid: text("guid"),
        switch: text("switch_guid"),
        success: match costs.text(row, "outcome") {
            Some("success") => Some(true),
            Some("failure") => Some(false),
            _ => None,
        },
        records: costs.i64(row, "records").unwrap_or(0),
        bytes: costs.i64(row, "bytes").unwrap_or(0),
    }
}
