//! Message templates with inserts, as `FormatMessage` and WPP write them.

use crate::format::{format_value, hex_bytes};
use crate::schema::{DecodedBy, EventSchema};
use crate::value::Value;
use std::fmt::Write;

/// Longest text that is produced; inserts repeat values, so a template could multiply them.
const MAX_TEXT: usize = 256 * 1024;

/// Appends a message with `%1`, `%2`… (`%10`, `%11`… for WPP) replaced by the values of the event's fields.
///
/// `%n` is a new line, `%t` a tab, `%%` a percent sign, `%0` ends the text; `%1!x!` gives a format.
pub fn render_message(out: &mut String, schema: &EventSchema, values: &[Value<'_>]) {
    // WPP keeps the numbers 1 to 9 for what the header says.
    let first = if schema.decoded_by == DecodedBy::Wpp { 10 } else { 1 };
    render(out, &schema.message, first, schema, values);
}

/// Renders a template whose first field has the number `first`.
fn render(out: &mut String, template: &str, first: usize, schema: &EventSchema, values: &[Value<'_>]) {
    let start = out.len();
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(rest.get(..at).unwrap_or(""));
        rest = rest.get(at + 1..).unwrap_or("");
        if out.len() - start > MAX_TEXT {
            return;
        }
        let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            let mut chars = rest.chars();
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('b') => out.push(' '),
                Some(c @ ('%' | '!' | '.' | ' ')) => out.push(c),
                Some(c) => {
                    out.push('%');
                    out.push(c);
                }
                None => out.push('%'),
            }
            rest = chars.as_str();
            continue;
        }
        let number: usize = rest.get(..digits).and_then(|d| d.parse().ok()).unwrap_or(0);
        rest = rest.get(digits..).unwrap_or("");
        let format = bang_format(&mut rest);
        if number == 0 {
            if first == 1 {
                return;
            }
            // In WPP templates %0 stands for the prefix, which is shown in columns of its own.
            rest = rest.strip_prefix(' ').unwrap_or(rest);
            continue;
        }
        let insert = number.checked_sub(first).and_then(|i| Some((values.get(i)?, schema.fields.get(i)?)));
        match insert {
            Some((value, field)) => {
                let named = field.map.is_some() && format.is_none_or(|f| f.ends_with('s'));
                if named {
                    format_value(out, value, Some(field));
                } else {
                    printf(out, value, format.unwrap_or("s"));
                }
            }
            None => {
                let _ = write!(out, "%{number}");
            }
        }
    }
    out.push_str(rest);
}

/// Takes `!format!` off the front.
fn bang_format<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let inner = rest.strip_prefix('!')?;
    let end = inner.find('!').filter(|end| *end <= 16)?;
    *rest = inner.get(end + 1..)?;
    inner.get(..end)
}

/// One value under a printf format such as `08X`, `I64d`, `-20s`, `p`.
fn printf(out: &mut String, value: &Value<'_>, format: &str) {
    let (head, kind) = match format.char_indices().next_back() {
        Some((at, c)) => (format.get(..at).unwrap_or(""), c),
        None => ("", 's'),
    };
    let flags = head.bytes().take_while(|b| b"-+ #0".contains(b)).count();
    let (flags, head) = head.split_at(flags);
    let digits = head.bytes().take_while(u8::is_ascii_digit).count();
    let width = head.get(..digits).and_then(|d| d.parse::<usize>().ok()).unwrap_or(0).min(64);
    let mut text = String::new();
    match (kind, value.as_u64(), value.as_i64()) {
        ('x', Some(v), _) => drop(write!(text, "{:x}", narrow(value, v))),
        ('X', Some(v), _) => drop(write!(text, "{:X}", narrow(value, v))),
        ('p' | 'P', Some(v), _) => drop(write!(text, "{v:#x}")),
        ('o', Some(v), _) => drop(write!(text, "{:o}", narrow(value, v))),
        ('u', Some(v), _) => drop(write!(text, "{}", narrow(value, v))),
        ('d' | 'i', _, Some(v)) => match value {
            Value::U32(v) => drop(write!(text, "{}", *v as i32)),
            _ => drop(write!(text, "{v}")),
        },
        ('c', Some(v), _) => text.extend(char::from_u32(v as u32)),
        _ => match value {
            Value::Bytes(bytes) => hex_bytes(&mut text, bytes),
            _ => format_value(&mut text, value, None),
        },
    }
    let missing = width.saturating_sub(text.chars().count());
    let zeros = flags.contains('0') && !flags.contains('-') && !matches!(kind, 's' | 'S');
    if flags.contains('-') {
        out.push_str(&text);
    }
    for _ in 0..missing {
        out.push(if zeros { '0' } else { ' ' });
    }
    if !flags.contains('-') {
        out.push_str(&text);
    }
}

/// Cuts a sign-extended number back to its own width.
fn narrow(value: &Value<'_>, number: u64) -> u64 {
    match value {
        Value::I8(_) => number & 0xFF,
        Value::I16(_) => number & 0xFFFF,
        Value::I32(_) => number & 0xFFFF_FFFF,
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Field, InType};
    use crate::testing::empty_schema;

    fn show(template: &str, first: usize, values: &[Value<'_>]) -> String {
        let schema = EventSchema {
            fields: values.iter().map(|_| Field::plain("F", InType::UInt32)).collect(),
            ..empty_schema()
        };
        let mut out = String::new();
        render(&mut out, template, first, &schema, values);
        out
    }

    #[test]
    fn manifest_inserts() {
        let values = [Value::Str("disk".into()), Value::U32(255)];
        assert_eq!(show("The %1 is %2%% full.%n%3", 1, &values), "The disk is 255% full.\n%3");
        assert_eq!(show("%2!08X!|%2!5d!|%1!-6s!|", 1, &values), "000000FF|  255|disk  |");
        assert_eq!(show("a%0b", 1, &values), "a");
        assert_eq!(show("100%", 1, &[]), "100%");
    }

    #[test]
    fn wpp_inserts_start_at_ten() {
        let values = [Value::I32(-1), Value::Status(0xC000_0001)];
        assert_eq!(show("%0 [f] %10!x! <%11!s!>", 10, &values), "[f] ffffffff <0xc0000001>");
        assert_eq!(show("%9 %12", 10, &values), "%9 %12");
    }

    #[test]
    fn odd_templates_do_no_harm() {
        for template in ["%", "%%%", "%1!", "%1!!", "%99!s!", "%1!é!", "%é", "%1é"] {
            show(template, 1, &[Value::U32(1)]);
        }
    }
}
