//! `etwhy path`: what a stretch of a thread consisted of, and who was to blame for each wait.

use crate::command::Command;
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::options::time::TimeArgs;
use crate::report::terminal::{out, width};
use crate::who::{no_such, thread_names};
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::critical_path::{Cause, Path, paths};
use etwhy_analysis::operators::process_names;
use etwhy_base::units::duration_ns;
use etwhy_export::{sanitize, text};
use etwhy_table::Database;
use etwhy_trace::catalog::critical_path::{NameOrId, Stretch};
use etwhy_trace::catalog::event_type::EventTypeRow;
use std::collections::BTreeSet;
use std::io::Write;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "path",
    about: "Critical path: what a thread did in a time range, and who ended each of its waits",
    long_about: "Walks a stretch of a thread backwards: its own running time, its time in the queue for a processor, and for each \
                 wait the thread that ended it, transitively. All pieces together are as long as the stretch. Needs context switches and \
                 ReadyThread events.\n\n\
                 Without --process and --thread it explains every delay of a window that the trace reports, or, where there are none, the longest waits of each \
                 process that another thread ended.",
    examples: "Examples:\n  etwhy path trace.etl --process app --from 2s --to 3.5s\n  etwhy path trace.etl --thread 4711\n  \
               etwhy path trace.etl --json",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Process by name or id; of its threads the one that ran longest
    #[arg(long, value_name = "NAME|PID")]
    process: Option<String>,
    /// Thread by name or id
    #[arg(long, value_name = "NAME|TID")]
    thread: Option<String>,
    #[command(flatten)]
    time: TimeArgs,
    /// At most N causes and pieces
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const TABLES: &[&str] = &["critical_path", "process", "thread", "stack", "event_type", "ledger"];

fn run(args: Args) -> anyhow::Result<Exit> {
    let mut stretches = Vec::new();
    let of_thread = args.process.is_some() || args.thread.is_some();
    anyhow::ensure!(
        of_thread || (args.time.from.is_none() && args.time.to.is_none()),
        "--from and --to are of a thread: name it with --process or --thread"
    );
    if of_thread {
        // The pass follows a stretch only if it knows its time before.
        let db = match args.time.needs_span() {
            true => args.trace.open()?.analyse(Some(BTreeSet::from(["trace".to_owned()])))?.db,
            false => Database::new(),
        };
        let (from, to) = args.time.in_trace(&db)?;
        stretches.push(Stretch {
            process: args.process.clone().map(NameOrId),
            thread: args.thread.clone().map(NameOrId),
            from_ns: from.unwrap_or(i64::MIN),
            to_ns: to.unwrap_or(i64::MAX),
        });
    }
    let tables = TABLES.iter().map(|t| (*t).to_owned()).collect();
    let analysed = args.trace.open()?.analyse_stretches(Some(tables), stretches)?;
    let db = &analysed.db;
    for (what, wanted, names) in
        [("process", &args.process, process_names(db)), ("thread", &args.thread, thread_names(db))]
    {
        let Some(wanted) = wanted else { continue };
        let given = NameOrId(wanted.clone());
        let is = |(name, id): &(String, i64)| u32::try_from(*id).is_ok_and(|id| given.matches(name, id));
        if !names.iter().any(is) {
            return Err(no_such(what, &names, wanted));
        }
    }
    let found = paths(db);
    let switches = db.read_or_empty::<EventTypeRow>().iter().any(|row| row.name() == "CSwitch");
    let mut out = out();
    if args.json {
        etwhy_report::json::to_writer_pretty(&mut out, &found)?;
        writeln!(out)?;
    } else if found.is_empty() || !switches {
        let why = match (switches, of_thread) {
            (false, _) => {
                "cannot tell: context switches were not recorded (keywords CSWITCH and DISPATCHER; see `etwhy record`)"
            }
            (true, true) => "no such thread lived in that stretch",
            (true, false) => {
                "the trace reports no delay of a window, and no process waited long for another thread; \
                 name a stretch with --process or --thread, --from and --to"
            }
        };
        for line in text::wrap(why, width()) {
            writeln!(out, "{line}")?;
        }
    } else {
        for path in &found {
            show(&mut out, path, args.top)?;
        }
    }
    out.flush()?;
    Ok(analysed.exit)
}

fn show(out: &mut impl Write, path: &Path, top: usize) -> anyhow::Result<()> {
    let (from, length) = (seconds(path.start_ns), duration_ns(path.dur_ns));
    writeln!(out, "{} thread {}: {length} from {from} ({})", sanitize(&path.process), path.tid, path.origin)?;
    writeln!(out, "\ncauses")?;
    for cause in path.causes.iter().take(top) {
        line(out, cause, format!("{:>5.1} %  {:>10}", cause.percent, duration_ns(cause.dur_ns)))?;
    }
    if path.causes.len() > top {
        writeln!(out, "  … {} more (--top)", path.causes.len() - top)?;
    }
    writeln!(out, "\nchain, latest first")?;
    for link in path.links.iter().take(top) {
        let indent = "  ".repeat((link.depth.max(0) as usize).min(8));
        let times =
            format!("{:>12}  {:>10}  {indent}", seconds(link.start_ns), duration_ns(link.cause.dur_ns));
        line(out, &link.cause, times)?;
    }
    if path.links.len() > top {
        writeln!(out, "  … {} more (--top)", path.links.len() - top)?;
    }
    writeln!(out)?;
    Ok(())
}

/// A moment to the microsecond.
fn seconds(ns: i64) -> String {
    format!("{:.6} s", ns as f64 / 1e9)
}

fn line(out: &mut impl Write, cause: &Cause, start: String) -> anyhow::Result<()> {
    let what = match cause.kind.as_str() {
        "run" => format!("{} thread {} ran", cause.process, cause.tid),
        "interrupt" => {
            format!("DPCs and ISRs, most of them of {}, while thread {} ran", cause.process, cause.tid)
        }
        "ready" => format!("{} thread {} was ready, no processor", cause.process, cause.tid),
        "wait" => {
            let by = if cause.readied_in_dpc { ", ended by a DPC" } else { "" };
            format!(
                "{} thread {} waited: {}{by}",
                cause.process,
                cause.tid,
                cause.wait_reason.as_deref().unwrap_or("unknown")
            )
        }
        _ => format!("{} thread {}: not recorded", cause.process, cause.tid),
    };
    // The stack of a run is where the thread had come back, which says nothing of what it ran.
    let leaf = cause.leaf.as_deref().filter(|_| cause.kind != "run");
    let leaf = leaf.map_or(String::new(), |leaf| format!("  {leaf}"));
    let whole = sanitize(&format!("  {start}  {what}{leaf}")).into_owned();
    writeln!(out, "{}", text::truncate_end(&whole, width()))?;
    Ok(())
}
