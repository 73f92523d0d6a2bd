//! Fills the tables.

use super::options::{MakeError, Options, some};
use super::records::records;
use super::wide::wide;
use super::{LogFileRow, LogTypeRow};
use crate::abi::file as abi;
use crate::counts::{self, Counts, span_ns};
use crate::read::{Damage, LogFile, anomalies};
use etwhy_table::{Strings, Table, TableBuilder, TableError};

/// Tables, and what was wrong with each log.
pub struct Made {
    /// The tables.
    pub tables: Vec<Table>,
    /// Path and damage of each log.
    pub damage: Vec<(std::path::PathBuf, Damage)>,
    /// Zero of `ts_ns`, since 1970 (UTC).
    pub zero_utc_ns: i64,
    /// Counts of each log.
    pub counts: Vec<Counts>,
}

/// Reads logs into tables.
///
/// # Errors
/// The system's, and those of the table builder.
pub fn make(logs: &[LogFile], options: &Options) -> Result<Made, MakeError> {
    let mut all = Vec::new();
    for log in logs {
        all.push(counts::count_wanted(log, options.threads, &options.filter)?);
    }
    let earliest = all.iter().filter(|c| c.all.records > 0).map(|c| span_ns(&c.all).0).min();
    let zero = options.zero_utc_ns.or(earliest).unwrap_or(0);
    let mut strings = Strings::new();
    let mut files = TableBuilder::<LogFileRow>::new(&options.memory);
    let mut types = TableBuilder::<LogTypeRow>::new(&options.memory);
    for (n, (log, counts)) in logs.iter().zip(&all).enumerate() {
        files.push(file_row(n as i32, log, counts, zero, &mut strings));
        for (kind, amount) in counts.wanted() {
            let (first_utc_ns, last_utc_ns) = span_ns(amount);
            types.push(LogTypeRow {
                log: n as i32,
                channel: strings.intern(&kind.channel),
                provider: strings.intern(&kind.provider),
                provider_guid: some(&mut strings, &kind.provider_guid),
                event_id: i32::from(kind.event_id),
                qualifiers: kind.qualifiers.map(i32::from),
                version: i32::from(kind.version),
                level: i32::from(kind.level),
                task: i32::from(kind.task),
                opcode: i32::from(kind.opcode),
                keywords: kind.keywords as i64,
                audit: audit(kind.keywords).map(|text| strings.intern(text)),
                records: amount.records as i64,
                bytes: amount.bytes as i64,
                first_utc_ns,
                last_utc_ns,
            });
        }
    }
    let mut damage: Vec<_> = logs.iter().zip(&all).map(|(l, c)| (l.path.clone(), c.damage.clone())).collect();
    let records = if options.records {
        let (records, found) = records(logs, &all, zero, options, &mut strings)?;
        for ((_, counted), found) in damage.iter_mut().zip(found) {
            add_new(counted, &found);
        }
        Some(records)
    } else {
        None
    };
    let mut events = Vec::new();
    if !options.ids.is_empty() {
        let (tables, found) = wide(logs, &all, zero, options)?;
        events = tables;
        for ((_, counted), found) in damage.iter_mut().zip(found) {
            add_new(counted, &found);
        }
    }
    let texts = strings.freeze().map_err(TableError::texts)?;
    let mut tables = vec![files.finish(&texts)?, types.finish(&texts)?];
    if let Some(records) = records {
        tables.push(records.finish(&texts)?);
    }
    tables.extend(events);
    Ok(Made { tables, damage, zero_utc_ns: zero, counts: all })
}

/// Adds what another look at the same log found beyond what is counted: one that reads fields sees more than one that does not.
fn add_new(counted: &mut Damage, found: &Damage) {
    for entry in found.entries() {
        let more = entry.count.saturating_sub(counted.get(entry.anomaly));
        if more > 0 {
            counted.note(entry.anomaly, more, || entry.first.clone());
        }
    }
}

fn audit(keywords: u64) -> Option<&'static str> {
    crate::binxml::System { keywords, ..Default::default() }.audit()
}

fn file_row(number: i32, log: &LogFile, counts: &Counts, zero: i64, strings: &mut Strings) -> LogFileRow {
    let mut channels: Vec<(&str, u64)> = Vec::new();
    for (kind, amount) in &counts.types {
        match channels.iter_mut().find(|(name, _)| *name == kind.channel) {
            Some((_, n)) => *n += amount.records,
            None => channels.push((&kind.channel, amount.records)),
        }
    }
    let channel = channels.iter().max_by_key(|(_, n)| *n).map(|(name, _)| *name).unwrap_or_default();
    let computer = counts.computers.first().map(|(name, _)| name.as_str()).unwrap_or_default();
    let span = (counts.all.records > 0).then(|| span_ns(&counts.all));
    let used: Vec<_> = log.chunks.iter().filter(|c| c.has_records()).collect();
    let damaged = counts
        .damage
        .get(&anomalies::CHUNK_CHECKSUM)
        .max(counts.damage.get(&anomalies::CHUNK_HEADER_CHECKSUM))
        + counts.damage.get(&anomalies::CHUNK_MAGIC)
        + counts.damage.get(&anomalies::CUT);
    LogFileRow {
        log: number,
        file: strings.intern(&log.path.to_string_lossy()),
        channel: some(strings, channel),
        computer: some(strings, computer),
        size_bytes: log.size as i64,
        record_bytes: counts.all.bytes as i64,
        records: counts.all.records as i64,
        chunks: used.len() as i64,
        header_chunks: i64::from(log.header_chunks),
        damaged_chunks: damaged as i64,
        first_record_id: counts.ids.map(|(low, _)| low as i64),
        last_record_id: counts.ids.map(|(_, high)| high as i64),
        first_utc_ns: span.map(|s| s.0),
        last_utc_ns: span.map(|s| s.1),
        zero_utc_ns: Some(zero),
        dirty: log.flags & abi::FLAG_DIRTY != 0,
        full: log.flags & abi::FLAG_FULL != 0,
        wrapped: used.windows(2).any(|w| matches!(w, [a, b] if b.first_record < a.first_record))
            || counts.ids.is_some_and(|(low, _)| low > 1 && used.len() > 1),
        format: strings.intern(&format!("{}.{}", log.version.0, log.version.1)),
    }
}
