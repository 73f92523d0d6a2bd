//! Fills `log_record`.

use super::LogRecordRow;
use super::in_time::{Rows, in_time};
use super::options::{Fields, MakeError, Options, some};
use crate::binxml::{Decoder, Event, Fault, System, Value, time};
use crate::counts::Counts;
use crate::filter::time_of;
use crate::json;
use crate::pick::Picker;
use crate::read::{Damage, LogFile, RecordRef};
use crate::scan::Reader;
use crate::wanted::Named;
use etwhy_table::{Memory, Strings, Sym, TableBuilder};
use std::sync::{Mutex, PoisonError};

/// The records of all logs that the filter takes, in order of time, and what was wrong with each log.
pub(super) fn records(
    logs: &[LogFile],
    counts: &[Counts],
    zero: i64,
    options: &Options,
    strings: &mut Strings,
) -> Result<(TableBuilder<LogRecordRow>, Vec<Damage>), MakeError> {
    let spare = Spare::default();
    let make = || RowReader {
        picker: Picker::new(&options.filter),
        fields: options.fields,
        named: match options.fields {
            Fields::Named(names) => Named::new(names),
            Fields::None | Fields::All => Named::new(&[]),
        },
        part: Part::default(),
        text: Vec::new(),
        recent: [(0, 0); RECENT],
        spare: &spare,
    };
    let builder = TableBuilder::new(&options.memory);
    let mut table = Table { memory: options.memory.clone(), builder, strings, zero, spare: &spare };
    let damage = in_time(logs, counts, options.threads, make, &mut table)?;
    Ok((table.builder, damage))
}

/// Records of some chunks before their texts have numbers in the pool of the tables.
#[derive(Default)]
struct Part {
    rows: Vec<Row>,
    origins: Vec<Origin>,
    /// The texts of all of them, one behind the other.
    text: String,
}

/// A record.
struct Row {
    utc_ns: i64,
    record_id: i64,
    keywords: i64,
    event_id: u16,
    task: u16,
    version: u8,
    level: u8,
    opcode: u8,
    qualifiers: Option<u16>,
    process: Option<u32>,
    thread: Option<u32>,
    bytes: u32,
    /// Its place among the origins.
    origin: u32,
    /// Where its user begins, and where user, activity and related activity end; the fields follow.
    ends: [u32; 4],
    fields_end: u32,
}

/// Channel, provider and computer, which nearly all records share with others.
struct Origin {
    /// Where the channel begins, and where the three end.
    ends: [u32; 4],
    /// Their numbers, as soon as a record was written.
    known: Option<[Sym; 3]>,
}

/// Parts that are kept for others: more wait at a time only if many logs overlap.
const MOST_SPARE: usize = 32;

/// Parts that were written, for those to come: new memory costs more than the records in it.
#[derive(Default)]
struct Spare(Mutex<Vec<Part>>);

impl Spare {
    fn take(&self) -> Part {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give(&self, mut part: Part) {
        part.rows.clear();
        part.origins.clear();
        part.text.clear();
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < MOST_SPARE {
            spare.push(part);
        }
    }
}

/// Takes rows in order of time.
struct Table<'s> {
    memory: Memory,
    builder: TableBuilder<LogRecordRow>,
    strings: &'s mut Strings,
    zero: i64,
    spare: &'s Spare,
}

impl Rows<Part> for Table<'_> {
    fn begin(&mut self) {
        self.builder = TableBuilder::new(&self.memory);
    }

    fn keys(&self, log: i32, part: &Part) -> impl Iterator<Item = (i64, u64)> {
        part.rows.iter().map(move |row| (row.utc_ns, log as u64))
    }

    fn write(&mut self, log: i32, part: &mut Part, at: usize) -> Result<(), MakeError> {
        let Part { rows, origins, text } = part;
        let Some(row) = rows.get(at) else { return Ok(()) };
        let Some(origin) = origins.get_mut(row.origin as usize) else { return Ok(()) };
        let strings = &mut *self.strings;
        let [channel, provider, computer] = *origin
            .known
            .get_or_insert_with(|| [0, 1, 2].map(|n| strings.intern(between(text, &origin.ends, n))));
        let part = |n: usize| between(text, &row.ends, n);
        let fields = between(text, &[row.ends[3], row.fields_end], 0);
        self.builder.push(LogRecordRow {
            ts_ns: row.utc_ns.saturating_sub(self.zero),
            utc_ns: row.utc_ns,
            log,
            record_id: row.record_id,
            channel,
            provider,
            event_id: i32::from(row.event_id),
            qualifiers: row.qualifiers.map(i32::from),
            version: i32::from(row.version),
            level: i32::from(row.level),
            task: i32::from(row.task),
            opcode: i32::from(row.opcode),
            keywords: row.keywords,
            computer,
            user_sid: some(strings, part(0)),
            pid: row.process.map(|n| n as i32),
            tid: row.thread.map(|n| n as i32),
            activity_id: some(strings, part(1)),
            related_activity_id: some(strings, part(2)),
            bytes: i64::from(row.bytes),
            fields: Some(fields).filter(|fields| !fields.is_empty()).map(Box::from),
        });
        Ok(())
    }

    fn done(&mut self, part: Part) {
        self.spare.give(part);
    }
}

/// The n-th of texts that stand one behind the other.
fn between<'t>(text: &'t str, ends: &[u32], n: usize) -> &'t str {
    let end = |n: usize| ends.get(n).copied().unwrap_or(0) as usize;
    text.get(end(n)..end(n.saturating_add(1))).unwrap_or("")
}

/// Origins that are found without comparing them.
const RECENT: usize = 256;

struct RowReader<'f> {
    picker: Picker<'f>,
    fields: Fields,
    named: Named,
    part: Part,
    /// The texts of the part, in UTF-8.
    text: Vec<u8>,
    /// What stands for channel, provider and computer of records, and the place of their origin in the part.
    recent: [(u64, u32); RECENT],
    spare: &'f Spare,
}

impl RowReader<'_> {
    /// Place of the origin of a record, which is added unless the record before has the same.
    fn origin(&mut self, system: &System<'_>) -> u32 {
        let ends = push_texts(&mut self.text, [system.channel, system.provider, system.computer]);
        let bytes = |ends: &[u32; 4], n: usize| {
            let (from, to) = (ends.get(n).copied(), ends.get(n.saturating_add(1)).copied());
            from.zip(to).and_then(|(from, to)| self.text.get(from as usize..to as usize))
        };
        let origins = &mut self.part.origins;
        if let Some(last) = origins.last()
            && (0..3).all(|n| bytes(&last.ends, n) == bytes(&ends, n))
        {
            self.text.truncate(ends[0] as usize);
        } else {
            origins.push(Origin { ends, known: None });
        }
        origins.len().saturating_sub(1) as u32
    }
}

/// Appends texts; gives where the first begins and where each ends.
fn push_texts(text: &mut Vec<u8>, values: [Value<'_>; 3]) -> [u32; 4] {
    let mut end = |value: Value<'_>| {
        value.push_text(text);
        text.len() as u32
    };
    let [first, second, third] = values;
    [end(Value::Null), end(first), end(second), end(third)]
}

impl Reader for RowReader<'_> {
    type Output = Part;

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
        let identity = decoder.identity(&event).unwrap_or(0);
        let at = identity as usize % RECENT;
        let known = self.recent.get(at).filter(|(known, _)| *known == identity && identity != 0);
        let (origin, system) = match known {
            Some((_, origin)) => (*origin, decoder.numbers(&event)),
            None => {
                let system = decoder.system(&event);
                let origin = self.origin(&system);
                if let Some(known) = self.recent.get_mut(at) {
                    *known = (identity, origin);
                }
                (origin, system)
            }
        };
        let text = &mut self.text;
        let ends = push_texts(text, [system.user, system.activity, system.related_activity]);
        let mut row = Row {
            utc_ns: time::utc_ns(time_of(&system, record)),
            record_id: system.record_id.unwrap_or(record.id) as i64,
            keywords: system.keywords as i64,
            event_id: system.event_id,
            task: system.task,
            version: system.version,
            level: system.level,
            opcode: system.opcode,
            qualifiers: system.qualifiers,
            process: system.process,
            thread: system.thread,
            bytes: record.size as u32,
            origin,
            ends,
            fields_end: 0,
        };
        // A record that is broken keeps the fields before the damage.
        let result = match self.fields {
            Fields::None => Ok(()),
            Fields::Named(_) => json::push_wanted::<false>(decoder, &event, &mut self.named, text),
            Fields::All => json::push_fields::<false>(decoder, &event, text),
        };
        row.fields_end = text.len() as u32;
        self.part.rows.push(row);
        result
    }

    fn finish(&mut self) -> Part {
        self.recent = [(0, 0); RECENT];
        let mut next = self.spare.take();
        let text = std::mem::replace(&mut self.text, std::mem::take(&mut next.text).into_bytes());
        let part = std::mem::replace(&mut self.part, next);
        // Nothing but UTF-8 was appended; it is checked once for all rows.
        Part { text: String::from_utf8(text).unwrap_or_default(), ..part }
    }
}
