//! JSON: the schema `docs/reference/why.schema.json`.
//!
//! Names from a trace are whole. Characters that change what a terminal does or how text reads are written as `\u`
//! escapes, which any reader of JSON turns back.

use crate::Report;
use etwhy_export::is_unsafe;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use std::io::{self, Write};

/// Writes the report as JSON with a line end.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write_any(report, out)
}

/// As [`write()`], for whatever holds reports.
///
/// # Errors
/// Those of `out`.
pub fn write_any(report: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

/// As [`serde_json::to_writer_pretty`], with what is unsafe as `\u` escapes. All commands write JSON with it.
///
/// # Errors
/// Those of `out`, and of values that JSON cannot hold.
pub fn to_writer_pretty(out: impl Write, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    let formatter = Harmless { inner: PrettyFormatter::new(), markup: false };
    value.serialize(&mut serde_json::Serializer::with_formatter(out, formatter))
}

/// As [`to_writer_pretty`], on one line.
///
/// # Errors
/// As [`to_writer_pretty`].
pub fn to_writer(out: impl Write, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(
        out,
        Harmless { inner: Compact, markup: false },
    ))
}

/// JSON that may stand between `<script type="application/json">` and `</script>`: `<`, `>` and `&` are
/// escapes, so nothing in it ends the element or begins a comment.
///
/// # Errors
/// None that a report makes.
pub(crate) fn embedded(report: &impl Serialize) -> io::Result<String> {
    let mut out = Vec::new();
    let formatter = Harmless { inner: Compact, markup: true };
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    report.serialize(&mut serializer).map_err(io::Error::from)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// The formatter without blanks.
struct Compact;

impl Formatter for Compact {}

/// Writes what is unsafe as `\u` escapes.
struct Harmless<F> {
    inner: F,
    markup: bool,
}

/// Forwards methods of [`Formatter`] that have a writer and nothing else, or a flag.
macro_rules! forward {
    ($($name:ident($($argument:ident: $ty:ty)?);)*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $ty)?) -> io::Result<()> {
            self.inner.$name(writer $(, $argument)?)
        }
    )*};
}

impl<F: Formatter> Formatter for Harmless<F> {
    forward! {
        begin_array(); end_array(); begin_array_value(first: bool); end_array_value();
        begin_object(); end_object(); begin_object_key(first: bool); end_object_key();
        begin_object_value(); end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let escape = |c: char| is_unsafe(c) || (self.markup && matches!(c, '<' | '>' | '&'));
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| escape(*c)) {
            let (plain, from) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = from.get(c.len_utf8()..).unwrap_or("");
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str, markup: bool) -> String {
        let mut out = Vec::new();
        let formatter = Harmless { inner: Compact, markup };
        text.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_gets_out_of_a_string() {
        let text = "</script><!-- &\u{202e}\u{9b}\u{e0041} \u{1b}[31m日\"\\";
        let plain = string(text, false);
        assert_eq!(plain, r#""</script><!-- &\u202e\u009b\udb40\udc41 \u001b[31m日\"\\""#);
        assert_eq!(
            string(text, true),
            r#""\u003c/script\u003e\u003c!-- \u0026\u202e\u009b\udb40\udc41 \u001b[31m日\"\\""#
        );
        for json in [plain, string(text, true)] {
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
