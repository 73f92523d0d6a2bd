//! SQL over tables: SQLite with virtual tables straight over the columns.
//!
//! # The central decision: no copy
//!
//! Nothing is loaded into a database. Each table of the [`Database`] is a virtual table ([`table_source`]) that shares
//! its columns, so a query starts at once however large the trace is.

pub mod function;
pub mod functions;
mod groups;
mod result;
pub mod scalar;
pub mod scalars;
pub mod subset;
mod table_source;
mod tokens;
mod view_list;
pub mod views;

pub use table_source::sql_type;

use etwhy_table::{Database, Table};
use etwhy_vtab::Connection;
use std::sync::Arc;

/// The words of a query outside of texts and comments: names of tables are among them.
pub fn words(sql: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for line in sql.lines() {
        let code = line.split("--").next().unwrap_or(line);
        for (n, piece) in code.split('\'').enumerate() {
            if n % 2 == 0 {
                let apart = |c: char| !(c.is_alphanumeric() || c == '_');
                words.extend(piece.split(apart).filter(|word| !word.is_empty()));
            }
        }
    }
    words
}

/// What went wrong with a query.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// SQLite refused the statement or failed.
    #[error("{0}")]
    Sql(String),
    /// The result could not be made a table.
    #[error(transparent)]
    Table(#[from] etwhy_table::TableError),
}

impl From<etwhy_vtab::Error> for SqlError {
    fn from(error: etwhy_vtab::Error) -> SqlError {
        SqlError::Sql(result::message(&error))
    }
}

/// Tables and views under SQL.
pub struct Engine {
    connection: Connection,
    db: Database,
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
        let engine = Engine::bare(db)?;
        for view in views::all() {
            engine
                .connection
                .execute_batch(&format!("CREATE TEMP VIEW \"{}\" AS {}", view.name, view.sql))?;
        }
        Ok(engine)
    }

    /// Tables without views.
    ///
    /// # Errors
    /// If SQLite refuses a table.
    pub fn bare(db: &Database) -> Result<Engine, SqlError> {
        let connection = Connection::open_in_memory()?;
        // As in DuckDB and Spark, `LIKE` minds the case of letters.
        connection.execute_batch(
            "PRAGMA case_sensitive_like = ON; PRAGMA temp_store = FILE; PRAGMA trusted_schema = ON;",
        )?;
        for table in db.tables() {
            let source = table_source::TableSource::new(table.clone());
            etwhy_vtab::register(&connection, table.name(), Arc::new(source))?;
        }
        for function in functions::ALL {
            let source = function::FunctionSource { function, db: db.clone() };
            etwhy_vtab::register(&connection, function.name, Arc::new(source))?;
        }
        for scalar in scalars::ALL {
            (scalar.register)(&connection, db)?;
        }
        Ok(Engine { connection, db: db.clone() })
    }

    /// The tables.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// The connection, for functions of their own.
    pub fn connection(&self) -> &Connection {
        &self.connection
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

    /// Runs one `SELECT` and gives its rows as a table called `name`.
    ///
    /// # Errors
    /// SQLite's, with the place in the query.
    pub fn query(&self, name: &str, sql: &str) -> Result<Table, SqlError> {
        result::run(&self.connection, &self.db, name, sql)
    }
}
