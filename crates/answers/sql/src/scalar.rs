//! Functions of single values that the field needs. One file of `scalars/` holds each.

use etwhy_table::Database;
use etwhy_vtab::{Connection, Result};

/// A scalar or aggregate function.
pub struct Scalar {
    /// Name and arguments, as one writes it.
    pub usage: &'static str,
    /// What it gives.
    pub about: &'static str,
    /// Adds it to a connection.
    pub register: fn(&Connection, &Database) -> Result<()>,
}

impl Scalar {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.usage.split('(').next().unwrap_or(self.usage)
    }
}
