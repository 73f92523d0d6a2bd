//! Declared tables from Arrow batches that somebody else wrote: files of an extract.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_buffer::NullBuffer;

use crate::ad_hoc::Column;
use crate::builder::Chunks;
use crate::column::CHUNK_TEXT_BYTES;
use crate::{
    CHUNK_ROWS, ColumnType, ColumnView, Memory, Result, Strings, Sym, Table, TableError, TableSpec, Texts,
};

/// Takes batches of a declared table and makes a [`Table`] of them, whose chunks are those that a
/// [`TableBuilder`](crate::TableBuilder) would have made. Nothing that a batch says is believed: types are checked for
/// each, texts go into the pool of the analysis.
pub struct TableLoader {
    columns: Vec<Column>,
    open_rows: usize,
    chunks: Chunks,
    spec: Arc<TableSpec>,
    /// For each text column the dictionary seen last and the numbers of its texts in the pool.
    dictionaries: Vec<Dictionary>,
    /// Positions of the columns that batches have.
    read: Vec<usize>,
}

#[derive(Default)]
struct Dictionary {
    /// Held, so that its address is nobody else's.
    values: Option<StringArray>,
    syms: Vec<Option<Sym>>,
}

impl std::fmt::Debug for TableLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableLoader({})", self.spec.name)
    }
}

impl TableLoader {
    /// An empty table whose finished chunks count against `memory`.
    pub fn new(spec: &TableSpec, memory: &Memory) -> TableLoader {
        TableLoader::of_columns(spec, &|_| true, memory)
    }

    /// A table of which only some columns are read: batches have these alone, and the others are
    /// [absent](Table::has) from the table.
    pub fn of_columns(spec: &TableSpec, is_read: &dyn Fn(&str) -> bool, memory: &Memory) -> TableLoader {
        let spec = Arc::new(spec.clone());
        let columns: Vec<Column> = spec
            .columns
            .iter()
            .map(|c| if is_read(&c.name) { Column::new(c.ty) } else { Column::Absent(0) })
            .collect();
        let there = |column: &Column| !matches!(column, Column::Absent(_));
        TableLoader {
            read: columns.iter().enumerate().filter(|(_, c)| there(c)).map(|(at, _)| at).collect(),
            columns,
            open_rows: 0,
            chunks: Chunks::new(spec.clone(), memory),
            dictionaries: spec.columns.iter().map(|_| Dictionary::default()).collect(),
            spec,
        }
    }

    /// Appends the rows of a batch whose columns are those of the declaration that are read, in its order.
    ///
    /// # Errors
    /// If a column is missing or of another type, or the table is full.
    pub fn push(&mut self, batch: &RecordBatch, strings: &mut Strings) -> Result<()> {
        if batch.num_columns() != self.read.len() {
            let (table, needed) = (self.spec.name.to_string(), self.read.len());
            return Err(TableError::WrongWidth { table, needed, had: batch.num_columns() });
        }
        let mut from = 0;
        while from < batch.num_rows() {
            let mut rows = (batch.num_rows() - from).min(CHUNK_ROWS.saturating_sub(self.open_rows)).max(1);
            // Offsets of long text are `i32`: never much more at once than a chunk holds.
            while rows > 1 && text_in(batch, from..from + rows) > CHUNK_TEXT_BYTES {
                rows /= 2;
            }
            for (place, array) in batch.columns().iter().enumerate() {
                let at = self.read.get(place).copied().unwrap_or(usize::MAX);
                self.append(at, array, from..from + rows, strings)?;
            }
            for column in &mut self.columns {
                if let Column::Absent(held) = column {
                    *held += rows;
                }
            }
            from += rows;
            self.open_rows += rows;
            let text: usize = self.columns.iter().map(Column::text_bytes).sum();
            if self.open_rows >= CHUNK_ROWS || text >= CHUNK_TEXT_BYTES {
                self.close_chunk()?;
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        at: usize,
        array: &ArrayRef,
        rows: std::ops::Range<usize>,
        strings: &mut Strings,
    ) -> Result<()> {
        let view = ColumnView::new(array);
        let (Some(column), Some(dictionary)) = (self.columns.get_mut(at), self.dictionaries.get_mut(at))
        else {
            return Ok(());
        };
        match (column, view) {
            (Column::I64(c), ColumnView::I64(values, nulls)) => {
                let (values, nulls) = part(values, nulls, rows);
                c.extend(values, nulls.as_ref());
            }
            (Column::I32(c), ColumnView::I32(values, nulls)) => {
                let (values, nulls) = part(values, nulls, rows);
                c.extend(values, nulls.as_ref());
            }
            (Column::F64(c), ColumnView::F64(values, nulls)) => {
                let (values, nulls) = part(values, nulls, rows);
                c.extend(values, nulls.as_ref());
            }
            (Column::Bool(c), ColumnView::Bool(_)) => rows.for_each(|row| c.push_option(view.bool(row))),
            (Column::LongText(c), ColumnView::LongText(_)) => {
                rows.for_each(|row| c.push_option(view.text(row)));
            }
            (Column::Text(c), ColumnView::LongText(texts)) => rows.for_each(|row| {
                let text = (row < texts.len() && !texts.is_null(row)).then(|| texts.value(row));
                c.push_option(text.map(|text| strings.intern(text)));
            }),
            (Column::Text(c), ColumnView::Text(_, values, _)) => {
                dictionary.follow(values);
                rows.for_each(|row| c.push_option(dictionary.sym(view.key(row), values, strings)));
            }
            (_, _) => {
                let table = self.spec.name.to_string();
                let declared = self.spec.columns.get(at);
                return Err(TableError::WrongType {
                    table,
                    column: declared.map_or_else(String::new, |c| c.name.to_string()),
                    needed: declared.map_or("a column", |c| c.ty.name()),
                    had: view.type_name(),
                });
            }
        }
        Ok(())
    }

    fn close_chunk(&mut self) -> Result<()> {
        if self.open_rows == 0 {
            return Ok(());
        }
        self.open_rows = 0;
        self.chunks.add(self.columns.iter_mut().map(Column::finish_chunk).collect());
        if self.chunks.is_full() {
            return Err(TableError::TooManyRows { table: self.spec.name.to_string() });
        }
        Ok(())
    }

    /// The finished table. `texts` is the frozen pool that the texts went into.
    ///
    /// # Errors
    /// If a column that is declared without nulls holds one.
    pub fn finish(mut self, texts: &Texts) -> Result<Table> {
        self.close_chunk()?;
        self.chunks.finish(texts)
    }
}

/// Some rows of a column; nothing if there are not so many.
fn part<'a, T>(
    values: &'a [T],
    nulls: Option<&NullBuffer>,
    rows: std::ops::Range<usize>,
) -> (&'a [T], Option<NullBuffer>) {
    let nulls = nulls.filter(|nulls| rows.end <= nulls.len()).map(|n| n.slice(rows.start, rows.len()));
    (values.get(rows).unwrap_or_default(), nulls)
}

/// Bytes of long text in some rows of a batch.
fn text_in(batch: &RecordBatch, rows: std::ops::Range<usize>) -> usize {
    let bytes = |array: &ArrayRef| {
        let offsets = array.as_any().downcast_ref::<StringArray>()?.value_offsets();
        usize::try_from(offsets.get(rows.end)?.checked_sub(*offsets.get(rows.start)?)?).ok()
    };
    batch.columns().iter().filter_map(bytes).sum()
}

impl Dictionary {
    /// Forgets what is known if the batch has other texts than the one before.
    fn follow(&mut self, values: &StringArray) {
        let same = |known: &StringArray| {
            std::ptr::eq(known.value_offsets(), values.value_offsets())
                && std::ptr::eq(known.value_data(), values.value_data())
        };
        if !self.values.as_ref().is_some_and(same) {
            self.values = Some(values.clone());
            self.syms.clear();
            self.syms.resize(values.len(), None);
        }
    }

    /// The number in the pool of a text of the dictionary. Texts that no row has never get there.
    fn sym(&mut self, key: Option<Sym>, values: &StringArray, strings: &mut Strings) -> Option<Sym> {
        let at = key?.0 as usize;
        let slot = self.syms.get_mut(at)?;
        if slot.is_none() && at < values.len() && !values.is_null(at) {
            *slot = Some(strings.intern(values.value(at)));
        }
        *slot
    }
}

impl ColumnView<'_> {
    /// What the column holds, for messages.
    fn type_name(&self) -> &'static str {
        match self {
            ColumnView::I64(..) => ColumnType::I64.name(),
            ColumnView::I32(..) => ColumnType::I32.name(),
            ColumnView::F64(..) => ColumnType::F64.name(),
            ColumnView::Bool(_) => ColumnType::Bool.name(),
            ColumnView::Text(..) => ColumnType::Text.name(),
            ColumnView::LongText(_) => ColumnType::LongText.name(),
            ColumnView::Empty => "of a type that no table has",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::{EXAMPLE, example_with};
    use arrow_array::Int64Array;

    /// Loads a table's own batches, cut into pieces.
    fn reload(table: &Table, piece: usize, memory: &Memory) -> Table {
        let mut strings = Strings::new();
        strings.intern("texts have other numbers now");
        let mut loader = TableLoader::new(table.spec(), memory);
        for batch in table.batches() {
            for from in (0..batch.num_rows()).step_by(piece) {
                let rows = piece.min(batch.num_rows() - from);
                loader.push(&batch.slice(from, rows), &mut strings).unwrap();
            }
        }
        loader.finish(&strings.freeze().unwrap()).unwrap()
    }

    #[test]
    fn a_table_comes_back_whatever_the_pieces() {
        let table = example_with(&Memory::unlimited(), 150_000);
        for (piece, memory) in [(1000, Memory::unlimited()), (CHUNK_ROWS, Memory::with_budget(0, None))] {
            let again = reload(&table, piece, &memory);
            assert_eq!(again.starts(), table.starts());
            assert_eq!(again.spec(), table.spec());
            for row in (0..150_000).step_by(77) {
                for column in 0..table.spec().columns.len() {
                    assert_eq!(again.cell(row, column), table.cell(row, column));
                }
            }
        }
    }

    #[test]
    fn columns_that_are_not_read_are_absent() {
        let table = example_with(&Memory::unlimited(), 70_000);
        for name in ["", "process"] {
            let mut strings = Strings::new();
            let mut loader = TableLoader::of_columns(&EXAMPLE, &|c| c == name, &Memory::with_budget(0, None));
            let process = EXAMPLE.column_index("process").unwrap();
            for batch in table.batches() {
                let read: &[usize] = if name.is_empty() { &[] } else { &[process] };
                loader.push(&batch.project(read).unwrap(), &mut strings).unwrap();
            }
            let some = loader.finish(&strings.freeze().unwrap()).unwrap();
            assert_eq!((some.rows(), some.starts()), (table.rows(), table.starts()));
            for (at, column) in EXAMPLE.columns.iter().enumerate() {
                assert_eq!(some.has(at), column.name == name);
                let cell = some.cell(69_999, at);
                assert!(if some.has(at) { cell == table.cell(69_999, at) } else { cell.is_null() });
            }
        }
    }

    #[test]
    fn batches_that_do_not_fit_are_refused() {
        let table = example_with(&Memory::unlimited(), 4);
        let mut strings = Strings::new();
        let batch = &table.batches()[0];
        let mut loader = TableLoader::new(&EXAMPLE, &Memory::unlimited());
        let narrow = batch.project(&[0, 1]).unwrap();
        assert!(matches!(loader.push(&narrow, &mut strings), Err(TableError::WrongWidth { .. })));
        let process = EXAMPLE.column_index("process").unwrap();
        let mut columns = batch.columns().to_vec();
        columns[process] = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let names = (0..columns.len()).map(|n| n.to_string());
        let wrong = RecordBatch::try_from_iter(names.zip(columns)).unwrap();
        let error = loader.push(&wrong, &mut strings).unwrap_err().to_string();
        assert_eq!(error, "column `example.process` is i64, not text");
    }

    #[test]
    fn a_null_where_none_may_be_is_an_error() {
        let table = example_with(&Memory::unlimited(), 4);
        let batch = &table.batches()[0];
        let first = EXAMPLE.columns.iter().position(|c| !c.nullable && c.ty == ColumnType::I64).unwrap();
        let mut columns = batch.columns().to_vec();
        columns[first] = Arc::new(Int64Array::from(vec![Some(1), None, None, Some(4)]));
        let names = (0..columns.len()).map(|n| n.to_string());
        let wrong = RecordBatch::try_from_iter(names.zip(columns)).unwrap();
        let mut strings = Strings::new();
        let mut loader = TableLoader::new(&EXAMPLE, &Memory::unlimited());
        loader.push(&wrong, &mut strings).unwrap();
        assert!(loader.finish(&strings.freeze().unwrap()).is_err());
    }
}
