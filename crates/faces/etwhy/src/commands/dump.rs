//! `etwhy dump`: rows of a table, filtered, sorted, cut.

mod parts;

use crate::catalog::{no_table, specs};
use crate::command::Command;
use crate::exit::Exit;
use crate::open::{Analysed, TraceArgs};
use crate::options::rows::{RowArgs, Written, write_selection};
use crate::options::time::{TimeArgs, When, in_order};
use crate::report::missing::{not_recorded, why_empty};
use crate::report::services::Services;
use crate::report::terminal::{entry, manual, out};
use crate::who::chosen;
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_table::{
    AdHocBuilder, ColumnRef, ColumnSpec, ColumnType, Database, Derived, Make, Memory, Pattern, Predicate,
    Role, Rows, Selection, SortKey, Sym, Table, TableSpec, Texts, Unit, Value,
};
use etwhy_trace::catalog::{
    file::FileRow,
    mark::MarkRow,
    process::ProcessRow,
    stack::{FrameRow, StackRow},
    thread::ThreadRow,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;

/// Declaration.
pub static COMMAND: Command = Command {
    name: "dump",
    about: "Rows of a table: filter, sort, top-N, as table, CSV, JSON or Parquet",
    long_about: "Prints rows of a table of the trace. `etwhy dump --list` names the tables, `etwhy dump TABLE --help-table` \
                 explains its columns.\n\n\
                 Filters: `;` separates, `!` excludes, `*` and `?` are wildcards, case does not matter. Numbers take \
                 =, !=, <, <=, >, >= and ranges (1..5), with units (10ms, 4KiB); a time or size column can be asked \
                 in any unit (dur_us, dur_ms, size_mb).",
    examples: "Examples:\n  etwhy dump process trace.etl --columns name,pid,command_line\n  \
               etwhy dump sample trace.etl --process 'chrome;!4711' --from 2s --to 3s --top 100\n  \
               etwhy dump sample trace.etl --service Dnscache --top 100\n  \
               etwhy dump disk_io trace.etl --where 'dur_us>100' --sort -dur_ms --top 20\n  \
               etwhy dump disk_io trace.etl --sort -dur_ms --top-per process=3\n  \
               etwhy dump event trace.etl --where 'provider=*DotNET*' --format csv -o events.csv\n  \
               etwhy dump sample trace.etl --format parquet -o samples.parquet",
    build: |command| {
        // Of one word `in_either_order` says what is missing.
        let enough = ["list", "help_table", "table"];
        Args::augment_args(command).mut_arg("traces", |arg| arg.required_unless_present_any(enough))
    },
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args, Clone)]
struct Args {
    /// Table to print
    #[arg(value_name = "TABLE")]
    table: Option<String>,
    #[command(flatten)]
    trace: TraceArgs,
    /// Only rows of these processes, by name or id: 'chrome;!4711'
    #[arg(long, value_name = "FILTER")]
    process: Option<String>,
    /// Only rows of these services, by name: rows of threads that work for one of them, or, in tables without
    /// threads, of processes that host one
    #[arg(long, value_name = "FILTER")]
    service: Option<String>,
    #[command(flatten)]
    time: TimeArgs,
    /// Conditions that all must hold: 'col=pattern', 'cpu_ms>=100', 'dur_us>100'
    #[arg(long = "where", value_name = "CONDITION")]
    conditions: Vec<String>,
    /// Sort by these columns, `-` in front for largest first
    #[arg(long, value_name = "COLUMN", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// At most N rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// At most N rows for each value of a column, e.g. process=3 (3 if no number is given)
    #[arg(long, value_name = "COLUMN[=N]")]
    top_per: Option<String>,
    /// Columns to print: 'ts_s,process,*' or '!stack_id'
    #[arg(long, value_name = "LIST")]
    columns: Option<String>,
    /// Count times from the first mark whose text matches; `--from -10ms` is before it
    #[arg(long, value_name = "MARK")]
    zero: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// Name the tables
    #[arg(long)]
    list: bool,
    /// Explain the table's columns
    #[arg(long)]
    help_table: bool,
}

fn is_table(name: &str) -> bool {
    specs().any(|spec| spec.name.eq_ignore_ascii_case(name))
}

/// Puts the table first if a trace stands there, and says what is missing.
fn in_either_order(args: &mut Args) -> anyhow::Result<()> {
    let Some(table) = &mut args.table else {
        bail!("which table? `etwhy dump --list` names them");
    };
    let traces = &mut args.trace.traces;
    if !is_table(table) && Path::new(table.as_str()).exists() {
        let Some(at) = traces.iter().position(|trace| is_table(&trace.to_string_lossy())) else {
            bail!(
                "{table}: which table of it? `etwhy dump --list` names them, `etwhy dump TABLE {table}` prints one"
            );
        };
        let trace = std::mem::replace(table, traces.remove(at).to_string_lossy().into_owned());
        traces.insert(0, trace.into());
    }
    if traces.is_empty() && !args.trace.demo && !args.help_table && is_table(table) {
        bail!("which trace? `etwhy dump {table} TRACE.etl`, or --demo");
    }
    Ok(())
}

fn run(mut args: Args) -> anyhow::Result<Exit> {
    let mut out = out();
    if args.list {
        let mut all: Vec<_> = specs().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        if args.rows.are_for_people() {
            for spec in all {
                entry(&mut out, &format!("{:<18} ", spec.name), &spec.title)?;
            }
        } else {
            let columns = [("name", "Name of the table."), ("title", "What it holds.")];
            let rows = all.iter().map(|spec| [&*spec.name, &*spec.title].map(Cow::Borrowed));
            args.rows.write_list("tables", columns, rows, &mut out)?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    in_either_order(&mut args)?;
    let name = args.table.clone().unwrap_or_default();
    let Some(spec) = specs().find(|s| s.name.eq_ignore_ascii_case(&name)) else {
        if let Some(view) = etwhy_sql::views::all().find(|v| v.name.eq_ignore_ascii_case(&name)) {
            bail!("`{name}` is a view: `etwhy sql TRACE \"SELECT * FROM {}\"` shows it", view.name);
        }
        return Err(no_table(&name));
    };
    if args.help_table {
        if args.rows.are_for_people() {
            manual(&mut out, &spec.manual())?;
            for column in spec.columns.iter() {
                let head = format!("  {:<22} {:<10} ", column.name, column.unit.name());
                entry(&mut out, &head, &column.doc)?;
            }
        } else {
            let columns = [
                ("name", "Name of the column."),
                ("type", "What a cell is stored as."),
                ("unit", "What a number is measured in."),
                ("meaning", "What it says."),
            ];
            let rows = spec.columns.iter().map(|column| {
                [&*column.name, column.ty.name(), column.unit.name(), &*column.doc].map(Cow::Borrowed)
            });
            args.rows.write_list("columns", columns, rows, &mut out)?;
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let written = args.rows.written()?;
    let mut tables: BTreeSet<String> =
        ["process", "thread", "ledger", "event_type"].iter().map(|t| (*t).to_owned()).collect();
    tables.insert(spec.name.to_string());
    for column in spec.columns.iter() {
        match column.role {
            Role::Stack | Role::Frame => tables.insert("stack".to_owned()),
            Role::Id if column.name.ends_with("file_id") => tables.insert("file".to_owned()),
            _ => false,
        };
    }
    if args.zero.is_some() {
        tables.insert("mark".to_owned());
    }
    if args.time.needs_span() {
        tables.insert("trace".to_owned());
    }
    let opened = args.trace.open()?;
    let opened = if parts::suffice(&args, spec, &written) { opened.with_late_events() } else { opened };
    let mut analysed = opened.analyse(Some(tables))?;
    let rows = match analysed.events.take() {
        Some(events) => {
            parts::write(&args, &mut analysed, &events, written, &mut out)?;
            events.rows()
        }
        None => {
            let written = Written { threads: analysed.threads, ..written };
            write(&args, &analysed, spec, &written, None, &mut out)?;
            analysed.db.get(&spec.name).map_or(0, Table::rows)
        }
    };
    out.flush()?;
    for line in ledger_hints(&analysed) {
        say!("etwhy: {line}");
    }
    // Conditions that no row meets are no reason to record again, and what could not be read may have been recorded.
    let db = &analysed.db;
    if analysed.exit == Exit::Done
        && rows == 0
        && let Some(line) =
            why_empty(db, &spec.name).or_else(|| not_recorded(db, std::iter::once(&*spec.name)))
    {
        say!("etwhy: {line}");
    }
    Ok(analysed.exit)
}

/// What the recording lost, in a line each: results on standard output stay clean. What could not be read has been
/// said already.
pub(super) fn ledger_hints(analysed: &Analysed) -> Vec<String> {
    let anomalies = crate::report::quality::ledger(&analysed.db);
    anomalies
        .iter()
        .filter(|a| a.severity == "data_loss" && !crate::exit::is_missing(a))
        .map(|a| format!("{} x {}: {}", a.count, a.name, a.meaning))
        .collect()
}

/// `all_matching`: how many rows match, if the table has only the first of them.
fn write(
    args: &Args,
    analysed: &Analysed,
    spec: &'static TableSpec,
    written: &Written<'_>,
    all_matching: Option<usize>,
    out: &mut (impl Write + Send),
) -> anyhow::Result<()> {
    let db = &analysed.db;
    let table = db.get(&spec.name).context("the pass made no such table")?;
    let zero = zero(args, db)?;
    // Names cost room for every row: if few rows are wanted and no name decides which, those are chosen first.
    let few = if zero == 0 { few_rows(table, db, args)? } else { None };
    let named = match &few {
        Some((rows, _)) => with_names(db, rows, zero, &analysed.memory)?,
        None => with_names(db, table, zero, &analysed.memory)?,
    };
    let (mut selection, matching) = match &few {
        Some((_, matching)) => (Selection::all(&named), *matching),
        None => choose(&named, db, args)?,
    };
    if args.columns.is_none() && written.format.name == "table" {
        selection = for_eyes(selection);
    }
    if let Some(list) = &args.columns {
        selection = selection.columns(list)?;
    }
    write_selection(&selection, written, all_matching.unwrap_or(matching), out)
}

/// The rows that are wanted, in their order, and how many match without `--top`.
fn choose<'t>(table: &'t Table, db: &Database, args: &Args) -> anyhow::Result<(Selection<'t>, usize)> {
    let spec = table.spec();
    let mut predicates = Vec::new();
    for condition in &args.conditions {
        predicates.push(Predicate::parse(condition, spec)?);
    }
    let keys = args.sort.iter().map(|k| SortKey::parse(k, spec)).collect::<Result<Vec<_>, _>>()?;
    let per = args.top_per.as_deref().map(|text| top_per(text, spec)).transpose()?;
    let mut selection = wanted_rows(Selection::all(table), db, args)?.filter(&predicates);
    let matching = selection.len();
    let limit = if per.is_none() { args.top } else { None };
    if !keys.is_empty() {
        selection = selection.sort(&keys, limit);
    }
    if let Some((column, n)) = &per {
        selection = selection.top_per(column, *n);
    }
    if let Some(n) = args.top {
        selection = selection.top(n);
    }
    Ok((selection, matching))
}

/// As [`choose`], as a table of its own, if the table without names suffices for it and most rows go.
fn few_rows(table: &Table, db: &Database, args: &Args) -> anyhow::Result<Option<(Table, usize)>> {
    // What it does not know (a column of names, or a mistake) is told by the table with names.
    let Ok((selection, matching)) = choose(table, db, args) else { return Ok(None) };
    if selection.len() > table.rows() / 2 {
        return Ok(None);
    }
    Ok(Some((selection.to_table()?, matching)))
}

/// For people: without numbers that have a name beside them, and without columns that are empty in all rows shown.
fn for_eyes(selection: Selection<'_>) -> Selection<'_> {
    let table = selection.table();
    let rows: Vec<u32> = selection.row_ids().take(1000).collect();
    let shown = selection.shown().to_vec();
    let named = |name: &str| table.spec().column_index(name).is_some();
    let keep = |column: &ColumnRef| {
        let Some(spec) = table.spec().columns.get(column.index) else { return true };
        // The table of the thing itself keeps its number: it is what other tables refer to.
        let own = table.spec().name == "stack" && spec.role == Role::Stack;
        let has_name = (!own && name_for(spec).is_some_and(|name| named(&name)))
            || (spec.role == Role::Frame && says_frame(table.spec()));
        let empty = |row: &u32| matches!(table.cell(*row, column.index), Value::Null | Value::Text(""));
        !has_name && (rows.is_empty() || !rows.iter().all(empty))
    };
    selection.with_shown(shown.into_iter().filter(keep).collect())
}

fn top_per(text: &str, spec: &TableSpec) -> anyhow::Result<(ColumnRef, usize)> {
    let (column, n) = match text.split_once('=') {
        Some((column, n)) => {
            (column, n.parse().with_context(|| format!("`{n}` in --top-per is not a number"))?)
        }
        None => (text, 3),
    };
    Ok((ColumnRef::find(column, spec)?, n))
}

/// The time of the mark that `--zero` names.
fn zero(args: &Args, db: &Database) -> anyhow::Result<i64> {
    let Some(wanted) = &args.zero else { return Ok(0) };
    let marks = db.read::<MarkRow>()?;
    let pattern = Pattern::parse(wanted);
    let Some(mark) = marks.iter().find(|mark| pattern.matches(mark.text())) else {
        if marks.is_empty() {
            bail!("no mark matches `{wanted}`: this trace has no marks");
        }
        let known: BTreeSet<&str> = marks.iter().map(|mark| mark.text()).take(20).collect();
        bail!("no mark matches `{wanted}`; marks of this trace: {}", Vec::from_iter(known).join(", "));
    };
    Ok(mark.ts_ns())
}

/// True for tables that name the function of their frames themselves.
fn says_frame(spec: &TableSpec) -> bool {
    ["routine", "function", "start_function", "leaf"].iter().any(|name| spec.column_index(name).is_some())
}

/// The name of a column with names, from that of the one with numbers: `upid` gives `process`, `old_upid` gives
/// `old_process`.
fn name_for(column: &ColumnSpec) -> Option<String> {
    let (number, name) = match column.role {
        Role::Process => ("upid", "process"),
        Role::Thread => ("utid", "tid"),
        Role::Stack => ("stack_id", "leaf"),
        Role::Frame => ("frame_id", "frame"),
        Role::Id => ("file_id", "path"),
        _ => return None,
    };
    column.name.strip_suffix(number).map(|prefix| format!("{prefix}{name}"))
}

/// The table with names beside the numbers (`process`, `tid`, `path`, `leaf`), and times counted from `zero`.
fn with_names(db: &Database, table: &Table, zero: i64, memory: &Memory) -> anyhow::Result<Table> {
    let own_pool = db.table::<ProcessRow>().is_ok_and(|p| !p.texts().is_same(table.texts()));
    let repooled = if own_pool { Some(with_texts_of_names(db, table, memory)?) } else { None };
    let table = repooled.as_ref().unwrap_or(table);
    Ok(table.with_derived(&names(db, table.spec(), table.texts(), own_pool, zero), memory)?)
}

/// The columns that [`with_names`] adds to a table with these columns and texts. `own_pool`: the texts are not those of the
/// other tables.
fn names(db: &Database, spec: &TableSpec, texts: &Texts, own_pool: bool, zero: i64) -> Vec<Derived<'static>> {
    let labels: Rc<[Option<Sym>]> = etwhy_analysis::operators::process_names(db)
        .iter()
        .map(|(name, pid)| texts.find(&format!("{name} ({pid})")))
        .collect();
    let sym = |text: Option<&str>, own: Option<Sym>| if own_pool { texts.find(text?) } else { own };
    let has = |role: Role| spec.columns.iter().any(|c| c.role == role && name_for(c).is_some());
    let threads = if has(Role::Thread) { db.read_or_empty::<ThreadRow>() } else { Rows::default() };
    let tids: Rc<[_]> = threads.iter().map(|row| i32::try_from(row.tid()).ok()).collect();
    let files = if has(Role::Id) { db.read_or_empty::<FileRow>() } else { Rows::default() };
    let paths: Rc<[_]> = files.iter().map(|row| sym(row.path(), row.views.path.sym(row.at))).collect();
    let frames = if has(Role::Frame) { db.read_or_empty::<FrameRow>() } else { Rows::default() };
    let frames: Rc<[_]> =
        frames.iter().map(|row| sym(Some(row.label()), row.views.label.sym(row.at))).collect();
    let stacks = if has(Role::Stack) { db.read_or_empty::<StackRow>() } else { Rows::default() };
    let leaves: Rc<[_]> = stacks.iter().map(|row| sym(row.leaf(), row.views.leaf.sym(row.at))).collect();
    let mut derived = Vec::new();
    for (from, column) in spec.columns.iter().enumerate() {
        if column.role == Role::Time && zero != 0 {
            let make = Make::I64(Box::new(move |n: i64| Some(n.saturating_sub(zero))));
            derived.push(Derived { from, replaces: true, spec: column.clone(), make });
        }
        let Some(name) = name_for(column).filter(|name| spec.column_index(name).is_none()) else { continue };
        // The tables that the names come from say them already.
        let own = match column.role {
            Role::Process => "process",
            Role::Thread => "thread",
            Role::Stack => "stack",
            Role::Frame => "frame",
            _ => "file",
        };
        let said = column.role == Role::Frame && says_frame(spec);
        if said || spec.name == own || (spec.name == "stack_frame" && column.role == Role::Stack) {
            continue;
        }
        let of = |list: &Rc<[Option<Sym>]>| {
            let list = Rc::clone(list);
            Make::Text(Box::new(move |n: i64| usize::try_from(n).ok().and_then(|n| *list.get(n)?)))
        };
        let (ty, role, doc, make) = match column.role {
            Role::Process => (ColumnType::Text, Role::Name, "Name and id of the process.", of(&labels)),
            Role::Thread => {
                let tids = Rc::clone(&tids);
                let tid = move |n: i64| usize::try_from(n).ok().and_then(|n| *tids.get(n)?);
                (ColumnType::I32, Role::Tid, "Thread id.", Make::I32(Box::new(tid)))
            }
            Role::Frame => (ColumnType::Text, Role::Name, "Function and module of the frame.", of(&frames)),
            Role::Stack => (ColumnType::Text, Role::Name, "Innermost frame of the stack.", of(&leaves)),
            _ => (ColumnType::Text, Role::Path, "Path of the file.", of(&paths)),
        };
        let spec =
            ColumnSpec { name: name.into(), ty, unit: Unit::None, role, doc: doc.into(), nullable: true };
        derived.push(Derived { from, replaces: false, spec, make });
    }
    derived
}

/// A table that was made from others has texts of its own: the same rows, with the texts of the names that its
/// numbers stand for.
fn with_texts_of_names(db: &Database, table: &Table, memory: &Memory) -> anyhow::Result<Table> {
    let processes = etwhy_analysis::operators::process_names(db);
    let (stacks, frames) = (db.read_or_empty::<StackRow>(), db.read_or_empty::<FrameRow>());
    let files = db.read_or_empty::<FileRow>();
    let mut rows = AdHocBuilder::new(table.spec().clone(), memory);
    let columns = table.spec().columns.len();
    for row in 0..table.rows() as u32 {
        let cells: Vec<Value<'_>> = (0..columns).map(|column| table.cell(row, column)).collect();
        for (cell, column) in cells.iter().zip(table.spec().columns.iter()) {
            let Some(n) = cell.as_i64().and_then(|n| u32::try_from(n).ok()) else { continue };
            let name = match column.role {
                Role::Process => {
                    let process = processes.get(n as usize);
                    process.map(|(name, pid)| Cow::Owned(format!("{name} ({pid})")))
                }
                Role::Stack => stacks.get(n).and_then(|row| row.leaf()).map(Cow::Borrowed),
                Role::Frame => frames.get(n).map(|row| Cow::Borrowed(row.label())),
                Role::Id => files.get(n).and_then(|row| row.path()).map(Cow::Borrowed),
                _ => None,
            };
            if let Some(name) = name {
                rows.intern(&name);
            }
        }
        rows.push(&cells)?;
    }
    Ok(rows.finish()?)
}

/// Times that are wanted, on the clock of the table, whose zero is the mark of `--zero`.
fn range(args: &Args, db: &Database) -> anyhow::Result<(Option<i64>, Option<i64>)> {
    if args.zero.is_none() {
        return args.time.in_trace(db);
    }
    let zero = zero(args, db)?;
    let one = |when: Option<When>| match when {
        Some(When::BeforeEnd(ns)) => Ok(Some(ns.saturating_neg())),
        Some(when @ When::AfterStart(_)) => when.in_trace(db).map(Some),
        Some(when) => Ok(Some(when.in_trace(db)?.saturating_sub(zero))),
        None => anyhow::Ok(None),
    };
    in_order(one(args.time.from)?, one(args.time.to)?)
}

/// The rows in range and of the wanted processes.
fn wanted_rows<'t>(
    mut selection: Selection<'t>,
    db: &Database,
    args: &Args,
) -> anyhow::Result<Selection<'t>> {
    let spec = selection.table().spec();
    let time =
        spec.columns.iter().position(|c| c.role == Role::Time && Some(&c.name) == spec.sorted_by.as_ref());
    let time = time.or_else(|| spec.columns.iter().position(|c| c.role == Role::Time));
    let (from, to) = range(args, db)?;
    if from.is_some() || to.is_some() {
        let Some(time) = time else {
            bail!("table `{}` has no time, so --from and --to say nothing", spec.name);
        };
        selection = selection.filter_number(time, |at| {
            from.is_none_or(|f| at.is_some_and(|a| a >= f)) && to.is_none_or(|t| at.is_some_and(|a| a < t))
        });
    }
    if let Some(filter) = &args.process {
        let Some(column) = spec.columns.iter().position(|c| c.role == Role::Process) else {
            bail!("table `{}` has no process column, so --process says nothing", spec.name);
        };
        let wanted = chosen("process", &etwhy_analysis::operators::process_names(db), filter)?;
        selection = selection.filter_number(column, |upid| {
            upid.and_then(|u| usize::try_from(u).ok()).and_then(|u| wanted.get(u).copied()) == Some(true)
        });
    }
    if let Some(filter) = &args.service {
        let table = selection.table();
        let services = Services::matching(db, spec, filter)?;
        selection =
            selection.filter_rows(|row| services.wants(row, &|column| table.cell(row, column).as_i64()));
    }
    Ok(selection)
}
