//! Tables as JSON.

use etwhy_table::{Table, Value};
use serde_json::{Map, json};

/// The rows of a table as objects.
pub fn table_json(table: &Table) -> Vec<serde_json::Value> {
    let value = |value: Value<'_>| match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(b) => json!(b),
        Value::I64(n) => json!(n),
        Value::F64(n) => json!(n),
        Value::Text(text) => json!(text),
    };
    let row = |row: u32| {
        let columns = table.spec().columns.iter().enumerate();
        let cells: Map<String, serde_json::Value> =
            columns.map(|(at, column)| (column.name.to_string(), value(table.cell(row, at)))).collect();
        serde_json::Value::Object(cells)
    };
    (0..table.rows() as u32).map(row).collect()
}
