//! Parquet files of a store: written without documentation, read by the names of their columns.

use crate::error::{FleetError, Result, damaged, io};
use crate::ids::is_id;
use arrow_array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use etwhy_export::extract::{ParquetFile, bytes_of_rows, catch, open_regular};
use etwhy_table::{ColumnSpec, ColumnView, TableSpec, arrow_field};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most times that rows may be larger than their file: those of traces differ, at least in their ids.
const MOST_TIMES: u64 = 1000;
/// Bytes up to which that does not matter.
const FREE_BYTES: u64 = 1 << 20;

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

/// Reads a file as rows of a table, whose texts are dictionaries. A column that the file does not have is empty, others than the table's are
/// left out. A store may come from anybody, and so may its files.
///
/// # Errors
/// If the file is missing, damaged, has a column of another type or ids that are none, or unpacks to more than any that a program of ours wrote.
pub fn read(path: &Path, spec: &TableSpec, mut each: impl FnMut(RecordBatch) -> Result<()>) -> Result<()> {
    let (file, size) = open_regular(path).map_err(io(path))?;
    let most = size.saturating_mul(MOST_TIMES).max(FREE_BYTES);
    let bad = |why: String| damaged(path)(&why);
    let read = catch(|| {
        let source = ParquetFile::new(file, size).map_err(bad)?;
        let places = source.places(spec).map_err(bad)?;
        let there: Vec<(&ColumnSpec, usize)> =
            spec.columns.iter().zip(&places).filter_map(|(column, at)| Some((column, (*at)?))).collect();
        let wanted = Arc::new(Schema::new(spec.columns.iter().map(arrow_field).collect::<Vec<_>>()));
        let width = bytes_of_rows(&spec.columns.iter().collect::<Vec<_>>(), 1);
        let mut texts = Texts::default();
        let mut fixed = 0u64;
        for (column, _) in spec.columns.iter().zip(&places).filter(|(_, at)| at.is_none()) {
            if !column.nullable {
                return Err(bad(format!("column `{}` is missing", column.name)));
            }
        }
        let too_large = || bad(format!("unpacks to more than {most} bytes"));
        if source.unpacked(&there) > most {
            return Err(too_large());
        }
        source.read(&there, bad, |rows| {
            let count = rows.num_rows();
            fixed = fixed.saturating_add(width.saturating_mul(count as u64));
            if fixed.saturating_add(texts.of(&rows)) > most {
                return Err(too_large());
            }
            let mut given = rows.columns().iter();
            let columns = wanted.fields().iter().zip(&places).map(|(field, at)| {
                let own = at.and_then(|_| given.next().cloned());
                own.unwrap_or_else(|| new_null_array(field.data_type(), count))
            });
            let columns: Vec<ArrayRef> = columns.collect();
            let rows =
                RecordBatch::try_new(wanted.clone(), columns).map_err(|error| bad(error.to_string()))?;
            check_ids(&rows).map_err(bad)?;
            each(rows)
        })
    });
    read.unwrap_or_else(|| Err(bad("its parts contradict each other".to_owned())))
}

/// Names of traces and readings are parts of paths and of command lines: they are what this program makes, or the file is damaged.
fn check_ids(rows: &RecordBatch) -> std::result::Result<(), String> {
    for name in ["trace_id", "extract_id"] {
        let texts = match rows.column_by_name(name).map(ColumnView::new) {
            Some(ColumnView::Text(_, texts, _) | ColumnView::LongText(texts)) => texts,
            _ => continue,
        };
        if let Some(other) = texts.iter().flatten().find(|id| !is_id(id)) {
            let shown: String = other.chars().take(40).collect();
            return Err(format!("`{shown}` is no {name}"));
        }
    }
    Ok(())
}

/// Bytes of the texts that were read: those of a dictionary count once, however many batches have it.
#[derive(Default)]
struct Texts {
    bytes: u64,
    /// The dictionary of each column. It is held, so that its address is nobody else's.
    last: Vec<Option<StringArray>>,
}

impl Texts {
    /// All bytes so far, with those of these rows.
    fn of(&mut self, rows: &RecordBatch) -> u64 {
        self.last.resize(rows.num_columns(), None);
        for (column, last) in rows.columns().iter().zip(&mut self.last) {
            let ColumnView::Text(_, texts, _) = ColumnView::new(column) else { continue };
            let same = |last: &StringArray| std::ptr::eq(last.value_data(), texts.value_data());
            if !last.as_ref().is_some_and(same) {
                self.bytes = self.bytes.saturating_add(texts.value_data().len() as u64);
                *last = Some(texts.clone());
            }
        }
        self.bytes
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::KNOWLEDGE;
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, DictionaryArray, Int32Array};

    /// A file with the same text in all columns of so many rows.
    fn same(path: &Path, text: &str, rows: usize) {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
        let keys = Int32Array::from(vec![0; rows]);
        let column: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, texts));
        let columns = KNOWLEDGE.columns.iter().map(|spec| (spec.name.to_string(), column.clone()));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        // Pages without an end: all rows are one number and how often it comes.
        let properties = WriterProperties::builder().set_data_page_row_count_limit(usize::MAX).build();
        let file = File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    /// Rows of a file, and the most memory that some of them took.
    fn sizes(path: &Path) -> Result<(usize, usize)> {
        let (mut all, mut most) = (0usize, 0usize);
        read(path, &KNOWLEDGE, |rows| {
            all += rows.num_rows();
            let size = |column: &ArrayRef| column.get_array_memory_size();
            most = most.max(rows.columns().iter().map(size).sum::<usize>());
            Ok(())
        })?;
        Ok((all, most))
    }

    #[test]
    fn a_text_that_all_rows_have_takes_its_room_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("knowledge.parquet");
        same(&file, &"x".repeat(1 << 16), 20_000);
        let (rows, most) = sizes(&file).unwrap();
        assert_eq!(rows, 20_000);
        assert!(most < 4 << 20, "{most} bytes at once");
    }

    #[test]
    fn what_is_no_table_of_ours_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("knowledge.parquet");
        same(&file, "x", 1_000_000);
        let error = sizes(&file).unwrap_err();
        assert!(error.to_string().contains("unpacks to more than"), "{error}");
        std::fs::write(&file, b"PAR1\xff\xff\xff\x7fPAR1").unwrap();
        assert!(matches!(sizes(&file), Err(FleetError::Damaged { .. })));
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(matches!(sizes(&file), Err(FleetError::Io { .. })), "a folder, as a pipe, is no file");
    }
}
