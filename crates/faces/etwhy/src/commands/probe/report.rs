//! `etwhy probe report`, and how results are written in other forms.

use crate::exit::Exit;
use crate::options::rows::{RowArgs, write_selection};
use crate::report::table_json::table_json;
use crate::report::terminal::{out, text, width};
use anyhow::{Context as _, bail};
use etwhy_export::sanitize;
use etwhy_probe::compare::Comparison;
use etwhy_probe::outcome::Outcome;
use etwhy_probe::show::{page, results};
use etwhy_probe::tables;
use etwhy_sql::Engine;
use etwhy_table::{Database, Memory, Selection, Table};
use serde_json::Map;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// Files of results
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// n that growth laws are extended to: your number of files, calls, … (default: ten times the largest measured)
    #[arg(long, value_name = "N", value_parser = positive)]
    scale: Option<f64>,
    /// Write one HTML page with charts (of one file)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    rows: Rows,
}

/// Results as rows.
#[derive(clap::Args)]
pub struct Rows {
    /// Ask in SQL: tables probe_run, probe_series, probe_law, probe_machine, probe_product, probe_suspect, probe_difference
    #[arg(long, value_name = "SQL", conflicts_with = "dump")]
    sql: Option<String>,
    /// Write a table
    #[arg(long, value_name = "TABLE")]
    dump: Option<String>,
    #[command(flatten)]
    pub written: RowArgs,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let files = read(&args.files)?;
    if let Some(path) = &args.html {
        let [(_, outcome)] = files.as_slice() else { bail!("--html shows one file; give one") };
        etwhy_export::write_whole(path, page::report(outcome, args.scale).as_bytes())
            .with_context(|| path.display().to_string())?;
    }
    if !args.rows.write(&files, None, args.scale)? {
        let mut out = out();
        for (at, (name, outcome)) in files.iter().enumerate() {
            if files.len() > 1 {
                writeln!(out, "{}{}", if at > 0 { "\n" } else { "" }, sanitize(name))?;
            }
            let doc = results::document(outcome, args.scale, width() >= WIDE);
            write!(out, "{}", text(&doc))?;
        }
        out.flush()?;
    }
    Ok(exit(&files))
}

/// Columns of a terminal that has room for all tables.
pub const WIDE: usize = 140;

/// In part, if a probe ended early.
pub fn exit(files: &[(String, Outcome)]) -> Exit {
    let ended = files.iter().flat_map(|(_, outcome)| &outcome.probes).any(|probe| !probe.ended.is_empty());
    if ended { Exit::InPart } else { Exit::Done }
}

/// Results with the names of their files.
pub fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, Outcome)>> {
    let one = |path: &PathBuf| {
        let outcome = Outcome::read(path).map_err(|error| anyhow::anyhow!(sanitize(&error).into_owned()))?;
        Ok((path.display().to_string(), outcome))
    };
    paths.iter().map(one).collect()
}

/// Memory for tables; what exceeds it goes into a temporary file.
const MEMORY: u64 = 256 << 20;

impl Rows {
    /// Writes what was asked for; false if nothing was.
    pub fn write(
        &self,
        files: &[(String, Outcome)],
        comparison: Option<&Comparison>,
        scale: Option<f64>,
    ) -> anyhow::Result<bool> {
        let (rows, asked) = (&self.written, self.sql.is_some() || self.dump.is_some());
        if !asked && (rows.format.is_some() || rows.output.is_some()) {
            bail!("--output and --format go with --dump or --sql; --json prints everything as JSON");
        }
        if !asked && !rows.json {
            return Ok(false);
        }
        let db = tables::database(files, comparison, scale, &Memory::with_budget(MEMORY, None))?;
        if !asked {
            let all: Map<String, serde_json::Value> = db
                .tables()
                .map(|table| (table.name().to_owned(), serde_json::Value::Array(table_json(table))))
                .collect();
            let mut out = out();
            etwhy_report::json::to_writer_pretty(&mut out, &serde_json::Value::Object(all))?;
            writeln!(out)?;
            out.flush()?;
        } else if let Some(query) = &self.sql {
            let table = Engine::new(&db)?.query("result", query)?;
            self.rows(&table)?;
        } else if let Some(name) = &self.dump {
            self.rows(self.named(&db, name)?)?;
        }
        Ok(true)
    }

    fn named<'d>(&self, db: &'d Database, name: &str) -> anyhow::Result<&'d Table> {
        db.get(name).with_context(|| {
            let names: Vec<&str> = tables::ALL.iter().map(|spec| spec.name.as_ref()).collect();
            format!("there is no table `{name}` of probes; there are {}", names.join(", "))
        })
    }

    fn rows(&self, table: &Table) -> anyhow::Result<()> {
        let written = self.written.written()?;
        let selection = Selection::all(table);
        let rows = selection.len();
        let mut out = out();
        write_selection(&selection, &written, rows, &mut out)?;
        out.flush()?;
        Ok(())
    }
}

/// A number above 0. Commas may stand between groups of three digits; elsewhere a comma may be meant as a decimal point.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default().len();
    let mut thousands = groups.map(str::len).peekable();
    let grouped = thousands.peek().is_none() || (1..=3).contains(&first) && thousands.all(|len| len == 3);
    if !grouped || fraction.contains(',') {
        return Err("a comma stands between thousands only: 1,500,000; write 0.5 for a half".to_owned());
    }
    let number = text.replace(['_', ','], "").parse::<f64>().ok();
    number
        .filter(|n| n.is_finite() && *n > 0.0 && *n <= 1e15)
        .ok_or_else(|| "a number above 0 is needed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_no_decimal_points() {
        for (text, number) in [
            ("200000", 2e5),
            ("1,500,000", 1.5e6),
            ("1_000", 1e3),
            ("0.5", 0.5),
            ("12,345.5", 12_345.5),
            ("1e6", 1e6),
        ] {
            assert_eq!(positive(text), Ok(number), "{text}");
        }
        for text in ["0,5", "1,5", ",5", ",500", "1,0000", "1000,000", "1,,000", "1.500,000", "5,"] {
            assert!(positive(text).is_err_and(|why| why.contains("write 0.5")), "{text}");
        }
        for text in ["0", "-1", "x", "inf", ""] {
            assert!(positive(text).is_err(), "{text}");
        }
    }
}
