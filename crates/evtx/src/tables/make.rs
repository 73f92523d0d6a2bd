//! Fills the tables.

use super::wide::wide;
use super::{LogFileRow, LogRecordRow, LogTypeRow};
use crate::abi::file as abi;
use crate::binxml::{Decoder, Event, Fault, Value, time};
use crate::counts::{self, Counts, span_ns, time_of};
use crate::error::EvtxError;
use crate::filter::Filter;
use crate::json;
use crate::read::{Damage, LogFile, RecordRef, anomalies};
use crate::scan::{Reader, ScanOptions, scan};
use etwhy_table::{Memory, Strings, Sym, Table, TableBuilder, TableError};

/// How logs become tables.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads.
    pub threads: usize,
    /// Zero of `ts_ns`, since 1970 (UTC); `None`: the earliest record.
    pub zero_utc_ns: Option<i64>,
    /// Make `log_record` too.
    pub records: bool,
    /// Make a table `event_<id>` for each of these.
    pub ids: Vec<u16>,
    /// Which records `log_record` and `event_<id>` have; other tables have all.
    pub filter: Filter,
    /// Where columns are held.
    pub memory: Memory,
}

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

/// Why tables cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] EvtxError),
    /// A table cannot be made.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Reads logs into tables.
///
/// # Errors
/// The system's, and those of the table builder.
pub fn make(logs: &[LogFile], options: &Options) -> Result<Made, MakeError> {
    let mut all = Vec::new();
    for log in logs {
        all.push(counts::count(log, options.threads)?);
    }
    let earliest = all.iter().filter(|c| c.all.records > 0).map(|c| span_ns(&c.all).0).min();
    let zero = options.zero_utc_ns.or(earliest).unwrap_or(0);
    let mut strings = Strings::new();
    let mut files = TableBuilder::<LogFileRow>::new(&options.memory);
    let mut types = TableBuilder::<LogTypeRow>::new(&options.memory);
    for (n, (log, counts)) in logs.iter().zip(&all).enumerate() {
        files.push(file_row(n as i32, log, counts, zero, &mut strings));
        for (kind, amount) in &counts.types {
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
    let mut records = TableBuilder::<LogRecordRow>::new(&options.memory);
    if options.records {
        let mut rows = Rows::new(logs, options)?;
        rows.rows.sort_by_key(|row| row.utc_ns);
        rows.push(zero, &mut records, &mut strings);
        for ((_, counted), found) in damage.iter_mut().zip(rows.damage) {
            add_new(counted, &found);
        }
    }
    let mut events = Vec::new();
    if !options.ids.is_empty() {
        let (tables, found) = wide(logs, zero, options)?;
        events = tables;
        for ((_, counted), found) in damage.iter_mut().zip(found) {
            add_new(counted, &found);
        }
    }
    let texts = strings.freeze().map_err(TableError::texts)?;
    let mut tables = vec![files.finish(&texts)?, types.finish(&texts)?];
    if options.records {
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

fn some(strings: &mut Strings, text: &str) -> Option<Sym> {
    (!text.is_empty()).then(|| strings.intern(text))
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

/// A record before its texts have numbers in the pool of the tables.
struct Row {
    utc_ns: i64,
    log: i32,
    record_id: i64,
    numbers: [u64; 7],
    qualifiers: Option<u16>,
    process: Option<u32>,
    thread: Option<u32>,
    bytes: i64,
    /// Channel, provider, computer, user, activity, related activity, fields: where they end in the texts of the batch.
    batch: u32,
    ends: [u32; 8],
}

struct Rows {
    rows: Vec<Row>,
    texts: Vec<String>,
    damage: Vec<Damage>,
}

impl Rows {
    fn new(logs: &[LogFile], options: &Options) -> Result<Rows, EvtxError> {
        let mut all = Rows { rows: Vec::new(), texts: Vec::new(), damage: Vec::new() };
        for (n, log) in logs.iter().enumerate() {
            let scanning = ScanOptions { threads: options.threads, in_order: true };
            let make = || RowReader { filter: &options.filter, rows: Vec::new(), text: String::new() };
            let (rows, texts) = (&mut all.rows, &mut all.texts);
            let damage = scan(log, &scanning, make, |(mut part, text): (Vec<Row>, String)| {
                let batch = texts.len() as u32;
                part.iter_mut().for_each(|row| (row.log, row.batch) = (n as i32, batch));
                rows.append(&mut part);
                texts.push(text);
                true
            })?;
            all.damage.push(damage);
        }
        Ok(all)
    }

    fn push(&self, zero: i64, table: &mut TableBuilder<LogRecordRow>, strings: &mut Strings) {
        for row in &self.rows {
            let text = self.texts.get(row.batch as usize).map_or("", String::as_str);
            let part = |n: usize| {
                let (from, to) =
                    (row.ends.get(n).copied().unwrap_or(0), row.ends.get(n + 1).copied().unwrap_or(0));
                text.get(from as usize..to as usize).unwrap_or("")
            };
            let [event_id, version, level, task, opcode, keywords, _] = row.numbers;
            table.push(LogRecordRow {
                ts_ns: row.utc_ns.saturating_sub(zero),
                utc_ns: row.utc_ns,
                log: row.log,
                record_id: row.record_id,
                channel: strings.intern(part(0)),
                provider: strings.intern(part(1)),
                event_id: event_id as i32,
                qualifiers: row.qualifiers.map(i32::from),
                version: version as i32,
                level: level as i32,
                task: task as i32,
                opcode: opcode as i32,
                keywords: keywords as i64,
                computer: strings.intern(part(2)),
                user_sid: some(strings, part(3)),
                pid: row.process.map(|n| n as i32),
                tid: row.thread.map(|n| n as i32),
                activity_id: some(strings, part(4)),
                related_activity_id: some(strings, part(5)),
                bytes: row.bytes,
                fields: some(strings, part(6)),
            });
        }
    }
}

struct RowReader<'f> {
    filter: &'f Filter,
    rows: Vec<Row>,
    text: String,
}

impl Reader for RowReader<'_> {
    type Output = (Vec<Row>, String);

    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let Ok(event) = event else {
            if !self.filter.is_empty() {
                return Ok(());
            }
            let end = self.text.len() as u32;
            self.rows.push(Row {
                utc_ns: time::utc_ns(record.time),
                log: 0,
                record_id: record.id as i64,
                numbers: [0; 7],
                qualifiers: None,
                process: None,
                thread: None,
                bytes: record.size as i64,
                batch: 0,
                ends: [end; 8],
            });
            return Ok(());
        };
        if !self.filter.is_empty() && !self.filter.takes(decoder, &event, record)? {
            return Ok(());
        }
        let system = decoder.system(&event);
        let mut ends = [self.text.len() as u32; 8];
        let texts: [Value<'_>; 6] = [
            system.channel,
            system.provider,
            system.computer,
            system.user,
            system.activity,
            system.related_activity,
        ];
        for (value, end) in texts.iter().zip(ends.iter_mut().skip(1)) {
            value.push_text(&mut self.text);
            *end = self.text.len() as u32;
        }
        let mut row = Row {
            utc_ns: time::utc_ns(time_of(&system, record)),
            log: 0,
            record_id: system.record_id.unwrap_or(record.id) as i64,
            numbers: [
                u64::from(system.event_id),
                u64::from(system.version),
                u64::from(system.level),
                u64::from(system.task),
                u64::from(system.opcode),
                system.keywords,
                0,
            ],
            qualifiers: system.qualifiers,
            process: system.process,
            thread: system.thread,
            bytes: record.size as i64,
            batch: 0,
            ends,
        };
        // A record that is broken keeps the fields before the damage.
        let result = json::push_fields(decoder, &event, &mut self.text);
        if let Some(end) = row.ends.last_mut() {
            *end = self.text.len() as u32;
        }
        self.rows.push(row);
        result
    }

    fn finish(&mut self) -> (Vec<Row>, String) {
        (std::mem::take(&mut self.rows), std::mem::take(&mut self.text))
    }
}
