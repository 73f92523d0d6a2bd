//! Conditions on rows, as the page writes them: they become the [`Predicate`]s of all conditions.

use super::reference::{Joins, Reference};
use super::{PivotError, fields, wrong};
use etwhy_sql::matching::stacks_with;
use etwhy_table::filter::{Ends, IdSet, Test, Words, quoted_text};
use etwhy_table::{ColumnType, Database, Matcher, Predicate, Role, Table};
use serde::Deserialize;
use serde_json::Value;
use std::ops::Bound;
use std::sync::Arc;
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
    pub value: Value,
    /// The other rows, also those with nulls.
    #[serde(default)]
    pub not: bool,
}

/// How a cell is compared. Null fulfils only [`Op::IsNull`] and [`Op::Ne`].
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
    /// A stack with a frame, as `stack_has` of SQL finds it; of a list, with one of these frames.
    StackHas,
}

/// Rows of a table that fulfil conditions: the plan of which [`Matcher`] computes and SQL tells the same.
pub struct Selected {
    /// All must hold.
    pub conditions: Vec<Predicate>,
    /// In SQL: `FROM … AS t`, with `WHERE …` if there are conditions.
    pub from: String,
}

impl Selected {
    /// Of a table.
    ///
    /// # Errors
    /// If conditions make no sense.
    pub fn new(db: &Database, table: &Table, conditions: &[Condition]) -> Result<Selected, PivotError> {
        Selected::with(&mut Joins::new(db, table.name())?, conditions)
    }

    /// Of the table of some joins, which the query gets.
    pub(super) fn with(joins: &mut Joins<'_>, conditions: &[Condition]) -> Result<Selected, PivotError> {
        let made: Result<Vec<_>, _> =
            conditions.iter().map(|condition| predicate(joins, condition)).collect();
        let (conditions, sql): (Vec<Predicate>, Vec<String>) = made?.into_iter().unzip();
        let from = joins.from();
        let from = if sql.is_empty() { from } else { format!("{from}\nWHERE {}", sql.join("\n  AND ")) };
        Ok(Selected { conditions, from })
    }
}

/// A condition for rows of the asked table, and the same in SQL.
fn predicate(joins: &mut Joins<'_>, condition: &Condition) -> Result<(Predicate, String), PivotError> {
    let first = Some(&condition.column).filter(|name| !name.is_empty());
    let names = first.into_iter().chain(&condition.or);
    let found: Result<Vec<Reference<'_>>, _> = names.map(|name| joins.find(name)).collect();
    let found = found?;
    // A column is tested for a list at once, a stack for each pattern of it.
    let patterns = match (&condition.op, &condition.value) {
        (Op::StackHas, Value::Array(list)) => list.iter().collect(),
        (_, value) => vec![value],
    };
    let found: Vec<(&Reference<'_>, &Value)> =
        found.iter().flat_map(|reference| patterns.iter().map(move |value| (reference, *value))).collect();
    let mut any = Vec::new();
    for (reference, value) in &found {
        any.push((reference.own, test(joins, condition.op, value, reference)?));
    }
    if any.is_empty() {
        return wrong("a condition needs a column".to_owned());
    }
    let negated = condition.not != (condition.op == Op::Ne);
    let mut predicate = Predicate { any, negated };
    let sql = predicate.sql(found.iter().map(|(reference, _)| &reference.sql)).unwrap_or_default();
    // What an id leads to is tested once for each id.
    for ((_, test), (far, _)) in predicate.any.iter_mut().zip(&found) {
        let Some(far) = &far.far else { continue };
        let there = Predicate { any: vec![(far.column, test.clone())], negated: false };
        let (rows, others) =
            (Matcher::new(far.table, std::slice::from_ref(&there)).mask(), test.holds_for_null());
        let ids = far.rows.iter().map(|row| rows.get(*row as usize).copied().unwrap_or(others)).collect();
        *test = Test::Ids(IdSet { ids: Arc::new(ids), others, sql: None });
    }
    Ok((predicate, sql))
}

fn ends<T: Clone>(op: Op, value: T) -> Ends<T> {
    match op {
        Op::Ge => (Bound::Included(value), Bound::Unbounded),
        Op::Gt => (Bound::Excluded(value), Bound::Unbounded),
        Op::Le => (Bound::Unbounded, Bound::Included(value)),
        Op::Lt => (Bound::Unbounded, Bound::Excluded(value)),
        _ => (Bound::Included(value.clone()), Bound::Included(value)),
    }
}

/// Comparison with one of some values, by the type of the column.
fn compared(op: Op, values: &[Value], reference: &Reference<'_>) -> Result<Test, PivotError> {
    let int = |value: &Value| {
        let bits = |text: &str| {
            let hex = text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            hex.map(|bits| bits as i64).or_else(|| text.parse().ok())
        };
        let number = value.as_i64().or_else(|| value.as_bool().map(i64::from));
        number.or_else(|| value.as_str().and_then(bits))
    };
    let none = |value: &Value, what: &str| {
        PivotError::Wrong(format!("`{}` holds {what}: {value} is none", reference.name))
    };
    let ty = reference.spec.ty;
    if ty.is_text() {
        // Some values of a field of events are numbers, others are not.
        let is_field = fields::field_of(&reference.name).is_some();
        let text = |value: &Value| match value.as_str() {
            Some(text) => Ok(ends(op, text.to_owned())),
            None if is_field && value.is_number() => Ok(ends(op, value.to_string())),
            None => Err(none(value, "texts")),
        };
        return Ok(Test::Text(Words::Among(values.iter().map(text).collect::<Result<_, _>>()?)));
    }
    if ty != ColumnType::F64
        && let Some(numbers) = values.iter().map(int).collect::<Option<Vec<i64>>>()
    {
        return Ok(Test::ints(numbers.into_iter().map(|number| ends(op, number))));
    }
    let number = |value: &Value| {
        let whole = int(value).filter(|_| ty != ColumnType::F64).map(|number| number as f64);
        whole.or_else(|| value.as_f64()).map(|n| ends(op, n)).ok_or_else(|| none(value, "numbers"))
    };
    let include = values.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    Ok(if include.is_empty() { Test::ints([]) } else { Test::Floats { include, exclude: Vec::new() } })
}

fn test(joins: &Joins<'_>, op: Op, value: &Value, reference: &Reference<'_>) -> Result<Test, PivotError> {
    let ty = reference.spec.ty;
    Ok(match op {
        Op::IsNull => Test::Null(true),
        Op::NotNull => Test::Null(false),
        Op::Contains if ty == ColumnType::F64 => {
            return wrong(format!("`{}` holds fractions: they contain no text", reference.name));
        }
        Op::Contains => match value.as_str() {
            Some(text) => {
                let part = Words::Contains(text.replace('\0', "").to_ascii_lowercase());
                if ty.is_text() { Test::Text(part) } else { Test::Digits(None, part) }
            }
            None => return wrong("`contains` needs a text".to_owned()),
        },
        Op::In => match value.as_array() {
            Some(list) => compared(Op::Eq, list, reference)?,
            None => return wrong("`in` needs a list".to_owned()),
        },
        Op::StackHas => match value.as_str() {
            Some(pattern) if reference.spec.role == Role::Stack => Test::Ids(IdSet {
                ids: Arc::new(stacks_with(joins.db(), pattern)),
                others: false,
                sql: Some(format!("stack_has({{}}, {})", quoted_text(pattern))),
            }),
            _ => {
                return wrong(
                    "`stack_has` needs a column of stacks and a text, or a list of texts".to_owned(),
                );
            }
        },
        op => compared(op, std::slice::from_ref(value), reference)?,
    })
}
