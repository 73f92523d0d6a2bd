//! The query that says the same.

use super::scan::Question;
use super::{Function, Pivot, PivotError, Sort, wrong};
use etwhy_table::filter::quoted;
use std::fmt::Write as _;

/// ` LIMIT … OFFSET …`.
pub fn window(limit: Option<usize>, offset: usize) -> String {
    let mut out = String::new();
    // Writing into a `String` cannot fail.
    if let Some(limit) = limit {
        let _ = write!(out, "\nLIMIT {limit}");
        if offset > 0 {
            let _ = write!(out, " OFFSET {offset}");
        }
    }
    out
}

/// The order of groups: what was asked for, then the keys.
pub fn order(ask: &Pivot) -> Vec<Sort> {
    let mut out = ask.sort.clone();
    if out.is_empty() && !ask.values.is_empty() {
        out.push(Sort { value: Some(0), key: None, down: true });
    }
    let keys = (0..ask.group.len()).map(|key| Sort { value: None, key: Some(key), down: false });
    out.extend(keys);
    out
}

pub(super) fn pivot(ask: &Pivot, question: &Question<'_, '_>) -> Result<String, PivotError> {
    let mut columns = Vec::new();
    for key in &question.keys {
        columns.push(format!("{} AS {}", key.sql, quoted(&key.name)));
    }
    let mut expressions = Vec::new();
    for (value, measure) in ask.values.iter().zip(&question.measures) {
        let of = measure.reference.as_ref().map_or("*", |reference| &reference.sql);
        let expression = match value.function {
            Function::Unique => format!("count(DISTINCT {of})"),
            function => format!("{}({of})", function.name()),
        };
        columns.push(format!("{expression} AS {}", quoted(&value.name())));
        expressions.push(expression);
    }
    for at in &ask.share {
        let (Some(value), Some(expression)) = (ask.values.get(*at), expressions.get(*at)) else {
            return wrong(format!("there is no value {at} to share"));
        };
        let name = quoted(&format!("share({})", value.name()));
        columns.push(format!("100.0 * {expression} / sum({expression}) OVER () AS {name}"));
    }
    let mut sql = format!("SELECT {}\n{}", columns.join(", "), question.selected.from);
    if !ask.group.is_empty() {
        let keys: Vec<String> = (1..=ask.group.len()).map(|n| n.to_string()).collect();
        let _ = write!(sql, "\nGROUP BY {}", keys.join(", "));
        let mut by = Vec::new();
        for sort in order(ask) {
            let place = match (sort.value, sort.key) {
                (Some(value), _) if value < ask.values.len() => ask.group.len() + value + 1,
                (None, Some(key)) if key < ask.group.len() => key + 1,
                _ => return wrong("the order names what is not there".to_owned()),
            };
            by.push(format!("{place} {} NULLS LAST", if sort.down { "DESC" } else { "ASC" }));
        }
        let _ = write!(sql, "\nORDER BY {}", by.join(", "));
        sql.push_str(&window(ask.limit, ask.offset));
    }
    Ok(sql)
}
