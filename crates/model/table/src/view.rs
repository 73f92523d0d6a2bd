//! Typed access to the cells of one column of one batch.

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, StringArray,
};
use arrow_buffer::NullBuffer;

use crate::Sym;

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// An integer of either width.
    I64(i64),
    /// A floating-point number.
    F64(f64),
    /// True or false.
    Bool(bool),
    /// Text of either kind.
    Text(&'a str),
}

impl<'a> Value<'a> {
    /// The integer; true and false are 1 and 0.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Value::I64(v) => Some(v),
            Value::Bool(v) => Some(i64::from(v)),
            _ => None,
        }
    }

    /// The number as a float.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Value::F64(v) => Some(v),
            other => other.as_i64().map(|v| v as f64),
        }
    }

    /// The text.
    pub fn as_text(self) -> Option<&'a str> {
        match self {
            Value::Text(v) => Some(v),
            _ => None,
        }
    }

    /// True for [`Value::Null`].
    pub fn is_null(self) -> bool {
        self == Value::Null
    }
}

/// A column of one batch. Every access is total: a row or type that is not there gives `None`.
#[derive(Debug, Clone, Copy)]
pub enum ColumnView<'a> {
    /// 64-bit integers.
    I64(&'a [i64], Option<&'a NullBuffer>),
    /// 32-bit integers.
    I32(&'a [i32], Option<&'a NullBuffer>),
    /// Floats.
    F64(&'a [f64], Option<&'a NullBuffer>),
    /// True and false.
    Bool(&'a BooleanArray),
    /// Numbers of texts, and the texts.
    Text(&'a [i32], &'a StringArray, Option<&'a NullBuffer>),
    /// Texts.
    LongText(&'a StringArray),
    /// No rows.
    Empty,
}

#[inline]
pub(crate) fn valid<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, row: usize) -> Option<T> {
    let value = *values.get(row)?;
    match nulls {
        Some(nulls) if row >= nulls.len() || nulls.is_null(row) => None,
        _ => Some(value),
    }
}

#[inline]
pub(crate) fn string(array: &StringArray, row: usize) -> Option<&str> {
    (row < array.len() && !array.is_null(row)).then(|| array.value(row))
}

impl<'a> ColumnView<'a> {
    /// A view of an Arrow array of one of the six column types; others give [`ColumnView::Empty`].
    pub fn new(array: &'a ArrayRef) -> ColumnView<'a> {
        let array = array.as_any();
        if let Some(a) = array.downcast_ref::<Int64Array>() {
            ColumnView::I64(a.values(), a.nulls())
        } else if let Some(a) = array.downcast_ref::<Int32Array>() {
            ColumnView::I32(a.values(), a.nulls())
        } else if let Some(a) = array.downcast_ref::<Float64Array>() {
            ColumnView::F64(a.values(), a.nulls())
        } else if let Some(a) = array.downcast_ref::<DictionaryArray<Int32Type>>() {
            match a.values().as_any().downcast_ref::<StringArray>() {
                Some(values) => ColumnView::Text(a.keys().values(), values, a.keys().nulls()),
                None => ColumnView::Empty,
            }
        } else if let Some(a) = array.downcast_ref::<BooleanArray>() {
            ColumnView::Bool(a)
        } else if let Some(a) = array.downcast_ref::<StringArray>() {
            ColumnView::LongText(a)
        } else {
            ColumnView::Empty
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            ColumnView::I64(v, _) => v.len(),
            ColumnView::I32(v, _) | ColumnView::Text(v, _, _) => v.len(),
            ColumnView::F64(v, _) => v.len(),
            ColumnView::Bool(a) => a.len(),
            ColumnView::LongText(a) => a.len(),
            ColumnView::Empty => 0,
        }
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which rows are null; `None` if none is.
    pub fn nulls(&self) -> Option<&'a NullBuffer> {
        match self {
            ColumnView::I64(_, n) => *n,
            ColumnView::I32(_, n) | ColumnView::Text(_, _, n) => *n,
            ColumnView::F64(_, n) => *n,
            ColumnView::Bool(a) => Array::nulls(*a),
            ColumnView::LongText(a) => Array::nulls(*a),
            ColumnView::Empty => None,
        }
    }

    /// True if the cell is null or there is no such row.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        row >= self.len() || self.nulls().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The integer, of either width; true and false are 1 and 0.
    #[inline]
    pub fn i64(&self, row: usize) -> Option<i64> {
        match self {
            ColumnView::I64(v, n) => valid(v, *n, row),
            ColumnView::I32(v, n) => valid(v, *n, row).map(i64::from),
            ColumnView::Bool(_) => self.bool(row).map(i64::from),
            _ => None,
        }
    }

    /// The 32-bit integer.
    #[inline]
    pub fn i32(&self, row: usize) -> Option<i32> {
        match self {
            ColumnView::I32(v, n) => valid(v, *n, row),
            _ => None,
        }
    }

    /// The number as a float.
    #[inline]
    pub fn f64(&self, row: usize) -> Option<f64> {
        match self {
            ColumnView::F64(v, n) => valid(v, *n, row),
            _ => self.i64(row).map(|v| v as f64),
        }
    }

    /// True or false.
    #[inline]
    pub fn bool(&self, row: usize) -> Option<bool> {
        match self {
            ColumnView::Bool(a) => (row < a.len() && !a.is_null(row)).then(|| a.value(row)),
            _ => None,
        }
    }

    /// The text, of either kind.
    #[inline]
    pub fn text(&self, row: usize) -> Option<&'a str> {
        match self {
            ColumnView::Text(keys, values, n) => string(values, valid(keys, *n, row)? as usize),
            ColumnView::LongText(a) => string(a, row),
            _ => None,
        }
    }

    /// The number of the text in a [`ColumnType::Text`](crate::ColumnType::Text) column: equal texts have
    /// equal keys in all tables of one analysis.
    #[inline]
    pub fn key(&self, row: usize) -> Option<Sym> {
        match self {
            ColumnView::Text(keys, _, n) => valid(keys, *n, row).map(|key| Sym(key as u32)),
            _ => None,
        }
    }

    /// The cell, whatever it is.
    pub fn value(&self, row: usize) -> Value<'a> {
        match self {
            ColumnView::I64(..) | ColumnView::I32(..) => self.i64(row).map_or(Value::Null, Value::I64),
            ColumnView::F64(..) => self.f64(row).map_or(Value::Null, Value::F64),
            ColumnView::Bool(_) => self.bool(row).map_or(Value::Null, Value::Bool),
            ColumnView::Text(..) | ColumnView::LongText(_) => self.text(row).map_or(Value::Null, Value::Text),
            ColumnView::Empty => Value::Null,
        }
    }
}
