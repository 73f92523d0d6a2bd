//! JSON: an array of objects, or one object per line.
//!
//! Integers are integers, also those beyond 2^53 (read them with a parser that keeps 64 bits). Numbers
//! that JSON cannot express (NaN, infinity) are null.

use std::io::Write;

use etwhy_table::{ColumnType, Selection, Value};

use crate::escape_json;
use crate::{Format, Options, Result};

pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "json",
        extensions: &["json"],
        about: "one JSON array of objects",
        binary: false,
        write: write_array,
    },
    Format {
        name: "jsonl",
        extensions: &["jsonl", "ndjson"],
        about: "one JSON object per line, for streams",
        binary: false,
        write: write_lines,
    },
];

fn write_array(selection: &Selection<'_>, options: &Options, out: &mut (dyn Write + Send)) -> Result<()> {
    out.write_all(b"[")?;
    write_rows(selection, options, out, ",\n", "\n")?;
    out.write_all(b"\n]\n")?;
    Ok(())
}

fn write_lines(selection: &Selection<'_>, options: &Options, out: &mut (dyn Write + Send)) -> Result<()> {
    write_rows(selection, options, out, "\n", "")?;
    if !selection.is_empty() {
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_rows(
    selection: &Selection<'_>,
    options: &Options,
    out: &mut (dyn Write + Send),
    between: &str,
    before: &str,
) -> Result<()> {
    let spec = selection.spec();
    let reader = selection.reader();
    let mut names = Vec::new();
    for (i, column) in spec.columns.iter().enumerate() {
        let mut name = if i == 0 { b"{".to_vec() } else { b",".to_vec() };
        write_text(&column.name, &mut name)?;
        name.push(b':');
        names.push(name);
    }
    let mut line: Vec<u8> = Vec::new();
    let mut digits = itoa::Buffer::new();
    for (i, row) in selection.row_ids().enumerate() {
        line.clear();
        line.extend_from_slice(if i == 0 { before } else { between }.as_bytes());
        for (shown, (name, column)) in names.iter().zip(spec.columns.iter()).enumerate() {
            line.extend_from_slice(name);
            match reader.value(row, shown) {
                Value::Null => line.extend_from_slice(b"null"),
                Value::I64(v) if options.hex && column.unit.is_hex() => {
                    write!(line, "\"{}\"", crate::hex::Hex(v, column.ty == ColumnType::I32))?;
                }
                Value::I64(v) => line.extend_from_slice(digits.format(v).as_bytes()),
                Value::F64(v) => serde_json::to_writer(&mut line, &v)?,
                Value::Bool(v) => write!(line, "{v}")?,
                Value::Text(text) => write_text(text, &mut line)?,
            }
        }
        line.extend_from_slice(if names.is_empty() { b"{}" } else { b"}" });
        out.write_all(&line)?;
    }
    Ok(())
}

/// A JSON string in which everything that could act on a terminal is escaped.
fn write_text(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    if text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
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
