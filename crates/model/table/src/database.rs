//! All tables of one analysis.

use std::collections::BTreeMap;

use crate::Table;

/// Named tables and facts about the whole. Everything is in order of name, so that two runs over one
/// trace say the same whichever table was ready first.
#[derive(Debug, Clone, Default)]
pub struct Database {
    tables: BTreeMap<String, Table>,
    metadata: BTreeMap<String, String>,
    /// Tables that may be asked for, if code has declared which it reads.
    limit: Option<Vec<&'static str>>,
}

impl Database {
    /// A database without tables.
    pub fn new() -> Database {
        Database::default()
    }

    /// Adds a table, in place of one of the same name, which is given back.
    pub fn insert(&mut self, table: Table) -> Option<Table> {
        self.tables.insert(table.name().to_owned(), table)
    }

    /// Takes the table called `name` out.
    pub fn remove(&mut self, name: &str) -> Option<Table> {
        self.tables.remove(name)
    }

    /// The table called `name`.
    pub fn get(&self, name: &str) -> Option<&Table> {
        let declared = self.limit.as_ref().is_none_or(|limit| limit.contains(&name));
        debug_assert!(declared, "table {name} is read but not declared");
        self.tables.get(name)
    }

    pub(crate) fn limit(&mut self, tables: Vec<&'static str>) {
        self.limit = Some(tables);
    }

    /// The tables, in order of name.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.values()
    }

    /// Number of tables.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// True if there is no table.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The table whose name is most like `name`, for "did you mean".
    pub fn similar(&self, name: &str) -> Option<&str> {
        crate::filter::closest(name, self.tables.keys().map(String::as_str))
    }

    /// Sets a fact about the whole: the trace's file, the program's version.
    pub fn set_metadata(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.metadata.insert(key.into(), value.into());
    }

    /// The facts, in order of key.
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}
