//! Parquet: every table as a file for DuckDB, pandas, Polars and Spark.
//!
//! Units, roles and documentation travel twice: as metadata of the Arrow fields (which pyarrow and Polars
//! read), and as JSON in the file's key `etwhy.columns` for readers that know nothing of Arrow.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use etwhy_table::{ColumnType, Role, Selection, TableSpec, arrow_schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::sync::Mutex;
use std::thread::ScopedJoinHandle;

use crate::format::write_at_once;
use crate::{Format, Options, PartWriter, Result};

pub(super) const FORMATS: &[Format] = &[Format {
    name: "parquet",
    extensions: &["parquet", "pq"],
    about: "columnar file for DuckDB, pandas, Polars, Spark; keeps units and documentation",
    binary: true,
    write,
    parts: Some(start),
}];

/// Readers work on row groups in parallel and skip them by their statistics; DuckDB advises 100,000 to
/// 1,000,000 rows ("Parquet Tips", row group size).
const ROW_GROUP: usize = 1 << 20;

/// A row group is held in memory until it is full, and so wide rows make it end earlier.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// zstd 3 is zstd's own default; higher levels cost time in extraction for few per cent.
const ZSTD_LEVEL: i32 = 3;

fn write(selection: &Selection<'_>, options: &Options, out: &mut (dyn Write + Send)) -> Result<()> {
    write_at_once(start, selection, options, out)
}

fn start<'o>(
    spec: &TableSpec,
    options: &Options,
    out: &'o mut (dyn Write + Send),
) -> Result<Box<dyn PartWriter + 'o>> {
    let schema = arrow_schema(spec);
    let properties = properties(spec, &schema, &options.facts)?;
    let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))?;
    let (file, columns) = writer.into_serialized_writer()?;
    // Long texts are most of the work, so they are begun first.
    let mut order: Vec<usize> = (0..spec.columns.len()).collect();
    order.sort_by_key(|&at| spec.columns.get(at).map(|c| c.ty != ColumnType::LongText));
    let threads = options.threads.clamp(1, order.len().max(1));
    Ok(Box::new(Parquet { file, columns, schema, order, threads, group: Vec::new(), rows: 0 }))
}

/// Row groups whose columns are encoded by several threads. Where a group ends follows from its rows alone.
struct Parquet<'o> {
    file: SerializedFileWriter<&'o mut (dyn Write + Send)>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    order: Vec<usize>,
    threads: usize,
    /// Columns of the group that is not full yet, and its rows.
    group: Vec<ArrowColumnWriter>,
    rows: usize,
}

impl PartWriter for Parquet<'_> {
    fn part(&mut self, rows: &Selection<'_>) -> Result<()> {
        for batch in rows.batches() {
            self.batch(batch?)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.end_group()?;
        self.file.close()?;
        Ok(())
    }
}

impl Parquet<'_> {
    fn batch(&mut self, mut left: RecordBatch) -> Result<()> {
        while left.num_rows() > 0 {
            let mut take = left.num_rows().min(ROW_GROUP - self.rows);
            if let Some(row) = self.bytes().checked_div(self.rows).filter(|bytes| *bytes > 0) {
                take = take.min((ROW_GROUP_BYTES.saturating_sub(self.bytes()) / row).max(1));
            }
            self.encode(&left.slice(0, take))?;
            left = left.slice(take, left.num_rows() - take);
            if self.rows >= ROW_GROUP || self.bytes() >= ROW_GROUP_BYTES {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Bytes of the group, about.
    fn bytes(&self) -> usize {
        self.group.iter().map(ArrowColumnWriter::get_estimated_total_bytes).sum()
    }

    fn encode(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.group.is_empty() {
            self.group = self.columns.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        self.rows += batch.num_rows();
        let mut jobs: Vec<_> = self.group.iter_mut().enumerate().collect();
        jobs.sort_by_key(|(at, _)| std::cmp::Reverse(self.order.iter().position(|of| of == at)));
        let jobs = Mutex::new(jobs);
        let work = || -> Result<()> {
            loop {
                let Some((at, column)) = jobs.lock().ok().and_then(|mut jobs| jobs.pop()) else {
                    return Ok(());
                };
                for leaf in compute_leaves(self.schema.field(at), batch.column(at))? {
                    column.write(&leaf)?;
                }
            }
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let join = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            others.into_iter().map(join).fold(own, Result::and)
        })
    }

    fn end_group(&mut self) -> Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        self.rows = 0;
        let mut group = self.file.next_row_group()?;
        for column in self.group.drain(..) {
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        Ok(())
    }
}

fn properties(spec: &TableSpec, schema: &SchemaRef, facts: &[(String, String)]) -> Result<WriterProperties> {
    let mut metadata: Vec<KeyValue> = schema
        .metadata()
        .iter()
        .chain(facts.iter().map(|(key, value)| (key, value)))
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    metadata.sort_by(|a, b| a.key.cmp(&b.key));
    let column = |c: &etwhy_table::ColumnSpec| {
        serde_json::json!({
            "name": c.name, "type": c.ty.name(), "unit": c.unit.name(), "role": c.role.name(), "doc": c.doc,
            "nullable": c.nullable,
        })
    };
    let columns: Vec<serde_json::Value> = spec.columns.iter().map(column).collect();
    metadata.push(KeyValue::new("etwhy.columns".to_owned(), serde_json::to_string(&columns)?));

    let sorting = spec.sorted_by.as_deref().and_then(|name| spec.column_index(name));
    let sorting = sorting
        .and_then(|index| i32::try_from(index).ok())
        .map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: false }]);
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_created_by(concat!("etwhy ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_sorting_columns(sorting)
        .set_key_value_metadata(Some(metadata));
    for column in spec.columns.iter() {
        // Long texts are mostly unique.
        if column.ty == ColumnType::LongText {
            let path = ColumnPath::from(column.name.as_ref());
            properties = properties.set_column_dictionary_enabled(path, false);
        }
        // Times never repeat, and so a dictionary of them is waste; their differences are small.
        if column.role == Role::Time && column.ty == ColumnType::I64 {
            let path = ColumnPath::from(column.name.as_ref());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::sample;
    use crate::write_file;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn files_are_whole_and_described() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sample.parquet");
        let table = sample();
        let format = Format::by_path(&path).unwrap();
        for _ in 0..2 {
            write_file(format, &Selection::all(&table), &Options::default(), &path).unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let metadata = file.metadata().file_metadata();
        assert_eq!(metadata.num_rows(), 2);
        let of = |key: &str| {
            metadata
                .key_value_metadata()
                .unwrap()
                .iter()
                .find(|kv| kv.key == key)
                .and_then(|kv| kv.value.clone())
        };
        assert_eq!(of("etwhy.version").as_deref(), Some("2"));
        assert_eq!(of("etwhy.sorted_by").as_deref(), Some("ts_ns"));
        let columns: serde_json::Value = serde_json::from_str(&of("etwhy.columns").unwrap()).unwrap();
        assert_eq!(of("etwhy.doc").as_deref(), Some("Rows to test with."));
        // Readers that know Arrow find the same at its fields.
        let schema = file.metadata().file_metadata();
        let options = parquet::arrow::arrow_reader::ArrowReaderOptions::new();
        let arrow = parquet::arrow::arrow_reader::ArrowReaderMetadata::load(
            &std::fs::File::open(&path).unwrap(),
            options,
        );
        let arrow = arrow.unwrap();
        assert_eq!(arrow.schema().fields().len(), schema.schema_descr().num_columns());
        for (field, column) in arrow.schema().fields().iter().zip(table.spec().columns.iter()) {
            let said = |key: &str| field.metadata().get(key).map(String::as_str);
            assert_eq!(said("etwhy.unit"), Some(column.unit.name()), "{}", column.name);
            assert_eq!(said("etwhy.role"), Some(column.role.name()), "{}", column.name);
            assert_eq!(said("etwhy.doc"), Some(column.doc.as_ref()), "{}", column.name);
        }
        assert_eq!(columns[2]["unit"], "ns");
        assert_eq!(columns[2]["role"], "duration");
        assert!(file.metadata().row_group(0).sorting_columns().is_some());
    }

    #[test]
    fn a_table_without_rows_is_a_file() {
        let table = sample();
        let mut out = Vec::new();
        write(&Selection::all(&table).top(0), &Options::default(), &mut out).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
        assert_eq!(file.metadata().file_metadata().schema_descr().num_columns(), 10);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let table = sample();
        let format = Format::by_name("parquet").unwrap();
        let path = std::path::Path::new("/nonexistent/x.parquet");
        let error = write_file(format, &Selection::all(&table), &Options::default(), path).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/x.parquet"), "{error}");
    }
}
