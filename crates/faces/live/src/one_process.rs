//! What one process does: processors, waits with who ends them, files, registry, windows that do not answer.

use crate::error::Result;
use etwhy_rules::{Answer, Outcome};
use etwhy_sql::{Cell, Engine};
use serde::Serialize;

/// Tables that are read.
pub(crate) const TABLES: [&str; 7] =
    ["process", "thread_time", "wait_chain", "file_usage", "registry_usage", "ui_delay", "bill"];

/// Rows of each list.
const ROWS: usize = 6;

/// A list: what it is about, its columns, its rows.
#[derive(Clone, Debug, Serialize)]
pub struct List {
    /// What it is about.
    pub title: &'static str,
    /// Names of the columns; those that end in `_ns` are nanoseconds, in `_bytes` bytes.
    pub columns: Vec<String>,
    /// The rows, the costliest first.
    pub rows: Vec<Vec<Cell>>,
}

/// What one process does.
#[derive(Clone, Debug, Serialize)]
pub struct OneProcess {
    /// As it was asked for.
    pub asked: String,
    /// Processes of this name or id that are known: name, id, running.
    pub instances: Vec<Vec<Cell>>,
    /// What they do.
    pub lists: Vec<List>,
    /// Findings that name it: id, what is said, what to do.
    pub hints: Vec<(String, String, String)>,
}

/// Titles and queries; `{}` stands for the condition that selects the process.
const QUERIES: [(&str, &str); 5] = [
    (
        "Processors",
        "SELECT sum(t.run_ns) AS running_ns, sum(t.wait_ns) AS waiting_ns, sum(t.ready_ns) AS queued_ns, count(*) AS threads \
         FROM thread_time t JOIN process p ON p.upid = t.upid WHERE {} HAVING count(*) > 0",
    ),
    (
        "Waits, and who ended them",
        "SELECT coalesce(r.name, c.readied_by) AS ended_by, coalesce(c.readying_service, c.readying_driver, '') AS inside, \
         c.wait_class AS kind, sum(c.count) AS waits, sum(c.wait_union_ns) AS wait_ns, max(c.wait_max_ns) AS longest_ns \
         FROM wait_chain c JOIN process p ON p.upid = c.waiting_upid LEFT JOIN process r ON r.upid = c.readying_upid \
         WHERE {} GROUP BY 1, 2, 3 ORDER BY 5 DESC, 1, 2, 3 LIMIT 6",
    ),
    (
        "Files",
        "SELECT f.path AS path, sum(f.opens) AS opens, sum(f.failed_opens) AS failed, sum(f.read_bytes) AS read_bytes, \
         sum(f.written_bytes) AS written_bytes, sum(f.total_ns) AS time_ns FROM file_usage f JOIN process p ON p.upid = f.upid \
         WHERE {} GROUP BY f.path ORDER BY 6 DESC, 1 LIMIT 6",
    ),
    (
        "Registry",
        "SELECT r.key AS key, sum(r.count) AS operations, sum(r.failed) AS failed, sum(r.total_ns) AS time_ns \
         FROM registry_usage r JOIN process p ON p.upid = r.upid WHERE {} GROUP BY r.key ORDER BY 2 DESC, 1 LIMIT 6",
    ),
    (
        "Windows that did not answer",
        "SELECT u.kind AS kind, coalesce(u.message, '') AS message, u.dur_ns AS length_ns, u.pending AS lasts \
         FROM ui_delay u JOIN process p ON p.upid = u.upid WHERE {} ORDER BY u.dur_ns DESC LIMIT 6",
    ),
];

/// Asks what a process does; `who` is its name, with or without `.exe`, or its id.
pub(crate) fn ask(engine: &Engine, who: &str, outcomes: &[Outcome]) -> Result<OneProcess> {
    let condition = condition(who);
    let instances = rows(
        engine,
        &format!(
            "SELECT p.name AS name, p.pid AS pid, CASE WHEN p.end_ns IS NULL THEN 1 ELSE 0 END AS runs FROM process p WHERE \
             {condition} ORDER BY 3 DESC, 2 LIMIT 20"
        ),
    )?
    .1;
    let mut lists = Vec::new();
    for (title, sql) in QUERIES {
        let (columns, mut rows) = rows(engine, &sql.replace("{}", &condition))?;
        rows.truncate(ROWS);
        lists.push(List { title, columns, rows });
    }
    let names: Vec<String> = instances
        .iter()
        .filter_map(|row| match row.first() {
            Some(Cell::Text(name)) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect();
    let about = |text: &str| names.iter().any(|name| text.to_ascii_lowercase().contains(name.as_str()));
    let found = outcomes.iter().filter(|outcome| outcome.answer == Answer::Found);
    let hints = found.flat_map(|outcome| {
        let own = outcome.hits.iter().filter(|hit| about(&hit.culprit) || about(&hit.headline)).take(1);
        own.map(|hit| (outcome.id.clone(), hit.headline.clone(), hit.fix.clone()))
    });
    Ok(OneProcess { asked: who.to_owned(), instances, lists, hints: hints.take(ROWS).collect() })
}

/// SQL that is true of the process.
fn condition(who: &str) -> String {
    if let Ok(pid) = who.parse::<u32>() {
        return format!("p.pid = {pid}");
    }
    let name = who.to_ascii_lowercase().replace('\'', "''");
    let bare = name.strip_suffix(".exe").unwrap_or(&name);
    format!("(lower(p.name) = '{name}' OR lower(p.name) = '{bare}.exe')")
}

fn rows(engine: &Engine, sql: &str) -> Result<(Vec<String>, Vec<Vec<Cell>>)> {
    let table = engine.query("process", sql)?;
    let columns: Vec<String> = table.spec().columns.iter().map(|column| column.name.to_string()).collect();
    let count = u32::try_from(table.rows()).unwrap_or(0);
    let row = |row: u32| (0..columns.len()).map(|column| Cell::from_value(table.cell(row, column))).collect();
    let rows = (0..count).map(row).collect();
    Ok((columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_quotes() {
        assert_eq!(condition("4711"), "p.pid = 4711");
        assert_eq!(condition("a' OR 1"), "(lower(p.name) = 'a'' or 1' OR lower(p.name) = 'a'' or 1.exe')");
        assert_eq!(condition("Chrome.EXE"), "(lower(p.name) = 'chrome.exe' OR lower(p.name) = 'chrome.exe')");
    }
}
