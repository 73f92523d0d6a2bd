//! Rows of tables: `--json`, `--format`, `-o`.

use crate::report::terminal::{color, width_of_rows};
use anyhow::{Context as _, bail};
use etwhy_export::{ExportError, Format};
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Evidence, Memory, Role, Selection, TableSpec, Unit, Value,
};
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// How rows are written, and where to.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct RowArgs {
    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Format of rows: table, csv, json, jsonl or parquet (default: by the output file's ending, else table)
    #[arg(long, short_alias = 'f', value_name = "FORMAT")]
    pub format: Option<String>,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Addresses and codes as hex in CSV and JSON
    #[arg(long)]
    pub hex: bool,
    /// CSV with all text as it is, even if a spreadsheet would run it
    #[arg(long)]
    pub exact: bool,
}

impl RowArgs {
    /// The format.
    ///
    /// # Errors
    /// If no format has this name or ending, or a terminal cannot show it.
    pub fn written(&self) -> anyhow::Result<Written<'_>> {
        let name = self.format.as_deref().or(self.json.then_some("json"));
        let format = chosen_format(name, self.output.as_deref())?;
        Ok(Written { format, path: self.output.as_deref(), hex: self.hex, exact: self.exact, threads: 1 })
    }

    /// True if no format and no file is named: then people read it.
    pub fn are_for_people(&self) -> bool {
        !self.json && self.format.is_none() && self.output.is_none()
    }

    /// Writes a list of what the program knows (tables, metrics) as rows of texts, in the format that is named.
    ///
    /// # Errors
    /// Those of [`RowArgs::written`] and of writing.
    pub fn write_list<'a, const N: usize>(
        &self,
        name: &'static str,
        columns: [(&'static str, &'static str); N],
        list: impl Iterator<Item = [Cow<'a, str>; N]>,
        out: &mut (impl Write + Send),
    ) -> anyhow::Result<()> {
        let column = |(name, doc): (&'static str, &'static str)| ColumnSpec {
            name: name.into(),
            ty: ColumnType::Text,
            unit: Unit::None,
            role: Role::Other,
            doc: doc.into(),
            nullable: false,
        };
        let spec = TableSpec {
            name: name.into(),
            title: name.into(),
            doc: name.into(),
            columns: columns.map(column).to_vec().into(),
            sorted_by: None,
            version: 1,
            evidence: Evidence::Documented,
        };
        let mut rows = AdHocBuilder::new(spec, &Memory::unlimited());
        for texts in list {
            rows.push(&texts.each_ref().map(|text| Value::Text(text)))?;
        }
        let rows = rows.finish()?;
        write_selection(&Selection::all(&rows), &self.written()?, rows.rows(), out)
    }
}

/// How rows are written, and where to, as it was chosen.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    pub format: &'a Format,
    /// A file, else standard output.
    pub path: Option<&'a Path>,
    pub hex: bool,
    pub exact: bool,
    /// That may encode.
    pub threads: usize,
}

/// Writes rows to a file, or to standard output as it suits a terminal or a pipe.
pub fn write_selection(
    selection: &Selection<'_>,
    written: &Written<'_>,
    matching: usize,
    out: &mut (impl Write + Send),
) -> anyhow::Result<()> {
    let format = written.format;
    let options = etwhy_export::Options { total_rows: Some(matching), ..written.options() };
    match written.path {
        Some(path) => {
            let written = etwhy_export::write_file(format, selection, &options, path);
            written.map_err(|error| of_file(error.into(), path))?;
        }
        None => (format.write)(selection, &options, out)?,
    }
    Ok(())
}

impl Written<'_> {
    /// As it suits a terminal or a pipe.
    fn options(&self) -> etwhy_export::Options {
        etwhy_export::Options {
            width: if self.path.is_none() { width_of_rows() } else { None },
            color: self.path.is_none() && color(),
            exact: self.exact,
            hex: self.hex,
            total_rows: None,
            threads: self.threads,
            facts: Vec::new(),
        }
    }

    /// Writes rows that come in parts, which `next` gives until there are no more, where [`write_selection`] would. The format
    /// must be one that can.
    pub fn parts<T>(
        &self,
        mut next: impl FnMut() -> anyhow::Result<Option<T>>,
        rows: impl for<'t> Fn(&'t T) -> Selection<'t>,
        out: &mut (impl Write + Send),
    ) -> anyhow::Result<()> {
        let start = self.format.parts.context("this format wants all rows at once")?;
        let options = self.options();
        let mut write = |out: &mut (dyn Write + Send)| -> anyhow::Result<()> {
            let Some(mut part) = next()? else { return Ok(()) };
            let mut writer = start(&rows(&part).spec(), &options, out)?;
            loop {
                writer.part(&rows(&part))?;
                match next()? {
                    Some(other) => part = other,
                    None => return Ok(writer.finish()?),
                }
            }
        };
        match self.path {
            Some(path) => etwhy_export::replace_file_with(path, write).map_err(|error| of_file(error, path)),
            None => write(out),
        }
    }
}

/// The error of writing a file, with the file in front unless the error names it.
pub fn of_file(error: anyhow::Error, path: &Path) -> anyhow::Error {
    use ExportError::{File, Occupied, UnknownFormat};
    match error.downcast::<ExportError>().map(|error| error.of_file(path)) {
        Ok(named @ (File { .. } | Occupied { .. } | UnknownFormat { .. })) => named.into(),
        Ok(nameless) => anyhow::Error::from(nameless).context(path.display().to_string()),
        Err(other) => other,
    }
}

/// The format that is named, else that of the file's ending, else a table; CSV for a file without an ending.
///
/// # Errors
/// If no format has this name or ending, or a terminal cannot show it.
pub fn chosen_format(name: Option<&str>, path: Option<&Path>) -> anyhow::Result<&'static Format> {
    let format = match (name, path) {
        (Some(name), _) => Format::by_name(name)?,
        (None, Some(path)) if path.extension().is_none() => Format::by_name("csv")?,
        (None, Some(path)) => Format::by_path(path).with_context(|| {
            let endings =
                etwhy_export::formats().flat_map(|format| format.extensions).map(|end| format!(".{end}"));
            format!(
                "{}: no format has this ending; name the file {}, or choose the format with --format",
                path.display(),
                endings.collect::<Vec<_>>().join(", ")
            )
        })?,
        (None, None) => Format::by_name("table")?,
    };
    if format.binary && path.is_none() && std::io::stdout().is_terminal() {
        bail!("{} is no text for a terminal; write it to a file with -o", format.name);
    }
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::of_file;
    use etwhy_export::ExportError;
    use std::io::Error;
    use std::path::{Path, PathBuf};

    #[test]
    fn a_file_that_cannot_be_written_is_named_once() {
        let path = Path::new("rows.csv");
        let nameless = of_file(ExportError::Io(Error::other("full")).into(), path);
        assert_eq!(crate::message(&nameless), "cannot write rows.csv: full");
        let file = PathBuf::from("rows.csv");
        let named = of_file(ExportError::File { file, source: Error::other("full") }.into(), path);
        assert_eq!(crate::message(&named), "cannot write rows.csv: full");
        // What could not be read is not the fault of what is written.
        assert_eq!(crate::message(&of_file(anyhow::anyhow!("t.etl: cut"), path)), "t.etl: cut");
    }
}
