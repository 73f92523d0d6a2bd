//! Answers a block from the columns: conditions, joins by unique keys, groups, sums.

use super::block::{Block, First, Wants};
use super::expr::{Columns, Expr, NO_ROW, Piece, Stop, Ty, Vals};
use super::groups::{Groups, MOST_BYTES, bounds};
use super::text::Op;
use etwhy_table::Table;
use foldhash::HashMap;

/// Tables with fewer rows are SQLite's: it has answered before a plan is made.
pub const LEAST_ROWS: usize = 4096;

/// What a block comes to.
#[derive(Debug)]
pub enum Answer {
    /// Groups with their sums.
    Table(Table),
    /// Rows of the only table, ascending.
    Rows(Vec<u32>),
}

impl Answer {
    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        match self {
            Answer::Table(table) => {
                let values = table.rows().saturating_mul(table.spec().columns.len());
                values.saturating_mul(size_of::<i64>())
            }
            Answer::Rows(rows) => rows.len().saturating_mul(size_of::<u32>()),
        }
    }
}

/// Answers a block. `spend` is told of steps, and says whether to go on.
pub fn run(block: &Block, name: &str, spend: &dyn Fn(u64) -> bool) -> Result<Answer, Stop> {
    let is_left = block.left.iter().any(Option::is_some);
    let rows = |table: &Table| table.rows();
    let by_rows = (0..block.tables.len()).max_by_key(|at| (block.tables.get(*at).map(rows), usize::MAX - at));
    let largest = if is_left { 0 } else { by_rows.ok_or(Stop::NotMine)? };
    let table = block.tables.get(largest).ok_or(Stop::NotMine)?;
    if block.tables.iter().map(rows).max().unwrap_or(0) < LEAST_ROWS {
        return Err(Stop::NotMine);
    }
    let columns = Columns::new(&block.tables, largest);
    let (joins, rest) = joins(block, &columns, largest)?;
    let uses = |expr: &Expr| {
        let mut others = false;
        expr.columns(&mut |table, _| others |= table != largest);
        others
    };
    let (late, early): (Vec<&Expr>, Vec<&Expr>) = rest.into_iter().partition(|expr| uses(expr));
    let per_row = 1 + (early.len() + late.len() + joins.len() + block.wants.width()) as u64;
    let mut groups = Groups::new(block, &columns, largest)?;
    let mut found = Rows::default();
    for (batch, held) in table.batches().iter().enumerate() {
        let rows = u32::try_from(held.num_rows()).map_err(|_| Stop::NotMine)?;
        if !spend(u64::from(rows).saturating_mul(per_row)) {
            return Err(Stop::Ended);
        }
        if rows == 0 || early.iter().any(|expr| excludes(expr, table, batch)) {
            continue;
        }
        let mut piece =
            Piece { batch, rows: (0..rows).collect(), joined: vec![Vec::new(); block.tables.len()] };
        for condition in &early {
            keep(&columns, condition, &mut piece)?;
        }
        for join in &joins {
            join.add(&columns, &mut piece)?;
        }
        for condition in &late {
            keep(&columns, condition, &mut piece)?;
        }
        if piece.rows.is_empty() {
            continue;
        }
        match &block.wants {
            Wants::Groups { .. } => groups.add(&columns, &piece)?,
            Wants::Rows { first } => {
                let start = table.starts().get(batch).copied().unwrap_or(0);
                found.add(&columns, &piece, start, first.as_ref())?;
            }
        }
    }
    Ok(match &block.wants {
        Wants::Groups { .. } => Answer::Table(groups.table(block, name, joins.is_empty())?),
        Wants::Rows { .. } => Answer::Rows(found.rows),
    })
}

impl Wants {
    fn width(&self) -> usize {
        match self {
            Wants::Groups { keys, aggregates } => keys.len() + aggregates.len(),
            Wants::Rows { .. } => 1,
        }
    }
}

/// Drops the rows of a piece for which a condition does not hold.
fn keep(columns: &Columns<'_>, condition: &Expr, piece: &mut Piece) -> Result<(), Stop> {
    if piece.rows.is_empty() {
        return Ok(());
    }
    let holds = columns.eval(condition, piece)?;
    let holds: Vec<bool> = holds.iter().map(|n| n.is_some_and(|n| n != 0)).collect();
    piece.keep(&holds);
    Ok(())
}

impl Piece {
    fn keep(&mut self, holds: &[bool]) {
        let retain = |list: &mut Vec<u32>| {
            let mut next = holds.iter();
            list.retain(|_| next.next().is_some_and(|holds| *holds));
        };
        retain(&mut self.rows);
        self.joined.iter_mut().filter(|list| !list.is_empty()).for_each(retain);
    }
}

/// Whether a comparison of the column that the table is sorted by with a number holds for no row of a batch.
fn excludes(expr: &Expr, table: &Table, batch: usize) -> bool {
    let Expr::Compare(op, sides) = expr else { return false };
    let (Expr::Column { column, ty: Ty::Int, .. }, Expr::Int(n)) = &**sides else { return false };
    let spec = table.spec();
    let sorted = spec.sorted_by.as_deref().and_then(|name| spec.column_index(name)) == Some(*column);
    if !sorted || spec.columns.get(*column).is_none_or(|c| c.nullable) {
        return false;
    }
    let view = table.view(batch, *column);
    let ends = view.i64(0).zip(view.len().checked_sub(1).and_then(|last| view.i64(last)));
    let Some((first, last)) = ends else { return false };
    match op {
        Op::Eq => last < *n || first > *n,
        Op::Lt => first >= *n,
        Op::Le => first > *n,
        Op::Gt => last <= *n,
        Op::Ge => last < *n,
        Op::Ne => false,
    }
}

/// A table that is joined by a column whose values are all different.
struct Join {
    table: usize,
    /// The equal column of a table before.
    by: Expr,
    left: bool,
    index: Index,
}

/// Rows by their value.
enum Index {
    /// By the value less the least one.
    List(i64, Vec<u32>),
    Map(HashMap<i64, u32>),
}

impl Index {
    /// `None` if a value comes twice.
    fn of(vals: &Vals) -> Option<Index> {
        let (least, most) = bounds(vals)?;
        let there = || (0u32..).zip(vals.iter()).filter_map(|(row, value)| Some((row, value?)));
        let room = (vals.values.len() as u64).saturating_mul(8).saturating_add(1024);
        if most.abs_diff(least) < room {
            let mut list = vec![NO_ROW; usize::try_from(most.abs_diff(least)).ok()?.checked_add(1)?];
            for (row, value) in there() {
                let slot = list.get_mut(usize::try_from(value.abs_diff(least)).ok()?)?;
                if std::mem::replace(slot, row) != NO_ROW {
                    return None;
                }
            }
            return Some(Index::List(least, list));
        }
        let mut map = HashMap::default();
        there().all(|(row, value)| map.insert(value, row).is_none()).then_some(Index::Map(map))
    }

    fn row(&self, value: i64) -> u32 {
        match self {
            Index::List(least, list) => {
                let at = value.checked_sub(*least).and_then(|at| usize::try_from(at).ok());
                at.and_then(|at| list.get(at)).copied().unwrap_or(NO_ROW)
            }
            Index::Map(map) => map.get(&value).copied().unwrap_or(NO_ROW),
        }
    }
}

/// How the other tables are joined to the largest, in order, and the conditions that are left.
fn joins<'b>(
    block: &'b Block,
    columns: &Columns<'_>,
    largest: usize,
) -> Result<(Vec<Join>, Vec<&'b Expr>), Stop> {
    let mut rest: Vec<&Expr> = block.conditions.iter().collect();
    let mut joined = vec![largest];
    let mut joins = Vec::new();
    // The side that is a column of the table, and the other, of tables that are there.
    let sides = |pair: &(Expr, Expr), table: usize, joined: &[usize]| {
        let is = |expr: &Expr, at: &dyn Fn(usize) -> bool| match expr {
            Expr::Column { table, ty: Ty::Int | Ty::Text, column } if at(*table) => Some(*column),
            _ => None,
        };
        for (own, by) in [(&pair.0, &pair.1), (&pair.1, &pair.0)] {
            let there = is(by, &|at| at != table && joined.contains(&at));
            if let (Some(column), Some(_)) = (is(own, &|at| at == table), there) {
                return Some((column, by.clone()));
            }
        }
        None
    };
    while joined.len() < block.tables.len() {
        let mut next = None;
        'search: for table in (0..block.tables.len()).filter(|at| !joined.contains(at)) {
            if let Some(Some(pair)) = block.left.get(table) {
                let Some((column, by)) = sides(pair, table, &joined) else { continue };
                let index = Index::of(&columns.whole(table, column)).ok_or(Stop::NotMine)?;
                next = Some(Join { table, by, left: true, index });
                break;
            }
            for at in 0..rest.len() {
                let Some(Expr::Compare(Op::Eq, pair)) = rest.get(at) else { continue };
                let Some((column, by)) = sides(pair, table, &joined) else { continue };
                if let Some(index) = Index::of(&columns.whole(table, column)) {
                    next = Some(Join { table, by, left: false, index });
                    rest.remove(at);
                    break 'search;
                }
            }
        }
        let next = next.ok_or(Stop::NotMine)?;
        joined.push(next.table);
        joins.push(next);
    }
    Ok((joins, rest))
}

impl Join {
    fn add(&self, columns: &Columns<'_>, piece: &mut Piece) -> Result<(), Stop> {
        let by = columns.eval(&self.by, piece)?;
        let rows: Vec<u32> = by.iter().map(|value| value.map_or(NO_ROW, |n| self.index.row(n))).collect();
        let holds: Vec<bool> = rows.iter().map(|row| self.left || *row != NO_ROW).collect();
        let all = holds.iter().all(|holds| *holds);
        if let Some(list) = piece.joined.get_mut(self.table) {
            *list = rows;
        }
        if !all {
            piece.keep(&holds);
        }
        Ok(())
    }
}

/// Rows that were asked for themselves.
#[derive(Default)]
struct Rows {
    rows: Vec<u32>,
    /// Their place in the order, if one is wanted: whether a value is there, and the value so that the first is the least.
    keys: Vec<(bool, i64)>,
    /// Rows behind this one do not come in.
    last: Option<(bool, i64)>,
}

impl Rows {
    fn add(
        &mut self,
        columns: &Columns<'_>,
        piece: &Piece,
        start: u32,
        first: Option<&First>,
    ) -> Result<(), Stop> {
        let each = if first.is_some() { 20 } else { 4 };
        if self.rows.len().saturating_mul(each) > MOST_BYTES {
            return Err(Stop::NotMine);
        }
        let Some(first) = first else {
            self.rows.extend(piece.rows.iter().map(|row| row + start));
            return Ok(());
        };
        let vals = columns.eval(&first.by, piece)?;
        let float = first.by.ty() == Some(Ty::Float);
        for (row, value) in piece.rows.iter().zip(vals.iter()) {
            // Nulls come first, and last from behind.
            let key = match value {
                None => (first.descending, 0),
                Some(n) => {
                    let n = if float { sortable(n) } else { n };
                    (!first.descending, if first.descending { !n } else { n })
                }
            };
            if self.last.is_none_or(|last| key <= last) {
                self.rows.push(row + start);
                self.keys.push(key);
            }
        }
        if self.keys.len() > first.rows.saturating_mul(4).saturating_add(1 << 16) {
            self.cut(first.rows);
        }
        Ok(())
    }

    fn cut(&mut self, wanted: usize) {
        if wanted == 0 || wanted >= self.keys.len() {
            return;
        }
        let mut keys = self.keys.clone();
        let (_, last, _) = keys.select_nth_unstable(wanted - 1);
        let last = *last;
        self.last = Some(last);
        let mut next = self.keys.iter();
        self.rows.retain(|_| next.next().is_some_and(|key| *key <= last));
        self.keys.retain(|key| *key <= last);
    }
}

/// A float as an integer in the same order; both zeros are one.
fn sortable(value: i64) -> i64 {
    let value = if f64::from_bits(value as u64) == 0.0 { 0 } else { value };
    if value < 0 { !value ^ i64::MIN } else { value }
}
