//! Reading a trace for the page.

use super::Args;
use crate::catalog;
use crate::command::PROGRAM;
use crate::commands::sql::tables_of;
use crate::commands::why::answers;
use crate::exit::Exit;
use crate::open::logs::LogReading;
use crate::open::{Opened, Recording, TraceArgs, beside};
use crate::progress::unless_given_up;
use crate::report::explain::Knowledge;
use crate::report::missing::{recording_for, why_empty};
use crate::report::why::verdict;
use crate::verbose::stage;
use anyhow::anyhow;
use etwhy_analysis::cpu::{Scope, Top};
use etwhy_analysis::derive::is_beside_traces;
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, PartWritten, Timeline};
use etwhy_hud::{Deferred, Host, Loaded, SavePart, Within};
use etwhy_report::charts;
use etwhy_rules::{Rule, Subject, evaluate_all};
use etwhy_table::{Database, TableSpec};
use etwhy_trace::Part;
use etwhy_trace::catalog::event_type::EventTypeRow;
use std::any::Any;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How long the lists of the verdict are.
pub const TOP: Top = Top { processes: 20, per_process: 5, overall: 20 };

/// What the time axis shows as soon as the verdict stands. Findings read most of it anyway.
const LANES: [&str; 6] = ["sample", "cswitch", "dpc", "isr", "disk_io", "mark"];

/// Reads traces as the arguments say.
pub struct Reader {
    rules: Vec<Rule>,
    without: Vec<String>,
    logs: Vec<PathBuf>,
}

impl Reader {
    /// Those of the arguments.
    pub(super) fn new(args: &Args, rules: Vec<Rule>) -> Reader {
        Reader { rules, without: args.without.clone(), logs: args.logs.clone() }
    }

    /// One that leaves nothing out and reads no logs.
    pub fn plain(rules: Vec<Rule>) -> Reader {
        Reader { rules, without: Vec::new(), logs: Vec::new() }
    }

    /// The verdict of a recording, without all other tables: what `etwhy why` reads.
    pub fn verdict(&self, recording: Recording, name: String) -> anyhow::Result<Loaded> {
        let more = charts::TABLES.iter().chain(&LANES).map(|name| (*name).to_owned());
        let (analysed, mut report) = answers(recording, &self.rules, TOP, Part::default(), more)?;
        report.add_charts(&analysed.db);
        let db = analysed.db.clone();
        Ok(Loaded { name, db, report, keep: Box::new(analysed), deferred: None, within: None, part: None })
    }

    /// All of a recording. `number`: which of the recordings of `trace` it is.
    pub fn read(
        &self,
        opened: Opened,
        name: String,
        trace: &TraceArgs,
        number: usize,
    ) -> anyhow::Result<(Loaded, Exit)> {
        // What was extracted is there, and standard input cannot be read twice.
        let once = opened.is_extract() || trace.traces.iter().any(|path| path == Path::new("-"));
        let defer = !once && !self.without.iter().any(|name| name == EVENTS);
        let mut without = self.without.clone();
        without.extend(defer.then(|| EVENTS.to_owned()));
        let mut analysed = opened.analyse_everything(&without)?;
        let mut beside = None;
        if !self.logs.is_empty() {
            let mut tables =
                tables_of(self.rules.iter().filter(|r| r.over == Subject::Logs).flat_map(Rule::words));
            tables.insert("log_record".to_owned());
            let reading = LogReading::beside(trace);
            let added = beside::add(&self.logs, &reading, &mut analysed.db, &tables, &analysed.memory)?;
            for note in &added.notes {
                say!("etwhy: {note}");
            }
            if analysed.exit == Exit::Done {
                analysed.exit = added.exit;
            }
            beside = Some(added);
        }
        let mut outcomes = stage("findings", || evaluate_all(&analysed.db, &self.rules, analysed.threads))?;
        if let Some(beside) = beside {
            beside.caution(&mut outcomes);
        }
        let mut report = verdict(&analysed.db, &Scope::default(), TOP, outcomes);
        report.add_charts(&analysed.db);
        let exit = analysed.exit;
        // Tables share their columns: this copies handles, and what stays keeps temporary files alive.
        let db = analysed.db.clone();
        let deferred = defer.then(|| deferred(&db, trace.clone(), number));
        let within = (!once).then(|| within(self.rules.clone(), trace.clone(), number));
        let part = part(trace);
        Ok((Loaded { name, db, report, keep: Box::new(analysed), deferred, within, part }, exit))
    }
}

/// The table that takes longer than all others. It is made when somebody asks for it.
pub const EVENTS: &str = "event";

/// The events of a recording of `trace`, which is read again for them.
fn deferred(db: &Database, trace: TraceArgs, number: usize) -> Deferred {
    let counts = db.read_or_empty::<EventTypeRow>();
    let rows: i64 = counts.iter().map(|row| row.count()).sum();
    let make = move |given_up: Arc<dyn Fn() -> bool>| {
        let read = unless_given_up(Box::new(move || given_up()), || {
            let recording = trace.recordings()?.list.into_iter().nth(number);
            let recording = recording.ok_or_else(|| anyhow!("the trace is no longer there"))?;
            recording.open()?.analyse(Some([EVENTS.to_owned()].into()))
        });
        let analysed = read.ok_or_else(|| "given up".to_owned())?.map_err(|error| format!("{error:#}"))?;
        let db = analysed.db.clone();
        Ok((db, Box::new(analysed) as Box<dyn Any + Send + Sync>))
    };
    Deferred { tables: vec![(EVENTS.to_owned(), usize::try_from(rows).unwrap_or(0))], make: Box::new(make) }
}

/// What `etwhy why --from --to` says of a recording of `trace`, which is read again for it.
pub fn within(rules: Vec<Rule>, trace: TraceArgs, number: usize) -> Box<Within> {
    Box::new(move |[from_ns, to_ns], given_up| {
        let read = unless_given_up(Box::new(move || given_up()), || {
            let recording = trace.recordings()?.list.into_iter().nth(number);
            let recording = recording.ok_or_else(|| anyhow!("the trace is no longer there"))?;
            let part = Part { from_ns: Some(from_ns).filter(|ns| *ns > 0), to_ns: Some(to_ns) };
            answers(recording, &rules, TOP, part, std::iter::empty()).map(|(_, report)| report)
        });
        read.ok_or_else(|| "given up".to_owned())?.map_err(|error| format!("{error:#}"))
    })
}

/// Saves a stretch of a single .etl file; none where that is not what was given.
fn part(trace: &TraceArgs) -> Option<Box<SavePart>> {
    let [path] = trace.traces.as_slice() else { return None };
    let is_trace = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("etl"));
    (is_trace && path.is_file()).then(|| save_part(path.clone()))
}

/// Saves a stretch of this file.
pub fn save_part(path: PathBuf) -> Box<SavePart> {
    Box::new(move |range| {
        let mut bytes = Vec::new();
        write_part(&path, range, &mut bytes).map_err(|error| format!("{}: {error:#}", path.display()))?;
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let [from, to] = range.map(|ns| ns as f64 / 1e9);
        Ok((format!("{stem}_{from:.3}s-{to:.3}s.etl"), bytes))
    })
}

/// Writes a stretch (from, to, ns since the start) of a file, which may still grow, as a trace.
///
/// # Errors
/// If one of both cannot be read or written.
pub fn write_part(
    path: &Path,
    [from_ns, to_ns]: [i64; 2],
    out: &mut dyn Write,
) -> anyhow::Result<PartWritten> {
    let file = EtlFile::open_growing(path, path, None)?;
    let timeline = Timeline::read(std::slice::from_ref(&file), &mut Ledger::new());
    // The clock of a single file counts its keys.
    let [from, to] = [from_ns, to_ns].map(|ns| timeline.ns_to_key(ns));
    Ok(file.write_part(from, to.saturating_sub(1), out)?)
}

impl Host for Reader {
    fn program(&self) -> String {
        PROGRAM.to_owned()
    }

    fn specs(&self) -> Vec<&'static TableSpec> {
        let mut specs: Vec<&'static TableSpec> =
            catalog::all().filter(|s| !self.logs.is_empty() || !is_beside_traces(&s.name)).collect();
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        specs
    }

    fn why_empty(&self, db: &Database, table: &str) -> Option<String> {
        if self.without.iter().any(|name| name == table) {
            return Some(format!(
                "table {table} was left out: etwhy serve was started with --without {table}"
            ));
        }
        why_empty(db, table)
    }

    fn recording_for(&self, table: &str) -> String {
        recording_for(table)
    }

    fn knowledge(&self, name: &str) -> serde_json::Value {
        serde_json::to_value(Knowledge::about(name, &self.rules)).unwrap_or_default()
    }
}
