//! A store that is asked.

use crate::error::{FleetError, Result};
use crate::store::{Store, knowledge};
use crate::views::{CURRENT, all, tables_of};
use etwhy_sql::{Engine, Limits};
use etwhy_table::Table;
use std::collections::HashSet;
use std::time::Duration;

/// What a question may use up. The rows of a store may come from anybody, and rows that are there twice make joins without end.
const LIMITS: Limits = Limits { time: Some(Duration::from_secs(300)), ..Limits::OWNER };

/// A store that is asked.
#[derive(Debug)]
pub struct Fleet {
    store: Store,
    current: HashSet<(String, String)>,
}

impl Fleet {
    /// Finds out which readings count.
    ///
    /// # Errors
    /// If a file of the store is damaged.
    pub fn new(store: Store) -> Result<Fleet> {
        let mut fleet = Fleet { store, current: HashSet::new() };
        let table = fleet.ask_of(CURRENT, None)?;
        for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
            let text = |column: &str| table.text(row, column).unwrap_or_default().to_owned();
            fleet.current.insert((text("trace_id"), text("extract_id")));
        }
        Ok(fleet)
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Traces that count.
    pub fn traces(&self) -> usize {
        self.current.len()
    }

    /// The same store as if it had these of its traces alone: what a filter leaves.
    pub fn only(&self, is_wanted: impl Fn(&str) -> bool) -> Fleet {
        let current = self.current.iter().filter(|(trace, _)| is_wanted(trace)).cloned().collect();
        Fleet { store: self.store.clone(), current }
    }

    /// Asks a view.
    ///
    /// # Errors
    /// If a file of the store is damaged.
    pub fn ask(&self, view: &'static str) -> Result<Table> {
        self.ask_of(view, Some(&self.current))
    }

    fn ask_of(&self, name: &'static str, current: Option<&HashSet<(String, String)>>) -> Result<Table> {
        let bad = |why: String| FleetError::View { view: name, why };
        let view = all().find(|view| view.name == name).ok_or_else(|| bad("there is none".to_owned()))?;
        self.query(name, view.sql, current)
    }

    /// Rows of tables, current ones, as a query wants them.
    ///
    /// # Errors
    /// If a file of the store is damaged, or the query makes no sense.
    pub fn select(&self, name: &'static str, sql: &str) -> Result<Table> {
        self.query(name, sql, Some(&self.current))
    }

    fn query(
        &self,
        name: &'static str,
        sql: &str,
        current: Option<&HashSet<(String, String)>>,
    ) -> Result<Table> {
        let bad = |why: String| FleetError::View { view: name, why };
        let read: Vec<&str> = tables_of(sql).collect();
        let mut database = self.store.load(&read, current)?;
        database.insert(knowledge()?);
        let engine = Engine::new(&database).map_err(|error| bad(error.to_string()))?;
        let found = engine.query_within(name, sql, usize::MAX, &LIMITS);
        found.map(|(table, _)| table).map_err(|error| bad(error.to_string()))
    }
}
