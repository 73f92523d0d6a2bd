//! What to say of a column that is not there: the one that was meant, perhaps, and those that there are.

use super::words;
use etwhy_table::{Database, closest};

/// SQLite's message; behind one about a column that is missing the columns of the query's tables.
pub fn explained(message: String, db: &Database, sql: &str) -> String {
    let Some(rest) = message.strip_prefix("no such column: ") else { return message };
    // `alias.column, at ...`
    let name = rest.split([',', ' ']).next().unwrap_or(rest);
    let name = name.rsplit('.').next().unwrap_or(name).trim_matches('"');
    let mut tables: Vec<_> = words(sql).into_iter().filter_map(|word| db.get(word)).collect();
    tables.sort_by_key(|table| table.name());
    tables.dedup_by_key(|table| table.name());
    let names =
        |table: &etwhy_table::Table| table.spec().columns.iter().map(|c| c.name.to_string()).collect();
    let columns: Vec<Vec<String>> = tables.iter().map(|table| names(table)).collect();
    let there = || columns.iter().flatten().map(String::as_str);
    // A column of this very name is one of another table, as the lists show.
    let meant = if there().any(|column| column == name) { None } else { closest(name, there()) };
    let meant = meant.map(|like| format!("; did you mean `{like}`?")).unwrap_or_default();
    let mut out = message + &meant;
    for (table, columns) in tables.iter().zip(&columns) {
        out.push_str(&format!("; `{}` has {}", table.name(), columns.join(", ")));
    }
    out
}
