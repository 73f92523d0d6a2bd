//! Tables whose columns are known only when the program runs: results of queries.

use std::sync::Arc;

use crate::builder::Chunks;
use crate::column::{BoolBuilder, ColumnBuilder, LongTextBuilder, PlainBuilder};
use crate::{
    CHUNK_ROWS, ColumnChunk, ColumnType, Memory, Result, Strings, Sym, Table, TableError, TableSpec, Value,
};

/// Takes rows of [`Value`]s and makes a [`Table`] with a text pool of its own. Every column may hold
/// nulls, whatever the declaration says.
pub struct AdHocBuilder {
    columns: Vec<Column>,
    open_rows: usize,
    open_text: usize,
    chunks: Chunks,
    strings: Strings,
    spec: Arc<TableSpec>,
}

pub(crate) enum Column {
    I64(PlainBuilder<i64>),
    I32(PlainBuilder<i32>),
    F64(PlainBuilder<f64>),
    Bool(BoolBuilder),
    Text(PlainBuilder<Sym>),
    LongText(LongTextBuilder),
    /// Rows of a column that is not read.
    Absent(usize),
}

impl Column {
    pub(crate) fn new(ty: ColumnType) -> Column {
        match ty {
            ColumnType::I64 => Column::I64(Default::default()),
            ColumnType::I32 => Column::I32(Default::default()),
            ColumnType::F64 => Column::F64(Default::default()),
            ColumnType::Bool => Column::Bool(Default::default()),
            ColumnType::Text => Column::Text(Default::default()),
            ColumnType::LongText => Column::LongText(Default::default()),
        }
    }

    /// A value that does not fit the type becomes null, except that integers widen to floats.
    fn push(&mut self, value: Value<'_>, strings: &mut Strings) {
        match self {
            Column::I64(c) => c.push_option(value.as_i64()),
            Column::I32(c) => c.push_option(value.as_i64().and_then(|v| i32::try_from(v).ok())),
            Column::F64(c) => c.push_option(value.as_f64()),
            Column::Bool(c) => c.push_option(match value {
                Value::Bool(v) => Some(v),
                other => other.as_i64().map(|v| v != 0),
            }),
            Column::Text(c) => c.push_option(value.as_text().map(|text| strings.intern(text))),
            Column::LongText(c) => c.push_option(value.as_text()),
            Column::Absent(rows) => *rows += 1,
        }
    }

    /// Bytes of long text since the last chunk.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Column::LongText(c) => c.text_bytes(),
            _ => 0,
        }
    }

    pub(crate) fn finish_chunk(&mut self) -> ColumnChunk {
        match self {
            Column::I64(c) => c.finish_chunk(),
            Column::I32(c) => c.finish_chunk(),
            Column::F64(c) => c.finish_chunk(),
            Column::Bool(c) => c.finish_chunk(),
            Column::Text(c) => c.finish_chunk(),
            Column::LongText(c) => c.finish_chunk(),
            Column::Absent(rows) => ColumnChunk::absent(std::mem::take(rows)),
        }
    }
}

impl std::fmt::Debug for AdHocBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AdHocBuilder({})", self.spec.name)
    }
}

impl AdHocBuilder {
    /// An empty table with these columns, whose finished chunks count against `memory`.
    pub fn new(mut spec: TableSpec, memory: &Memory) -> AdHocBuilder {
        spec.columns.to_mut().iter_mut().for_each(|column| column.nullable = true);
        let spec = Arc::new(spec);
        AdHocBuilder {
            columns: spec.columns.iter().map(|c| Column::new(c.ty)).collect(),
            open_rows: 0,
            open_text: 0,
            chunks: Chunks::new(spec.clone(), memory),
            strings: Strings::new(),
            spec,
        }
    }

    /// Puts a text into the pool that no row holds yet, for columns that are derived later.
    pub fn intern(&mut self, text: &str) {
        self.strings.intern(text);
    }

    /// Appends a row. A value that does not fit its column becomes null.
    ///
    /// # Errors
    /// If the row has another number of cells than the table has columns.
    pub fn push(&mut self, row: &[Value<'_>]) -> Result<()> {
        if row.len() != self.columns.len() {
            let table = self.spec.name.to_string();
            return Err(TableError::WrongWidth { table, needed: self.columns.len(), had: row.len() });
        }
        for (column, value) in self.columns.iter_mut().zip(row) {
            self.open_text += value.as_text().map_or(0, str::len);
            column.push(*value, &mut self.strings);
        }
        self.open_rows += 1;
        if self.open_rows >= CHUNK_ROWS || self.open_text >= crate::column::CHUNK_TEXT_BYTES {
            self.close_chunk();
        }
        Ok(())
    }

    fn close_chunk(&mut self) {
        if self.open_rows > 0 {
            (self.open_rows, self.open_text) = (0, 0);
            self.chunks.add(self.columns.iter_mut().map(Column::finish_chunk).collect());
        }
    }

    /// The finished table.
    ///
    /// # Errors
    /// None that a caller could cause; Arrow checks the layout.
    pub fn finish(mut self) -> Result<Table> {
        self.close_chunk();
        let arrow = |source| TableError::Arrow { table: self.spec.name.to_string(), source };
        let texts = self.strings.freeze().map_err(arrow)?;
        self.chunks.finish(&texts)
    }
}
