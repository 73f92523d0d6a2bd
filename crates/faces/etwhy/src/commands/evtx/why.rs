//! `etwhy evtx why`: what fills a log.

use crate::commands::sql::tables_of;
use crate::exit::Exit;
use crate::open::logs::LogArgs;
use crate::open::size;
use crate::options::document::MarkdownArgs;
use crate::report::findings_page::{self, Words};
use crate::report::quality;
use crate::report::terminal::out;
use crate::rules::RuleArgs;
use crate::verbose::stage;
use etwhy_base::time::{filetime, filetime_text};
use etwhy_base::units::{bytes, duration, thousands};
use etwhy_doc::{Column, Doc, Line, Timeline};
use etwhy_rules::{Outcome, Rule, Subject, evaluate_all};
use etwhy_sql::Cell;
use etwhy_sql::Engine;
use etwhy_table::{Database, Table, Value};
use std::collections::BTreeMap;
use std::io::Write as _;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    logs: LogArgs,
    /// Print JSON: all tables of the report, and the findings
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    markdown: MarkdownArgs,
    /// At most N rows per list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// How far back logs should reach: 90d, 12h, 2w
    #[arg(long, value_name = "TIME", value_parser = days)]
    retention: Option<f64>,
    /// Largest size that the logs may have (wevtutil gl NAME says it), e.g. 1GB; without it the present size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Also report why each other pattern was not found or cannot be determined
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    rules: RuleArgs,
}

/// Tables of the report.
const TABLES: [&str; 8] = [
    "log_file",
    "log_type",
    "log_retention",
    "log_rate",
    "log_party",
    "log_burst",
    "log_reader_cost",
    "log_incident",
];

/// A number of days.
fn days(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no time; try 90d, 12h or 2w");
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(number.len()..).unwrap_or("") {
        "" | "d" => 1.0,
        "h" => 1.0 / 24.0,
        "w" => 7.0,
        "y" => 365.0,
        _ => return Err(wrong()),
    };
    let days = number.trim().parse::<f64>().map_err(|_| wrong())? * factor;
    if days > 0.0 && days < 40_000.0 { Ok(days) } else { Err(wrong()) }
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    args.markdown.check(args.json)?;
    let mut rules: Vec<Rule> = args.rules.load()?.into_iter().filter(|r| r.over == Subject::Logs).collect();
    for rule in &mut rules {
        let mut set = |name: &str, value: Option<f64>| {
            if let (Some(threshold), Some(value)) = (rule.thresholds.get_mut(name), value) {
                threshold.value = value;
            }
        };
        set("wanted_days", args.retention);
        set("max_mib", args.max_size.map(|size| size as f64 / f64::from(1 << 20)));
    }
    let mut tables = tables_of(rules.iter().flat_map(Rule::words));
    tables.extend(TABLES.map(str::to_owned));
    let analysed = args.logs.open()?.analyse(&tables, None)?;
    let db = &analysed.db;
    let engine = Engine::new(db)?;
    let outcomes = stage("findings", || evaluate_all(&engine, &rules));
    drop(engine);
    let mut out = out();
    if args.json {
        etwhy_report::json::to_writer_pretty(&mut out, &as_json(db, &outcomes)?)?;
        writeln!(out)?;
    }
    if !args.json || args.markdown.is_wanted() {
        args.markdown.write(&report(args, db, &outcomes), &mut out)?;
    }
    out.flush()?;
    Ok(analysed.exit)
}

/// All rows of a table as objects.
fn rows_json(db: &Database, name: &str) -> serde_json::Result<serde_json::Value> {
    let Some(table) = db.get(name) else { return Ok(serde_json::Value::Array(Vec::new())) };
    let mut rows = Vec::with_capacity(table.rows());
    for row in 0..table.rows() as u32 {
        let mut object = serde_json::Map::new();
        for (at, column) in table.spec().columns.iter().enumerate() {
            object.insert(column.name.to_string(), serde_json::to_value(Cell::of(table.cell(row, at)))?);
        }
        rows.push(object.into());
    }
    Ok(serde_json::Value::Array(rows))
}

fn as_json(db: &Database, outcomes: &[Outcome]) -> serde_json::Result<serde_json::Value> {
    let mut object = serde_json::Map::new();
    for name in TABLES.iter().chain(&["ledger"]) {
        object.insert((*name).to_owned(), rows_json(db, name)?);
    }
    object.insert("findings".to_owned(), findings_page::json(outcomes)?);
    Ok(object.into())
}

/// Rows of a table that are of a log.
fn rows_of(table: Option<&Table>, log: i64) -> impl Iterator<Item = (&Table, u32)> {
    let rows = table.map_or(0, Table::rows) as u32;
    (0..rows)
        .filter_map(move |row| table.map(|t| (t, row)))
        .filter(move |(t, row)| t.i64(*row, "log") == Some(log))
}

fn utc(ns: i64) -> String {
    filetime_text(filetime(ns), 0)
}

/// A duration as people say it of logs: days and years, where it is longer than two days.
fn span(ns: f64) -> String {
    let days = ns / 86_400e9;
    match days {
        d if d >= 730.0 => format!("{:.1} years", d / 365.25),
        d if d >= 100.0 => format!("{d:.0} days"),
        d if d >= 2.0 => format!("{d:.1} days"),
        _ => duration(ns),
    }
}

fn count(n: i64) -> String {
    thousands(n.into())
}

fn report(args: &Args, db: &Database, outcomes: &[Outcome]) -> Doc {
    let mut doc = Doc::titled("What fills the logs");
    let files = db.get("log_file");
    let all = files.map_or(0, Table::rows);
    // Of many logs those with most bytes; all of them are in the table.
    let mut order: Vec<u32> = (0..all as u32).collect();
    order.sort_by_key(|row| std::cmp::Reverse(files.and_then(|t| t.i64(*row, "record_bytes")).unwrap_or(0)));
    let shown = if all > args.top { args.top.max(1) } else { all };
    for row in order.iter().take(shown) {
        if let Some(table) = files {
            one_log(&mut doc, args, db, table, *row);
        }
    }
    if all > shown {
        doc.space();
        doc.text(format!(
            "{} more logs are not shown; --top shows more, --json all.",
            count((all - shown) as i64)
        ));
    }
    let words = Words { of: "these logs", more: "etwhy evtx why --all", untold: args.all, absent: args.all };
    findings_page::add(&mut doc, outcomes, words);
    doc.space();
    quality::add_ledger(&mut doc, db);
    doc
}

fn one_log(doc: &mut Doc, args: &Args, db: &Database, files: &Table, row: u32) {
    let n = |name: &str| files.i64(row, name);
    let log = n("log").unwrap_or(-1);
    let channel = files.text(row, "channel").unwrap_or("no channel");
    let computer = files.text(row, "computer").unwrap_or("unknown computer");
    doc.heading(Line::name(files.text(row, "file").unwrap_or("")));
    let flag = |name: &str| files.value(row, name) == Value::Bool(true);
    let mut state: Vec<String> = Vec::new();
    state.push(if flag("wrapped") { "has wrapped".to_owned() } else { "has not wrapped".to_owned() });
    if flag("full") {
        state.push("full".to_owned());
    }
    if flag("dirty") {
        state.push("not closed".to_owned());
    }
    if let Some(damaged) = n("damaged_chunks").filter(|d| *d > 0) {
        state.push(format!("{} damaged chunk{}", count(damaged), if damaged == 1 { "" } else { "s" }));
    }
    let covered = n("first_utc_ns").zip(n("last_utc_ns"));
    let when = covered.map_or("no records".to_owned(), |(first, last)| {
        let length = span(last.saturating_sub(first) as f64);
        format!("{} to {} UTC ({length})", utc(first), utc(last))
    });
    doc.text(format!(
        "{channel} of {computer}: {} records, {} in a file of {}, {when}, {}",
        count(n("records").unwrap_or(0)),
        bytes(n("record_bytes").unwrap_or(0)),
        bytes(n("size_bytes").unwrap_or(0)),
        state.join(", ")
    ));
    retention(doc, args, db, log);
    timeline(doc, db, log);
    bursts(doc, args, db, log);
    kinds(doc, args, db, log);
    for (kind, title) in
        [("process", "Processes that records name"), ("account", "Accounts that records name")]
    {
        parties(doc, args, db, log, kind, title);
    }
    reader_cost(doc, db, log);
}

fn retention(doc: &mut Doc, args: &Args, db: &Database, log: i64) {
    let whole = rows_of(db.get("log_retention"), log).find(|(t, row)| t.text(*row, "scope") == Some("log"));
    let Some((table, row)) = whole else { return };
    let Some(rollover) = table.i64(row, "rollover_ns") else {
        return doc.text("It covers less than ten minutes: no rate can be told.");
    };
    let per_day = table.f64(row, "bytes_per_day").unwrap_or(0.0) as i64;
    let records = table.f64(row, "records_per_day").unwrap_or(0.0) as i64;
    let per_mib = table.i64(row, "rollover_per_mib_ns").unwrap_or(0) as f64;
    let mut text = format!("Rate: {} and {} records a day. ", bytes(per_day), count(records));
    text += &if table.value(row, "wrapped") == Value::Bool(true) {
        format!("It reaches back {}: older records were overwritten.", span(rollover as f64))
    } else {
        format!(
            "At this rate a file of its present size reaches back {}; it has not wrapped, so it may grow.",
            span(rollover as f64)
        )
    };
    if let Some(size) = args.max_size {
        let reach = per_mib * size as f64 / f64::from(1 << 20);
        text += &format!(" With {} it reaches back {}.", bytes(size as i64), span(reach));
    }
    let wanted = args.retention.unwrap_or(90.0);
    if per_mib > 0.0 {
        let needed = wanted * 86_400e9 / per_mib * f64::from(1 << 20);
        text += &format!(" {wanted} days need {}.", bytes(needed as i64));
    }
    doc.text(text);
}

/// The records over time.
fn timeline(doc: &mut Doc, db: &Database, log: i64) {
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    let mut bucket = 1;
    for (t, row) in rows_of(db.get("log_rate"), log) {
        bucket = t.i64(row, "bucket_ns").unwrap_or(1).max(1);
        *sums.entry(t.i64(row, "start_utc_ns").unwrap_or(0)).or_default() +=
            t.i64(row, "records").unwrap_or(0);
    }
    let (Some(first), Some(last)) = (sums.keys().next().copied(), sums.keys().last().copied()) else {
        return;
    };
    let buckets = (last.saturating_sub(first) / bucket).saturating_add(1).clamp(1, 1_000) as usize;
    let mut slices = vec![0.0; buckets];
    for (start, records) in &sums {
        if let Some(slice) = slices.get_mut((start.saturating_sub(first) / bucket) as usize) {
            *slice += *records as f64;
        }
    }
    let (title, unit) = ("Records".to_owned(), "records".to_owned());
    doc.timeline(Timeline { title, sums: slices, slice_ns: bucket as f64, unit });
}

fn bursts(doc: &mut Doc, args: &Args, db: &Database, log: i64) {
    let rows: Vec<_> = rows_of(db.get("log_burst"), log).collect();
    let of = |kind: &str| rows.iter().filter(|(t, r)| t.text(*r, "kind") == Some(kind)).collect::<Vec<_>>();
    let what = |t: &Table, row: u32| {
        format!("{} {}", t.text(row, "provider").unwrap_or(""), t.i64(row, "event_id").unwrap_or(0))
    };
    let found = of("burst");
    for (t, row) in found.iter().take(3.min(args.top)) {
        let n = |name: &str| t.i64(*row, name).unwrap_or(0);
        let usual = t.f64(*row, "usual_records").unwrap_or(0.0);
        let text = format!(
            "{} UTC: {} records in {} ({} are usual), {} of them {}",
            utc(n("start_utc_ns")),
            count(n("records")),
            span((n("end_ns").saturating_sub(n("start_ns"))) as f64),
            count(usual.round() as i64),
            count(n("kind_records")),
            what(t, *row)
        );
        doc.note("Burst", text);
    }
    if found.len() > 3 {
        doc.note("Burst", format!("and {} more (table log_burst)", count(found.len() as i64 - 3)));
    }
    for (t, row) in of("periodic").iter().take(3.min(args.top)) {
        let text = format!(
            "every {}: {} ({} records, autocorrelation {:.2})",
            span(t.i64(*row, "period_ns").unwrap_or(0) as f64),
            what(t, *row),
            count(t.i64(*row, "records").unwrap_or(0)),
            t.f64(*row, "strength").unwrap_or(0.0)
        );
        doc.note("Periodic", text);
    }
}

fn share(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

fn kinds(doc: &mut Doc, args: &Args, db: &Database, log: i64) {
    let mut table = etwhy_doc::Table::new([
        Column::name("What fills it").least(36),
        Column::number("records"),
        Column::number("bytes"),
        Column::number("share"),
        Column::number("lasts"),
        Column::number("a day"),
    ]);
    let rows: Vec<_> = rows_of(db.get("log_retention"), log)
        .filter(|(t, row)| t.text(*row, "scope") == Some("kind"))
        .collect();
    for (t, row) in &rows {
        let n = |name: &str| t.i64(*row, name);
        let provider = t.text(*row, "provider").unwrap_or("");
        let provider = provider.strip_prefix("Microsoft-Windows-").unwrap_or(provider);
        let task = match t.text(*row, "subcategory") {
            Some(name) => format!("{name}, "),
            None => {
                n("task").filter(|task| *task != 0).map_or(String::new(), |task| format!("task {task}, "))
            }
        };
        let name = format!("{} {task}{provider}", n("event_id").unwrap_or(0));
        let day = t.f64(*row, "bytes_per_day").map_or("-".to_owned(), |b| bytes(b as i64));
        let without = n("rollover_without_ns").map_or("-".to_owned(), |ns| span(ns as f64));
        let numbers = [
            count(n("records").unwrap_or(0)),
            bytes(n("bytes").unwrap_or(0)),
            share(t.f64(*row, "share").unwrap_or(0.0)),
            without,
            day,
        ];
        table.row(std::iter::once(Line::name(name)).chain(numbers.map(Line::from)));
    }
    doc.table(table.at_most(args.top));
    if rows.iter().any(|(t, row)| t.i64(*row, "rollover_without_ns").is_some()) {
        doc.text("lasts: how far back the log would reach without these records, at the same size and rate");
    }
}

fn parties(doc: &mut Doc, args: &Args, db: &Database, log: i64, kind: &str, title: &str) {
    let rows: Vec<_> =
        rows_of(db.get("log_party"), log).filter(|(t, row)| t.text(*row, "kind") == Some(kind)).collect();
    // One row without a name says nothing.
    if rows.iter().all(|(t, row)| t.text(*row, "name") == Some("(none)")) {
        return;
    }
    let numbers = ["records", "bytes", "share", "most of"].map(Column::number);
    let mut table = etwhy_doc::Table::new(std::iter::once(Column::name(title).least(28)).chain(numbers));
    for (t, row) in &rows {
        let n = |name: &str| t.i64(*row, name).unwrap_or(0);
        let part = share(t.f64(*row, "share").unwrap_or(0.0));
        let numbers = [count(n("records")), bytes(n("bytes")), part, n("top_event_id").to_string()];
        let name = Line::name(t.text(*row, "name").unwrap_or(""));
        table.row(std::iter::once(name).chain(numbers.map(Line::from)));
    }
    doc.table(table.at_most(5.min(args.top)));
}

fn reader_cost(doc: &mut Doc, db: &Database, log: i64) {
    let parts: Vec<String> = rows_of(db.get("log_reader_cost"), log)
        .map(|(t, row)| {
            let (low, high) = (t.i64(row, "low_ns").unwrap_or(0), t.i64(row, "high_ns").unwrap_or(0));
            let (low, high) = (span(low as f64), span(high as f64));
            let time = if low == high { low } else { format!("{low} to {high}") };
            format!("{} {time}", t.text(row, "reader").unwrap_or(""))
        })
        .collect();
    if !parts.is_empty() {
        doc.text(format!(
            "One full read, by rates that were measured on one machine each (table log_reader_cost): {}.",
            parts.join("; ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(days("90d"), Ok(90.0));
        assert_eq!(days("2w"), Ok(14.0));
        assert_eq!(days("12h"), Ok(0.5));
        assert!(days("soon").is_err() && days("-1d").is_err() && days("1x").is_err());
        assert_eq!((span(3_600e9), span(3.0 * 86_400e9)), (duration(3_600e9), "3.0 days".to_owned()));
        assert_eq!(span(1_461.0 * 86_400e9), "4.0 years");
        // `date -u -d @1600000000`
        assert_eq!(utc(1_600_000_000_000_000_000), "2020-09-13 12:26:40");
    }
}
