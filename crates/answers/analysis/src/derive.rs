//! Tables that are made from other tables, once the pass is over.
//!
//! What findings and views need from an operator is a table of the contract like any other: it is extracted,
//! dumped and asked in SQL, and nobody can tell that it was made from tables and not from events.

use etwhy_table::{Database, Memory, Table, TableSpec};

/// Declaration of tables that are made from other tables: one file of `derived/` holds it and its code.
pub struct DerivedSpec {
    /// Tables that it makes.
    pub tables: &'static [&'static TableSpec],
    /// Tables that it reads, which may be derived themselves: [`reads`](etwhy_table::reads) of the types of their rows. A table that
    /// was not made counts as empty.
    pub reads: fn() -> Vec<&'static TableSpec>,
    /// Only made when one of its tables is asked for by name.
    pub on_demand: bool,
    /// Makes them, one for each of `tables`, from a database that has what it reads and nothing else.
    pub make: fn(&Database, &Memory) -> etwhy_table::Result<Vec<Table>>,
}

impl DerivedSpec {
    /// True for what is made from event logs or counter logs, which a trace has none of.
    pub(crate) fn is_beside_traces(&self) -> bool {
        self.tables.iter().any(|table| is_beside_traces(&table.name))
    }

    /// True if a table of this name is one of its.
    pub(crate) fn makes(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name == name)
    }
}

/// True for tables of event logs, audit policy, counter logs and probes, by their names.
pub fn is_beside_traces(table: &str) -> bool {
    ["log_", "audit_", "counter", "probe_"].iter().any(|prefix| table.starts_with(prefix))
}
