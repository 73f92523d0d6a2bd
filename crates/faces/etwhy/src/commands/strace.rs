//! `etwhy strace`: system calls as strace shows them.

use crate::command::Command;
use crate::exit::Exit;
use crate::open::{Analysed, TraceArgs};
use crate::options::time::TimeArgs;
use crate::report::strace::{Clock, Lines, Style, Who, json_line, table};
use crate::report::terminal::{out, width};
use crate::who::chosen;
use anyhow::{Context as _, anyhow};
use clap::{ArgAction, Args as _, FromArgMatches as _};
use etwhy_analysis::strace::{
    ArgumentRows, Arguments, Calls, Choice, SummaryOrder, choose, summary, with_children,
};
use etwhy_table::reads;
use etwhy_trace::catalog::{
    ledger::LedgerRow, process::ProcessRow, syscall::SyscallRow, thread::ThreadRow, trace::TraceRow,
};
use std::collections::BTreeSet;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "strace",
    about: "System calls as strace shows them: who called what, with which result, how long it took",
    long_about: "Prints one line per system call, in the order in which they began: [pid/name tid], time, function, \
                 arguments, result, duration. Arguments are what file, registry, memory, process, network and disk \
                 events of the same thread tell that lie inside the call: record those too. Calls that a call makes \
                 (Zw routines of drivers, callbacks) stand further right.\n\n\
                 All threads of the chosen processes are shown; -f adds the processes that they started. Function names \
                 need symbols of the kernel; without them module and offset are shown.\n\n\
                 Classes for -e trace=: file, registry, network, process, memory, sync, ipc, security, object, gui, \
                 system.",
    examples: "Examples:\n  etwhy strace trace.etl -p notepad\n  etwhy strace trace.etl -p 4711 -f -e trace=file,registry --failed\n  \
               etwhy strace trace.etl -p server -e NtCreate*,NtOpen* -tt -T\n  \
               etwhy strace trace.etl -c -w -S calls --top 20\n  etwhy strace trace.etl -e '!sync' --from 2s --to 3s -o calls.txt\n  \
               etwhy strace trace.etl --json | jq 'select(.dur_ns > 1000000)'",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Only calls of this process, by id or name ('chrome;!4711'); may be given again
    #[arg(short = 'p', long = "process", visible_alias = "attach", value_name = "PID|NAME")]
    processes: Vec<String>,
    /// Also calls of processes that the chosen ones started
    #[arg(short = 'f', long)]
    follow_forks: bool,
    /// Which calls: trace=file,registry (classes), trace=NtReadFile,NtCreate* (names), trace=!sync (all others),
    /// status=failed. trace= may be left out; may be given again
    #[arg(short = 'e', long = "expr", value_name = "FILTER", allow_hyphen_values = true)]
    filters: Vec<String>,
    /// Only calls that failed
    #[arg(short = 'Z', long = "failed", visible_alias = "failed-only")]
    failed: bool,
    /// Only calls that succeeded
    #[arg(short = 'z', long = "successful-only")]
    successful: bool,
    /// Count calls, errors and time on processors by function in place of printing calls
    #[arg(short = 'c', long = "summary-only")]
    count: bool,
    /// Print calls and then the summary
    #[arg(short = 'C', long = "summary")]
    both: bool,
    /// Count wall-clock time in the summary, with waiting, in place of time on processors
    #[arg(short = 'w', long)]
    summary_wall_clock: bool,
    /// Sort the summary by time, min-time, max-time, avg-time, calls, errors or name
    #[arg(short = 'S', long, value_name = "KEY", default_value = "time")]
    summary_sort_by: String,
    /// Time on processors beside the duration
    #[arg(short = 'T', long)]
    syscall_times: bool,
    /// Local time of the traced machine; -tt with microseconds, -ttt seconds since 1970 (default: seconds since the
    /// start of the trace)
    #[arg(short = 't', action = ArgAction::Count)]
    time: u8,
    /// Time since the call before
    #[arg(short = 'r', long)]
    relative_timestamps: bool,
    #[command(flatten)]
    range: TimeArgs,
    /// At most N calls, or functions of the summary
    #[arg(short = 'n', long, value_name = "N")]
    top: Option<usize>,
    /// Most arguments of a call that are shown
    #[arg(long, value_name = "N", default_value_t = 4)]
    arguments: usize,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How to record what this command shows.
const RECORD: &str = "record them with context switches, for example with `etwhy record --print syscall`";

fn run(args: Args) -> anyhow::Result<Exit> {
    // Mistakes in options are said before a large trace is read.
    let mut choice = choice(&args)?;
    let order = order(&args.summary_sort_by)?;
    let analysed = args.trace.open()?.analyse(Some(tables(!args.count || choice.filter.has_classes())))?;
    let db = &analysed.db;
    let who = Who::read(db);
    (choice.from_ns, choice.to_ns) = args.range.in_trace(db)?;
    choice.processes = processes(&args, &who, &analysed)?;
    let calls = Calls::read(db).filter(|calls| !calls.is_empty());
    let Some(calls) = calls else {
        hints(&analysed);
        say!("etwhy: this trace has no system calls (SysCallEnter); {RECORD}");
        return Ok(analysed.exit);
    };
    let join = !args.count || choice.filter.has_classes();
    let arguments = if join { Arguments::read(db, &calls, &choice) } else { Arguments::default() };
    let rows = choose(&calls, &choice, &arguments);
    let mut out: Box<dyn Write> = match &args.output {
        None => Box::new(out()),
        Some(path) => Box::new(BufWriter::new(
            etwhy_export::create(path).with_context(|| format!("{}: cannot be written", path.display()))?,
        )),
    };
    if !args.count {
        let shown = rows.iter().take(args.top.unwrap_or(usize::MAX));
        if args.json {
            for &row in shown {
                json_line(&mut out, &who, &calls.get(row), &arguments)?;
            }
        } else {
            let sample = shown.clone().map(|&row| calls.get(row));
            let mut lines = Lines::new(&who, style(&args), sample);
            for &row in shown {
                lines.write(&mut out, &calls.get(row), arguments.of_call(row, args.arguments))?;
            }
        }
    }
    if args.count || args.both {
        let summary = summary(&calls, &rows, args.summary_wall_clock, order);
        let top = args.top.filter(|_| args.count).unwrap_or(usize::MAX);
        if args.json {
            for sum in summary.functions.iter().take(top) {
                etwhy_report::json::to_writer(&mut out, sum).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
        } else {
            table(&mut out, &summary, top)?;
        }
    }
    out.flush()?;
    hints(&analysed);
    if rows.is_empty() {
        say!(
            "etwhy: none of the {} system calls of this trace matches",
            etwhy_base::units::thousands(calls.len().into())
        );
    } else if !args.count && args.top.is_some_and(|top| top < rows.len()) {
        let (shown, all) = (args.top.unwrap_or(0), rows.len());
        say!("etwhy: {shown} of {} calls shown", etwhy_base::units::thousands(all as i128));
    }
    Ok(analysed.exit)
}

/// Tables to ask for.
fn tables(arguments: bool) -> BTreeSet<String> {
    let mut tables = reads::<(SyscallRow, ProcessRow, ThreadRow, TraceRow, LedgerRow)>();
    if arguments {
        tables.extend(reads::<ArgumentRows>());
    }
    tables.iter().map(|table| table.name.to_string()).collect()
}

fn choice(args: &Args) -> anyhow::Result<Choice> {
    let mut choice = Choice::default();
    for filter in &args.filters {
        choice.filter.add(filter, &mut choice.results).map_err(|e| anyhow!(e))?;
    }
    for (given, name) in [(args.failed, "failed"), (args.successful, "successful")] {
        if given {
            choice.results.add(name).map_err(|e| anyhow!(e))?;
        }
    }
    Ok(choice)
}

fn processes(args: &Args, who: &Who, analysed: &Analysed) -> anyhow::Result<Option<Vec<bool>>> {
    if args.processes.is_empty() {
        return Ok(None);
    }
    let mut wanted = vec![false; who.processes().len()];
    for filter in &args.processes {
        let these = chosen("process", who.processes(), filter)?;
        for (slot, hit) in wanted.iter_mut().zip(these) {
            *slot |= hit;
        }
    }
    if args.follow_forks {
        with_children(&analysed.db, &mut wanted);
    }
    Ok(Some(wanted))
}

fn order(name: &str) -> anyhow::Result<SummaryOrder> {
    let found = SummaryOrder::NAMES.iter().find(|(n, _)| *n == name).map(|(_, order)| *order);
    found.with_context(|| {
        let names: Vec<&str> = SummaryOrder::NAMES.iter().map(|(n, _)| *n).collect();
        format!("there is no sort key `{name}`; there are: {}", names.join(", "))
    })
}

fn style(args: &Args) -> Style {
    let terminal = args.output.is_none() && std::io::stdout().is_terminal();
    let given = args.output.is_none() && std::env::var_os("COLUMNS").is_some();
    Style {
        clock: match (args.relative_timestamps, args.time) {
            (true, _) => Clock::Relative,
            (_, 0) => Clock::SinceStart,
            (_, 1) => Clock::TimeOfDay,
            (_, 2) => Clock::TimeOfDayUs,
            _ => Clock::Epoch,
        },
        cpu_time: args.syscall_times,
        width: (terminal || given).then(width),
    }
}

/// What the recording lost, in a line each: results on standard output stay clean.
fn hints(analysed: &Analysed) {
    for line in super::dump::ledger_hints(analysed) {
        say!("etwhy: {line}");
    }
}
