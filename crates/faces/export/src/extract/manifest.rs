//! `manifest.json`: what an extract holds.

use std::collections::BTreeMap;
use std::path::Path;

use etwhy_table::TableSpec;
use serde::{Deserialize, Serialize};

use super::sums::{Sums, ZEROS, column_names, of_file, seal, to_text};

/// Name of the manifest's file.
pub const MANIFEST: &str = "manifest.json";

/// Version of the folder's layout and of the manifest. Tables have versions of their own.
/// 2: checksums.
pub const VERSION: u32 = 2;

/// What [`Manifest::format`] says.
pub(super) const FORMAT: &str = "etwhy extract";

/// What an extract holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `etwhy extract`.
    pub format: String,
    /// [`VERSION`] of the program that wrote it.
    pub version: u32,
    /// Name and version of that program.
    pub program: String,
    /// Names of the traces, as they were given.
    #[serde(default)]
    pub traces: Vec<String>,
    /// The tables, in order of name.
    #[serde(default)]
    pub tables: Vec<TableEntry>,
    /// Tables that the program knew and did not extract.
    #[serde(default)]
    pub left_out: Vec<String>,
    /// How the pass over the trace ended.
    #[serde(default)]
    pub end: EndOfPass,
    /// CRC-32 of this text, in which these eight digits are zeros. The last field.
    #[serde(default)]
    pub crc32: String,
}

/// A table of an extract.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TableEntry {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Version of its declaration.
    pub version: u32,
    /// What it is, in a line.
    pub title: String,
    /// How it is known that its rows are right.
    pub evidence: String,
    /// Rows.
    pub rows: u64,
    /// Size of the file.
    pub bytes: u64,
    /// CRC-32 of the file's metadata and all that stands behind them.
    #[serde(default)]
    pub footer_crc32: String,
    /// The columns, in order.
    pub columns: Vec<ColumnEntry>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ColumnEntry {
    /// Its name.
    pub name: String,
    /// What its cells are.
    #[serde(rename = "type")]
    pub ty: String,
    /// What numbers are measured in.
    pub unit: String,
    /// What it means to filters and joins.
    pub role: String,
    /// CRC-32 of its bytes in each row group, parted by blanks.
    #[serde(default)]
    pub crc32: String,
}

/// How the pass over the trace ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EndOfPass {
    /// Exit code of the extraction: 0 done, 1 done in part, 4 something was newer than known.
    pub exit: u8,
    /// What was newer than known, in words.
    #[serde(default)]
    pub newer_than_known: Vec<String>,
    /// Anomalies that were counted for some tables only: who asks for none of these tables has nothing to do with
    /// them. All anomalies together are table `ledger`.
    #[serde(default)]
    pub anomalies: Vec<Anomalies>,
}

/// Anomalies of some tables.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Anomalies {
    /// The tables.
    pub tables: Vec<String>,
    /// Counts by name of the anomaly.
    pub counts: BTreeMap<String, u64>,
}

impl Manifest {
    /// The text of its file.
    ///
    /// # Errors
    /// Those of the JSON writer.
    pub fn text(&mut self) -> crate::Result<Vec<u8>> {
        self.crc32 = ZEROS.to_owned();
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(seal(text))
    }

    /// Takes the checksums of a table's file as it is now. For tests, which change files.
    ///
    /// # Errors
    /// If the file cannot be read or is no Parquet file.
    pub fn trust(&mut self, folder: &Path, table: &str) -> crate::Result<()> {
        let Some(entry) = self.tables.iter_mut().find(|entry| entry.name == table) else { return Ok(()) };
        let path = folder.join(&entry.file);
        let (sums, names) = (of_file(&path)?, column_names(&path)?);
        entry.bytes = std::fs::metadata(&path)?.len();
        entry.footer_crc32 = to_text(&[sums.footer]);
        for column in &mut entry.columns {
            let at = names.iter().position(|name| *name == column.name);
            column.crc32 =
                at.and_then(|at| sums.columns.get(at)).map_or_else(String::new, |sums| to_text(sums));
        }
        Ok(())
    }
}

impl TableEntry {
    pub(super) fn new(spec: &TableSpec, rows: u64, file: String, bytes: u64, sums: &Sums) -> TableEntry {
        let column = |(c, sums): (&etwhy_table::ColumnSpec, &Vec<u32>)| ColumnEntry {
            name: c.name.to_string(),
            ty: c.ty.name().to_owned(),
            unit: c.unit.name().to_owned(),
            role: c.role.name().to_owned(),
            crc32: to_text(sums),
        };
        TableEntry {
            name: spec.name.to_string(),
            file,
            version: spec.version,
            title: spec.title.to_string(),
            evidence: spec.evidence.text(),
            rows,
            bytes,
            footer_crc32: to_text(&[sums.footer]),
            columns: spec.columns.iter().zip(&sums.columns).map(column).collect(),
        }
    }
}
