//! Tables as JSON.

use etwhy_table::{Table, Value};
use serde::{Serialize, Serializer};
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

/// The same, written row by row: a value in memory takes a hundred times what it does in its table. No table has no rows.
pub struct Rows<'t>(pub Option<&'t Table>);

struct Row<'t>(&'t Table, u32);

struct Cell<'t>(Value<'t>);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.into_iter().flat_map(|t| (0..t.rows() as u32).map(move |row| Row(t, row))))
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Row(table, row) = *self;
        let columns = table.spec().columns.iter().enumerate();
        to.collect_map(columns.map(|(at, column)| (&*column.name, Cell(table.cell(row, at)))))
    }
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => to.serialize_none(),
            Value::Bool(b) => to.serialize_bool(b),
            Value::I64(n) => to.serialize_i64(n),
            Value::F64(n) => to.serialize_f64(n),
            Value::Text(text) => to.serialize_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_as_they_are_held() {
        let mut db = etwhy_table::Database::new();
        let table = etwhy_trace::catalog::ledger::table(&etwhy_etl::Ledger::new()).unwrap();
        db.insert(table);
        let ledger = db.get("ledger");
        let held = serde_json::Value::Array(ledger.map(table_json).unwrap());
        assert_eq!(serde_json::to_value(Rows(ledger)).unwrap(), held);
        assert_eq!(serde_json::to_string(&Rows(None)).unwrap(), "[]");
        let cells = [Value::Null, Value::I64(-1), Value::F64(f64::NAN), Value::Text("a")].map(Cell);
        assert_eq!(serde_json::to_string(&cells).unwrap(), "[null,-1,null,\"a\"]");
    }
}
