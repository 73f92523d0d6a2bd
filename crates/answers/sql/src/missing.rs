//! What to say of a column that is not there: the one that was meant, perhaps, and those that there are.

use super::capability::ONLY_QUESTIONS;
use super::tokens::words;
use etwhy_table::{Database, closest};

/// What people call the time of a row, in other tools and by habit.
const TIMES: [&str; 7] = ["time", "timestamp", "datetime", "date", "when", "time_created", "timecreated"];

/// The column that says when, if that is what is asked for: the clock's time before that since the begin.
fn time<'a>(name: &str, tables: &[&'a etwhy_table::Table]) -> Option<&'a str> {
    if !TIMES.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        return None;
    }
    let columns = || tables.iter().flat_map(|table| table.spec().columns.iter());
    let clock = columns().find(|column| column.name == "utc_ns");
    clock
        .or_else(|| columns().find(|column| column.role == etwhy_table::Role::Time))
        .map(|column| &*column.name)
}

/// What statements that would change something begin with. Tables are there when a query reads them, so SQLite does not find one that is only
/// to be changed, and says so before it asks whether that is allowed.
const CHANGES: [&str; 7] = ["drop", "update", "insert", "delete", "alter", "replace", "reindex"];

/// SQLite's message; behind one about a column that is missing the columns of the query's tables.
pub fn explained(message: String, db: &Database, sql: &str) -> String {
    let verb = sql.split_whitespace().next().unwrap_or_default();
    if message.starts_with("no such table: ") && CHANGES.iter().any(|word| word.eq_ignore_ascii_case(verb)) {
        return ONLY_QUESTIONS.to_owned();
    }
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
    let meant = || time(name, &tables).or_else(|| closest(name, there()));
    let meant = if there().any(|column| column == name) { None } else { meant() };
    let meant = meant.map(|like| format!("; did you mean `{like}`?")).unwrap_or_default();
    let mut out = message + &meant;
    for (table, columns) in tables.iter().zip(&columns) {
        out.push_str(&format!("; `{}` has {}", table.name(), columns.join(", ")));
    }
    out
}
