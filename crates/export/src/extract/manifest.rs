//! `manifest.json`: what an extract holds.

use std::collections::BTreeMap;

use etwhy_table::{Table, TableSpec};
use serde::{Deserialize, Serialize};

/// Name of the manifest's file.
pub const MANIFEST: &str = "manifest.json";

/// Version of the folder's layout and of the manifest. Tables have versions of their own.
pub const VERSION: u32 = 1;

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

impl TableEntry {
    pub(super) fn of(table: &Table, file: String, bytes: u64) -> TableEntry {
        let spec: &TableSpec = table.spec();
        let column = |c: &etwhy_table::ColumnSpec| ColumnEntry {
            name: c.name.to_string(),
            ty: c.ty.name().to_owned(),
            unit: c.unit.name().to_owned(),
            role: c.role.name().to_owned(),
        };
        TableEntry {
            name: spec.name.to_string(),
            file,
            version: spec.version,
            title: spec.title.to_string(),
            evidence: spec.evidence.text(),
            rows: table.rows() as u64,
            bytes,
            columns: spec.columns.iter().map(column).collect(),
        }
    }
}
