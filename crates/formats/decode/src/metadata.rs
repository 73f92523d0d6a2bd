//! Event metadata that merging puts into a trace: `TRACE_EVENT_INFO` and `EVENT_MAP_INFO` (`tdh.h`).
//!
//! Offsets in these structures come from the file, so every one is checked; a property that makes no
//! sense ends the list of fields, which the reader then reports as leftover bytes.

use crate::names::{event_name, standard_opcode, tdh_in_type};
use crate::read::MAX_DEPTH;
use crate::schema::{Count, DecodedBy, EventSchema, Field, InType, Length, ValueMap};
use etwhy_base::utf16;
use etwhy_base::{Bytes, Guid};
use std::sync::Arc;

/// Opcode of records that hold a `TRACE_EVENT_INFO`.
pub const OP_EVENT_INFO: u8 = 32;
/// Opcode of records that hold an `EVENT_MAP_INFO`.
pub const OP_MAP_INFO: u8 = 33;

/// Fixed part of `TRACE_EVENT_INFO`.
const INFO_LEN: usize = 112;
/// `EVENT_PROPERTY_INFO`.
const PROPERTY_LEN: usize = 24;
/// Most properties that are looked at: a record of 64 KiB cannot hold more.
const MAX_PROPERTIES: usize = 0xFFFF / PROPERTY_LEN;

const FLAG_STRUCT: u32 = 0x01;
const FLAG_PARAM_LENGTH: u32 = 0x02;
const FLAG_PARAM_COUNT: u32 = 0x04;
const FLAG_FIXED_LENGTH: u32 = 0x10;
const FLAG_FIXED_COUNT: u32 = 0x20;

/// What the metadata says an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Provider GUID; class GUID for WBEM events.
    pub guid: Guid,
    /// `EVENT_DESCRIPTOR.Id`.
    pub id: u16,
    /// `EVENT_DESCRIPTOR.Version`.
    pub version: u8,
    /// `EVENT_DESCRIPTOR.Opcode`.
    pub opcode: u8,
    /// True for events of MOF classes (decoding source WBEM).
    pub classic: bool,
}

/// An event described by a `TRACE_EVENT_INFO`. Its maps are still names.
#[derive(Clone, Debug)]
pub struct EventInfo {
    /// Which event it describes.
    pub identity: Identity,
    /// The layout, without maps.
    pub schema: EventSchema,
    /// For each top-level or nested field with a map: path of indices and the map's name.
    pub maps: Vec<(Vec<usize>, String)>,
}

/// Longest text that is taken, in UTF-16 units: many offsets may point to one long string.
const MAX_TEXT: usize = 512;

/// Text of the nul-ended UTF-16 string at an offset of `data`; empty for offset 0 or damage.
fn text(data: &[u8], offset: u32) -> String {
    text_up_to(data, offset, MAX_TEXT)
}

fn text_up_to(data: &[u8], offset: u32, limit: usize) -> String {
    let Some(bytes) = usize::try_from(offset).ok().filter(|o| *o != 0).and_then(|o| data.get(o..)) else {
        return String::new();
    };
    let units = bytes.as_chunks::<2>().0;
    let end = units.iter().take(limit).position(|unit| *unit == [0, 0]).unwrap_or(units.len().min(limit));
    // Strings of the metadata often end in a blank.
    utf16::text(bytes.get(..end * 2).unwrap_or(&[])).trim_end().to_owned()
}

/// As [`text`], empty once `left` bytes are used up: many short references to one long text must not multiply
/// it.
fn bounded_text(data: &[u8], offset: u32, left: &mut usize) -> String {
    if *left == 0 {
        return String::new();
    }
    let text = text(data, offset);
    *left = left.saturating_sub(text.len());
    text
}

fn text_at(data: &[u8], field: usize) -> String {
    text(data, data.u32_at(field).unwrap_or(0))
}

/// Reads a `TRACE_EVENT_INFO`. `None` when it is cut off or names a provider of zeros.
pub fn event_info(data: &[u8]) -> Option<EventInfo> {
    let provider = data.guid_at(0)?;
    let event_guid = data.guid_at(16)?;
    let id = data.u16_at(32)?;
    let version = data.u8_at(34)?;
    let opcode = data.u8_at(37)?;
    let source = data.u32_at(48)?;
    let total = usize::try_from(data.u32_at(100)?).ok()?.min(MAX_PROPERTIES);
    let top = usize::try_from(data.u32_at(104)?).ok()?.min(total);
    data.sub(0, INFO_LEN)?;
    let classic = source == 1;
    let guid = if classic && !event_guid.is_zero() { event_guid } else { provider };
    if guid.is_zero() {
        return None;
    }

    let task = text_at(data, 68);
    let opcode_text = text_at(data, 72);
    let mut opcode_name = opcode_text.trim_start_matches("win:").to_owned();
    if opcode_name.is_empty() {
        opcode_name = standard_opcode(opcode).to_owned();
    }
    // The word at 92 is the event's name for manifests of new systems, an attribute name before.
    let symbol = if source == 3 { text_at(data, 92) } else { String::new() };
    let mut properties = Properties { data, total, left: total, text_left: 2 * data.len(), maps: Vec::new() };
    let fields = properties.level(0, top, &mut Vec::new());
    let schema = EventSchema {
        guid,
        provider: text_at(data, 52).into(),
        name: event_name(&task, &opcode_name, &symbol, id),
        task: task.into(),
        opcode: opcode_name.into(),
        message: text_up_to(data, data.u32_at(76).unwrap_or(0), usize::MAX).into(),
        decoded_by: DecodedBy::Metadata,
        verified: true,
        fields: clr_stack(guid, fields),
    };
    let identity = Identity { guid, id, version, opcode, classic };
    Some(EventInfo { identity, schema, maps: properties.maps })
}

struct Properties<'a> {
    data: &'a [u8],
    total: usize,
    /// Properties that may still be taken.
    left: usize,
    /// Bytes that names may still take. Honest names do not overlap.
    text_left: usize,
    maps: Vec<(Vec<usize>, String)>,
}

impl Properties<'_> {
    fn name(&mut self, offset: u32) -> String {
        bounded_text(self.data, offset, &mut self.text_left)
    }

    /// Fields from property `start` on, `count` of them. `path` leads to the struct they belong to.
    fn level(&mut self, start: usize, count: usize, path: &mut Vec<usize>) -> Vec<Field> {
        let mut fields = Vec::new();
        for index in start..start.saturating_add(count).min(self.total) {
            path.push(index - start);
            let field = self.property(index, start, path);
            path.pop();
            match field {
                Some(field) => fields.push(field),
                None => break,
            }
        }
        fields
    }

    fn property(&mut self, index: usize, level_start: usize, path: &mut Vec<usize>) -> Option<Field> {
        let at = INFO_LEN + index * PROPERTY_LEN;
        let property = self.data.sub(at, PROPERTY_LEN)?;
        // A property belongs to one struct. Structs that share members would multiply them at each level.
        self.left = self.left.checked_sub(1)?;
        let flags = property.u32_at(0)?;
        let name = self.name(property.u32_at(4)?);
        let (first, second) = (property.u16_at(8)?, property.u16_at(10)?);
        let map_offset = property.u32_at(12)?;
        let (count, length) = (property.u16_at(16)?, property.u16_at(18)?);
        // References are indices into all properties; ours are relative to the level.
        let sibling = |reference: u16| {
            let reference = usize::from(reference).checked_sub(level_start)?;
            if reference < index - level_start { u16::try_from(reference).ok() } else { None }
        };
        let mut field = Field::plain(&name, InType::Struct);
        field.count = if flags & FLAG_PARAM_COUNT != 0 {
            Count::Field(sibling(count)?)
        } else if count > 1 || flags & FLAG_FIXED_COUNT != 0 {
            Count::Fixed(u32::from(count))
        } else {
            Count::One
        };
        if flags & FLAG_STRUCT != 0 {
            // Structs may only point forward, so that this ends.
            let member_start = usize::from(first);
            if member_start <= index || path.len() >= MAX_DEPTH {
                return None;
            }
            field.members = self.level(member_start, usize::from(second), path);
            return Some(field);
        }
        field.in_type = tdh_in_type(first)?;
        field.out_type = second;
        field.length = if flags & FLAG_PARAM_LENGTH != 0 {
            Length::Field(sibling(length)?)
        } else if length != 0 && takes_length(field.in_type, flags) {
            Length::Fixed(u32::from(length))
        } else {
            Length::Natural
        };
        if map_offset != 0 && self.maps.len() < MAX_PROPERTIES {
            let map = self.name(map_offset);
            if !map.is_empty() {
                self.maps.push((path.clone(), map));
            }
        }
        Some(field)
    }
}

/// Which types have a length of their own. A length given for the others is only their usual width.
fn takes_length(in_type: InType, flags: u32) -> bool {
    match in_type {
        InType::UnicodeString | InType::AnsiString | InType::Binary | InType::Boolean => true,
        _ => flags & FLAG_FIXED_LENGTH != 0 && in_type == InType::HexDump,
    }
}

/// Providers of the CLR, whose stack event declares an array of two for any number of frames.
const CLR_PROVIDERS: [Guid; 4] = [
    Guid::from_text("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"),
    Guid::from_text("a669021c-c450-4609-a035-5af59af4df18"),
    Guid::from_text("763fd754-7086-4dfe-95eb-c01a46faf4ca"),
    Guid::from_text("cc2bcbba-16b6-4cf3-8990-d74c2e8af500"),
];

/// Gives the `Stack` field of CLR stack walks as many elements as `FrameCount` says.
pub(crate) fn clr_stack(provider: Guid, mut fields: Vec<Field>) -> Vec<Field> {
    if CLR_PROVIDERS.contains(&provider)
        && let Some(at) = fields.iter().position(|f| &*f.name == "FrameCount")
        && let Some(stack) = fields.iter_mut().skip(at).find(|f| &*f.name == "Stack")
    {
        stack.count = Count::Field(u16::try_from(at).unwrap_or(0));
    }
    fields
}

/// Reads an `EVENT_MAP_INFO` record: provider and map. `None` when it is cut off.
pub fn map_info(data: &[u8]) -> Option<(Guid, ValueMap)> {
    let provider = data.guid_at(0)?;
    let map = data.get(16..)?;
    let name = text_at(map, 0);
    let flags = map.u32_at(4)?;
    let count = usize::try_from(map.u32_at(8)?).ok()?.min(map.len() / 8);
    let mut entries = Vec::with_capacity(count);
    let mut text_left = 2 * map.len();
    for i in 0..count {
        let at = 16 + 8 * i;
        let (Some(offset), Some(value)) = (map.u32_at(at), map.u32_at(at + 4)) else { break };
        entries.push((value, Arc::from(bounded_text(map, offset, &mut text_left))));
    }
    // 2: bit map of a manifest; 0x40: WBEM bit map flag (EVENTMAP_INFO_FLAG_WBEM_BITMAP is 0x10).
    let bitmap = flags & (0x02 | 0x10) != 0;
    Some((provider, ValueMap { name: name.into(), bitmap, entries }))
}

/// Puts a map at the field that a path leads to.
pub(crate) fn attach(fields: &mut [Field], path: &[usize], map: &Arc<ValueMap>) {
    let Some((first, rest)) = path.split_first() else { return };
    let Some(field) = fields.get_mut(*first) else { return };
    if rest.is_empty() {
        field.map = Some(Arc::clone(map));
    } else {
        attach(&mut field.members, rest, map);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put32(data: &mut [u8], at: usize, value: u32) {
        data[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn add_text(data: &mut Vec<u8>, text: &str) -> u32 {
        let at = data.len() as u32;
        data.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        at
    }

    /// An event with the fields `Count`, `Items` = struct { Key } × Count.
    fn sample() -> Vec<u8> {
        let mut data = vec![0u8; INFO_LEN + 3 * PROPERTY_LEN];
        data[0] = 7;
        data[32] = 42;
        data[34] = 1;
        data[37] = 1;
        let (provider, task) = (add_text(&mut data, "Prov "), add_text(&mut data, "Work"));
        put32(&mut data, 52, provider);
        put32(&mut data, 68, task);
        put32(&mut data, 100, 3);
        put32(&mut data, 104, 2);
        for (i, (name, flags, first, second, count)) in [
            ("Count", 0, 6u16, 0u16, 1u16),
            ("Items", FLAG_STRUCT | FLAG_PARAM_COUNT, 2, 1, 0),
            ("Key", 0, 8, 0, 1),
        ]
        .into_iter()
        .enumerate()
        {
            let offset = add_text(&mut data, name);
            let at = INFO_LEN + i * PROPERTY_LEN;
            put32(&mut data, at, flags);
            put32(&mut data, at + 4, offset);
            data[at + 8..at + 10].copy_from_slice(&first.to_le_bytes());
            data[at + 10..at + 12].copy_from_slice(&second.to_le_bytes());
            data[at + 16..at + 18].copy_from_slice(&count.to_le_bytes());
        }
        data
    }

    #[test]
    fn structs_and_references() {
        let info = event_info(&sample()).unwrap();
        assert_eq!((info.identity.id, info.identity.version, info.identity.opcode), (42, 1, 1));
        assert_eq!(&*info.schema.provider, "Prov");
        assert_eq!(&*info.schema.name, "Work/Start");
        assert_eq!(info.schema.fields.len(), 2);
        let payload = [2, 0, 1, 0, 0, 0, 9, 0, 0, 0];
        let decoded = crate::read::read(&info.schema, &payload, 8);
        let item = |v| crate::Value::Struct(vec![crate::Value::U32(v)]);
        assert_eq!(decoded.values[1], crate::Value::Array(vec![item(1), item(9)]));
        assert!(!decoded.truncated && decoded.rest.is_empty());
    }

    #[test]
    fn damage_never_panics() {
        let whole = sample();
        for len in 0..whole.len() {
            event_info(&whole[..len]);
            map_info(&whole[..len]);
        }
        for at in 0..whole.len() {
            for value in [0xFF, 0x80, 0x01] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                if let Some(info) = event_info(&damaged) {
                    crate::read::read(&info.schema, &[0xFF; 64], 8);
                }
                map_info(&damaged);
            }
        }
    }

    #[test]
    fn a_struct_that_points_back_ends() {
        let mut data = sample();
        let at = INFO_LEN + PROPERTY_LEN;
        data[at + 8] = 1;
        let info = event_info(&data).unwrap();
        assert_eq!(info.schema.fields.len(), 1, "the field list ends at the damage");
    }

    #[test]
    fn structs_that_share_their_members_do_not_multiply_them() {
        const N: usize = 1000;
        let mut data = sample();
        data.truncate(INFO_LEN);
        data.resize(INFO_LEN + N * PROPERTY_LEN, 0);
        put32(&mut data, 100, N as u32);
        put32(&mut data, 104, N as u32);
        for i in 0..N {
            // Each holds everything behind it.
            let at = INFO_LEN + i * PROPERTY_LEN;
            put32(&mut data, at, FLAG_STRUCT);
            put32(&mut data, at + 8, (i as u32 + 1) | ((N - i - 1) as u32) << 16);
        }
        let info = event_info(&data).unwrap();
        assert!(crate::schema::field_count(&info.schema.fields) <= N);
    }
}
