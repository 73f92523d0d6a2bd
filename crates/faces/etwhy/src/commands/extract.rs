//! `etwhy extract`: all tables of a trace as Parquet files or as one SQLite file.

use super::sql::tables_of;
use crate::catalog::{no_table, specs};
use crate::command::Command;
use crate::exit::Exit;
use crate::open::{Analysed, Events, TraceArgs};
use anyhow::bail;
use clap::{Args as _, FromArgMatches as _};
use etwhy_base::units::{bytes, thousands};
use etwhy_etl::Ledger;
use etwhy_export::ExportError;
use etwhy_export::extract::{Anomalies, EndOfPass, Writer};
use etwhy_export::sqlite;
use etwhy_sql::views::{self, View};
use etwhy_table::{Pattern, Role, Table, TableSpec};
use etwhy_trace::catalog::event::EVENT;
use etwhy_trace::catalog::trace::TraceRow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "extract",
    about: "All tables as Parquet files or one SQLite file; every command reads the folder in place of the trace",
    long_about: "Reads the trace once and writes all its tables into a folder, one Parquet file each, with what every \
                 column means and is measured in, and a manifest. Every command that reads traces also takes the folder \
                 and answers the same, without reading the trace again. With --sqlite all tables go into one SQLite \
                 file, for other programs.\n\n\
                 The folder appears when it is whole. A folder that was extracted before is replaced, unless it holds \
                 files that were not; another is not. \
                 Tables of single events (event, cswitch, syscall, ...) are written too; --without leaves out what is not \
                 needed.",
    examples: "Examples:\n  etwhy extract trace.etl -o trace.tables\n  \
               etwhy extract trace.etl -o trace.tables --without event,heap*\n  \
               etwhy extract trace.etl -o trace.tables --only 'disk_io,sample'\n  \
               etwhy extract trace.etl --sqlite trace.sqlite\n  \
               etwhy why trace.tables\n  \
               duckdb -c \"select name, pid from 'trace.tables/process.parquet'\"",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Write to a folder
    #[arg(long, short, value_name = "DIR", required_unless_present = "sqlite")]
    output: Option<PathBuf>,
    /// SQLite file to write
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// Only these tables, and those that they refer to (processes, threads, stacks, files); wildcards
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// All but these tables; wildcards
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    without: Vec<String>,
    /// Replace what is there even if it was not extracted: everything in the folder is deleted
    #[arg(long)]
    force: bool,
}

/// Tables that no report can do without.
const ALWAYS: [&str; 4] = ["trace", "ledger", "event_type", "process"];

fn run(args: Args) -> anyhow::Result<Exit> {
    let tables = chosen(&args.only, &args.without)?;
    if args.output.iter().chain(&args.sqlite).any(|path| path == Path::new("-")) {
        bail!("an extract is a folder, and --sqlite a file; neither can be written to standard output");
    }
    let opened = args.trace.open()?;
    // Said before a large trace is read.
    let force = args.force;
    if let Some(folder) = &args.output {
        drop(Writer::new(folder, Vec::new(), force)?);
    }
    let sqlite = args.sqlite.as_deref().map(|file| sqlite::Writer::new(file, force)).transpose()?;
    // SQLite takes tables as a whole.
    let opened = if sqlite.is_none() { opened.with_late_events() } else { opened };
    let analysed = opened.analyse(Some(tables.clone()))?;
    // Others were made on the way.
    let tables: Vec<&Table> = analysed.db.tables().filter(|table| tables.contains(table.name())).collect();
    let mut rows: Vec<usize> = tables.iter().map(|table| table.rows()).collect();
    rows.extend(analysed.events.as_ref().map(Events::rows));
    let all: usize = rows.iter().sum();
    let what = format!("{} tables, {} rows", rows.len(), thousands(all as i128));
    if let Some(folder) = &args.output {
        let size = write_folder(folder, force, &analysed, &tables)?;
        say!("etwhy: {}: {what}, {}", folder.display(), bytes(size as i64));
    }
    if let (Some(mut writer), Some(file)) = (sqlite, &args.sqlite) {
        let named = |error: ExportError| error.of_file(file);
        for table in &tables {
            writer.table(table).map_err(named)?;
        }
        let names: BTreeSet<&str> = tables.iter().map(|table| table.name()).collect();
        for view in views::all() {
            // A view over tables that are not there would only fail when it is asked.
            if tables_of([view.name].into_iter()).iter().all(|table| names.contains(table.as_str())) {
                let View { name, title, manual, columns, sql } = &view;
                writer.view(&sqlite::View { name, title, doc: manual, columns, sql }).map_err(named)?;
            }
        }
        say!("etwhy: {}: {what}, {}", file.display(), bytes(writer.finish().map_err(named)? as i64));
    }
    Ok(analysed.exit)
}

/// Writes the folder; the size of its tables.
fn write_folder(folder: &Path, force: bool, analysed: &Analysed, tables: &[&Table]) -> anyhow::Result<u64> {
    let db = &analysed.db;
    let files = db.read_or_empty::<TraceRow>().iter().map(|row| row.file().to_owned()).collect();
    let mut writer = Writer::new(folder, files, force)?.with_threads(analysed.threads);
    let mut size = 0;
    for table in tables {
        size += writer.table(table)?;
    }
    let mut written: BTreeSet<&str> = tables.iter().map(|table| table.name()).collect();
    if let Some(events) = &analysed.events {
        written.insert(&EVENT.name);
        events.write(Ok, |mut parts| {
            size += writer.parts(&EVENT, |write| -> anyhow::Result<()> {
                while let Some(part) = parts.take()? {
                    write(&part)?;
                }
                Ok(())
            })?;
            Ok(())
        })?;
    }
    let manifest = writer.manifest();
    manifest.left_out =
        specs().map(|spec| spec.name.to_string()).filter(|name| !written.contains(name.as_str())).collect();
    manifest.left_out.sort();
    manifest.end = EndOfPass {
        exit: analysed.exit as u8,
        newer_than_known: analysed.newer_than_known.clone(),
        anomalies: analysed.ledgers.iter().map(|(tables, ledger)| anomalies(tables, ledger)).collect(),
    };
    writer.finish()?;
    Ok(size)
}

fn anomalies(tables: &[&'static str], ledger: &Ledger) -> Anomalies {
    Anomalies {
        tables: tables.iter().map(|table| (*table).to_owned()).collect(),
        counts: ledger.entries().map(|entry| (entry.anomaly.name.to_owned(), entry.count)).collect(),
    }
}

/// The tables to write.
fn chosen(only: &[String], without: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let matching = |items: &[String]| -> anyhow::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for item in items.iter().map(|item| item.trim()).filter(|item| !item.is_empty()) {
            let pattern = Pattern::parse(item);
            let found: Vec<&TableSpec> = specs().filter(|spec| pattern.matches(&spec.name)).collect();
            if found.is_empty() {
                return Err(no_table(item));
            }
            names.extend(found.iter().map(|spec| spec.name.to_string()));
        }
        Ok(names)
    };
    let mut tables = matching(only)?;
    if tables.is_empty() {
        tables = specs().map(|spec| spec.name.to_string()).collect();
    } else {
        referred_to(&mut tables);
    }
    let without = matching(without)?;
    if let Some(needed) = ALWAYS.iter().find(|name| without.contains(**name)) {
        bail!("table `{needed}` cannot be left out: every report needs it");
    }
    tables.retain(|table| !without.contains(table));
    Ok(tables)
}

/// Adds the tables whose numbers stand in columns of these.
fn referred_to(tables: &mut BTreeSet<String>) {
    tables.extend(ALWAYS.iter().map(|name| (*name).to_owned()));
    loop {
        let before = tables.len();
        let columns: Vec<_> = specs()
            .filter(|spec| tables.contains(spec.name.as_ref()))
            .flat_map(|spec| spec.columns.iter())
            .collect();
        for column in columns {
            let more: &[&str] = match column.role {
                Role::Process => &["process"],
                Role::Thread => &["thread"],
                Role::Stack | Role::Frame => &["stack", "stack_frame", "frame"],
                Role::Image => &["image"],
                Role::Id if column.name.ends_with("file_id") => &["file"],
                _ => &[],
            };
            tables.extend(more.iter().map(|name| (*name).to_owned()));
        }
        if tables.len() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn tables_are_chosen_by_pattern() {
        let all = chosen(&[], &[]).unwrap();
        assert_eq!(all.len(), specs().count());
        assert!(all.iter().any(|name| catalog::is_on_demand(name)));
        let some = chosen(&["disk_i*".to_owned()], &["stack*".to_owned()]).unwrap();
        assert!(some.contains("disk_io") && some.contains("thread") && some.contains("file"));
        assert!(!some.contains("stack") && !some.contains("sample"));
        assert!(chosen(&["nothing".to_owned()], &[]).is_err());
        assert!(chosen(&[], &["process".to_owned()]).is_err());
    }
}
