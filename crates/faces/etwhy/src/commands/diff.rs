//! `etwhy diff`: before and after.

use super::sql::tables_of;
use crate::catalog;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::{Analysed, TraceArgs};
use crate::report;
use crate::report::terminal::{out, text};
use crate::rules::RuleArgs;
use anyhow::{anyhow, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_diff::{Diff, Scale, Side, caveats, diff, table};
use etwhy_rules::{Outcome, Rule, Severity, Subject, evaluate_all};
use etwhy_sql::{Engine, words};
use etwhy_table::Table;
use std::collections::BTreeSet;
use std::io::Write as _;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "diff",
    about: "Before and after: what changed from one trace to others, with confidence",
    long_about: "Compares traces (or extracts) with the first one. Times are compared as shares of the time that was observed and \
                 counts as rates, so that traces of different length can be compared, and both as sums of the whole run. Without --table it compares findings (resolved, new, \
                 worse), processes, drivers, functions, durations of DPCs and the drivers that are installed. With --fail-on it \
                 judges a trace in CI: exit code 5 if the condition is met.",
    examples: "Examples:\n  etwhy diff before.etl after.etl\n  etwhy diff a.etl b.etl c.etl --json\n  \
               etwhy diff before.etl after.etl --table disk_file --by path\n  \
               etwhy diff before.etl after.etl --sql \"SELECT module, count, exclusive_ns FROM dpc_by_module\"\n  \
               etwhy diff base.etl today.etl --fail-on new,worse --severity warning",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// The first trace is the one that the others are compared with
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Compare this table or view instead
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Compare the result of this query instead
    #[arg(long, value_name = "SELECT", conflicts_with = "table")]
    sql: Option<String>,
    /// Columns that tell rows apart, separated by commas (default: all texts)
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    by: Vec<String>,
    /// Columns to add up and compare (default: all times, bytes and counts)
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    metric: Vec<String>,
    /// Exit with 5 if a finding is one of these, separated by commas: new, worse, found (in the last trace), undecided (one of
    /// the traces cannot tell, or what it lost could make the difference)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    fail_on: Vec<String>,
    /// Least severity that --fail-on minds: info, notice, warning, critical
    #[arg(long, value_name = "SEVERITY", default_value = "notice")]
    severity: String,
    /// At most N rows per list
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tables that the comparison reads besides those of the findings.
const TABLES: &[&str] = &[
    "trace",
    "ledger",
    "event_type",
    "unobserved",
    "kernel_class",
    "machine",
    "cpu_time",
    "process",
    "module",
    "module_cost",
    "function_cost",
    "driver_cost",
    "process_slice",
    "interrupt_cost",
    "dpc_histogram",
];

/// What [`Args::fail_on`] may name.
const CONDITIONS: &[&str] = &["new", "worse", "found", "undecided"];

fn run(args: Args) -> anyhow::Result<Exit> {
    let severity = Severity::from_name(&args.severity).ok_or_else(|| {
        anyhow!("`{}` is no severity; there are info, notice, warning, critical", args.severity)
    })?;
    if let Some(wrong) = args.fail_on.iter().find(|c| !CONDITIONS.contains(&c.as_str())) {
        bail!("--fail-on knows {}, not `{wrong}`", CONDITIONS.join(", "));
    }
    if args.trace.traces.len() < 2 {
        bail!("a comparison needs two traces: etwhy diff BEFORE AFTER");
    }
    if args.table.is_some() || args.sql.is_some() {
        return compare_table(&args);
    }
    let rules = args.rules.load()?;
    let mut tables: BTreeSet<String> = TABLES.iter().map(|t| (*t).to_owned()).collect();
    tables.extend(tables_of(rules.iter().filter(|r| r.over == Subject::Trace).flat_map(Rule::words)));
    let mut exit = Exit::Done;
    let mut all: Vec<(String, Analysed, Vec<Outcome>)> = Vec::new();
    for (label, analysed) in each(&args.trace, &tables)? {
        let outcomes = evaluate_all(&Engine::new(&analysed.db)?, &rules);
        if exit == Exit::Done {
            exit = analysed.exit;
        }
        all.push((label, analysed, outcomes));
    }
    let sides: Vec<Side<'_>> = all
        .iter()
        .map(|(label, analysed, findings)| Side { label: label.clone(), db: &analysed.db, findings })
        .collect();
    let result = diff(&sides);
    let mut out = out();
    if args.json {
        etwhy_report::json::to_writer_pretty(&mut out, &result).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", text(&report::diff::document(&result, args.top)))?;
    }
    out.flush()?;
    let met = conditions_met(&result, &args.fail_on, severity);
    for line in &met {
        eprintln!("etwhy: {}", etwhy_export::sanitize(line));
    }
    Ok(if met.is_empty() { exit } else { Exit::ConditionMet })
}

/// Each trace for itself, with its name.
fn each(args: &TraceArgs, tables: &BTreeSet<String>) -> anyhow::Result<Vec<(String, Analysed)>> {
    let mut all = Vec::new();
    for path in &args.traces {
        let one = TraceArgs { traces: vec![path.clone()], ..args.clone() };
        let label = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        all.push((label, one.open()?.analyse(Some(tables.clone()))?));
    }
    Ok(all)
}

/// What `--fail-on` names and the comparison shows.
fn conditions_met(diff: &Diff, conditions: &[String], least: Severity) -> Vec<String> {
    let mut met = Vec::new();
    for verdict in diff.verdicts.iter().filter(|v| v.severity >= least) {
        let last = verdict.changes.last().copied().unwrap_or("");
        let found = verdict.answers.last() == Some(&etwhy_rules::Answer::Found);
        let is = |condition: &String| match condition.as_str() {
            "found" => found,
            "undecided" => last == "cannot_tell",
            condition => condition == last,
        };
        if let Some(condition) = conditions.iter().find(|c| is(c)) {
            met.push(format!(
                "{condition}: {} ({}): {}",
                verdict.id,
                verdict.severity.name(),
                verdict.headline
            ));
        }
    }
    met
}

fn compare_table(args: &Args) -> anyhow::Result<Exit> {
    let query = match (&args.table, &args.sql) {
        (Some(name), _) => format!("SELECT * FROM \"{}\"", name.replace('"', "\"\"")),
        (None, Some(query)) => query.clone(),
        (None, None) => String::new(),
    };
    let mut tables = tables_of(words(&query).into_iter());
    tables.extend(["machine", "trace", "ledger", "unobserved"].map(str::to_owned));
    let mut exit = Exit::Done;
    let (mut results, mut scales): (Vec<Table>, Vec<Scale>) = (Vec::new(), Vec::new());
    for (label, analysed) in each(&args.trace, &tables)? {
        // A table keeps the roles of its columns, which a query would lose.
        let table = args.table.as_deref().and_then(|name| analysed.db.get(name)).cloned();
        results.push(match table {
            Some(table) => table,
            None => Engine::new(&analysed.db)?.query("result", &query).map_err(catalog::explained)?,
        });
        scales.push(Scale::read(&Side { label, db: &analysed.db, findings: &[] }));
        if exit == Exit::Done {
            exit = analysed.exit;
        }
    }
    let (keys, lines) = table::compare(&results.iter().collect::<Vec<_>>(), &scales, &args.by, &args.metric)
        .map_err(|text| anyhow!(text))?;
    let mut out = out();
    if args.json {
        let value = serde_json::json!({ "schema": "etwhy.diff-table/2", "traces": scales, "caveats": caveats(&scales), "keys": keys, "lines": lines });
        etwhy_report::json::to_writer_pretty(&mut out, &value).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        let doc = report::diff::table_document(&scales, &lines, args.top);
        write!(out, "{}", text(&doc))?;
    }
    out.flush()?;
    Ok(exit)
}
