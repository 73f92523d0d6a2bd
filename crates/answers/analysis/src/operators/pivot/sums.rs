//! What is computed for each group.

use super::code::{Coder, CoderPlan};
use super::reference::{Reference, position};
use super::spark::Sparks;
use super::{Function, PivotError, order, wrong};
use etwhy_table::{ColumnType, ColumnView, Value};
use foldhash::{HashSet, HashSetExt as _};
use std::sync::Arc;

/// A value of the question.
pub(super) struct Measure<'d> {
    /// What of; none: rows.
    pub reference: Option<Reference<'d>>,
    /// How.
    pub function: Function,
    coder: Option<CoderPlan<'d>>,
    /// Cells by id, if an id leads to the column.
    far: Option<Arc<Vec<Value<'d>>>>,
}

impl<'d> Measure<'d> {
    pub fn new(reference: Option<Reference<'d>>, function: Function) -> Result<Measure<'d>, PivotError> {
        match &reference {
            None if function != Function::Count => return wrong(format!("{} of what?", function.name())),
            Some(reference)
                if matches!(function, Function::Sum | Function::Avg) && reference.spec.ty.is_text() =>
            {
                return wrong(format!("`{}` holds texts: they have no {}", reference.name, function.name()));
            }
            _ => {}
        }
        let coder = reference.as_ref().filter(|_| function == Function::Unique).map(CoderPlan::new);
        let far = reference.as_ref().and_then(|reference| reference.far.as_ref());
        let far = far.filter(|_| function != Function::Unique).map(|far| Arc::new(far.cells()));
        Ok(Measure { reference, function, coder, far })
    }

    pub fn acc(&self) -> Acc<'d> {
        let float = self.reference.as_ref().is_some_and(|r| r.spec.ty == ColumnType::F64);
        match self.function {
            Function::Count => Acc::Count(Vec::new()),
            Function::Sum | Function::Avg if float => Acc::FloatSum(Vec::new()),
            Function::Sum | Function::Avg => Acc::IntSum(Vec::new()),
            Function::Min | Function::Max => Acc::Extreme(Vec::new(), self.function == Function::Max),
            Function::Unique => match &self.coder {
                Some(plan) => Acc::Unique(Box::new(Distinct::new(plan.coder()))),
                None => Acc::Count(Vec::new()),
            },
        }
    }
}

/// Distinct values by group.
pub(super) struct Distinct<'d> {
    coder: Coder<'d>,
    seen: HashSet<u64>,
    counts: Vec<u64>,
    codes: Vec<u32>,
}

impl<'d> Distinct<'d> {
    fn new(coder: Coder<'d>) -> Distinct<'d> {
        Distinct { coder, seen: HashSet::new(), counts: Vec::new(), codes: Vec::new() }
    }

    fn put(&mut self, group: u32, code: u32) {
        if code > 0
            && self.seen.insert(u64::from(group) << 32 | u64::from(code))
            && let Some(count) = self.counts.get_mut(group as usize)
        {
            *count += 1;
        }
    }
}

/// Sums of one value, by group.
pub(super) enum Acc<'d> {
    Count(Vec<u64>),
    /// With the number of cells that are not null.
    IntSum(Vec<(i128, u64)>),
    FloatSum(Vec<(f64, u64)>),
    /// Largest if the flag is set, else smallest.
    Extreme(Vec<Value<'d>>, bool),
    Unique(Box<Distinct<'d>>),
}

/// Rows of a batch with their groups.
pub(super) struct Batch<'r> {
    pub rows: &'r [u32],
    pub groups: &'r [u32],
    /// Part of time of each row, if asked for.
    pub parts: &'r [u32],
}

fn extreme<'d>(slot: &mut Value<'d>, value: Value<'d>, largest: bool) {
    let nan = matches!(value, Value::F64(number) if number.is_nan());
    if value.is_null() || nan {
        return;
    }
    if slot.is_null() || order::cells(&value, slot, largest).is_lt() {
        *slot = value;
    }
}

impl<'d> Acc<'d> {
    pub fn reserve(&mut self, groups: usize) {
        match self {
            Acc::Count(list) => list.resize(groups, 0),
            Acc::IntSum(list) => list.resize(groups, (0, 0)),
            Acc::FloatSum(list) => list.resize(groups, (0.0, 0)),
            Acc::Extreme(list, _) => list.resize(groups, Value::Null),
            Acc::Unique(distinct) => distinct.counts.resize(groups, 0),
        }
    }

    /// Adds the rows of a batch.
    pub fn add(
        &mut self,
        measure: &Measure<'d>,
        view: impl Fn(usize) -> ColumnView<'d>,
        batch: &Batch<'_>,
        mut spark: Option<&mut Sparks>,
    ) {
        let Some(reference) = &measure.reference else {
            if let Acc::Count(list) = self {
                for group in batch.groups {
                    if let Some(count) = list.get_mut(*group as usize) {
                        *count += 1;
                    }
                }
            }
            if let Some(spark) = spark {
                batch.groups.iter().zip(batch.parts).for_each(|(group, part)| spark.add(*group, *part, 1.0));
            }
            return;
        };
        let view = view(reference.own);
        let mut line = |at: usize, group: u32, value: f64| {
            if let (Some(spark), Some(part)) = (spark.as_mut(), batch.parts.get(at)) {
                spark.add(group, *part, value);
            }
        };
        match self {
            Acc::Unique(distinct) => {
                let mut codes = std::mem::take(&mut distinct.codes);
                codes.clear();
                distinct.coder.encode(&view, batch.rows, &mut codes);
                for (at, (group, code)) in batch.groups.iter().zip(&codes).enumerate() {
                    distinct.put(*group, *code);
                    line(at, *group, 1.0);
                }
                distinct.codes = codes;
            }
            Acc::IntSum(list) => ints(&view, measure.far.as_deref(), batch, |at, group, number| {
                if let Some((sum, count)) = list.get_mut(group as usize) {
                    *sum += i128::from(number);
                    *count += 1;
                }
                line(at, group, number as f64);
            }),
            Acc::FloatSum(list) => cells(&view, measure.far.as_deref(), batch, |at, group, cell| {
                let Some(number) = cell.as_f64().filter(|n| !n.is_nan()) else { return };
                if let Some((sum, count)) = list.get_mut(group as usize) {
                    *sum += number;
                    *count += 1;
                }
                line(at, group, number);
            }),
            Acc::Extreme(list, largest) => {
                let largest = *largest;
                cells(&view, measure.far.as_deref(), batch, |at, group, cell| {
                    if let Some(slot) = list.get_mut(group as usize) {
                        extreme(slot, cell, largest);
                    }
                    if let Some(number) = cell.as_f64() {
                        line(at, group, number);
                    }
                });
            }
            Acc::Count(list) => cells(&view, measure.far.as_deref(), batch, |at, group, cell| {
                if cell.is_null() {
                    return;
                }
                if let Some(count) = list.get_mut(group as usize) {
                    *count += 1;
                }
                line(at, group, 1.0);
            }),
        }
    }

    /// Adds those of another thread; `groups` says which group is which here.
    pub fn absorb(&mut self, other: Acc<'d>, groups: &[u32]) {
        match (self, other) {
            (Acc::Count(ours), Acc::Count(theirs)) => merge(ours, theirs, groups, |own, n| *own += n),
            (Acc::IntSum(ours), Acc::IntSum(theirs)) => {
                merge(ours, theirs, groups, |own, (sum, n)| *own = (own.0 + sum, own.1 + n));
            }
            (Acc::FloatSum(ours), Acc::FloatSum(theirs)) => {
                merge(ours, theirs, groups, |own, (sum, n)| *own = (own.0 + sum, own.1 + n));
            }
            (Acc::Extreme(ours, largest), Acc::Extreme(theirs, _)) => {
                merge(ours, theirs, groups, |own, value| extreme(own, value, *largest));
            }
            (Acc::Unique(ours), Acc::Unique(theirs)) => {
                let codes = ours.coder.absorb(&theirs.coder);
                for pair in theirs.seen {
                    let group = groups.get((pair >> 32) as usize).copied().unwrap_or(0);
                    let code = codes.get((pair & 0xffff_ffff) as usize).copied().unwrap_or(0);
                    ours.put(group, code);
                }
            }
            _ => {}
        }
    }

    /// The value of a group.
    pub fn value(&self, group: usize, function: Function) -> Value<'d> {
        let clamp = |sum: i128| sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        let count = |n: u64| Value::I64(i64::try_from(n).unwrap_or(i64::MAX));
        match self {
            Acc::Count(list) => list.get(group).map_or(Value::Null, |n| count(*n)),
            Acc::Unique(distinct) => distinct.counts.get(group).map_or(Value::Null, |n| count(*n)),
            Acc::Extreme(list, _) => list.get(group).copied().unwrap_or(Value::Null),
            Acc::IntSum(list) => match list.get(group) {
                Some((sum, n)) if *n > 0 && function == Function::Avg => Value::F64(*sum as f64 / *n as f64),
                Some((sum, n)) if *n > 0 => Value::I64(clamp(*sum)),
                _ => Value::Null,
            },
            Acc::FloatSum(list) => match list.get(group) {
                Some((sum, n)) if *n > 0 && function == Function::Avg => Value::F64(*sum / *n as f64),
                Some((sum, n)) if *n > 0 => Value::F64(*sum),
                _ => Value::Null,
            },
        }
    }

    /// The value over all groups.
    pub fn total(&self, function: Function) -> Value<'d> {
        let mut all = match self {
            Acc::Unique(distinct) => {
                let codes: HashSet<u32> =
                    distinct.seen.iter().map(|pair| (pair & 0xffff_ffff) as u32).collect();
                return Value::I64(codes.len() as i64);
            }
            Acc::Count(list) => Acc::Count(vec![list.iter().sum()]),
            Acc::IntSum(list) => {
                Acc::IntSum(vec![list.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))])
            }
            Acc::FloatSum(list) => {
                Acc::FloatSum(vec![list.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1))])
            }
            Acc::Extreme(_, largest) => Acc::Extreme(vec![Value::Null], *largest),
        };
        if let (Acc::Extreme(all, largest), Acc::Extreme(list, _)) = (&mut all, self)
            && let [slot] = all.as_mut_slice()
        {
            list.iter().for_each(|value| extreme(slot, *value, *largest));
        }
        all.value(0, function)
    }
}

/// Adds what another thread found to the same groups here.
fn merge<T>(ours: &mut [T], theirs: Vec<T>, groups: &[u32], mut add: impl FnMut(&mut T, T)) {
    for (value, group) in theirs.into_iter().zip(groups) {
        if let Some(slot) = ours.get_mut(*group as usize) {
            add(slot, value);
        }
    }
}

/// Calls `each` for every whole number with its place and group.
fn ints<'d>(
    view: &ColumnView<'d>,
    far: Option<&Vec<Value<'d>>>,
    batch: &Batch<'_>,
    mut each: impl FnMut(usize, u32, i64),
) {
    let pairs = batch.rows.iter().zip(batch.groups).enumerate();
    match (far, *view) {
        (None, ColumnView::I64(numbers, None)) => {
            for (at, (row, group)) in pairs {
                each(at, *group, numbers.get(*row as usize).copied().unwrap_or(0));
            }
        }
        (None, view) => {
            for (at, (row, group)) in pairs {
                if let Some(number) = view.i64(*row as usize) {
                    each(at, *group, number);
                }
            }
        }
        (Some(_), _) => cells(view, far, batch, |at, group, cell| {
            if let Some(number) = cell.as_i64() {
                each(at, group, number);
            }
        }),
    }
}

/// Calls `each` for every cell with its place and group.
fn cells<'d>(
    view: &ColumnView<'d>,
    far: Option<&Vec<Value<'d>>>,
    batch: &Batch<'_>,
    mut each: impl FnMut(usize, u32, Value<'d>),
) {
    for (at, (row, group)) in batch.rows.iter().zip(batch.groups).enumerate() {
        let cell = match far {
            None => view.value(*row as usize),
            Some(cells) => {
                let id = view.i64(*row as usize);
                id.and_then(|id| cells.get(position(id))).copied().unwrap_or(Value::Null)
            }
        };
        each(at, *group, cell);
    }
}
