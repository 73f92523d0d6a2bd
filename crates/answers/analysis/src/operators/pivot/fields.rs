//! Fields of events as columns: table `event` has them as a JSON object in its column `fields`, and a question names one as `fields.NAME`.
//!
//! A field of which all values are integers (or true and false, which count as 1 and 0, as SQLite has them) is a column of numbers, any
//! other one of texts. Fields inside of other fields stay within the text of these.

use etwhy_table::filter::{quoted, quoted_text};
use etwhy_table::{ColumnSpec, ColumnType, Derived, Make, Memory, Role, Table, TableError, Unit};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::cell::Cell;
use std::fmt;

/// The column that holds the fields.
const FIELDS: &str = "fields";

/// The field that a name of a column means.
pub fn field_of(name: &str) -> Option<&str> {
    let field = name.strip_prefix(FIELDS)?.strip_prefix('.')?;
    // A path in JSON cannot hold a quotation mark.
    (!field.is_empty() && !field.contains('"')).then_some(field)
}

/// The field in SQL.
pub(super) fn sql(field: &str) -> String {
    format!("json_extract(t.{}, {})", quoted(FIELDS), quoted_text(&format!("$.\"{field}\"")))
}

/// The table with a column `fields.NAME` for each of `names`. `go_on` is asked now and then; what is left is null once it says no.
///
/// # Errors
/// If the table cannot be made.
pub fn with_fields(
    table: &Table,
    names: &[String],
    go_on: &dyn Fn() -> bool,
    memory: &Memory,
) -> Result<Table, TableError> {
    let Some(from) = table.spec().column_index(FIELDS) else { return Ok(table.clone()) };
    let seen = Cell::new(0u32);
    let wanted = || {
        seen.set(seen.get().wrapping_add(1));
        !seen.get().is_multiple_of(1 << 14) || go_on()
    };
    let stopped = Cell::new(false);
    let value = |text: &str, name: &str| {
        if stopped.get() || !wanted() {
            stopped.set(true);
            return None;
        }
        value_of(text, name)
    };
    let derived: Vec<Derived<'_>> = names
        .iter()
        .map(|name| {
            let texts = table.column(FIELDS).unwrap_or_default();
            let all = texts.iter().flat_map(|view| (0..view.len()).filter_map(move |row| view.text(row)));
            let ints = all.filter_map(|text| value(text, name)).all(|value| integer(&value).is_some());
            let make: Make<'_> = if ints {
                Make::I64OfText(Box::new(|text| value(text, name).as_ref().and_then(integer)))
            } else {
                Make::LongText(Box::new(|text| value(text, name).map(plain)))
            };
            let spec = ColumnSpec {
                name: format!("{FIELDS}.{name}").into(),
                ty: if ints { ColumnType::I64 } else { ColumnType::LongText },
                nullable: true,
                unit: Unit::None,
                role: Role::Other,
                doc: format!("Field {name} of the event.").into(),
            };
            Derived { from, replaces: false, spec, make }
        })
        .collect();
    table.with_derived(&derived, memory)
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_bool().map(i64::from))
}

fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Bool(is) => u8::from(is).to_string(),
        other => other.to_string(),
    }
}

/// The value of a field of a JSON object, none if it is null or not there.
fn value_of(text: &str, name: &str) -> Option<Value> {
    // Most events of other kinds do not even have the word.
    if !text.contains(name) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let found = serde_json::Deserializer::from_str(text).deserialize_map(Field(name)).ok().flatten();
    found.filter(|value| !value.is_null())
}

/// Reads one field of an object; the first of that name, as SQLite does.
struct Field<'n>(&'n str);

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Option<Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Value>, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if found.is_none() && key == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_as_sqlite_reads_it() {
        let text = r#"{"a":1,"b":"x y","c":true,"d":null,"e":{"f":2},"a":9,"g h":[1,2]}"#;
        let read = |name: &str| value_of(text, name).map(plain);
        let found = ["a", "b", "c", "d", "e", "f", "g h", "z"].map(read);
        let want = [Some("1"), Some("x y"), Some("1"), None, Some(r#"{"f":2}"#), None, Some("[1,2]"), None];
        assert_eq!(found, want.map(|text| text.map(str::to_owned)));
        assert_eq!(value_of("no json", "a"), None);
        assert_eq!(
            ["fields.a.b", "fields.", "fields", "field.a", "fields.\""].map(field_of),
            [Some("a.b"), None, None, None, None]
        );
    }
}
