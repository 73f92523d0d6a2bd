//! Lays out a payload from named values: the way back from [`super::measure`], for writing traces.

use super::measure::fixed_width;
use crate::schema::{Count, EventSchema, Field, InType, Length};
use etwhy_base::Guid;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A value to be written into a kernel payload.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelValue {
    /// Any unsigned number, pointer, size, port (in host order) or FILETIME.
    U64(u64),
    /// Any signed number.
    I64(i64),
    /// Text of a string field; also an address as text (`10.0.0.1`, `::1`).
    Text(String),
    /// Raw bytes: of a `bytes` field, an address, a SYSTEMTIME, or a SID (TOKEN_USER is put in front).
    Bytes(Vec<u8>),
    /// A GUID.
    Guid(Guid),
    /// Pointers of an array, e.g. stack frames.
    Frames(Vec<u64>),
    /// Elements of an array.
    List(Vec<KernelValue>),
    /// Members of a structure by name.
    Record(Vec<(String, KernelValue)>),
}

impl From<u64> for KernelValue {
    fn from(value: u64) -> KernelValue {
        KernelValue::U64(value)
    }
}

impl From<u32> for KernelValue {
    fn from(value: u32) -> KernelValue {
        KernelValue::U64(value.into())
    }
}

impl From<i64> for KernelValue {
    fn from(value: i64) -> KernelValue {
        KernelValue::I64(value)
    }
}

impl From<&str> for KernelValue {
    fn from(value: &str) -> KernelValue {
        KernelValue::Text(value.into())
    }
}

/// Writes a payload.
///
/// Fields without a value become zero, empty strings, or no SID; the count of an array that is given without
/// its count field is filled in. Optional fields at the end are written up to the last one given.
///
/// # Errors
/// Says what is wrong when a name is not in the layout, a value does not fit its field, or an array has
/// another length than the layout or the count given.
pub fn encode(
    schema: &EventSchema,
    pointer_size: usize,
    values: &[(&str, KernelValue)],
) -> Result<Vec<u8>, String> {
    if !matches!(pointer_size, 4 | 8) {
        return Err(format!("pointer size {pointer_size}"));
    }
    let mut out = Vec::new();
    let values: Vec<(&str, &KernelValue)> = values.iter().map(|(name, value)| (*name, value)).collect();
    write_fields(&schema.fields, pointer_size, &values, &mut out)
        .map_err(|e| format!("{}: {e}", schema.name))?;
    Ok(out)
}

fn write_fields(
    fields: &[Field],
    pointer_size: usize,
    values: &[(&str, &KernelValue)],
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if let Some((name, _)) = values.iter().find(|(n, _)| !fields.iter().any(|f| f.name.as_ref() == *n)) {
        return Err(format!("no field {name}"));
    }
    let given = |field: &Field| values.iter().find(|(n, _)| *n == field.name.as_ref()).map(|(_, v)| *v);
    let last_given = fields.iter().rposition(|f| given(f).is_some());
    for (index, field) in fields.iter().enumerate() {
        if field.optional && last_given.is_none_or(|last| last < index) {
            break;
        }
        let implied = count_of_array(fields, index, values).map(KernelValue::U64);
        let value = match (given(field), &implied) {
            (Some(KernelValue::U64(n)), Some(KernelValue::U64(m))) if n != m => {
                return Err(format!("{}: {n} given, but the array has {m} elements", field.name));
            }
            (Some(value), _) => Some(value),
            (None, implied) => implied.as_ref(),
        };
        write_field(field, pointer_size, value, out).map_err(|e| format!("{}: {e}", field.name))?;
    }
    Ok(())
}

/// The number of elements given for the array that this field counts.
fn count_of_array(fields: &[Field], index: usize, values: &[(&str, &KernelValue)]) -> Option<u64> {
    let counts = |f: &&Field| matches!(f.count, Count::Field(i) if usize::from(i) == index);
    let (_, value) =
        fields.iter().filter(counts).find_map(|f| values.iter().find(|(n, _)| *n == f.name.as_ref()))?;
    elements(value).map(|e| e.len() as u64)
}

fn elements(value: &KernelValue) -> Option<Vec<KernelValue>> {
    match value {
        KernelValue::Frames(frames) => Some(frames.iter().map(|f| KernelValue::U64(*f)).collect()),
        KernelValue::Bytes(bytes) => Some(bytes.iter().map(|b| KernelValue::U64((*b).into())).collect()),
        KernelValue::List(list) => Some(list.clone()),
        _ => None,
    }
}

fn write_field(
    field: &Field,
    pointer_size: usize,
    value: Option<&KernelValue>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if field.count == Count::One {
        return write_element(field, pointer_size, value, out);
    }
    let list = match value {
        Some(value) => elements(value).ok_or("an array needs a list")?,
        None => Vec::new(),
    };
    let missing = match field.count {
        Count::Fixed(n) => {
            let n = usize::try_from(n).map_err(|_| "too long")?;
            n.checked_sub(list.len()).ok_or_else(|| format!("more than {n} elements"))?
        }
        _ => 0,
    };
    for element in &list {
        write_element(field, pointer_size, Some(element), out)?;
    }
    for _ in 0..missing {
        write_element(field, pointer_size, None, out)?;
    }
    Ok(())
}

fn write_element(
    field: &Field,
    pointer_size: usize,
    value: Option<&KernelValue>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    match (field.in_type, field.length) {
        (InType::Struct, _) => {
            let members: Vec<(&str, &KernelValue)> = match value {
                Some(KernelValue::Record(members)) => members.iter().map(|(n, v)| (n.as_str(), v)).collect(),
                Some(_) => return Err("a structure needs a record".into()),
                None => Vec::new(),
            };
            return write_fields(&field.members, pointer_size, &members, out);
        }
        (InType::UnicodeString, Length::Fixed(n)) => {
            let text: Vec<u8> = text(value)?.encode_utf16().flat_map(u16::to_le_bytes).collect();
            return write_padded(&text, usize::try_from(n).ok().and_then(|n| n.checked_mul(2)), out);
        }
        (InType::UnicodeString, _) => {
            let units = text(value)?.encode_utf16().chain([0]);
            out.extend(units.flat_map(u16::to_le_bytes));
        }
        (InType::AnsiString, _) => {
            out.extend(text(value)?.as_bytes());
            out.push(0);
        }
        (InType::Binary, Length::Fixed(n)) => {
            return write_padded(bytes(value)?, usize::try_from(n).ok(), out);
        }
        (InType::WbemSid, _) => write_sid(bytes(value)?, pointer_size, out),
        (InType::IPv4 | InType::IPv6, _) => return write_address(field.in_type, value, out),
        (InType::Guid, _) => match value {
            Some(KernelValue::Guid(guid)) => out.extend(guid.0),
            other => return write_padded(bytes(other)?, Some(16), out),
        },
        (InType::SystemTime, _) => return write_padded(bytes(value)?, Some(16), out),
        (kind, _) => {
            let width = fixed_width(kind, pointer_size).ok_or("cannot be written")?;
            let mut number = number(value, width)?;
            if kind == InType::Port {
                number.reverse();
            }
            out.extend(number);
        }
    }
    Ok(())
}

fn text(value: Option<&KernelValue>) -> Result<&str, String> {
    match value {
        None => Ok(""),
        Some(KernelValue::Text(text)) => Ok(text),
        Some(_) => Err("needs text".into()),
    }
}

fn bytes(value: Option<&KernelValue>) -> Result<&[u8], String> {
    match value {
        None => Ok(&[]),
        Some(KernelValue::Bytes(bytes)) => Ok(bytes),
        Some(_) => Err("needs bytes".into()),
    }
}

/// The little-endian bytes of a number, if it fits.
fn number(value: Option<&KernelValue>, width: usize) -> Result<Vec<u8>, String> {
    let (bytes, fits) = match value {
        None => (0u64.to_le_bytes(), true),
        Some(KernelValue::U64(n)) => (n.to_le_bytes(), width >= 8 || n >> (8 * width) == 0),
        Some(KernelValue::I64(n)) => {
            let bits = 8 * width.min(8) as u32;
            let low = if bits == 64 { i64::MIN } else { -(1i64 << (bits - 1)) };
            (n.to_le_bytes(), *n >= low && (bits == 64 || *n <= !low))
        }
        Some(_) => return Err("needs a number".into()),
    };
    let bytes = bytes.get(..width).filter(|_| fits);
    bytes.map(<[u8]>::to_vec).ok_or_else(|| format!("{value:?} does not fit {width} bytes"))
}

fn write_padded(bytes: &[u8], len: Option<usize>, out: &mut Vec<u8>) -> Result<(), String> {
    let missing = len.and_then(|len| len.checked_sub(bytes.len())).ok_or("longer than its field")?;
    out.extend(bytes);
    out.extend(std::iter::repeat_n(0, missing));
    Ok(())
}

/// No SID is a u32 of 0. Else a TOKEN_USER stands in front: its pointer must not be 0, its value means
/// nothing.
fn write_sid(sid: &[u8], pointer_size: usize, out: &mut Vec<u8>) {
    if sid.is_empty() {
        out.extend([0; 4]);
        return;
    }
    let pointer = 0xFFFF_F800_0000_1000u64.to_le_bytes();
    out.extend(pointer.iter().take(pointer_size));
    out.extend(std::iter::repeat_n(0, pointer_size));
    out.extend(sid);
}

fn write_address(kind: InType, value: Option<&KernelValue>, out: &mut Vec<u8>) -> Result<(), String> {
    let len = if kind == InType::IPv4 { 4 } else { 16 };
    match value {
        Some(KernelValue::Text(text)) if kind == InType::IPv4 => {
            out.extend(text.parse::<Ipv4Addr>().map_err(|e| e.to_string())?.octets());
        }
        Some(KernelValue::Text(text)) => {
            out.extend(text.parse::<Ipv6Addr>().map_err(|e| e.to_string())?.octets());
        }
        other => return write_padded(bytes(other)?, Some(len), out),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{KernelLayouts, Measured, Slots, measure, raw_field};
    use super::*;

    fn schema(name: &str, version: u16) -> &'static EventSchema {
        let k = KernelLayouts::builtin();
        let (group, ty) = k.find(name).unwrap();
        k.schema(group, ty, version).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let sample = schema("SampledProfile", 2);
        let values = [
            ("InstructionPointer", 0x7FF6_1234_5678u64.into()),
            ("ThreadId", 77u32.into()),
            ("Count", 1u32.into()),
        ];
        let payload = encode(sample, 8, &values).unwrap();
        assert_eq!(payload.len(), 16);
        let slots = Slots::for_schema(sample, 8);
        assert_eq!(slots.slot("InstructionPointer").unwrap().u64(&payload), Some(0x7FF6_1234_5678));
        assert_eq!(slots.slot("ThreadId").unwrap().u64(&payload), Some(77));
        assert_eq!(slots.slot("Flags").unwrap().u64(&payload), Some(0));
    }

    #[test]
    fn every_layout_can_be_written_empty_and_measured() {
        for schema in KernelLayouts::builtin().all() {
            for pointer in [4, 8] {
                let payload = encode(schema, pointer, &[]).unwrap();
                let whole = Measured { consumed: payload.len(), short: None };
                assert_eq!(measure(schema, pointer, &payload), whole, "{}", schema.name);
            }
        }
    }

    #[test]
    fn strings_sids_and_signs() {
        let process = schema("Process/Start", 4);
        let sid = vec![1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        let values = [
            ("ExitStatus", KernelValue::I64(-1)),
            ("UserSID", KernelValue::Bytes(sid.clone())),
            ("ImageFileName", "etwhy.exe".into()),
            ("CommandLine", "etwhy info \u{e9}".into()),
        ];
        for pointer in [4, 8] {
            let payload = encode(process, pointer, &values).unwrap();
            assert_eq!(
                measure(process, pointer, &payload),
                Measured { consumed: payload.len(), short: None }
            );
            let raw = raw_field(process, pointer, &payload, "UserSID").unwrap();
            assert_eq!(raw.len(), 2 * pointer + 12);
            assert!(raw.ends_with(&sid));
            assert_eq!(raw_field(process, pointer, &payload, "ImageFileName"), Some(&b"etwhy.exe\0"[..]));
            assert_eq!(
                Slots::for_schema(process, pointer).slot("ExitStatus").unwrap().i64(&payload),
                Some(-1)
            );
        }
    }

    #[test]
    fn arrays_counts_and_addresses() {
        let stack = schema("StackWalk/Stack", 2);
        let payload = encode(stack, 8, &[("Stack", KernelValue::Frames(vec![1, 2]))]).unwrap();
        assert_eq!(
            Slots::for_schema(stack, 8).tail("Stack").unwrap().pointers(&payload).collect::<Vec<_>>(),
            [1, 2]
        );
        let names = schema("PerfInfo/PmcCtrConfig", 2);
        let list = KernelValue::List(vec!["Timer".into(), "X".into()]);
        let payload = encode(names, 8, &[("CounterName", list.clone())]).unwrap();
        assert_eq!(payload.get(..4), Some(&[2, 0, 0, 0][..]));
        assert!(encode(names, 8, &[("CounterCount", 3u32.into()), ("CounterName", list)]).is_err());
        let send = schema("TcpIp/SendIPV4", 2);
        let payload = encode(send, 8, &[("daddr", "10.0.0.1".into()), ("dport", 443u32.into())]).unwrap();
        assert_eq!(raw_field(send, 8, &payload, "daddr"), Some(&[10, 0, 0, 1][..]));
        assert_eq!(raw_field(send, 8, &payload, "dport"), Some(&[1, 187][..]));
        let ws = schema("PageFault/MemInfoWS", 2);
        let entry = KernelValue::Record(vec![("ProcessId".into(), 4u32.into())]);
        let payload = encode(ws, 8, &[("WsEntry", KernelValue::List(vec![entry]))]).unwrap();
        assert_eq!(payload.len(), 4 + 4 + 8 * 8);
        assert_eq!(payload.get(..8), Some(&[1, 0, 0, 0, 4, 0, 0, 0][..]));
    }

    #[test]
    fn optional_fields_are_written_when_given() {
        let thread = schema("Thread/Start", 3);
        assert_eq!(encode(thread, 8, &[]).unwrap().len(), 72);
        assert_eq!(encode(thread, 8, &[("ThreadName", "io".into())]).unwrap().len(), 78);
    }

    #[test]
    fn mistakes_are_told() {
        let sample = schema("SampledProfile", 2);
        for (name, value) in [
            ("NoSuchField", KernelValue::U64(1)),
            ("Count", KernelValue::U64(0x1_0000)),
            ("Count", KernelValue::I64(-0x8001)),
            ("Count", "x".into()),
            ("Count", KernelValue::Frames(vec![1])),
        ] {
            let error = encode(sample, 8, &[(name, value)]).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        assert!(encode(sample, 6, &[]).is_err());
    }
}
