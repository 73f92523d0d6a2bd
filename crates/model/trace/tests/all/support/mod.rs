//! What all tests on real traces need: the corpus, a pass over a trace, access to its tables.

use etwhy_decode::read::{Decoded, read};
use etwhy_decode::schema::EventSchema;
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::{Ledger, Record};
use etwhy_table::{Memory, Table};
pub use etwhy_testkit::{Are, sorted};
use etwhy_trace::{Options, Output, analyse};
pub mod written;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder of real traces, or `None` after saying why there is none.
pub fn corpus() -> Option<PathBuf> {
    etwhy_testkit::corpus_file("etl")
}

/// Opens one trace.
pub fn open(path: &Path) -> EtlFile {
    EtlFile::open(path, path, &OpenOptions::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// One pass over one trace for the tables named (separated by blanks).
pub fn pass(path: &Path, tables: &str) -> Output {
    let mut ledger = Ledger::new();
    let options = Options {
        tables: Some(tables.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>()),
        memory: Memory::unlimited(),
        symbols: etwhy_trace::Symbols::new(&[]),
        threads: 2,
        decoder: Decoder::new(&DecoderOptions::default(), &mut ledger),
        inputs: etwhy_trace::Inputs::default(),
    };
    analyse(&[open(path)], options, &mut (), ledger).unwrap()
}

/// A table that the pass must have made.
pub fn table<'o>(output: &'o Output, name: &str) -> &'o Table {
    output.db.get(name).unwrap_or_else(|| panic!("no table {name}"))
}

/// Numbers of all rows.
pub fn rows(table: &Table) -> std::ops::Range<u32> {
    0..u32::try_from(table.rows()).unwrap()
}

/// A text cell, empty for none.
pub fn text<'t>(table: &'t Table, row: u32, column: &str) -> &'t str {
    assert!(table.spec().column(column).is_some(), "{} has no column {column}", table.name());
    table.text(row, column).unwrap_or("")
}

/// A number cell.
pub fn number(table: &Table, row: u32, column: &str) -> Option<i64> {
    assert!(table.spec().column(column).is_some(), "{} has no column {column}", table.name());
    table.i64(row, column)
}

/// The count of an anomaly by its name, 0 if it did not happen.
pub fn ledger_count(output: &Output, name: &str) -> u64 {
    output.ledger.entries().find(|e| e.anomaly.name == name).map_or(0, |e| e.count)
}

/// Each of these anomalies happened so often.
#[track_caller]
pub fn assert_ledger(output: &Output, wanted: &[(&str, u64)]) {
    for (name, count) in wanted {
        assert_eq!(ledger_count(output, name), *count, "{name}");
    }
}

/// Calls back with every record, its time in ns and its decoded fields; schemas are learnt beforehand.
pub fn walk(
    path: &Path,
    mut each: impl FnMut(&Record<'_>, i64, Option<(&EventSchema, &Decoded<'_>)>, &Decoder),
) {
    let files = [open(path)];
    let mut ledger = Ledger::new();
    let timeline = Timeline::read(&files, &mut ledger);
    let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
    Walk::new(&files, &timeline).for_each(&mut Ledger::new(), |record, _| {
        decoder.observe(record, &mut ledger);
    });
    Walk::new(&files, &timeline).for_each(&mut Ledger::new(), |record, key| {
        let schema = decoder.schema(record);
        let decoded = schema.as_deref().map(|s| read(s, record.payload(), record.pointer_size()));
        let ns = timeline.key_to_ns(key);
        each(record, ns, schema.as_deref().zip(decoded.as_ref()), &decoder);
    });
}
