//! Views as tables.
//!
//! SQLite puts a view's text in the place of its name, each time that a query names it, and understands it anew. Findings join the same small
//! views up to eight times, and 40 of them do: what is programs and who started them was nearly half of the time that all findings took
//! on a small trace. So a view is asked once for a connection, and its rows are a table from then on.

use super::limits::Limits;
use super::table_source::TableSource;
use super::{Engine, SqlError, tokens, view_list};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Engine {
    /// Exchanges the views that a query names, and those that they name, for tables with their rows. For queries that are asked one after the
    /// other over the same tables; the answers are the same.
    ///
    /// # Errors
    /// SQLite's; the limit that ended a view's query.
    pub fn keep_views(&self, sql: &str, limits: &Limits) -> Result<(), SqlError> {
        for name in tokens::words(sql) {
            let Some((name, text)) =
                view_list::FILES.iter().find(|(view, _)| view.eq_ignore_ascii_case(name))
            else {
                continue;
            };
            if self.kept.borrow().contains(name) {
                continue;
            }
            self.keep_views(text, limits)?;
            // Its rows are no answer: there are a few for each process, driver or path of the trace, however many those are.
            let whole = Limits { result_bytes: None, ..*limits };
            let (table, _) = self.query_within(name, text, usize::MAX, &whole)?;
            let mut source = TableSource::new(table);
            source.missed = self.missed.clone();
            self.gate.own.store(true, Ordering::Relaxed);
            let dropped = self.connection.execute_batch(&format!("DROP VIEW \"{name}\""));
            self.gate.own.store(false, Ordering::Relaxed);
            dropped?;
            etwhy_vtab::register(&self.connection, name, Arc::new(source))?;
            self.kept.borrow_mut().insert(name);
        }
        Ok(())
    }
}
