//! Questions to a store, one file of SQL each: the same text for SQLite, DuckDB and Spark.
//!
//! A view reads tables of the contract, of current readings only, and `knowledge`. `views/current.sql` says which readings are current and
//! sees all rows.

use crate::contract;
use etwhy_sql::views::View;
use etwhy_sql::words;
use std::collections::HashSet;

/// Name and text of each view.
pub(crate) const FILES: [(&str, &str); 11] = [
    ("builds", include_str!("../views/builds.sql")),
    ("coverage", include_str!("../views/coverage.sql")),
    ("current", include_str!("../views/current.sql")),
    ("hits", include_str!("../views/hits.sql")),
    ("machine_shares", include_str!("../views/machine_shares.sql")),
    ("rank", include_str!("../views/rank.sql")),
    ("rank_findings", include_str!("../views/rank_findings.sql")),
    ("runs", include_str!("../views/runs.sql")),
    ("traces", include_str!("../views/traces.sql")),
    ("trend", include_str!("../views/trend.sql")),
    ("version_pairs", include_str!("../views/version_pairs.sql")),
];

/// The view that says which readings count.
pub const CURRENT: &str = "current";

/// All views, in order of name.
pub fn all() -> impl Iterator<Item = View> {
    FILES.iter().map(|(name, text)| etwhy_sql::views::parse(name, text))
}

/// Tables of the contract that a query names.
pub fn tables_of(sql: &str) -> impl Iterator<Item = &'static str> {
    let words: HashSet<String> = words(sql).into_iter().map(str::to_lowercase).collect();
    contract::tables().iter().map(|table| table.spec.name.as_ref()).filter(move |name| words.contains(*name))
}
