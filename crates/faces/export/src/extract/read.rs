//! Reads an extract back.

use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use arrow_array::{Array, RecordBatch, StringArray};
use etwhy_table::{ColumnSpec, ColumnType, Memory, Strings, TableError, TableLoader, TableSpec};

use super::manifest::{FORMAT, MANIFEST, Manifest, VERSION};
use super::read_parquet::{ParquetFile, bytes_of_rows, open_regular};
use super::{TableEntry, file_name, quiet, sums};

/// A manifest names some hundred tables with their columns, in some hundred kilobytes; what is larger is none.
const MAX_MANIFEST: u64 = 16 << 20;

/// Why an extract, or a table of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// The operating system refused a file.
    #[error("cannot read {file}: {source}")]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The manifest is none.
    #[error("{file}: not the manifest of an extract: {why}")]
    Manifest {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Written by a program that knows more than this one.
    #[error(
        "{file}: {what} has version {version}, newer than {known}, which this program knows; use a newer etwhy"
    )]
    TooNew {
        /// The file.
        file: PathBuf,
        /// The layout, or a table.
        what: String,
        /// Its version.
        version: u32,
        /// The newest known.
        known: u32,
    },
    /// Written by a program that knows less than this one.
    #[error("{file}: {what} has version {version}, older than {known}; extract the trace again")]
    TooOld {
        /// The file.
        file: PathBuf,
        /// The layout, or a table.
        what: String,
        /// Its version.
        version: u32,
        /// The one needed.
        known: u32,
    },
    /// The file does not hold the table.
    #[error("{file}: does not hold table `{table}`: {why}")]
    Columns {
        /// The file.
        file: PathBuf,
        /// The table.
        table: String,
        /// The column and what is wrong with it.
        why: String,
    },
    /// The file is damaged, or not Parquet.
    #[error("{file}: damaged, or not Parquet: {why}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What the reader says.
        why: String,
    },
    /// The file unpacks to more than is allowed.
    #[error("{file}: would unpack to {bytes} bytes, more than {limit}, which {option} can raise")]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Bytes of the table.
        bytes: u64,
        /// Bytes allowed.
        limit: u64,
        /// The option that allows more.
        option: &'static str,
    },
    /// The rows are not those of the table.
    #[error("{file}: {source}")]
    Rows {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        source: TableError,
    },
}

/// How much an extract may unpack to. The rules are those for archives.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of all tables together.
    pub bytes: u64,
    /// Most times that a table may be larger than its file, once it is larger than `free_bytes`.
    pub ratio: u64,
    /// Bytes up to which the ratio does not matter.
    pub free_bytes: u64,
    /// Options of the command line that raise `bytes` and `ratio`.
    pub options: [&'static str; 2],
}

/// True for a folder that says it is an extract.
pub fn is_extract(folder: &Path) -> bool {
    let Ok((file, _)) = open_regular(&folder.join(MANIFEST)) else { return false };
    let mut head = Vec::new();
    // The first field says it.
    let read = file.take(256).read_to_end(&mut head).is_ok();
    read && String::from_utf8_lossy(&head).contains(FORMAT)
}

/// Names of the files that an extract wrote into this folder, of whatever version; `None` if it is no extract.
pub(super) fn files_of(folder: &Path) -> Option<HashSet<String>> {
    let (file, _) = open_regular(&folder.join(MANIFEST)).ok()?;
    let manifest: Manifest = serde_json::from_reader(BufReader::new(file.take(MAX_MANIFEST))).ok()?;
    let tables = manifest.tables.iter().map(|table| file_name(&table.name));
    (manifest.format == FORMAT).then(|| tables.chain([MANIFEST.to_owned()]).collect())
}

/// An extract that is open.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    manifest: Manifest,
    limits: Limits,
    unpacked: u64,
}

impl Folder {
    /// Opens an extract.
    ///
    /// # Errors
    /// If the manifest is missing, damaged or too new.
    pub fn open(path: &Path, limits: Limits) -> Result<Folder, ExtractError> {
        let file = path.join(MANIFEST);
        let io = |source| ExtractError::Io { file: file.clone(), source };
        let mut bytes = Vec::new();
        open_regular(&file).map_err(io)?.0.take(MAX_MANIFEST).read_to_end(&mut bytes).map_err(io)?;
        let bad = |why: String| ExtractError::Manifest { file: file.clone(), why };
        // The version first: what a newer manifest says is not for this program.
        let any: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| bad(e.to_string()))?;
        if any.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
            return Err(bad("`format` is another".to_owned()));
        }
        let version = any.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        let what = || "the extract".to_owned();
        if version > VERSION {
            return Err(ExtractError::TooNew { file, what: what(), version, known: VERSION });
        }
        // The only older one had no checksums.
        if version == VERSION - 1 {
            return Err(ExtractError::TooOld { file, what: what(), version, known: VERSION });
        }
        if !sums::is_sealed(&bytes) {
            return Err(bad("its text is not the one that was written (checksum)".to_owned()));
        }
        let manifest: Manifest = serde_json::from_value(any).map_err(|e| bad(e.to_string()))?;
        Ok(Folder { path: path.to_path_buf(), manifest, limits, unpacked: 0 })
    }

    /// What the manifest says.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the extract says that it holds the table. Its file may be missing all the same.
    pub fn has(&self, table: &str) -> bool {
        self.entry(table).is_some()
    }

    fn entry(&self, table: &str) -> Option<&TableEntry> {
        self.manifest.tables.iter().find(|t| t.name == table)
    }

    /// Reads a table. Its texts go into `strings`; [`TableLoader::finish`] makes the table when these are complete.
    ///
    /// # Errors
    /// If the file is missing, damaged, too large, or does not hold the table as declared.
    pub fn load(
        &mut self,
        spec: &TableSpec,
        strings: &mut Strings,
        memory: &Memory,
    ) -> Result<TableLoader, ExtractError> {
        self.load_columns(spec, &|_| true, strings, memory)
    }

    /// As [`Folder::load`], but only some columns; the others are [absent](etwhy_table::Table::has). What is not read is not
    /// checked either.
    ///
    /// # Errors
    /// Those of [`Folder::load`].
    pub fn load_columns(
        &mut self,
        spec: &TableSpec,
        is_read: &dyn Fn(&str) -> bool,
        strings: &mut Strings,
        memory: &Memory,
    ) -> Result<TableLoader, ExtractError> {
        let path = self.path.join(file_name(&spec.name));
        self.check_version(spec, &path)?;
        // The Parquet reader is written for files that are sound, and this one may come from anybody.
        let read = quiet::catch(|| self.read(spec, is_read, &path, strings, memory));
        read.unwrap_or_else(|| {
            Err(ExtractError::Damaged {
                file: path.clone(),
                why: "its parts contradict each other".to_owned(),
            })
        })
    }

    fn check_version(&self, spec: &TableSpec, path: &Path) -> Result<(), ExtractError> {
        let known = spec.version;
        let version = self.entry(&spec.name).map_or(known, |entry| entry.version);
        let (file, what) = (path.to_path_buf(), format!("table `{}`", spec.name));
        match version.cmp(&known) {
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Less => Err(ExtractError::TooOld { file, what, version, known }),
            std::cmp::Ordering::Greater => Err(ExtractError::TooNew { file, what, version, known }),
        }
    }

    fn read(
        &mut self,
        spec: &TableSpec,
        is_read: &dyn Fn(&str) -> bool,
        path: &Path,
        strings: &mut Strings,
        memory: &Memory,
    ) -> Result<TableLoader, ExtractError> {
        let io = |source| ExtractError::Io { file: path.to_path_buf(), source };
        let bad = |why: String| ExtractError::Damaged { file: path.to_path_buf(), why };
        let (mut file, size) = open_regular(path).map_err(io)?;
        let entry = self.entry(&spec.name).ok_or_else(|| bad("the manifest does not list it".to_owned()))?;
        if size != entry.bytes
            || sums::from_text(&entry.footer_crc32) != [sums::of_footer(&mut file, size).map_err(io)?]
        {
            return Err(bad("its metadata are not those that were written (checksum)".to_owned()));
        }
        let mut source = ParquetFile::new(file, size).map_err(bad)?;
        let wrong =
            |why| ExtractError::Columns { file: path.to_path_buf(), table: spec.name.to_string(), why };
        let mut columns = Vec::with_capacity(spec.columns.len());
        for (column, at) in spec.columns.iter().zip(source.places(spec).map_err(wrong)?) {
            let at = at.ok_or_else(|| wrong(format!("column `{}` is missing", column.name)))?;
            if is_read(&column.name) {
                columns.push((column, at));
            }
        }
        let summed = columns.iter().map(|(column, at)| {
            let said = entry.columns.iter().find(|said| said.name == column.name);
            (column.name.as_ref(), *at, said.map_or_else(Vec::new, |said| sums::from_text(&said.crc32)))
        });
        source.check_sums(&summed.collect::<Vec<_>>()).map_err(bad)?;
        let limit = self.limits.of_file(size);
        let declared: Vec<&ColumnSpec> = columns.iter().map(|(column, _)| *column).collect();
        let fixed = bytes_of_rows(&declared, source.rows());
        self.check_size(path, fixed.max(source.unpacked(&columns)), limit)?;
        let mut loader = TableLoader::of_columns(spec, is_read, memory);
        let (texts_before, mut long) = (strings.bytes(), 0usize);
        source.read(&columns, bad, |batch| {
            loader
                .push(&batch, strings)
                .map_err(|source| ExtractError::Rows { file: path.to_path_buf(), source })?;
            // Rows are as large as the file says; what texts unpack to shows when they are read.
            long = long.saturating_add(long_text_bytes(&declared, &batch));
            let texts = strings.bytes().saturating_sub(texts_before).saturating_add(long) as u64;
            self.check_size(path, fixed.saturating_add(texts), limit)
        })?;
        let texts = strings.bytes().saturating_sub(texts_before).saturating_add(long) as u64;
        self.unpacked = self.unpacked.saturating_add(fixed).saturating_add(texts);
        Ok(loader)
    }

    /// Refuses a table that is much larger than its file, and more tables than fit.
    fn check_size(&self, path: &Path, bytes: u64, limit: u64) -> Result<(), ExtractError> {
        let [all, times] = self.limits.options;
        let too_large = |bytes, limit, option| {
            Err(ExtractError::TooLarge { file: path.to_path_buf(), bytes, limit, option })
        };
        let sum = self.unpacked.saturating_add(bytes);
        if bytes > limit {
            too_large(bytes, limit, times)
        } else if sum > self.limits.bytes {
            too_large(sum, self.limits.bytes, all)
        } else {
            Ok(())
        }
    }
}

impl Limits {
    /// Most bytes that a file of this size may unpack to.
    fn of_file(&self, size: u64) -> u64 {
        size.saturating_mul(self.ratio).max(self.free_bytes)
    }
}

/// Bytes of the long texts of a batch.
fn long_text_bytes(columns: &[&ColumnSpec], batch: &RecordBatch) -> usize {
    let long = columns.iter().zip(batch.columns()).filter(|(c, _)| c.ty == ColumnType::LongText);
    long.map(|(_, array)| array.as_any().downcast_ref::<StringArray>().map_or(0, |a| a.value_data().len()))
        .sum()
}
