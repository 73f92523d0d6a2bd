//! Parquet files of a store: written without documentation, read by the names of their columns.

use crate::contract::schema;
use crate::error::{FleetError, Result, damaged, io};
use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::SchemaRef;
use etwhy_table::TableSpec;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Rows read at once.
const BATCH_ROWS: usize = 8192;

/// A file that is being written.
pub struct Writer {
    path: PathBuf,
    writer: ArrowWriter<File>,
    stays: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({})", self.path.display())
    }
}

impl Writer {
    /// Begins a file with the columns of a table.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(path: &Path, schema: SchemaRef) -> Result<Writer> {
        let level = ZstdLevel::try_new(3).map_err(|error| damaged(path)(&error))?;
        Writer::with(path, schema, Compression::ZSTD(level), true)
    }

    /// Begins a file that is read once, soon: to compress a few rows for each column costs more than a small trace, and nothing is lost
    /// if it is lost.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn passing(path: &Path, schema: SchemaRef) -> Result<Writer> {
        Writer::with(path, schema, Compression::UNCOMPRESSED, false)
    }

    fn with(path: &Path, schema: SchemaRef, compression: Compression, stays: bool) -> Result<Writer> {
        let file = File::create(path).map_err(io(path))?;
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_created_by(concat!("etwhy ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        // The columns of a Parquet file say all that readers need.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, schema, options).map_err(not_written(path))?;
        Ok(Writer { path: path.to_path_buf(), writer, stays })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.writer.write(rows).map_err(not_written(&self.path))
    }

    /// Ends the file; one that stays is then on the disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.writer.finish().map_err(not_written(&self.path))?;
        if self.stays { self.writer.inner().sync_all().map_err(io(&self.path)) } else { Ok(()) }
    }
}

/// Why a file could not be written: what the system says, where it was the system.
fn not_written(path: &Path) -> impl FnOnce(ParquetError) -> FleetError {
    let file = path.to_path_buf();
    |error| match error {
        ParquetError::External(why) => match why.downcast::<std::io::Error>() {
            Ok(source) => FleetError::Io { file, source: *source },
            Err(why) => damaged(&file)(&why),
        },
        why => damaged(&file)(&why),
    }
}

/// Reads a file as rows of a table. A column that the file does not have is empty, others than the table's are left out.
///
/// # Errors
/// If the file is missing, damaged, or has a column of another type.
pub fn read(path: &Path, spec: &TableSpec, mut each: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
    let bad = damaged(path);
    let file = File::open(path).map_err(io(path))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
        .map_err(|error| bad(&error))?;
    let wanted = schema(spec);
    for rows in reader {
        let rows = rows.map_err(|error| bad(&error))?;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(wanted.fields().len());
        for field in wanted.fields() {
            columns.push(match rows.column_by_name(field.name()) {
                Some(column) if column.data_type() == field.data_type() => column.clone(),
                Some(column) => {
                    let (name, is) = (field.name(), column.data_type());
                    return Err(bad(&format!("column `{name}` is {is}")));
                }
                None if field.is_nullable() => new_null_array(field.data_type(), rows.num_rows()),
                None => return Err(bad(&format!("column `{}` is missing", field.name()))),
            });
        }
        each(RecordBatch::try_new(wanted.clone(), columns).map_err(|error| bad(&error))?)?;
    }
    Ok(())
}

/// As [`read`], into a list; nothing if there is no such file.
///
/// # Errors
/// As [`read`].
pub fn read_if_there(path: &Path, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
    let mut all = Vec::new();
    match read(path, spec, |rows| {
        all.push(rows);
        Ok(())
    }) {
        Err(FleetError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map(|()| all),
    }
}
