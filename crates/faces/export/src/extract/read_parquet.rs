//! Reads a Parquet file that may come from anybody.
//!
//! The reader of the library is written for files that are sound. What the metadata claim is checked before it believes them, a text that is
//! repeated takes its room once or comes in few rows, and whoever reads does so in [`catch`](super::catch). What all rows may unpack to is
//! the caller's to limit.

use super::pages::check_pages;
use super::parquet_columns::columns_of;
use super::sums;
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use etwhy_table::{ColumnSpec, ColumnType, TableSpec, arrow_field};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Encoding;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Metadata of a Parquet file grow with row groups and columns: a thousand groups of forty columns need some megabytes.
const MAX_FOOTER: u64 = 64 << 20;

/// Rows read at once: few, so that what a batch unpacks to is bounded, and enough that a batch costs nothing.
const BATCH_ROWS: usize = 8192;

/// Rows read at once where long texts may repeat without taking room in the file, which extracts never have.
const BATCH_ROWS_UNPACKING: usize = 16;

/// Opens a regular file, and says how large it is: a pipe would keep the program waiting, and a device has no end.
///
/// # Errors
/// The system's, or that the file is another thing.
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no regular file"));
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// A Parquet file whose metadata stay within it.
#[derive(Debug)]
pub struct ParquetFile {
    file: File,
    first: ArrowReaderMetadata,
}

impl ParquetFile {
    /// Reads the metadata of a file of this size.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(file: File, size: u64) -> Result<ParquetFile, String> {
        check_footer(&file, size)?;
        // What the file says of Arrow types is not asked.
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let first = ArrowReaderMetadata::load(&file, plain).map_err(|error| error.to_string())?;
        check_places(first.metadata(), size)?;
        Ok(ParquetFile { file, first })
    }

    /// Rows that it claims to have.
    pub fn rows(&self) -> u64 {
        let groups = self.first.metadata().row_groups();
        groups.iter().fold(0u64, |n, group| n.saturating_add(group.num_rows().max(0).unsigned_abs()))
    }

    /// Bytes that the metadata say of these columns; pages that unpack to more are not [read](ParquetFile::read).
    pub fn unpacked(&self, columns: &[(&ColumnSpec, usize)]) -> u64 {
        let bytes = chunks(self.first.metadata(), columns)
            .map(|chunk| u64::try_from(chunk.uncompressed_size()).unwrap_or(u64::MAX));
        bytes.fold(0, u64::saturating_add)
    }

    /// Where each column of a table stands among those of the file, if it does.
    ///
    /// # Errors
    /// What is wrong with a column.
    pub fn places(&self, spec: &TableSpec) -> Result<Vec<Option<usize>>, String> {
        columns_of(spec, self.first.parquet_schema())
    }

    /// Checks columns: name, place and checksums.
    pub(super) fn check_sums(&mut self, columns: &[(&str, usize, Vec<u32>)]) -> Result<(), String> {
        sums::check_columns(&mut self.file, self.first.metadata(), columns)
    }

    /// Reads the columns at these places, in this order. Texts of a [`ColumnType::Text`] are dictionaries, as they are in the file: one that
    /// stands there once and in all rows takes its room once.
    ///
    /// # Errors
    /// What `damaged` makes of the damage, and those of `each`.
    pub fn read<E>(
        self,
        columns: &[(&ColumnSpec, usize)],
        damaged: impl Fn(String) -> E,
        mut each: impl FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let metadata = Arc::clone(self.first.metadata());
        for chunk in chunks(&metadata, columns) {
            let (from, len) = chunk.byte_range();
            let unpacked = u64::try_from(chunk.uncompressed_size()).unwrap_or(0);
            check_pages(&self.file, from, len, unpacked).map_err(&damaged)?;
        }
        let mut fields: Vec<Arc<Field>> = self.first.schema().fields().iter().cloned().collect();
        for (column, at) in columns {
            let Some(field) = fields.get_mut(*at).filter(|_| column.ty == ColumnType::Text) else { continue };
            let ty: DataType = arrow_field(column).data_type().clone();
            *field = Arc::new(Field::new(field.name(), ty, field.is_nullable()));
        }
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
        let typed = ArrowReaderMetadata::try_new(Arc::clone(&metadata), options)
            .map_err(|error| damaged(error.to_string()))?;
        let mut sorted: Vec<usize> = columns.iter().map(|(_, at)| *at).collect();
        let mask = ProjectionMask::roots(metadata.file_metadata().schema_descr(), sorted.iter().copied());
        let rows = if texts_repeat(columns, &metadata) { BATCH_ROWS_UNPACKING } else { BATCH_ROWS };
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(self.file, typed)
            .with_projection(mask)
            .with_batch_size(rows)
            .build()
            .map_err(|error| damaged(error.to_string()))?;
        // The reader keeps the file's order, the table has its own.
        sorted.sort_unstable();
        let order: Vec<usize> =
            columns.iter().map(|(_, at)| sorted.binary_search(at).unwrap_or(usize::MAX)).collect();
        for batch in reader {
            let batch = batch.and_then(|batch| batch.project(&order));
            each(batch.map_err(|error| damaged(error.to_string()))?)?;
        }
        Ok(())
    }
}

/// These columns in all row groups.
fn chunks<'m>(
    metadata: &'m ParquetMetaData,
    columns: &'m [(&'m ColumnSpec, usize)],
) -> impl Iterator<Item = &'m ColumnChunkMetaData> {
    let groups = metadata.row_groups().iter();
    groups.flat_map(move |group| columns.iter().filter_map(move |(_, at)| group.columns().get(*at)))
}

/// Bytes of so many rows of these columns without their texts.
pub fn bytes_of_rows(columns: &[&ColumnSpec], rows: u64) -> u64 {
    let width = |c: &&ColumnSpec| match c.ty {
        ColumnType::I64 | ColumnType::F64 => 8,
        ColumnType::I32 | ColumnType::Text | ColumnType::LongText => 4,
        ColumnType::Bool => 1,
    };
    rows.saturating_mul(columns.iter().map(width).sum())
}

/// Refuses metadata whose parts lie outside of the file: the reader asserts that they do not.
fn check_places(metadata: &ParquetMetaData, size: u64) -> Result<(), &'static str> {
    for chunk in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let start = chunk.dictionary_page_offset().unwrap_or(i64::MAX).min(chunk.data_page_offset());
        let place = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
        if place.and_then(|(from, len)| from.checked_add(len)).is_none_or(|end| end > size) {
            return Err("a column lies outside of the file");
        }
    }
    Ok(())
}

/// Refuses files whose end claims metadata of an absurd size. (Parquet ends with their length and `PAR1`.)
fn check_footer(file: &File, size: u64) -> Result<(), String> {
    use std::io::{Seek, SeekFrom};
    let mut file = file;
    let mut end = [0u8; 8];
    let at = size.checked_sub(8).ok_or("too short")?;
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut end)).map_err(|e| e.to_string())?;
    let (length, magic) = end.split_at(4);
    if magic != b"PAR1" {
        return Err("the end is not that of a Parquet file".to_owned());
    }
    let length = length.iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
    if length > MAX_FOOTER.min(at) {
        return Err(format!("metadata of {length} bytes"));
    }
    file.seek(SeekFrom::Start(0)).map_err(|e| e.to_string())?;
    Ok(())
}

/// Whether long texts of the file repeat without taking room: as numbers of a dictionary, or by common beginnings.
fn texts_repeat(columns: &[(&ColumnSpec, usize)], metadata: &ParquetMetaData) -> bool {
    let long = || columns.iter().filter(|(c, _)| c.ty == ColumnType::LongText);
    metadata.row_groups().iter().any(|group| {
        long().filter_map(|(_, at)| group.columns().get(*at)).any(|chunk| {
            chunk.dictionary_page_offset().is_some()
                || chunk.encodings().any(|e| {
                    !matches!(e, Encoding::PLAIN | Encoding::RLE | Encoding::DELTA_LENGTH_BYTE_ARRAY)
                })
        })
    })
}
