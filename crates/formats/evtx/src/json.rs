//! Events as JSON.

use crate::binxml::escape::{self, Json};
use crate::binxml::{Cell, Decoder, Event, Fault, Items, Name, System, Value, push_decimal, push_hex, time};
use crate::filter::time_of;
use crate::read::RecordRef;
use crate::wanted::{Every, Wanted};

/// Appends the fields as a JSON object: numbers as numbers, booleans as booleans, arrays as arrays, all else as Windows' text; null where
/// there is no value. Nothing is appended if there are no fields. `SAFE`: also what acts on terminals is written as an escape.
///
/// # Errors
/// If the event cannot be read to its end; what stands before is in the object.
pub fn push_fields<const SAFE: bool>(
    decoder: &mut Decoder,
    event: &Event<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    push_wanted::<SAFE>(decoder, event, &mut Every, out)
}

/// As [`push_fields`], with no other fields than those that are wanted.
pub(crate) fn push_wanted<const SAFE: bool>(
    decoder: &mut Decoder,
    event: &Event<'_>,
    wanted: &mut impl Wanted,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let begin = out.len();
    let mut result = Ok(());
    if let Some(cells) = decoder.cells_in_order(event) {
        wanted.look_at(cells.layout(), cells.fields());
        match cells.straight() {
            Some(values) => {
                for (n, (cell, (kind, size, tail))) in cells.fields().iter().zip(values).enumerate() {
                    if wanted.takes(n) && !(cell.optional && kind == crate::abi::value::NULL) {
                        field::<SAFE>(out, cell, kind, size, tail);
                    }
                }
            }
            None => {
                for (n, (cell, (kind, size, tail))) in
                    cells.fields().iter().zip(cells.scattered()).enumerate()
                {
                    if wanted.takes(n) && !(cell.optional && cells.is_null(cell)) {
                        field::<SAFE>(out, cell, kind, size, tail);
                    }
                }
            }
        }
    } else {
        result = decoder.fields(event, &mut |name: Name<'_>, value: Value<'_>| {
            if !wanted.takes_name(name) {
                return;
            }
            out.extend_from_slice(b",\"");
            match name {
                Name::Named(name) => escape::push_str::<Json<SAFE>>(out, name),
                Name::Nth(_) => name.push(out),
            }
            out.extend_from_slice(b"\":");
            push_value::<SAFE>(out, &value);
        });
    }
    // Each field begins with a comma.
    if let Some(first) = out.get_mut(begin) {
        *first = b'{';
        out.push(b'}');
    }
    result
}

#[inline(always)]
fn field<const SAFE: bool>(out: &mut Vec<u8>, cell: &Cell, kind: u8, size: usize, tail: &[u8]) {
    match &cell.json {
        Some(piece) => piece.push(out),
        None => name_of::<SAFE>(out, cell),
    }
    if kind == crate::abi::value::STRING {
        out.push(b'"');
        escape::push_utf16::<Json<SAFE>>(out, tail, size);
        out.push(b'"');
    } else {
        push_value::<SAFE>(out, &Value::parse(kind, tail.get(..size).unwrap_or(&[])));
    }
}

#[cold]
fn name_of<const SAFE: bool>(out: &mut Vec<u8>, cell: &Cell) {
    out.extend_from_slice(b",\"");
    escape::push_str::<Json<SAFE>>(out, cell.name.as_deref().unwrap_or(""));
    out.extend_from_slice(b"\":");
}

/// Appends a value as JSON.
fn push_value<const SAFE: bool>(out: &mut Vec<u8>, value: &Value<'_>) {
    match *value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Int(_) | Value::UInt(_) | Value::Bool(_) => value.push_text(out),
        Value::Real32(x) if x.is_finite() => value.push_text(out),
        Value::Real64(x) if x.is_finite() => value.push_text(out),
        Value::Array(kind, bytes) => {
            out.push(b'[');
            for (n, item) in Items::new(kind, bytes).enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                push_value::<SAFE>(out, &item);
            }
            out.push(b']');
        }
        _ => {
            out.push(b'"');
            escape::push_value::<Json<SAFE>>(out, value);
            out.push(b'"');
        }
    }
}

/// So many texts of each kind are remembered, by some bits of what they are the text of.
const RECENT: usize = 256;

/// What has the same number has the same channel, provider, GUID and computer; and the text of these.
type Names = (u64, Vec<u8>);

/// Event id, qualifiers, version, level, task and opcode; keywords; and the texts of these.
type Numbers = ((u64, u64, Option<u16>), Vec<u8>, Vec<u8>);

/// Writes records as lines of JSON, one for each thread. What nearly all records share with some before is remembered as text.
pub struct Lines {
    names: Box<[Names]>,
    numbers: Box<[Numbers]>,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines {
            names: vec![(0, Vec::new()); RECENT].into(),
            numbers: vec![((u64::MAX, 0, None), Vec::new(), Vec::new()); RECENT].into(),
        }
    }
}

impl Lines {
    /// Appends a record as an object on a line: its system values, `message` if there is one, its fields.
    ///
    /// # Errors
    /// If the event cannot be read to its end; what stands before is in the object.
    pub fn push(
        &mut self,
        decoder: &mut Decoder,
        record: &RecordRef,
        event: &Event<'_>,
        message: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.head(decoder, record, event, out);
        if let Some(message) = message {
            out.extend_from_slice(b",\"message\":\"");
            escape::push_str::<Json<true>>(out, message);
            out.push(b'"');
        }
        out.extend_from_slice(b",\"fields\":");
        let begin = out.len();
        let result = push_fields::<true>(decoder, event, out);
        if out.len() == begin {
            out.extend_from_slice(b"{}");
        }
        out.extend_from_slice(b"}\n");
        result
    }

    fn head(&mut self, decoder: &mut Decoder, record: &RecordRef, event: &Event<'_>, out: &mut Vec<u8>) {
        let identity = decoder.identity(event).unwrap_or(0);
        let known = self.names.get(identity as usize % RECENT);
        let known = known.filter(|(known, _)| *known == identity && identity != 0);
        let system = match known {
            Some(_) => decoder.numbers(event),
            None => decoder.system(event),
        };
        out.extend_from_slice(b"{\"time\":\"");
        time::push_file_time(out, time_of(&system, record));
        out.extend_from_slice(b"\",\"record_id\":");
        push_decimal(out, system.record_id.unwrap_or(record.id));
        match known {
            Some((_, text)) => out.extend_from_slice(text),
            None => {
                let begin = out.len();
                text(out, b",\"channel\":\"", &system.channel);
                text(out, b",\"provider\":\"", &system.provider);
                text(out, b",\"provider_guid\":\"", &system.provider_guid);
                text(out, b",\"computer\":\"", &system.computer);
                if let Some((known, text)) = self.names.get_mut(identity as usize % RECENT) {
                    *known = identity;
                    text.clear();
                    text.extend_from_slice(out.get(begin..).unwrap_or(&[]));
                }
            }
        }
        text(out, b",\"user_sid\":\"", &system.user);
        text(out, b",\"activity_id\":\"", &system.activity);
        text(out, b",\"related_activity_id\":\"", &system.related_activity);
        let at = usize::from(system.event_id).wrapping_add((identity as usize).wrapping_mul(31)) % RECENT;
        let Some((key, kind, keywords)) = self.numbers.get_mut(at) else {
            return;
        };
        let own = Self::key(&system);
        if *key != own {
            *key = own;
            kind.clear();
            keywords.clear();
            number(kind, b",\"event_id\":", Some(system.event_id.into()));
            number(kind, b",\"qualifiers\":", system.qualifiers.map(u64::from));
            number(kind, b",\"version\":", Some(system.version.into()));
            number(kind, b",\"level\":", Some(system.level.into()));
            number(kind, b",\"task\":", Some(system.task.into()));
            number(kind, b",\"opcode\":", Some(system.opcode.into()));
            keywords.extend_from_slice(b",\"keywords\":\"");
            push_hex(keywords, system.keywords);
            keywords.push(b'"');
        }
        out.extend_from_slice(kind);
        number(out, b",\"pid\":", system.process.map(u64::from));
        number(out, b",\"tid\":", system.thread.map(u64::from));
        out.extend_from_slice(keywords);
    }

    /// What tells kinds of events apart. The first number is never `u64::MAX`.
    fn key(system: &System<'_>) -> (u64, u64, Option<u16>) {
        let numbers = u64::from(system.event_id)
            | u64::from(system.task) << 16
            | u64::from(system.version) << 32
            | u64::from(system.level) << 40
            | u64::from(system.opcode) << 48;
        (numbers, system.keywords, system.qualifiers)
    }
}

/// Appends a text behind its name, if there is one.
#[inline]
fn text<const N: usize>(out: &mut Vec<u8>, name: &[u8; N], value: &Value<'_>) {
    if !matches!(value, Value::Null) {
        out.extend_from_slice(name);
        escape::push_value::<Json<true>>(out, value);
        out.push(b'"');
    }
}

/// Appends a number behind its name, if there is one.
#[inline]
fn number<const N: usize>(out: &mut Vec<u8>, name: &[u8; N], n: Option<u64>) {
    if let Some(n) = n {
        out.extend_from_slice(name);
        push_decimal(out, n);
    }
}
