//! Conditions against the rows of a table.

use std::fmt::Write;

use crate::{ColumnView, Sym, Table};

use super::Predicate;
use super::parse::{Order, Test};

/// What is known of a text of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    No,
    Yes,
    NotYet,
}

/// Conditions that all must hold, bound to a table. A pattern is evaluated once per distinct text of a
/// dictionary column, when a row first shows that text.
#[derive(Debug)]
pub struct Matcher<'a> {
    table: &'a Table,
    bound: Vec<Bound<'a>>,
}

#[derive(Debug)]
struct Bound<'a> {
    predicate: &'a Predicate,
    known: Vec<Known>,
    scratch: String,
}

impl<'a> Matcher<'a> {
    /// Binds conditions, which must have been parsed for this table's declaration.
    pub fn new(table: &'a Table, predicates: &'a [Predicate]) -> Matcher<'a> {
        let bound = |predicate| Bound { predicate, known: Vec::new(), scratch: String::new() };
        Matcher { table, bound: predicates.iter().map(bound).collect() }
    }

    /// True if all conditions hold for a row of a batch. False for a row that is not there.
    pub fn matches(&mut self, batch: usize, row: usize) -> bool {
        let rows = self.table.batches().get(batch).map_or(0, |b| b.num_rows());
        row < rows
            && self.bound.iter_mut().all(|bound| {
                let view = self.table.view(batch, bound.predicate.column.index);
                bound.matches(&view, row)
            })
    }

    /// For each row of a batch, whether all conditions hold.
    pub fn mask(&mut self, batch: usize) -> Vec<bool> {
        let rows = self.table.batches().get(batch).map_or(0, |b| b.num_rows());
        let mut mask = vec![true; rows];
        for bound in &mut self.bound {
            let view = self.table.view(batch, bound.predicate.column.index);
            bound.apply(&view, &mut mask);
        }
        mask
    }

    /// The numbers of all rows for which all conditions hold, ascending.
    pub fn rows(&mut self) -> Vec<u32> {
        let mut rows = Vec::new();
        for batch in 0..self.table.batches().len() {
            let start = self.table.starts().get(batch).copied().unwrap_or(0);
            let mask = self.mask(batch);
            rows.extend(mask.iter().zip(start..).filter(|(yes, _)| **yes).map(|(_, row)| row));
        }
        rows
    }
}

fn within(ranges: &[(i64, i64)], key: i64) -> bool {
    ranges.iter().any(|(low, high)| (*low..=*high).contains(&key))
}

impl Bound<'_> {
    /// Clears the mask where the condition does not hold.
    fn apply(&mut self, view: &ColumnView<'_>, mask: &mut [bool]) {
        // The common case in a form that compilers vectorise: one range of numbers, no nulls.
        if let Test::Ints { order, include, exclude } = &self.predicate.test
            && let ([(low, high)], []) = (include.as_slice(), exclude.as_slice())
        {
            let (order, range, negated) = (*order, *low..=*high, self.predicate.negated);
            match view {
                ColumnView::I64(values, None) => {
                    for (yes, value) in mask.iter_mut().zip(*values) {
                        *yes &= range.contains(&order.key(*value)) != negated;
                    }
                    return;
                }
                ColumnView::I32(values, None) => {
                    for (yes, value) in mask.iter_mut().zip(*values) {
                        *yes &= range.contains(&order.key(i64::from(*value))) != negated;
                    }
                    return;
                }
                _ => {}
            }
        }
        for (row, yes) in mask.iter_mut().enumerate() {
            *yes = *yes && self.matches(view, row);
        }
    }

    fn matches(&mut self, view: &ColumnView<'_>, row: usize) -> bool {
        self.test(view, row) != self.predicate.negated
    }

    fn test(&mut self, view: &ColumnView<'_>, row: usize) -> bool {
        match &self.predicate.test {
            Test::Null => view.text(row).map_or_else(|| view.is_null(row), str::is_empty),
            Test::Ints { order, include, exclude } => match view.i64(row) {
                Some(value) => {
                    let key = order.key(value);
                    (include.is_empty() || within(include, key)) && !within(exclude, key)
                }
                None => include.is_empty(),
            },
            Test::Floats { include, exclude } => match view.f64(row) {
                Some(value) => {
                    (include.is_empty() || include.iter().any(|r| r.contains(value)))
                        && !exclude.iter().any(|r| r.contains(value))
                }
                None => include.is_empty(),
            },
            Test::Digits { hex, pattern } => {
                self.scratch.clear();
                // Writing into a `String` cannot fail.
                let _ = match (hex, view.i64(row), view.f64(row)) {
                    (Some(8), Some(v), _) => write!(self.scratch, "{:#x}", Order::Unsigned32.key(v)),
                    (Some(_), Some(v), _) => write!(self.scratch, "{v:#x}"),
                    (None, Some(v), _) => write!(self.scratch, "{v}"),
                    (_, None, Some(v)) => write!(self.scratch, "{v}"),
                    (_, None, None) => return pattern.matches_null(),
                };
                pattern.matches(&self.scratch)
            }
            Test::Bool(wanted) => view.bool(row) == Some(*wanted),
            Test::Text(pattern) => match (view, view.key(row)) {
                (ColumnView::Text(_, texts, _), Some(Sym(key))) => {
                    let at = key as usize;
                    if self.known.len() <= at {
                        self.known.resize(arrow_array::Array::len(*texts).max(at + 1), Known::NotYet);
                    }
                    match self.known.get_mut(at) {
                        Some(known) => {
                            if *known == Known::NotYet {
                                let yes = pattern.matches(view.text(row).unwrap_or_default());
                                *known = if yes { Known::Yes } else { Known::No };
                            }
                            *known == Known::Yes
                        }
                        None => false,
                    }
                }
                _ => view.text(row).map_or_else(|| pattern.matches_null(), |text| pattern.matches(text)),
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
