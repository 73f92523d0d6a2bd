//! A value that belongs to nobody's table.

use etwhy_table::Value;
use serde::Serialize;

/// A value of a row.
#[derive(Clone, Debug, Serialize, PartialEq)]
#[serde(untagged)]
pub enum Cell {
    /// Unknown.
    Null,
    /// A whole number.
    I64(i64),
    /// A number.
    F64(f64),
    /// Text.
    Text(String),
}

impl Cell {
    /// A copy of a table's cell; true and false are 1 and 0.
    pub fn from_value(value: Value<'_>) -> Cell {
        match value {
            Value::Null => Cell::Null,
            Value::I64(n) => Cell::I64(n),
            Value::F64(n) => Cell::F64(n),
            Value::Bool(b) => Cell::I64(b.into()),
            Value::Text(text) => Cell::Text(text.to_owned()),
        }
    }

    /// The number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::I64(n) => Some(*n as f64),
            Cell::F64(n) => Some(*n),
            _ => None,
        }
    }

    /// The text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<i64> for Cell {
    fn from(n: i64) -> Cell {
        Cell::I64(n)
    }
}

impl From<f64> for Cell {
    fn from(n: f64) -> Cell {
        Cell::F64(n)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}
