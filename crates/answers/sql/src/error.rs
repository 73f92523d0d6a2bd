//! What goes wrong with a query.

use etwhy_vtab::Error;

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

impl From<Error> for SqlError {
    fn from(error: Error) -> SqlError {
        SqlError::Sql(message(&error))
    }
}

/// SQLite's message, without what rusqlite adds.
fn message(error: &Error) -> String {
    match error {
        Error::SqlInputError { msg, sql, offset, .. } => {
            let at = usize::try_from(*offset).ok().and_then(|offset| sql.get(offset..));
            let near: String = at.unwrap_or("").chars().take(40).collect();
            if near.is_empty() { msg.clone() } else { format!("{msg}, at `{near}`") }
        }
        Error::SqliteFailure(_, Some(text)) => text.clone(),
        Error::MultipleStatement => {
            "only one SELECT is answered at a time: ask one question after the other".to_owned()
        }
        other => other.to_string(),
    }
}
