//! Fast access to a few named fields of an event type that occurs millions of times.
//!
//! Names are resolved once per event type. Where everything in front of a field has a fixed width, the
//! field is one read at a known offset; else the reader walks from the last known offset, without
//! building the values in between.

use crate::read::Cursor;
use crate::scalar::{fixed_len, out};
use crate::schema::{Count, EventSchema, Field, InType, Length};
use crate::value::Value;
use etwhy_base::{Bytes, Guid};
use std::borrow::Cow;
use std::sync::Arc;

/// Most earlier fields (counts and lengths) that a walk keeps in mind.
const MAX_REFERRED: usize = 8;

/// Where one wanted field stands.
#[derive(Clone, Copy, Debug)]
enum FieldPosition {
    /// The schema has no field of that name.
    Missing,
    /// At a fixed offset, for 4-byte and for 8-byte pointers; with its width, if that is fixed, too.
    At { offset: [u32; 2], width: [u8; 2] },
    /// Behind fields of varying width: walk from field `from` at `offset` up to field `field`.
    Walk { from: u16, offset: [u32; 2] },
}

#[derive(Clone, Copy, Debug)]
struct PlannedField {
    field: u16,
    place: FieldPosition,
}

/// Fields of one event type, resolved by name.
#[derive(Clone, Debug)]
pub struct FieldPlan {
    schema: Arc<EventSchema>,
    wanted: Vec<PlannedField>,
    /// Fields that give counts or lengths to others.
    referred: Vec<u16>,
}

/// Index into offsets for a pointer size.
#[inline]
fn flavour(pointer_size: usize) -> usize {
    usize::from(pointer_size != 4)
}

impl FieldPlan {
    /// Resolves `names`; the position of a name is the index that the accessors take.
    pub fn new(schema: &Arc<EventSchema>, names: &[&str]) -> FieldPlan {
        let fields = &schema.fields;
        let wanted = names
            .iter()
            .map(|name| match fields.iter().position(|field| &*field.name == *name) {
                Some(at) => locate(fields, at),
                None => PlannedField { field: 0, place: FieldPosition::Missing },
            })
            .collect();
        let mut referred: Vec<u16> = Vec::new();
        for field in fields {
            if let Length::Field(i) = field.length {
                referred.push(i);
            }
            if let Count::Field(i) = field.count {
                referred.push(i);
            }
        }
        referred.sort_unstable();
        referred.dedup();
        FieldPlan { schema: Arc::clone(schema), wanted, referred }
    }

    /// The schema that the plan was made for.
    pub fn schema(&self) -> &Arc<EventSchema> {
        &self.schema
    }

    /// True when the schema has the field with this index.
    pub fn has(&self, index: usize) -> bool {
        self.wanted.get(index).is_some_and(|w| !matches!(w.place, FieldPosition::Missing))
    }

    /// A number (integers, pointers, booleans, times, ports); `None` when it is missing or no number.
    #[inline]
    pub fn u64(&self, index: usize, payload: &[u8], pointer_size: usize) -> Option<u64> {
        let wanted = self.wanted.get(index)?;
        if let FieldPosition::At { offset, width } = wanted.place {
            let flavour = flavour(pointer_size);
            let at = offset[flavour] as usize;
            // Plain widths of unsigned numbers; everything else takes the general way.
            match width[flavour] {
                4 => return payload.u32_at(at).map(u64::from),
                8 => return payload.u64_at(at),
                2 => return payload.u16_at(at).map(u64::from),
                1 => return payload.u8_at(at).map(u64::from),
                _ => {}
            }
        }
        self.value(index, payload, pointer_size)?.as_u64()
    }

    /// A number that fits 32 bits, see [`FieldPlan::u64`].
    #[inline]
    pub fn u32(&self, index: usize, payload: &[u8], pointer_size: usize) -> Option<u32> {
        self.u64(index, payload, pointer_size).map(|v| v as u32)
    }

    /// A string.
    pub fn text<'a>(&self, index: usize, payload: &'a [u8], pointer_size: usize) -> Option<Cow<'a, str>> {
        match self.value(index, payload, pointer_size)? {
            Value::Str(text) => Some(text.to_str()),
            _ => None,
        }
    }

    /// A GUID.
    pub fn guid(&self, index: usize, payload: &[u8], pointer_size: usize) -> Option<Guid> {
        self.value(index, payload, pointer_size)?.as_guid()
    }

    /// Any value. `None` when the schema has no such field or the payload ends before it.
    pub fn value<'a>(&self, index: usize, payload: &'a [u8], pointer_size: usize) -> Option<Value<'a>> {
        let wanted = self.wanted.get(index)?;
        let flavour = flavour(pointer_size);
        let (from, offset) = match wanted.place {
            FieldPosition::Missing => return None,
            FieldPosition::At { offset, .. } => (wanted.field, offset[flavour]),
            FieldPosition::Walk { from, offset } => (from, offset[flavour]),
        };
        let target = self.schema.fields.get(usize::from(wanted.field))?;
        let refers_back =
            matches!(target.length, Length::Field(_)) || matches!(target.count, Count::Field(_));
        // A target whose count was read before `from` needs the walk from the start.
        let (from, offset) = if self.referred.is_empty() || (from == wanted.field && !refers_back) {
            (from, offset)
        } else {
            (0, 0)
        };
        let mut cursor = Cursor::new(payload, pointer_size);
        cursor.at = offset as usize;
        let mut known = [(u16::MAX, 0u64); MAX_REFERRED];
        for i in from..wanted.field {
            let field = self.schema.fields.get(usize::from(i))?;
            let slot = self.referred.iter().position(|r| *r == i).and_then(|slot| known.get_mut(slot));
            if let Some(slot) = slot {
                let (value, _) = cursor.field(field, &|_| None, 0);
                *slot = (i, value?.as_u64()?);
            } else if !cursor.skip(field, &|i| lookup(&known, i)) {
                return None;
            }
        }
        if cursor.left() == 0 {
            return None;
        }
        cursor.field(target, &|i| lookup(&known, i), 0).0
    }
}

fn lookup(known: &[(u16, u64)], field: u16) -> Option<u64> {
    known.iter().find(|(i, _)| *i == field).map(|(_, value)| *value)
}

/// Finds the offset of a field, or of the last field before it whose offset is fixed.
fn locate(fields: &[Field], index: usize) -> PlannedField {
    let field = u16::try_from(index).unwrap_or(u16::MAX);
    let mut offset = [0u32; 2];
    for (i, earlier) in fields.iter().take(index).enumerate() {
        match widths(earlier) {
            Some(width) => {
                offset[0] = offset[0].saturating_add(width[0]);
                offset[1] = offset[1].saturating_add(width[1]);
            }
            None => {
                let from = u16::try_from(i).unwrap_or(u16::MAX);
                return PlannedField { field, place: FieldPosition::Walk { from, offset } };
            }
        }
    }
    let width = fields.get(index).map_or([0; 2], plain_widths);
    PlannedField { field, place: FieldPosition::At { offset, width } }
}

/// Widths of a field for 4-byte and 8-byte pointers, when they are fixed.
fn widths(field: &Field) -> Option<[u32; 2]> {
    let count = match field.count {
        Count::One => 1,
        Count::Fixed(n) => n,
        _ => return None,
    };
    let length = match (field.in_type, field.length) {
        (InType::Boolean, Length::Fixed(1)) => [1, 1],
        (InType::Binary | InType::AnsiString, Length::Fixed(n)) => [n, n],
        (InType::UnicodeString, Length::Fixed(n)) => [n.checked_mul(2)?; 2],
        (kind, _) => [fixed_len(kind, 4)? as u32, fixed_len(kind, 8)? as u32],
    };
    Some([length[0].checked_mul(count)?, length[1].checked_mul(count)?])
}

/// Widths of a single unsigned number; 0 for everything that needs the general reader.
fn plain_widths(field: &Field) -> [u8; 2] {
    use InType::*;
    let special = field.out_type == out::PORT || field.out_type == out::STRING;
    if field.count != Count::One || special {
        return [0; 2];
    }
    match field.in_type {
        UInt8 => [1, 1],
        UInt16 => [2, 2],
        UInt32 | HexInt32 => [4, 4],
        UInt64 | HexInt64 | FileTime => [8, 8],
        Pointer | SizeT => [4, 8],
        _ => [0; 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::DecodedBy;

    fn schema(fields: Vec<Field>) -> Arc<EventSchema> {
        Arc::new(EventSchema {
            guid: Guid::ZERO,
            provider: "P".into(),
            name: "E".into(),
            task: "".into(),
            opcode: "".into(),
            message: "".into(),
            decoded_by: DecodedBy::Manifest,
            verified: false,
            fields,
        })
    }

    #[test]
    fn offsets_follow_the_pointer_size() {
        let schema = schema(vec![
            Field::plain("Base", InType::Pointer),
            Field::plain("Pid", InType::UInt32),
            Field::plain("Delta", InType::Int32),
        ]);
        let plan = FieldPlan::new(&schema, &["Pid", "Base", "Nothing", "Delta"]);
        let mut payload = 0x1122_3344_5566_7788u64.to_le_bytes().to_vec();
        payload.extend(7u32.to_le_bytes());
        payload.extend((-3i32).to_le_bytes());
        assert_eq!(plan.u64(0, &payload, 8), Some(7));
        assert_eq!(plan.u64(1, &payload, 8), Some(0x1122_3344_5566_7788));
        assert_eq!(plan.u64(0, &payload, 4), Some(0x1122_3344));
        assert_eq!(plan.u64(1, &payload, 4), Some(0x5566_7788));
        assert_eq!(plan.u64(2, &payload, 8), None);
        assert_eq!(plan.u64(3, &payload, 8), Some(-3i64 as u64), "signs are kept");
        assert_eq!(plan.u64(0, &payload[..10], 8), None, "cut in the middle");
        assert!(plan.has(0) && !plan.has(2) && !plan.has(9));
    }

    #[test]
    fn walks_over_strings_and_counted_arrays() {
        let mut frames = Field::plain("Frames", InType::UInt32);
        frames.count = Count::Field(1);
        let schema = schema(vec![
            Field::plain("Name", InType::UnicodeString),
            Field::plain("Count", InType::UInt16),
            frames,
            Field::plain("Path", InType::AnsiString),
            Field::plain("Last", InType::UInt8),
        ]);
        let plan = FieldPlan::new(&schema, &["Last", "Path", "Name", "Frames", "Count"]);
        let mut payload: Vec<u8> = "ab\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
        payload.extend([2, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        payload.extend(b"c:\\x\0\x09");
        assert_eq!(plan.u64(0, &payload, 8), Some(9));
        assert_eq!(plan.text(1, &payload, 8).as_deref(), Some("c:\\x"));
        assert_eq!(plan.text(2, &payload, 8).as_deref(), Some("ab"));
        assert_eq!(plan.value(3, &payload, 8).unwrap().elements(), Some(vec![Value::U32(1), Value::U32(2)]));
        assert_eq!(plan.u64(4, &payload, 8), Some(2));
        for cut in 0..payload.len() {
            for i in 0..5 {
                plan.value(i, &payload[..cut], 8);
            }
        }
        assert_eq!(plan.u64(0, &payload[..payload.len() - 1], 8), None);
    }
}
