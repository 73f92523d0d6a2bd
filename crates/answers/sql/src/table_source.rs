//! A table as SQLite sees it: straight over the columns, conditions and grouping pushed down.
//!
//! * A range of the column by which the table is sorted becomes a range of rows, by binary search.
//! * Equality of integers and of repeating texts compares numbers; when it is asked again and again (a join), an
//!   index is made.
//! * `GROUP BY` gets rows that stand together already ([`Groups`]), so that SQLite does not sort.
//!
//! SQLite checks all conditions again, so what is pushed down may be coarser than what was asked, never finer.

use super::groups::{Groups, Index};
use etwhy_table::{ColumnType, ColumnView, Sym, Table};
use etwhy_vtab::{Ask, Constraint, Context, Cursor, Op, Plan, Result, Source, ValueRef};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Scans of one column for one value before an index pays.
const SCANS_BEFORE_INDEX: u32 = 2;

/// A table for SQLite.
pub struct TableSource {
    table: Table,
    /// Per column: how often it was searched, and the index once there is one.
    indexes: Vec<(AtomicU32, Mutex<Option<Arc<Index>>>)>,
    sorted: Option<usize>,
    /// The only rows that there are, ascending; all if none are given.
    rows: Option<Vec<u32>>,
    /// A column that was asked for was not read.
    pub missed: Arc<AtomicBool>,
}

impl TableSource {
    /// Shares the table's columns.
    pub fn new(table: Table) -> TableSource {
        let spec = table.spec();
        let sorted = spec.sorted_by.as_deref().and_then(|name| spec.column_index(name)).filter(|&column| {
            spec.columns.get(column).is_some_and(|c| c.ty == ColumnType::I64 && !c.nullable)
        });
        let indexes = spec.columns.iter().map(|_| (AtomicU32::new(0), Mutex::new(None))).collect();
        TableSource { indexes, sorted, table, rows: None, missed: Arc::default() }
    }

    /// Some rows of a table, ascending.
    pub fn of_rows(table: Table, rows: Vec<u32>) -> TableSource {
        TableSource { rows: Some(rows), ..TableSource::new(table) }
    }

    /// An error if the column was not read.
    fn read(&self, column: usize) -> Result<()> {
        let name = match self.table.spec().columns.get(column) {
            Some(spec) if !self.table.has(column) && self.table.rows() > 0 => &spec.name,
            _ => return Ok(()),
        };
        self.missed.store(true, Ordering::Relaxed);
        Err(etwhy_vtab::error(format!("column {}.{name} was not read", self.table.name())))
    }

    fn index(&self, column: usize) -> Option<Arc<Index>> {
        let (searched, index) = self.indexes.get(column)?;
        let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
        if index.is_none() {
            if searched.fetch_add(1, Ordering::Relaxed) < SCANS_BEFORE_INDEX {
                return None;
            }
            *index = Some(Arc::new(Index::new(&self.table, column)));
        }
        index.clone()
    }

    /// First row whose value in the sorted column is not less than `value`.
    fn lower_bound(&self, column: usize, value: i64) -> u32 {
        let (mut low, mut high) = (0, self.table.rows() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.table.cell(middle, column).as_i64().is_some_and(|v| v < value) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The SQL type: what SQLite's affinity should be.
pub fn sql_type(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::I64 | ColumnType::I32 => "BIGINT",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::F64 => "DOUBLE",
        ColumnType::Text | ColumnType::LongText => "TEXT",
    }
}

impl Source for TableSource {
    fn declaration(&self) -> String {
        let column =
            |c: &etwhy_table::ColumnSpec| format!("\"{}\" {}", c.name.replace('"', "\"\""), sql_type(c.ty));
        let columns: Vec<String> = self.table.spec().columns.iter().map(column).collect();
        format!("CREATE TABLE x({})", columns.join(", "))
    }

    fn plan(&self, ask: &Ask<'_>) -> Option<Plan> {
        let rows = self.rows.as_ref().map_or(self.table.rows(), Vec::len) as f64;
        let mut plan = Plan { cost: rows + 1.0, ..Plan::default() };
        let mut left = rows;
        let mut searched = false;
        for (n, constraint) in ask.constraints.iter().enumerate() {
            if !self.understands(constraint) {
                continue;
            }
            plan.take.push(n);
            // Writing into a `String` cannot fail.
            let _ = write!(plan.text, "{}{};", code(constraint.op), constraint.column);
            match constraint.op {
                Op::Eq => {
                    left /= 50.0;
                    searched = true;
                }
                Op::IsNull => left /= 10.0,
                Op::NotNull => {}
                _ => {
                    left /= 3.0;
                    searched |= self.sorted == Some(constraint.column);
                }
            }
        }
        let left = left.max(1.0);
        plan.rows = left as i64;
        if searched {
            plan.cost = left + 4.0;
        }
        let natural = match ask.order {
            [(column, false)] => self.sorted == Some(*column),
            _ => false,
        };
        if natural {
            plan.ordered = true;
        } else if ask.grouped && !ask.order.is_empty() {
            plan.ordered = true;
            plan.text.push('|');
            for (column, _) in ask.order {
                let _ = write!(plan.text, "{column};");
            }
        }
        Some(plan)
    }

    fn open(&self) -> Box<dyn Cursor + '_> {
        let columns = 0..self.table.spec().columns.len();
        let views = |column| (0..self.table.batches().len()).map(|b| self.table.view(b, column)).collect();
        Box::new(TableCursor {
            source: self,
            columns: columns.map(views).collect(),
            checks: Vec::new(),
            rows: Rows::Range { next: 0, end: 0 },
            row: None,
            at: (0, 0),
            ahead: RefCell::new(Vec::new()),
        })
    }
}

impl TableSource {
    fn understands(&self, constraint: &Constraint) -> bool {
        let Some(column) = self.table.spec().columns.get(constraint.column) else { return false };
        match constraint.op {
            Op::IsNull | Op::NotNull => true,
            Op::Eq => constraint.binary || !column.ty.is_text(),
            _ => !column.ty.is_text(),
        }
    }
}

fn code(op: Op) -> char {
    match op {
        Op::Eq => '=',
        Op::Gt => '>',
        Op::Ge => 'g',
        Op::Lt => '<',
        Op::Le => 'l',
        Op::IsNull => 'n',
        Op::NotNull => 'v',
    }
}

/// A condition with its value.
enum Check {
    /// An integer between the two, ends included.
    Between(usize, i64, i64),
    /// A float between the two, ends included (open ends are checked by SQLite).
    Float(usize, f64, f64),
    /// The text with this number.
    Key(usize, u32),
    /// This text.
    Text(usize, String),
    Null(usize),
    NotNull(usize),
    Never,
}

enum Rows {
    Range { next: u32, end: u32 },
    List { rows: Vec<u32>, next: usize },
    Indexed { index: Arc<Index>, value: i64, next: usize },
}

struct TableCursor<'t> {
    source: &'t TableSource,
    /// By column, then batch.
    columns: Vec<Vec<ColumnView<'t>>>,
    checks: Vec<Check>,
    rows: Rows,
    row: Option<u32>,
    /// Batch and row in it.
    at: (usize, usize),
    /// Cells of the next rows of a list, by column.
    ahead: RefCell<Vec<Ahead>>,
}

/// Rows of a list whose cells are fetched together. They lie all over the table: many reads at once hide that memory
/// is slow, one read for each step of SQLite does not.
const BLOCK: usize = 1024;

/// Cells of one column for a block of rows.
#[derive(Default)]
struct Ahead {
    /// The block that they belong to; none at first.
    block: Option<usize>,
    numbers: Vec<Option<i64>>,
}

impl<'t> TableCursor<'t> {
    fn view(&self, column: usize, batch: usize) -> ColumnView<'t> {
        self.columns.get(column).and_then(|c| c.get(batch)).copied().unwrap_or(ColumnView::Empty)
    }

    fn meets(&self, batch: usize, row: usize) -> bool {
        self.checks.iter().all(|check| match check {
            Check::Between(column, low, high) => {
                self.view(*column, batch).i64(row).is_some_and(|v| v >= *low && v <= *high)
            }
            Check::Float(column, low, high) => {
                self.view(*column, batch).f64(row).is_some_and(|v| v >= *low && v <= *high)
            }
            Check::Key(column, key) => self.view(*column, batch).key(row).is_some_and(|k| k.0 == *key),
            Check::Text(column, text) => self.view(*column, batch).text(row) == Some(text),
            Check::Null(column) => is_null(&self.view(*column, batch), row),
            Check::NotNull(column) => !is_null(&self.view(*column, batch), row),
            Check::Never => false,
        })
    }

    /// The number, or number of a text, in the row of a list that `next` stands behind.
    fn ahead(&self, column: usize, rows: &[u32], next: usize) -> Option<i64> {
        let at = next.checked_sub(1)?;
        let block = at / BLOCK;
        let mut all = self.ahead.borrow_mut();
        if all.len() <= column {
            all.resize_with(self.columns.len().max(column + 1), Ahead::default);
        }
        let ahead = all.get_mut(column)?;
        if ahead.block != Some(block) {
            ahead.block = Some(block);
            ahead.numbers.clear();
            let views = self.columns.get(column)?;
            let wanted = rows.get(block * BLOCK..).unwrap_or_default();
            ahead.numbers.extend(wanted.iter().take(BLOCK).map(|&row| {
                let (batch, row) = self.source.table.locate(row)?;
                let view = views.get(batch)?;
                match view {
                    ColumnView::Text(..) => view.key(row).map(|key| i64::from(key.0)),
                    view => view.i64(row),
                }
            }));
        }
        ahead.numbers.get(at % BLOCK).copied().flatten()
    }

    /// The next row of the source, whether it meets the conditions or not.
    fn step(&mut self) -> Option<u32> {
        match &mut self.rows {
            Rows::Range { next, end } => {
                let row = *next;
                *next = row.saturating_add(1);
                (row < *end).then_some(row)
            }
            Rows::List { rows, next } => {
                let row = rows.get(*next).copied();
                *next += 1;
                row
            }
            Rows::Indexed { index, value, next } => {
                let row = index.rows(*value).get(*next).copied();
                *next += 1;
                row
            }
        }
    }

    fn advance(&mut self) {
        self.row = loop {
            let Some(row) = self.step() else { break None };
            let Some((batch, inner)) = self.source.table.locate(row) else { break None };
            if self.meets(batch, inner) {
                self.at = (batch, inner);
                break Some(row);
            }
        };
    }

    /// The condition that `op column value` is, coarser where it must be; `None` if nothing can be said.
    fn check(&self, op: Op, column: usize, value: ValueRef<'_>) -> Option<Check> {
        let ty = self.source.table.spec().columns.get(column)?.ty;
        match (op, value) {
            (Op::IsNull, _) => return Some(Check::Null(column)),
            (Op::NotNull, _) => return Some(Check::NotNull(column)),
            (_, ValueRef::Null) => return Some(Check::Never),
            _ => {}
        }
        match (ty, value) {
            (ColumnType::I64 | ColumnType::I32 | ColumnType::Bool, ValueRef::Integer(v)) => {
                let (low, high) = integer_range(op, v);
                Some(Check::Between(column, low, high))
            }
            (ColumnType::I64 | ColumnType::I32 | ColumnType::Bool, ValueRef::Real(v)) if v.abs() < 9e15 => {
                // Coarser by rounding outwards.
                let (low, high) = match op {
                    Op::Eq => (v.floor() as i64, v.ceil() as i64),
                    Op::Gt | Op::Ge => (v.floor() as i64, i64::MAX),
                    _ => (i64::MIN, v.ceil() as i64),
                };
                Some(Check::Between(column, low, high))
            }
            (ColumnType::F64, ValueRef::Real(v)) => Some(float_check(op, column, v)),
            (ColumnType::F64, ValueRef::Integer(v)) if v.abs() < 1 << 52 => {
                Some(float_check(op, column, v as f64))
            }
            (ColumnType::Text, ValueRef::Text(bytes)) if op == Op::Eq => {
                let text = std::str::from_utf8(bytes).ok()?;
                let key = self.source.table.texts().find(text);
                Some(key.map_or(Check::Never, |key| Check::Key(column, key.0)))
            }
            (ColumnType::LongText, ValueRef::Text(bytes)) if op == Op::Eq => {
                Some(Check::Text(column, std::str::from_utf8(bytes).ok()?.to_owned()))
            }
            _ => None,
        }
    }

    /// The rows that can meet the conditions: part of the table where its order or an index tells.
    fn candidates(&self) -> Rows {
        if let Some(rows) = &self.source.rows {
            return Rows::List { rows: rows.clone(), next: 0 };
        }
        // A join whose key is NULL asks for it once for each row of the other side.
        if self.checks.iter().any(|check| matches!(check, Check::Never)) {
            return Rows::Range { next: 0, end: 0 };
        }
        let all = self.source.table.rows() as u32;
        let (mut next, mut end) = (0, all);
        if let Some(sorted) = self.source.sorted {
            for check in &self.checks {
                if let Check::Between(column, low, high) = check
                    && *column == sorted
                {
                    next = next.max(self.source.lower_bound(sorted, *low));
                    if let Some(beyond) = high.checked_add(1) {
                        end = end.min(self.source.lower_bound(sorted, beyond));
                    }
                }
            }
        }
        // Of several indexes the one with the fewest rows: a join by a kind and a number would else go through all of the kind each time.
        let mut fewest = end.saturating_sub(next) as usize;
        let mut found = None;
        if fewest > 64 {
            for check in &self.checks {
                let (column, value) = match check {
                    Check::Between(column, low, high) if low == high => (*column, *low),
                    Check::Key(column, key) => (*column, i64::from(*key)),
                    _ => continue,
                };
                if let Some(index) = self.source.index(column) {
                    let count = index.rows(value).len();
                    if count < fewest {
                        fewest = count;
                        found = Some(Rows::Indexed { index, value, next: 0 });
                    }
                }
            }
        }
        found.unwrap_or(Rows::Range { next, end })
    }
}

/// As SQLite sees it, which has no float that is no number.
fn is_null(view: &ColumnView<'_>, row: usize) -> bool {
    view.is_null(row)
        || matches!(view, ColumnView::F64(..)) && view.f64(row).is_some_and(|value| value.is_nan())
}

fn integer_range(op: Op, v: i64) -> (i64, i64) {
    match op {
        Op::Gt => (v.saturating_add(1), i64::MAX),
        Op::Ge => (v, i64::MAX),
        Op::Lt => (i64::MIN, v.saturating_sub(1)),
        Op::Le => (i64::MIN, v),
        _ => (v, v),
    }
}

fn float_check(op: Op, column: usize, v: f64) -> Check {
    match op {
        Op::Gt | Op::Ge => Check::Float(column, v, f64::INFINITY),
        Op::Lt | Op::Le => Check::Float(column, f64::NEG_INFINITY, v),
        _ => Check::Float(column, v, v),
    }
}

impl Cursor for TableCursor<'_> {
    fn filter(&mut self, plan: &str, args: &[ValueRef<'_>]) -> Result<()> {
        let (conditions, groups) = plan.split_once('|').unwrap_or((plan, ""));
        self.checks.clear();
        self.ahead.borrow_mut().clear();
        for (condition, value) in conditions.split_terminator(';').zip(args) {
            let mut letters = condition.chars();
            let op = match letters.next() {
                Some('=') => Op::Eq,
                Some('>') => Op::Gt,
                Some('g') => Op::Ge,
                Some('<') => Op::Lt,
                Some('l') => Op::Le,
                Some('n') => Op::IsNull,
                _ => Op::NotNull,
            };
            let Ok(column) = letters.as_str().parse() else { continue };
            self.source.read(column)?;
            let check = self.check(op, column, *value);
            self.checks.extend(check);
        }
        self.rows = self.candidates();
        if !groups.is_empty() {
            let columns: Vec<usize> = groups.split_terminator(';').filter_map(|c| c.parse().ok()).collect();
            columns.iter().try_for_each(|column| self.source.read(*column))?;
            let mut rows = Vec::new();
            while let Some(row) = self.step() {
                if self.source.table.locate(row).is_some_and(|(batch, inner)| self.meets(batch, inner)) {
                    rows.push(row);
                }
            }
            self.checks.clear();
            self.rows =
                Rows::List { rows: Groups::by_values(&self.source.table, &columns, rows).rows, next: 0 };
        }
        self.advance();
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.advance();
        Ok(())
    }

    fn eof(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, column: usize, out: &mut Context) -> Result<()> {
        let (batch, row) = self.at;
        if let Rows::List { rows, next } = &self.rows {
            match self.view(column, 0) {
                ColumnView::I64(..) | ColumnView::I32(..) => {
                    return out.set_result(self.ahead(column, rows, *next));
                }
                ColumnView::Text(..) => {
                    let key = self.ahead(column, rows, *next).and_then(|key| u32::try_from(key).ok());
                    return out.set_result(key.map(|key| self.source.table.texts().get(Sym(key))));
                }
                _ => {}
            }
        }
        match self.view(column, batch) {
            view @ (ColumnView::I64(..) | ColumnView::I32(..) | ColumnView::Bool(_)) => {
                out.set_result(view.i64(row))
            }
            view @ ColumnView::F64(..) => out.set_result(view.f64(row)),
            ColumnView::Empty => {
                self.source.read(column)?;
                out.set_result(None::<i64>)
            }
            view => out.set_result(view.text(row)),
        }
    }

    fn rowid(&self) -> i64 {
        self.row.map_or(-1, i64::from)
    }
}
