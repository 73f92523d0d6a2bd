//! Which columns a query reads, known before there is a table.

use crate::{Engine, functions};
use etwhy_table::{Database, Memory, Strings, TableLoader, TableSpec};
use std::collections::{BTreeMap, BTreeSet};

/// The columns that a query reads of each table, as SQLite says when it prepares the statement over empty tables. `None` if it cannot be
/// known: the query is wrong, or calls functions that read tables by themselves.
pub fn columns_read<'s>(
    specs: impl Iterator<Item = &'s TableSpec>,
    sql: &str,
) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let texts = Strings::new().freeze().ok()?;
    let mut db = Database::new();
    for spec in specs {
        db.insert(TableLoader::new(spec, &Memory::default()).finish(&texts).ok()?);
    }
    let engine = Engine::new(&db).ok()?;
    engine.gate.seen.take();
    engine.connection.prepare(sql).ok()?;
    let seen = engine.gate.seen.take();
    let is_function = |table: &str| functions::ALL.iter().any(|f| f.name.eq_ignore_ascii_case(table));
    let mut read: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (table, column) in seen {
        if is_function(&table) {
            return None;
        }
        if db.get(&table).is_some() {
            let columns = read.entry(table).or_default();
            // Rows that are counted come without a column.
            columns.extend(Some(column).filter(|column| !column.is_empty()));
        }
    }
    Some(read)
}
