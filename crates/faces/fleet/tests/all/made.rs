//! Stores of made rows: a fleet without traces.

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use etwhy_fleet::contract::{schema, table};
use etwhy_fleet::store::{Store, write_part};
use etwhy_fleet::tables::RunRow;
use etwhy_table::{Strings, Table, TableBuilder};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A value of a made row.
#[derive(Clone, Debug)]
pub enum Is {
    Text(String),
    Int(i64),
    Float(f64),
    Flag(bool),
}

impl From<&str> for Is {
    fn from(text: &str) -> Is {
        Is::Text(text.to_owned())
    }
}

impl From<String> for Is {
    fn from(text: String) -> Is {
        Is::Text(text)
    }
}

impl From<i64> for Is {
    fn from(number: i64) -> Is {
        Is::Int(number)
    }
}

impl From<f64> for Is {
    fn from(number: f64) -> Is {
        Is::Float(number)
    }
}

impl From<bool> for Is {
    fn from(flag: bool) -> Is {
        Is::Flag(flag)
    }
}

type Cells = BTreeMap<&'static str, Is>;

/// Rows of traces; columns that nobody names are empty, or 0 where they may not be.
#[derive(Default)]
pub struct Made {
    rows: BTreeMap<&'static str, Vec<Cells>>,
    traces: Vec<(String, String, i64)>,
}

/// A trace that rows are added to.
pub struct OfTrace<'m> {
    made: &'m mut Made,
    ids: [(&'static str, String); 3],
}

impl Made {
    /// A trace of a machine in batch 1, as file `trace`.
    pub fn trace(&mut self, trace: &str, machine: &str) -> OfTrace<'_> {
        self.reading(trace, machine, "1", trace, 1)
    }

    /// A reading of a trace that has this file.
    pub fn reading(
        &mut self,
        trace: &str,
        machine: &str,
        reading: &str,
        file: &str,
        batch: i64,
    ) -> OfTrace<'_> {
        let extract = format!("{trace}-{reading}");
        self.traces.push((trace.to_owned(), extract.clone(), batch));
        let ids =
            [("trace_id", trace.to_owned()), ("machine_id", machine.to_owned()), ("extract_id", extract)];
        let mut of = OfTrace { made: self, ids };
        of.row("trace_file", &[("file_id", file.into())]);
        of
    }

    /// Writes everything as a store.
    pub fn store(&self, folder: &Path) -> Store {
        let (store, _lock) = Store::create(folder).unwrap();
        let mut batches: Vec<i64> = self.traces.iter().map(|(.., batch)| *batch).collect();
        batches.sort_unstable();
        batches.dedup();
        for batch in batches {
            let part = folder.join(format!("part{batch}"));
            let of = |cells: &&Cells| {
                self.traces.iter().any(|(_, extract, in_batch)| {
                    *in_batch == batch && matches!(&cells["extract_id"], Is::Text(text) if text == extract)
                })
            };
            let tables: Vec<_> = self
                .rows
                .iter()
                .filter_map(|(name, rows)| {
                    let rows: Vec<&Cells> = rows.iter().filter(of).collect();
                    (!rows.is_empty()).then(|| (table(name).unwrap(), vec![batch_of(name, &rows)]))
                })
                .collect();
            write_part(&part, &tables).unwrap();
            store.commit(batch, &[self.runs(batch)], std::slice::from_ref(&part)).unwrap();
            std::fs::remove_dir_all(part).unwrap();
        }
        store
    }

    fn runs(&self, batch: i64) -> Table {
        let (mut strings, mut rows) = (Strings::new(), TableBuilder::<RunRow>::new(&Default::default()));
        for (trace, extract, _) in self.traces.iter().filter(|(.., of)| *of == batch) {
            rows.push(RunRow {
                trace_id: strings.intern(trace),
                machine_id: None,
                extract_id: strings.intern(extract),
                batch,
                outcome: strings.intern("read"),
                exit_code: Some(0),
                reason: None,
                path: strings.intern(trace),
                files: 1,
                size_bytes: 1,
                cpu_ns: None,
                wall_ns: None,
                peak_memory_bytes: None,
                program: strings.intern("test"),
                settings_id: strings.intern("s"),
                sha256: None,
            });
        }
        rows.finish(&strings.freeze().unwrap()).unwrap()
    }
}

impl OfTrace<'_> {
    /// Adds a row.
    pub fn row(&mut self, table: &'static str, cells: &[(&'static str, Is)]) {
        let mut row: Cells = self.ids.iter().map(|(name, id)| (*name, Is::from(id.as_str()))).collect();
        row.extend(cells.iter().cloned());
        self.made.rows.entry(table).or_default().push(row);
    }

    /// Its machine: model, start in days after 2026-01-01, and that its processor was observed for 100 s of 150 s.
    pub fn facts(&mut self, model: &str, day: i64) {
        let unix_ns = (20_454 + day) * 86_400_000_000_000;
        let date = etwhy_base::time::filetime_text(etwhy_base::time::filetime(unix_ns), 0);
        self.row(
            "recording",
            &[
                ("model", model.into()),
                ("os_build", 22_631i64.into()),
                ("captured_unix_ns", unix_ns.into()),
                ("captured_day", date[..10].into()),
                ("duration_ns", 100_000_000_000i64.into()),
            ],
        );
        self.row(
            "machine",
            &[
                ("cpus", 1i64.into()),
                ("capacity_ns", 100_000_000_000i64.into()),
                ("duration_ns", 150_000_000_000i64.into()),
                ("sampled_capacity_ns", 100_000_000_000i64.into()),
                ("busy_ns", 30_000_000_000i64.into()),
            ],
        );
    }

    /// A line of the bill of a driver, as share of the observed time.
    pub fn driver(&mut self, name: &str, version: &str, share: f64) {
        self.row(
            "bill",
            &[
                ("kind", "driver".into()),
                ("part", "culprit".into()),
                ("culprit", name.into()),
                ("source", "sample".into()),
                ("total_cpu_ns", ((share * 1e11) as i64).into()),
                ("energy_wh", (share * 0.5).into()),
            ],
        );
        self.row(
            "module",
            &[("name", name.into()), ("kind", "kernel".into()), ("file_version", version.into())],
        );
    }

    /// Idle time, and what is nobody's.
    pub fn nobody(&mut self) {
        for (culprit, idle) in [("[idle]", true), ("[unattributed]", false)] {
            self.row(
                "bill",
                &[
                    ("kind", "driver".into()),
                    ("part", if idle { "idle" } else { "unattributed" }.into()),
                    ("culprit", culprit.into()),
                    ("is_idle", idle.into()),
                    ("is_unattributed", (!idle).into()),
                    ("source", "sample".into()),
                    ("total_cpu_ns", 60_000_000_000i64.into()),
                ],
            );
        }
    }

    /// An answer.
    pub fn finding(&mut self, id: &str, answer: &str) {
        self.row("finding", &[("finding_id", id.into()), ("title", id.into()), ("answer", answer.into())]);
    }
}

fn batch_of(name: &str, rows: &[&Cells]) -> RecordBatch {
    let wanted = schema(&table(name).unwrap().spec);
    let known: Vec<&str> = wanted.fields().iter().map(|f| f.name().as_str()).collect();
    for cells in rows {
        cells.keys().for_each(|key| assert!(known.contains(key), "{name} has no column {key}"));
    }
    let columns: Vec<ArrayRef> = wanted
        .fields()
        .iter()
        .map(|field| -> ArrayRef {
            let empty = field.is_nullable();
            let cells = rows.iter().map(|row| row.get(field.name().as_str()));
            let int = |is: Option<&Is>| match is {
                Some(Is::Int(n)) => Some(*n),
                _ => (!empty).then_some(0),
            };
            let float = |is: Option<&Is>| match is {
                Some(Is::Float(n)) => Some(*n),
                _ => (!empty).then_some(0.0),
            };
            let flag = |is: Option<&Is>| match is {
                Some(Is::Flag(flag)) => Some(*flag),
                _ => (!empty).then_some(false),
            };
            let text = |is: Option<&Is>| match is {
                Some(Is::Text(text)) => Some(text.clone()),
                _ => (!empty).then(String::new),
            };
            match field.data_type() {
                DataType::Int64 => Arc::new(cells.map(int).collect::<Int64Array>()),
                DataType::Int32 => Arc::new(cells.map(|c| int(c).map(|n| n as i32)).collect::<Int32Array>()),
                DataType::Float64 => Arc::new(cells.map(float).collect::<Float64Array>()),
                DataType::Boolean => Arc::new(cells.map(flag).collect::<BooleanArray>()),
                _ => Arc::new(cells.map(text).collect::<StringArray>()),
            }
        })
        .collect();
    RecordBatch::try_new(wanted, columns).unwrap()
}
