//! `etwhy info`: what a trace holds.

use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::quality::events;
use crate::report::table_json::table_json;
use crate::report::terminal::{out, text};
use clap::{Args as _, FromArgMatches as _};
use etwhy_base::units::{bytes, duration_ns, thousands};
use etwhy_doc::Doc;
use etwhy_table::{Absent, Database, Row, RowOf, reads};
use etwhy_trace::catalog::{event_type::EventTypeRow, ledger::LedgerRow, logger::LoggerRow, trace::TraceRow};
use serde_json::json;
use std::io::Write;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "info",
    about: "What a trace holds: machine, session, losses, counts per kind of event",
    long_about: "Reads the trace once and prints the machine, the recording session, what was lost, and how many \
                 events of each kind it holds and who can read them.",
    examples: "Examples:\n  etwhy info trace.etl\n  etwhy info trace.etl --json | jq .records",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// At most N kinds of events (0: all)
    #[arg(long, default_value_t = 30, value_name = "N")]
    top: usize,
}

fn run(args: Args) -> anyhow::Result<Exit> {
    let opened = args.trace.open()?;
    let tables = reads::<(TraceRow, EventTypeRow, LedgerRow, LoggerRow)>();
    let analysed = opened.analyse(Some(tables.iter().map(|table| table.name.to_string()).collect()))?;
    let db = &analysed.db;
    let mut out = out();
    if args.json {
        json_report(&mut out, &analysed)?;
    } else {
        human_report(&mut out, db, args.top)?;
    }
    out.flush()?;
    Ok(analysed.exit)
}

/// All rows of a table.
fn rows<R: Row>(db: &Database) -> Result<Vec<serde_json::Value>, Absent> {
    db.table::<R>().map(table_json)
}

fn json_report(out: &mut impl Write, analysed: &crate::open::Analysed) -> anyhow::Result<()> {
    let db = &analysed.db;
    let files = rows::<TraceRow>(db)?;
    let sum = |key: &str| files.iter().filter_map(|f| f.get(key)?.as_i64()).sum::<i64>();
    let (records, record_bytes) = events(db);
    let report = json!({
        "records": records,
        "record_bytes": record_bytes,
        "buffers": sum("buffers"),
        "compressed_buffers": sum("compressed_buffers"),
        "events_lost": sum("events_lost"),
        "buffers_lost": sum("buffers_lost"),
        "duration_ns": files.first().and_then(|f| f.get("duration_ns")),
        "files": files,
        "event_types": rows::<EventTypeRow>(db)?,
        "loggers": rows::<LoggerRow>(db)?,
        "ledger": rows::<LedgerRow>(db)?,
    });
    etwhy_report::json::to_writer_pretty(&mut *out, &report).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

fn human_report(out: &mut impl Write, db: &Database, top: usize) -> anyhow::Result<()> {
    let mut doc = Doc::default();
    for trace in &db.read::<TraceRow>()? {
        file_lines(&mut doc, trace);
    }
    let (records, size) = events(db);
    doc.note("Records", format!("{} in {} of records", thousands(records.into()), bytes(size as i64)));
    crate::report::quality::add_ledger(&mut doc, db);
    writeln!(out, "{}", text(&doc))?;
    types(out, db, top)
}

fn file_lines(doc: &mut Doc, trace: RowOf<'_, '_, TraceRow>) {
    let text = |text: &str| text.replace('\n', "; ");
    let known = |cell: Option<&str>| text(cell.unwrap_or(""));
    let mut line = |name: &str, value: String| {
        if !value.trim().is_empty() {
            doc.note(name, value);
        }
    };
    line("File", format!("{} ({})", text(trace.file()), bytes(trace.size_bytes())));
    line("Windows", format!("{} {} {}", text(trace.os()), known(trace.product()), known(trace.build_lab())));
    line("Computer", [known(trace.computer()), known(trace.platform())].join("  "));
    let memory = trace.memory_bytes().map(|b| format!(", {} memory", bytes(b))).unwrap_or_default();
    line(
        "Processors",
        format!(
            "{}{}, {} MHz{memory}",
            trace.cpus(),
            prefixed(" x ", &known(trace.processor())),
            trace.cpu_mhz()
        ),
    );
    line("Disks", known(trace.disks()));
    line("Network", known(trace.nics()));
    line("Session", format!("{}  {}", text(trace.session()), text(trace.log_file())));
    let bias = trace.time_zone_bias_min();
    let zone = format!("UTC{:+03}:{:02}", -bias / 60, bias.abs() % 60);
    line("Start", format!("{} UTC (machine at {zone})", text(trace.start_utc())));
    line("Duration", duration_ns(trace.duration_ns()));
    line("Clock", format!("{}, {} Hz", text(trace.clock()), thousands(trace.clock_hz().into())));
    line("Mode", text(trace.log_mode()));
    let state = match (trace.merged(), trace.finalised()) {
        (true, _) => "merged",
        (_, true) => "raw",
        _ => "raw, never finalised",
    };
    line(
        "Buffers",
        format!(
            "{} of {} ({} compressed), {state}, {} session(s)",
            thousands(trace.buffers().into()),
            bytes(trace.buffer_size_bytes()),
            thousands(trace.compressed_buffers().into()),
            trace.sessions()
        ),
    );
    line(
        "Lost",
        format!("{} events, {} buffers", thousands(trace.events_lost().into()), trace.buffers_lost()),
    );
    line("Keywords", known(trace.kernel_keywords()));
}

fn prefixed(prefix: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!("{prefix}{value}") }
}

fn types(out: &mut impl Write, db: &Database, top: usize) -> anyhow::Result<()> {
    let table = db.table::<EventTypeRow>()?;
    let spec = table.spec();
    let key = etwhy_table::SortKey::parse("-count", spec)?;
    let limit = if top == 0 { table.rows() } else { top };
    let selection = etwhy_table::Selection::all(table)
        .sort(&[key], Some(limit))
        .columns("count,bytes,provider,name,id,version,decoded_by")?;
    let format = etwhy_export::Format::by_name("table")?;
    let options = crate::report::terminal::options(Some(table.rows()));
    let mut buffer = Vec::new();
    (format.write)(&selection, &options, &mut buffer)?;
    out.write_all(&buffer)?;
    Ok(())
}
