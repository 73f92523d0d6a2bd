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
use etwhy_analysis::derived::log_burst::LogBurstRow;
use etwhy_analysis::derived::log_incident::LogIncidentRow;
use etwhy_analysis::derived::log_rate::{LogPartyRow, LogRateRow};
use etwhy_analysis::derived::log_reader_cost::LogReaderCostRow;
use etwhy_analysis::derived::log_retention::LogRetentionRow;
use etwhy_base::time::{filetime, filetime_text};
use etwhy_base::units::{bytes, counted, duration, thousands};
use etwhy_doc::{Column, Doc, Line, Timeline};
use etwhy_evtx::tables::{Fields, LogFileRow, LogTypeRow};
use etwhy_rules::{Outcome, Rule, Subject, evaluate_all};
use etwhy_sql::Cell;
use etwhy_table::{Absent, Database, RowOf, TableSpec, reads};
use etwhy_trace::catalog::ledger::LedgerRow;
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
fn tables() -> Vec<&'static TableSpec> {
    reads::<(
        (LogFileRow, LogTypeRow),
        (LogRetentionRow, LogRateRow, LogPartyRow, LogBurstRow, LogReaderCostRow, LogIncidentRow),
    )>()
}

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
    let mut wanted = tables_of(rules.iter().flat_map(Rule::words));
    wanted.extend(tables().iter().map(|table| table.name.to_string()));
    let mut logs = args.logs.open()?;
    if !rules.iter().any(|rule| rule.may_ask_for("fields")) {
        logs.fields = Fields::None;
    }
    let analysed = logs.analyse(&wanted, None)?;
    let db = &analysed.db;
    let outcomes = stage("findings", || evaluate_all(db, &rules, analysed.threads))?;
    let mut out = out();
    if args.json {
        etwhy_report::json::to_writer_pretty(&mut out, &as_json(db, &outcomes)?)?;
        writeln!(out)?;
    }
    if !args.json || args.markdown.is_wanted() {
        args.markdown.write(&report(args, db, &outcomes)?, &mut out)?;
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
            object.insert(
                column.name.to_string(),
                serde_json::to_value(Cell::from_value(table.cell(row, at)))?,
            );
        }
        rows.push(object.into());
    }
    Ok(serde_json::Value::Array(rows))
}

fn as_json(db: &Database, outcomes: &[Outcome]) -> serde_json::Result<serde_json::Value> {
    let mut object = serde_json::Map::new();
    for table in tables().into_iter().chain(reads::<LedgerRow>()) {
        object.insert(table.name.to_string(), rows_json(db, &table.name)?);
    }
    object.insert("findings".to_owned(), findings_page::json(outcomes)?);
    Ok(object.into())
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

fn report(args: &Args, db: &Database, outcomes: &[Outcome]) -> Result<Doc, Absent> {
    let mut doc = Doc::titled("What fills the logs");
    let files = db.read::<LogFileRow>()?;
    let all = files.len();
    // Of many logs those with most bytes; all of them are in the table.
    let mut order: Vec<_> = files.iter().collect();
    order.sort_by_key(|file| std::cmp::Reverse(file.record_bytes()));
    let shown = if all > args.top { args.top.max(1) } else { all };
    for file in order.into_iter().take(shown) {
        one_log(&mut doc, args, db, file)?;
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
    Ok(doc)
}

fn one_log(doc: &mut Doc, args: &Args, db: &Database, file: RowOf<'_, '_, LogFileRow>) -> Result<(), Absent> {
    let log = file.log();
    let channel = file.channel().unwrap_or("no channel");
    let computer = file.computer().unwrap_or("unknown computer");
    doc.heading(Line::name(file.file()));
    let mut state: Vec<String> = Vec::new();
    state.push(if file.wrapped() { "has wrapped".to_owned() } else { "has not wrapped".to_owned() });
    if file.full() {
        state.push("full".to_owned());
    }
    if file.dirty() {
        state.push("not closed".to_owned());
    }
    let damaged = file.damaged_chunks();
    if damaged > 0 {
        state.push(format!("{} damaged chunk{}", count(damaged), if damaged == 1 { "" } else { "s" }));
    }
    let covered = file.first_utc_ns().zip(file.last_utc_ns());
    let when = covered.map_or("no records".to_owned(), |(first, last)| {
        let length = span(last.saturating_sub(first) as f64);
        format!("{} to {} UTC ({length})", utc(first), utc(last))
    });
    doc.text(format!(
        "{channel} of {computer}: {} records, {} in a file of {}, {when}, {}",
        count(file.records()),
        bytes(file.record_bytes()),
        bytes(file.size_bytes()),
        state.join(", ")
    ));
    retention(doc, args, db, log)?;
    timeline(doc, db, log)?;
    bursts(doc, args, db, log)?;
    kinds(doc, args, db, log)?;
    for (kind, title) in
        [("process", "Processes that records name"), ("account", "Accounts that records name")]
    {
        parties(doc, args, db, log, kind, title)?;
    }
    reader_cost(doc, db, log)
}

fn retention(doc: &mut Doc, args: &Args, db: &Database, log: i64) -> Result<(), Absent> {
    let rows = db.read::<LogRetentionRow>()?;
    let Some(whole) = rows.iter().find(|row| row.log() == log && row.scope() == "log") else {
        return Ok(());
    };
    let Some(rollover) = whole.rollover_ns() else {
        doc.text("It covers less than ten minutes: no rate can be told.");
        return Ok(());
    };
    let per_day = whole.bytes_per_day().unwrap_or(0.0).round() as i64;
    let records = whole.records_per_day().unwrap_or(0.0).round() as i64;
    let per_mib = whole.rollover_per_mib_ns().unwrap_or(0) as f64;
    let mut text = format!("Rate: {} and {} a day. ", bytes(per_day), counted(records, "record", "records"));
    text += &if whole.wrapped() {
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
    Ok(())
}

/// The records over time.
fn timeline(doc: &mut Doc, db: &Database, log: i64) -> Result<(), Absent> {
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    let mut bucket = 1;
    for row in db.read::<LogRateRow>()?.iter().filter(|row| row.log() == log) {
        bucket = row.bucket_ns().max(1);
        *sums.entry(row.start_utc_ns()).or_default() += row.records();
    }
    let (Some(first), Some(last)) = (sums.keys().next().copied(), sums.keys().last().copied()) else {
        return Ok(());
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
    Ok(())
}

fn bursts(doc: &mut Doc, args: &Args, db: &Database, log: i64) -> Result<(), Absent> {
    let rows = db.read::<LogBurstRow>()?;
    let of =
        |kind: &str| rows.iter().filter(|row| row.log() == log && row.kind() == kind).collect::<Vec<_>>();
    let what = |row: &RowOf<'_, '_, LogBurstRow>| format!("{} {}", row.provider(), row.event_id());
    let found = of("burst");
    for row in found.iter().take(3.min(args.top)) {
        let text = format!(
            "{} UTC: {} records in {} ({} are usual), {} of them {}",
            utc(row.start_utc_ns()),
            count(row.records()),
            span(row.end_ns().saturating_sub(row.start_ns()) as f64),
            count(row.usual_records().unwrap_or(0.0).round() as i64),
            count(row.kind_records()),
            what(row)
        );
        doc.note("Burst", text);
    }
    if found.len() > 3 {
        doc.note("Burst", format!("and {} more (table log_burst)", count(found.len() as i64 - 3)));
    }
    for row in of("periodic").iter().take(3.min(args.top)) {
        let text = format!(
            "every {}: {} ({} records, autocorrelation {:.2})",
            span(row.period_ns().unwrap_or(0) as f64),
            what(row),
            count(row.records()),
            row.strength().unwrap_or(0.0)
        );
        doc.note("Periodic", text);
    }
    Ok(())
}

fn share(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

fn kinds(doc: &mut Doc, args: &Args, db: &Database, log: i64) -> Result<(), Absent> {
    let mut table = etwhy_doc::Table::new([
        Column::name("What fills it").least(36),
        Column::number("records"),
        Column::number("bytes"),
        Column::number("share"),
        Column::number("lasts"),
        Column::number("a day"),
    ]);
    let retention = db.read::<LogRetentionRow>()?;
    let rows = retention.iter().filter(|row| row.log() == log && row.scope() == "kind");
    for row in rows.clone() {
        let provider = row.provider().unwrap_or("");
        let provider = provider.strip_prefix("Microsoft-Windows-").unwrap_or(provider);
        let task = match row.subcategory() {
            Some(name) => format!("{name}, "),
            None => {
                row.task().filter(|task| *task != 0).map_or(String::new(), |task| format!("task {task}, "))
            }
        };
        let name = format!("{} {task}{provider}", row.event_id().unwrap_or(0));
        let day = row.bytes_per_day().map_or("-".to_owned(), |b| bytes(b as i64));
        let without = row.rollover_without_ns().map_or("-".to_owned(), |ns| span(ns as f64));
        let numbers = [count(row.records()), bytes(row.bytes()), share(row.share()), without, day];
        table.row(std::iter::once(Line::name(name)).chain(numbers.map(Line::from)));
    }
    doc.table(table.at_most(args.top));
    if rows.clone().any(|row| row.rollover_without_ns().is_some()) {
        doc.text("lasts: how far back the log would reach without these records, at the same size and rate");
    }
    Ok(())
}

fn parties(
    doc: &mut Doc,
    args: &Args,
    db: &Database,
    log: i64,
    kind: &str,
    title: &str,
) -> Result<(), Absent> {
    let parties = db.read::<LogPartyRow>()?;
    let rows = parties.iter().filter(|row| row.log() == log && row.kind() == kind);
    // One row without a name says nothing.
    if rows.clone().all(|row| row.name() == "(none)") {
        return Ok(());
    }
    let numbers = ["records", "bytes", "share", "most of"].map(Column::number);
    let mut table = etwhy_doc::Table::new(std::iter::once(Column::name(title).least(28)).chain(numbers));
    for row in rows {
        let part = share(row.share());
        let numbers = [count(row.records()), bytes(row.bytes()), part, row.top_event_id().to_string()];
        table.row(std::iter::once(Line::name(row.name())).chain(numbers.map(Line::from)));
    }
    doc.table(table.at_most(5.min(args.top)));
    Ok(())
}

fn reader_cost(doc: &mut Doc, db: &Database, log: i64) -> Result<(), Absent> {
    let costs = db.read::<LogReaderCostRow>()?;
    let parts: Vec<String> = costs
        .iter()
        .filter(|row| row.log() == log)
        .map(|row| {
            let (low, high) = (span(row.low_ns() as f64), span(row.high_ns() as f64));
            let time = if low == high { low } else { format!("{low} to {high}") };
            format!("{} {time}", row.reader())
        })
        .collect();
    if !parts.is_empty() {
        doc.text(format!(
            "One full read, by rates that were measured on one machine each (table log_reader_cost): {}.",
            parts.join("; ")
        ));
    }
    Ok(())
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
