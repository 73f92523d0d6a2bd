//! Rows brought together by the values of columns: what `GROUP BY` and joins need.
//!
//! Text columns hold numbers of texts, ids are dense: counting beats sorting, and SQLite never sees the rows in an
//! order that it would have to sort.

use etwhy_table::{ColumnView, Table};
use foldhash::HashMap;

/// Numbers below this are used as they are; others are numbered by a hash map.
const DIRECT: i64 = 1 << 22;

/// The number of each row's value among the distinct values of some columns.
struct Ids {
    ids: Vec<u32>,
    /// Every id is less.
    bound: usize,
}

/// The number of each row's group among the groups of these columns, and a number that is larger than all.
pub fn number_rows(table: &Table, columns: &[usize], rows: &[u32]) -> (Vec<u32>, usize) {
    let mut all: Option<Ids> = None;
    for &column in columns {
        let next = ids(table, column, rows);
        all = Some(match all {
            None => next,
            Some(before) => combine(&before, &next),
        });
    }
    all.map_or_else(|| (vec![0; rows.len()], 1), |ids| (ids.ids, ids.bound))
}

/// Rows in groups: those of one value stand together, in the table's order.
#[derive(Debug, Default)]
pub struct Groups {
    /// Rows by group.
    pub rows: Vec<u32>,
    /// Where each group begins; one more than groups.
    starts: Vec<u32>,
}

impl Groups {
    /// Groups `rows` by the values of `columns`.
    pub fn by_values(table: &Table, columns: &[usize], rows: Vec<u32>) -> Groups {
        if columns.is_empty() {
            return Groups { starts: vec![0, rows.len() as u32], rows };
        }
        let (ids, bound) = number_rows(table, columns, &rows);
        counted(&rows, &Ids { ids, bound })
    }

    /// The rows of group `n`.
    pub fn group(&self, n: usize) -> &[u32] {
        let range = self.starts.get(n).zip(self.starts.get(n + 1));
        range.and_then(|(&a, &b)| self.rows.get(a as usize..b as usize)).unwrap_or_default()
    }

    /// Number of groups, empty ones included.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }
}

/// Stable counting sort.
fn counted(rows: &[u32], ids: &Ids) -> Groups {
    let mut starts = vec![0u32; ids.bound + 1];
    for &id in &ids.ids {
        if let Some(n) = starts.get_mut(id as usize + 1) {
            *n += 1;
        }
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut next = starts.clone();
    let mut sorted = vec![0u32; rows.len()];
    for (&row, &id) in rows.iter().zip(&ids.ids) {
        let Some(at) = next.get_mut(id as usize) else { continue };
        if let Some(place) = sorted.get_mut(*at as usize) {
            *place = row;
        }
        *at += 1;
    }
    Groups { rows: sorted, starts }
}

fn combine(a: &Ids, b: &Ids) -> Ids {
    let product = a.bound as u64 * b.bound as u64;
    if product <= DIRECT as u64 {
        let pairs = a.ids.iter().zip(&b.ids);
        let ids = pairs.map(|(&a, &id)| (u64::from(a) * b.bound as u64 + u64::from(id)) as u32).collect();
        return Ids { ids, bound: product as usize };
    }
    let mut known: HashMap<u64, u32> = HashMap::default();
    let pairs = a.ids.iter().zip(&b.ids);
    let ids = pairs.map(|(&a, &b)| number(&mut known, u64::from(a) << 32 | u64::from(b))).collect();
    Ids { ids, bound: known.len() }
}

fn number<K: std::hash::Hash + Eq>(known: &mut HashMap<K, u32>, key: K) -> u32 {
    let next = known.len() as u32;
    *known.entry(key).or_insert(next)
}

fn ids(table: &Table, column: usize, rows: &[u32]) -> Ids {
    let views: Vec<ColumnView<'_>> = (0..table.batches().len()).map(|b| table.view(b, column)).collect();
    let cell = |row: u32| {
        let (batch, row) = table.locate(row)?;
        Some((views.get(batch)?, row))
    };
    match views.first() {
        Some(ColumnView::Text(..)) => integers(rows, |row| {
            let (view, row) = cell(row)?;
            Some(i64::from(view.key(row)?.0))
        }),
        Some(ColumnView::LongText(_)) => {
            let mut known: HashMap<Option<&str>, u32> = HashMap::default();
            let text = |row: u32| cell(row).and_then(|(view, row)| view.text(row));
            let ids = rows.iter().map(|&row| number(&mut known, text(row))).collect();
            Ids { ids, bound: known.len() }
        }
        Some(ColumnView::F64(..)) => {
            let mut known: HashMap<Option<u64>, u32> = HashMap::default();
            // Both zeros are equal in SQL, and what is no number is null.
            let bits = |v: f64| if v == 0.0 { 0 } else { v.to_bits() };
            let float = |row: u32| cell(row).and_then(|(view, row)| view.f64(row));
            let value = |row: u32| float(row).filter(|v| !v.is_nan()).map(bits);
            let ids = rows.iter().map(|&row| number(&mut known, value(row))).collect();
            Ids { ids, bound: known.len() }
        }
        _ => integers(rows, |row| {
            let (view, row) = cell(row)?;
            view.i64(row)
        }),
    }
}

/// Ids of integers: the number itself, less the smallest, where that is small; 0 for null.
fn integers(rows: &[u32], value: impl Fn(u32) -> Option<i64>) -> Ids {
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for &row in rows {
        if let Some(v) = value(row) {
            least = least.min(v);
            most = most.max(v);
        }
    }
    let span = most.checked_sub(least).unwrap_or(i64::MAX);
    if least > most || span < DIRECT {
        let id = |row: u32| value(row).map_or(0, |v| (v - least) as u32 + 1);
        let bound = if least > most { 1 } else { span as usize + 2 };
        return Ids { ids: rows.iter().map(|&row| id(row)).collect(), bound };
    }
    let mut known: HashMap<Option<i64>, u32> = HashMap::default();
    let ids = rows.iter().map(|&row| number(&mut known, value(row))).collect();
    Ids { ids, bound: known.len() }
}

/// Rows by the value of one column, for joins.
#[derive(Debug)]
pub struct Index {
    groups: Groups,
    by_value: HashMap<i64, u32>,
}

impl Index {
    /// Indexes a column of integers, or of repeating texts (by number of the text).
    pub fn new(table: &Table, column: usize) -> Index {
        let groups = Groups::by_values(table, &[column], (0..table.rows() as u32).collect());
        let mut by_value = HashMap::default();
        for n in 0..groups.len() {
            let first = groups.group(n).first();
            if let Some(value) = first.and_then(|&row| value(table, row, column)) {
                by_value.insert(value, n as u32);
            }
        }
        Index { groups, by_value }
    }

    /// Rows with this value, ascending.
    pub fn rows(&self, value: i64) -> &[u32] {
        self.by_value.get(&value).map_or(&[], |&n| self.groups.group(n as usize))
    }
}

fn value(table: &Table, row: u32, column: usize) -> Option<i64> {
    let (batch, row) = table.locate(row)?;
    let view = table.view(batch, column);
    view.key(row).map(|key| i64::from(key.0)).or_else(|| view.i64(row))
}
