//! The second tier: typed columns for each kind of event.
//!
//! Fields keep the type that they have in the log: numbers, booleans and times are numbers, texts are UTF-8. Columns of a kind grow until
//! its batch is full and are handed over; then their memory is used again, so it does not depend on the size of the log.

use crate::binxml::text::push_utf16_bytes;
use crate::binxml::{Decoder, Event, Fault, Name, Value, time};
use crate::codes::Codes;
use crate::counts::time_of;
use crate::error::EvtxError;
use crate::filter::Filter;
use crate::read::{Damage, LogFile, RecordRef};
use crate::scan::{Reader, ScanOptions, scan};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Only nulls so far.
    Null,
    /// Integers (also hexadecimal ones and booleans); unsigned ones above 2^63 keep their bits.
    Int,
    /// Floats.
    Real,
    /// Times: nanoseconds since 1970 (UTC).
    Time,
    /// Text; also GUIDs, SIDs, bytes in hexadecimal and arrays.
    Text,
}

/// A column: as many cells as the batch has rows.
#[derive(Clone, Debug)]
pub struct Column {
    /// The field's name; `None` for the n-th of those without.
    name: Option<Arc<str>>,
    /// Name as it is shown.
    pub shown: String,
    /// What its cells are.
    pub kind: ColumnKind,
    /// Numbers: the value, for [`ColumnKind::Real`] its bits. For texts where each ends in `text`.
    pub numbers: Vec<i64>,
    /// Texts, one behind the other; there when the batch is handed over.
    pub text: String,
    /// The same while the batch grows: what is appended is UTF-8, which is checked once for all of it.
    bytes: Vec<u8>,
    scratch: String,
    /// Cells that are null.
    pub nulls: Vec<bool>,
    /// The SID that came last, and its text.
    sid: (Vec<u8>, String),
}

/// Cells of a batch before it is handed over.
const BATCH_ROWS: usize = 4096;
/// Texts of a batch before it is handed over.
const BATCH_TEXT: usize = 1 << 20;
/// Columns of a kind; fields behind are counted in `dropped`.
const MOST_COLUMNS: usize = 2048;

impl Column {
    fn new(name: Name<'_>, rows: usize) -> Column {
        let mut shown = String::new();
        name.push(&mut shown);
        let name = match name {
            Name::Named(name) => Some(Arc::clone(name)),
            Name::Nth(_) => None,
        };
        Column {
            name,
            shown,
            kind: ColumnKind::Null,
            numbers: vec![0; rows],
            text: String::new(),
            bytes: Vec::new(),
            scratch: String::new(),
            nulls: vec![true; rows],
            sid: Default::default(),
        }
    }

    /// Makes the cells so far texts.
    #[cold]
    fn become_text(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        for (n, null) in numbers.into_iter().zip(&self.nulls) {
            if !null {
                self.scratch.clear();
                match self.kind {
                    ColumnKind::Real => Value::Real64(f64::from_bits(n as u64)).push_text(&mut self.scratch),
                    ColumnKind::Time => time::push_utc_ns(&mut self.scratch, n),
                    _ => Value::Int(n).push_text(&mut self.scratch),
                }
                self.bytes.extend_from_slice(self.scratch.as_bytes());
            }
            self.numbers.push(self.bytes.len() as i64);
        }
        self.kind = ColumnKind::Text;
    }

    #[inline]
    fn push(&mut self, value: &Value<'_>) {
        let (kind, number) = match *value {
            Value::Null => {
                let last = if self.kind == ColumnKind::Text { self.bytes.len() as i64 } else { 0 };
                self.numbers.push(last);
                self.nulls.push(true);
                return;
            }
            Value::Int(n) => (ColumnKind::Int, n),
            Value::UInt(n) | Value::Hex(n) => (ColumnKind::Int, n as i64),
            Value::Bool(b) => (ColumnKind::Int, i64::from(b)),
            Value::Real32(x) => (ColumnKind::Real, f64::from(x).to_bits() as i64),
            Value::Real64(x) => (ColumnKind::Real, x.to_bits() as i64),
            Value::FileTime(ticks) => (ColumnKind::Time, time::utc_ns(ticks)),
            _ => (ColumnKind::Text, 0),
        };
        if kind != self.kind {
            match self.kind {
                ColumnKind::Null if kind != ColumnKind::Text => self.kind = kind,
                ColumnKind::Text => {}
                _ => self.become_text(),
            }
        }
        if self.kind == ColumnKind::Text {
            match *value {
                Value::Sid(bytes) => {
                    if bytes != self.sid.0 {
                        self.sid.0.clear();
                        self.sid.0.extend_from_slice(bytes);
                        self.sid.1.clear();
                        value.push_text(&mut self.sid.1);
                    }
                    self.bytes.extend_from_slice(self.sid.1.as_bytes());
                }
                Value::Utf16(utf16) => push_utf16_bytes(&mut self.bytes, utf16),
                _ => {
                    self.scratch.clear();
                    value.push_text(&mut self.scratch);
                    self.bytes.extend_from_slice(self.scratch.as_bytes());
                }
            }
            self.numbers.push(self.bytes.len() as i64);
        } else {
            self.numbers.push(number);
        }
        self.nulls.push(false);
    }

    /// The text of a cell of a column of texts.
    pub fn text_at(&self, row: usize) -> Option<&str> {
        if self.nulls.get(row).copied().unwrap_or(true) {
            return None;
        }
        let from = row.checked_sub(1).and_then(|n| self.numbers.get(n)).copied().unwrap_or(0);
        self.text.get(from as usize..*self.numbers.get(row)? as usize)
    }

    /// Makes `text` of what was appended.
    fn seal(&mut self) {
        self.text = match String::from_utf8(std::mem::take(&mut self.bytes)) {
            Ok(text) => text,
            // Nothing but UTF-8 is appended.
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.nulls.clear();
        self.bytes = std::mem::take(&mut self.text).into_bytes();
        self.bytes.clear();
    }
}

/// System values of the rows of a batch. Texts are numbers of the `Codes` that come with the batch.
#[derive(Clone, Debug, Default)]
pub struct SystemColumns {
    /// Nanoseconds since 1970 (UTC).
    pub utc_ns: Vec<i64>,
    /// `EventRecordID`.
    pub record_id: Vec<u64>,
    /// Level.
    pub level: Vec<u8>,
    /// Task.
    pub task: Vec<u16>,
    /// Opcode.
    pub opcode: Vec<u8>,
    /// Version.
    pub version: Vec<u8>,
    /// Keywords.
    pub keywords: Vec<u64>,
    /// Process, 0 if there is none.
    pub process: Vec<u32>,
    /// Thread, 0 if there is none.
    pub thread: Vec<u32>,
    /// Channel.
    pub channel: Vec<u32>,
    /// Computer.
    pub computer: Vec<u32>,
    /// User.
    pub user: Vec<u32>,
    /// Activity as its GUID is stored, zeros if there is none.
    pub activity: Vec<[u8; 16]>,
    /// Bytes of the record.
    pub bytes: Vec<u32>,
}

impl SystemColumns {
    fn clear(&mut self) {
        self.utc_ns.clear();
        self.record_id.clear();
        self.level.clear();
        self.task.clear();
        self.opcode.clear();
        self.version.clear();
        self.keywords.clear();
        self.process.clear();
        self.thread.clear();
        self.channel.clear();
        self.computer.clear();
        self.user.clear();
        self.activity.clear();
        self.bytes.clear();
    }
}

/// Rows of one kind of event.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Provider.
    pub provider: String,
    /// Event id.
    pub event_id: u16,
    /// Qualifiers.
    pub qualifiers: Option<u16>,
    /// System values.
    pub system: SystemColumns,
    /// Fields, each as long as `system`.
    pub columns: Vec<Column>,
    /// Fields that were left out because there were too many.
    pub dropped: u64,
}

impl Batch {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.system.utc_ns.len()
    }

    #[inline]
    fn field(&mut self, n: usize, name: Name<'_>, value: &Value<'_>) {
        let rows = self.rows();
        // Fields of a kind come in the same order, so the n-th field nearly always is the n-th column.
        if let Some(column) = self.columns.get_mut(n)
            && column.nulls.len() + 1 == rows
        {
            let same = match (&column.name, name) {
                (Some(own), Name::Named(name)) => Arc::ptr_eq(own, name) || **own == **name,
                (None, Name::Nth(_)) => n < 9 && column.shown.as_bytes().get(4) == Some(&(b'1' + n as u8)),
                _ => false,
            };
            if same {
                column.push(value);
                return;
            }
        }
        self.other_field(name, value);
    }

    #[cold]
    fn other_field(&mut self, name: Name<'_>, value: &Value<'_>) {
        let rows = self.rows();
        let mut shown = String::new();
        name.push(&mut shown);
        let at = match self.columns.iter().position(|c| c.shown == shown) {
            Some(at) => at,
            None if self.columns.len() < MOST_COLUMNS => {
                self.columns.push(Column::new(name, rows - 1));
                self.columns.len() - 1
            }
            None => {
                self.dropped += 1;
                return;
            }
        };
        if let Some(column) = self.columns.get_mut(at) {
            // A field that comes twice in a record counts once.
            if column.nulls.len() + 1 == rows {
                column.push(value);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// Gives all columns the last row, those without a value a null.
    #[inline]
    fn end_row(&mut self) {
        let rows = self.rows();
        for column in &mut self.columns {
            if column.nulls.len() < rows {
                column.push(&Value::Null);
            }
        }
    }

    fn text_bytes(&self) -> usize {
        self.columns.iter().map(|c| c.bytes.len()).sum()
    }
}

/// Takes batches. `texts` names channels, computers, users and activities.
pub type Take<'t> = dyn Fn(&Batch, &Codes) + Sync + 't;

/// Reads a log into batches of typed columns. `wanted` chooses kinds by provider and event id, `filter` records; `take` is called by all threads.
///
/// # Errors
/// The system's.
pub fn columns(
    log: &LogFile,
    options: &ScanOptions,
    wanted: &(dyn Fn(&Value<'_>, u16) -> bool + Sync),
    filter: &Filter,
    take: &Take<'_>,
) -> Result<Damage, EvtxError> {
    let make = || Columns {
        wanted,
        filter,
        take,
        texts: Codes::default(),
        providers: Codes::default(),
        index: HashMap::default(),
        batches: Vec::new(),
    };
    scan(log, options, make, |()| true)
}

struct Columns<'t> {
    wanted: &'t (dyn Fn(&Value<'_>, u16) -> bool + Sync),
    filter: &'t Filter,
    take: &'t Take<'t>,
    texts: Codes,
    providers: Codes,
    /// Batches by provider, event id, qualifiers and template.
    index: HashMap<(u32, u16, Option<u16>, usize), usize, RandomState>,
    batches: Vec<Batch>,
}

impl Columns<'_> {
    fn hand_over(batch: &mut Batch, take: &Take<'_>, texts: &Codes) {
        if batch.rows() > 0 {
            batch.columns.iter_mut().for_each(Column::seal);
            take(batch, texts);
            batch.system.clear();
            batch.columns.iter_mut().for_each(Column::clear);
        }
    }
}

impl Reader for Columns<'_> {
    type Output = ();

    #[inline]
    fn record(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: Result<Event<'_>, Fault>,
    ) -> Result<(), Fault> {
        let Ok(event) = event else { return Ok(()) };
        if !self.filter.is_empty() && !self.filter.takes(decoder, &event, record)? {
            return Ok(());
        }
        let at = {
            let system = decoder.system(&event);
            if !(self.wanted)(&system.provider, system.event_id) {
                return Ok(());
            }
            let provider = self.providers.of(&system.provider);
            let program = decoder.program_of(&event).map_or(0, |p| p.addr());
            let key = (provider, system.event_id, system.qualifiers, program);
            let batches = &mut self.batches;
            let providers = &self.providers;
            let at = *self.index.entry(key).or_insert_with(|| {
                batches.push(Batch {
                    provider: providers.text(provider).to_owned(),
                    event_id: system.event_id,
                    qualifiers: system.qualifiers,
                    ..Batch::default()
                });
                batches.len() - 1
            });
            let Some(batch) = self.batches.get_mut(at) else { return Ok(()) };
            let to = &mut batch.system;
            to.utc_ns.push(time::utc_ns(time_of(&system, record)));
            to.record_id.push(system.record_id.unwrap_or(record.id));
            to.level.push(system.level);
            to.task.push(system.task);
            to.opcode.push(system.opcode);
            to.version.push(system.version);
            to.keywords.push(system.keywords);
            to.process.push(system.process.unwrap_or(0));
            to.thread.push(system.thread.unwrap_or(0));
            to.channel.push(self.texts.of(&system.channel));
            to.computer.push(self.texts.of(&system.computer));
            to.user.push(self.texts.of(&system.user));
            to.activity.push(match system.activity {
                Value::Guid(guid) => guid,
                _ => [0; 16],
            });
            to.bytes.push(record.size as u32);
            at
        };
        let Some(batch) = self.batches.get_mut(at) else { return Ok(()) };
        let mut n = 0;
        let result = decoder.fields(&event, &mut |name, value| {
            batch.field(n, name, &value);
            n += 1;
        });
        batch.end_row();
        if batch.rows() >= BATCH_ROWS || batch.text_bytes() >= BATCH_TEXT {
            Self::hand_over(batch, self.take, &self.texts);
        }
        result
    }

    fn finish(&mut self) {
        for batch in &mut self.batches {
            Self::hand_over(batch, self.take, &self.texts);
        }
        // Columns of fields that do not come any more are not kept for ever.
        if self.batches.len() > 512 {
            self.batches.clear();
            self.index.clear();
        }
    }
}
