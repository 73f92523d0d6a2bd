//! Table functions: operators in Rust that SQL can ask, with arguments.
//!
//! `SELECT * FROM aggregate('sample', 'cpu', 'weight_ns')`: what SQLite is slow at (full scans, grouping, folding of
//! stacks) is done over the columns. One file of `functions/` holds each.

use crate::cell::Cell;
use crate::limits::{HELD, Share};
use etwhy_table::{ColumnType, Database, Table};
use etwhy_vtab::{Ask, Context, Cursor, Op, Plan, Result, Source, ValueRef};

/// An argument or a column of the result.
pub struct Item {
    /// Name.
    pub name: &'static str,
    /// What it is stored as.
    pub ty: ColumnType,
    /// What it means, with its unit.
    pub about: &'static str,
}

/// Rows of a result.
pub type Rows = Vec<Vec<Cell>>;

/// A table function: one file holds its declaration, its manual page and its code.
pub struct Function {
    /// Name in SQL.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// Arguments in order; the first `required` must be given.
    pub args: &'static [Item],
    /// How many arguments there must be.
    pub required: usize,
    /// Columns of the result.
    pub columns: &'static [Item],
    /// Computes the rows. Arguments that are not given are null.
    pub run: fn(&Database, &Args) -> std::result::Result<Rows, String>,
}

/// The arguments of a call.
#[derive(Debug)]
pub struct Args(Vec<Cell>);

impl Args {
    /// Arguments, by position.
    pub fn new(args: Vec<Cell>) -> Args {
        Args(args)
    }

    /// A text; `None` if it is not given.
    pub fn text(&self, at: usize) -> Option<&str> {
        self.0.get(at).and_then(Cell::text)
    }

    /// A number; `None` if it is not given.
    pub fn number(&self, at: usize) -> Option<f64> {
        self.0.get(at).and_then(Cell::number)
    }

    /// A whole number; `None` if it is not given.
    pub fn integer(&self, at: usize) -> Option<i64> {
        self.number(at).map(|n| n as i64)
    }

    /// The table that an argument names.
    ///
    /// # Errors
    /// If there is none; the error names one like it.
    pub fn table<'d>(&self, at: usize, db: &'d Database) -> std::result::Result<&'d Table, String> {
        let name = self.text(at).unwrap_or("");
        db.get(name).ok_or_else(|| match db.similar(name) {
            Some(like) => format!("there is no table `{name}` here; did you mean `{like}`?"),
            None => format!("there is no table `{name}` here"),
        })
    }

    /// The columns that an argument names, separated by commas.
    ///
    /// # Errors
    /// If one is not there.
    pub fn columns(&self, at: usize, table: &Table) -> std::result::Result<Vec<usize>, String> {
        let names = self.text(at).unwrap_or("");
        names
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| column(table, name))
            .collect()
    }

    /// The column that an argument names.
    ///
    /// # Errors
    /// If it is not there.
    pub fn column(&self, at: usize, table: &Table) -> std::result::Result<usize, String> {
        column(table, self.text(at).unwrap_or(""))
    }
}

/// The position of a column.
///
/// # Errors
/// If it is not there; the error names all.
pub fn column(table: &Table, name: &str) -> std::result::Result<usize, String> {
    table.spec().column_index(name).ok_or_else(|| {
        let all: Vec<&str> = table.spec().columns.iter().map(|c| c.name.as_ref()).collect();
        format!("table `{}` has no column `{name}`; it has: {}", table.name(), all.join(", "))
    })
}

/// Rows whose time (the column by which the table is sorted, else its first time) lies in a range.
pub fn rows_between(table: &Table, from_ns: Option<i64>, to_ns: Option<i64>) -> Vec<u32> {
    let all = 0..table.rows() as u32;
    if from_ns.is_none() && to_ns.is_none() {
        return all.collect();
    }
    let spec = table.spec();
    let sorted = spec.sorted_by.as_deref().and_then(|name| spec.column_index(name));
    let time = spec.columns.iter().position(|c| c.role == etwhy_table::Role::Time);
    let Some(time) = sorted.or(time) else { return all.collect() };
    let (from, to) = (from_ns.unwrap_or(i64::MIN), to_ns.unwrap_or(i64::MAX));
    let within = |row: &u32| table.cell(*row, time).as_i64().is_some_and(|ns| ns >= from && ns < to);
    all.filter(within).collect()
}

/// A function for SQLite.
pub struct FunctionSource {
    /// The function.
    pub function: &'static Function,
    /// What it asks.
    pub db: Database,
}

impl Source for FunctionSource {
    fn declaration(&self) -> String {
        let item = |item: &Item| format!("\"{}\" {}", item.name, super::sql_type(item.ty));
        let mut columns: Vec<String> = self.function.columns.iter().map(item).collect();
        // Arguments may be called as a column of the result is.
        columns.extend(
            self.function.args.iter().map(|arg| format!("\"{}\" HIDDEN", arg_name(self.function, arg))),
        );
        format!("CREATE TABLE x({})", columns.join(", "))
    }

    fn plan(&self, ask: &Ask<'_>) -> Option<Plan> {
        let first = self.function.columns.len();
        let mut plan = Plan { exact: true, cost: 1000.0, rows: 1000, ..Plan::default() };
        for n in 0..self.function.args.len() {
            let column = first + n;
            if ask.unusable.contains(&column) {
                return None;
            }
            let place = ask.constraints.iter().position(|c| c.column == column && c.op == Op::Eq);
            if let Some(place) = place {
                plan.take.push(place);
                plan.text.push_str(&format!("{n};"));
            }
        }
        // Missing arguments are told when it runs: a plan that is refused gives a message nobody understands.
        Some(plan)
    }

    fn open(&self) -> Box<dyn Cursor + '_> {
        let share = HELD.nothing();
        Box::new(FunctionCursor { source: self, args: Vec::new(), rows: Vec::new(), share, at: 0 })
    }
}

fn arg_name(function: &Function, arg: &Item) -> String {
    let taken = function.columns.iter().any(|c| c.name == arg.name);
    if taken { format!("arg_{}", arg.name) } else { arg.name.to_owned() }
}

struct FunctionCursor<'s> {
    source: &'s FunctionSource,
    args: Vec<Cell>,
    rows: Rows,
    /// What the rows take: a query may have many cursors.
    share: Share<'static>,
    at: usize,
}

fn bytes_of(rows: &[Vec<Cell>]) -> usize {
    let cell = |cell: &Cell| size_of::<Cell>().saturating_add(cell.text().map_or(0, str::len));
    let row = |row: &Vec<Cell>| size_of::<Vec<Cell>>().saturating_add(row.iter().map(cell).sum());
    rows.iter().map(row).fold(0, usize::saturating_add)
}

fn owned(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Integer(n) => Cell::I64(n),
        ValueRef::Real(n) => Cell::F64(n),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        _ => Cell::Null,
    }
}

impl Cursor for FunctionCursor<'_> {
    fn filter(&mut self, plan: &str, args: &[ValueRef<'_>]) -> Result<()> {
        let function = self.source.function;
        let mut given = vec![Cell::Null; function.args.len()];
        for (place, value) in plan.split_terminator(';').zip(args) {
            if let Some(arg) = place.parse::<usize>().ok().and_then(|n| given.get_mut(n)) {
                *arg = owned(*value);
            }
        }
        if let Some(missing) = given.iter().take(function.required).position(|arg| *arg == Cell::Null) {
            let names: Vec<&str> = function.args.iter().map(|a| a.name).collect();
            let name = names.get(missing).copied().unwrap_or("");
            let text = format!("{}({}): argument `{name}` is missing", function.name, names.join(", "));
            return Err(etwhy_vtab::error(text));
        }
        self.args.clone_from(&given);
        self.at = 0;
        self.rows = Vec::new();
        self.share = HELD.nothing();
        let error = |text: String| etwhy_vtab::error(format!("{}: {text}", function.name));
        let rows = (function.run)(&self.source.db, &Args(given)).map_err(error)?;
        self.share.more(bytes_of(&rows)).map_err(error)?;
        self.rows = rows;
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.rows.len()
    }

    fn column(&self, column: usize, out: &mut Context) -> Result<()> {
        let columns = self.source.function.columns.len();
        let cell = match column.checked_sub(columns) {
            Some(arg) => self.args.get(arg),
            None => self.rows.get(self.at).and_then(|row| row.get(column)),
        };
        match cell {
            Some(Cell::I64(n)) => out.set_result(n),
            Some(Cell::F64(n)) => out.set_result(n),
            Some(Cell::Text(text)) => out.set_result(text),
            Some(Cell::Null) | None => out.set_result(Option::<i64>::None),
        }
    }

    fn rowid(&self) -> i64 {
        self.at as i64
    }
}
