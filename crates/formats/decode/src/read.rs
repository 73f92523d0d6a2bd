//! The one reader: payload bytes and a schema in, values out.
//!
//! Reading is lenient, because payloads come from other people's machines: strings without a nul run to
//! the end, a payload that ends early gives what could be read, and what is left over is reported. The
//! work is bounded by the payload's size and by [`MAX_VALUES`], never by a count in the data.

use crate::kernel::wbem_sid_len;
use crate::scalar::{Sink, character, fixed, fixed_len, give_meaning, is_short_bool, number, out};
use crate::schema::{Count, EventSchema, Field, InType, Length};
use crate::text::{Text, nul8, nul16};
use crate::value::{Numbers, Value};
use etwhy_base::Bytes;

/// Deepest nesting of structs that is read.
pub const MAX_DEPTH: usize = 16;
/// Most values that are read out of one payload. A payload has at most 64 KiB, so honest ones stay
/// below; structs of empty members could otherwise multiply.
pub const MAX_VALUES: usize = 200_000;

/// A decoded payload.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'a> {
    /// Values of the schema's fields in their order; fewer than fields when the payload ended early.
    pub values: Vec<Value<'a>>,
    /// True when the payload ended before its fields did (optional fields excepted).
    pub truncated: bool,
    /// Bytes behind the last field.
    pub rest: &'a [u8],
}

/// Reads all fields of a payload. `pointer_size` is 4 or 8, as the record says.
pub fn read<'a>(schema: &EventSchema, payload: &'a [u8], pointer_size: usize) -> Decoded<'a> {
    Reader::default().read(schema, payload, pointer_size)
}

/// Reads payload after payload into the same memory.
#[derive(Debug, Default)]
pub struct Reader {
    spare: Vec<Value<'static>>,
}

impl Reader {
    /// Reads all fields of a payload, see [`read`](fn@read).
    pub fn read<'a>(&mut self, schema: &EventSchema, payload: &'a [u8], pointer_size: usize) -> Decoded<'a> {
        let mut cursor = Cursor::new(payload, pointer_size);
        let mut values: Vec<Value<'a>> = std::mem::take(&mut self.spare);
        let complete = cursor.level(&schema.fields, &mut values, 0);
        Decoded { values, truncated: !complete, rest: payload.get(cursor.at..).unwrap_or(&[]) }
    }

    /// Takes the memory of values that are needed no more.
    #[inline]
    pub fn reuse(&mut self, decoded: Decoded<'_>) {
        let mut values = decoded.values;
        values.clear();
        // Collecting what a `Vec`'s own iterator gives keeps its allocation; the lifetime becomes another.
        self.spare = values.into_iter().map_while(|_| None).collect();
    }
}

impl<'a> Decoded<'a> {
    /// The value of the first field of that name.
    pub fn get<'s>(&'s self, schema: &EventSchema, name: &str) -> Option<&'s Value<'a>> {
        let at = schema.fields.iter().position(|field| &*field.name == name)?;
        self.values.get(at)
    }
}

/// Puts a value in its place, and gives its width.
struct Fill<'v, 'a>(&'v mut Value<'a>);

impl<'a> Sink<'a> for Fill<'_, 'a> {
    type Out = usize;
    #[inline(always)]
    fn put(self, value: Value<'a>, width: usize) -> usize {
        put(self.0, value);
        width
    }
}

/// Replaces a value that owns no memory. Looking whether it does would take longer than the rest.
#[inline(always)]
fn put<'a>(place: &mut Value<'a>, value: Value<'a>) {
    std::mem::forget(std::mem::replace(place, value));
}

/// A place in a payload.
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    /// Offset of the next byte.
    pub at: usize,
    pointer_size: usize,
    budget: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(data: &'a [u8], pointer_size: usize) -> Cursor<'a> {
        Cursor { data, at: 0, pointer_size: if pointer_size == 4 { 4 } else { 8 }, budget: MAX_VALUES }
    }

    pub fn left(&self) -> usize {
        self.data.len().saturating_sub(self.at)
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.data.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    /// All fields of one struct level, put into `values`, which is empty; false when the data ended early.
    fn level(&mut self, fields: &[Field], values: &mut Vec<Value<'a>>, depth: usize) -> bool {
        // Values are written over placeholders: pushing one by one would move each through the stack.
        values.resize_with(fields.len().min(self.left() + 1), || Value::Bool(false));
        let mut filled = 0;
        let complete = self.fill(fields, values, &mut filled, depth);
        values.truncate(filled);
        complete
    }

    fn fill(
        &mut self,
        fields: &[Field],
        values: &mut Vec<Value<'a>>,
        filled: &mut usize,
        depth: usize,
    ) -> bool {
        for field in fields {
            if let Some(place) = values.get_mut(*filled)
                && self.simple(field, place).is_some()
            {
                *filled += 1;
                continue;
            }
            if self.left() == 0 && field.optional {
                return true;
            }
            let known = values.get(..*filled).unwrap_or(&[]);
            let refers = |i: u16| known.get(usize::from(i)).and_then(Value::as_u64);
            let Some(count) = self.count(field, &refers) else { return false };
            let Some(length) = resolve_length(field, &refers) else { return false };
            if let (Some(count), Some(place)) = (count, values.get_mut(*filled))
                && let Some((numbers, complete)) = self.numbers(field, count, length)
            {
                put(place, Value::Numbers(numbers));
                *filled += 1;
                if complete {
                    continue;
                }
                return false;
            }
            let (value, complete) = self.sized(field, count, length, depth);
            if let Some(value) = value {
                match values.get_mut(*filled) {
                    Some(place) => put(place, value),
                    None => values.push(value),
                }
                *filled += 1;
            }
            if !complete {
                return false;
            }
        }
        true
    }

    /// The usual fields without detours: single numbers, and strings that end with a nul. `None`, with nothing
    /// taken, for all others and when the data ended.
    #[inline(always)]
    fn simple(&mut self, field: &Field, place: &mut Value<'a>) -> Option<()> {
        if field.count != Count::One
            || matches!(field.length, Length::Field(_))
            || field.out_type == out::STRING
            || self.budget == 0
        {
            return None;
        }
        let rest = self.data.get(self.at..)?;
        match fixed(field.in_type, rest, self.pointer_size, is_short_bool(field), Fill(place)) {
            Some(width) => {
                self.at += width;
                give_meaning(place, field.out_type);
            }
            None => put(place, Value::Str(self.nul_ended(field)?)),
        }
        self.budget -= 1;
        Some(())
    }

    #[inline(always)]
    fn nul_ended(&mut self, field: &Field) -> Option<Text<'a>> {
        match (field.in_type, field.length) {
            (InType::UnicodeString, Length::Natural) => self.up_to_nul16().map(Text::utf16),
            (InType::AnsiString, Length::Natural) => self.up_to_nul8().map(Text::ansi),
            _ => None,
        }
    }

    /// One field, be it an array or not. `refers` gives the value of an earlier field of its level.
    pub fn field(
        &mut self,
        field: &Field,
        refers: &dyn Fn(u16) -> Option<u64>,
        depth: usize,
    ) -> (Option<Value<'a>>, bool) {
        let Some(count) = self.count(field, refers) else { return (None, false) };
        let Some(length) = resolve_length(field, refers) else { return (None, false) };
        self.sized(field, count, length, depth)
    }

    /// One field whose count and length are known.
    fn sized(
        &mut self,
        field: &Field,
        count: Option<usize>,
        length: Option<usize>,
        depth: usize,
    ) -> (Option<Value<'a>>, bool) {
        match count {
            None => match self.one(field, length, depth) {
                (Some(value), complete) => (Some(value), complete),
                (None, _) => (None, false),
            },
            Some(count) => self.elements(field, count, length, depth),
        }
    }

    /// Number of elements; the inner `None` is "not an array".
    fn count(&mut self, field: &Field, refers: &dyn Fn(u16) -> Option<u64>) -> Option<Option<usize>> {
        Some(match field.count {
            Count::One => None,
            Count::Fixed(n) => Some(usize::try_from(n).ok()?),
            Count::Field(i) => Some(usize::try_from(refers(i)?).unwrap_or(usize::MAX)),
            Count::Prefixed => {
                let bytes = self.take(2)?;
                Some(usize::from(bytes.u16_at(0)?))
            }
            Count::Rest => Some(usize::MAX),
        })
    }

    fn elements(
        &mut self,
        field: &Field,
        count: usize,
        length: Option<usize>,
        depth: usize,
    ) -> (Option<Value<'a>>, bool) {
        if let Some(value) = self.characters(field, count) {
            return value;
        }
        if let Some((numbers, complete)) = self.numbers(field, count, length) {
            return (Some(Value::Numbers(numbers)), complete);
        }
        let to_the_end = field.count == Count::Rest;
        let mut values = Vec::new();
        let mut complete = true;
        for _ in 0..count {
            let start = self.at;
            if to_the_end && self.left() == 0 {
                break;
            }
            let (value, whole) = self.one(field, length, depth);
            if let Some(value) = value {
                values.push(value);
            }
            // An element that takes no bytes would be repeated for free as often as the count says.
            if !whole || self.at == start {
                complete = to_the_end || whole;
                if to_the_end && !whole {
                    self.at = start;
                }
                break;
            }
        }
        (Some(Value::Array(values)), complete)
    }

    /// An array of numbers stays where it is. `None` for all others; characters are strings.
    #[inline]
    fn numbers(&mut self, field: &Field, count: usize, length: Option<usize>) -> Option<(Numbers<'a>, bool)> {
        if char_width(field).is_some() {
            return None;
        }
        let width = self.width(field, length)?;
        let got = count.min(self.left().checked_div(width)?).min(self.budget);
        let bytes = self.take(got.checked_mul(width)?)?;
        self.budget -= got;
        let numbers = Numbers::new(bytes, field.in_type, field.out_type, u8::try_from(width).ok()?);
        Some((numbers, got == count || field.count == Count::Rest))
    }

    /// Bytes of one element, if they do not depend on the data. Sources give lengths of pointers for their own
    /// machine; the record's size counts.
    fn width(&self, field: &Field, length: Option<usize>) -> Option<usize> {
        match (field.in_type, length) {
            // A boolean is 4 bytes unless its source says 1.
            (InType::Boolean, Some(1)) => Some(1),
            (kind, _) => fixed_len(kind, self.pointer_size),
        }
    }

    /// An array of characters is a string.
    fn characters(&mut self, field: &Field, count: usize) -> Option<(Option<Value<'a>>, bool)> {
        let width = char_width(field)?;
        let wanted = count.saturating_mul(width);
        let got = wanted.min(self.left() / width * width);
        let bytes = self.take(got)?;
        let value = if width == 2 { wide_up_to_nul(bytes) } else { narrow_up_to_nul(bytes) };
        Some((Some(value), got == wanted || field.count == Count::Rest))
    }

    /// One element. `length` is the resolved length of the field, if it has one.
    fn one(&mut self, field: &Field, length: Option<usize>, depth: usize) -> (Option<Value<'a>>, bool) {
        if self.budget == 0 {
            return (None, false);
        }
        self.budget -= 1;
        if field.in_type == InType::Struct {
            if depth >= MAX_DEPTH {
                return (None, false);
            }
            let mut values = Vec::new();
            let complete = self.level(&field.members, &mut values, depth + 1);
            return (Some(Value::Struct(values)), complete);
        }
        match self.scalar(field, length) {
            Some(value) => (Some(value), true),
            None => (None, false),
        }
    }

    fn scalar(&mut self, field: &Field, length: Option<usize>) -> Option<Value<'a>> {
        let Some(width) = self.width(field, length) else { return self.variable(field, length) };
        let bytes = self.take(width)?;
        if let Some(value) = character(field, bytes) {
            return Some(value);
        }
        number(field.in_type, field.out_type, bytes, self.pointer_size, width == 1)
    }

    /// Types whose length depends on the data.
    fn variable(&mut self, field: &Field, length: Option<usize>) -> Option<Value<'a>> {
        use InType::*;
        Some(match field.in_type {
            UnicodeString => match length {
                Some(chars) => self.sized_text(chars.checked_mul(2)?, 2, field)?,
                None => Value::Str(Text::utf16(self.up_to_nul16()?)),
            },
            AnsiString => match length {
                Some(bytes) => self.sized_text(bytes, 1, field)?,
                None => Value::Str(Text::ansi(self.up_to_nul8()?)),
            },
            NonNullTerminatedString => wide_up_to_nul(self.all()),
            NonNullTerminatedAnsiString => narrow_up_to_nul(self.all()),
            CountedString => Value::Str(Text::utf16(self.counted16(false)?)),
            ReversedCountedString => Value::Str(Text::utf16(self.counted16(true)?)),
            CountedAnsiString => Value::Str(Text::ansi(self.counted16(false)?)),
            ReversedCountedAnsiString => Value::Str(Text::ansi(self.counted16(true)?)),
            CountedBinary => binary(field, self.counted16(false)?),
            HexDump => {
                let len = self.take(4)?.u32_at(0)?;
                Value::Bytes(self.take_up_to(usize::try_from(len).ok()?)?)
            }
            Binary => match length {
                Some(len) => binary(field, self.take_up_to(len)?),
                None if field.out_type == out::IPV6 => binary(field, self.take(16)?),
                None => binary(field, self.all()),
            },
            Sid => Value::Sid(self.sid()?),
            WbemSid => self.wbem_sid()?,
            _ => return None,
        })
    }

    fn all(&mut self) -> &'a [u8] {
        let bytes = self.data.get(self.at..).unwrap_or(&[]);
        self.at = self.data.len();
        bytes
    }

    /// `len` bytes, or fewer when the payload ends (but not none of several).
    fn take_up_to(&mut self, len: usize) -> Option<&'a [u8]> {
        let got = len.min(self.left());
        if got == 0 && len > 0 {
            return None;
        }
        self.take(got)
    }

    fn sized_text(&mut self, len: usize, width: usize, field: &Field) -> Option<Value<'a>> {
        let bytes = self.take_up_to(len)?;
        // A fixed-size buffer holds garbage behind its nul; a counted string may hold several parts.
        let counted = matches!(field.length, Length::Field(_));
        Some(match (width, counted) {
            (2, false) => wide_up_to_nul(bytes),
            (2, true) => {
                let units = bytes.as_chunks::<2>().0;
                let end = units.iter().rposition(|unit| *unit != [0, 0]).map_or(0, |i| i + 1);
                Value::Str(Text::utf16(bytes.get(..end * 2).unwrap_or(bytes)))
            }
            (_, false) => narrow_up_to_nul(bytes),
            (_, true) => {
                let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
                Value::Str(Text::ansi(bytes.get(..end).unwrap_or(bytes)))
            }
        })
    }

    /// UTF-16 up to a nul (which is consumed) or the end. `None` when nothing is left.
    fn up_to_nul16(&mut self) -> Option<&'a [u8]> {
        let rest = self.data.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        match nul16(rest) {
            Some(units) => {
                self.at += units * 2 + 2;
                rest.get(..units * 2)
            }
            None => Some(self.all()),
        }
    }

    fn up_to_nul8(&mut self) -> Option<&'a [u8]> {
        let rest = self.data.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        match nul8(rest) {
            Some(len) => {
                self.at += len + 1;
                rest.get(..len)
            }
            None => Some(self.all()),
        }
    }

    /// A u16 byte count and that many bytes.
    fn counted16(&mut self, big_endian: bool) -> Option<&'a [u8]> {
        let len = self.take(2)?.u16_at(0)?;
        let len = if big_endian { len.swap_bytes() } else { len };
        self.take_up_to(usize::from(len))
    }

    /// A SID: its second byte counts the sub-authorities.
    fn sid(&mut self) -> Option<&'a [u8]> {
        let subs = self.data.u8_at(self.at.checked_add(1)?)?;
        self.take(8 + 4 * usize::from(subs))
    }

    /// `TOKEN_USER` (pointer, u32 padded to pointer size) and a SID; 4 bytes of zero stand for none.
    fn wbem_sid(&mut self) -> Option<Value<'a>> {
        let token = 2 * self.pointer_size;
        let len = wbem_sid_len(self.data.get(self.at..)?, self.pointer_size)?;
        if len < token {
            self.take(len)?;
            return Some(Value::Sid(&[]));
        }
        self.take(token)?;
        self.sid().map(Value::Sid)
    }

    /// Moves behind a field without building its value; only scalars and simple arrays are cheap.
    pub fn skip(&mut self, field: &Field, refers: &dyn Fn(u16) -> Option<u64>) -> bool {
        if field.count == Count::One && field.in_type != InType::Boolean {
            if let Some(len) = fixed_len(field.in_type, self.pointer_size) {
                return self.take(len).is_some();
            }
            if field.length == Length::Natural {
                match field.in_type {
                    InType::UnicodeString => return self.up_to_nul16().is_some(),
                    InType::AnsiString => return self.up_to_nul8().is_some(),
                    _ => {}
                }
            }
        }
        self.field(field, refers, 0).1
    }
}

/// Bytes of a character, for fields of which an array is a string.
#[inline]
fn char_width(field: &Field) -> Option<usize> {
    let text = field.out_type == out::STRING;
    match field.in_type {
        InType::UnicodeChar => Some(2),
        InType::UInt16 if text => Some(2),
        InType::AnsiChar => Some(1),
        InType::UInt8 | InType::Int8 if text => Some(1),
        _ => None,
    }
}

fn resolve_length(field: &Field, refers: &dyn Fn(u16) -> Option<u64>) -> Option<Option<usize>> {
    Some(match field.length {
        Length::Natural => None,
        Length::Fixed(n) => Some(usize::try_from(n).ok()?),
        Length::Field(i) => Some(usize::try_from(refers(i)?).unwrap_or(usize::MAX)),
    })
}

fn wide_up_to_nul(bytes: &[u8]) -> Value<'_> {
    let end = nul16(bytes).map_or(bytes.len(), |units| units * 2);
    Value::Str(Text::utf16(bytes.get(..end).unwrap_or(bytes)))
}

fn narrow_up_to_nul(bytes: &[u8]) -> Value<'_> {
    let end = nul8(bytes).unwrap_or(bytes.len());
    Value::Str(Text::ansi(bytes.get(..end).unwrap_or(bytes)))
}

fn binary<'a>(field: &Field, bytes: &'a [u8]) -> Value<'a> {
    match field.out_type {
        out::IPV6 => bytes.array(0).map_or(Value::Bytes(bytes), Value::IPv6),
        out::SOCKADDR => Value::SockAddr(bytes),
        _ => Value::Bytes(bytes),
    }
}
