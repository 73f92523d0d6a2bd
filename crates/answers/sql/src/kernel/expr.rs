//! Expressions of a block over whole pieces of columns: numbers and conditions in SQLite's sense, with its nulls.
//!
//! A value is 64 bits: an integer, the bits of a float, or the number of a text. What SQLite would compute in another type (an integer
//! that overflows becomes a float) is not computed at all: the query is SQLite's then ([`Stop::NotMine`]).

use super::text::{Op, Test};
use etwhy_table::{ColumnType, ColumnView, Sym, Table};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Why there is no value.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// SQLite has to answer.
    NotMine,
    /// A limit, or somebody who no longer waits.
    Ended,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    Int,
    Float,
    /// Text of a pool, as its number.
    Text,
    /// Text that only tests can see.
    LongText,
    /// Nothing but null.
    Null,
}

impl Ty {
    pub fn is_number(self) -> bool {
        matches!(self, Ty::Int | Ty::Float | Ty::Null)
    }

    pub fn of(ty: ColumnType) -> Ty {
        match ty {
            ColumnType::I64 | ColumnType::I32 | ColumnType::Bool => Ty::Int,
            ColumnType::F64 => Ty::Float,
            ColumnType::Text => Ty::Text,
            ColumnType::LongText => Ty::LongText,
        }
    }
}

/// An expression. Conditions are 1, 0 or null.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Column {
        table: usize,
        column: usize,
        ty: Ty,
    },
    Int(i64),
    Float(f64),
    Null,
    Arith(char, Box<(Expr, Expr)>),
    ToFloat(Box<Expr>),
    /// Conditions with values, and the value otherwise.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
    Coalesce(Vec<Expr>),
    Compare(Op, Box<(Expr, Expr)>),
    And(Box<(Expr, Expr)>),
    Or(Box<(Expr, Expr)>),
    Not(Box<Expr>),
    IsNull(Box<Expr>),
    OneOf(Box<Expr>, Vec<i64>),
    /// A test of a text column, in small letters or as it is.
    Text {
        table: usize,
        column: usize,
        lower: bool,
        test: Test,
    },
}

impl Expr {
    /// What its values are; `None` if it makes no sense.
    pub fn ty(&self) -> Option<Ty> {
        let same = |a: Ty, b: Ty| match (a, b) {
            (Ty::Null, ty) | (ty, Ty::Null) => Some(ty),
            (a, b) => (a == b).then_some(a),
        };
        let number = |expr: &Expr| expr.ty().filter(|ty| ty.is_number());
        let truth = |expr: &Expr| expr.ty().filter(|ty| matches!(ty, Ty::Int | Ty::Null));
        Some(match self {
            Expr::Column { ty, .. } => *ty,
            Expr::Int(_) => Ty::Int,
            Expr::Float(_) => Ty::Float,
            Expr::Null => Ty::Null,
            Expr::Arith(_, sides) => match (number(&sides.0)?, number(&sides.1)?) {
                (Ty::Float, _) | (_, Ty::Float) => Ty::Float,
                _ => Ty::Int,
            },
            Expr::ToFloat(inner) => number(inner).map(|_| Ty::Float)?,
            Expr::Case(cases, otherwise) => {
                let mut ty = number(otherwise)?;
                for (condition, value) in cases {
                    truth(condition)?;
                    ty = same(ty, number(value)?)?;
                }
                ty
            }
            Expr::Coalesce(list) => list.iter().try_fold(Ty::Null, |ty, expr| same(ty, number(expr)?))?,
            Expr::Compare(op, sides) => match (sides.0.ty()?, sides.1.ty()?) {
                (a, b) if a.is_number() && b.is_number() => Ty::Int,
                // Numbers of texts of one pool: whoever makes the expression sees to that.
                (Ty::Text, Ty::Text) if matches!(op, Op::Eq | Op::Ne) => Ty::Int,
                _ => return None,
            },
            Expr::And(sides) | Expr::Or(sides) => {
                truth(&sides.0).and(truth(&sides.1))?;
                Ty::Int
            }
            Expr::Not(inner) => truth(inner).map(|_| Ty::Int)?,
            Expr::IsNull(inner) => inner.ty().map(|_| Ty::Int)?,
            Expr::OneOf(inner, _) => inner.ty().filter(|ty| *ty == Ty::Int)?,
            Expr::Text { .. } => Ty::Int,
        })
    }

    /// Calls `see` for each column of a table.
    pub fn columns(&self, see: &mut dyn FnMut(usize, usize)) {
        match self {
            Expr::Column { table, column, .. } | Expr::Text { table, column, .. } => see(*table, *column),
            Expr::Int(_) | Expr::Float(_) | Expr::Null => {}
            Expr::Arith(_, sides) | Expr::Compare(_, sides) | Expr::And(sides) | Expr::Or(sides) => {
                sides.0.columns(see);
                sides.1.columns(see);
            }
            Expr::ToFloat(inner) | Expr::Not(inner) | Expr::IsNull(inner) | Expr::OneOf(inner, _) => {
                inner.columns(see);
            }
            Expr::Case(cases, otherwise) => {
                for (condition, value) in cases {
                    condition.columns(see);
                    value.columns(see);
                }
                otherwise.columns(see);
            }
            Expr::Coalesce(list) => list.iter().for_each(|expr| expr.columns(see)),
        }
    }
}

/// Values of some rows.
#[derive(Clone, Debug, Default)]
pub struct Vals {
    pub values: Vec<i64>,
    /// Which are not null; `None` if none is.
    pub valid: Option<Vec<bool>>,
}

impl Vals {
    fn constant(value: Option<i64>, rows: usize) -> Vals {
        let valid = value.is_none().then(|| vec![false; rows]);
        Vals { values: vec![value.unwrap_or(0); rows], valid }
    }

    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.get(row) == Some(&true))
    }

    /// The value, or null.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        let value = *self.values.get(row)?;
        self.is_valid(row).then_some(value)
    }

    /// All values with whether they are there.
    pub fn iter(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        (0..self.values.len()).map(|row| self.get(row))
    }

    fn of(values: impl Iterator<Item = Option<i64>>) -> Vals {
        let (mut all, mut nulls) = (Vals::default(), false);
        let mut valid = Vec::with_capacity(values.size_hint().0);
        all.values.reserve(values.size_hint().0);
        for value in values {
            nulls |= value.is_none();
            all.values.push(value.unwrap_or(0));
            valid.push(value.is_some());
        }
        all.valid = nulls.then_some(valid);
        all
    }

    /// `each` of all values; what is null stays so.
    fn map(mut self, each: impl Fn(i64) -> i64) -> Vals {
        self.values.iter_mut().for_each(|value| *value = each(*value));
        self
    }

    /// `each` of pairs without nulls.
    fn zip(
        self,
        other: &Vals,
        mut each: impl FnMut(i64, i64) -> Result<Option<i64>, Stop>,
    ) -> Result<Vals, Stop> {
        let mut out = self;
        let mut nulls: Vec<usize> = Vec::new();
        let both = match (&out.valid, &other.valid) {
            (None, None) => None,
            (Some(valid), None) | (None, Some(valid)) => Some(valid.clone()),
            (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| *a && *b).collect::<Vec<bool>>()),
        };
        let there = |row: usize| both.as_ref().is_none_or(|valid| valid.get(row) == Some(&true));
        for (row, (a, b)) in out.values.iter_mut().zip(&other.values).enumerate() {
            if both.is_some() && !there(row) {
                continue;
            }
            match each(*a, *b)? {
                Some(value) => *a = value,
                None => nulls.push(row),
            }
        }
        out.valid = both;
        if !nulls.is_empty() {
            let rows = out.values.len();
            let valid = out.valid.get_or_insert_with(|| vec![true; rows]);
            for row in nulls {
                if let Some(valid) = valid.get_mut(row) {
                    *valid = false;
                }
            }
        }
        Ok(out)
    }
}

/// No row of a table that was joined on the left.
pub const NO_ROW: u32 = u32::MAX;

/// Rows that are looked at together: of a batch of the largest table, with the rows of the tables joined to it.
pub struct Piece {
    pub batch: usize,
    /// Rows of the batch.
    pub rows: Vec<u32>,
    /// Rows of each joined table; empty for one that has not been joined yet.
    pub joined: Vec<Vec<u32>>,
}

/// Columns of the tables, and what is known of their texts.
pub struct Columns<'t> {
    tables: &'t [Table],
    /// The table that is read batch by batch.
    largest: usize,
    /// Whole columns of joined tables.
    whole: RefCell<HashMap<(usize, usize), Vals>>,
    /// For tests of texts: 1 and 0 by the number of a text, 2 where it was not asked yet.
    known: RefCell<HashMap<*const Expr, Vec<u8>>>,
}

impl<'t> Columns<'t> {
    pub fn new(tables: &'t [Table], largest: usize) -> Columns<'t> {
        Columns { tables, largest, whole: RefCell::default(), known: RefCell::default() }
    }

    /// A table.
    pub fn table(&self, at: usize) -> Option<&'t Table> {
        self.tables.get(at)
    }

    /// A whole column.
    pub fn whole(&self, table: usize, column: usize) -> Vals {
        let Some(found) = self.tables.get(table) else { return Vals::default() };
        let mut all = Vals::default();
        let mut valid: Option<Vec<bool>> = None;
        for batch in 0..found.batches().len() {
            let part = read(&found.view(batch, column), None);
            if valid.is_some() || part.valid.is_some() {
                let valid = valid.get_or_insert_with(|| vec![true; all.values.len()]);
                match &part.valid {
                    Some(part) => valid.extend(part),
                    None => valid.resize(valid.len() + part.values.len(), true),
                }
            }
            all.values.extend(part.values);
        }
        all.valid = valid;
        all
    }

    fn column(&self, table: usize, column: usize, piece: &Piece) -> Result<Vals, Stop> {
        let found = self.tables.get(table).ok_or(Stop::NotMine)?;
        if table == self.largest {
            return Ok(read(&found.view(piece.batch, column), Some(&piece.rows)));
        }
        let rows = piece.joined.get(table).filter(|rows| rows.len() == piece.rows.len());
        let rows = rows.ok_or(Stop::NotMine)?;
        let mut whole = self.whole.borrow_mut();
        let whole = whole.entry((table, column)).or_insert_with(|| self.whole(table, column));
        Ok(Vals::of(rows.iter().map(|row| whole.get(*row as usize))))
    }

    /// The values of an expression.
    pub fn eval(&self, expr: &Expr, piece: &Piece) -> Result<Vals, Stop> {
        let rows = piece.rows.len();
        let float = |expr: &Expr| -> Result<Vals, Stop> {
            let vals = self.eval(expr, piece)?;
            Ok(if expr.ty() == Some(Ty::Float) { vals } else { vals.map(|n| bits(n as f64)) })
        };
        Ok(match expr {
            Expr::Column { table, column, .. } => self.column(*table, *column, piece)?,
            Expr::Int(n) => Vals::constant(Some(*n), rows),
            Expr::Float(n) => Vals::constant(Some(bits(*n)), rows),
            Expr::Null => Vals::constant(None, rows),
            Expr::ToFloat(inner) => float(inner)?,
            Expr::Arith(op, sides) if expr.ty() == Some(Ty::Float) => {
                let (a, b) = (float(&sides.0)?, float(&sides.1)?);
                let op = *op;
                a.zip(&b, |a, b| {
                    let (a, b) = (f64::from_bits(a as u64), f64::from_bits(b as u64));
                    let value = match op {
                        '+' => a + b,
                        '-' => a - b,
                        '*' => a * b,
                        _ if b == 0.0 => return Ok(None),
                        _ => a / b,
                    };
                    Ok((!value.is_nan()).then(|| bits(value)))
                })?
            }
            Expr::Arith(op, sides) => {
                let (a, b) = (self.eval(&sides.0, piece)?, self.eval(&sides.1, piece)?);
                let op = *op;
                a.zip(&b, |a, b| {
                    let value = match op {
                        '+' => a.checked_add(b),
                        '-' => a.checked_sub(b),
                        '*' => a.checked_mul(b),
                        _ if b == 0 => return Ok(None),
                        _ => a.checked_div(b),
                    };
                    value.map(Some).ok_or(Stop::NotMine)
                })?
            }
            Expr::Case(cases, otherwise) => {
                let mut out: Vec<Option<i64>> = self.eval(otherwise, piece)?.iter().collect();
                for (condition, value) in cases.iter().rev() {
                    let condition = self.eval(condition, piece)?;
                    let value = self.eval(value, piece)?;
                    for (row, out) in out.iter_mut().enumerate() {
                        if condition.get(row).is_some_and(|n| n != 0) {
                            *out = value.get(row);
                        }
                    }
                }
                Vals::of(out.into_iter())
            }
            Expr::Coalesce(list) => {
                let mut out: Vec<Option<i64>> = vec![None; rows];
                for expr in list {
                    let next = self.eval(expr, piece)?;
                    out.iter_mut().zip(next.iter()).for_each(|(out, next)| *out = out.or(next));
                }
                Vals::of(out.into_iter())
            }
            Expr::Compare(op, sides) => {
                let (a, b) = (self.eval(&sides.0, piece)?, self.eval(&sides.1, piece)?);
                let op = *op;
                let yes = |order| Ok(Some(i64::from(op.holds(order))));
                match (sides.0.ty() == Some(Ty::Float), sides.1.ty() == Some(Ty::Float)) {
                    (false, false) => a.zip(&b, |a, b| yes(a.cmp(&b)))?,
                    (true, true) => a.zip(&b, |a, b| yes(floats(a, b)))?,
                    (false, true) => a.zip(&b, |a, b| yes(int_to_float(a, f64::from_bits(b as u64))))?,
                    (true, false) => {
                        a.zip(&b, |a, b| yes(int_to_float(b, f64::from_bits(a as u64)).reverse()))?
                    }
                }
            }
            Expr::And(sides) => self.logic(sides, piece, 0)?,
            Expr::Or(sides) => self.logic(sides, piece, 1)?,
            Expr::Not(inner) => self.eval(inner, piece)?.map(|n| i64::from(n == 0)),
            Expr::IsNull(inner) => {
                let inner = self.eval(inner, piece)?;
                Vals { values: (0..rows).map(|row| i64::from(!inner.is_valid(row))).collect(), valid: None }
            }
            Expr::OneOf(inner, list) => self.eval(inner, piece)?.map(|n| i64::from(list.contains(&n))),
            Expr::Text { table, column, lower, test } => {
                self.test(expr, (*table, *column), *lower, test, piece)?
            }
        })
    }

    /// `AND` (decided by 0) and `OR` (decided by 1).
    fn logic(&self, sides: &(Expr, Expr), piece: &Piece, decides: i64) -> Result<Vals, Stop> {
        let (a, b) = (self.eval(&sides.0, piece)?, self.eval(&sides.1, piece)?);
        let truth = |value: Option<i64>| value.map(|n| i64::from(n != 0));
        Ok(Vals::of(a.iter().zip(b.iter()).map(|(a, b)| match (truth(a), truth(b)) {
            (Some(n), _) | (_, Some(n)) if n == decides => Some(n),
            (Some(_), Some(_)) => Some(1 - decides),
            _ => None,
        })))
    }

    fn test(
        &self,
        expr: &Expr,
        (table, column): (usize, usize),
        lower: bool,
        test: &Test,
        piece: &Piece,
    ) -> Result<Vals, Stop> {
        let found = self.tables.get(table).ok_or(Stop::NotMine)?;
        let ty = found.spec().columns.get(column).map(|c| c.ty);
        if ty == Some(ColumnType::Text) {
            let mut known = self.known.borrow_mut();
            let known = known.entry(std::ptr::from_ref(expr)).or_insert_with(|| vec![2; found.texts().len()]);
            let mut vals = self.column(table, column, piece)?;
            for row in 0..vals.values.len() {
                let Some(n) = vals.get(row) else { continue };
                let Some(state) = usize::try_from(n).ok().and_then(|n| known.get_mut(n)) else {
                    return Err(Stop::NotMine);
                };
                if *state == 2 {
                    *state = u8::from(test.holds(found.texts().get(Sym(n as u32)), lower));
                }
                if let Some(value) = vals.values.get_mut(row) {
                    *value = i64::from(*state);
                }
            }
            return Ok(vals);
        }
        let holds = |text: Option<&str>| text.map(|text| i64::from(test.holds(text, lower)));
        if table == self.largest {
            let view = found.view(piece.batch, column);
            return Ok(Vals::of(piece.rows.iter().map(|row| holds(view.text(*row as usize)))));
        }
        let rows = piece.joined.get(table).ok_or(Stop::NotMine)?;
        Ok(Vals::of(rows.iter().map(|row| holds(found.cell(*row, column).as_text()))))
    }
}

/// The bits of a float as a value.
pub fn bits(n: f64) -> i64 {
    n.to_bits() as i64
}

/// Order of two floats, neither of which is "not a number".
pub fn floats(a: i64, b: i64) -> Ordering {
    f64::from_bits(a as u64).partial_cmp(&f64::from_bits(b as u64)).unwrap_or(Ordering::Equal)
}

/// Order of an integer and a float, as exact as SQLite's.
fn int_to_float(int: i64, float: f64) -> Ordering {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if float < -END {
        return Ordering::Greater;
    }
    if float >= END {
        return Ordering::Less;
    }
    int.cmp(&(float as i64)).then_with(|| (int as f64).partial_cmp(&float).unwrap_or(Ordering::Equal))
}

/// Some rows of a column (all: `None`).
pub fn read(view: &ColumnView<'_>, rows: Option<&[u32]>) -> Vals {
    let len = view.len();
    let rows = rows.filter(|rows| rows.len() != len);
    let values: Vec<i64> = match (view, rows) {
        (ColumnView::I64(v, _), None) => v.to_vec(),
        (ColumnView::I64(v, _), Some(rows)) => pick(rows, |row| v.get(row).copied()),
        (ColumnView::I32(v, _) | ColumnView::Text(v, ..), None) => v.iter().map(|n| i64::from(*n)).collect(),
        (ColumnView::I32(v, _) | ColumnView::Text(v, ..), Some(rows)) => {
            pick(rows, |row| v.get(row).map(|n| i64::from(*n)))
        }
        (ColumnView::F64(v, _), rows) => {
            let all = |row: usize| v.get(row).copied();
            let one = |row: usize| all(row).filter(|n| !n.is_nan()).map(bits);
            // SQLite reads "not a number" as null.
            return match rows {
                None => Vals::of((0..len).map(|row| one(row).filter(|_| !view.is_null(row)))),
                Some(rows) => Vals::of(
                    rows.iter().map(|row| one(*row as usize).filter(|_| !view.is_null(*row as usize))),
                ),
            };
        }
        (ColumnView::Bool(_), None) => (0..len).map(|row| view.i64(row).unwrap_or(0)).collect(),
        (ColumnView::Bool(_), Some(rows)) => pick(rows, |row| view.i64(row)),
        (_, rows) => vec![0; rows.map_or(len, <[u32]>::len)],
    };
    let nulls = view.nulls().filter(|nulls| nulls.null_count() > 0);
    let valid = nulls.map(|nulls| {
        let there = |row: usize| row < nulls.len() && nulls.is_valid(row);
        match rows {
            None => nulls.iter().collect(),
            Some(rows) => rows.iter().map(|row| there(*row as usize)).collect(),
        }
    });
    Vals { values, valid }
}

fn pick(rows: &[u32], value: impl Fn(usize) -> Option<i64>) -> Vec<i64> {
    rows.iter().map(|row| value(*row as usize).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_exactly() {
        assert_eq!(int_to_float(i64::MAX, i64::MAX as f64), Ordering::Less);
        assert_eq!(int_to_float(i64::MIN, i64::MIN as f64), Ordering::Equal);
        assert_eq!(int_to_float((1 << 53) + 1, (1i64 << 53) as f64), Ordering::Greater);
        assert_eq!(int_to_float(2, 2.5), Ordering::Less);
        assert_eq!(int_to_float(-2, -2.5), Ordering::Greater);
        assert_eq!(int_to_float(0, f64::NEG_INFINITY), Ordering::Greater);
    }
}
