//! Fields of an event as a JSON object.

use crate::binxml::{Decoder, Event, Fault, Items, Name, Value, push_decimal};

/// Appends the fields as a JSON object: numbers as numbers, booleans as booleans, arrays as arrays, all else as Windows' text; null where
/// there is no value. Nothing is appended if there are no fields.
///
/// # Errors
/// If the event cannot be read to its end; what stands before is in the object.
pub fn push_fields(decoder: &mut Decoder, event: &Event<'_>, out: &mut String) -> Result<(), Fault> {
    let begin = out.len();
    let mut first = true;
    let result = decoder.fields(event, &mut |name: Name<'_>, value: Value<'_>| {
        out.push(if first { '{' } else { ',' });
        first = false;
        quoted(out, |out| name.push(out));
        out.push(':');
        push_value(out, &value);
    });
    if out.len() > begin {
        out.push('}');
    }
    result
}

/// Appends a value as JSON.
pub fn push_value(out: &mut String, value: &Value<'_>) {
    match *value {
        Value::Null => out.push_str("null"),
        Value::Int(_) | Value::UInt(_) | Value::Bool(_) => value.push_text(out),
        Value::Real32(x) if x.is_finite() => value.push_text(out),
        Value::Real64(x) if x.is_finite() => value.push_text(out),
        Value::Array(kind, bytes) => {
            out.push('[');
            for (n, item) in Items::new(kind, bytes).enumerate() {
                if n > 0 {
                    out.push(',');
                }
                push_value(out, &item);
            }
            out.push(']');
        }
        _ => quoted(out, |out| value.push_text(out)),
    }
}

/// Appends what `write` appends as a JSON text.
pub fn quoted(out: &mut String, write: impl FnOnce(&mut String)) {
    out.push('"');
    let begin = out.len();
    write(out);
    let odd = |c: char| c < ' ' || c == '"' || c == '\\';
    if let Some(at) = out.get(begin..).and_then(|text| text.find(odd)) {
        let text = out.split_off(begin + at);
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c < ' ' => {
                    out.push_str("\\u00");
                    out.push(char::from(b'0' + (c as u8 >> 4)));
                    out.push(char::from_digit(u32::from(c) & 15, 16).unwrap_or('0'));
                }
                c => out.push(c),
            }
        }
    }
    out.push('"');
}

/// Appends `,"name":` or, for the first, `"name":`.
pub fn key(out: &mut String, name: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
}

/// Appends a number with its name.
pub fn number(out: &mut String, name: &str, n: u64) {
    key(out, name);
    push_decimal(out, n);
}
