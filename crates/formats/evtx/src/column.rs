//! A column of fields of one kind of event.

use crate::abi::value as ty;
use crate::binxml::text::push_utf16_bytes;
use crate::binxml::{Name, Value, time};
use crate::bytes::same;
use etwhy_base::Bytes as _;
use std::sync::Arc;

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub(crate) bytes: Vec<u8>,
    /// What its cells are.
    pub kind: ColumnKind,
    /// How its integers are written.
    form: Form,
    /// Cells that are null; for all rows when the batch is handed over, until then up to the last null.
    pub nulls: Vec<bool>,
    /// The field's name; `None` for the n-th of those without.
    pub(crate) name: Option<Arc<str>>,
    /// Name as it is shown.
    pub shown: String,
    scratch: String,
    /// SIDs and GUIDs that came before, with their texts, by some of their bits.
    known: Vec<IdText>,
}

/// A SID or GUID and its text, if both are as short as nearly all are.
#[derive(Clone, Debug)]
struct IdText {
    key: [u8; 32],
    key_len: u8,
    text: [u8; 64],
    text_len: u8,
}

impl IdText {
    const NONE: IdText = IdText { key: [0; 32], key_len: u8::MAX, text: [0; 64], text_len: 0 };

    fn of(key: &[u8], text: &str) -> Option<IdText> {
        let mut known = IdText::NONE;
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

/// Rows and bytes of texts that a column has room for at first: most kinds have few rows, most columns are of a kind with many.
const FIRST_ROWS: usize = 32;
const FIRST_TEXT: usize = 128;

impl Column {
    pub(crate) fn new(name: Name<'_>, rows: usize) -> Column {
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
    pub(crate) fn push(&mut self, value: &Value<'_>) {
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
                Value::Guid(guid) => self.push_known(value, &guid.0),
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
        self.known.resize(KNOWN, IdText::NONE);
        if let (Some(place), Some(known)) = (self.known.get_mut(at), IdText::of(bytes, &self.scratch)) {
            *place = known;
        }
    }

    /// Appends a value of this type: the first `size` bytes of those that stand here.
    #[inline(always)]
    pub(crate) fn push_raw(&mut self, kind: u8, size: usize, tail: &[u8]) {
        if kind == ty::STRING && self.kind == ColumnKind::Text {
            push_utf16_bytes::<false>(&mut self.bytes, tail, size);
            self.numbers.push(self.bytes.len() as i64);
        } else if self.kind == ColumnKind::Int
            && let Some(number) = integer(kind, size, tail)
        {
            self.numbers.push(number);
        } else {
            self.push(&Value::parse(kind, tail.get(..size).unwrap_or(&[])));
        }
    }

    /// The same, where it is not worth its code.
    #[inline(never)]
    pub(crate) fn push_scattered(&mut self, kind: u8, size: usize, tail: &[u8]) {
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
    pub(crate) fn seal(&mut self) {
        self.nulls.resize(self.numbers.len(), false);
    }

    pub(crate) fn cells_alone(&self) -> Column {
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

    pub(crate) fn clear(&mut self) {
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

/// The integers that most fields are, as [`Value::parse`] reads them.
#[inline]
fn integer(kind: u8, size: usize, bytes: &[u8]) -> Option<i64> {
    Some(match (kind, size) {
        (ty::UINT32 | ty::HEX_INT32, 4..) => i64::from(u32::from_le_bytes(bytes.array(0)?)),
        (ty::UINT64 | ty::HEX_INT64, 8..) => u64::from_le_bytes(bytes.array(0)?) as i64,
        (ty::UINT16, 2..) => i64::from(u16::from_le_bytes(bytes.array(0)?)),
        (ty::UINT8, 1..) => i64::from(*bytes.first()?),
        _ => return None,
    })
}
