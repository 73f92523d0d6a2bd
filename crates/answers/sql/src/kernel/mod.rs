//! The column kernel: what is simple in a query is answered from the columns, and SQLite does the rest of the query.
//!
//! [`plan`] finds blocks (`SELECT` over tables with conditions, joins by unique ids, groups and sums), [`run`] answers them, and the
//! query reads the answers in place of the tables. What is not understood exactly is SQLite's alone, and so is what would be computed
//! in another way (sums that overflow, joins with several partners): the answer is the same whoever gives it. Rows whose order the query
//! leaves open come ordered by the values of the groups: nulls first, texts in the order in which the trace has them.
//!
//! The kernel reads nothing but tables of the database, after SQLite has allowed the query, and within its limits: each row that it
//! looks at counts as a step for every column it computes.

mod block;
mod expr;
mod groups;
mod plan;
mod read;
mod rewrite;
mod run;
mod text;

use crate::table_source::TableSource;
use block::Wants;
use etwhy_table::Database;
use etwhy_vtab::{Ask, Context, Cursor, Plan, Source, ValueRef};
use run::Answer;

/// How the names of small tables begin.
pub use block::OURS;

/// A query that reads small tables in place of large ones.
pub struct Rewritten {
    pub sql: String,
    /// The small tables with their names.
    pub tables: Vec<(String, TableSource)>,
    /// What the kernel did, a line for each block.
    pub lines: Vec<String>,
}

/// Answers what it can of a query. `spend` is told of steps, and says whether to go on.
///
/// # Errors
/// If `spend` ended it.
pub fn answer(sql: &str, db: &Database, spend: &dyn Fn(u64) -> bool) -> Result<Option<Rewritten>, Ended> {
    let words = super::words(sql);
    let large = |word: &&str| {
        db.tables().any(|table| table.rows() >= run::LEAST_ROWS && table.name().eq_ignore_ascii_case(word))
    };
    if !words.iter().any(large) {
        return Ok(None);
    }
    let mut out = Rewritten { sql: String::new(), tables: Vec::new(), lines: Vec::new() };
    let (mut copied, mut bytes_held) = (0, 0usize);
    for found in plan::blocks(sql, db) {
        // What is more is SQLite's, which puts it into files: a query may have hundreds of blocks.
        if bytes_held > groups::MOST_BYTES {
            break;
        }
        let name = format!("{OURS}{}", out.tables.len());
        let answer = match run::run(&found.block, &name, spend) {
            Ok(answer) => answer,
            Err(expr::Stop::NotMine) => continue,
            Err(expr::Stop::Ended) => return Err(Ended),
        };
        bytes_held = bytes_held.saturating_add(answer.bytes());
        for (bytes, text) in found.pieces {
            out.sql.push_str(sql.get(copied..bytes.start).unwrap_or_default());
            out.sql.push_str(&text.replace(plan::RESULT, &name));
            copied = bytes.end;
        }
        let tables: Vec<String> = found
            .block
            .tables
            .iter()
            .map(|table| format!("{} ({} rows)", table.name(), table.rows()))
            .collect();
        let tables = tables.join(", ");
        let (source, what) = match (answer, &found.block.wants, found.block.tables.into_iter().next()) {
            (Answer::Table(table), Wants::Groups { keys, aggregates }, _) => {
                let (rows, keys, sums) = (table.rows(), keys.len(), aggregates.len());
                (TableSource::new(table), format!("{rows} groups by {keys} keys with {sums} sums"))
            }
            (Answer::Rows(rows), _, Some(table)) => {
                let what = format!("{} rows", rows.len());
                (TableSource::of_rows(table, rows), what)
            }
            _ => continue,
        };
        out.lines.push(format!("kernel: {what} of {tables}"));
        out.tables.push((name, source));
    }
    out.sql.push_str(sql.get(copied..).unwrap_or_default());
    Ok((!out.tables.is_empty()).then_some(out))
}

/// A limit ended it, or somebody who no longer waits.
#[derive(Debug)]
pub struct Ended;

/// A table without anything, in the place of one that is no longer needed.
pub struct Nothing;

impl Source for Nothing {
    fn declaration(&self) -> String {
        "CREATE TABLE x(nothing)".to_owned()
    }

    fn plan(&self, _: &Ask<'_>) -> Option<Plan> {
        None
    }

    fn open(&self) -> Box<dyn Cursor + '_> {
        Box::new(Nothing)
    }
}

impl Cursor for Nothing {
    fn filter(&mut self, _: &str, _: &[ValueRef<'_>]) -> etwhy_vtab::Result<()> {
        Ok(())
    }

    fn next(&mut self) -> etwhy_vtab::Result<()> {
        Ok(())
    }

    fn eof(&self) -> bool {
        true
    }

    fn column(&self, _: usize, _: &mut Context) -> etwhy_vtab::Result<()> {
        Ok(())
    }

    fn rowid(&self) -> i64 {
        0
    }
}
