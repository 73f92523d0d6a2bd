//! `etwhy counters`: performance counter logs.

use crate::catalog;
use crate::command::Command;
use crate::exit::Exit;
use crate::options::rows::{RowArgs, write_selection};
use crate::options::time::{Span, TimeArgs, When};
use crate::report::counters as page;
use crate::report::findings_page::{self, Words};
use crate::report::table_json::Rows;
use crate::report::terminal::{out, text};
use crate::rules::RuleArgs;
use crate::verbose::stage;
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::{closure, derive};
use etwhy_base::units::counted;
use etwhy_counters::tables::{CounterMachineRow, CounterNoteRow, CounterWantedRow};
use etwhy_counters::{Bound, CounterLogs, CountersError, Options};
use etwhy_doc::Doc;
use etwhy_record::{Recording, Session, Size, formats};
use etwhy_rules::{Outcome, Rule, Subject, evaluate_all};
use etwhy_sql::{Engine, words};
use etwhy_table::{Database, Memory, Pattern, RowOf, Selection, Table, TableSpec};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::collections::HashSet;
use std::io::Write as _;
use std::path::PathBuf;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "counters",
    about: "Counter logs (perfmon, typeperf, relog): pegged processors, queues, slow disks, leaks, and what to record",
    long_about: "Reads performance counter logs as CSV or TSV, in any language of Windows, and says what they show: processors that \
                 DPCs keep busy, queues, slow disks, too little memory, leaks. What a counter log cannot tell (which driver, which \
                 program) needs a recording, whose exact commands are printed. Logs of one machine are joined in time. Binary logs \
                 (.blg) are recognised; relog makes text of them.",
    examples: "Examples:\n  etwhy counters perf.csv\n  etwhy counters C:\\PerfLogs --from \"2024-05-01 08:00\" --to \"2024-05-01 12:00\"\n  \
               etwhy counters perf.csv --counter \"*DPC*\" --dump counter\n  \
               etwhy counters perf.csv --dump counter_sample -o samples.parquet\n  \
               etwhy counters perf.csv --sql \"SELECT path, max_value FROM counter ORDER BY max_value DESC LIMIT 5\"\n\n\
               To log what it looks for:\n  logman create counter etwhy -f csv -si 5 -o C:\\PerfLogs\\etwhy -c \"\\Processor(*)\\*\" \
               \"\\System\\*\" \"\\Memory\\*\" \"\\PhysicalDisk(*)\\*\" \"\\Network Interface(*)\\*\" \"\\Process(*)\\Handle Count\"\n  \
               logman start etwhy",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    /// Counter logs (.csv, .tsv), or folders of them
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Ask in SQL: tables counter, counter_sample, counter_slice, counter_machine, counter_cpu, …
    #[arg(long, value_name = "SQL", conflicts_with = "dump")]
    sql: Option<String>,
    /// Write a table: counter, counter_sample, counter_slice, counter_machine, counter_cpu, …
    #[arg(long, value_name = "TABLE")]
    dump: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// At most N instances of a counter (10); with --sql and --dump: rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Only counters whose path has this in it: `*` stands for anything, `;` separates, `!` excludes
    #[arg(long, value_name = "PATTERN")]
    counter: Vec<String>,
    #[command(flatten)]
    time: TimeArgs,
    /// How far local time is from UTC, for logs that name no zone: +2, -8, +05:30
    #[arg(long, value_name = "HOURS", allow_hyphen_values = true)]
    utc_offset: Option<String>,
    /// Also name the patterns that were not found
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    rules: RuleArgs,
}

/// Memory for tables; what exceeds it goes into a temporary file.
const MEMORY: u64 = 256 << 20;

/// Tables that the report shows.
const SHOWN: [&str; 6] =
    ["counter", "counter_slice", "counter_machine", "counter_note", "counter_wanted", "counter_cpu"];

fn run(args: Args) -> anyhow::Result<Exit> {
    let offset = args.utc_offset.as_deref().map(offset_min).transpose()?;
    let patterns: Vec<Pattern> = args.counter.iter().map(|text| anywhere(text)).collect();
    let keep = |path: &str| patterns.iter().any(|pattern| pattern.matches(path));
    let mut options = Options { utc_offset_min: offset, ..Options::default() };
    let (from, to) = (bound(&args, &options, args.time.from)?, bound(&args, &options, args.time.to)?);
    options = Options { from, to, keep: (!patterns.is_empty()).then_some(&keep), ..options };
    if args.dump.is_none() && args.sql.is_none() && (args.rows.output.is_some() || args.rows.format.is_some())
    {
        bail!("--output and --format go with --dump or --sql; --json prints the report as JSON");
    }
    if let Some(query) = &args.sql {
        let tables = known(words(query).into_iter());
        let read = selected(&args, &options, &tables)?;
        let table = Engine::new(&read.db)?.query("result", query).map_err(catalog::explained)?;
        return write(&args, &table, &read);
    }
    if let Some(name) = &args.dump {
        let tables = known(std::iter::once(name.as_str()));
        if tables.is_empty() {
            let names: Vec<&str> = specs().map(|spec| spec.name.as_ref()).collect();
            bail!("there is no table `{name}` of counter logs; there are {}", names.join(", "));
        }
        let read = selected(&args, &options, &tables)?;
        let table = read.db.get(name).with_context(|| format!("table {name} was not made"))?;
        return write(&args, table, &read);
    }
    report(&args, &options)
}

/// A time in the local time of each log, or in UTC. What counts from the start or the end of the logs needs a look at all of them.
fn bound(args: &Args, all: &Options<'_>, when: Option<When>) -> anyhow::Result<Option<Bound>> {
    Ok(match when {
        None => None,
        Some(When::Local(ns)) => Some(Bound::Local(ns)),
        Some(When::Utc(ns)) => Some(Bound::Utc(ns)),
        Some(when) => {
            let read = read(&args.paths, all, &BTreeSet::from(["counter_machine".to_owned()]))?;
            Some(Bound::Utc(Span::of_counters(&read.db).utc_ns(when)?))
        }
    })
}

/// A list of patterns each of which may stand anywhere in a path.
fn anywhere(list: &str) -> Pattern {
    let item = |item: &str| match item.trim().strip_prefix('!') {
        Some(rest) => format!("!*{}*", rest.trim().trim_matches('*')),
        None => format!("*{}*", item.trim().trim_matches('*')),
    };
    Pattern::parse(&list.split(';').filter(|i| !i.trim().is_empty()).map(item).collect::<Vec<_>>().join(";"))
}

/// Minutes of `+2`, `-8`, `+05:30`.
fn offset_min(text: &str) -> anyhow::Result<i32> {
    let wrong = || format!("--utc-offset {text}: no offset; try +2, -8 or +05:30");
    let (sign, rest) = match text.trim().strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.trim().trim_start_matches('+')),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes): (i32, i32) =
        (hours.parse().with_context(wrong)?, minutes.parse().with_context(wrong)?);
    if !(0..=14).contains(&hours) || !(0..60).contains(&minutes) {
        bail!(wrong());
    }
    Ok(sign * (hours * 60 + minutes))
}

/// Tables of counter logs, those made from them included.
fn specs() -> impl Iterator<Item = &'static TableSpec> {
    crate::catalog::all().filter(|spec| spec.name == "counter" || spec.name.starts_with("counter_"))
}

/// Those of these names that are tables of counter logs.
fn known<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let name = |name: &str| {
        specs().find(|spec| spec.name.eq_ignore_ascii_case(name)).map(|spec| spec.name.to_string())
    };
    names.filter_map(name).collect()
}

/// Logs that were read.
struct Read {
    db: Database,
    logs: CounterLogs,
}

/// Reads the logs into tables: these, and what they are made from.
fn read(paths: &[PathBuf], options: &Options<'_>, tables: &BTreeSet<String>) -> anyhow::Result<Read> {
    let memory = Memory::with_budget(MEMORY, None);
    let mut logs =
        stage("samples", || etwhy_counters::read(paths, options, &memory.wanting(closure(tables))))?;
    for file in &logs.files {
        tracing::info!("{}: read, {} samples of {} values", file.path.display(), file.rows, file.values);
    }
    for (file, reason) in &logs.skipped {
        let reason = reason.strip_prefix(&format!("{}: ", file.display())).unwrap_or(reason).to_owned();
        say!("etwhy: {}", etwhy_export::sanitize(&format!("{}: skipped: {reason}", file.display())));
    }
    let mut db = Database::new();
    for table in std::mem::take(&mut logs.tables) {
        db.insert(table);
    }
    stage("derived tables", || derive(&mut db, Some(tables), &memory, 1))?;
    if let Some(failure) = memory.failure() {
        say!("etwhy: columns could not be moved out of memory: {failure}");
    }
    Ok(Read { db, logs })
}

/// Most counters that are named where none matches.
const MOST_NAMED: usize = 5;

/// Reads what is asked for. If `--counter` matches nothing, the error names the counters that have most words in common with it.
fn selected(args: &Args, options: &Options<'_>, tables: &BTreeSet<String>) -> anyhow::Result<Read> {
    read(&args.paths, options, tables).map_err(|error| match error.downcast_ref::<CountersError>() {
        Some(CountersError::NoCounter { kinds }) => no_counter(&args.counter, kinds),
        _ => error,
    })
}

fn no_counter(asked: &[String], kinds: &[String]) -> anyhow::Error {
    let asked = asked.join(";");
    let words: Vec<String> = asked
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let common = |kind: &str| {
        let kind = kind.to_lowercase();
        words.iter().filter(|word| kind.contains(word.as_str())).count()
    };
    let mut near: Vec<&str> = kinds.iter().map(String::as_str).collect();
    near.sort_by_key(|kind| std::cmp::Reverse(common(kind)));
    near.truncate(MOST_NAMED);
    let more = match kinds.len().saturating_sub(near.len()) {
        0 => String::new(),
        more => format!(
            " and {} (etwhy counters FILE --dump counter lists all)",
            counted(more as i64, "other", "others")
        ),
    };
    anyhow::anyhow!("--counter \"{asked}\": no counter matches; there are {}{more}", near.join(", "))
}

fn write(args: &Args, table: &Table, read: &Read) -> anyhow::Result<Exit> {
    let written = args.rows.written()?;
    let mut selection = Selection::all(table);
    let rows = selection.len();
    if let Some(top) = args.top {
        selection = selection.top(top);
    }
    let mut out = out();
    write_selection(&selection, &written, rows, &mut out)?;
    out.flush()?;
    Ok(exit(&read.db))
}

/// In part, if something could not be used.
fn exit(db: &Database) -> Exit {
    let lost = |row: RowOf<'_, '_, CounterNoteRow>| row.severity() == "data_loss";
    if db.read_or_empty::<CounterNoteRow>().iter().any(lost) { Exit::InPart } else { Exit::Done }
}

fn report(args: &Args, options: &Options<'_>) -> anyhow::Result<Exit> {
    let rules: Vec<Rule> =
        args.rules.load()?.into_iter().filter(|rule| rule.over == Subject::Counters).collect();
    let mut tables = known(rules.iter().flat_map(Rule::words));
    tables.extend(SHOWN.map(str::to_owned));
    let read = selected(args, options, &tables)?;
    let outcomes = stage("findings", || evaluate_all(&read.db, &rules, 1))?;
    let mut out = out();
    if args.rows.json {
        etwhy_report::json::to_writer_pretty(&mut out, &as_json(&read, &outcomes)?)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&document(args, &read, &outcomes)?).as_bytes())?;
    }
    out.flush()?;
    Ok(exit(&read.db))
}

fn document(args: &Args, read: &Read, outcomes: &[Outcome]) -> anyhow::Result<Doc> {
    let mut doc = Doc::titled("Counter logs");
    let files: Vec<String> = read
        .logs
        .files
        .iter()
        .map(|f| {
            let (samples, values) =
                (counted(f.rows, "sample", "samples"), counted(f.values, "value", "values"));
            format!("{}: {samples}, {values}", f.path.display())
        })
        .collect();
    page::add_quality(&mut doc, &read.db, &files)?;
    let words =
        Words { of: "these counter logs", more: "etwhy counters --all", untold: true, absent: args.all };
    findings_page::add(&mut doc, outcomes, words);
    add_recordings(&mut doc, outcomes)?;
    add_missing(&mut doc, &read.db);
    page::add(&mut doc, &read.db, args.top.unwrap_or(10))?;
    Ok(doc)
}

/// The commands that record what the findings need, ready to be copied.
fn recordings(outcomes: &[Outcome]) -> anyhow::Result<Vec<(&'static str, [String; 2])>> {
    let mut all = Vec::new();
    for profile in findings_page::profiles(outcomes) {
        let recording = Recording::from_profiles(&[profile.name], Session::NtKernelLogger, Size::Usual)?;
        let mut texts = [String::new(), String::new()];
        for (text, name) in texts.iter_mut().zip(["wpr", "xperf"]) {
            let format = formats().iter().find(|f| f.name == name).context("no such format")?;
            *text = (format.write)(&recording)?;
        }
        all.push((profile.name, texts));
    }
    Ok(all)
}

/// Profiles whose commands are printed in full; of more, how to print them.
const MOST_RECORDINGS: usize = 1;

fn add_recordings(doc: &mut Doc, outcomes: &[Outcome]) -> anyhow::Result<()> {
    let all = recordings(outcomes)?;
    if all.is_empty() {
        return Ok(());
    }
    doc.space();
    doc.text(
        "To see why, record it on that machine while it is slow, as administrator; then: etwhy why trace.etl",
    );
    for (name, [wpr, xperf]) in all.iter().take(MOST_RECORDINGS) {
        doc.text(format!("with wpr (its profile: etwhy record --print {name} -o etwhy-{name}.wprp):"));
        doc.verbatim("bat", &commands(wpr));
        doc.text("or with xperf, which needs no profile:");
        doc.verbatim("bat", &commands(xperf));
    }
    let more: Vec<&str> = all.iter().skip(MOST_RECORDINGS).map(|(name, _)| *name).collect();
    if !more.is_empty() {
        doc.text(format!(
            "For the other findings: etwhy record --print {} --format xperf (or wpr; --json has the lines)",
            more.join(",")
        ));
    }
    Ok(())
}

/// The lines of a script without its remarks.
fn commands(script: &str) -> String {
    let command = |line: &&str| !line.starts_with("rem ") && !line.trim().is_empty();
    script.lines().filter(command).collect::<Vec<_>>().join("\n")
}

/// A command that logs the counters that a machine lacks: those that were not logged, and those of which only the sum was.
fn missing(db: &Database) -> Option<String> {
    let (mut paths, mut known): (Vec<&str>, HashSet<&str>) = Default::default();
    let machines = db.read_or_empty::<CounterMachineRow>();
    // Of a log in a language that is not known nobody can say what is missing.
    let foreign: HashSet<&str> =
        machines.iter().filter(|row| row.unknown_language().is_some()).map(|row| row.machine()).collect();
    for row in &db.read_or_empty::<CounterWantedRow>() {
        let path = row.path();
        let single = row.counters().saturating_sub(if path.contains("(*)") { row.totals() } else { 0 });
        if single <= 0 && !foreign.contains(row.machine()) && known.insert(path) {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return None;
    }
    let quoted: Vec<String> = paths.iter().map(|path| format!("\"{path}\"")).collect();
    Some(format!("logman create counter etwhy -f csv -si 5 -o C:\\PerfLogs\\etwhy -c {}", quoted.join(" ")))
}

fn add_missing(doc: &mut Doc, db: &Database) {
    let Some(command) = missing(db) else { return };
    doc.space();
    doc.text("To log the counters that are missing (end it with logman stop etwhy):");
    doc.verbatim("bat", &format!("{command}\nlogman start etwhy"));
}

#[derive(Serialize)]
struct Json<'r> {
    files: Vec<serde_json::Value>,
    skipped: Vec<serde_json::Value>,
    machines: Rows<'r>,
    findings: serde_json::Value,
    recordings: Vec<serde_json::Value>,
    log_missing: Option<String>,
    processors: Rows<'r>,
    counters: Rows<'r>,
    wanted: Rows<'r>,
    notes: Rows<'r>,
}

fn as_json<'r>(read: &'r Read, outcomes: &[Outcome]) -> anyhow::Result<Json<'r>> {
    let rows = |name: &str| Rows(read.db.get(name));
    let files: Vec<serde_json::Value> = read
        .logs
        .files
        .iter()
        .map(|f| json!({ "file": f.path.display().to_string(), "samples": f.rows, "values": f.values }))
        .collect();
    let skipped: Vec<serde_json::Value> = read
        .logs
        .skipped
        .iter()
        .map(|(file, reason)| json!({ "file": file.display().to_string(), "reason": reason }))
        .collect();
    let recordings: Vec<serde_json::Value> = recordings(outcomes)?
        .into_iter()
        .map(|(name, [wpr, xperf])| json!({ "profile": name, "wpr": wpr, "xperf": xperf }))
        .collect();
    Ok(Json {
        files,
        skipped,
        machines: rows("counter_machine"),
        findings: findings_page::json(outcomes)?,
        recordings,
        log_missing: missing(&read.db),
        processors: rows("counter_cpu"),
        counters: rows("counter"),
        wanted: rows("counter_wanted"),
        notes: rows("counter_note"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets() {
        let offset = |text| offset_min(text).ok();
        assert_eq!(
            (offset("+2"), offset("-8"), offset("+05:30"), offset("0")),
            (Some(120), Some(-480), Some(330), Some(0))
        );
        assert_eq!(
            (offset("-03:30"), offset("15"), offset("x"), offset("+-2")),
            (Some(-210), None, None, None)
        );
    }

    #[test]
    fn patterns_stand_anywhere() {
        let path = "\\\\S\\Processor(0)\\% DPC Time";
        for text in ["dpc", "*DPC*", "Processor(*)*dpc", "disk;dpc", "!_Total"] {
            assert!(anywhere(text).matches(path), "{text}");
        }
        assert!(!anywhere("Processor(*)DPC").matches(path) && anywhere("Processor(*)*DPC*").matches(path));
        assert!(!anywhere("disk").matches(path) && !anywhere("dpc;!(0)").matches(path));
    }

    #[test]
    fn a_pattern_without_counters() {
        let kinds = ["Memory\\Pages/sec", "Processor(*)\\% DPC Time", "Processor(*)\\% User Time"];
        let text = no_counter(&["Processor(*)DPC".to_owned()], &kinds.map(str::to_owned)).to_string();
        assert_eq!(
            text,
            "--counter \"Processor(*)DPC\": no counter matches; there are Processor(*)\\% DPC Time, Processor(*)\\% User Time, Memory\\Pages/sec"
        );
    }

    #[test]
    fn tables_by_name() {
        assert_eq!(known(["COUNTER", "counter_cpu", "process"].into_iter()).len(), 2);
        assert!(specs().count() >= 9);
    }
}
