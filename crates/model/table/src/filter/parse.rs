//! Conditions: text to [`Predicate`].

use std::ops::Bound;

use crate::{ColumnType, TableSpec, Unit};

use super::number::{Exact, Written};
use super::pattern::{Pattern, has_wildcard};
use super::test::{Order, Test, Words, quoted};
use super::{ColumnRef, FilterError};

/// One condition: a cell of the row fulfils its test.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    /// Columns by position, and what they are tested for. It is enough if one cell fulfils its test.
    pub any: Vec<(usize, Test)>,
    /// All other rows instead.
    pub negated: bool,
}

/// The ends of a range of numbers as asked for; `open` ends do not count themselves.
struct Asked {
    low: Option<Exact>,
    high: Option<Exact>,
    open: bool,
}

impl Asked {
    fn ints(&self, order: Order) -> (i64, i64) {
        let (floor, ceil) = (|v: Exact| order.unsigned(v.floor()), |v: Exact| order.unsigned(v.ceil()));
        let low = self.low.map(|v| if self.open { floor(v) + 1 } else { ceil(v) });
        let high = self.high.map(|v| if self.open { ceil(v) - 1 } else { floor(v) });
        order.range(low, high)
    }

    fn floats(&self) -> (Bound<f64>, Bound<f64>) {
        let end = if self.open { Bound::Excluded } else { Bound::Included };
        let bound = |v: Option<Exact>| v.map_or(Bound::Unbounded, |v| end(v.float()));
        (bound(self.low), bound(self.high))
    }
}

const OPERATORS: [&str; 7] = ["!=", ">=", "<=", "==", "=", ">", "<"];

impl Predicate {
    /// Reads one condition on `table`.
    ///
    /// # Errors
    /// If it is no condition, the column is unknown, or the value does not fit the column.
    pub fn parse(text: &str, table: &TableSpec) -> Result<Predicate, FilterError> {
        let not_a_condition = || FilterError::NotACondition { text: text.to_owned() };
        let at = text.find(['!', '=', '<', '>']).ok_or_else(not_a_condition)?;
        let (name, rest) = text.split_at_checked(at).ok_or_else(not_a_condition)?;
        let operator = OPERATORS.into_iter().find(|o| rest.starts_with(o)).ok_or_else(not_a_condition)?;
        let value = unquoted(rest.strip_prefix(operator).unwrap_or_default().trim());
        let name = name.trim();
        if name.is_empty() {
            return Err(not_a_condition());
        }
        let column = ColumnRef::find(name, table)?;
        let spec = table.columns.get(column.index).ok_or_else(not_a_condition)?;
        let reader = Reader { asked: name, column: &column, ty: spec.ty, stored: spec.unit };
        let test = match operator {
            "=" | "==" | "!=" => reader.equality(value)?,
            order => reader.order(order, value)?,
        };
        Ok(Predicate { any: vec![(column.index, test)], negated: operator == "!=" })
    }

    /// The same in SQL, given the name of each tested column; `None` for what SQL has no words for.
    pub fn sql(&self, columns: impl IntoIterator<Item = impl AsRef<str>>) -> Option<String> {
        let tests = self.any.iter().zip(columns);
        let list: Vec<String> =
            tests.map(|((_, test), column)| test.sql(column.as_ref())).collect::<Option<_>>()?;
        let any = list.join(" OR ");
        Some(match (self.negated, list.len()) {
            (true, _) => format!("NOT coalesce({any}, 0)"),
            (false, 1) => any,
            (false, _) => format!("({any})"),
        })
    }

    /// The same in SQL for rows of a table.
    pub fn sql_of(&self, table: &TableSpec) -> Option<String> {
        let name =
            |(column, _): &(usize, Test)| table.columns.get(*column).map(|column| quoted(&column.name));
        self.sql(self.any.iter().map(name).collect::<Option<Vec<String>>>()?)
    }

    /// Column, first and last value, if it only restricts a column of whole numbers.
    pub(super) fn span(&self) -> Option<(usize, i64, i64)> {
        match (self.any.as_slice(), self.negated) {
            ([(column, Test::Ints { order: Order::Signed, include, exclude })], false) => {
                match (include.as_slice(), exclude.as_slice()) {
                    ([(low, high)], []) => Some((*column, *low, *high)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A value that is written as in SQL: `'cmd.exe'`.
fn unquoted(value: &str) -> &str {
    let inner = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    inner.filter(|inner| !inner.contains('\'')).unwrap_or(value)
}

/// Reads the values of one column.
struct Reader<'a> {
    asked: &'a str,
    column: &'a ColumnRef,
    ty: ColumnType,
    stored: Unit,
}

impl Reader<'_> {
    fn bad(&self, value: &str, problem: impl Into<String>) -> FilterError {
        FilterError::BadValue {
            value: value.to_owned(),
            column: self.asked.to_owned(),
            problem: problem.into(),
        }
    }

    fn number(&self, text: &str, default: Unit) -> Result<(Exact, Option<Unit>), FilterError> {
        let written = Written::parse(text).map_err(|problem| self.bad(text, problem))?;
        let exact = written.in_unit(self.stored, default).map_err(|problem| self.bad(text, problem))?;
        Ok((exact, written.suffix))
    }

    fn order(&self, operator: &str, value: &str) -> Result<Test, FilterError> {
        if !self.ty.is_number() {
            return Err(
                self.bad(value, format!("cannot be compared by `{operator}` with {}", self.ty.name()))
            );
        }
        let (end, _) = self.number(value, self.column.unit)?;
        let open = operator.len() == 1;
        Ok(self.ranges(vec![if operator.starts_with('>') {
            (true, Asked { low: Some(end), high: None, open })
        } else {
            (true, Asked { low: None, high: Some(end), open })
        }]))
    }

    fn equality(&self, value: &str) -> Result<Test, FilterError> {
        if value.is_empty() {
            return Ok(Test::Empty);
        }
        match self.ty {
            ColumnType::Text | ColumnType::LongText => Ok(Test::Text(Words::Pattern(Pattern::parse(value)))),
            ColumnType::Bool => match value.to_ascii_lowercase().as_str() {
                "true" | "yes" | "1" => Ok(Test::ints([(Bound::Included(1), Bound::Included(1))])),
                "false" | "no" | "0" => Ok(Test::ints([(Bound::Included(0), Bound::Included(0))])),
                _ => Err(self.bad(value, "is neither `true` nor `false`")),
            },
            _ if has_wildcard(value) => {
                let digits = if self.ty == ColumnType::I32 { 8 } else { 16 };
                let hex = self.stored.is_hex().then_some(digits);
                Ok(Test::Digits(hex, Words::Pattern(Pattern::parse(value))))
            }
            _ => {
                let items = value.split(';').map(str::trim).filter(|item| !item.is_empty());
                let ranges = items.map(|item| match item.strip_prefix('!') {
                    Some(item) => Ok((false, self.range(item)?)),
                    None => Ok((true, self.range(item)?)),
                });
                Ok(self.ranges(ranges.collect::<Result<_, FilterError>>()?))
            }
        }
    }

    /// `100`, `100..200`, `100..`, `..200`; in `1..5ms` both ends are in milliseconds.
    fn range(&self, text: &str) -> Result<Asked, FilterError> {
        let Some((low, high)) = text.split_once("..") else {
            let (value, _) = self.number(text, self.column.unit)?;
            return Ok(Asked { low: Some(value), high: Some(value), open: false });
        };
        let mut default = self.column.unit;
        let (mut low_end, mut high_end) = (None, None);
        if !high.trim().is_empty() {
            let (value, suffix) = self.number(high, default)?;
            high_end = Some(value);
            default = suffix.unwrap_or(default);
        }
        if !low.trim().is_empty() {
            low_end = Some(self.number(low, default)?.0);
        }
        Ok(Asked { low: low_end, high: high_end, open: false })
    }

    fn ranges(&self, ranges: Vec<(bool, Asked)>) -> Test {
        let (include, exclude): (Vec<_>, Vec<_>) = ranges.into_iter().partition(|(include, _)| *include);
        if self.ty == ColumnType::F64 {
            let floats = |ends: Vec<(bool, Asked)>| ends.iter().map(|(_, e)| e.floats()).collect();
            Test::Floats { include: floats(include), exclude: floats(exclude) }
        } else {
            let order = Order::for_column(self.ty, self.stored);
            let ints = |ends: Vec<(bool, Asked)>| ends.iter().map(|(_, e)| e.ints(order)).collect();
            Test::Ints { order, include: ints(include), exclude: ints(exclude) }
        }
    }
}
