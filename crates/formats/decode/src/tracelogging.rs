//! TraceLogging: the record itself says what it holds (`TraceLoggingProvider.h`, Windows SDK).

use crate::names::standard_opcode;
use crate::read::MAX_DEPTH;
use crate::scalar::out;
use crate::schema::{Count, DecodedBy, EventSchema, Field, InType, Length};
use crate::text::text8;
use etwhy_base::{Bytes, Guid};

const IN_CHAIN: u8 = 0x80;
const IN_COUNT_MASK: u8 = 0x60;
const IN_CONSTANT_COUNT: u8 = 0x20;
const IN_VARIABLE_COUNT: u8 = 0x40;
const IN_CUSTOM: u8 = 0x60;
const IN_TYPE_MASK: u8 = 0x1F;
const OUT_CHAIN: u8 = 0x80;
const OUT_TYPE_MASK: u8 = 0x7F;
const TYPE_BINARY: u8 = 14;
const TYPE_STRUCT: u8 = 24;

/// Provider name and group from the provider traits item.
pub fn provider_traits(item: &[u8]) -> Option<(String, Option<Guid>)> {
    let size = usize::from(item.u16_at(0)?).min(item.len());
    let item = item.get(2..size)?;
    let end = item.iter().position(|b| *b == 0).unwrap_or(item.len());
    let name = text8(item.get(..end)?).into_owned();
    let mut rest = item.get(end + 1..).unwrap_or(&[]);
    while let (Some(size), Some(kind)) = (rest.u16_at(0), rest.u8_at(2)) {
        if kind == 1 {
            return Some((name, rest.guid_at(3)));
        }
        match rest.get(usize::from(size).max(3)..) {
            Some(more) => rest = more,
            None => break,
        }
    }
    Some((name, None))
}

/// Event name in a schema item, without building the schema.
pub fn event_name(item: &[u8]) -> Option<String> {
    let mut reader = Reader::new(item)?;
    reader.tag()?;
    Some(reader.name()?.to_owned())
}

/// Reads a schema item (and the traits item, which names the provider).
///
/// A damaged field ends the list; the reader then reports the bytes behind it as leftover.
pub fn schema(provider: Guid, item: &[u8], traits: Option<&[u8]>, opcode: u8) -> Option<EventSchema> {
    let mut reader = Reader::new(item)?;
    reader.tag()?;
    let name = reader.name()?;
    let mut fields = Vec::new();
    reader.fields(&mut fields, usize::MAX, 0);
    let provider_name = traits.and_then(provider_traits).map(|(name, _)| name).unwrap_or_default();
    Some(EventSchema {
        guid: provider,
        provider: provider_name.into(),
        name: name.as_str().into(),
        task: name.as_str().into(),
        opcode: standard_opcode(opcode).into(),
        message: "".into(),
        decoded_by: DecodedBy::TraceLogging,
        verified: true,
        fields,
    })
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(item: &'a [u8]) -> Option<Reader<'a>> {
        let size = usize::from(item.u16_at(0)?).min(item.len());
        Some(Reader { data: item.get(..size)?, at: 2 })
    }

    fn u8(&mut self) -> Option<u8> {
        let byte = self.data.u8_at(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn u16(&mut self) -> Option<u16> {
        let word = self.data.u16_at(self.at)?;
        self.at += 2;
        Some(word)
    }

    /// Tag bytes: as long as the high bit is set.
    fn tag(&mut self) -> Option<()> {
        while self.u8()? & 0x80 != 0 {}
        Some(())
    }

    fn name(&mut self) -> Option<String> {
        let rest = self.data.get(self.at..)?;
        let end = rest.iter().position(|b| *b == 0)?;
        self.at += end + 1;
        Some(text8(rest.get(..end)?).into_owned())
    }

    /// Up to `count` fields; false when the item ended or made no sense.
    fn fields(&mut self, fields: &mut Vec<Field>, count: usize, depth: usize) -> bool {
        for _ in 0..count {
            if self.at >= self.data.len() {
                return count == usize::MAX;
            }
            match self.field(depth) {
                Some((field, whole)) => {
                    fields.push(field);
                    if !whole {
                        return false;
                    }
                }
                None => return false,
            }
        }
        true
    }

    fn field(&mut self, depth: usize) -> Option<(Field, bool)> {
        let name = self.name()?;
        let in_byte = self.u8()?;
        let mut out_byte = 0;
        if in_byte & IN_CHAIN != 0 {
            out_byte = self.u8()?;
            if out_byte & OUT_CHAIN != 0 {
                self.tag()?;
            }
        }
        let mut field = Field::plain(&name, InType::Struct);
        match in_byte & IN_COUNT_MASK {
            IN_CONSTANT_COUNT => field.count = Count::Fixed(u32::from(self.u16()?)),
            IN_VARIABLE_COUNT => field.count = Count::Prefixed,
            IN_CUSTOM => {
                let size = usize::from(self.u16()?);
                self.at = self.at.checked_add(size)?;
            }
            _ => {}
        }
        let kind = in_byte & IN_TYPE_MASK;
        if kind == TYPE_STRUCT {
            if depth >= MAX_DEPTH {
                return None;
            }
            let members = usize::from(out_byte & OUT_TYPE_MASK);
            let whole = self.fields(&mut field.members, members, depth + 1);
            return Some((field, whole));
        }
        field.in_type = match kind {
            // Binary data has a u16 length in front of it here, unlike in manifests.
            TYPE_BINARY => InType::CountedBinary,
            kind => crate::names::tdh_in_type(u16::from(kind))?,
        };
        if in_byte & IN_COUNT_MASK == IN_CUSTOM {
            field.in_type = InType::CountedBinary;
        }
        field.out_type = out_type(out_byte & OUT_TYPE_MASK, field.in_type);
        field.length = Length::Natural;
        Some((field, true))
    }
}

/// TraceLogging numbers its out-types in its own way; ours are `TDH_OUTTYPE_*`.
fn out_type(number: u8, in_type: InType) -> u16 {
    match number {
        1 => 301,
        2 => out::STRING,
        3 => out::BOOLEAN,
        4 => match in_type {
            InType::Int8 | InType::UInt8 => 16,
            InType::Int16 | InType::UInt16 => 17,
            InType::Int64 | InType::UInt64 => 19,
            _ => 18,
        },
        5 => 20,
        6 => 21,
        7 => out::PORT,
        8 => out::IPV4,
        9 => out::IPV6,
        10 => out::SOCKADDR,
        11 => 28,
        12 => 34,
        13 => out::WIN32ERROR,
        14 => out::NTSTATUS,
        15 => out::HRESULT,
        16 => out::DATETIME,
        35 => 35,
        36 => 36,
        37 => out::CODE_POINTER,
        38 => out::DATETIME_UTC,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn item(body: &[u8]) -> Vec<u8> {
        let mut item = (body.len() as u16 + 2).to_le_bytes().to_vec();
        item.extend(body);
        item
    }

    #[test]
    fn the_worked_example() {
        // struct a { wsz b; wsz c }, then u32 pids[count in data], tagged hex u16, binary.
        let item = item(b"\0SetEvent\0a\0\x98\x02b\0\x01c\0\x01pids\0\xc8\x05h\0\x86\x84\x81\x01raw\0\x0e");
        let schema = schema(Guid::ZERO, &item, None, 1).unwrap();
        assert_eq!(&*schema.name, "SetEvent");
        let names: Vec<&str> = schema.fields.iter().map(|f| &*f.name).collect();
        assert_eq!(names, ["a", "pids", "h", "raw"]);
        let payload = b"x\0\0\0y\0\0\0\x02\0\x05\0\0\0\x06\0\0\0\xff\x0f\x03\0abc";
        let decoded = crate::read::read(&schema, payload, 8);
        assert_eq!(decoded.values[0], Value::Struct(vec![Value::Str("x".into()), Value::Str("y".into())]));
        assert_eq!(decoded.values[1].elements(), Some(vec![Value::U32(5), Value::U32(6)]));
        assert_eq!(decoded.values[2], Value::Hex(0xfff));
        assert_eq!(decoded.values[3], Value::Bytes(b"abc"));
        assert!(!decoded.truncated && decoded.rest.is_empty());
    }

    #[test]
    fn damage_never_panics() {
        let whole =
            item(b"\0E\0a\0\x98\x02b\0\x01c\0\x01p\0\xc8\x05h\0\x86\x84\x81\x01r\0\x2e\x03\0z\0\x6e\x02\0??");
        for cut in 0..whole.len() {
            schema(Guid::ZERO, &whole[..cut], None, 0);
        }
        for at in 0..whole.len() {
            for value in [0x00, 0x98, 0xFF] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                if let Some(schema) = schema(Guid::ZERO, &damaged, None, 0) {
                    crate::read::read(&schema, &[3; 40], 4);
                }
            }
        }
        // Structs that nest as deep as the item allows.
        let mut deep = b"\0E\0".to_vec();
        for _ in 0..5000 {
            deep.extend(b"s\0\x98\x01");
        }
        assert!(schema(Guid::ZERO, &item(&deep), None, 0).is_some());
    }

    #[test]
    fn traits() {
        let guid = Guid::from_text("4f50731a-89cf-4782-b3e0-dce8c90476ba");
        let mut body = b"My.Provider\0".to_vec();
        body.extend([19, 0, 1]);
        body.extend(guid.0);
        assert_eq!(provider_traits(&item(&body)), Some(("My.Provider".into(), Some(guid))));
        assert_eq!(provider_traits(&item(b"N\0")), Some(("N".into(), None)));
        assert_eq!(provider_traits(b"\x40"), None);
    }
}
