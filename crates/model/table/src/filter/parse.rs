//! Conditions: text to [`Predicate`].

use crate::{ColumnType, TableSpec, Unit};

use super::number::{Exact, Written};
use super::pattern::{Pattern, has_wildcard};
use super::{ColumnRef, FilterError};

/// One condition on one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    pub(super) column: ColumnRef,
    pub(super) negated: bool,
    pub(super) test: Test,
}

/// What a cell is tested for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// Empty.
    Null,
    /// Within one of the ranges (or there are none), and not within one of the others.
    Ints { order: Order, include: Vec<(i64, i64)>, exclude: Vec<(i64, i64)> },
    /// The same with floats.
    Floats { include: Vec<FloatRange>, exclude: Vec<FloatRange> },
    /// The digits, against a pattern.
    Digits { hex: Option<u32>, pattern: Pattern },
    /// Equality.
    Bool(bool),
    /// The text.
    Text(Pattern),
}

/// How the bits of an integer column are ordered: `key` maps them to `i64` so that ranges work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Signed,
    Unsigned32,
    Unsigned64,
}

impl Order {
    fn of(ty: ColumnType, unit: Unit) -> Order {
        match (unit.is_hex(), ty) {
            (true, ColumnType::I32) => Order::Unsigned32,
            (true, _) => Order::Unsigned64,
            _ => Order::Signed,
        }
    }

    #[inline]
    pub(super) fn key(self, value: i64) -> i64 {
        match self {
            Order::Signed => value,
            Order::Unsigned32 => i64::from(value as u32),
            Order::Unsigned64 => value ^ i64::MIN,
        }
    }

    fn domain(self) -> (i128, i128) {
        match self {
            Order::Signed => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Order::Unsigned32 => (0, i128::from(u32::MAX)),
            Order::Unsigned64 => (0, i128::from(u64::MAX)),
        }
    }

    /// A code may be written as the negative number that tools without unsigned types print for it.
    fn unsigned(self, v: i128) -> i128 {
        let (min, max) = self.domain();
        if min == 0 && v < 0 { v + max + 1 } else { v }
    }

    /// The range of keys for an inclusive range of numbers; an empty range if none can be stored.
    fn range(self, low: Option<i128>, high: Option<i128>) -> (i64, i64) {
        let (min, max) = self.domain();
        let low = low.unwrap_or(min).max(min);
        let high = high.unwrap_or(max).min(max);
        if low > high {
            return (1, 0);
        }
        // Both are within the order's domain, so the casts keep their bits.
        let key = |v: i128| match self {
            Order::Unsigned64 => (v as u64 as i64) ^ i64::MIN,
            _ => v as i64,
        };
        (key(low), key(high))
    }
}

/// A range of floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FloatRange {
    low: f64,
    high: f64,
    open: bool,
}

impl FloatRange {
    pub(super) fn contains(&self, v: f64) -> bool {
        if self.open { v > self.low && v < self.high } else { v >= self.low && v <= self.high }
    }
}

/// The ends of a range of numbers as asked for; `open` ends do not count themselves.
struct Ends {
    low: Option<Exact>,
    high: Option<Exact>,
    open: bool,
}

impl Ends {
    fn ints(&self, order: Order) -> (i64, i64) {
        let (floor, ceil) = (|v: Exact| order.unsigned(v.floor()), |v: Exact| order.unsigned(v.ceil()));
        let low = self.low.map(|v| if self.open { floor(v) + 1 } else { ceil(v) });
        let high = self.high.map(|v| if self.open { ceil(v) - 1 } else { floor(v) });
        order.range(low, high)
    }

    fn floats(&self) -> FloatRange {
        FloatRange {
            low: self.low.map_or(f64::NEG_INFINITY, Exact::float),
            high: self.high.map_or(f64::INFINITY, Exact::float),
            open: self.open,
        }
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
        let value = rest.strip_prefix(operator).unwrap_or_default().trim();
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
        Ok(Predicate { column, negated: operator == "!=", test })
    }

    /// The column that is tested.
    pub fn column(&self) -> &ColumnRef {
        &self.column
    }
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
            (true, Ends { low: Some(end), high: None, open })
        } else {
            (true, Ends { low: None, high: Some(end), open })
        }]))
    }

    fn equality(&self, value: &str) -> Result<Test, FilterError> {
        if value.is_empty() {
            return Ok(Test::Null);
        }
        match self.ty {
            ColumnType::Text | ColumnType::LongText => Ok(Test::Text(Pattern::parse(value))),
            ColumnType::Bool => match value.to_ascii_lowercase().as_str() {
                "true" | "yes" | "1" => Ok(Test::Bool(true)),
                "false" | "no" | "0" => Ok(Test::Bool(false)),
                _ => Err(self.bad(value, "is neither `true` nor `false`")),
            },
            _ if has_wildcard(value) => {
                let digits = if self.ty == ColumnType::I32 { 8 } else { 16 };
                let hex = self.stored.is_hex().then_some(digits);
                Ok(Test::Digits { hex, pattern: Pattern::parse(value) })
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
    fn range(&self, text: &str) -> Result<Ends, FilterError> {
        let Some((low, high)) = text.split_once("..") else {
            let (value, _) = self.number(text, self.column.unit)?;
            return Ok(Ends { low: Some(value), high: Some(value), open: false });
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
        Ok(Ends { low: low_end, high: high_end, open: false })
    }

    fn ranges(&self, ranges: Vec<(bool, Ends)>) -> Test {
        let (include, exclude): (Vec<_>, Vec<_>) = ranges.into_iter().partition(|(include, _)| *include);
        if self.ty == ColumnType::F64 {
            let floats = |ends: Vec<(bool, Ends)>| ends.iter().map(|(_, e)| e.floats()).collect();
            Test::Floats { include: floats(include), exclude: floats(exclude) }
        } else {
            let order = Order::of(self.ty, self.stored);
            let ints = |ends: Vec<(bool, Ends)>| ends.iter().map(|(_, e)| e.ints(order)).collect();
            Test::Ints { order, include: ints(include), exclude: ints(exclude) }
        }
    }
}
