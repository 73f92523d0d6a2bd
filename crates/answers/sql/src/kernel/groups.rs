//! Groups of rows and their figures.

use super::block::{Aggregate, Block, Function, Wants};
use super::expr::{Columns, Expr, Piece, Stop, Ty, Vals, bits, floats};
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Evidence, Memory, Role, Sym, Table, TableSpec, Unit, Value,
};
use foldhash::HashMap;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Codes below this find their group in a list, others by a hash.
const DIRECT: u64 = 1 << 22;

/// Most bytes for groups. SQLite puts what is more into files.
pub const MOST_BYTES: usize = 256 << 20;

/// How the values of a key become small numbers; 0 is null.
enum Codes {
    /// The value less this one, plus 1; all are less than the other number.
    Plain(i64, u64),
    Hashed(HashMap<i64, u32>),
}

/// Groups and their figures as they grow.
pub struct Groups<'b> {
    keys: &'b [Expr],
    aggregates: &'b [Aggregate],
    codes: Vec<Codes>,
    /// Numbers of pairs of codes, from the second key on, where they are too many for a list.
    pairs: Vec<HashMap<u64, u32>>,
    /// Groups by code, plus 1.
    slots: Vec<u32>,
    /// Values of the keys in the first row of each group.
    first: Vec<Option<i64>>,
    count: usize,
    figures: Vec<Figures>,
}

/// One figure of all groups.
#[derive(Default)]
struct Figures {
    /// Rows with a value.
    rows: Vec<i64>,
    /// Sum or best value.
    value: Vec<i64>,
    /// What a sum of floats lost so far.
    error: Vec<f64>,
}

impl<'b> Groups<'b> {
    pub fn new(block: &'b Block, columns: &Columns<'_>, largest: usize) -> Result<Groups<'b>, Stop> {
        let (keys, aggregates): (&[Expr], &[Aggregate]) = match &block.wants {
            Wants::Groups { keys, aggregates } => (keys, aggregates),
            Wants::Rows { .. } => (&[], &[]),
        };
        let codes = keys.iter().map(|key| codes(block, columns, key, largest)).collect();
        let figures = aggregates.iter().map(|_| Figures::default()).collect();
        let (pairs, slots, first) =
            (keys.iter().map(|_| HashMap::default()).collect(), Vec::new(), Vec::new());
        let mut groups = Groups { keys, aggregates, codes, pairs, slots, first, count: 0, figures };
        if keys.is_empty() {
            groups.grow(1)?;
        }
        Ok(groups)
    }

    fn grow(&mut self, count: usize) -> Result<(), Stop> {
        self.count = count;
        let each = self.keys.len() * 16 + self.aggregates.len() * 24;
        if count.saturating_mul(each).saturating_add(self.slots.len() * 4) > MOST_BYTES {
            return Err(Stop::NotMine);
        }
        for (figures, aggregate) in self.figures.iter_mut().zip(self.aggregates) {
            figures.rows.resize(count, 0);
            if aggregate.function != Function::Count {
                figures.value.resize(count, 0);
            }
            if aggregate.adds_floats() {
                figures.error.resize(count, 0.0);
            }
        }
        Ok(())
    }

    pub fn add(&mut self, columns: &Columns<'_>, piece: &Piece) -> Result<(), Stop> {
        let groups = self.groups(columns, piece)?;
        for (aggregate, figures) in self.aggregates.iter().zip(&mut self.figures) {
            let Some(of) = &aggregate.of else {
                match &groups {
                    None => figures.rows.iter_mut().for_each(|n| *n += piece.rows.len() as i64),
                    Some(groups) => {
                        for group in groups {
                            if let Some(n) = figures.rows.get_mut(*group as usize) {
                                *n += 1;
                            }
                        }
                    }
                }
                continue;
            };
            let vals = columns.eval(of, piece)?;
            figures.add(
                aggregate,
                &vals,
                groups.as_deref(),
                table_of(of).and_then(|at| columns.table(at)),
            )?;
        }
        Ok(())
    }

    /// The group of each row; `None` if there is but one.
    fn groups(&mut self, columns: &Columns<'_>, piece: &Piece) -> Result<Option<Vec<u32>>, Stop> {
        if self.keys.is_empty() {
            return Ok(None);
        }
        let values = self.keys.iter().map(|key| columns.eval(key, piece)).collect::<Result<Vec<_>, _>>()?;
        let mut all: Vec<u32> = Vec::new();
        let mut bound = 1u64;
        for (((key, vals), codes), pairs) in
            self.keys.iter().zip(&values).zip(&mut self.codes).zip(&mut self.pairs)
        {
            let (next, next_bound) = codes.of(vals, key.ty() == Some(Ty::Float))?;
            if all.is_empty() {
                (all, bound) = (next, next_bound);
                continue;
            }
            let product = bound.saturating_mul(next_bound);
            if product <= DIRECT {
                let width = next_bound as u32;
                all.iter_mut().zip(&next).for_each(|(a, b)| *a = a.wrapping_mul(width).wrapping_add(*b));
            } else {
                for (a, b) in all.iter_mut().zip(&next) {
                    let new = pairs.len() as u32;
                    *a = *pairs.entry(u64::from(*a) << 32 | u64::from(*b)).or_insert(new);
                }
            }
            bound = product.max(bound);
        }
        let mut count = self.count;
        for (row, code) in all.iter_mut().enumerate() {
            let at = *code as usize;
            if at >= self.slots.len() {
                self.slots.resize((at + 1).next_power_of_two(), 0);
            }
            let Some(slot) = self.slots.get_mut(at) else { return Err(Stop::NotMine) };
            if *slot == 0 {
                count += 1;
                *slot = u32::try_from(count).map_err(|_| Stop::NotMine)?;
                self.first.extend(values.iter().map(|vals| vals.get(row)));
            }
            *code = slot.saturating_sub(1);
        }
        if count > self.count {
            self.grow(count)?;
        }
        Ok(Some(all))
    }

    /// The groups as a table.
    pub fn table(&self, block: &Block, name: &str, by_number: bool) -> Result<Table, Stop> {
        let width = self.keys.len();
        let key = |group: usize| self.first.get(group * width..(group + 1) * width).unwrap_or_default();
        let texts = |expr: &Expr| table_of(expr).and_then(|table| block.tables.get(table));
        let mut order: Vec<usize> = (0..self.count).collect();
        // As SQLite sees groups of a table that is grouped already: nulls, then numbers, and texts by their number; those of a join
        // as it sorts them.
        order.sort_unstable_by(|a, b| {
            let pairs = key(*a).iter().zip(key(*b)).zip(self.keys);
            pairs.fold(Ordering::Equal, |order, ((a, b), expr)| {
                order.then_with(|| match (a, b, expr.ty()) {
                    (Some(a), Some(b), Some(Ty::Float)) => floats(*a, *b),
                    (Some(a), Some(b), Some(Ty::Text)) if !by_number => {
                        text_of(texts(expr), *a).cmp(text_of(texts(expr), *b))
                    }
                    (a, b, _) => a.cmp(b),
                })
            })
        });
        let declared = |expr: &Expr| match expr {
            Expr::Column { table, column, .. } => {
                block.tables.get(*table).and_then(|t| t.spec().columns.get(*column)).map(|c| c.ty)
            }
            expr if expr.ty() == Some(Ty::Float) => Some(ColumnType::F64),
            _ => None,
        };
        let keys = self
            .keys
            .iter()
            .enumerate()
            .map(|(at, key)| column(Block::key_name(at), declared(key).unwrap_or(ColumnType::I64)));
        let sums = self
            .aggregates
            .iter()
            .enumerate()
            .map(|(at, aggregate)| column(Block::aggregate_name(at), aggregate.ty()));
        let columns: Vec<ColumnSpec> = keys.chain(sums).collect();
        let spec = TableSpec {
            name: Cow::Owned(name.to_owned()),
            title: Cow::Borrowed("Groups"),
            doc: Cow::Borrowed(""),
            columns: Cow::Owned(columns),
            sorted_by: None,
            version: 1,
            evidence: Evidence::Documented,
        };
        let mut builder = AdHocBuilder::new(spec, &Memory::default());
        let mut cells: Vec<Value<'_>> = Vec::with_capacity(width + self.aggregates.len());
        for group in order {
            cells.clear();
            for (value, expr) in key(group).iter().zip(self.keys) {
                cells.push(value.map_or(Value::Null, |value| match expr.ty() {
                    Some(Ty::Text) => Value::Text(text_of(texts(expr), value)),
                    Some(Ty::Float) => Value::F64(f64::from_bits(value as u64)),
                    _ => Value::I64(value),
                }));
            }
            for (aggregate, figures) in self.aggregates.iter().zip(&self.figures) {
                cells.push(figures.value(aggregate, group, aggregate.of.as_ref().and_then(texts)));
            }
            builder.push(&cells).map_err(|_| Stop::NotMine)?;
        }
        builder.finish().map_err(|_| Stop::NotMine)
    }
}

fn column(name: String, ty: ColumnType) -> ColumnSpec {
    ColumnSpec {
        name: Cow::Owned(name),
        ty,
        unit: Unit::None,
        role: Role::Other,
        doc: Cow::Borrowed(""),
        nullable: true,
    }
}

/// The table of a column.
fn table_of(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column { table, .. } => Some(*table),
        _ => None,
    }
}

fn text_of(table: Option<&Table>, sym: i64) -> &str {
    table.map_or("", |table| table.texts().get(Sym(sym as u32)))
}

fn codes(block: &Block, columns: &Columns<'_>, key: &Expr, largest: usize) -> Codes {
    let Expr::Column { table, column, ty } = key else { return Codes::Hashed(HashMap::default()) };
    let ends = match ty {
        Ty::Text => {
            let texts = block.tables.get(*table).map_or(0, |table| table.texts().len());
            Some((0, i64::try_from(texts).unwrap_or(i64::MAX)))
        }
        Ty::Int if *table == largest => block.tables.get(*table).and_then(|table| {
            let views = (0..table.batches().len()).map(|batch| table.view(batch, *column));
            let ends = views.filter_map(|view| bounds(&super::expr::read(&view, None)));
            ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        }),
        Ty::Int => bounds(&columns.whole(*table, *column)),
        _ => None,
    };
    match ends {
        Some((least, most)) if most.abs_diff(least) < DIRECT - 2 => {
            Codes::Plain(least, most.abs_diff(least) + 2)
        }
        _ => Codes::Hashed(HashMap::default()),
    }
}

impl Codes {
    /// The code of each value, and a number that is larger than all.
    fn of(&mut self, vals: &Vals, float: bool) -> Result<(Vec<u32>, u64), Stop> {
        Ok(match self {
            Codes::Plain(least, bound) => {
                let code = |n: i64| n.wrapping_sub(*least) as u32 + 1;
                let codes = match &vals.valid {
                    None => vals.values.iter().map(|n| code(*n)).collect(),
                    Some(_) => vals.iter().map(|n| n.map_or(0, code)).collect(),
                };
                (codes, *bound)
            }
            Codes::Hashed(known) => {
                let codes = vals.iter().map(|value| {
                    let Some(value) = value else { return 0 };
                    // Both zeros are equal.
                    let value = if float && f64::from_bits(value as u64) == 0.0 { 0 } else { value };
                    let new = known.len() as u32 + 1;
                    *known.entry(value).or_insert(new)
                });
                let codes = codes.collect();
                if known.len().saturating_mul(24) > MOST_BYTES {
                    return Err(Stop::NotMine);
                }
                // How many there will be is not known: two such keys are numbered in pairs.
                (codes, DIRECT)
            }
        })
    }
}

impl Aggregate {
    fn is_float(&self) -> bool {
        self.of.as_ref().and_then(Expr::ty) == Some(Ty::Float)
    }

    fn adds_floats(&self) -> bool {
        self.is_float() && matches!(self.function, Function::Sum | Function::Avg)
    }

    fn ty(&self) -> ColumnType {
        let of = self.of.as_ref().and_then(Expr::ty);
        match (self.function, of) {
            (Function::Count, _) => ColumnType::I64,
            (Function::Avg, _) | (_, Some(Ty::Float)) => ColumnType::F64,
            (_, Some(Ty::Text)) => ColumnType::Text,
            _ => ColumnType::I64,
        }
    }
}

/// Calls `take` with the group and the value of each row that has one.
fn each(
    vals: &Vals,
    groups: Option<&[u32]>,
    mut take: impl FnMut(usize, i64) -> Option<()>,
) -> Result<(), Stop> {
    let done = match (groups, &vals.valid) {
        (Some(groups), None) => groups.iter().zip(&vals.values).try_for_each(|(g, n)| take(*g as usize, *n)),
        (Some(groups), Some(_)) => {
            let there = groups.iter().zip(vals.iter()).filter_map(|(g, n)| Some((*g as usize, n?)));
            there.into_iter().try_for_each(|(g, n)| take(g, n))
        }
        (None, _) => vals.iter().flatten().try_for_each(|n| take(0, n)),
    };
    done.ok_or(Stop::NotMine)
}

impl Figures {
    fn add(
        &mut self,
        aggregate: &Aggregate,
        vals: &Vals,
        groups: Option<&[u32]>,
        texts: Option<&Table>,
    ) -> Result<(), Stop> {
        let Figures { rows, value: held, error } = self;
        let mut count = |group: usize| {
            let rows = rows.get_mut(group)?;
            *rows += 1;
            Some(*rows == 1)
        };
        let least = aggregate.function == Function::Min;
        let better = |order: Ordering| if least { order.is_lt() } else { order.is_gt() };
        match (aggregate.function, aggregate.of.as_ref().and_then(Expr::ty)) {
            (Function::Count, _) => each(vals, groups, |group, _| count(group).map(|_| ())),
            (Function::Sum | Function::Avg, Some(Ty::Float)) => each(vals, groups, |group, value| {
                count(group)?;
                let held = held.get_mut(group)?;
                *held = add_float(*held, value, error.get_mut(group)?);
                Some(())
            }),
            // Where it overflows SQLite goes on with floats, or says so.
            (Function::Sum | Function::Avg, _) => each(vals, groups, |group, value| {
                count(group)?;
                let held = held.get_mut(group)?;
                *held = held.checked_add(value)?;
                Some(())
            }),
            (_, ty) => each(vals, groups, |group, value| {
                let is_first = count(group)?;
                let held = held.get_mut(group)?;
                let order = || match ty {
                    Some(Ty::Text) if value == *held => Ordering::Equal,
                    Some(Ty::Text) => text_of(texts, value).cmp(text_of(texts, *held)),
                    Some(Ty::Float) => floats(value, *held),
                    _ => value.cmp(held),
                };
                if is_first || better(order()) {
                    *held = value;
                }
                Some(())
            }),
        }
    }

    fn value<'t>(&self, aggregate: &Aggregate, group: usize, texts: Option<&'t Table>) -> Value<'t> {
        let rows = self.rows.get(group).copied().unwrap_or(0);
        if aggregate.function == Function::Count {
            return Value::I64(rows);
        }
        let value = self.value.get(group).copied().unwrap_or(0);
        let float = || {
            let (sum, error) = (f64::from_bits(value as u64), self.error.get(group).copied().unwrap_or(0.0));
            // An error that is infinite or no number says nothing.
            if error.is_finite() { sum + error } else { sum }
        };
        match aggregate.function {
            _ if rows == 0 => Value::Null,
            Function::Sum if aggregate.is_float() => Value::F64(float()),
            Function::Avg if aggregate.is_float() => Value::F64(float() / rows as f64),
            Function::Avg => Value::F64(value as f64 / rows as f64),
            _ if aggregate.is_float() => Value::F64(f64::from_bits(value as u64)),
            _ if aggregate.ty() == ColumnType::Text => Value::Text(text_of(texts, value)),
            _ => Value::I64(value),
        }
    }
}

/// Adds as SQLite does (Kahan, Babuška, Neumaier): `sqlite3.c`, `kahanBabuskaNeumaierStep`.
fn add_float(held: i64, value: i64, error: &mut f64) -> i64 {
    let (sum, value) = (f64::from_bits(held as u64), f64::from_bits(value as u64));
    let next = sum + value;
    *error += if sum.abs() > value.abs() { (sum - next) + value } else { (value - next) + sum };
    bits(next)
}

/// The least and the greatest value; of none 0.
pub fn bounds(vals: &Vals) -> Option<(i64, i64)> {
    let ends = match &vals.valid {
        None => vals.values.iter().fold((i64::MAX, i64::MIN), |(a, b), n| (a.min(*n), b.max(*n))),
        Some(_) => vals.iter().flatten().fold((i64::MAX, i64::MIN), |(a, b), n| (a.min(n), b.max(n))),
    };
    Some(if ends.0 > ends.1 { (0, 0) } else { ends })
}
