//! The second tier: typed columns for each kind of event.
//!
//! Fields keep the type that they have in the log: numbers, booleans and times are numbers, texts are UTF-8. Columns of a kind grow until
//! its batch is full and are handed over; then their memory is used again, so it does not depend on the size of the log.

use crate::abi::value as ty;
use crate::binxml::text::push_utf16_bytes;
use crate::binxml::{Cell, Decoder, Event, Fault, InOrder, Name, System, Value, time};
use crate::bytes::{array, same};
use crate::codes::Codes;
use crate::counts::time_of;
use crate::error::EvtxError;
use crate::filter::Filter;
use crate::read::{Damage, LogFile, RecordRef};
use crate::scan::{Reader, ScanOptions, scan};
use crate::system_columns::Row;
pub use crate::system_columns::SystemColumns;
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

/// How integers are written.
#[derive(Clone, Copy, Debug)]
enum Form {
    Signed,
    Unsigned,
    Hex,
    Bool,
}

impl Form {
    const fn of(value: &Value<'_>) -> Form {
        match value {
            Value::UInt(_) => Form::Unsigned,
            Value::Hex(_) => Form::Hex,
            Value::Bool(_) => Form::Bool,
            _ => Form::Signed,
        }
    }
}

/// A column: as many cells as the batch has rows.
///
/// What each cell needs stands in the first 64 bytes: a row visits all columns of its kind, and kinds take turns.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Column {
    /// Numbers: the value, for [`ColumnKind::Real`] its bits. For texts where each ends in `bytes`.
    pub numbers: Vec<i64>,
    /// Texts in UTF-8, one behind the other. Safe code must check that they are before it calls them `str`, which takes an eighth
    /// of the time that reading them does, so it is left to those who look at cells ([`Column::text_at`]).
    bytes: Vec<u8>,
    /// What its cells are.
    pub kind: ColumnKind,
    /// How its integers are written.
    form: Form,
    /// Cells that are null; for all rows when the batch is handed over, until then up to the last null.
    pub nulls: Vec<bool>,
    /// The field's name; `None` for the n-th of those without.
    name: Option<Arc<str>>,
    /// Name as it is shown.
    pub shown: String,
    scratch: String,
    /// SIDs and GUIDs that came before, with their texts, by some of their bits.
    known: Vec<Known>,
}

/// A SID or GUID and its text, if both are as short as nearly all are.
#[derive(Clone, Debug)]
struct Known {
    key: [u8; 32],
    key_len: u8,
    text: [u8; 64],
    text_len: u8,
}

impl Known {
    const NONE: Known = Known { key: [0; 32], key_len: u8::MAX, text: [0; 64], text_len: 0 };

    fn of(key: &[u8], text: &str) -> Option<Known> {
        let mut known = Known::NONE;
        known.key.get_mut(..key.len())?.copy_from_slice(key);
        known.text.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (known.key_len, known.text_len) = (key.len() as u8, text.len() as u8);
        Some(known)
    }

    #[inline]
    fn is(&self, key: &[u8]) -> bool {
        self.key.get(..usize::from(self.key_len)).is_some_and(|own| same(own, key))
    }
}

/// SIDs and GUIDs whose texts a column keeps: by four bits.
const KNOWN: usize = 16;

/// Cells of a batch before it is handed over.
const BATCH_ROWS: usize = 128;
/// Texts of a batch before it is handed over.
const BATCH_TEXT: usize = 1 << 20;
/// Rows and bytes of texts that a column has room for at first: most kinds have few rows, most columns are of a kind with many.
const FIRST_ROWS: usize = 32;
const FIRST_TEXT: usize = 128;
/// Rows after which texts are counted; a record has at most 64 KiB.
const TEXT_EVERY: usize = 64;
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
            numbers: zeros(rows),
            bytes: Vec::with_capacity(FIRST_TEXT),
            scratch: String::new(),
            nulls: vec![true; rows],
            form: Form::Signed,
            known: Vec::new(),
        }
    }

    /// Makes the cells so far texts.
    #[cold]
    fn become_text(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        self.nulls.resize(numbers.len(), false);
        for (n, null) in numbers.into_iter().zip(&self.nulls) {
            if !null {
                let mut text = std::mem::take(&mut self.scratch);
                text.clear();
                self.push_number(n, &mut text);
                self.bytes.extend_from_slice(text.as_bytes());
                self.scratch = text;
            }
            self.numbers.push(self.bytes.len() as i64);
        }
        self.kind = ColumnKind::Text;
    }

    /// True for integers that Windows writes in hexadecimal.
    pub fn is_hex(&self) -> bool {
        self.kind == ColumnKind::Int && matches!(self.form, Form::Hex)
    }

    /// Appends the text that Windows gives a number of this column.
    pub fn push_number(&self, n: i64, out: &mut String) {
        match (self.kind, self.form) {
            (ColumnKind::Real, _) => Value::Real64(f64::from_bits(n as u64)).push_text(out),
            (ColumnKind::Time, _) => time::push_utc_ns(out, n),
            (_, Form::Hex) => Value::Hex(n as u64).push_text(out),
            (_, Form::Unsigned) => Value::UInt(n as u64).push_text(out),
            (_, Form::Bool) if n == 0 || n == 1 => Value::Bool(n == 1).push_text(out),
            (_, Form::Bool | Form::Signed) => Value::Int(n).push_text(out),
        }
    }

    #[inline]
    fn push(&mut self, value: &Value<'_>) {
        let (kind, number) = match *value {
            Value::Null => {
                let last = if self.kind == ColumnKind::Text { self.bytes.len() as i64 } else { 0 };
                self.nulls.resize(self.numbers.len(), false);
                self.nulls.push(true);
                self.numbers.push(last);
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
                ColumnKind::Null if kind != ColumnKind::Text => {
                    self.kind = kind;
                    self.form = Form::of(value);
                }
                ColumnKind::Text => {}
                _ => self.become_text(),
            }
        }
        if self.kind == ColumnKind::Text {
            match *value {
                Value::Sid(bytes) => self.push_known(value, bytes),
                Value::Guid(guid) => self.push_known(value, &guid),
                Value::Utf16(utf16) => {
                    push_utf16_bytes::<false>(&mut self.bytes, utf16, utf16.len());
                }
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
    }

    /// Appends the text of a SID or GUID that has these bytes.
    fn push_known(&mut self, value: &Value<'_>, bytes: &[u8]) {
        let last = bytes.last_chunk::<4>().map_or(0, |last| u32::from_le_bytes(*last));
        let at = last.wrapping_mul(0x9E37_79B1) >> 28;
        match self.known.get(at as usize).filter(|known| known.is(bytes)) {
            Some(known) => {
                let end = self.bytes.len() + usize::from(known.text_len);
                // All that it may have is copied, for which no call is needed.
                self.bytes.extend_from_slice(&known.text);
                self.bytes.truncate(end);
            }
            None => self.push_unknown(value, bytes, at as usize),
        }
    }

    #[cold]
    fn push_unknown(&mut self, value: &Value<'_>, bytes: &[u8], at: usize) {
        self.scratch.clear();
        value.push_text(&mut self.scratch);
        self.bytes.extend_from_slice(self.scratch.as_bytes());
        self.known.resize(KNOWN, Known::NONE);
        if let (Some(place), Some(known)) = (self.known.get_mut(at), Known::of(bytes, &self.scratch)) {
            *place = known;
        }
    }

    /// Appends a value of this type: the first `size` bytes of those that stand here.
    #[inline(always)]
    fn push_raw(&mut self, kind: u8, size: usize, tail: &[u8]) {
        if kind == ty::STRING && self.kind == ColumnKind::Text {
            push_utf16_bytes::<false>(&mut self.bytes, tail, size);
            self.numbers.push(self.bytes.len() as i64);
        } else if self.kind == ColumnKind::Int
            && let Some(number) = integer(kind, size, tail)
        {
            self.numbers.push(number);
        } else {
            self.push(&Value::of(kind, tail.get(..size).unwrap_or(&[])));
        }
    }

    /// The same, where it is not worth its code.
    #[inline(never)]
    fn push_scattered(&mut self, kind: u8, size: usize, tail: &[u8]) {
        self.push_raw(kind, size, tail);
    }

    /// The text of a cell of a column of texts.
    pub fn text_at(&self, row: usize) -> Option<&str> {
        if self.nulls.get(row).copied().unwrap_or(true) {
            return None;
        }
        let from = row.checked_sub(1).and_then(|n| self.numbers.get(n)).copied().unwrap_or(0);
        let bytes = self.bytes.get(from as usize..*self.numbers.get(row)? as usize)?;
        // Nothing but UTF-8 is appended.
        std::str::from_utf8(bytes).ok()
    }

    /// Makes all parts as long as there are rows.
    fn seal(&mut self) {
        self.nulls.resize(self.numbers.len(), false);
    }

    fn cells_alone(&self) -> Column {
        Column {
            numbers: self.numbers.clone(),
            bytes: self.bytes.clone(),
            kind: self.kind,
            form: self.form,
            nulls: self.nulls.clone(),
            name: self.name.clone(),
            shown: self.shown.clone(),
            scratch: String::new(),
            known: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.nulls.clear();
        self.bytes.clear();
    }
}

/// Cells of rows that came before a column.
fn zeros(rows: usize) -> Vec<i64> {
    let mut all = Vec::with_capacity(rows.max(FIRST_ROWS));
    all.resize(rows, 0);
    all
}

/// The integers that most fields are, as [`Value::of`] reads them.
#[inline]
fn integer(kind: u8, size: usize, bytes: &[u8]) -> Option<i64> {
    Some(match (kind, size) {
        (ty::UINT32 | ty::HEX_INT32, 4..) => i64::from(u32::from_le_bytes(array(bytes, 0)?)),
        (ty::UINT64 | ty::HEX_INT64, 8..) => u64::from_le_bytes(array(bytes, 0)?) as i64,
        (ty::UINT16, 2..) => i64::from(u16::from_le_bytes(array(bytes, 0)?)),
        (ty::UINT8, 1..) => i64::from(*bytes.first()?),
        _ => return None,
    })
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
    /// Columns by their names, as far as they came one by one.
    index: HashMap<String, usize, RandomState>,
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
            && column.numbers.len() + 1 == rows
        {
            let same = match (&column.name, name) {
                (Some(own), Name::Named(name)) => Arc::ptr_eq(own, name) || **own == **name,
                (None, Name::Nth(nth)) => {
                    nth <= 9 && column.shown.as_bytes().get(4..) == Some(&[b'0' + nth as u8])
                }
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
        let at = match self.index.get(&shown) {
            Some(at) => *at,
            None if self.columns.len() < MOST_COLUMNS => {
                self.columns.push(Column::new(name, rows - 1));
                self.index.insert(shown, self.columns.len() - 1);
                self.columns.len() - 1
            }
            None => {
                self.dropped += 1;
                return;
            }
        };
        if let Some(column) = self.columns.get_mut(at) {
            // A field that comes twice in a record counts once.
            if column.numbers.len() + 1 == rows {
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
            if column.numbers.len() < rows {
                column.push(&Value::Null);
            }
        }
    }

    /// Appends fields that are known to be the columns of the batch, in order.
    #[inline]
    fn cells(&mut self, cells: &InOrder<'_>) {
        match cells.straight() {
            Some(fields) => {
                for (column, (kind, size, tail)) in self.columns.iter_mut().zip(fields) {
                    column.push_raw(kind, size, tail);
                }
            }
            None => {
                for (column, (kind, size, tail)) in self.columns.iter_mut().zip(cells.scattered()) {
                    column.push_scattered(kind, size, tail);
                }
            }
        }
    }

    /// The same rows, without what is only remembered to read more of them.
    pub fn rows_alone(&self) -> Batch {
        Batch {
            provider: self.provider.clone(),
            event_id: self.event_id,
            qualifiers: self.qualifiers,
            system: self.system.clone(),
            columns: self.columns.iter().map(Column::cells_alone).collect(),
            dropped: self.dropped,
            index: HashMap::default(),
        }
    }

    /// True if it is to be handed over.
    #[inline]
    fn is_full(&self) -> bool {
        let rows = self.rows();
        rows >= BATCH_ROWS || rows.is_multiple_of(TEXT_EVERY) && self.text_bytes() >= BATCH_TEXT
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
        origins: [Origin::default(); RECENT],
        recent: [(NO_KIND, 0); RECENT],
        index: HashMap::default(),
        batches: Vec::new(),
    };
    scan(log, options, make, |()| true)
}

/// Codes of provider, channel and computer that come together.
#[derive(Clone, Copy, Default)]
struct Origin {
    /// What stands for them; 0 if nothing does.
    identity: u64,
    provider: u32,
    channel: u32,
    computer: u32,
}

/// What the rows of a batch have in common: layout of the fields, provider, event id, and qualifiers with a bit if there are any.
type Kind = (u64, u32, u16, u32);

/// Origins and kinds that are found without hashing.
const RECENT: usize = 256;
/// The layout of records whose fields are read one by one.
const LONG: u64 = u64::MAX;
/// No record is of this kind.
const NO_KIND: Kind = (LONG, u32::MAX, u16::MAX, u32::MAX);

struct Columns<'t> {
    wanted: &'t (dyn Fn(&Value<'_>, u16) -> bool + Sync),
    filter: &'t Filter,
    take: &'t Take<'t>,
    texts: Codes,
    providers: Codes,
    origins: [Origin; RECENT],
    recent: [(Kind, usize); RECENT],
    index: HashMap<Kind, usize, RandomState>,
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

    #[inline]
    fn origin(&mut self, decoder: &Decoder, event: &Event<'_>, identity: u64) -> Origin {
        let at = identity as usize % RECENT;
        let known = self.origins[at];
        if known.identity == identity {
            return known;
        }
        let origin = self.origin_of(&decoder.system(event), identity);
        self.origins[at] = origin;
        origin
    }

    fn origin_of(&mut self, system: &System<'_>, identity: u64) -> Origin {
        Origin {
            identity,
            provider: self.providers.of(&system.provider),
            channel: self.texts.of(&system.channel),
            computer: self.texts.of(&system.computer),
        }
    }

    /// The batch of a kind.
    #[inline]
    fn batch(&mut self, kind: Kind, cells: Option<&InOrder<'_>>) -> usize {
        let (layout, provider, id, _) = kind;
        let near = ((layout >> 32 ^ layout.wrapping_mul(31)) as usize)
            .wrapping_add(usize::from(id).wrapping_add(provider as usize))
            % RECENT;
        let (known, at) = self.recent[near];
        if known == kind {
            return at;
        }
        let at = *self.index.entry(kind).or_insert_with(|| {
            let names = cells.map_or(&[][..], InOrder::fields);
            let mut unnamed = 0;
            let column = |cell: &Cell| {
                unnamed += 1;
                Column::new(cell.name.as_ref().map_or(Name::Nth(unnamed), Name::Named), 0)
            };
            self.batches.push(Batch {
                provider: self.providers.text(provider).to_owned(),
                event_id: id,
                qualifiers: (kind.3 >> 16 != 0).then_some(kind.3 as u16),
                columns: names.iter().map(column).collect(),
                ..Batch::default()
            });
            self.batches.len() - 1
        });
        self.recent[near] = (kind, at);
        at
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
        let (origin, system) = match decoder.identity(&event) {
            Some(identity) => (self.origin(decoder, &event, identity), decoder.numbers(&event)),
            None => {
                let system = decoder.system(&event);
                (self.origin_of(&system, 0), system)
            }
        };
        if !(self.wanted)(&Value::Utf8(self.providers.text(origin.provider)), system.event_id) {
            return Ok(());
        }
        let row = Row {
            utc_ns: time::utc_ns(time_of(&system, record)),
            record_id: system.record_id.unwrap_or(record.id),
            level: system.level,
            task: system.task,
            opcode: system.opcode,
            version: system.version,
            keywords: system.keywords,
            process: system.process.unwrap_or(0),
            thread: system.thread.unwrap_or(0),
            channel: origin.channel,
            computer: origin.computer,
            user: self.texts.of(&system.user),
            activity: match system.activity {
                Value::Guid(guid) => guid,
                _ => [0; 16],
            },
            bytes: record.size as u32,
        };
        let qualifiers = system.qualifiers.map_or(0, |q| 1 << 16 | u32::from(q));
        let id = system.event_id;
        if let Some(cells) = decoder.cells_in_order(&event) {
            let at = self.batch((cells.layout(), origin.provider, id, qualifiers), Some(&cells));
            if let Some(batch) = self.batches.get_mut(at) {
                batch.system.push(&row);
                batch.cells(&cells);
                if batch.is_full() {
                    Self::hand_over(batch, self.take, &self.texts);
                }
            }
            return Ok(());
        }
        let at = self.batch((LONG, origin.provider, id, qualifiers), None);
        let Some(batch) = self.batches.get_mut(at) else { return Ok(()) };
        batch.system.push(&row);
        let mut n = 0;
        let result = decoder.fields(&event, &mut |name, value| {
            batch.field(n, name, &value);
            n += 1;
        });
        batch.end_row();
        if batch.is_full() {
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
            self.recent = [(NO_KIND, 0); RECENT];
        }
    }
}
