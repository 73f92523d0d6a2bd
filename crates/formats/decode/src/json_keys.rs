//! JSON: strings, and names of fields as keys of objects.

use crate::schema::EventSchema;
use foldhash::HashMap;
use std::fmt::Write as _;

/// The names of a schema's fields as JSON has them, for who writes many payloads of it: with quotes and colon, and with a
/// number where a name was there before.
#[derive(Clone, Debug, Default)]
pub struct JsonKeys(Vec<Box<str>>);

impl JsonKeys {
    /// The keys of a schema's fields, unless they are longer than `most` bytes together.
    pub fn prepare(schema: &EventSchema, most: usize) -> Option<JsonKeys> {
        let fields = &schema.fields;
        let bytes: usize = fields.iter().map(|field| field.name.len() + 8).sum();
        if bytes > most {
            return None;
        }
        let mut keys = Vec::with_capacity(fields.len());
        let mut names = Repeated::default();
        for field in fields {
            let mut key = String::new();
            names.key(&mut key, &field.name);
            keys.push(key.into_boxed_str());
        }
        Some(JsonKeys(keys))
    }

    /// In the order of the fields.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| &**key)
    }
}

/// Names that were there before: JSON objects with the same key twice lose one of the values in most readers.
#[derive(Default)]
pub(crate) struct Repeated<'a>(HashMap<&'a str, usize>);

impl<'a> Repeated<'a> {
    /// Appends a name as a key.
    pub(crate) fn key(&mut self, out: &mut String, name: &'a str) {
        let known = self.0.entry(name).or_default();
        *known += 1;
        numbered_key(out, name, *known);
    }
}

pub(crate) fn numbered_key(out: &mut String, name: &str, number: usize) {
    if number == 1 {
        json_string(out, name);
    } else {
        json_string(out, &format!("{name}_{number}"));
    }
    out.push(':');
}

/// Appends a JSON string with its quotes; control characters are escaped.
pub fn json_string(out: &mut String, text: &str) {
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x20..=0x7e | 0x80.. => continue,
            _ => "",
        };
        out.push_str(text.get(from..at).unwrap_or_default());
        out.push_str(escape);
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        }
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.push('"');
}
