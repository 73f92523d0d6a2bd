//! What a format is, and how a file of it comes into being.

use std::io::{BufWriter, Write};
use std::path::Path;

use etwhy_scratch::Scratch;
use etwhy_table::{Selection, TableSpec};

use crate::device::{create, is_device, spare_recording};
use crate::{ExportError, Result};

/// A way to write a table.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// What `--format` calls it.
    pub name: &'static str,
    /// Endings of file names, without the dot.
    pub extensions: &'static [&'static str],
    /// What it is good for, in a line.
    pub about: &'static str,
    /// True if a terminal cannot show it.
    pub binary: bool,
    /// Writes a selection.
    pub write: fn(&Selection<'_>, &Options, &mut (dyn Write + Send)) -> Result<()>,
    /// Begins to write a table whose rows come in parts, as `write` does at once; `None` if all must be there first.
    pub parts: Option<Start>,
}

/// Begins to write rows with the columns of a declaration ([`Selection::spec`]).
pub type Start =
    for<'o> fn(&TableSpec, &Options, &'o mut (dyn Write + Send)) -> Result<Box<dyn PartWriter + 'o>>;

/// Writes rows that come in parts.
pub trait PartWriter {
    /// The next rows: a selection with the columns of the declaration.
    ///
    /// # Errors
    /// Those of the format, and of what is written to.
    fn part(&mut self, rows: &Selection<'_>) -> Result<()>;

    /// There are no more.
    ///
    /// # Errors
    /// As [`PartWriter::part`].
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Writes a selection as the one part that there is.
pub(crate) fn write_at_once(
    start: Start,
    selection: &Selection<'_>,
    options: &Options,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let mut writer = start(&selection.spec(), options, out)?;
    writer.part(selection)?;
    writer.finish()
}

/// How to write. The default suits a file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Columns of the terminal; `None` cuts nothing.
    pub width: Option<usize>,
    /// Whether to write colour codes.
    pub color: bool,
    /// Whether CSV keeps text as it is, although a spreadsheet could take it for a formula and a terminal for a
    /// command. Tables for the terminal never do.
    pub exact: bool,
    /// Whether CSV and JSON give addresses and codes as hexadecimal text. Otherwise they are the signed
    /// numbers that SQL and Parquet have.
    pub hex: bool,
    /// How many rows there were before a limit was applied, to say so below a terminal's table.
    pub total_rows: Option<usize>,
    /// Threads that may encode (Parquet); what is written does not depend on it.
    pub threads: usize,
    /// Facts about the whole, by key, that a format with metadata keeps (Parquet).
    pub facts: Vec<(String, String)>,
}

/// Writes a selection to a file, as [`replace_file`].
///
/// # Errors
/// As [`replace_file`], and those of the format.
pub fn write_file(format: &Format, selection: &Selection<'_>, options: &Options, path: &Path) -> Result<()> {
    replace_file(path, |out| (format.write)(selection, options, out))
}

/// Writes a file, or leaves what was there: the data goes into a temporary file of the same folder, which
/// takes the name when it is whole. A device gets the data itself. No [recording](spare_recording) is replaced.
///
/// # Errors
/// If the folder or the file cannot be written, and those of `write`.
pub fn replace_file(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>) -> Result<()> {
    replace_file_with(path, write).map_err(|error: ExportError| error.of_file(path))
}

/// As [`replace_file`], for a `write` that may fail for reasons of its own.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_file_with<E: From<ExportError>>(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let failed = |source| ExportError::File { file: path.to_path_buf(), source };
    spare_recording(path)
        .map_err(|why| ExportError::Occupied { place: path.to_path_buf(), why: why.to_string() })?;
    if is_device(path) {
        let device = create(path).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 18, device);
        write(&mut out)?;
        return Ok(out.flush().map_err(failed)?);
    }
    let scratch = Scratch::beside(path).map_err(failed)?;
    let whole = scratch.path().join("whole");
    let mut out = BufWriter::with_capacity(1 << 18, create(&whole).map_err(failed)?);
    write(&mut out)?;
    out.flush().map_err(failed)?;
    drop(out);
    Ok(std::fs::rename(&whole, path).map_err(failed)?)
}
