//! One of our values against PerfView's text of it.

use etwhy_decode::Value;
use etwhy_decode::format::{file_time, format_value};
use etwhy_decode::schema::Field;

/// A decoded value that outlives its record.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    /// A number and its width in bits; 0 for "hex of 32 or 64 bits".
    Number(i128, u32),
    /// A floating-point number.
    Real(f64),
    /// Text, and everything that is shown as text (GUIDs, addresses, SIDs, bytes).
    Text(String),
    /// FILETIME.
    Time(i64),
}

impl Plain {
    fn of(value: &Value<'_>) -> Plain {
        match value {
            Value::Bool(v) => Plain::Number(i128::from(*v), 8),
            Value::I8(v) => Plain::Number(i128::from(*v), 8),
            Value::U8(v) => Plain::Number(i128::from(*v), 8),
            Value::I16(v) => Plain::Number(i128::from(*v), 16),
            Value::U16(v) | Value::Port(v) => Plain::Number(i128::from(*v), 16),
            Value::I32(v) => Plain::Number(i128::from(*v), 32),
            Value::U32(v) | Value::Status(v) => Plain::Number(i128::from(*v), 32),
            Value::I64(v) => Plain::Number(i128::from(*v), 64),
            Value::U64(v) => Plain::Number(i128::from(*v), 64),
            Value::Hex(v) | Value::Pointer(v) => Plain::Number(i128::from(*v), 0),
            Value::F32(v) => Plain::Real(f64::from(*v)),
            Value::F64(v) => Plain::Real(*v),
            Value::FileTime(v) => Plain::Time(*v),
            other => {
                let mut text = String::new();
                format_value(&mut text, other, None);
                Plain::Text(text)
            }
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<i128> {
        match self {
            Plain::Number(v, _) => Some(*v),
            _ => None,
        }
    }
}

/// All values by name; elements and members get names like `Values.0.TypeID`.
pub fn flatten(fields: &[Field], values: &[Value<'_>]) -> Vec<(String, Plain)> {
    let mut out = Vec::new();
    for (field, value) in fields.iter().zip(values) {
        add(&mut out, field.name.to_string(), field, value);
    }
    out
}

fn add(out: &mut Vec<(String, Plain)>, name: String, field: &Field, value: &Value<'_>) {
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                add(out, format!("{name}.{i}"), field, item);
            }
        }
        Value::Numbers(items) => {
            for (i, item) in items.iter().enumerate() {
                add(out, format!("{name}.{i}"), field, &item);
            }
        }
        Value::Struct(members) => {
            for (member, value) in field.members.iter().zip(members) {
                add(out, format!("{name}.{}", member.name), member, value);
            }
        }
        other => out.push((name, Plain::of(other))),
    }
}

/// A text as the baseline writes it: cut at 20 UTF-16 units, then line ends made visible.
pub fn cut(text: &str) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let out = match units.get(..20) {
        Some(head) if units.len() > 20 => String::from_utf16_lossy(head) + "...",
        _ => text.to_owned(),
    };
    out.replace('\n', "\\n").replace('\r', "\\r")
}

/// A FILETIME as the baseline writes times: `yy/MM/dd HH:mm:ss.ffffff`, UTC, cut.
pub fn time(filetime: i64) -> String {
    let mut iso = String::new();
    file_time(&mut iso, filetime);
    cut(&format!("{} {}", iso[2..10].replace('-', "/"), &iso[11..26]))
}

/// A number as PerfView writes it: hex, or decimal with separators; `None` if it is none.
pub fn parse_number(text: &str) -> Option<i128> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(i128::from);
    }
    match text {
        "True" => Some(1),
        "False" => Some(0),
        _ => text.replace(',', "").parse().ok(),
    }
}

/// A decimal number with separators.
pub fn separated(number: i128) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = if number < 0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Equal, whichever way the same bits are shown: PerfView shows many unsigned fields as signed ones.
pub fn same(perfview: &str, ours: &Plain) -> bool {
    match ours {
        Plain::Number(v, bits) => {
            let widths: &[u32] = if *bits == 0 { &[64, 32] } else { std::slice::from_ref(bits) };
            widths.iter().any(|&bits| {
                let modulus = 1i128 << bits;
                let (unsigned, half) = (v.rem_euclid(modulus), modulus / 2);
                if *v >= modulus {
                    return false;
                }
                let signed = if unsigned < half { unsigned } else { unsigned - modulus };
                match parse_number(perfview) {
                    Some(theirs) => theirs == *v || theirs == unsigned || theirs == signed,
                    // Long numbers are cut like texts.
                    None => [unsigned, signed].iter().any(|n| cut(&separated(*n)) == perfview),
                }
            })
        }
        Plain::Real(v) => perfview.replace(',', "").parse::<f64>().is_ok_and(|p| (p - v).abs() < 1e-3),
        Plain::Text(text) => cut(text) == perfview,
        Plain::Time(t) => time(*t) == perfview,
    }
}

/// The value in the JSON of the `event` table is the decoded one, or a name for it.
pub fn json_agrees(json: &serde_json::Value, plain: &Plain) -> bool {
    use serde_json::Value as Json;
    match (json, plain) {
        (Json::Bool(b), Plain::Number(v, _)) => i128::from(*b) == *v,
        (Json::Number(n), Plain::Number(v, _)) => n.to_string() == v.to_string(),
        (Json::Number(n), Plain::Real(v)) => n.as_f64() == Some(*v),
        (Json::String(s), Plain::Number(v, _)) => match s.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).is_ok_and(|n| i128::from(n) == *v),
            None => !s.is_empty() && s.parse::<f64>().is_err(),
        },
        (Json::String(s), Plain::Text(text)) => s == text,
        (Json::String(s), Plain::Time(t)) => {
            let mut iso = String::new();
            file_time(&mut iso, *t);
            *s == iso
        }
        _ => false,
    }
}
