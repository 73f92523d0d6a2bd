//! What the questions to a store share: the store, how many rows, in which form.

use crate::options::document::DocumentArgs;
use crate::report::terminal::out;
use etwhy_base::units::{decimal, thousands};
use etwhy_doc::{Doc, Line, Table};
use etwhy_fleet::{Fleet, Store};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Asked {
    /// The store that `etwhy fleet run` wrote
    #[arg(value_name = "STORE")]
    pub store: PathBuf,
    /// At most N rows
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub top: usize,
    /// Print JSON: all rows
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub document: DocumentArgs,
}

/// What is said of a question.
pub struct Said {
    /// For people.
    pub doc: Doc,
    /// For programs.
    pub rows: Vec<Value>,
}

impl Asked {
    /// Opens the store.
    ///
    /// # Errors
    /// If it is none.
    pub fn fleet(&self) -> anyhow::Result<Fleet> {
        self.document.check(self.json)?;
        crate::knowledge::load(&[])?;
        Ok(Fleet::new(Store::open(&self.store)?)?)
    }

    /// Prints or writes what was said.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&self, fleet: &Fleet, question: &str, said: Said) -> anyhow::Result<()> {
        let mut out = out();
        if self.json {
            let value = json!({
                "schema": format!("etwhy.fleet-{question}/1"), "traces": fleet.traces(), "rows": said.rows,
            });
            etwhy_report::json::to_writer_pretty(&mut out, &value)?;
            writeln!(out)?;
        }
        self.document.write(self.json, &said.doc, &mut out)?;
        out.flush()?;
        Ok(())
    }

    /// A table with the rows that are wanted.
    pub fn cut(&self, table: Table) -> Table {
        Table { hint: "--top shows more".to_owned(), ..table }.at_most(self.top)
    }
}

/// A share in per cent.
pub fn percent(value: Option<f64>) -> Line {
    let text = value.map(|value| match value {
        0.0 => "0 %".to_owned(),
        v if v < 0.01 => "<0.01 %".to_owned(),
        v if v < 10.0 => format!("{} %", decimal(v, 2)),
        v => format!("{} %", decimal(v, 1)),
    });
    text.unwrap_or_default().into()
}

/// A count.
pub fn count(value: Option<i64>) -> Line {
    value.map(|value| thousands(value.into())).unwrap_or_default().into()
}

/// Part and whole.
pub fn of(part: Option<i64>, whole: Option<i64>) -> Line {
    let text = |value: Option<i64>| thousands(value.unwrap_or(0).into());
    format!("{} of {}", text(part), text(whole)).into()
}

/// A name of a machine that people know.
pub fn machine(computer: Option<&str>, machine_id: &str) -> Line {
    Line::name(computer.unwrap_or(machine_id))
}

/// Rows of a table by number.
pub fn rows(table: &etwhy_table::Table) -> std::ops::Range<u32> {
    0..u32::try_from(table.rows()).unwrap_or(u32::MAX)
}
