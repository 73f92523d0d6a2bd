//! Columns while they grow, and the raw Arrow buffers of a finished chunk.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, NullArray, StringArray,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder,
    OffsetBuffer, ScalarBuffer,
};
use arrow_schema::ArrowError;

use crate::{Sym, Texts};

/// Rows of a full chunk. 65,536 rows of 8-byte cells are 512 KiB per column: large enough that the work
/// per chunk does not count, small enough that a chunk under construction does not either.
pub const CHUNK_ROWS: usize = 1 << 16;

/// Rows of a part of a table that is made in parts and not held as a whole: a few megabytes, so that what makes a part
/// and what writes it find it in a cache.
pub const PART_ROWS: usize = 1 << 14;

/// A chunk also ends when its long texts reach this many bytes, which keeps `i32` offsets valid.
pub(crate) const CHUNK_TEXT_BYTES: usize = 64 << 20;

/// A cell of long text ends here: nothing in a trace is that long, and offsets within a chunk are `i32`.
const LONG_TEXT_CELL_LIMIT: usize = 64 << 20;

/// A column that grows. One exists for each type of cell; see [`Cell`](crate::Cell).
pub trait ColumnBuilder: Send {
    /// Takes the rows since the last call as a finished piece.
    fn finish_chunk(&mut self) -> ColumnChunk;

    /// Bytes of variable-length text since the last call of `finish_chunk`.
    fn text_bytes(&self) -> usize {
        0
    }
}

/// The rows of one column in one chunk, as the buffers that Arrow wants.
#[derive(Debug, Clone)]
pub struct ColumnChunk {
    pub(crate) rows: usize,
    pub(crate) nulls: Option<NullBuffer>,
    pub(crate) data: Data,
}

#[derive(Debug, Clone)]
pub(crate) enum Data {
    I64(ScalarBuffer<i64>),
    I32(ScalarBuffer<i32>),
    F64(ScalarBuffer<f64>),
    Bool(BooleanBuffer),
    /// Numbers of texts in the pool.
    Text(ScalarBuffer<i32>),
    LongText {
        offsets: ScalarBuffer<i32>,
        bytes: Buffer,
    },
    /// Not read.
    Absent,
}

impl ColumnChunk {
    /// A column without rows, to stand in for one that is being changed.
    pub(crate) fn empty() -> ColumnChunk {
        ColumnChunk { rows: 0, nulls: None, data: Data::I32(Vec::new().into()) }
    }

    /// The buffers in a fixed order: validity, values, and for long text the bytes.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &Buffer> {
        let (first, second) = match &self.data {
            Data::I64(values) => (Some(values.inner()), None),
            Data::I32(values) | Data::Text(values) => (Some(values.inner()), None),
            Data::F64(values) => (Some(values.inner()), None),
            Data::Bool(values) => (Some(values.inner()), None),
            Data::LongText { offsets, bytes } => (Some(offsets.inner()), Some(bytes)),
            Data::Absent => (None, None),
        };
        self.nulls.iter().map(NullBuffer::buffer).chain(first).chain(second)
    }

    /// The same column over other buffers, which must come in the order of [`ColumnChunk::buffers`] and
    /// hold the same bytes.
    pub(crate) fn with_buffers(&self, mut next: impl FnMut() -> Option<Buffer>) -> Option<ColumnChunk> {
        let rows = self.rows;
        let nulls = match &self.nulls {
            Some(nulls) => {
                let bits = BooleanBuffer::new(next()?, nulls.offset(), nulls.len());
                Some(NullBuffer::new(bits))
            }
            None => None,
        };
        if matches!(self.data, Data::Absent) {
            return Some(self.clone());
        }
        let first = next()?;
        let data = match &self.data {
            Data::I64(_) => Data::I64(ScalarBuffer::new(first, 0, rows)),
            Data::I32(_) => Data::I32(ScalarBuffer::new(first, 0, rows)),
            Data::Text(_) => Data::Text(ScalarBuffer::new(first, 0, rows)),
            Data::F64(_) => Data::F64(ScalarBuffer::new(first, 0, rows)),
            Data::Bool(bits) => Data::Bool(BooleanBuffer::new(first, bits.offset(), bits.len())),
            Data::LongText { .. } => {
                Data::LongText { offsets: ScalarBuffer::new(first, 0, rows + 1), bytes: next()? }
            }
            Data::Absent => Data::Absent,
        };
        Some(ColumnChunk { rows, nulls, data })
    }

    /// Rows of a column that is not read.
    pub(crate) fn absent(rows: usize) -> ColumnChunk {
        ColumnChunk { rows, nulls: None, data: Data::Absent }
    }

    /// True if the column is not read.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.data, Data::Absent)
    }

    /// Bytes in all buffers.
    pub(crate) fn bytes(&self) -> usize {
        self.buffers().map(Buffer::len).sum()
    }

    pub(crate) fn into_array(self, texts: &Texts) -> Result<ArrayRef, ArrowError> {
        Ok(match self.data {
            Data::Absent => Arc::new(NullArray::new(self.rows)),
            Data::I64(values) => Arc::new(Int64Array::try_new(values, self.nulls)?),
            Data::I32(values) => Arc::new(Int32Array::try_new(values, self.nulls)?),
            Data::F64(values) => Arc::new(Float64Array::try_new(values, self.nulls)?),
            Data::Bool(values) => Arc::new(BooleanArray::new(values, self.nulls)),
            Data::Text(keys) => {
                let keys = Int32Array::try_new(keys, self.nulls)?;
                Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts.array())?)
            }
            Data::LongText { offsets, bytes } => {
                Arc::new(StringArray::try_new(OffsetBuffer::new(offsets), bytes, self.nulls)?)
            }
        })
    }

    /// Replaces each number, or number of a text; `None` if the column holds neither.
    pub(crate) fn remap(self, remap: &mut dyn FnMut(Option<i32>) -> Option<i32>) -> Option<ColumnChunk> {
        let (values, wrap): (_, fn(ScalarBuffer<i32>) -> Data) = match self.data {
            Data::I32(values) => (values, Data::I32),
            Data::Text(values) => (values, Data::Text),
            _ => return None,
        };
        let mut values = Vec::<i32>::from(values);
        let mut nulls = NullBufferBuilder::new(self.rows);
        for (row, value) in values.iter_mut().enumerate() {
            let valid = self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let new = remap(valid.then_some(*value));
            nulls.append(new.is_some());
            *value = new.unwrap_or(0);
        }
        Some(ColumnChunk { rows: self.rows, nulls: nulls.finish(), data: wrap(values.into()) })
    }
}

impl ColumnChunk {
    /// Replaces each 64-bit number; `None` if the column does not hold such.
    pub(crate) fn remap_i64(self, remap: &mut dyn FnMut(Option<i64>) -> Option<i64>) -> Option<ColumnChunk> {
        let Data::I64(values) = self.data else { return None };
        let mut values = Vec::<i64>::from(values);
        let mut nulls = NullBufferBuilder::new(self.rows);
        for (row, value) in values.iter_mut().enumerate() {
            let valid = self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let new = remap(valid.then_some(*value));
            nulls.append(new.is_some());
            *value = new.unwrap_or(0);
        }
        Some(ColumnChunk { rows: self.rows, nulls: nulls.finish(), data: Data::I64(values.into()) })
    }
}

/// A number of fixed size that can stand in a column.
pub trait Plain: Copy + Default + Send {
    #[doc(hidden)]
    type Native: ArrowNativeType;
    #[doc(hidden)]
    fn native(self) -> Self::Native;
    #[doc(hidden)]
    fn data(values: Vec<Self::Native>) -> PlainData;
}

/// What [`Plain::data`] returns: hides the enum of buffers.
#[doc(hidden)]
#[derive(Debug)]
pub struct PlainData(Data);

macro_rules! plain {
    ($($ty:ty => $native:ty, $variant:ident, $self_:ident => $to:expr;)*) => {$(
        impl Plain for $ty {
            type Native = $native;
            fn native($self_) -> $native {
                $to
            }
            fn data(values: Vec<$native>) -> PlainData {
                PlainData(Data::$variant(ScalarBuffer::from(values)))
            }
        }
    )*};
}

plain! {
    i64 => i64, I64, self => self;
    i32 => i32, I32, self => self;
    f64 => f64, F64, self => self;
    // The pool never numbers beyond `i32::MAX`.
    Sym => i32, Text, self => self.0 as i32;
}

/// A column of numbers of fixed size.
#[derive(Debug)]
pub struct PlainBuilder<T: Plain> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

impl<T: Plain> Default for PlainBuilder<T> {
    fn default() -> Self {
        PlainBuilder { values: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }
}

impl<T: Plain> PlainBuilder<T> {
    /// Appends a cell to a column that never holds nulls.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.values.push(value.native());
    }

    /// Appends a cell to a column that may hold nulls; not to be mixed with [`PlainBuilder::push`].
    #[inline]
    pub(crate) fn push_option(&mut self, value: Option<T>) {
        self.nulls.append(value.is_some());
        self.values.push(value.unwrap_or_default().native());
    }

    /// Appends cells to a column that may hold nulls.
    pub(crate) fn extend(&mut self, values: &[T::Native], nulls: Option<&NullBuffer>) {
        let from = self.values.len();
        self.values.extend_from_slice(values);
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            return self.nulls.append_n_non_nulls(values.len());
        };
        self.nulls.append_buffer(nulls);
        // What stands in the place of a null is not said, and the same table has the same bytes.
        for (row, value) in self.values.get_mut(from..).unwrap_or_default().iter_mut().enumerate() {
            if row >= nulls.len() || nulls.is_null(row) {
                *value = T::default().native();
            }
        }
    }
}

/// A full chunk, or part of a table that is read in parts, is followed by one of the same size; the last one gives back
/// what it does not need.
fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let full = values.len() >= CHUNK_ROWS || values.len() == PART_ROWS;
    let next = if full { Vec::with_capacity(values.len()) } else { Vec::new() };
    let mut taken = std::mem::replace(values, next);
    if !full {
        taken.shrink_to_fit();
    }
    taken
}

impl<T: Plain> ColumnBuilder for PlainBuilder<T> {
    fn finish_chunk(&mut self) -> ColumnChunk {
        let values = take(&mut self.values);
        ColumnChunk { rows: values.len(), nulls: self.nulls.finish(), data: T::data(values).0 }
    }
}

/// A column of true and false.
#[derive(Debug)]
pub struct BoolBuilder {
    values: BooleanBufferBuilder,
    nulls: NullBufferBuilder,
}

impl Default for BoolBuilder {
    fn default() -> Self {
        BoolBuilder { values: BooleanBufferBuilder::new(0), nulls: NullBufferBuilder::new(0) }
    }
}

impl BoolBuilder {
    #[inline]
    pub(crate) fn push(&mut self, value: bool) {
        self.values.append(value);
    }

    #[inline]
    pub(crate) fn push_option(&mut self, value: Option<bool>) {
        self.nulls.append(value.is_some());
        self.values.append(value.unwrap_or_default());
    }
}

impl ColumnBuilder for BoolBuilder {
    fn finish_chunk(&mut self) -> ColumnChunk {
        let values = self.values.finish();
        ColumnChunk { rows: values.len(), nulls: self.nulls.finish(), data: Data::Bool(values) }
    }
}

/// A column of text that is mostly unique.
#[derive(Debug)]
pub struct LongTextBuilder {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Default for LongTextBuilder {
    fn default() -> Self {
        LongTextBuilder { bytes: Vec::new(), offsets: vec![0], nulls: NullBufferBuilder::new(0) }
    }
}

impl LongTextBuilder {
    #[inline]
    pub(crate) fn push(&mut self, text: &str) {
        let end = text.floor_char_boundary(LONG_TEXT_CELL_LIMIT);
        self.bytes.extend_from_slice(text.as_bytes().get(..end).unwrap_or_default());
        // The builder closes the chunk long before the bytes reach 2 GiB.
        self.offsets.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }

    #[inline]
    pub(crate) fn push_option(&mut self, text: Option<&str>) {
        self.nulls.append(text.is_some());
        self.push(text.unwrap_or_default());
    }
}

impl ColumnBuilder for LongTextBuilder {
    fn finish_chunk(&mut self) -> ColumnChunk {
        // A full chunk is followed by one of about the same size.
        let full = self.offsets.len() > CHUNK_ROWS || self.offsets.len() == PART_ROWS + 1;
        let next = if full { self.bytes.len() + self.bytes.len() / 16 } else { 0 };
        let mut bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(next));
        bytes.shrink_to_fit();
        let mut first = Vec::with_capacity(if full { self.offsets.len() } else { 1 });
        first.push(0);
        let offsets = std::mem::replace(&mut self.offsets, first);
        ColumnChunk {
            rows: offsets.len().saturating_sub(1),
            nulls: self.nulls.finish(),
            data: Data::LongText { offsets: offsets.into(), bytes: Buffer::from_vec(bytes) },
        }
    }

    fn text_bytes(&self) -> usize {
        self.bytes.len()
    }
}
