//! Values as text and as JSON.
//!
//! Times are UTC in ISO 8601 with all seven digits that Windows has. Pointers and hex types are hex in
//! both forms. In JSON every other integer is a JSON integer, also above 2^53: readers that keep 64-bit
//! integers (DuckDB, Python, Rust) get the exact value, which strings would hide from them.

use crate::json_keys::{JsonKeys, Repeated, json_string, numbered_key};
use crate::read::Decoded;
use crate::schema::{EventSchema, Field, ValueMap};
use crate::text::Text;
use crate::value::Value;
use etwhy_base::Bytes;
use etwhy_base::time::Civil;
use std::fmt::Write;

/// Longest text that is made of one event, about. A payload has 64 KiB at most, but its fields and the values
/// in it may have long names, which a hostile trace has repeated for every byte.
const MAX_TEXT: usize = 1 << 20;

/// Appends a value as one line of text. `field` gives the names of values, if it has any. Text of more than a
/// megabyte is cut short.
pub fn format_value(out: &mut String, value: &Value<'_>, field: Option<&Field>) {
    let limit = out.len().saturating_add(MAX_TEXT);
    text_value(out, value, field, limit);
}

fn text_value(out: &mut String, value: &Value<'_>, field: Option<&Field>, limit: usize) {
    let map = field.and_then(|f| f.map.as_deref());
    if let (Some(map), Some(number)) = (map, value.as_u64())
        && map_name(out, map, number)
    {
        return;
    }
    match value {
        Value::Array(items) => {
            let field = field_of_items(field, items.len());
            text_list(out, items.iter(), limit, |out, item| text_value(out, item, field, limit));
        }
        Value::Numbers(items) => {
            let field = field_of_items(field, items.len());
            text_list(out, items.iter(), limit, |out, item| text_value(out, &item, field, limit));
        }
        Value::Struct(members) => {
            out.push('{');
            let fields = field.map_or(&[][..], |f| &f.members);
            for (i, (member, field)) in members.iter().zip(fields).enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                if out.len() > limit {
                    out.push_str("...");
                    break;
                }
                out.push_str(&field.name);
                out.push('=');
                text_value(out, member, Some(field), limit);
            }
            out.push('}');
        }
        Value::Str(text) => out.push_str(&text.to_str()),
        other => plain(out, other),
    }
}

/// Appends the fields of a payload as one JSON object. Leftover bytes stand in `_rest` as hex, and
/// `_truncated` is true when the payload ended early, `_cut` when there would be more than a megabyte of text.
pub fn to_json(out: &mut String, schema: &EventSchema, decoded: &Decoded<'_>) {
    to_json_within(out, schema, None, decoded, MAX_TEXT);
}

/// As [`to_json`], cut at another number of bytes; the last value may reach beyond it. `keys` are those of the schema, if
/// they were prepared.
pub fn to_json_within(
    out: &mut String,
    schema: &EventSchema,
    keys: Option<&JsonKeys>,
    decoded: &Decoded<'_>,
    limit: usize,
) {
    let limit = out.len().saturating_add(limit);
    let more = |out: &mut String, first: bool| {
        let mut first = first;
        if out.len() > limit {
            separate(out, &mut first);
            out.push_str("\"_cut\":true");
        }
        if decoded.truncated {
            separate(out, &mut first);
            out.push_str("\"_truncated\":true");
        }
        if !decoded.rest.is_empty() {
            separate(out, &mut first);
            out.push_str("\"_rest\":\"");
            hex_bytes(out, decoded.rest);
            out.push('"');
        }
    };
    let Some(keys) = keys else {
        return members(out, &decoded.values, &schema.fields, limit, more);
    };
    out.push('{');
    let mut first = true;
    for ((value, field), key) in decoded.values.iter().zip(&schema.fields).zip(keys.all()) {
        if out.len() > limit {
            break;
        }
        separate(out, &mut first);
        out.push_str(key);
        value_as_json(out, value, Some(field), limit);
    }
    more(out, first);
    out.push('}');
}

fn separate(out: &mut String, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(',');
    }
}

/// Fields up to which it is quicker to look through all of them than to remember their names.
const FEW: usize = 32;

fn members(
    out: &mut String,
    values: &[Value<'_>],
    fields: &[Field],
    limit: usize,
    more: impl FnOnce(&mut String, bool),
) {
    out.push('{');
    let mut first = true;
    let mut names = Repeated::default();
    for (i, (value, field)) in values.iter().zip(fields).enumerate() {
        if out.len() > limit {
            break;
        }
        separate(out, &mut first);
        if fields.len() <= FEW {
            let earlier = fields.iter().take(i).filter(|f| f.name == field.name).count();
            numbered_key(out, &field.name, earlier + 1);
        } else {
            names.key(out, &field.name);
        }
        value_as_json(out, value, Some(field), limit);
    }
    more(out, first);
    out.push('}');
}

/// Appends one value as JSON. Arrays and structs of more than a megabyte of text are cut short.
pub fn json_value(out: &mut String, value: &Value<'_>, field: Option<&Field>) {
    let limit = out.len().saturating_add(MAX_TEXT);
    value_as_json(out, value, field, limit);
}

fn value_as_json(out: &mut String, value: &Value<'_>, field: Option<&Field>, limit: usize) {
    let map = field.and_then(|f| f.map.as_deref());
    if let (Some(map), Some(number)) = (map, value.as_u64()) {
        if let Some((_, name)) = map.entries.iter().find(|(value, _)| *value == number as u32) {
            return json_string(out, name.trim_end());
        }
        let mut name = String::new();
        if map.bitmap && map_name(&mut name, map, number) {
            return json_string(out, &name);
        }
    }
    match value {
        Value::Bool(_)
        | Value::I8(_)
        | Value::U8(_)
        | Value::I16(_)
        | Value::U16(_)
        | Value::I32(_)
        | Value::U32(_)
        | Value::I64(_)
        | Value::U64(_)
        | Value::Port(_) => plain(out, value),
        Value::F32(v) if v.is_finite() => plain(out, value),
        Value::F64(v) if v.is_finite() => plain(out, value),
        Value::Str(text) => json_text(out, *text),
        Value::Array(items) => {
            let field = field_of_items(field, items.len());
            json_list(out, items.iter(), limit, |out, item| value_as_json(out, item, field, limit));
        }
        Value::Numbers(items) => {
            let field = field_of_items(field, items.len());
            json_list(out, items.iter(), limit, |out, item| value_as_json(out, &item, field, limit));
        }
        Value::Struct(values) => members(out, values, field.map_or(&[], |f| &f.members), limit, |_, _| {}),
        other => {
            out.push('"');
            plain(out, other);
            out.push('"');
        }
    }
}

fn text_list<T>(
    out: &mut String,
    items: impl Iterator<Item = T>,
    limit: usize,
    mut show: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        if out.len() > limit {
            out.push_str("...");
            break;
        }
        show(out, item);
    }
    out.push(']');
}

fn json_list<T>(
    out: &mut String,
    items: impl Iterator<Item = T>,
    limit: usize,
    mut show: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (i, item) in items.enumerate() {
        if out.len() > limit {
            break;
        }
        if i > 0 {
            out.push(',');
        }
        show(out, item);
    }
    out.push(']');
}

/// The field that names the values of an array. Names are searched for one by one: a long array with a long
/// list of names goes without.
fn field_of_items(field: Option<&Field>, items: usize) -> Option<&Field> {
    const MAX_COMPARED: usize = 1 << 22;
    let names = |f: &Field| f.map.as_ref().map_or(0, |m| m.entries.len());
    field.filter(|f| names(f).saturating_mul(items) <= MAX_COMPARED)
}

/// Appends a text of a payload as a JSON string.
fn json_text(out: &mut String, text: Text<'_>) {
    let (bytes, wide) = text.raw();
    // Nearly all text of Windows is ASCII without anything to escape.
    let units = bytes.as_chunks::<2>().0;
    let is_plain =
        |unit: &[u8; 2]| unit[1] == 0 && matches!(unit[0], 0x20..=0x7e) && !matches!(unit[0], b'"' | b'\\');
    if wide && units.iter().fold(true, |plain, unit| plain & is_plain(unit)) {
        out.push('"');
        out.extend(units.iter().map(|unit| char::from(unit[0])));
        out.push('"');
    } else {
        json_string(out, &text.to_str());
    }
}

/// Appends the name of a value, or the names of its bits; false (and nothing appended) if unknown.
fn map_name(out: &mut String, map: &ValueMap, number: u64) -> bool {
    let number = number as u32;
    if let Some((_, name)) = map.entries.iter().find(|(value, _)| *value == number) {
        out.push_str(name.trim_end());
        return true;
    }
    if !map.bitmap || number == 0 {
        return false;
    }
    let start = out.len();
    let mut left = number;
    for (mask, name) in &map.entries {
        if *mask != 0 && left & mask == *mask {
            if out.len() > start {
                out.push('|');
            }
            out.push_str(name.trim_end());
            left &= !mask;
        }
    }
    if out.len() == start {
        return false;
    }
    if left != 0 {
        let _ = write!(out, "|{left:#x}");
    }
    true
}

/// Everything that has neither members nor quotes.
fn plain(out: &mut String, value: &Value<'_>) {
    let mut digits = itoa::Buffer::new();
    // Writing into a String cannot fail.
    let _ = match value {
        Value::Bool(v) => out.write_str(if *v { "true" } else { "false" }),
        Value::U8(v) => out.write_str(digits.format(*v)),
        Value::I8(v) => out.write_str(digits.format(*v)),
        Value::I16(v) => out.write_str(digits.format(*v)),
        Value::U16(v) | Value::Port(v) => out.write_str(digits.format(*v)),
        Value::I32(v) => out.write_str(digits.format(*v)),
        Value::U32(v) => out.write_str(digits.format(*v)),
        Value::I64(v) => out.write_str(digits.format(*v)),
        Value::U64(v) => out.write_str(digits.format(*v)),
        Value::F32(v) => write!(out, "{v}"),
        Value::F64(v) => write!(out, "{v}"),
        Value::Hex(v) | Value::Pointer(v) => {
            hex(out, *v, 1);
            Ok(())
        }
        Value::Status(v) => {
            hex(out, u64::from(*v), 8);
            Ok(())
        }
        Value::Guid(guid) => write!(out, "{guid}"),
        Value::FileTime(ticks) => {
            file_time(out, *ticks);
            Ok(())
        }
        Value::SystemTime([year, month, _, day, hour, minute, second, ms]) => {
            write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
        }
        Value::Sid(bytes) => {
            sid(out, bytes);
            Ok(())
        }
        Value::Bytes(bytes) => {
            hex_bytes(out, bytes);
            Ok(())
        }
        Value::IPv4([a, b, c, d]) => write!(out, "{a}.{b}.{c}.{d}"),
        Value::IPv6(bytes) => write!(out, "{}", std::net::Ipv6Addr::from(*bytes)),
        Value::SockAddr(bytes) => {
            sock_addr(out, bytes);
            Ok(())
        }
        Value::Str(_) | Value::Numbers(_) | Value::Array(_) | Value::Struct(_) => Ok(()),
    };
}

const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// Appends a number as `0x` and its hex digits, at least so many.
fn hex(out: &mut String, number: u64, least: usize) {
    let mut text = *b"0x0000000000000000";
    let digits = (16 - number.leading_zeros() as usize / 4).max(least).min(16);
    for (at, digit) in text.iter_mut().skip(2).take(digits).enumerate() {
        *digit = DIGITS[(number >> (4 * (digits - 1 - at)) & 15) as usize] as u8;
    }
    out.push_str(text.get(..2 + digits).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or(""));
}

/// Appends bytes as lower-case hex digits.
pub fn hex_bytes(out: &mut String, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Appends a FILETIME as `2021-09-09T12:59:35.7900000Z`; times before 1601 as the bare number.
pub fn file_time(out: &mut String, ticks: i64) {
    if ticks < 0 {
        let _ = write!(out, "{ticks}");
    } else {
        Civil::of_filetime(ticks).push_iso(out);
    }
}

/// Appends a SID as `S-1-5-21-…`; damaged ones as hex, the empty one as `-`.
pub fn sid(out: &mut String, bytes: &[u8]) {
    if bytes.is_empty() {
        out.push('-');
        return;
    }
    let header = bytes.first_chunk::<8>();
    let Some(&[revision, count, a0, a1, a2, a3, a4, a5]) = header else {
        hex_bytes(out, bytes);
        return;
    };
    let authority = u64::from_be_bytes([0, 0, a0, a1, a2, a3, a4, a5]);
    if authority >> 32 == 0 {
        let _ = write!(out, "S-{revision}-{authority}");
    } else {
        let _ = write!(out, "S-{revision}-{authority:#x}");
    }
    for i in 0..usize::from(count) {
        match bytes.u32_at(8 + 4 * i) {
            Some(sub) => {
                let _ = write!(out, "-{sub}");
            }
            None => break,
        }
    }
}

/// `AF_INET` and `AF_INET6` as address and port; other families as hex.
fn sock_addr(out: &mut String, bytes: &[u8]) {
    let port = bytes.u16_at(2).map(u16::swap_bytes);
    match (bytes.u16_at(0), port) {
        (Some(2), Some(port)) => {
            if let Some([a, b, c, d]) = bytes.array(4) {
                let _ = write!(out, "{a}.{b}.{c}.{d}:{port}");
                return;
            }
        }
        (Some(23), Some(port)) => {
            if let Some(address) = bytes.array::<16>(8) {
                let _ = write!(out, "[{}]:{port}", std::net::Ipv6Addr::from(address));
                return;
            }
        }
        _ => {}
    }
    hex_bytes(out, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::InType;
    use std::sync::Arc;

    fn text(value: Value<'_>) -> String {
        let mut out = String::new();
        format_value(&mut out, &value, None);
        out
    }

    #[test]
    fn times_are_iso_and_utc() {
        assert_eq!(text(Value::FileTime(0)), "1601-01-01T00:00:00.0000000Z");
        assert_eq!(text(Value::FileTime(132_756_659_757_900_000)), "2021-09-09T12:59:35.7900000Z");
        assert_eq!(text(Value::FileTime(125_963_423_999_999_999)), "2000-02-29T23:59:59.9999999Z");
        assert_eq!(text(Value::FileTime(-5)), "-5");
        assert_eq!(text(Value::FileTime(i64::MAX)).len(), "30828-09-14T02:48:05.4775807Z".len());
        assert_eq!(text(Value::SystemTime([2021, 9, 4, 9, 12, 59, 35, 30])), "2021-09-09T12:59:35.030Z");
    }

    #[test]
    fn sids_and_addresses() {
        let system = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        assert_eq!(text(Value::Sid(&system)), "S-1-5-18");
        assert_eq!(text(Value::Sid(&system[..9])), "S-1-5");
        assert_eq!(text(Value::Sid(&[1, 2])), "0102");
        assert_eq!(text(Value::IPv4([10, 0, 0, 1])), "10.0.0.1");
        assert_eq!(text(Value::SockAddr(&[2, 0, 0x01, 0xbb, 8, 8, 4, 4, 0, 0])), "8.8.4.4:443");
        assert_eq!(text(Value::SockAddr(&[9, 0, 1])), "090001");
        assert_eq!(text(Value::Status(0xC000_0022)), "0xc0000022");
    }

    fn mapped(bitmap: bool) -> Field {
        let map = ValueMap {
            name: "M".into(),
            bitmap,
            entries: vec![(1, "One ".into()), (2, "Two".into()), (4, "Four".into())],
        };
        Field { map: Some(Arc::new(map)), ..Field::plain("F", InType::UInt32) }
    }

    #[test]
    fn names_of_values_and_bits() {
        let show = |bitmap, number| {
            let mut out = String::new();
            format_value(&mut out, &Value::U32(number), Some(&mapped(bitmap)));
            out
        };
        assert_eq!(show(false, 1), "One");
        assert_eq!(show(false, 3), "3");
        assert_eq!(show(true, 3), "One|Two");
        assert_eq!(show(true, 9), "One|0x8");
        assert_eq!(show(true, 0), "0");
    }

    #[test]
    fn repeated_names_are_numbered_however_many_fields_there_are() {
        for count in [3, 200] {
            let fields = vec![Field::plain("A", InType::UInt8); count];
            let schema = EventSchema { fields, ..crate::testing::empty_schema() };
            let payload = vec![1; count];
            let decoded = crate::read::read(&schema, &payload, 8);
            let mut out = String::new();
            to_json(&mut out, &schema, &decoded);
            assert!(out.starts_with(r#"{"A":1,"A_2":1,"A_3":1"#), "{out}");
            assert!(out.contains(&format!("\"A_{count}\":1}}")), "{out}");
        }
    }

    #[test]
    fn text_of_an_event_is_bounded() {
        let mut items = Field::plain("Items", InType::Struct);
        items.members = vec![Field::plain(&"n".repeat(5000), InType::UInt8)];
        items.count = crate::schema::Count::Rest;
        let schema = EventSchema { fields: vec![items], ..crate::testing::empty_schema() };
        let payload = vec![7; 60_000];
        let decoded = crate::read::read(&schema, &payload, 8);
        let mut out = String::new();
        to_json(&mut out, &schema, &decoded);
        assert!(out.len() < MAX_TEXT + 20_000 && out.ends_with(r#"],"_cut":true}"#), "{}", out.len());
        out.clear();
        format_value(&mut out, &decoded.values[0], schema.fields.first());
        assert!(out.len() < MAX_TEXT + 20_000 && out.ends_with("...]"), "{}", out.len());
    }

    #[test]
    fn json_is_escaped_and_keys_are_unique() {
        let schema = EventSchema {
            fields: vec![
                Field::plain("A", InType::UInt64),
                Field::plain("A", InType::UnicodeString),
                Field::plain("P", InType::Pointer),
                Field::plain("D", InType::Double),
            ],
            ..crate::testing::empty_schema()
        };
        let values = vec![
            Value::U64(u64::MAX),
            Value::Str("a\"\u{1b}\\".into()),
            Value::Pointer(16),
            Value::F64(f64::NAN),
        ];
        let mut out = String::new();
        to_json(&mut out, &schema, &Decoded { values, truncated: true, rest: &[1, 0xab] });
        let expected = "{\"A\":18446744073709551615,\"A_2\":\"a\\\"\\u001b\\\\\",\"P\":\"0x10\",\"D\":\"NaN\",\
                        \"_truncated\":true,\"_rest\":\"01ab\"}";
        assert_eq!(out, expected);
    }
}
