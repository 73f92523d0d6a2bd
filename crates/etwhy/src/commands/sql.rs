//! `etwhy sql`: questions in SQL.

use crate::catalog;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::terminal::{color, out, width};
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_export::Format;
use etwhy_query::sql::{Engine, views};
use etwhy_table::Selection;
use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "sql",
    about: "Ask in SQL: all tables and views, over the trace itself",
    long_about: "Runs one SELECT over the tables of a trace (docs/reference/tables.md) and the shipped views. Only the tables \
                 that the query names are filled. The dialect is SQLite's.",
    examples: "Examples:\n  etwhy sql trace.etl \"SELECT * FROM dpc_by_module ORDER BY exclusive_ns DESC\"\n  \
               etwhy sql --demo \"SELECT class, sum(weight_ns) AS cpu_ns FROM stack_cost GROUP BY class\"",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// The query behind the traces, as the last word
    #[command(flatten)]
    trace: TraceArgs,
    /// The query, if it is not the last word
    #[arg(long, short = 'c', value_name = "SQL")]
    command: Option<String>,
    /// Format: table (default), csv, json, jsonl, parquet
    #[arg(long, short, value_name = "FORMAT")]
    format: Option<String>,
    /// Write to a file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Most rows to show
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

/// Tables that a query reads, views followed.
pub(crate) fn tables_of<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut open: Vec<String> = words.map(str::to_owned).collect();
    let mut seen = BTreeSet::new();
    let mut tables = BTreeSet::new();
    while let Some(word) = open.pop() {
        if !seen.insert(word.clone()) {
            continue;
        }
        if let Some(spec) = catalog::specs().find(|spec| spec.name.eq_ignore_ascii_case(&word)) {
            tables.insert(spec.name.to_string());
        } else if let Some(view) = views::all().find(|view| view.name.eq_ignore_ascii_case(&word)) {
            open.extend(etwhy_query::sql::words(view.sql).into_iter().map(str::to_owned));
        }
    }
    tables
}

fn run(mut args: Args) -> anyhow::Result<Exit> {
    if args.command.is_none() {
        let last = args
            .trace
            .traces
            .pop_if(|path| !path.exists() && path.to_string_lossy().contains(char::is_whitespace));
        args.command = last.map(|query| query.to_string_lossy().into_owned());
    }
    let Some(query) = &args.command else { bail!("what is the question? Give a SELECT as the last word") };
    let format = match (&args.format, &args.output) {
        (Some(name), _) => Format::by_name(name)?,
        (None, Some(path)) => {
            Format::by_path(path).context("the file's ending names no format; use --format")?
        }
        (None, None) => Format::by_name("table")?,
    };
    let opened = args.trace.open()?;
    let analysed = opened.analyse(Some(tables_of(etwhy_query::sql::words(query).into_iter())))?;
    let engine = Engine::new(&analysed.db)?;
    let table = engine.query("result", query)?;
    let mut selection = Selection::all(&table);
    let rows = selection.len();
    if let Some(top) = args.top {
        selection = selection.top(top);
    }
    let to_terminal = args.output.is_none() && std::io::stdout().is_terminal();
    let options = etwhy_export::Options {
        width: (args.output.is_none() && (to_terminal || std::env::var_os("COLUMNS").is_some())).then(width),
        color: args.output.is_none() && color(),
        sanitize: to_terminal,
        hex: false,
        total_rows: Some(rows),
        facts: Vec::new(),
    };
    let mut out = out();
    match &args.output {
        Some(path) => etwhy_export::write_file(format, &selection, &options, path)?,
        None => (format.write)(&selection, &options, &mut out)?,
    }
    out.flush()?;
    Ok(analysed.exit)
}
