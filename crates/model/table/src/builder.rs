//! Builds a declared table row by row, in chunks that can leave memory.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use etwhy_base::aside::{Aside, Work};

use crate::column::{CHUNK_ROWS, ColumnChunk};
use crate::{ColumnType, Memory, Result, Table, TableError, TableSpec, Texts, arrow_schema};

/// Row numbers are `u32`.
const MAX_ROWS: u64 = u32::MAX as u64;

/// A row of a declared table; [`define_table!`](crate::define_table) implements it.
pub trait Row: Sized + Send + 'static {
    /// One growing column per field.
    type Columns: Send + 'static;
    /// The table's declaration.
    fn spec() -> &'static TableSpec;
    /// Empty columns.
    fn columns() -> Self::Columns;
    /// Appends the row.
    fn append(self, columns: &mut Self::Columns);
    /// Bytes of long text since the last chunk.
    fn text_bytes(columns: &Self::Columns) -> usize;
    /// Takes the rows since the last chunk.
    fn finish_chunk(columns: &mut Self::Columns) -> Vec<ColumnChunk>;
    /// The columns of a finished batch.
    type Views<'a>;
    /// A row of a finished batch: a function for each column.
    type Ref<'r, 'a: 'r>: Copy;
    /// The columns of a batch, whose positions in the table are `at`; `None` if a type is another.
    fn views<'a>(table: &'a Table, batch: usize, at: &[usize]) -> Option<Self::Views<'a>>;
    /// A row of the batch.
    fn at<'r, 'a: 'r>(views: &'r Self::Views<'a>, row: usize) -> Self::Ref<'r, 'a>;
}

/// Takes rows of type `R` and makes a [`Table`] of them. Rows become columns on a thread of their own if the [`Memory`] says so and they are
/// many.
pub struct TableBuilder<R: Row> {
    filling: Aside<Filling<R>>,
    /// Rows given since the last [`TableBuilder::take`].
    rows: u64,
    kept: bool,
}

/// Columns that grow, and finished chunks.
struct Filling<R: Row> {
    columns: R::Columns,
    open_rows: usize,
    chunks: Chunks,
    /// Bytes of long text at which a chunk ends.
    text_limit: usize,
    row: PhantomData<fn(R)>,
}

impl<R: Row> Default for Filling<R> {
    fn default() -> Filling<R> {
        Filling::new(&Memory::unlimited())
    }
}

impl<R: Row> Work for Filling<R> {
    type Batch = Vec<R>;

    fn work(&mut self, batch: &mut Vec<R>) {
        batch.drain(..).for_each(|row| self.push(row));
    }
}

impl<R: Row> Filling<R> {
    fn new(memory: &Memory) -> Filling<R> {
        let chunks = Chunks::new(Arc::new(R::spec().clone()), memory);
        let text_limit = memory.text_limit();
        Filling { columns: R::columns(), open_rows: 0, chunks, text_limit, row: PhantomData }
    }

    #[inline]
    fn push(&mut self, row: R) {
        row.append(&mut self.columns);
        self.open_rows += 1;
        if self.open_rows >= CHUNK_ROWS || R::text_bytes(&self.columns) >= self.text_limit {
            self.close_chunk();
        }
    }

    #[cold]
    fn close_chunk(&mut self) {
        if self.open_rows > 0 {
            self.open_rows = 0;
            self.chunks.add(R::finish_chunk(&mut self.columns));
        }
    }
}

impl<R: Row> std::fmt::Debug for TableBuilder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableBuilder({}, {} rows)", R::spec().name, self.rows())
    }
}

impl<R: Row> TableBuilder<R> {
    /// An empty table whose finished chunks count against `memory`.
    pub fn new(memory: &Memory) -> TableBuilder<R> {
        let filling = Aside::new(Filling::new(memory), memory.is_threaded());
        TableBuilder { filling, rows: 0, kept: true }
    }

    /// As [`TableBuilder::new`], but rows are left out if nobody reads the table: for the rows of an analysis that
    /// is asked for its sums.
    pub fn if_wanted(memory: &Memory) -> TableBuilder<R> {
        TableBuilder { kept: memory.wants(&R::spec().name), ..TableBuilder::new(memory) }
    }

    /// False if rows are left out ([`TableBuilder::if_wanted`]).
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Appends a row. Rows beyond 4,294,967,295 are not kept.
    #[inline]
    pub fn push(&mut self, row: R) {
        if !self.kept {
            return;
        }
        self.rows += 1;
        self.filling.give(row, Filling::push);
    }

    /// The finished chunks, with all rows so far.
    fn chunks(&mut self) -> &mut Chunks {
        let filling = self.filling.done();
        filling.close_chunk();
        &mut filling.chunks
    }

    /// The rows so far as a table of their own. What follows begins a new one.
    ///
    /// # Errors
    /// Those of [`TableBuilder::finish`].
    pub fn take(&mut self, texts: &Texts) -> Result<Table> {
        self.rows = 0;
        let chunks = self.chunks();
        let next = Chunks::new(Arc::clone(&chunks.spec), &chunks.memory);
        std::mem::replace(chunks, next).finish(texts)
    }

    /// Bytes of long text of the rows that are not in a chunk yet.
    pub fn text_bytes(&mut self) -> usize {
        R::text_bytes(&self.filling.done().columns)
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Replaces every cell of an `i32` column by what `remap` makes of it.
    ///
    /// For ids that are provisional during the pass, such as stacks that are merged at its end.
    ///
    /// # Errors
    /// If there is no such column or it is not `i32`. A null in a column that is declared without
    /// becomes an error of [`TableBuilder::finish`].
    pub fn remap_i32(
        &mut self,
        column: &str,
        mut remap: impl FnMut(Option<i32>) -> Option<i32>,
    ) -> Result<()> {
        self.chunks().remap(column, ColumnType::I32, &mut remap)
    }

    /// Replaces every cell of a text column by what `remap` makes of the number in it.
    ///
    /// For texts that are known only at the end of the pass: the rows hold [`Sym::provisional`](crate::Sym::provisional)
    /// numbers until then.
    ///
    /// # Errors
    /// If there is no such column or it holds no repeating text. A null in a column that is declared without
    /// becomes an error of [`TableBuilder::finish`].
    pub fn remap_text(
        &mut self,
        column: &str,
        mut remap: impl FnMut(Option<u32>) -> Option<crate::Sym>,
    ) -> Result<()> {
        let mut remap = |n: Option<i32>| remap(n.map(|n| n as u32)).map(|sym| sym.0 as i32);
        self.chunks().remap(column, ColumnType::Text, &mut remap)
    }

    /// Replaces every cell of an `i64` column by what `remap` makes of it, in the order of the rows.
    ///
    /// For what becomes known of a row only after it was added, such as when an allocation was freed.
    ///
    /// # Errors
    /// If there is no such column or it is not `i64`. A null in a column that is declared without
    /// becomes an error of [`TableBuilder::finish`].
    pub fn remap_i64(
        &mut self,
        column: &str,
        mut remap: impl FnMut(Option<i64>) -> Option<i64>,
    ) -> Result<()> {
        self.chunks().change(column, ColumnType::I64, &mut |cells| cells.remap_i64(&mut remap))
    }

    /// The finished table. `texts` is the frozen pool that the row's [`Sym`](crate::Sym)s came from.
    ///
    /// # Errors
    /// If a `Sym` came from another pool, or a remapped column holds a null that is not allowed.
    pub fn finish(self, texts: &Texts) -> Result<Table> {
        let mut filling = self.filling.into_done();
        filling.close_chunk();
        filling.chunks.finish(texts)
    }
}

/// The finished chunks of a table, in memory or spilled.
#[derive(Debug)]
pub(crate) struct Chunks {
    spec: Arc<TableSpec>,
    memory: Memory,
    chunks: Vec<Chunk>,
    /// Chunks before this one have been spilled.
    spilled: usize,
    rows: u64,
    dropped: u64,
}

#[derive(Debug)]
struct Chunk {
    columns: Vec<ColumnChunk>,
    rows: usize,
}

impl Chunks {
    pub(crate) fn new(spec: Arc<TableSpec>, memory: &Memory) -> Chunks {
        Chunks { spec, memory: memory.clone(), chunks: Vec::new(), spilled: 0, rows: 0, dropped: 0 }
    }

    pub(crate) fn add(&mut self, columns: Vec<ColumnChunk>) {
        let rows = columns.first().map_or(0, |c| c.rows);
        if self.rows + rows as u64 > MAX_ROWS {
            self.dropped = self.dropped.saturating_add(rows as u64);
            return;
        }
        self.rows += rows as u64;
        let bytes: usize = columns.iter().map(ColumnChunk::bytes).sum();
        self.chunks.push(Chunk { columns, rows });
        if self.memory.hold(bytes) {
            self.spill();
        }
    }

    /// True once rows were refused.
    pub(crate) fn is_full(&self) -> bool {
        self.dropped > 0
    }

    /// Moves every chunk of this table that is still in memory into a file. If the disk refuses they
    /// stay, and [`Memory`] remembers why.
    fn spill(&mut self) {
        let Some(chunks) = self.chunks.get_mut(self.spilled..) else { return };
        let mut columns: Vec<&mut ColumnChunk> = chunks.iter_mut().flat_map(|c| &mut c.columns).collect();
        if self.memory.spill(&mut columns) {
            self.spilled = self.chunks.len();
        }
    }

    fn remap(
        &mut self,
        column: &str,
        needed: ColumnType,
        remap: &mut dyn FnMut(Option<i32>) -> Option<i32>,
    ) -> Result<()> {
        self.change(column, needed, &mut |cells| cells.remap(remap))
    }

    fn change(
        &mut self,
        column: &str,
        needed: ColumnType,
        change: &mut dyn FnMut(ColumnChunk) -> Option<ColumnChunk>,
    ) -> Result<()> {
        let table = self.spec.name.to_string();
        let Some(index) = self.spec.column_index(column) else {
            return Err(TableError::NoColumn { table, column: column.to_owned() });
        };
        let had = self.spec.columns.get(index).map_or(ColumnType::Bool, |c| c.ty);
        if had != needed {
            let column = column.to_owned();
            return Err(TableError::WrongType { table, column, needed: needed.name(), had: had.name() });
        }
        for (at, chunk) in self.chunks.iter_mut().enumerate() {
            let Some(cells) = chunk.columns.get_mut(index) else { continue };
            // Taken out so that the numbers can change in place.
            let old = std::mem::replace(cells, ColumnChunk::empty());
            if let Some(new) = change(old) {
                *cells = new;
            }
            if at < self.spilled {
                self.memory.hold(cells.bytes());
                self.memory.spill(&mut [cells]);
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self, texts: &Texts) -> Result<Table> {
        let mut schema = arrow_schema(&self.spec);
        if let Some(first) =
            self.chunks.first().filter(|first| first.columns.iter().any(ColumnChunk::is_absent))
        {
            let fields = schema.fields().iter().zip(&first.columns).map(|(field, column)| {
                let absent = || Field::new(field.name(), DataType::Null, true);
                if column.is_absent() { Arc::new(absent()) } else { field.clone() }
            });
            schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        }
        let batch = |chunk: Chunk| -> std::result::Result<RecordBatch, ArrowError> {
            let arrays = chunk.columns.into_iter().map(|c| c.into_array(texts));
            let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(chunk.rows));
            RecordBatch::try_new_with_options(
                schema.clone(),
                arrays.collect::<std::result::Result<_, _>>()?,
                &options,
            )
        };
        let batches = self.chunks.into_iter().map(batch).collect::<std::result::Result<Vec<_>, _>>();
        match batches {
            Ok(batches) => Ok(Table::new(self.spec, schema, batches, texts.clone())),
            Err(source) => Err(TableError::Arrow { table: self.spec.name.to_string(), source }),
        }
    }
}
