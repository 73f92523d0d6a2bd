//! `etwhy sql`: questions in SQL.

use crate::catalog;
use crate::command::Command;
use crate::exit::Exit;
use crate::open::{Analysed, TraceArgs};
use crate::options::rows::{RowArgs, Written, write_selection};
use crate::report::missing::not_recorded;
use crate::report::terminal::{entry, manual, out};
use crate::shell::{self, Line};
use crate::stdout::watched;
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_export::{Format, extract};
use etwhy_sql::capability::Doors;
use etwhy_sql::{Engine, columns_read, functions, scalars, texts, views, words};
use etwhy_table::{Selection, Table, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Declaration.
pub static COMMAND: Command = Command {
    name: "sql",
    about: "Ask in SQL: all tables and views, over the trace itself",
    long_about: "Runs one SELECT over the tables of a trace (docs/reference/tables.md) and the shipped views. Only the tables \
                 that the query names are filled. The dialect is SQLite's; docs/sql.md says what databases share, and which \
                 functions there are. A query reads these tables and nothing else: no files, no settings. \
                 Without a query it is a shell: .help says what it understands.",
    examples: "Examples:\n  etwhy sql trace.etl \"SELECT * FROM dpc_by_module ORDER BY exclusive_ns DESC\"\n  \
               etwhy sql --demo \"SELECT class, sum(weight_ns) AS cpu_ns FROM stack_cost GROUP BY class\"",
    build: |command| Args::augment_args(command),
    run: |matches| run(Args::from_arg_matches(matches)?),
};

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// The query, if it is not a word beside the traces
    #[arg(long, short = 'c', value_name = "SQL")]
    command: Option<String>,
    #[command(flatten)]
    rows: RowArgs,
    /// At most N rows
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// In the shell: allow ATTACH and DETACH, so that questions can also read other SQLite files. They are opened for reading only.
    /// Use it with queries of your own: what runs can read any database that you can
    #[arg(long, conflicts_with = "command")]
    allow_attach: bool,
}

/// Tables that a query reads, views followed.
pub(crate) fn tables_of<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let mut open: Vec<String> = names.map(str::to_owned).collect();
    let mut seen = BTreeSet::new();
    let mut tables = BTreeSet::new();
    while let Some(word) = open.pop() {
        if !seen.insert(word.clone()) {
            continue;
        }
        if let Some(spec) = catalog::all().find(|spec| spec.name.eq_ignore_ascii_case(&word)) {
            tables.insert(spec.name.to_string());
        } else if let Some(view) = views::all().find(|view| view.name.eq_ignore_ascii_case(&word)) {
            open.extend(words(view.sql).into_iter().map(str::to_owned));
        }
    }
    tables
}

fn run(mut args: Args) -> anyhow::Result<Exit> {
    if args.command.is_none() {
        // The query may stand before the traces too.
        let is_query =
            |path: &PathBuf| !path.exists() && path.to_string_lossy().contains(char::is_whitespace);
        let query = args.trace.traces.iter().rposition(is_query).map(|at| args.trace.traces.remove(at));
        args.command = query.map(|query| query.to_string_lossy().into_owned());
    }
    if args.trace.traces.is_empty() && !args.trace.demo {
        bail!("which trace? Name it in front of the query, or use --demo");
    }
    if args.allow_attach && args.command.is_some() {
        bail!("--allow-attach is for the shell: leave the query out, then ATTACH and ask");
    }
    // A shell opens the trace with the first question, which is late for a mistyped name.
    for path in args.trace.traces.iter().filter(|path| *path != Path::new("-")) {
        std::fs::metadata(path).with_context(|| format!("{}: cannot open", path.display()))?;
    }
    let written = args.rows.written()?;
    let mut session = Session {
        args: &args,
        written,
        exit: Exit::Done,
        loaded: BTreeSet::new(),
        columns: BTreeMap::new(),
        engine: None,
        attached: Vec::new(),
    };
    match &args.command {
        Some(query) => session.answer(query)?,
        None => shell::run(|line| session.line(line))?,
    }
    Ok(session.exit)
}

/// A trace that is asked one or more questions. Tables are filled when a question first names them.
struct Session<'a> {
    args: &'a Args,
    written: Written<'a>,
    exit: Exit,
    loaded: BTreeSet<String>,
    /// The columns of an extract that are there, of tables that are not read whole.
    columns: BTreeMap<String, BTreeSet<String>>,
    engine: Option<(Engine, Analysed)>,
    /// `ATTACH` and `DETACH` so far, for the engine that a question about other tables needs.
    attached: Vec<String>,
}

impl Session<'_> {
    /// Sees to it that the tables of a query are there.
    fn engine(&mut self, query: &str) -> anyhow::Result<&Engine> {
        // Functions name their tables in quotes.
        let mut wanted = tables_of(words(query).into_iter());
        if functions::ALL.iter().any(|function| query.contains(function.name)) {
            wanted.extend(tables_of(texts(query).into_iter()));
        }
        // What functions read along with the table that they are given.
        if FUNCTIONS_ON_STACKS.iter().any(|name| query.contains(name)) {
            wanted.extend(["stack", "stack_frame", "frame"].map(str::to_owned));
        }
        if query.contains("time_of_day") {
            wanted.insert("trace".to_owned());
        }
        let missing = self.choose_columns(query, &wanted);
        if self.engine.is_none() || missing || !wanted.is_subset(&self.loaded) {
            // All anew, so that numbers of stacks, processes and files fit together.
            self.loaded.extend(wanted);
            self.load()?;
        }
        self.engine.as_ref().map(|(engine, _)| engine).context("there is no trace")
    }

    /// Makes the tables that were asked for so far.
    fn load(&mut self) -> anyhow::Result<()> {
        self.engine = None;
        let mut tables = self.loaded.clone();
        // What was lost, and what was recorded at all.
        tables.extend(["ledger", "event_type"].map(str::to_owned));
        let analysed = self.args.trace.open()?.analyse_columns(tables, self.columns.clone())?;
        if self.exit == Exit::Done {
            self.exit = analysed.exit;
        }
        let engine = Engine::with(&analysed.db, Doors { attach: self.args.allow_attach })?;
        for statement in &self.attached {
            engine.query("attached", statement)?;
        }
        self.engine = Some((engine, analysed));
        Ok(())
    }

    /// Which columns a query needs of an extract; true if some are not there. What is asked twice is read whole: somebody is at work
    /// with it.
    fn choose_columns(&mut self, query: &str, wanted: &BTreeSet<String>) -> bool {
        let [path] = self.args.trace.traces.as_slice() else { return false };
        if !extract::is_extract(path) {
            return false;
        }
        let specs = catalog::specs().filter(|spec| wanted.contains(spec.name.as_ref()));
        let by_name = functions::ALL.iter().map(|f| f.name).chain(FUNCTIONS_ON_STACKS.iter().copied());
        // What reads tables by itself, and statements that are no questions.
        let small = query.to_ascii_lowercase();
        let plain = !by_name.into_iter().any(|name| small.contains(name)) && self.attached.is_empty();
        let read = if plain { columns_read(specs, query) } else { None };
        let mut missing = false;
        for table in wanted {
            // A name of a table that stands for something else reads nothing.
            let columns = read.as_ref().map(|read| read.get(table).cloned().unwrap_or_default());
            match (self.loaded.contains(table), self.columns.get(table), columns) {
                (true, None, _) => {}
                (true, Some(there), Some(columns)) if columns.is_subset(there) => {}
                (true, Some(_), _) => {
                    self.columns.remove(table);
                    missing = true;
                }
                (false, _, Some(columns)) => {
                    self.columns.insert(table.clone(), columns);
                }
                (false, _, None) => {}
            }
        }
        missing
    }

    fn answer(&mut self, query: &str) -> anyhow::Result<()> {
        let (args, written) = (self.args, self.written);
        let mut answer = self.engine(query)?.query("result", query);
        if answer.is_err() && self.engine.as_ref().is_some_and(|(engine, _)| engine.missed_a_column()) {
            // SQLite reads more than it says, in joins by equal names.
            self.columns.clear();
            self.load()?;
            answer = self.engine(query)?.query("result", query);
        }
        let table = answer.map_err(catalog::explained)?;
        if let Some((engine, _)) = &self.engine {
            let lines = engine.kernel_lines();
            lines.iter().for_each(|line| tracing::info!("{line}"));
            if lines.is_empty() {
                tracing::info!("answered by SQLite alone");
            }
        }
        let first = query.split_whitespace().next().unwrap_or("");
        if ["attach", "detach"].iter().any(|word| first.eq_ignore_ascii_case(word)) {
            self.attached.push(query.to_owned());
            return Ok(());
        }
        let mut selection = Selection::all(&table);
        let rows = selection.len();
        if let Some(top) = args.top {
            selection = selection.top(top);
        }
        let mut out = out();
        write_selection(&selection, &written, rows, &mut out)?;
        out.flush()?;
        if let Some(line) = self.not_recorded(query, &table) {
            say!("etwhy: {line}");
        }
        Ok(())
    }

    /// Which tables of an answer are empty because their events were not recorded: zeros that come from them would look like facts.
    fn not_recorded(&self, query: &str, answer: &Table) -> Option<String> {
        let (_, analysed) = self.engine.as_ref().filter(|_| !self.args.trace.quiet)?;
        let db = &analysed.db;
        let named = words(query);
        let mut tables = tables_of(named.iter().copied());
        // Some words are names of columns.
        let specs = catalog::specs().filter(|spec| tables.contains(spec.name.as_ref()));
        match columns_read(specs, query) {
            Some(read) => tables.retain(|table| read.contains_key(table)),
            // Functions name their tables in quotes.
            None => tables.extend(tables_of(texts(query).into_iter())),
        }
        let says_nothing = says_nothing(answer);
        // Views read more than their answer needs.
        let is_named = |table: &str| named.iter().any(|word| word.eq_ignore_ascii_case(table));
        not_recorded(db, tables.iter().map(String::as_str).filter(|table| says_nothing || is_named(table)))
    }

    /// A line of the shell; false at the end.
    fn line(&mut self, line: Line) -> anyhow::Result<bool> {
        match line {
            Line::Query(query) => self.answer(&query)?,
            Line::Explain(query) => {
                let plan = self.engine(&query)?.explain(&query)?;
                writeln!(watched(), "{}", etwhy_export::sanitize(&plan))?;
            }
            Line::Tables => print_tables(&mut watched())?,
            Line::Schema(name) => print_schema(&mut watched(), &name)?,
            Line::Mode(name) => {
                let format = Format::by_name(&name)?;
                if format.binary {
                    bail!("a terminal cannot show {}; use --format and --output", format.name);
                }
                self.written.format = format;
            }
            Line::Help => writeln!(watched(), "{}", shell::HELP)?,
            Line::Wrong(text) => bail!(text),
            Line::Empty => {}
            Line::Quit => return Ok(false),
        }
        Ok(true)
    }
}

/// True for an answer without rows, or with nothing but zeros.
fn says_nothing(answer: &Table) -> bool {
    let nothing = |value: Value<'_>| matches!(value, Value::Null) || value.as_f64() == Some(0.0);
    let columns = answer.spec().columns.len();
    let rows = answer.rows() as u32;
    rows <= 100 && (0..rows).all(|row| (0..columns).all(|column| nothing(answer.cell(row, column))))
}

/// Functions that read stacks besides the table that they are given.
const FUNCTIONS_ON_STACKS: &[&str] = &["by_function", "stack_has", "symbol("];

fn print_tables(out: &mut impl Write) -> std::io::Result<()> {
    let mut specs: Vec<_> = catalog::specs().collect();
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    writeln!(out, "Tables")?;
    for spec in specs {
        entry(out, &format!("  {:<20} ", spec.name), &spec.title)?;
    }
    writeln!(out, "Views")?;
    for view in views::all() {
        entry(out, &format!("  {:<20} ", view.name), &view.title)?;
    }
    writeln!(out, "Table functions")?;
    for function in functions::ALL {
        let args: Vec<&str> = function.args.iter().map(|a| a.name).collect();
        entry(out, "  ", &format!("{}({})", function.name, args.join(", ")))?;
        entry(out, "      ", function.about)?;
    }
    writeln!(out, "Functions of values")?;
    for scalar in scalars::ALL {
        writeln!(out, "  {}", scalar.usage)?;
        entry(out, "      ", scalar.about)?;
    }
    Ok(())
}

fn print_schema(out: &mut impl Write, name: &str) -> anyhow::Result<()> {
    if let Some(spec) = catalog::specs().find(|spec| spec.name.eq_ignore_ascii_case(name)) {
        manual(out, &spec.manual())?;
        for column in spec.columns.iter() {
            let head = format!("  {:<22} {:<9} {:<9} ", column.name, column.ty.name(), column.unit.name());
            entry(out, &head, &column.doc)?;
        }
    } else if let Some(view) = views::all().find(|view| view.name.eq_ignore_ascii_case(name)) {
        writeln!(out, "{}", view.title)?;
        manual(out, &view.manual)?;
        writeln!(out)?;
        for (column, meaning) in &view.columns {
            entry(out, &format!("  {column:<22} "), meaning)?;
        }
        writeln!(
            out,
            "\n{}",
            view.sql.lines().filter(|l| !l.starts_with("--")).collect::<Vec<_>>().join("\n")
        )?;
    } else if let Some(function) = functions::ALL.iter().find(|f| f.name.eq_ignore_ascii_case(name)) {
        writeln!(out, "{}", function.about)?;
        for (n, arg) in function.args.iter().enumerate() {
            let needed = if n < function.required { "" } else { " (may be left out)" };
            writeln!(out, "  argument {:<13} {}{needed}", arg.name, arg.about)?;
        }
        for column in function.columns {
            writeln!(out, "  column   {:<13} {}", column.name, column.about)?;
        }
    } else {
        bail!("there is no table, view or function `{name}`; .tables lists them");
    }
    Ok(())
}
