//! What can go wrong with a table. A trace cannot cause these; a wrong declaration, a wrong request or a file of rows
//! that somebody else wrote can.

/// Why a table could not be built or changed.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The table has no such column.
    #[error("table `{table}` has no column `{column}`")]
    NoColumn {
        /// The table.
        table: String,
        /// The column asked for.
        column: String,
    },
    /// The operation does not fit the type of the column.
    #[error("column `{table}.{column}` is {had}, not {needed}")]
    WrongType {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The type that the operation needs.
        needed: &'static str,
        /// The type of the column.
        had: &'static str,
    },
    /// A row has another number of cells than the table has columns.
    #[error("table `{table}` has {needed} columns, the row has {had} cells")]
    WrongWidth {
        /// The table.
        table: String,
        /// Number of columns.
        needed: usize,
        /// Number of cells.
        had: usize,
    },
    /// More rows than a table can have.
    #[error("table `{table}` has more rows than the 4,294,967,295 that a table can have")]
    TooManyRows {
        /// The table.
        table: String,
    },
    /// Arrow refused what the builder made, e.g. a null in a column that is declared without.
    #[error("table `{table}`: {source}")]
    Arrow {
        /// The table.
        table: String,
        /// Arrow's reason.
        source: arrow_schema::ArrowError,
    },
}

/// A table that is asked for and not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// It was not recorded, made or asked for.
    #[error("there is no table `{0}`")]
    Table(&'static str),
    /// It has no such column, or one of another type.
    #[error("table `{0}` has no column `{1}` of the declared type")]
    Column(&'static str, &'static str),
}

impl TableError {
    /// Arrow refused the texts that tables share.
    pub fn texts(source: arrow_schema::ArrowError) -> TableError {
        TableError::Arrow { table: "texts".to_owned(), source }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, TableError>;
