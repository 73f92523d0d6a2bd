//! What a cell is tested for: the one form of conditions, whoever wrote them. [`Matcher`](super::Matcher) evaluates it, [`Test::sql`]
//! prints it.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::{ColumnType, Unit};

use super::pattern::Pattern;

/// Ends of a range.
pub type Ends<T> = (Bound<T>, Bound<T>);

/// What a cell is tested for.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// Null, or a text without letters.
    Empty,
    /// Null, or anything but null.
    Null(bool),
    /// Within one of the ranges (or there are none), and not within one of the others. Both ends count.
    Ints {
        /// How bits are compared.
        order: Order,
        /// Ranges of [`Order`]'s keys.
        include: Vec<(i64, i64)>,
        /// The same.
        exclude: Vec<(i64, i64)>,
    },
    /// The same with floats.
    Floats {
        /// Ranges.
        include: Vec<Ends<f64>>,
        /// The same.
        exclude: Vec<Ends<f64>>,
    },
    /// The digits of a number, in hexadecimal with as many bytes if given.
    Digits(Option<u32>, Words),
    /// The text.
    Text(Words),
    /// An id for which a set says yes.
    Ids(IdSet),
}

/// What a text is tested for.
#[derive(Debug, Clone, PartialEq)]
pub enum Words {
    /// Wildcards.
    Pattern(Pattern),
    /// A part, in lower case; A to Z and a to z are the same.
    Contains(String),
    /// One of some ranges of texts, by their bytes.
    Among(Vec<Ends<String>>),
}

impl Words {
    pub(super) fn matches(&self, text: &str) -> bool {
        match self {
            Words::Pattern(pattern) => pattern.matches(text),
            Words::Contains(part) => text.to_ascii_lowercase().contains(part.as_str()),
            Words::Among(ranges) => ranges.iter().any(|(low, high)| {
                let ends = (low.as_ref().map(String::as_str), high.as_ref().map(String::as_str));
                RangeBounds::<str>::contains(&ends, text)
            }),
        }
    }

    pub(super) fn matches_null(&self) -> bool {
        matches!(self, Words::Pattern(pattern) if pattern.matches_null())
    }
}

/// Ids, each with whether it is meant.
#[derive(Debug, Clone, PartialEq)]
pub struct IdSet {
    /// By id.
    pub ids: Arc<Vec<bool>>,
    /// Whether null, and an id that the list lacks, are meant.
    pub others: bool,
    /// The same in SQL, with `{}` for the column.
    pub sql: Option<String>,
}

impl IdSet {
    pub(super) fn has(&self, id: Option<i64>) -> bool {
        let at = id.and_then(|id| usize::try_from(id).ok());
        at.and_then(|at| self.ids.get(at)).copied().unwrap_or(self.others)
    }
}

/// How the bits of an integer column are ordered: `key` maps them to `i64` so that ranges work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they are.
    Signed,
    /// 32 bits without sign.
    Unsigned32,
    /// 64 bits without sign.
    Unsigned64,
}

impl Order {
    pub(super) fn for_column(ty: ColumnType, unit: Unit) -> Order {
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
    pub(super) fn unsigned(self, v: i128) -> i128 {
        let (min, max) = self.domain();
        if min == 0 && v < 0 { v + max + 1 } else { v }
    }

    /// The range of keys for an inclusive range of numbers; an empty range if none can be stored.
    pub(super) fn range(self, low: Option<i128>, high: Option<i128>) -> (i64, i64) {
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

impl Test {
    /// Whole numbers within one of some ranges, with their sign.
    pub fn ints(ranges: impl IntoIterator<Item = Ends<i64>>) -> Test {
        let order = Order::Signed;
        let low = |end: Bound<i64>| match end {
            Bound::Included(n) => Some(i128::from(n)),
            Bound::Excluded(n) => Some(i128::from(n) + 1),
            Bound::Unbounded => None,
        };
        let high = |end: Bound<i64>| match end {
            Bound::Excluded(n) => Some(i128::from(n) - 1),
            end => low(end),
        };
        let mut include: Vec<_> =
            ranges.into_iter().map(|(from, to)| order.range(low(from), high(to))).collect();
        if include.is_empty() {
            // No range would mean all numbers.
            include.push((1, 0));
        }
        Test::Ints { order, include, exclude: Vec::new() }
    }

    /// The same in SQL, for a column; `None` for what SQL has no words for: wildcards, numbers without sign.
    pub fn sql(&self, column: &str) -> Option<String> {
        Some(match self {
            Test::Empty => format!("coalesce({column}, '') = ''"),
            Test::Null(true) => format!("{column} IS NULL"),
            Test::Null(false) => format!("{column} IS NOT NULL"),
            Test::Ints { order: Order::Signed, include, exclude } => {
                let ends = |&(low, high): &(i64, i64)| match (low, high) {
                    (low, high) if low == high => (Bound::Included(low), Bound::Included(high)),
                    _ => (
                        if low == i64::MIN { Bound::Unbounded } else { Bound::Included(low) },
                        high.checked_add(1).map_or(Bound::Unbounded, Bound::Excluded),
                    ),
                };
                let ends = |list: &[(i64, i64)]| list.iter().map(ends).collect::<Vec<_>>();
                both(column, &ends(include), &ends(exclude), i64::to_string)
            }
            Test::Floats { include, exclude } => both(column, include, exclude, |n| format!("{n:?}")),
            Test::Text(Words::Among(ranges)) => any_of(column, ranges, |text| quoted_text(text)),
            Test::Text(Words::Contains(part)) => format!("instr(lower({column}), {}) > 0", quoted_text(part)),
            Test::Digits(None, Words::Contains(part)) => {
                format!("instr(lower(CAST({column} AS TEXT)), {}) > 0", quoted_text(part))
            }
            Test::Ids(IdSet { sql: Some(sql), .. }) => sql.replacen("{}", column, 1),
            Test::Ints { .. } | Test::Digits(..) | Test::Text(Words::Pattern(_)) | Test::Ids(_) => {
                return None;
            }
        })
    }
}

fn both<T: PartialEq>(
    column: &str,
    include: &[Ends<T>],
    exclude: &[Ends<T>],
    sql: impl Fn(&T) -> String,
) -> String {
    let without = || format!("NOT coalesce({}, 0)", any_of(column, exclude, &sql));
    match (include, exclude) {
        ([], _) => without(),
        (_, []) => any_of(column, include, &sql),
        _ => format!("{} AND {}", any_of(column, include, &sql), without()),
    }
}

fn any_of<T: PartialEq>(column: &str, ranges: &[Ends<T>], sql: impl Fn(&T) -> String) -> String {
    let one = |ends: &Ends<T>| match ends {
        (Bound::Included(a), Bound::Included(b)) if a == b => Some(sql(a)),
        _ => None,
    };
    let range = |ends: &Ends<T>| {
        if let Some(value) = one(ends) {
            return format!("{column} = {value}");
        }
        let end = |bound: &Bound<T>, closed: &str, open: &str| match bound {
            Bound::Included(value) => Some(format!("{column} {closed} {}", sql(value))),
            Bound::Excluded(value) => Some(format!("{column} {open} {}", sql(value))),
            Bound::Unbounded => None,
        };
        let parts: Vec<String> =
            [end(&ends.0, ">=", ">"), end(&ends.1, "<=", "<")].into_iter().flatten().collect();
        if parts.is_empty() { format!("{column} IS NOT NULL") } else { parts.join(" AND ") }
    };
    match ranges {
        [ends] => range(ends),
        list => match list.iter().map(one).collect::<Option<Vec<String>>>() {
            Some(values) => format!("{column} IN ({})", values.join(", ")),
            None => format!("({})", list.iter().map(range).collect::<Vec<_>>().join(" OR ")),
        },
    }
}

/// A name in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL, which ends texts at a zero.
pub fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''").replace('\0', ""))
}

#[cfg(test)]
mod tests {
    use super::super::Predicate;
    use crate::test_table::EXAMPLE;

    #[test]
    fn conditions_are_printed() {
        let sql = |text: &str| Predicate::parse(text, &EXAMPLE).unwrap().sql_of(&EXAMPLE);
        let is = |text: &str, wanted: &str| assert_eq!(sql(text).as_deref(), Some(wanted), "{text}");
        is("wait_ns=5", "\"wait_ns\" = 5");
        is("wait_ns>=5", "\"wait_ns\" >= 5");
        is("wait_ns<5", "\"wait_ns\" < 5");
        is("wait_ns!=5..9", "NOT coalesce(\"wait_ns\" >= 5 AND \"wait_ns\" < 10, 0)");
        is("cpu=1;3", "\"cpu\" IN (1, 3)");
        is("cpu=1;3..;!7", "(\"cpu\" = 1 OR \"cpu\" >= 3) AND NOT coalesce(\"cpu\" = 7, 0)");
        is("share>12.5", "\"share\" > 12.5");
        is("in_dpc=no", "\"in_dpc\" = 0");
        is("process=", "coalesce(\"process\", '') = ''");
        assert_eq!(sql("process=cmd*"), None, "SQL has no such wildcards");
        assert_eq!(sql("address>5"), None, "SQL has no numbers without sign");
    }
}
