//! Conditions on rows.

use super::reference::{Joins, Reference, position};
use super::sql::quoted_text;
use super::{PivotError, wrong};
use etwhy_sql::matching::stacks_with;
use etwhy_table::{ColumnType, ColumnView, Role, Sym, Value};
use serde::Deserialize;
use std::cmp::Ordering;
use ts_rs::TS;

/// A condition. Texts are compared by their bytes, except by [`Op::Contains`].
#[derive(Clone, Debug, Deserialize, TS)]
#[ts(rename = "PivotCondition")]
pub struct Condition {
    /// Column.
    #[serde(default)]
    pub column: String,
    /// More columns: it is enough if one of all fulfils it.
    #[serde(default)]
    pub or: Vec<String>,
    /// How.
    pub op: Op,
    /// With what: a number, a text, a list; 64 bits that are no number as `0x…`.
    #[serde(default)]
    #[ts(type = "unknown")]
    pub value: serde_json::Value,
    /// The other rows, also those with nulls.
    #[serde(default)]
    pub not: bool,
}

/// How a cell is compared. Null fulfils nothing but [`Op::IsNull`] and [`Op::Ne`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "ConditionOp")]
pub enum Op {
    /// Equal.
    Eq,
    /// Not equal, or null.
    Ne,
    /// Not less.
    Ge,
    /// Greater.
    Gt,
    /// Not greater.
    Le,
    /// Less.
    Lt,
    /// Contains a text; A to Z and a to z are the same.
    Contains,
    /// Null.
    IsNull,
    /// Not null.
    NotNull,
    /// One of a list.
    In,
    /// A stack with a frame, as `stack_has` of SQL finds it.
    StackHas,
}

/// A value to compare with.
#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Int(i64),
    Float(f64),
    Text(String),
}

impl Operand {
    /// Of a column's type.
    fn of(value: &serde_json::Value, reference: &Reference<'_>) -> Result<Operand, PivotError> {
        let name = &reference.name;
        match reference.spec.ty {
            ColumnType::I64 | ColumnType::I32 | ColumnType::Bool => {
                let bits = |text: &str| {
                    let hex = text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                    hex.map(|bits| bits as i64).or_else(|| text.parse().ok())
                };
                let number = value.as_i64().or_else(|| value.as_bool().map(i64::from));
                if let Some(number) = number.or_else(|| value.as_str().and_then(bits)) {
                    return Ok(Operand::Int(number));
                }
                match value.as_f64() {
                    Some(number) => Ok(Operand::Float(number)),
                    None => wrong(format!("`{name}` holds numbers: {value} is none")),
                }
            }
            ColumnType::F64 => match value.as_f64() {
                Some(number) => Ok(Operand::Float(number)),
                None => wrong(format!("`{name}` holds numbers: {value} is none")),
            },
            ColumnType::Text | ColumnType::LongText => match value.as_str() {
                Some(text) => Ok(Operand::Text(text.to_owned())),
                None => wrong(format!("`{name}` holds texts: {value} is none")),
            },
        }
    }

    fn sql(&self) -> String {
        match self {
            Operand::Int(number) => number.to_string(),
            Operand::Float(number) => format!("{number:?}"),
            Operand::Text(text) => quoted_text(text),
        }
    }

    fn compare(&self, cell: Value<'_>) -> Option<Ordering> {
        match (self, cell) {
            (Operand::Int(n), Value::I64(v)) => Some(v.cmp(n)),
            (Operand::Int(n), Value::Bool(v)) => Some(i64::from(v).cmp(n)),
            (Operand::Float(n), cell) => cell.as_f64()?.partial_cmp(n),
            (Operand::Int(n), Value::F64(v)) => v.partial_cmp(&(*n as f64)),
            (Operand::Text(text), Value::Text(v)) => Some(v.cmp(text)),
            _ => None,
        }
    }
}

/// What a cell must be.
#[derive(Clone)]
enum Test {
    Compare(Op, Operand),
    /// In lower case.
    Contains(String),
    Null,
    NotNull,
    Among(Vec<Operand>),
    Stacks(std::sync::Arc<Vec<bool>>),
}

impl Test {
    fn holds(&self, cell: Value<'_>) -> bool {
        match self {
            Test::Compare(op, operand) => operand.compare(cell).is_some_and(|order| match op {
                Op::Ge => order.is_ge(),
                Op::Gt => order.is_gt(),
                Op::Le => order.is_le(),
                Op::Lt => order.is_lt(),
                _ => order.is_eq(),
            }),
            Test::Contains(low) => match cell {
                Value::Text(text) => text.to_ascii_lowercase().contains(low.as_str()),
                Value::I64(number) => number.to_string().contains(low.as_str()),
                Value::Bool(flag) => i64::from(flag).to_string().contains(low.as_str()),
                _ => false,
            },
            Test::Null => cell.is_null(),
            Test::NotNull => !cell.is_null(),
            Test::Among(list) => list.iter().any(|one| one.compare(cell) == Some(Ordering::Equal)),
            Test::Stacks(found) => {
                cell.as_i64().and_then(|id| found.get(position(id))).copied().unwrap_or(false)
            }
        }
    }

    /// In SQL, for a column.
    fn sql(&self, column: &str, ty: ColumnType, pattern: &serde_json::Value) -> String {
        match self {
            Test::Compare(op, operand) => {
                let sign = match op {
                    Op::Ge => ">=",
                    Op::Gt => ">",
                    Op::Le => "<=",
                    Op::Lt => "<",
                    _ => "=",
                };
                format!("{column} {sign} {}", operand.sql())
            }
            Test::Contains(low) => {
                let text = if ty.is_text() { column.to_owned() } else { format!("CAST({column} AS TEXT)") };
                format!("instr(lower({text}), {}) > 0", quoted_text(low))
            }
            Test::Null => format!("{column} IS NULL"),
            Test::NotNull => format!("{column} IS NOT NULL"),
            Test::Among(list) => {
                let list: Vec<String> = list.iter().map(Operand::sql).collect();
                format!("{column} IN ({})", list.join(", "))
            }
            Test::Stacks(_) => {
                format!("stack_has({column}, {})", quoted_text(pattern.as_str().unwrap_or("")))
            }
        }
    }
}

/// What is known of texts by their number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Not,
    No,
    Yes,
}

/// A condition on one column.
#[derive(Clone)]
struct Place {
    own: usize,
    test: Test,
    /// By id, and for ids beyond, if an id leads to the column.
    far: Option<(std::sync::Arc<Vec<bool>>, bool)>,
    /// By number of the text.
    texts: Vec<Known>,
}

impl Place {
    fn holds(&mut self, view: &ColumnView<'_>, row: usize) -> bool {
        if let Some((ids, beyond)) = &self.far {
            return view.i64(row).and_then(|id| ids.get(position(id))).copied().unwrap_or(*beyond);
        }
        let Some(Sym(text)) = view.key(row) else { return self.test.holds(view.value(row)) };
        let text = text as usize;
        match self.texts.get(text) {
            Some(Known::Yes) => true,
            Some(Known::No) => false,
            _ => {
                let holds = self.test.holds(view.value(row));
                if self.texts.len() <= text {
                    self.texts.resize((text + 1).next_power_of_two(), Known::Not);
                }
                if let Some(known) = self.texts.get_mut(text) {
                    *known = if holds { Known::Yes } else { Known::No };
                }
                holds
            }
        }
    }
}

/// A condition, ready for rows.
#[derive(Clone)]
pub(super) struct Compiled {
    places: Vec<Place>,
    not: bool,
    /// In SQL.
    pub sql: String,
    /// First and last value, if it only restricts a column of whole numbers.
    pub span: Option<(usize, i64, i64)>,
}

impl Compiled {
    pub fn new(joins: &mut Joins<'_>, condition: &Condition) -> Result<Compiled, PivotError> {
        let mut out = Compiled { places: Vec::new(), not: condition.not, sql: String::new(), span: None };
        if condition.op == Op::Ne {
            out.not = !out.not;
        }
        let mut sql = Vec::new();
        let first = Some(&condition.column).filter(|name| !name.is_empty());
        for name in first.into_iter().chain(&condition.or) {
            let reference = joins.find(name)?;
            let test = test(joins, condition, &reference)?;
            sql.push(test.sql(&reference.sql, reference.spec.ty, &condition.value));
            if let (Test::Compare(op, Operand::Int(n)), None, 0, false) =
                (&test, &reference.far, condition.or.len(), out.not)
            {
                let (from, to) = match op {
                    Op::Ge => (*n, i64::MAX),
                    Op::Gt => (n.saturating_add(1), i64::MAX),
                    Op::Le => (i64::MIN, *n),
                    Op::Lt => (i64::MIN, n.saturating_sub(1)),
                    _ => (*n, *n),
                };
                out.span = Some((reference.own, from, to));
            }
            let far = reference.far.as_ref().map(|far| {
                let ids = far.cells().into_iter().map(|cell| test.holds(cell)).collect();
                (std::sync::Arc::new(ids), test.holds(Value::Null))
            });
            out.places.push(Place { own: reference.own, test, far, texts: Vec::new() });
        }
        let any = sql.join(" OR ");
        out.sql = match (out.not, sql.len()) {
            (_, 0) => return wrong("a condition needs a column".to_owned()),
            (true, _) => format!("NOT coalesce({any}, 0)"),
            (false, 1) => any,
            (false, _) => format!("({any})"),
        };
        Ok(out)
    }

    /// Keeps the rows of a batch that fulfil it.
    pub fn keep<'v>(&mut self, view: impl Fn(usize) -> ColumnView<'v>, rows: &mut Vec<u32>) {
        let not = self.not;
        if let Some((own, from, to)) = self.span {
            match view(own) {
                ColumnView::I32(numbers, None) => rows.retain(|row| {
                    numbers.get(*row as usize).is_some_and(|n| (from..=to).contains(&i64::from(*n)))
                }),
                view => rows.retain(|row| view.i64(*row as usize).is_some_and(|n| (from..=to).contains(&n))),
            }
            return;
        }
        if let [place] = self.places.as_mut_slice() {
            let view = view(place.own);
            rows.retain(|row| place.holds(&view, *row as usize) != not);
            return;
        }
        let views: Vec<ColumnView<'v>> = self.places.iter().map(|place| view(place.own)).collect();
        let places = &mut self.places;
        rows.retain(|row| places.iter_mut().zip(&views).any(|(p, v)| p.holds(v, *row as usize)) != not);
    }
}

fn test(joins: &Joins<'_>, condition: &Condition, reference: &Reference<'_>) -> Result<Test, PivotError> {
    let value = &condition.value;
    Ok(match condition.op {
        Op::IsNull => Test::Null,
        Op::NotNull => Test::NotNull,
        Op::Contains if reference.spec.ty == ColumnType::F64 => {
            return wrong(format!("`{}` holds fractions: they contain no text", reference.name));
        }
        Op::Contains => match value.as_str() {
            Some(text) => Test::Contains(text.replace('\0', "").to_ascii_lowercase()),
            None => return wrong("`contains` needs a text".to_owned()),
        },
        Op::In => match value.as_array() {
            Some(list) => {
                let list: Result<Vec<Operand>, _> = list.iter().map(|v| Operand::of(v, reference)).collect();
                Test::Among(list?)
            }
            None => return wrong("`in` needs a list".to_owned()),
        },
        Op::StackHas => match value.as_str() {
            Some(pattern) if reference.spec.role == Role::Stack => {
                Test::Stacks(std::sync::Arc::new(stacks_with(joins.db(), pattern)))
            }
            _ => return wrong("`stack_has` needs a column of stacks and a text".to_owned()),
        },
        op => Test::Compare(op, Operand::of(value, reference)?),
    })
}
