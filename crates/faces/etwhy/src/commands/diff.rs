//! `etwhy diff`: before and after.

use super::sql::tables_of;
use crate::catalog;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::{Analysed, TraceArgs};
use crate::options::document::DocumentArgs;
use crate::report;
use crate::report::terminal::out;
use crate::rules::RuleArgs;
use anyhow::{Context as _, anyhow, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_diff::series::{self, Run, Series};
use etwhy_diff::{Diff, Scale, Side, caveats, diff, table};
use etwhy_doc::Doc;
use etwhy_rules::{Outcome, Rule, Severity, Subject, evaluate_all};
use etwhy_sql::{Engine, words};
use etwhy_table::Table;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "diff",
    about: "Before and after: what changed from one trace to others, with confidence",
    long_about: "Compares traces (or extracts) with the first one. Times are compared as shares of the time that was observed and \
                 counts as rates, so that traces of different length can be compared, and both as sums of the whole run. Without --table it compares findings (resolved, new, \
                 worse), processes, drivers, functions, durations of DPCs and the drivers that are installed. With --fail-on it \
                 judges a trace in CI: exit code 5 if the condition is met. With --series the traces are runs of one benchmark, in \
                 order: from which run on does something cost more or less?",
    examples: "Examples:\n  etwhy diff before.etl after.etl\n  etwhy diff a.etl b.etl c.etl --json\n  \
               etwhy diff before.etl after.etl --table disk_file --by path\n  \
               etwhy diff before.etl after.etl --sql \"SELECT module, count, exclusive_ns FROM dpc_by_module\"\n  \
               etwhy diff base.etl today.etl --fail-on new,worse --severity warning\n  \
               etwhy diff --series run*.etl --md=steps.md --fail-on slower",
    // There is one demonstration trace, and a comparison needs two.
    build: |command| Args::augment_args(command).mut_arg("demo", |demo| demo.hide(true)),
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
    /// The traces are runs of one benchmark, at least five, in this order: find the run from which on it costs more or less
    #[arg(long, conflicts_with_all = ["table", "sql"])]
    series: bool,
    /// With --series: least change in percent that --fail-on minds
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, requires = "series")]
    least: f64,
    /// With --series: --fail-on minds steps in the last N runs
    #[arg(long, value_name = "N", default_value_t = 10, requires = "series")]
    recent: usize,
    /// Exit with 5 if a finding is one of these, separated by commas: new, worse, found (in the last trace), undecided (one of
    /// the traces cannot tell, or what it lost could make the difference); with --series: slower (a run, or a process in it), faster
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
    #[command(flatten)]
    document: DocumentArgs,
}

/// Tables that the comparison reads besides those of the findings.
const TABLES: &[&str] = &[
    "trace",
    "ledger",
    "event_type",
    "unobserved",
    "kernel_class",
    "machine",
    "cpu",
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
/// The same for a series.
const SERIES_CONDITIONS: &[&str] = &["slower", "faster"];

fn run(args: Args) -> anyhow::Result<Exit> {
    let severity = Severity::from_name(&args.severity).ok_or_else(|| {
        anyhow!("`{}` is no severity; there are info, notice, warning, critical", args.severity)
    })?;
    args.document.check(args.json)?;
    let known = if args.series { SERIES_CONDITIONS } else { CONDITIONS };
    if let Some(wrong) = args.fail_on.iter().find(|c| !known.contains(&c.as_str())) {
        let of = if args.series { "of a series " } else { "" };
        bail!("--fail-on {of}knows {}, not `{wrong}`", known.join(", "));
    }
    if args.trace.traces.len() < 2 {
        bail!("a comparison needs two traces: etwhy diff BEFORE AFTER");
    }
    // A name that is mistyped is told before the traces in front of it are read.
    for path in args.trace.traces.iter().filter(|path| path.as_os_str() != "-") {
        std::fs::metadata(path).with_context(|| format!("{}: cannot open", path.display()))?;
    }
    if args.table.is_some() || args.sql.is_some() {
        return compare_table(&args);
    }
    if args.series && args.trace.traces.len() < series::LEAST {
        bail!("a series needs at least {} runs, there are {}", series::LEAST, args.trace.traces.len());
    }
    let rules = args.rules.load()?;
    let mut tables: BTreeSet<String> = TABLES.iter().map(|t| (*t).to_owned()).collect();
    tables.extend(tables_of(rules.iter().filter(|r| r.over == Subject::Trace).flat_map(Rule::words)));
    let mut exit = Exit::Done;
    let mut all: Vec<(String, Analysed, Vec<Outcome>)> = Vec::new();
    let mut runs = Vec::new();
    for one in each(&args.trace, &tables) {
        let (label, analysed) = one?;
        let outcomes = evaluate_all(&analysed.db, &rules, analysed.threads)?;
        if exit == Exit::Done {
            exit = analysed.exit;
        }
        if args.series {
            // A run leaves its figures only: fifty databases would not fit.
            runs.push(Run::read(&Side { label, db: &analysed.db, findings: &outcomes }));
        } else {
            all.push((label, analysed, outcomes));
        }
    }
    let met = if args.series {
        let result = series::series(&runs);
        write(&args, &result, &report::series::document(&result, args.top))?;
        steps_met(&result, &args)
    } else {
        let result = diff(&sides(&all));
        write(&args, &result, &report::diff::document(&result, args.top))?;
        conditions_met(&result, &args.fail_on, severity)
    };
    for line in &met {
        say!("etwhy: {line}");
    }
    Ok(if met.is_empty() { exit } else { Exit::ConditionMet })
}

fn sides(all: &[(String, Analysed, Vec<Outcome>)]) -> Vec<Side<'_>> {
    all.iter()
        .map(|(label, analysed, findings)| Side { label: label.clone(), db: &analysed.db, findings })
        .collect()
}

/// Prints or writes an answer in the form that was asked for.
fn write(args: &Args, value: &impl serde::Serialize, doc: &Doc) -> anyhow::Result<()> {
    let mut out = out();
    if args.json {
        etwhy_report::json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from)?;
        writeln!(out)?;
    }
    args.document.write(args.json, doc, &mut out)?;
    Ok(out.flush()?)
}

/// The recent steps that `--fail-on` names.
fn steps_met(series: &Series, args: &Args) -> Vec<String> {
    let recent = series.runs.len().saturating_sub(args.recent);
    let minded = series.courses.iter().filter(|course| matches!(course.kind, "run" | "process"));
    let last = minded.filter_map(|course| Some((course, course.steps.last()?)));
    last.filter(|(_, step)| step.run >= recent)
        .filter_map(|(course, step)| {
            let change = 100.0 * (step.after_ns / step.before_ns - 1.0);
            let way = if change > 0.0 { "slower" } else { "faster" };
            let met = change.abs() >= args.least && args.fail_on.iter().any(|condition| condition == way);
            met.then(|| {
                format!(
                    "{way}: {} {} from run {} ({}) on",
                    course.kind,
                    course.name,
                    step.run + 1,
                    step.label
                )
            })
        })
        .collect()
}

/// Each trace for itself, with its name.
fn each(
    args: &TraceArgs,
    tables: &BTreeSet<String>,
) -> impl Iterator<Item = anyhow::Result<(String, Analysed)>> {
    args.traces.iter().zip(labels(&args.traces)).map(|(path, label)| {
        let one = TraceArgs { traces: vec![path.clone()], ..args.clone() };
        Ok((label, one.open()?.analyse(Some(tables.clone()))?))
    })
}

/// The names of files, with as much of the folders as tells them apart.
fn labels(paths: &[PathBuf]) -> Vec<String> {
    fn end(path: &Path, parts: usize) -> PathBuf {
        let all = path.components().count();
        path.components().skip(all.saturating_sub(parts)).collect()
    }
    let label = |path: &PathBuf| {
        let alone =
            |parts: &usize| paths.iter().filter(|other| end(other, *parts) == end(path, *parts)).count() == 1;
        let parts = (1..=path.components().count()).find(alone).unwrap_or(1);
        end(path, parts).to_string_lossy().into_owned()
    };
    paths.iter().map(label).collect()
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
    for one in each(&args.trace, &tables) {
        let (label, analysed) = one?;
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
    let value = serde_json::json!({ "schema": "etwhy.diff-table/2", "traces": scales, "caveats": caveats(&scales), "keys": keys, "lines": lines });
    write(args, &value, &report::diff::table_document(&scales, &lines, args.top))?;
    Ok(exit)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    #[test]
    fn files_of_one_name_are_told_apart_by_their_folders() {
        let labels = |paths: &[&str]| super::labels(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(labels(&["x/before.etl", "x/after.etl"]), ["before.etl", "after.etl"]);
        assert_eq!(labels(&["x/a/t.etl", "x/b/t.etl"]), ["a/t.etl", "b/t.etl"].map(native));
        assert_eq!(
            labels(&["a/x/t.etl", "b/x/t.etl", "u.etl"]),
            ["a/x/t.etl", "b/x/t.etl", "u.etl"].map(native)
        );
        assert_eq!(labels(&["t.etl", "t.etl"]), ["t.etl", "t.etl"]);
    }

    /// With the separators of this system.
    fn native(path: &str) -> String {
        path.replace('/', std::path::MAIN_SEPARATOR_STR)
    }
}
