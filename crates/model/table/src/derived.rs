//! Columns that are made from columns of the same table: names beside numbers.

use crate::column::{ColumnBuilder, ColumnChunk, LongTextBuilder, PlainBuilder};
use crate::{
    ColumnSpec, ColumnType, ColumnView, Memory, Result, Sym, Table, TableError, TableSpec, arrow_schema,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::ArrowError;
use std::sync::Arc;

/// Makes a cell from a text.
pub type FromText<'f, T> = Box<dyn Fn(&str) -> Option<T> + 'f>;

/// How a cell of a derived column is made from a number, or from a text where it says so; null gives null.
pub enum Make<'f> {
    /// A text of the table's pool: the column must be [`ColumnType::Text`].
    Text(Box<dyn Fn(i64) -> Option<Sym> + 'f>),
    /// A number: the column must be [`ColumnType::I32`].
    I32(Box<dyn Fn(i64) -> Option<i32> + 'f>),
    /// A number: the column must be [`ColumnType::I64`].
    I64(Box<dyn Fn(i64) -> Option<i64> + 'f>),
    /// A number from a text: the column must be [`ColumnType::I64`].
    I64OfText(FromText<'f, i64>),
    /// A text from a text: the column must be [`ColumnType::LongText`].
    LongText(FromText<'f, String>),
}

/// A column that is made from another one.
pub struct Derived<'f> {
    /// Column that it is made from; it comes right behind it, or in its place.
    pub from: usize,
    /// It takes the place of the column.
    pub replaces: bool,
    /// Its declaration.
    pub spec: ColumnSpec,
    /// How its cells are made.
    pub make: Make<'f>,
}

impl Table {
    /// The table with more columns. The columns that it had are shared, not copied; the new ones count in `memory`
    /// and go into files where it is exceeded.
    ///
    /// # Errors
    /// If a declaration's type is not the one that is made, or a text is not of the table's pool.
    pub fn with_derived(&self, derived: &[Derived<'_>], memory: &Memory) -> Result<Table> {
        let mut columns: Vec<ColumnSpec> = Vec::new();
        for (index, column) in self.spec().columns.iter().enumerate() {
            if !derived.iter().any(|d| d.from == index && d.replaces) {
                columns.push(column.clone());
            }
            columns.extend(derived.iter().filter(|d| d.from == index).map(|d| d.spec.clone()));
        }
        for d in derived {
            let made = match d.make {
                Make::Text(_) => ColumnType::Text,
                Make::I32(_) => ColumnType::I32,
                Make::I64(_) | Make::I64OfText(_) => ColumnType::I64,
                Make::LongText(_) => ColumnType::LongText,
            };
            if d.spec.ty != made {
                let (table, column) = (self.name().to_owned(), d.spec.name.to_string());
                let (needed, had) = (made.name(), d.spec.ty.name());
                return Err(TableError::WrongType { table, column, needed, had });
            }
        }
        let spec = Arc::new(TableSpec { columns: columns.into(), ..self.spec().clone() });
        let schema = arrow_schema(&spec);
        let extend = |batch: &RecordBatch| -> std::result::Result<RecordBatch, ArrowError> {
            let mut arrays: Vec<ArrayRef> = Vec::new();
            for (index, array) in batch.columns().iter().enumerate() {
                if !derived.iter().any(|d| d.from == index && d.replaces) {
                    arrays.push(Arc::clone(array));
                }
                for d in derived.iter().filter(|d| d.from == index) {
                    let mut chunk = made(d, &ColumnView::new(array), batch.num_rows());
                    if memory.hold(chunk.bytes()) {
                        memory.spill(&mut [&mut chunk]);
                    }
                    arrays.push(chunk.into_array(self.texts())?);
                }
            }
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
        };
        let batches = self.batches().iter().map(extend).collect::<std::result::Result<Vec<_>, _>>();
        match batches {
            Ok(batches) => Ok(Table::new(spec, schema.clone(), batches, self.texts().clone())),
            Err(source) => Err(TableError::Arrow { table: self.name().to_owned(), source }),
        }
    }
}

/// The cells of a derived column for the rows of a batch.
fn made(derived: &Derived<'_>, from: &ColumnView<'_>, rows: usize) -> ColumnChunk {
    let numbers = (0..rows).map(|row| from.i64(row));
    let texts = (0..rows).map(|row| from.text(row));
    match &derived.make {
        Make::Text(text) => {
            let mut column = PlainBuilder::<Sym>::default();
            numbers.for_each(|n| column.push_option(n.and_then(text)));
            column.finish_chunk()
        }
        Make::I32(number) => {
            let mut column = PlainBuilder::<i32>::default();
            numbers.for_each(|n| column.push_option(n.and_then(number)));
            column.finish_chunk()
        }
        Make::I64(number) => {
            let mut column = PlainBuilder::<i64>::default();
            numbers.for_each(|n| column.push_option(n.and_then(number)));
            column.finish_chunk()
        }
        Make::I64OfText(number) => {
            let mut column = PlainBuilder::<i64>::default();
            texts.for_each(|text| column.push_option(text.and_then(number)));
            column.finish_chunk()
        }
        Make::LongText(make) => {
            let mut column = LongTextBuilder::default();
            texts.for_each(|text| column.push_option(text.and_then(make).as_deref()));
            column.finish_chunk()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::example;

    #[test]
    fn columns_come_behind_or_in_place() {
        let table = example();
        let cpu = table.spec().column_index("cpu").unwrap();
        let column = table.spec().columns[cpu].clone();
        let ts = table.spec().column_index("ts_ns").unwrap();
        let derived = [
            Derived {
                from: cpu,
                replaces: false,
                spec: ColumnSpec { name: "next_cpu".into(), nullable: true, ..column.clone() },
                make: Make::I32(Box::new(|n| (n != 2).then_some(n as i32 + 1))),
            },
            Derived {
                from: cpu,
                replaces: false,
                spec: ColumnSpec { name: "text".into(), ty: ColumnType::Text, nullable: true, ..column },
                make: Make::Text(Box::new(|_| Some(Sym::EMPTY))),
            },
            Derived {
                from: ts,
                replaces: true,
                spec: table.spec().columns[ts].clone(),
                make: Make::I64(Box::new(|n| Some(n + 7))),
            },
        ];
        let more = table.with_derived(&derived, &Memory::with_budget(0, None)).unwrap();
        assert_eq!(more.spec().columns.len(), table.spec().columns.len() + 2);
        assert_eq!(more.spec().column_index("next_cpu"), Some(cpu + 1));
        for row in 0..table.rows() as u32 {
            let was = table.i64(row, "cpu").unwrap();
            assert_eq!(more.i64(row, "next_cpu"), (was != 2).then_some(was + 1));
            assert_eq!(more.text(row, "text"), Some(""));
            assert_eq!(more.i64(row, "ts_ns"), table.i64(row, "ts_ns").map(|n| n + 7));
        }
    }

    #[test]
    fn the_declared_type_must_be_the_made_one() {
        let table = example();
        let spec = table.spec().columns[0].clone();
        let derived = [Derived { from: 0, replaces: false, spec, make: Make::I32(Box::new(|_| None)) }];
        assert!(table.with_derived(&derived, &Memory::with_budget(0, None)).is_err());
    }
}
