//! What a block asks of its tables.

use super::expr::Expr;
use etwhy_table::Table;

/// A function over the rows of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

/// One figure of each group.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub function: Function,
    /// `None`: rows are counted.
    pub of: Option<Expr>,
}

/// What a block asks of its tables.
#[derive(Debug)]
pub struct Block {
    /// The tables, in the order of `FROM`.
    pub tables: Vec<Table>,
    /// Tables of a `LEFT JOIN`, with the column of an earlier table and of this one that are equal.
    pub left: Vec<Option<(Expr, Expr)>>,
    /// All must hold.
    pub conditions: Vec<Expr>,
    pub wants: Wants,
}

impl Block {
    /// What the column of a key is called.
    pub fn key_name(place: usize) -> String {
        format!("{OURS}key_{place}")
    }

    /// What the column of a sum is called.
    pub fn aggregate_name(place: usize) -> String {
        format!("{OURS}sum_{place}")
    }
}

/// How names begin that no query has itself.
pub const OURS: &str = "etwhy_kernel_";

/// What comes out.
#[derive(Debug)]
pub enum Wants {
    /// One row of each group; without keys exactly one.
    Groups { keys: Vec<Expr>, aggregates: Vec<Aggregate> },
    /// The rows of the only table that meet the conditions, of these the first of an order, with all that are equal to the last.
    Rows { first: Option<First> },
}

/// The first rows by a column.
#[derive(Debug)]
pub struct First {
    pub by: Expr,
    pub descending: bool,
    pub rows: usize,
}
