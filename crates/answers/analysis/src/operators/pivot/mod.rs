//! Pivot tables over any table: groups on the left, sums on the right; and the rows themselves.
//!
//! A key or value is a column, or a column of the table that an id refers to: `upid.name`, `stack_id.leaf`,
//! `stack_id.leaf_frame_id.module`. What an id refers to follows from its role, else from its name (`new_upid`, `file_id`).
//!
//! # How it is computed
//!
//! One pass over the columns, split among threads when there are many rows. Conditions on the column that a table is sorted by
//! become a range of rows. Keys become small numbers: texts have them already, columns of referred tables get theirs once per
//! id. So a group is found by arithmetic, and nothing is hashed per row unless numbers are large or keys are several. Every answer
//! carries the SQL that says the same ([`Answer::sql`]), with `LEFT JOIN`s for what ids refer to.
//!
//! # What fools it
//!
//! * Sums stop at the largest number of 64 bits, where SQLite gives up with an error.
//! * Sums of fractions differ from SQLite's in the last digits: rows are added in another order.
//! * An id that refers to nothing has no name: it stands in the group of null.
//! * A row that carries a span counts where its time column stands, with its whole length, as in every table.

mod answer;
mod code;
mod condition;
mod fields;
mod order;
mod reference;
mod rows;
mod scan;
mod spark;
mod sql;
mod sums;
#[cfg(test)]
mod tests;

pub use condition::{Condition, Op, Selected};
pub use fields::{field_of, with_fields};
pub use rows::{Rows, rows};
pub use spark::Spark;

use etwhy_table::{Database, Table};
use serde::Deserialize;
use ts_rs::TS;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PivotError {
    /// The question makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// Nobody waits for the answer any more.
    #[error("given up")]
    GivenUp,
    /// The answer could not be made a table.
    #[error(transparent)]
    Table(#[from] etwhy_table::TableError),
}

fn wrong<T>(text: String) -> Result<T, PivotError> {
    Err(PivotError::Wrong(text))
}

/// Says that nobody waits any more.
pub type GiveUp<'a> = &'a (dyn Fn() -> bool + Sync);

/// A pivot table.
#[derive(Clone, Debug, Default, Deserialize, TS)]
#[ts(rename = "PivotQuestion")]
pub struct Pivot {
    /// Table.
    pub table: String,
    /// All must hold.
    #[serde(default, rename = "where")]
    pub conditions: Vec<Condition>,
    /// Keys, the outermost first.
    #[serde(default)]
    pub group: Vec<String>,
    /// What is computed for each group.
    #[serde(default)]
    pub values: Vec<Value>,
    /// Order; the first value, largest first, unless given.
    #[serde(default)]
    pub sort: Vec<Sort>,
    /// Groups to give.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Groups to leave out before.
    #[serde(default)]
    pub offset: usize,
    /// Values (by position) that get a column with their share of all, in percent: counts and sums.
    #[serde(default)]
    pub share: Vec<usize>,
}

/// Something to compute.
#[derive(Clone, Debug, Deserialize, TS)]
#[ts(rename = "PivotValue")]
pub struct Value {
    /// What of; nothing: rows (for [`Function::Count`]).
    #[serde(default)]
    pub column: Option<String>,
    /// How.
    #[serde(rename = "fn")]
    pub function: Function,
}

/// How a value is computed. Nulls do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "PivotFunction")]
pub enum Function {
    /// How many.
    Count,
    /// Sum.
    Sum,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Mean.
    Avg,
    /// Distinct values.
    Unique,
}

impl Function {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Function::Count => "count",
            Function::Sum => "sum",
            Function::Min => "min",
            Function::Max => "max",
            Function::Avg => "avg",
            Function::Unique => "unique",
        }
    }
}

impl Value {
    /// The name of its column in the answer.
    pub fn name(&self) -> String {
        match &self.column {
            Some(column) => format!("{}({column})", self.function.name()),
            None => self.function.name().to_owned(),
        }
    }
}

/// What groups are ordered by: a value or a key, by position.
#[derive(Clone, Copy, Debug, Default, Deserialize, TS)]
#[ts(rename = "PivotSort")]
pub struct Sort {
    /// Value.
    #[serde(default)]
    pub value: Option<usize>,
    /// Key, if no value is given.
    #[serde(default)]
    pub key: Option<usize>,
    /// Largest first. Nulls come last in either direction.
    #[serde(default)]
    pub down: bool,
}

/// The groups that were asked for.
#[derive(Debug)]
pub struct Answer {
    /// Keys, then labels of ids (`upid.label`), values, shares, and `spark`.
    pub table: Table,
    /// The query that says the same, but for labels and `spark`.
    pub sql: String,
    /// Groups in all.
    pub groups: usize,
    /// Rows that the conditions let through.
    pub rows: u64,
    /// The values over all those rows.
    pub totals: Vec<serde_json::Value>,
    /// False if there are too many groups for `spark`.
    pub spark: bool,
}

/// More groups are no answer for a person: the question says so instead of filling memory.
pub const MOST_GROUPS: usize = 1 << 21;

/// Groups that are given unless said.
pub const SOME: usize = 1000;

/// Computes a pivot table; with `spark` also a column of the first value over time.
///
/// # Errors
/// If the question makes no sense, or `give_up` says so.
pub fn pivot(
    db: &Database,
    ask: &Pivot,
    spark: Option<&Spark>,
    give_up: GiveUp<'_>,
) -> Result<Answer, PivotError> {
    let mut joins = reference::Joins::new(db, &ask.table)?;
    let question = scan::Question::new(&mut joins, ask, spark)?;
    let sql = sql::pivot(ask, &question)?;
    let found = scan::scan(&question, give_up)?;
    answer::answer(db, ask, &question, found, sql)
}
