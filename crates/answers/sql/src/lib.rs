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
mod kept;
mod kernel;
mod limits;
pub mod matching;
mod missing;
mod reads;
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
pub use reads::columns_read;
pub use table_source::sql_type;
pub use tokens::words;

use capability::{Doors, Gate};
use limits::Budget;

use etwhy_table::{Database, Table};
use etwhy_vtab::Connection;
use rusqlite::Statement;
use rusqlite::limits::Limit;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    // Behind anything else it multiplies, or counts rows.
    let all_columns = |before: Option<&tokens::Token<'_>>| {
        before.is_none_or(|token| ["select", "distinct", "all", ",", "."].iter().any(|text| token.is(text)))
    };
    tokens.iter().zip(before).any(|(token, before)| match token {
        tokens::Token::Sign("*") => all_columns(before),
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
    gate: Gate,
    budget: Budget,
    /// A column that a query read is not there.
    missed: Arc<AtomicBool>,
    kernel: RefCell<Kernel>,
    /// Views that have become tables.
    kept: RefCell<BTreeSet<&'static str>>,
}

/// What the kernel did for the last query.
#[derive(Default)]
struct Kernel {
    is_off: bool,
    lines: Vec<String>,
    /// Small tables that SQLite still knows.
    tables: Vec<String>,
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
        // Of the whole process. Sorting and grouping go to temporary files; what a query holds beyond this is made to be large.
        connection.pragma_update(None, "hard_heap_limit", limits::HEAP_BYTES)?;
        let mut names = Vec::new();
        let missed = Arc::new(AtomicBool::new(false));
        for table in db.tables() {
            let mut source = table_source::TableSource::new(table.clone());
            source.missed = missed.clone();
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
        let gate = capability::confine(&mut connection, names, &functions, doors)?;
        let budget = Budget::default();
        let left = budget.clone();
        connection.progress_handler(limits::STRIDE, Some(move || left.spent(limits::STRIDE as u64)))?;
        Ok(Engine {
            connection,
            db: db.clone(),
            doors,
            gate,
            budget,
            missed,
            kernel: RefCell::default(),
            kept: RefCell::default(),
        })
    }

    /// The tables.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// What ends a query that runs, from another thread.
    pub fn interrupt(&self) -> impl Fn() + Send + 'static {
        let (handle, budget) = (self.connection.get_interrupt_handle(), self.budget.clone());
        move || {
            budget.interrupt();
            handle.interrupt();
        }
    }

    /// How a query is answered, a line for each step: what the kernel takes over, then SQLite's plan for the whole.
    ///
    /// # Errors
    /// SQLite's, with the place in the query.
    pub fn explain(&self, sql: &str) -> Result<String, SqlError> {
        let plan = self.query("plan", &format!("EXPLAIN QUERY PLAN {sql}"))?;
        let faster = self.rewritten(sql)?;
        let is_faster = faster.is_some();
        drop(faster);
        self.forget()?;
        let mut lines = if is_faster { self.kernel_lines() } else { Vec::new() };
        lines.extend((0..plan.rows() as u32).filter_map(|row| plan.text(row, "detail")).map(str::to_owned));
        Ok(lines.join("\n"))
    }

    /// What the kernel did for the last query, a line for each part of it; none if SQLite alone has answered.
    pub fn kernel_lines(&self) -> Vec<String> {
        self.kernel.borrow().lines.clone()
    }

    /// Leaves every query to SQLite alone, or no longer does.
    pub fn without_kernel(&self, off: bool) {
        self.kernel.borrow_mut().is_off = off;
    }

    /// Whether a query failed because it reads a column that was not read ([`columns_read`]).
    pub fn missed_a_column(&self) -> bool {
        self.missed.load(Ordering::Relaxed)
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
        self.connection.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits.pattern_bytes)?;
        self.budget.begin(limits);
        self.gate.refusal.take();
        let ask = result::Ask {
            name,
            sql,
            most,
            most_bytes: limits.result_bytes.unwrap_or(usize::MAX),
            attach: self.doors.attach,
            faster: &|| self.rewritten(sql),
        };
        let answer = result::run(&self.connection, &self.db, &ask);
        self.forget()?;
        let ended = self.gate.refusal.take().or_else(|| self.budget.exceeded());
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

impl Engine {
    /// A statement with the same answer that reads the kernel's small tables, if the kernel knows parts of a query.
    fn rewritten(&self, sql: &str) -> Result<Option<Statement<'_>>, SqlError> {
        let mut kernel = self.kernel.borrow_mut();
        kernel.lines.clear();
        let first = tokens::first(sql);
        let asks = first.is_some_and(|token| token.is("select") || token.is("with"));
        // What is attached may have tables of the same names.
        if kernel.is_off || !asks || self.doors.attach {
            return Ok(None);
        }
        let spend = |steps: u64| !self.budget.spent(steps);
        let answer = kernel::answer(sql, &self.db, &spend);
        let Some(rewritten) = answer.map_err(|_| SqlError::Sql(INTERRUPTED.to_owned()))? else {
            return Ok(None);
        };
        for (name, mut source) in rewritten.tables {
            source.missed = self.missed.clone();
            etwhy_vtab::register(&self.connection, &name, Arc::new(source))?;
            kernel.tables.push(name);
        }
        self.gate.kernel.store(true, Ordering::Relaxed);
        let statement = self.connection.prepare(&rewritten.sql);
        self.gate.kernel.store(false, Ordering::Relaxed);
        self.gate.refusal.take();
        // Whatever SQLite does not understand it gets as it was.
        let Ok(statement) = statement else { return Ok(None) };
        kernel.lines = rewritten.lines;
        Ok(Some(statement))
    }

    /// Forgets the kernel's small tables.
    fn forget(&self) -> Result<(), SqlError> {
        for name in self.kernel.borrow_mut().tables.drain(..) {
            etwhy_vtab::register(&self.connection, &name, Arc::new(kernel::Nothing))?;
        }
        Ok(())
    }
}

/// `sqlite3_errstr(SQLITE_INTERRUPT)`: <https://sqlite.org/rescode.html#interrupt>.
const INTERRUPTED: &str = "interrupted";

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
            "SELECT a, * FROM t",
            "SELECT DISTINCT * FROM t",
            "SELECT \"Fields\"",
            "SELECT key1 FROM Aggregate('t', 'fie' || 'lds')",
            "select FIELDS",
        ] {
            assert!(super::may_ask_for(sql, "fields"), "{sql}");
        }
        assert!(!super::may_ask_for("SELECT count(*), 2 * sum(bytes * 3) FROM t -- fields", "fields"));
        assert_eq!(super::texts("SELECT * FROM aggregate('sample', 'cpu')"), ["sample", "cpu"]);
    }
}
