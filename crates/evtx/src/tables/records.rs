//! Fills `log_record`: the records of all logs in order of time, without holding them all.
//!
//! A log is nearly in order of time, but not quite: writers race, clocks are set, a file that wraps begins in its middle. Counting says
//! when each chunk begins, so chunks are read in that order, and a record is written as soon as no chunk that is still to be read has
//! an earlier one. What waits is a few chunks, or much for a log whose clock jumped.

use super::LogRecordRow;
use super::make::{MakeError, Options, some};
use crate::binxml::{Decoder, Event, Fault, Value, time};
use crate::counts::{Counts, time_of};
use crate::filter::Filter;
use crate::json;
use crate::read::{Damage, LogFile, RecordRef};
use crate::scan::{Batch, Reader, scan_batches};
use etwhy_table::{Strings, TableBuilder};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Chunks that are read at a time, 1 MiB: what they give waits until those before them are taken.
const CHUNKS: usize = 16;

/// The records of all logs that the filter takes, in order of time, and what was wrong with each log.
pub(super) fn records(
    logs: &[LogFile],
    counts: &[Counts],
    zero: i64,
    options: &Options,
    strings: &mut Strings,
) -> Result<(TableBuilder<LogRecordRow>, Vec<Damage>), MakeError> {
    let mut todo: Vec<(i64, i32, Batch<'_>)> = Vec::new();
    for (n, (log, counts)) in logs.iter().zip(counts).enumerate() {
        let starts = counts.starts.chunks(CHUNKS).map(|starts| starts.iter().copied().min());
        // A chunk that was not counted may begin at any time.
        let starts = starts.chain(std::iter::repeat(None)).map(|start| start.unwrap_or(0));
        for (places, start) in log.in_order().chunks(CHUNKS).zip(starts) {
            todo.push((time::utc_ns(start), n as i32, Batch { log, places: places.to_vec() }));
        }
    }
    // Stable: what begins at the same time stays in the order of the log.
    todo.sort_by_key(|(start, ..)| *start);
    let (keys, batches): (Vec<(i64, i32)>, Vec<Batch<'_>>) =
        todo.into_iter().map(|(start, log, batch)| ((start, log), batch)).unzip();
    let read = |hold: bool, strings: &mut Strings| {
        let mut damage: Vec<Damage> = logs.iter().map(|log| log.damage.clone()).collect();
        let mut waiting = Waiting { written: i64::MIN, ..Waiting::default() };
        let make = || RowReader { filter: &options.filter, rows: Vec::new(), text: String::new() };
        let mut table = TableBuilder::<LogRecordRow>::new(&options.memory);
        scan_batches(&batches, options.threads, make, |n, (rows, text), found| {
            let log = keys.get(n).map_or(0, |(_, log)| *log);
            if let Some(damage) = damage.get_mut(log as usize) {
                damage.merge(&found);
            }
            waiting.add(n, log, rows, text);
            if let Some((until, _)) = keys.get(n + 1).filter(|_| !hold) {
                waiting.write(Some(*until), zero, &mut table, strings);
            }
            !waiting.late
        })?;
        waiting.write(None, zero, &mut table, strings);
        Ok::<_, MakeError>((table, damage, waiting.late))
    };
    let (table, damage, late) = read(false, strings)?;
    if !late {
        return Ok((table, damage));
    }
    // Somebody writes the log while it is read.
    drop(table);
    let (table, damage, _) = read(true, strings)?;
    Ok((table, damage))
}

/// What orders records: time, log, batch, place in the batch.
type Key = (i64, i32, usize, usize);

/// Records that wait for earlier ones.
#[derive(Default)]
struct Waiting {
    order: BinaryHeap<Reverse<Key>>,
    /// Rows and texts of batches of which some wait, and how many.
    batches: BTreeMap<usize, (Vec<Row>, String, usize)>,
    /// Everything before this time was written.
    written: i64,
    /// A record came that should have been written before.
    late: bool,
}

impl Waiting {
    fn add(&mut self, batch: usize, log: i32, rows: Vec<Row>, text: String) {
        self.late |= rows.iter().any(|row| row.utc_ns < self.written);
        self.order.extend(rows.iter().enumerate().map(|(n, row)| Reverse((row.utc_ns, log, batch, n))));
        let count = rows.len();
        if count > 0 {
            self.batches.insert(batch, (rows, text, count));
        }
    }

    /// Writes those before `until`, or all. Those of that time wait for others of the same, so that their order is that of the logs.
    fn write(
        &mut self,
        until: Option<i64>,
        zero: i64,
        table: &mut TableBuilder<LogRecordRow>,
        strings: &mut Strings,
    ) {
        self.written = until.unwrap_or(i64::MAX);
        while let Some(Reverse((utc_ns, log, batch, n))) = self.order.peek().copied() {
            if until.is_some_and(|until| utc_ns >= until) {
                return;
            }
            self.order.pop();
            let Some((rows, text, left)) = self.batches.get_mut(&batch) else { continue };
            if let Some(row) = rows.get(n) {
                table.push(row.of_table(log, text, zero, strings));
            }
            *left -= 1;
            if *left == 0 {
                self.batches.remove(&batch);
            }
        }
    }
}

/// A record before its texts have numbers in the pool of the tables.
struct Row {
    utc_ns: i64,
    record_id: i64,
    numbers: [u64; 7],
    qualifiers: Option<u16>,
    process: Option<u32>,
    thread: Option<u32>,
    bytes: i64,
    /// Channel, provider, computer, user, activity, related activity, fields: where they end in the texts of the batch.
    ends: [u32; 8],
}

impl Row {
    fn of_table(&self, log: i32, text: &str, zero: i64, strings: &mut Strings) -> LogRecordRow {
        let part = |n: usize| {
            let (from, to) =
                (self.ends.get(n).copied().unwrap_or(0), self.ends.get(n + 1).copied().unwrap_or(0));
            text.get(from as usize..to as usize).unwrap_or("")
        };
        let [event_id, version, level, task, opcode, keywords, _] = self.numbers;
        LogRecordRow {
            ts_ns: self.utc_ns.saturating_sub(zero),
            utc_ns: self.utc_ns,
            log,
            record_id: self.record_id,
            channel: strings.intern(part(0)),
            provider: strings.intern(part(1)),
            event_id: event_id as i32,
            qualifiers: self.qualifiers.map(i32::from),
            version: version as i32,
            level: level as i32,
            task: task as i32,
            opcode: opcode as i32,
            keywords: keywords as i64,
            computer: strings.intern(part(2)),
            user_sid: some(strings, part(3)),
            pid: self.process.map(|n| n as i32),
            tid: self.thread.map(|n| n as i32),
            activity_id: some(strings, part(4)),
            related_activity_id: some(strings, part(5)),
            bytes: self.bytes,
            fields: Some(part(6)).filter(|fields| !fields.is_empty()).map(Box::from),
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
                record_id: record.id as i64,
                numbers: [0; 7],
                qualifiers: None,
                process: None,
                thread: None,
                bytes: record.size as i64,
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
