//! SQL over tables: SQLite with virtual tables straight over the columns.
//!
//! # The central decision: no copy
//!
//! Nothing is loaded into a database. Each table of the [`Database`] is a virtual table (`table_source.rs`) that shares
//! its columns, so a query starts at once however large the trace is.
//!
//! # What a query may do
//!
//! Queries come from findings that others wrote and from pages. Every connection therefore allows nothing but reading these tables with
//! listed functions ([`capability`]), within [`Limits`]. A query leaves nothing behind that the next one could see.

#![forbid(unsafe_code)]

mod allowed;
pub mod capability;
mod cell;
mod error;
pub mod function;
pub mod functions;
mod groups;
mod limits;
pub mod matching;
mod missing;
mod result;
pub mod scalar;
pub mod scalars;
pub mod subset;
mod table_source;
mod tokens;
mod view_list;
pub mod views;

pub use cell::Cell;
pub use error::SqlError;
pub use limits::Limits;
pub use table_source::sql_type;
pub use tokens::words;

use capability::{Doors, Refusal};
use limits::Budget;

use etwhy_table::{Database, Table};
use etwhy_vtab::Connection;
use rusqlite::limits::Limit;
use std::sync::Arc;

/// Names in braces outside the texts of a query: what is put in before it is asked.
pub fn placeholders(sql: &str) -> Vec<&str> {
    let tokens = tokens::tokens(sql);
    let named = |three: &[tokens::Token<'_>]| three[0].is("{") && three[2].is("}");
    tokens.windows(3).filter(|three| named(three)).filter_map(|three| three[1].word()).collect()
}

/// The texts of a query: arguments of table functions, which may name tables.
pub fn texts(sql: &str) -> Vec<&str> {
    let text = |token: tokens::Token<'_>| matches!(token, tokens::Token::Text(_));
    let tokens = tokens::tokens(sql).into_iter();
    tokens.filter(|token| text(*token)).map(|token| token.shown().trim_matches('\'')).collect()
}

/// True if a query may ask for a column of this name: it names it, asks for all columns of a table, or calls a table function, to which
/// the name may be given as a text that is made by the query.
pub fn may_ask_for(sql: &str, column: &str) -> bool {
    let tokens = tokens::tokens(sql);
    let before = std::iter::once(None).chain(tokens.iter().map(Some));
    let counts_rows = |before: Option<&tokens::Token<'_>>| before.is_some_and(|token| token.is("("));
    tokens.iter().zip(before).any(|(token, before)| match token {
        tokens::Token::Sign("*") => !counts_rows(before),
        tokens::Token::Word(word) => {
            let is = |name: &str| word.eq_ignore_ascii_case(name);
            is(column) || is("natural") || functions::ALL.iter().any(|function| is(function.name))
        }
        tokens::Token::Quoted(name) => name.trim_matches(['"', '`', '[', ']']).eq_ignore_ascii_case(column),
        _ => false,
    })
}

/// Tables and views under SQL.
pub struct Engine {
    connection: Connection,
    db: Database,
    doors: Doors,
    refusal: Refusal,
    budget: Budget,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({} tables)", self.db.len())
    }
}

impl Engine {
    /// All tables of `db`, and the shipped views.
    ///
    /// # Errors
    /// If SQLite refuses a table.
    pub fn new(db: &Database) -> Result<Engine, SqlError> {
        Engine::with(db, Doors::default())
    }

    /// As [`Engine::new`], with more doors open.
    ///
    /// # Errors
    /// If SQLite refuses a table.
    pub fn with(db: &Database, doors: Doors) -> Result<Engine, SqlError> {
        let mut connection = Connection::open_in_memory()?;
        // As in DuckDB and Spark, `LIKE` minds the case of letters.
        connection.execute_batch(
            "PRAGMA case_sensitive_like = ON; PRAGMA temp_store = FILE; PRAGMA trusted_schema = ON;",
        )?;
        let mut names = Vec::new();
        for table in db.tables() {
            let source = table_source::TableSource::new(table.clone());
            etwhy_vtab::register(&connection, table.name(), Arc::new(source))?;
            names.push(table.name().to_owned());
        }
        for function in functions::ALL {
            let source = function::FunctionSource { function, db: db.clone() };
            etwhy_vtab::register(&connection, function.name, Arc::new(source))?;
            names.push(function.name.to_owned());
        }
        for scalar in scalars::ALL {
            (scalar.register)(&connection, db)?;
        }
        for view in views::all() {
            connection.execute_batch(&format!("CREATE TEMP VIEW \"{}\" AS {}", view.name, view.sql))?;
            names.push(view.name.to_owned());
        }
        let functions: Vec<&str> = scalars::ALL.iter().map(|scalar| scalar.name()).collect();
        let refusal = capability::confine(&mut connection, names, &functions, doors)?;
        let budget = Budget::default();
        let left = budget.clone();
        connection.progress_handler(limits::STRIDE, Some(move || left.spent()))?;
        Ok(Engine { connection, db: db.clone(), doors, refusal, budget })
    }

    /// The tables.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// What ends a query that runs, from another thread.
    pub fn interrupt(&self) -> impl Fn() + Send + 'static {
        let handle = self.connection.get_interrupt_handle();
        move || handle.interrupt()
    }

    /// How SQLite would answer a query, a line for each step.
    ///
    /// # Errors
    /// SQLite's, with the place in the query.
    pub fn explain(&self, sql: &str) -> Result<String, SqlError> {
        let plan = self.query("plan", &format!("EXPLAIN QUERY PLAN {sql}"))?;
        let lines: Vec<&str> = (0..plan.rows() as u32).filter_map(|row| plan.text(row, "detail")).collect();
        Ok(lines.join("\n"))
    }

    /// Runs one `SELECT` for its owner ([`Limits::OWNER`]) and gives its rows as a table called `name`.
    ///
    /// # Errors
    /// SQLite's, with the place in the query; what is not allowed.
    pub fn query(&self, name: &str, sql: &str) -> Result<Table, SqlError> {
        Ok(self.query_within(name, sql, usize::MAX, &Limits::OWNER)?.0)
    }

    /// As [`Engine::query`], at most `most` rows and within limits; the flag says whether there are more.
    ///
    /// # Errors
    /// SQLite's, with the place in the query; what is not allowed; the limit that ended it.
    pub fn query_within(
        &self,
        name: &str,
        sql: &str,
        most: usize,
        limits: &Limits,
    ) -> Result<(Table, bool), SqlError> {
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, limits.value_bytes)?;
        self.budget.begin(limits);
        self.refusal.take();
        let ask = result::Ask {
            name,
            sql,
            most,
            most_bytes: limits.result_bytes.unwrap_or(usize::MAX),
            attach: self.doors.attach,
        };
        let answer = result::run(&self.connection, &self.db, &ask);
        let ended = self.refusal.take().or_else(|| self.budget.exceeded());
        answer.map_err(|error| match (error, ended) {
            (_, Some(reason)) => SqlError::Sql(reason),
            (SqlError::Sql(message), None) if message == TOO_BIG => SqlError::Sql(format!(
                "a value of the query is longer than the limit here, {} bytes",
                limits.value_bytes
            )),
            (SqlError::Sql(message), None) => SqlError::Sql(missing::explained(message, &self.db, sql)),
            (other, None) => other,
        })
    }
}

/// `sqlite3_errstr(SQLITE_TOOBIG)`: <https://sqlite.org/rescode.html#toobig>.
const TOO_BIG: &str = "string or blob too big";

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_tables_stand_behind_from_and_join() {
        let sql = "WITH a AS (SELECT x.event AS registry FROM sample x) SELECT 'dpc' AS sample_kind FROM a, \"process\" p -- FROM isr";
        assert_eq!(super::words(sql), ["sample", "a", "process"]);
        for sql in [
            "SELECT * FROM t",
            "SELECT t.* FROM t",
            "SELECT \"Fields\"",
            "SELECT key1 FROM Aggregate('t', 'fie' || 'lds')",
            "select FIELDS",
        ] {
            assert!(super::may_ask_for(sql, "fields"), "{sql}");
        }
        assert!(!super::may_ask_for("SELECT count(*), sum(bytes) FROM t -- fields", "fields"));
        assert_eq!(super::texts("SELECT * FROM aggregate('sample', 'cpu')"), ["sample", "cpu"]);
    }
}
