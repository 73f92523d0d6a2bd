//! A finished table.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};

use crate::{CHUNK_ROWS, ColumnView, TableSpec, Texts, Value};

/// Rows that no longer change, as Arrow batches. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Table {
    spec: Arc<TableSpec>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The first row of each batch.
    starts: Vec<u32>,
    rows: u32,
    texts: Texts,
}

impl Table {
    pub(crate) fn new(
        spec: Arc<TableSpec>,
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        texts: Texts,
    ) -> Table {
        let mut starts = Vec::with_capacity(batches.len());
        let mut rows = 0u32;
        for batch in &batches {
            starts.push(rows);
            // Builders refuse rows beyond `u32::MAX`.
            rows = rows.saturating_add(u32::try_from(batch.num_rows()).unwrap_or(u32::MAX));
        }
        Table { spec, schema, batches, starts, rows, texts }
    }

    /// Adds the rows of another part of the same table, which has the same columns and texts. Rows beyond `u32::MAX` are
    /// left out.
    pub fn append(&mut self, part: Table) {
        for batch in part.batches {
            let rows = u32::try_from(batch.num_rows()).unwrap_or(u32::MAX);
            let Some(after) = self.rows.checked_add(rows) else { return };
            self.starts.push(self.rows);
            self.batches.push(batch);
            self.rows = after;
        }
    }

    /// The declaration.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The name in SQL and file names.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// The Arrow schema, with units, roles and documentation as metadata.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows as Arrow batches, in order. All text columns share one dictionary.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// The first row number of each batch.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The text pool behind the text columns.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// The batch that holds `row`, and the row's number in it.
    #[inline]
    pub fn locate(&self, row: u32) -> Option<(usize, usize)> {
        if row >= self.rows {
            return None;
        }
        // Nearly always every batch but the last is full.
        let guess = row as usize / CHUNK_ROWS;
        let full = self.starts.get(guess).is_some_and(|&start| start as usize == guess * CHUNK_ROWS)
            && self.starts.get(guess + 1).is_none_or(|&next| row < next);
        let batch = if full { guess } else { self.starts.partition_point(|&s| s <= row).saturating_sub(1) };
        let start = *self.starts.get(batch)?;
        Some((batch, (row - start) as usize))
    }

    /// True if there is a column at this position and it was read: an extract can be asked for some columns alone, and the others
    /// are null then.
    pub fn has(&self, column: usize) -> bool {
        self.schema.fields().get(column).is_some_and(|field| *field.data_type() != DataType::Null)
    }

    /// A column of one batch. An unknown column or batch gives a view without rows.
    pub fn view(&self, batch: usize, column: usize) -> ColumnView<'_> {
        let array = self.batches.get(batch).and_then(|b| b.columns().get(column));
        array.map_or(ColumnView::Empty, ColumnView::new)
    }

    /// Positions of columns; `None` if one is missing.
    pub fn columns<const N: usize>(&self, names: [&str; N]) -> Option<[usize; N]> {
        let mut numbers = [0; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            *number = self.spec.column_index(name)?;
        }
        Some(numbers)
    }

    /// A column, as one view per batch; `None` if there is no column of that name.
    pub fn column(&self, name: &str) -> Option<Vec<ColumnView<'_>>> {
        let index = self.spec.column_index(name)?;
        Some((0..self.batches.len()).map(|batch| self.view(batch, index)).collect())
    }

    /// One cell, by row and position of the column; null where there is none. For single cells: loops
    /// take [`Table::view`] once per batch.
    pub fn cell(&self, row: u32, column: usize) -> Value<'_> {
        let Some((batch, row)) = self.locate(row) else { return Value::Null };
        self.view(batch, column).value(row)
    }

    /// One cell, by row and name of the column; null where there is none.
    pub fn value(&self, row: u32, column: &str) -> Value<'_> {
        self.spec.column_index(column).map_or(Value::Null, |column| self.cell(row, column))
    }

    /// One integer cell; `None` for null, another type, or no such cell.
    pub fn i64(&self, row: u32, column: &str) -> Option<i64> {
        self.value(row, column).as_i64()
    }

    /// One number cell as a float; `None` for null, another type, or no such cell.
    pub fn f64(&self, row: u32, column: &str) -> Option<f64> {
        self.value(row, column).as_f64()
    }

    /// One text cell; `None` for null, another type, or no such cell.
    pub fn text(&self, row: u32, column: &str) -> Option<&str> {
        self.value(row, column).as_text()
    }
}
