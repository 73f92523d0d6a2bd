//! Conditions against the rows of a table.

use std::fmt::Write;
use std::ops::{Range, RangeBounds};

use crate::{ColumnType, ColumnView, Sym, Table};

use super::Predicate;
use super::test::{Order, Test};

/// What is known of a text of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextState {
    No,
    Yes,
    NotYet,
}

/// Conditions that all must hold, bound to a table. A text is tested once per distinct text of a
/// dictionary column, when a row first shows that text.
#[derive(Debug)]
pub struct Matcher<'a> {
    table: &'a Table,
    predicates: &'a [Predicate],
    /// For each predicate its tests, bound.
    bound: Vec<(Vec<Bound<'a>>, bool)>,
}

#[derive(Debug)]
struct Bound<'a> {
    column: usize,
    test: &'a Test,
    known: Vec<TextState>,
    scratch: String,
}

impl<'a> Matcher<'a> {
    /// Binds conditions, which must have been made for this table's declaration.
    pub fn new(table: &'a Table, predicates: &'a [Predicate]) -> Matcher<'a> {
        let one = |(column, test): &'a (usize, Test)| Bound {
            column: *column,
            test,
            known: Vec::new(),
            scratch: String::new(),
        };
        let bound = predicates.iter().map(|p| (p.any.iter().map(one).collect(), p.negated)).collect();
        Matcher { table, predicates, bound }
    }

    /// True if all conditions hold for a row of a batch. False for a row that is not there.
    pub fn matches(&mut self, batch: usize, row: usize) -> bool {
        let rows = self.table.batches().get(batch).map_or(0, |b| b.num_rows());
        row < rows
            && self.bound.iter_mut().all(|(any, negated)| {
                any.iter_mut().any(|bound| bound.test(&self.table.view(batch, bound.column), row)) != *negated
            })
    }

    /// Drops those rows of a batch for which not all conditions hold.
    pub fn keep(&mut self, batch: usize, rows: &mut Vec<u32>) {
        for (any, negated) in &mut self.bound {
            if let [bound] = any.as_mut_slice() {
                bound.keep(&self.table.view(batch, bound.column), *negated, rows);
                continue;
            }
            let views: Vec<ColumnView<'_>> =
                any.iter().map(|bound| self.table.view(batch, bound.column)).collect();
            let mut holds =
                |row: usize| any.iter_mut().zip(&views).any(|(bound, view)| bound.test(view, row));
            rows.retain(|row| holds(*row as usize) != *negated);
        }
    }

    /// The rows that can fulfil the conditions on the column that the table is sorted by.
    pub fn within(&self) -> Range<u32> {
        let spec = self.table.spec();
        let sorted = spec.sorted_by.as_deref().and_then(|name| spec.column_index(name));
        let sorted =
            sorted.filter(|at| spec.columns.get(*at).is_some_and(|c| c.ty == ColumnType::I64 && !c.nullable));
        let mut rows = 0..u32::try_from(self.table.rows()).unwrap_or(u32::MAX);
        for (column, from, to) in self.predicates.iter().filter_map(Predicate::span) {
            if Some(column) == sorted {
                rows.start = rows.start.max(first(self.table, column, |value| value >= from));
                rows.end = rows.end.min(first(self.table, column, |value| value > to));
            }
        }
        rows
    }

    /// The rows of a batch for which all conditions hold, in place of those of the list; `within` are the
    /// rows of [`Matcher::within`].
    pub fn rows_of(&mut self, batch: usize, within: &Range<u32>, out: &mut Vec<u32>) {
        out.clear();
        let start = self.table.starts().get(batch).copied().unwrap_or(u32::MAX);
        let count =
            self.table.batches().get(batch).map_or(0, |b| u32::try_from(b.num_rows()).unwrap_or(u32::MAX));
        out.extend(
            within.start.saturating_sub(start).min(count)..within.end.saturating_sub(start).min(count),
        );
        self.keep(batch, out);
    }

    /// The numbers of all rows for which all conditions hold, ascending.
    pub fn rows(&mut self) -> Vec<u32> {
        let (mut rows, mut of_batch, within) = (Vec::new(), Vec::new(), self.within());
        for (batch, start) in self.table.starts().iter().enumerate() {
            self.rows_of(batch, &within, &mut of_batch);
            rows.extend(of_batch.iter().map(|row| start.saturating_add(*row)));
        }
        rows
    }

    /// For each row of the table whether all conditions hold.
    pub fn mask(&mut self) -> Vec<bool> {
        let mut mask = vec![false; self.table.rows()];
        for row in self.rows() {
            if let Some(holds) = mask.get_mut(row as usize) {
                *holds = true;
            }
        }
        mask
    }
}

/// First row of a sorted column of which `is` holds.
fn first(table: &Table, column: usize, is: impl Fn(i64) -> bool) -> u32 {
    let (mut low, mut high) = (0, u32::try_from(table.rows()).unwrap_or(u32::MAX));
    while low < high {
        let middle = low + (high - low) / 2;
        if table.cell(middle, column).as_i64().is_some_and(&is) { high = middle } else { low = middle + 1 }
    }
    low
}

impl Test {
    /// Whether null fulfils it.
    pub fn holds_for_null(&self) -> bool {
        let mut bound = Bound { column: 0, test: self, known: Vec::new(), scratch: String::new() };
        bound.test(&ColumnView::Empty, 0)
    }
}

fn within(ranges: &[(i64, i64)], key: i64) -> bool {
    ranges.iter().any(|(low, high)| (*low..=*high).contains(&key))
}

impl Bound<'_> {
    fn keep(&mut self, view: &ColumnView<'_>, negated: bool, rows: &mut Vec<u32>) {
        // The common case without a choice for each row: one range of numbers, no nulls.
        if let Test::Ints { order, include, exclude } = self.test
            && let ([(low, high)], []) = (include.as_slice(), exclude.as_slice())
        {
            let (order, range) = (*order, *low..=*high);
            match view {
                ColumnView::I64(values, None) => {
                    let holds = |value: &i64| range.contains(&order.key(*value)) != negated;
                    return rows.retain(|row| values.get(*row as usize).is_some_and(holds));
                }
                ColumnView::I32(values, None) => {
                    let holds = |value: &i32| range.contains(&order.key(i64::from(*value))) != negated;
                    return rows.retain(|row| values.get(*row as usize).is_some_and(holds));
                }
                _ => {}
            }
        }
        rows.retain(|row| self.test(view, *row as usize) != negated);
    }

    fn test(&mut self, view: &ColumnView<'_>, row: usize) -> bool {
        match self.test {
            Test::Empty => view.text(row).map_or_else(|| view.is_null(row), str::is_empty),
            Test::Null(wanted) => view.is_null(row) == *wanted,
            Test::Ints { order, include, exclude } => match view.i64(row) {
                Some(value) => {
                    let key = order.key(value);
                    (include.is_empty() || within(include, key)) && !within(exclude, key)
                }
                None => include.is_empty(),
            },
            Test::Floats { include, exclude } => match view.f64(row) {
                Some(value) => {
                    (include.is_empty() || include.iter().any(|r| r.contains(&value)))
                        && !exclude.iter().any(|r| r.contains(&value))
                }
                None => include.is_empty(),
            },
            Test::Digits(hex, words) => {
                self.scratch.clear();
                // Writing into a `String` cannot fail.
                let _ = match (hex, view.i64(row), view.f64(row)) {
                    (Some(8), Some(v), _) => write!(self.scratch, "{:#x}", Order::Unsigned32.key(v)),
                    (Some(_), Some(v), _) => write!(self.scratch, "{v:#x}"),
                    (None, Some(v), _) => write!(self.scratch, "{v}"),
                    (_, None, Some(v)) => write!(self.scratch, "{v}"),
                    (_, None, None) => return words.matches_null(),
                };
                words.matches(&self.scratch)
            }
            Test::Ids(set) => set.has(view.i64(row)),
            Test::Text(words) => match (view, view.key(row)) {
                (ColumnView::Text(_, texts, _), Some(Sym(key))) => {
                    let at = key as usize;
                    if self.known.len() <= at {
                        self.known.resize(arrow_array::Array::len(*texts).max(at + 1), TextState::NotYet);
                    }
                    match self.known.get_mut(at) {
                        Some(known) => {
                            if *known == TextState::NotYet {
                                let yes = words.matches(view.text(row).unwrap_or_default());
                                *known = if yes { TextState::Yes } else { TextState::No };
                            }
                            *known == TextState::Yes
                        }
                        None => false,
                    }
                }
                _ => view.text(row).map_or_else(|| words.matches_null(), |text| words.matches(text)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FilterError;
    use super::*;
    use crate::test_table::{EXAMPLE, example};

    fn rows(conditions: &[&str]) -> Vec<u32> {
        let table = example();
        let predicates: Vec<Predicate> =
            conditions.iter().map(|c| Predicate::parse(c, &EXAMPLE).unwrap()).collect();
        let mut matcher = Matcher::new(&table, &predicates);
        let found = matcher.rows();
        let one_by_one: Vec<u32> =
            (0..table.rows() as u32).filter(|row| matcher.matches(0, *row as usize)).collect();
        assert_eq!(found, one_by_one, "{conditions:?}");
        found
    }

    #[test]
    fn text_conditions() {
        assert_eq!(rows(&["process=cmd*"]), [0, 1]);
        assert_eq!(rows(&["process = 'cmd*'"]), [0, 1], "as in SQL");
        assert_eq!(rows(&["process=CMD.exe"]), [0]);
        assert_eq!(rows(&["process!=cmd*"]), [2, 3]);
        assert_eq!(rows(&["process=!cmd*"]), [2, 3]);
        assert_eq!(rows(&["process="]), [3]);
        assert_eq!(rows(&["process!="]), [0, 1, 2]);
        assert_eq!(rows(&["fields=*two*"]), [1]);
    }

    #[test]
    fn number_conditions() {
        assert_eq!(rows(&["wait_ns>=2ms"]), [1, 2]);
        assert_eq!(rows(&["wait_ms>=2"]), [1, 2]);
        assert_eq!(rows(&["wait_ms>2"]), [2]);
        assert_eq!(rows(&["wait_ms<2"]), [0]);
        assert_eq!(rows(&["wait_us=1500"]), [0]);
        assert_eq!(rows(&["wait=1..2ms"]), [0, 1]);
        assert_eq!(rows(&["wait_ms!=2"]), [0, 2, 3]);
        assert_eq!(rows(&["wait_ns="]), [3]);
        assert_eq!(rows(&["cpu=0;2..;!3"]), [0, 2]);
        assert_eq!(rows(&["cpu=!0"]), [1, 2, 3]);
        assert_eq!(rows(&["cpu=1.5"]), Vec::<u32>::new());
        assert_eq!(rows(&["size_kib>=4"]), [1, 2]);
        assert_eq!(rows(&["share>12.5"]), [1]);
        assert_eq!(rows(&["share>=12.5%"]), [0, 1]);
        assert_eq!(rows(&["ts_ns=*0"]), [0, 1, 2, 3]);
    }

    #[test]
    fn codes_and_addresses_have_no_sign() {
        assert_eq!(rows(&["address>=0xfffff80000000000"]), [1, 2]);
        assert_eq!(rows(&["address<0x8000000000000000"]), [0, 3]);
        assert_eq!(rows(&["address=0xfffff8*"]), [1, 2]);
        assert_eq!(rows(&["status=0xc0000034"]), [2]);
        assert_eq!(rows(&["status=-1073741772"]), [2]);
        assert_eq!(rows(&["status>=0x80000000"]), [2]);
        assert_eq!(rows(&["status=0xc00*"]), [2]);
    }

    #[test]
    fn conditions_hold_together() {
        assert_eq!(rows(&["in_dpc=true"]), [0, 2]);
        assert_eq!(rows(&["in_dpc=true", "process=cmd*"]), [0]);
        assert_eq!(rows(&["in_dpc!=yes"]), [1, 3]);
        assert_eq!(rows(&[]), [0, 1, 2, 3]);
    }

    #[test]
    fn errors_explain() {
        let error = |text: &str| Predicate::parse(text, &EXAMPLE).unwrap_err();
        assert!(matches!(error("process"), FilterError::NotACondition { .. }));
        assert!(matches!(error("=5"), FilterError::NotACondition { .. }));
        assert!(matches!(error("nope=5"), FilterError::UnknownColumn { .. }));
        assert_eq!(
            error("wait_ns>5KB").to_string(),
            "`5KB` is in `kb`, but the column is in `ns` (column `wait_ns`)"
        );
        assert!(error("process>5").to_string().contains("cannot be compared by `>` with text"));
        assert!(error("in_dpc=maybe").to_string().contains("neither `true` nor `false`"));
        assert!(error("cpu=abc").to_string().contains("not a number"));
        assert!(error("cpu!5").to_string().contains("not a condition"));
    }
}
