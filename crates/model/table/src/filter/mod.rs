//! The language of conditions.
//!
//! A condition is `column operator value`:
//!
//! | written | means |
//! |---|---|
//! | `process=cmd*;!cmdkey.exe` | text, as [`Pattern`] says |
//! | `process!=*test*` | the opposite |
//! | `process='cmd.exe'` | as in SQL: the same as without the quotes |
//! | `wait_ns>=5ms` | numbers, with time units `ns us ms s m h` |
//! | `size>64KiB` | or `B KB MB GB KiB MiB GiB` (KB is 1,000 bytes, KiB 1,024) |
//! | `wait_ms>=5` | the same column spelled in another unit; a bare number is in that unit |
//! | `pid=4;100..200;!150` | equality and ranges (both ends count; either may be left out) |
//! | `address=0xfffff80000000000..` | hexadecimal; addresses and codes compare without sign |
//! | `in_dpc=true` | `true`/`false`, `yes`/`no`, `1`/`0` |
//! | `image=` and `image!=` | the cell is empty, is not |
//!
//! An empty cell satisfies `!=` and lists of exclusions alone, and nothing else.
//! [`Predicate::parse`] reads one condition; several hold together. Whoever has conditions in another form (the page, metrics, lanes)
//! makes [`Predicate`]s of them: [`Matcher`] evaluates all, and [`Predicate::sql`] prints the same for SQLite.

mod columns;
mod matcher;
mod number;
mod parse;
mod pattern;
mod test;

pub use columns::ColumnRef;
pub use columns::closest;
pub use matcher::Matcher;
pub use parse::Predicate;
pub use pattern::Pattern;
pub(crate) use pattern::has_wildcard;
pub use test::{Ends, IdSet, Order, Test, Words, quoted, quoted_text};

use crate::TableSpec;

/// Why a condition, a list of columns or a sort order cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The table has no such column.
    #[error("unknown column `{column}` in table `{table}`; it has: {known}{hint}")]
    UnknownColumn {
        /// What was asked for.
        column: String,
        /// The table.
        table: String,
        /// All its columns.
        known: String,
        /// A column of a similar name, as the end of a sentence, or nothing.
        hint: String,
    },
    /// No `=`, `!=`, `>=`, `<=`, `>` or `<` after a column's name.
    #[error("`{text}` is not a condition; write e.g. `process=cmd*`, `wait_ms>=5`, `pid!=4`, `cpu=0..3`")]
    NotACondition {
        /// What was written.
        text: String,
    },
    /// The value does not fit the column.
    #[error("`{value}` {problem} (column `{column}`)")]
    BadValue {
        /// The value as written.
        value: String,
        /// The column as written.
        column: String,
        /// What is wrong, as the rest of the sentence.
        problem: String,
    },
}

impl FilterError {
    pub(crate) fn unknown_column(asked: &str, table: &TableSpec) -> FilterError {
        let names = || table.columns.iter().map(|c| c.name.as_ref());
        let hint = closest(asked, names()).map(|name| format!("; did you mean `{name}`?"));
        FilterError::UnknownColumn {
            column: asked.to_owned(),
            table: table.name.to_string(),
            known: names().collect::<Vec<_>>().join(", "),
            hint: hint.unwrap_or_default(),
        }
    }
}
