//! Tables with declared columns, units, roles and documentation, held as Arrow batches.
//!
//! * [`define_table!`] declares a table once: the row struct, the [`TableSpec`] and the code that
//!   appends rows follow from it.
//! * [`TableBuilder`] takes rows in a single pass and closes a chunk every [`CHUNK_ROWS`] rows. When all
//!   builders of an analysis together hold more than their [`Memory`] budget, closed chunks move into an
//!   unlinked, mapped file; nothing else changes.
//! * [`Strings`] interns the text of one analysis; all [`ColumnType::Text`] columns share its values.
//! * [`Table`] and [`Database`] are what every face reads, by [`ColumnView`] or as Arrow
//!   `RecordBatch`es.
//! * [`filter`] is the language of conditions, [`Selection`] its result: rows in an order, and columns.
//!
//! # The central decision: only types that everybody shares
//!
//! A column is one of six types, and integers are signed, because SQLite, DuckDB, Spark and pandas agree
//! on those and on little else. A 64-bit address is therefore the bits of a `u64` in an `i64` column; its
//! [`Unit::Address`] tells whoever shows or compares it.
#![forbid(unsafe_code)]

mod ad_hoc;
mod arrow;
mod builder;
#[cfg(test)]
mod builder_tests;
mod cell;
mod column;
mod database;
mod define;
mod derived;
mod error;
pub mod filter;
mod load;
mod memory;
mod named_enum;
mod read;
mod reads;
mod select;
mod sort;
mod spec;
mod strings;
mod table;
#[cfg(test)]
mod test_table;
mod unit;
mod view;

pub use ad_hoc::AdHocBuilder;
pub use arrow::{arrow_field, arrow_schema};
pub use builder::{Row, TableBuilder};
pub use cell::{Cell, Names, Numbers};
pub use column::{CHUNK_ROWS, ColumnBuilder, ColumnChunk, PART_ROWS};
pub use database::Database;
#[doc(hidden)]
pub use define::private as __private;
pub use derived::{Derived, FromText, Make};
pub use error::{Absent, Result, TableError};
pub use filter::{ColumnRef, FilterError, Matcher, Pattern, Predicate, closest};
pub use load::TableLoader;
pub use memory::Memory;
pub use read::{Iter, RowOf, Rows};
pub use reads::{Reads, reads};
pub use select::{Reader, Selection};
pub use sort::SortKey;
pub use spec::{ColumnSpec, ColumnType, Evidence, Role, TableSpec};
pub use strings::{Strings, Sym, Texts};
pub use table::Table;
pub use unit::{Family, Unit};
pub use view::{ColumnView, Value};
