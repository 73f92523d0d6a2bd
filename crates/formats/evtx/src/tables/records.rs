//! Fills `log_record`.

use super::LogRecordRow;
use super::in_time::{Rows, in_time};
use super::options::{Fields, MakeError, Options, some};
use crate::binxml::{Decoder, Event, Fault, Value, time};
use crate::counts::Counts;
use crate::filter::time_of;
use crate::json;
use crate::pick::Picker;
use crate::read::{Damage, LogFile, RecordRef};
use crate::scan::Reader;
use crate::wanted::Named;
use etwhy_table::{Memory, Strings, TableBuilder};

/// The records of all logs that the filter takes, in order of time, and what was wrong with each log.
pub(super) fn records(
    logs: &[LogFile],
    counts: &[Counts],
    zero: i64,
    options: &Options,
    strings: &mut Strings,
) -> Result<(TableBuilder<LogRecordRow>, Vec<Damage>), MakeError> {
    let make = || RowReader {
        picker: Picker::new(&options.filter),
        fields: options.fields,
        named: match options.fields {
            Fields::Named(names) => Named::new(names),
            Fields::None | Fields::All => Named::new(&[]),
        },
        rows: Vec::new(),
        text: Vec::new(),
    };
    let builder = TableBuilder::new(&options.memory);
    let mut table = Table { memory: options.memory.clone(), builder, strings, zero };
    let damage = in_time(logs, counts, options.threads, make, &mut table)?;
    Ok((table.builder, damage))
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

/// Takes rows in order of time.
struct Table<'s> {
    memory: Memory,
    builder: TableBuilder<LogRecordRow>,
    strings: &'s mut Strings,
    zero: i64,
}

impl Rows<(Vec<Row>, String)> for Table<'_> {
    fn begin(&mut self) {
        self.builder = TableBuilder::new(&self.memory);
    }

    fn keys(&self, log: i32, (rows, _): &(Vec<Row>, String)) -> Vec<(i64, u64)> {
        rows.iter().map(|row| (row.utc_ns, log as u64)).collect()
    }

    fn write(&mut self, log: i32, (rows, text): &(Vec<Row>, String), at: usize) -> Result<(), MakeError> {
        if let Some(row) = rows.get(at) {
            self.builder.push(row.of_table(log, text, self.zero, self.strings));
        }
        Ok(())
    }
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
    picker: Picker<'f>,
    fields: Fields,
    named: Named,
    rows: Vec<Row>,
    text: Vec<u8>,
}

impl Reader for RowReader<'_> {
    type Output = (Vec<Row>, String);

    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        // The scan counts what cannot be read.
        let Ok(event) = event else { return Ok(()) };
        if !self.picker.takes(decoder, &event, record)? {
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
        let result = match self.fields {
            Fields::None => Ok(()),
            Fields::Named(_) => json::push_wanted::<false>(decoder, &event, &mut self.named, &mut self.text),
            Fields::All => json::push_fields::<false>(decoder, &event, &mut self.text),
        };
        if let Some(end) = row.ends.last_mut() {
            *end = self.text.len() as u32;
        }
        self.rows.push(row);
        result
    }

    fn finish(&mut self) -> (Vec<Row>, String) {
        // Nothing but UTF-8 was appended; it is checked once for all rows.
        let text = String::from_utf8(std::mem::take(&mut self.text)).unwrap_or_default();
        (std::mem::take(&mut self.rows), text)
    }
}
