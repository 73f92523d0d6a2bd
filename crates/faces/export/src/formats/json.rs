//! JSON: an array of objects, or one object per line.
//!
//! Integers are integers, also those beyond 2^53 (read them with a parser that keeps 64 bits). Numbers
//! that JSON cannot express (NaN, infinity) are null.

use std::io::Write;

use etwhy_table::{ColumnSpec, ColumnType, Selection, TableSpec, Value};

use crate::escape_json;
use crate::format::write_at_once;
use crate::{Format, Options, PartWriter, Result};

pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "json",
        extensions: &["json"],
        about: "one JSON array of objects",
        binary: false,
        write: write_array,
        parts: Some(start_array),
    },
    Format {
        name: "jsonl",
        extensions: &["jsonl", "ndjson"],
        about: "one JSON object per line, for streams",
        binary: false,
        write: write_lines,
        parts: Some(start_lines),
    },
];

fn write_array(selection: &Selection<'_>, options: &Options, out: &mut (dyn Write + Send)) -> Result<()> {
    write_at_once(start_array, selection, options, out)
}

fn write_lines(selection: &Selection<'_>, options: &Options, out: &mut (dyn Write + Send)) -> Result<()> {
    write_at_once(start_lines, selection, options, out)
}

fn start_array<'o>(
    spec: &TableSpec,
    options: &Options,
    out: &'o mut (dyn Write + Send),
) -> Result<Box<dyn PartWriter + 'o>> {
    out.write_all(b"[")?;
    let marks = Marks { first: "\n", next: ",\n", after: "", end: "\n]\n" };
    Ok(Box::new(Rows::new(spec, options, marks, out)?))
}

fn start_lines<'o>(
    spec: &TableSpec,
    options: &Options,
    out: &'o mut (dyn Write + Send),
) -> Result<Box<dyn PartWriter + 'o>> {
    let marks = Marks { first: "", next: "", after: "\n", end: "" };
    Ok(Box::new(Rows::new(spec, options, marks, out)?))
}

/// What stands before the first row and before each other one, behind each row, and at the end.
struct Marks {
    first: &'static str,
    next: &'static str,
    after: &'static str,
    end: &'static str,
}

struct Rows<'o> {
    out: &'o mut (dyn Write + Send),
    marks: Marks,
    /// What stands before the value of each column.
    names: Vec<Vec<u8>>,
    /// Which numbers are written as hexadecimal text, and whether they have 32 bits.
    hex: Vec<Option<bool>>,
    is_first: bool,
    buffer: Vec<u8>,
}

/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 16;

impl<'o> Rows<'o> {
    fn new(
        spec: &TableSpec,
        options: &Options,
        marks: Marks,
        out: &'o mut (dyn Write + Send),
    ) -> Result<Rows<'o>> {
        let mut names = Vec::new();
        for (i, column) in spec.columns.iter().enumerate() {
            let mut name = if i == 0 { b"{".to_vec() } else { b",".to_vec() };
            write_text(&column.name, &mut name)?;
            name.push(b':');
            names.push(name);
        }
        let is_narrow = |c: &ColumnSpec| (options.hex && c.unit.is_hex()).then_some(c.ty == ColumnType::I32);
        let hex = spec.columns.iter().map(is_narrow).collect();
        Ok(Rows { out, marks, names, hex, is_first: true, buffer: Vec::new() })
    }
}

impl PartWriter for Rows<'_> {
    fn part(&mut self, rows: &Selection<'_>) -> Result<()> {
        let reader = rows.reader();
        let buffer = &mut self.buffer;
        let mut digits = itoa::Buffer::new();
        for place in rows.row_ids().filter_map(|row| reader.place(row)) {
            let first = std::mem::take(&mut self.is_first);
            buffer.extend_from_slice(if first { self.marks.first } else { self.marks.next }.as_bytes());
            for (shown, (name, hex)) in self.names.iter().zip(&self.hex).enumerate() {
                buffer.extend_from_slice(name);
                match (reader.value_at(place, shown), hex) {
                    (Value::Null, _) => buffer.extend_from_slice(b"null"),
                    (Value::I64(v), Some(narrow)) => write!(buffer, "\"{}\"", crate::hex::Hex(v, *narrow))?,
                    (Value::I64(v), None) => buffer.extend_from_slice(digits.format(v).as_bytes()),
                    (Value::F64(v), _) => serde_json::to_writer(&mut *buffer, &v)?,
                    (Value::Bool(v), _) => {
                        buffer.extend_from_slice(if v { "true" } else { "false" }.as_bytes())
                    }
                    (Value::Text(text), _) => write_text(text, buffer)?,
                }
            }
            buffer.extend_from_slice(if self.names.is_empty() { b"{}" } else { b"}" });
            buffer.extend_from_slice(self.marks.after.as_bytes());
            if buffer.len() >= GATHERED {
                self.out.write_all(buffer)?;
                buffer.clear();
            }
        }
        self.out.write_all(buffer)?;
        buffer.clear();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.out.write_all(self.marks.end.as_bytes())?;
        Ok(())
    }
}

/// A JSON string in which everything that could act on a terminal is escaped.
fn write_text(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    // Both looks at all bytes are without branches, so they are quick.
    let plain = |byte: u8| (0x20..0x7f).contains(&byte);
    let marked = |byte: u8| matches!(byte, b'"' | b'\\');
    if text.bytes().fold(true, |all, byte| all & plain(byte)) {
        let marks = text.bytes().fold(0usize, |sum, byte| sum + usize::from(marked(byte)));
        out.push(b'"');
        if marks == 0 {
            out.extend_from_slice(text.as_bytes());
        } else {
            // Text of fields is JSON itself, and has a quote every few bytes.
            out.resize(start + 1 + text.len() + marks, b'\\');
            let mut at = start + 1;
            for byte in text.bytes() {
                at += usize::from(marked(byte));
                if let Some(place) = out.get_mut(at) {
                    *place = byte;
                }
                at += 1;
            }
        }
        out.push(b'"');
        return Ok(());
    }
    serde_json::to_writer(&mut *out, text)?;
    // What serde_json leaves as it is begins with DEL.
    if text.bytes().all(|b| b < 0x7f) {
        return Ok(());
    }
    let written = std::str::from_utf8(out.get(start..).unwrap_or_default()).unwrap_or("");
    if let Some(json) = escape_json(written) {
        out.truncate(start);
        out.extend_from_slice(json.as_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::{sample, text};

    #[test]
    fn objects_are_exact() {
        let table = sample();
        let out = text(Format::by_name("json").unwrap(), &table, &Options::default());
        let rows: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(rows[0]["ts_ns"], 1_500_000_000);
        assert_eq!(rows[0]["address"], -8_796_093_022_208i64);
        assert_eq!(rows[0]["path"], "=a,\"b\"");
        assert_eq!(rows[1]["wait_ns"], serde_json::Value::Null);
        assert_eq!(rows[1]["path"], "\u{1b}[31mred");
        assert_eq!(rows.as_array().unwrap().len(), 2);
        let lines =
            text(Format::by_name("jsonl").unwrap(), &table, &Options { hex: true, ..Options::default() });
        let rows: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!((rows.len(), &rows[0]["status"]), (2, &"0xc0000034".into()));
    }

    #[test]
    fn an_empty_table_is_an_empty_array() {
        let table = sample();
        let mut out = Vec::new();
        let none = Selection::all(&table).top(0);
        write_array(&none, &Options::default(), &mut out).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), serde_json::json!([]));
        out.clear();
        write_lines(&none, &Options::default(), &mut out).unwrap();
        assert!(out.is_empty());
    }

    #[test]
    fn invisible_characters_are_escaped_and_come_back() {
        let hostile = "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}\"\\é";
        let mut out = Vec::new();
        write_text(hostile, &mut out).unwrap();
        let json = String::from_utf8(out).unwrap();
        assert!(!json.chars().any(crate::is_unsafe), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
