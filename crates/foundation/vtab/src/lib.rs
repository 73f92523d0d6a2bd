//! A safe way to give rows to SQLite: virtual tables without a line of unsafe code on the caller's side.
//!
//! A [`Source`] declares columns, says how it would answer a question ([`Source::plan`]), and opens [`Cursor`]s.
//! [`register`] makes it a table of a connection, without copying anything into a database. Columns declared
//! `hidden` are arguments, so the same trait makes table functions.
//!
//! `bridge.rs` is the only unsafe code; its contract stands there.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod bridge;

pub use bridge::register;
pub use rusqlite::types::ValueRef;
pub use rusqlite::vtab::Context;
pub use rusqlite::{Connection, Error, Result};

/// How a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `=`
    Eq,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    NotNull,
}

/// A condition on a column whose other side is known when the cursor starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Position of the column.
    pub column: usize,
    /// How it compares.
    pub op: Op,
    /// Text is compared byte by byte.
    pub binary: bool,
}

/// What SQLite would like to know.
#[derive(Debug)]
pub struct Ask<'a> {
    /// Conditions that can be used.
    pub constraints: &'a [Constraint],
    /// Columns that have a condition which cannot be used in this plan (a join in the other direction).
    pub unusable: &'a [usize],
    /// Order wanted: columns, true for descending.
    pub order: &'a [(usize, bool)],
    /// Equal values of the `order` columns must be neighbours, in any order (`GROUP BY`, `DISTINCT`).
    pub grouped: bool,
}

/// How the source would answer.
#[derive(Debug, Default)]
pub struct Plan {
    /// Positions in [`Ask::constraints`] whose values [`Cursor::filter`] wants, in that order.
    pub take: Vec<usize>,
    /// True if rows that do not meet the taken conditions never come. Otherwise SQLite checks again.
    pub exact: bool,
    /// Handed to [`Cursor::filter`].
    pub text: String,
    /// Cost, in rows that must be looked at.
    pub cost: f64,
    /// Rows that come.
    pub rows: i64,
    /// Rows come as [`Ask::order`] wants them.
    pub ordered: bool,
}

/// Rows for SQLite.
pub trait Source: Send + Sync + 'static {
    /// `CREATE TABLE x(name TYPE, …)`; arguments of a function are `HIDDEN` columns.
    fn declaration(&self) -> String;

    /// How it would answer; `None` if it cannot (an argument is missing).
    fn plan(&self, ask: &Ask<'_>) -> Option<Plan>;

    /// A new cursor.
    fn open(&self) -> Box<dyn Cursor + '_>;
}

/// A walk over rows.
pub trait Cursor {
    /// Starts again, with the plan's text and the values of its conditions.
    ///
    /// # Errors
    /// What the user should read.
    fn filter(&mut self, plan: &str, args: &[ValueRef<'_>]) -> Result<()>;

    /// Goes on to the next row.
    ///
    /// # Errors
    /// What the user should read.
    fn next(&mut self) -> Result<()>;

    /// True behind the last row.
    fn eof(&self) -> bool;

    /// Gives the value of a column of this row.
    ///
    /// # Errors
    /// Those of [`Context::set_result`].
    fn column(&self, column: usize, out: &mut Context) -> Result<()>;

    /// A number of this row.
    fn rowid(&self) -> i64;
}

/// An error that the user reads.
pub fn error(text: impl Into<String>) -> Error {
    Error::ModuleError(text.into())
}
