//! Writes an extract.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use etwhy_doc::sanitize;
use etwhy_scratch::{Scratch, uninterrupted};
use etwhy_table::{Selection, Table, TableSpec};

use super::manifest::{FORMAT, MANIFEST, Manifest, TableEntry, VERSION};
use super::read::files_of;
use super::{file_name, sums};
use crate::{ExportError, Format, Options, Result, Start};

/// The folder's name until it is whole.
const NEW: &str = "new";

/// Writes tables into a folder that takes its name when it is whole.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    force: bool,
    scratch: Scratch,
    manifest: Manifest,
    start: Start,
    options: Options,
}

impl Writer {
    /// A new extract at `folder`, of the traces of these names. An extract that is there already stays until the new
    /// one is whole; anything else, be it a single file in its folder, is only replaced by `force`.
    ///
    /// # Errors
    /// If something else is there, or the folder beside it cannot be written.
    pub fn new(folder: &Path, traces: Vec<String>, force: bool) -> Result<Writer> {
        occupied(folder, force)?;
        // `a/b/` and `a/b` are the same folder, and a link stays where it is.
        let linked = folder.is_symlink().then(|| fs::canonicalize(folder).ok()).flatten();
        let folder = linked.unwrap_or_else(|| folder.components().collect());
        let failed = |source| ExportError::File { file: folder.clone(), source };
        let scratch = Scratch::beside(&folder).map_err(failed)?;
        fs::create_dir(scratch.path().join(NEW)).map_err(failed)?;
        let program = concat!("etwhy ", env!("CARGO_PKG_VERSION")).to_owned();
        let facts = vec![
            ("etwhy.program".to_owned(), program.clone()),
            ("etwhy.trace".to_owned(), traces.join("\n")),
            ("etwhy.extract".to_owned(), VERSION.to_string()),
        ];
        let manifest =
            Manifest { format: FORMAT.to_owned(), version: VERSION, program, traces, ..Manifest::default() };
        let options = Options { facts, ..Options::default() };
        let start = Format::by_name("parquet")?.parts.ok_or(std::io::Error::from(ErrorKind::Unsupported))?;
        Ok(Writer { folder, force, scratch, manifest, start, options })
    }

    /// Encodes with so many threads.
    pub fn with_threads(mut self, threads: usize) -> Writer {
        self.options.threads = threads;
        self
    }

    /// Writes a table; its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn table(&mut self, table: &Table) -> Result<u64> {
        self.parts(table.spec(), |part| part(table))
    }

    /// Writes a table that comes in parts, which `give` hands over one by one; its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be written, and those of `give`.
    pub fn parts<E: From<ExportError>>(
        &mut self,
        spec: &TableSpec,
        give: impl FnOnce(&mut dyn FnMut(&Table) -> Result<()>) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let name = file_name(&spec.name);
        let path = self.scratch.path().join(NEW).join(&name);
        let failed = |source| ExportError::File { file: self.folder.join(&name), source };
        let file = File::create(&path).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let mut rows = 0;
        let shown = self.folder.join(&name);
        let named = |error: ExportError| error.of_file(&shown);
        let mut writer = (self.start)(spec, &self.options, &mut out).map_err(named)?;
        give(&mut |part| {
            rows += part.rows() as u64;
            writer.part(&Selection::all(part)).map_err(named)
        })?;
        writer.finish().map_err(named)?;
        out.flush().map_err(failed)?;
        let bytes = fs::metadata(&path).map_err(failed)?.len();
        let sums = sums::of_file(&path).map_err(ExportError::from)?;
        self.manifest.tables.push(TableEntry::new(spec, rows, name, bytes, &sums));
        Ok(bytes)
    }

    /// What the manifest will say; the caller fills in what was left out and how the pass ended.
    pub fn manifest(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Writes the manifest and gives the folder its name.
    ///
    /// # Errors
    /// If a file cannot be written or the folder cannot be renamed.
    pub fn finish(mut self) -> Result<Manifest> {
        self.manifest.tables.sort_by(|a, b| a.name.cmp(&b.name));
        let failed = |source| ExportError::File { file: self.folder.clone(), source };
        fs::write(self.scratch.path().join(NEW).join(MANIFEST), self.manifest.text()?).map_err(failed)?;
        // A folder cannot take the place of another that is not empty: the old one steps aside first, and comes back if
        // the new one cannot be put there. Meanwhile nobody else may remove what holds the old one.
        let (new, old) = (self.scratch.path().join(NEW), self.scratch.path().join("old"));
        if self.folder.symlink_metadata().is_err() {
            fs::rename(&new, &self.folder).map_err(failed)?;
            return Ok(self.manifest);
        }
        // Reading the trace took its time, in which others may have put something there.
        occupied(&self.folder, self.force)?;
        self.scratch.unmark().map_err(failed)?;
        let swapped = uninterrupted(|| {
            fs::rename(&self.folder, &old)?;
            fs::rename(&new, &self.folder).map_err(|error| match fs::rename(&old, &self.folder) {
                Ok(()) => error,
                Err(_) => std::io::Error::other(format!("{error}; what was there is {}", old.display())),
            })
        });
        if let Err(error) = swapped {
            if old.exists() {
                // It is not ours to remove.
                self.scratch.keep().map_err(failed)?;
            }
            return Err(failed(error));
        }
        Ok(self.manifest)
    }
}

/// Refuses a place where something is that no extract wrote.
fn occupied(folder: &Path, force: bool) -> Result<()> {
    let Ok(what) = fs::metadata(folder) else { return Ok(()) };
    let refuse = |why| Err(ExportError::Occupied { place: folder.to_path_buf(), why });
    if !what.is_dir() {
        return refuse("is a file; name a folder".to_owned());
    }
    if force {
        return Ok(());
    }
    let failed = |source| ExportError::File { file: folder.to_path_buf(), source };
    let own = files_of(folder);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Some(own) = &own else {
            return refuse(
                "holds something else than an extract; name another folder, or --force".to_owned(),
            );
        };
        let is_file = entry.file_type().is_ok_and(|what| what.is_file());
        let name = entry.file_name();
        if !is_file || !name.to_str().is_some_and(|name| own.contains(name)) {
            let name = sanitize(&name.to_string_lossy()).into_owned();
            return refuse(format!(
                "holds {name}, which `etwhy extract` did not write; move it away, or --force deletes it"
            ));
        }
    }
    Ok(())
}
