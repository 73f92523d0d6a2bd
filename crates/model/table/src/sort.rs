//! Orders rows by columns.

use std::cmp::Ordering;

use crate::{ColumnRef, ColumnType, ColumnView, FilterError, Sym, Table, TableSpec};

/// A column to sort by.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// The column.
    pub column: ColumnRef,
    /// Largest first.
    pub descending: bool,
}

impl SortKey {
    /// Reads `column`, or `-column` for largest first.
    ///
    /// # Errors
    /// If the table has no such column.
    pub fn parse(text: &str, table: &TableSpec) -> Result<SortKey, FilterError> {
        let (name, descending) = match text.trim().strip_prefix('-') {
            Some(name) => (name, true),
            None => (text.trim(), false),
        };
        Ok(SortKey { column: ColumnRef::find(name.trim(), table)?, descending })
    }
}

/// A cell as a number that sorts as the cell does. Nulls come last in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CellKey {
    null: bool,
    key: u64,
}

const NULL: CellKey = CellKey { null: true, key: 0 };

/// The rows in order of `keys`, at most `limit` of them; equal rows keep their order.
pub(crate) fn sorted(table: &Table, rows: &[u32], keys: &[SortKey], limit: Option<usize>) -> Vec<u32> {
    let limit = limit.unwrap_or(rows.len()).min(rows.len());
    match keys {
        [] => rows.iter().take(limit).copied().collect(),
        keys => {
            let cells: Vec<Vec<CellKey>> = keys.iter().map(|key| cell_keys(table, rows, key)).collect();
            let order = if limit == rows.len() {
                by_runs(&cells, rows.len())
            } else {
                smallest(&cells, rows.len(), limit)
            };
            order.iter().filter_map(|at| rows.get(*at as usize).copied()).collect()
        }
    }
}

/// Sorts by the first column, then each run of equal cells by the next one, and so on. Each step moves
/// key and place together, which is several times faster than to look keys up while comparing.
fn by_runs(cells: &[Vec<CellKey>], rows: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0u32..).take(rows).collect();
    let mut runs = Vec::from_iter(std::iter::once(0..rows));
    let mut pairs: Vec<(CellKey, u32)> = Vec::new();
    for (level, column) in cells.iter().enumerate() {
        let is_last = level + 1 == cells.len();
        let mut equal = Vec::new();
        for run in runs {
            let start = run.start;
            let Some(places) = order.get_mut(run) else { continue };
            pairs.clear();
            pairs.extend(places.iter().map(|at| (column.get(*at as usize).copied().unwrap_or(NULL), *at)));
            pairs.sort_unstable();
            places.iter_mut().zip(&pairs).for_each(|(place, (_, at))| *place = *at);
            if is_last {
                continue;
            }
            let mut from = start;
            for same in pairs.chunk_by(|a, b| a.0 == b.0) {
                if same.len() > 1 {
                    equal.push(from..from + same.len());
                }
                from += same.len();
            }
        }
        runs = equal;
    }
    order
}

/// The first `limit` places in order; the rest is not sorted at all.
fn smallest(cells: &[Vec<CellKey>], rows: usize, limit: usize) -> Vec<u32> {
    let Some((first, others)) = cells.split_first().filter(|_| limit > 0) else { return Vec::new() };
    let compare = |a: &(CellKey, u32), b: &(CellKey, u32)| {
        let of = |column: &Vec<CellKey>, at: u32| column.get(at as usize).copied().unwrap_or(NULL);
        let rest = || others.iter().map(|column| of(column, a.1).cmp(&of(column, b.1)));
        a.0.cmp(&b.0).then_with(|| rest().fold(Ordering::Equal, Ordering::then)).then(a.1.cmp(&b.1))
    };
    let mut places: Vec<(CellKey, u32)> = first.iter().copied().zip(0u32..).take(rows).collect();
    if limit < places.len() {
        places.select_nth_unstable_by(limit - 1, compare);
        places.truncate(limit);
    }
    places.sort_unstable_by(compare);
    places.into_iter().map(|(_, at)| at).collect()
}

fn cell_keys(table: &Table, rows: &[u32], key: &SortKey) -> Vec<CellKey> {
    let column = key.column.index;
    let spec = table.spec().columns.get(column);
    let unsigned = spec.is_some_and(|c| c.unit.is_hex());
    let mut keys = match spec.map(|c| c.ty) {
        Some(ColumnType::Text) => dictionary_keys(table, rows, column),
        Some(ColumnType::LongText) => text_keys(table, rows, column),
        _ => numbers(table, rows, column, unsigned),
    };
    if key.descending {
        keys.iter_mut().filter(|k| !k.null).for_each(|k| k.key = !k.key);
    }
    keys
}

/// Calls `read` for the cell of each row.
pub(crate) fn for_each_cell(
    table: &Table,
    rows: &[u32],
    column: usize,
    mut read: impl FnMut(&ColumnView<'_>, usize),
) {
    let views: Vec<ColumnView<'_>> = (0..table.batches().len()).map(|b| table.view(b, column)).collect();
    for row in rows {
        let place = table.locate(*row);
        let view = place.and_then(|(batch, _)| views.get(batch)).unwrap_or(&ColumnView::Empty);
        read(view, place.map_or(0, |(_, row)| row));
    }
}

fn numbers(table: &Table, rows: &[u32], column: usize, unsigned: bool) -> Vec<CellKey> {
    let mut keys = Vec::with_capacity(rows.len());
    for_each_cell(table, rows, column, |view, row| {
        let key = match view {
            ColumnView::F64(..) => view.f64(row).map(float_key),
            // Codes in 32 bits order like their zero-extended value.
            ColumnView::I32(..) if unsigned => view.i32(row).map(|v| u64::from(v as u32)),
            _ if unsigned => view.i64(row).map(|v| v as u64),
            _ => view.i64(row).map(|v| (v as u64) ^ (1 << 63)),
        };
        keys.push(key.map_or(NULL, |key| CellKey { null: false, key }));
    });
    keys
}

/// IEEE 754 §5.10 total order as an unsigned integer.
fn float_key(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Text sorts without letter case, then with it.
fn compare_text(a: &str, b: &str) -> Ordering {
    let folded = a.bytes().map(|b| b.to_ascii_lowercase()).cmp(b.bytes().map(|b| b.to_ascii_lowercase()));
    folded.then_with(|| a.cmp(b))
}

/// The place of each text that occurs among all that occur; texts are compared once per distinct one.
fn dictionary_keys(table: &Table, rows: &[u32], column: usize) -> Vec<CellKey> {
    const UNUSED: u32 = u32::MAX;
    let mut syms: Vec<Option<Sym>> = Vec::with_capacity(rows.len());
    let mut rank = vec![UNUSED; table.texts().len()];
    let mut used: Vec<Sym> = Vec::new();
    for_each_cell(table, rows, column, |view, row| {
        let sym = view.key(row);
        if let Some(sym) = sym
            && let Some(slot) = rank.get_mut(sym.0 as usize)
            && *slot == UNUSED
        {
            *slot = 0;
            used.push(sym);
        }
        syms.push(sym);
    });
    used.sort_unstable_by(|a, b| compare_text(table.texts().get(*a), table.texts().get(*b)));
    for (place, sym) in (0u32..).zip(&used) {
        if let Some(slot) = rank.get_mut(sym.0 as usize) {
            *slot = place;
        }
    }
    let key = |sym: Option<Sym>| {
        let place = sym.and_then(|sym| rank.get(sym.0 as usize));
        place.map_or(NULL, |place| CellKey { null: false, key: u64::from(*place) })
    };
    syms.into_iter().map(key).collect()
}

/// The place of each text among all, equal texts sharing one.
fn text_keys(table: &Table, rows: &[u32], column: usize) -> Vec<CellKey> {
    let mut texts: Vec<(Option<&str>, usize)> = Vec::with_capacity(rows.len());
    let views: Vec<ColumnView<'_>> = (0..table.batches().len()).map(|b| table.view(b, column)).collect();
    for (at, row) in rows.iter().enumerate() {
        let cell = table.locate(*row).and_then(|(batch, row)| views.get(batch)?.text(row));
        texts.push((cell, at));
    }
    texts.sort_unstable_by(|(a, _), (b, _)| compare_text(a.unwrap_or_default(), b.unwrap_or_default()));
    let mut keys = vec![NULL; rows.len()];
    let mut place = 0u64;
    let mut last = "";
    for (text, at) in texts {
        let (Some(text), Some(slot)) = (text, keys.get_mut(at)) else { continue };
        place += u64::from(text != last);
        last = text;
        *slot = CellKey { null: false, key: place };
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_table::{EXAMPLE, example};

    fn order(keys: &[&str], limit: Option<usize>) -> Vec<u32> {
        let keys: Vec<SortKey> = keys.iter().map(|k| SortKey::parse(k, &EXAMPLE).unwrap()).collect();
        sorted(&example(), &[0, 1, 2, 3], &keys, limit)
    }

    #[test]
    fn each_type_has_its_order() {
        assert_eq!(order(&["size"], None), [3, 0, 1, 2]);
        assert_eq!(order(&["-size"], Some(2)), [2, 1]);
        assert_eq!(order(&["wait_ms"], None), [0, 1, 2, 3], "null last");
        assert_eq!(order(&["-wait_ms"], None), [2, 1, 0, 3], "null last");
        assert_eq!(order(&["address"], None), [3, 0, 1, 2], "unsigned");
        assert_eq!(order(&["-status"], Some(1)), [2], "unsigned");
        assert_eq!(order(&["-share"], None), [1, 0, 3, 2]);
        assert_eq!(order(&["process"], None), [0, 1, 2, 3]);
        assert_eq!(order(&["-process"], None), [2, 1, 0, 3]);
        assert_eq!(order(&["fields"], None), [3, 2, 1, 0]);
        assert_eq!(order(&["-in_dpc"], None), [0, 2, 1, 3], "equal rows keep their order");
        assert_eq!(order(&["-in_dpc", "-cpu"], None), [2, 0, 1, 3]);
        assert_eq!(order(&["-in_dpc", "-cpu"], Some(1)), [2]);
        assert_eq!(order(&[], Some(2)), [0, 1]);
        assert_eq!(order(&["cpu"], Some(0)), Vec::<u32>::new());
    }

    #[test]
    fn floats_are_totally_ordered() {
        let values = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-9, 2.0, f64::INFINITY];
        assert!(values.windows(2).all(|w| float_key(w[0]) < float_key(w[1])));
    }
}
