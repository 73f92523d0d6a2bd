//! The rows themselves, a window of them, in any order.
//!
//! Only as many rows are kept while looking as the window ends at: the last of them says which others are not worth keeping.

use super::answer::{label, label_spec, spec};
use super::condition::{Condition, Selected};
use super::order::{cells, top};
use super::reference::{Joins, NOWHERE, Reference, position, target};
use super::sql::window;
use super::{GiveUp, PivotError};
use etwhy_table::filter::quoted;
use etwhy_table::{AdHocBuilder, Database, Matcher, Memory, Table, Value};
use serde::Deserialize;

/// Rows of a table.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Rows {
    /// Table.
    pub table: String,
    /// All must hold.
    #[serde(default, rename = "where")]
    pub conditions: Vec<Condition>,
    /// Columns; all of the table unless given.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Order: columns, and whether the largest come first. Otherwise as the table has them.
    #[serde(default)]
    pub sort: Vec<(String, bool)>,
    /// Rows to give.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Rows to leave out before.
    #[serde(default)]
    pub offset: usize,
}

/// The rows that were asked for, the query that says the same, and how many there are in all.
pub type Found = (Table, String, u64);

/// Reads a window of rows.
///
/// # Errors
/// If the question makes no sense, or `give_up` says so.
pub fn rows(db: &Database, ask: &Rows, give_up: GiveUp<'_>) -> Result<Found, PivotError> {
    let mut joins = Joins::new(db, &ask.table)?;
    let table = joins.table;
    let all: Vec<String> = table.spec().columns.iter().map(|column| column.name.to_string()).collect();
    let names = if ask.columns.is_empty() { &all } else { &ask.columns };
    let columns: Result<Vec<Reference<'_>>, _> = names.iter().map(|name| joins.find(name)).collect();
    let columns = columns?;
    let sorts: Result<Vec<(Reference<'_>, bool)>, PivotError> =
        ask.sort.iter().map(|(name, down)| Ok((joins.find(name)?, *down))).collect();
    let sorts = sorts?;
    let selected = Selected::with(&mut joins, &ask.conditions)?;

    let shown: Vec<String> = columns.iter().map(|c| format!("{} AS {}", c.sql, quoted(&c.name))).collect();
    let mut sql = format!("SELECT {}\n{}", shown.join(", "), selected.from);
    if !sorts.is_empty() {
        let by = |(reference, down): &(Reference<'_>, bool)| {
            format!("{} {} NULLS LAST", reference.sql, if *down { "DESC" } else { "ASC" })
        };
        let by: Vec<String> = sorts.iter().map(by).collect();
        sql = format!("{sql}\nORDER BY {}", by.join(", "));
    }
    sql.push_str(&window(ask.limit, ask.offset));

    let until = ask.offset.saturating_add(ask.limit.unwrap_or(super::SOME));
    let mut kept: Vec<(Vec<Value<'_>>, u32)> = Vec::new();
    let compare = |a: &(Vec<Value<'_>>, u32), b: &(Vec<Value<'_>>, u32)| {
        let by = a.0.iter().zip(&b.0).zip(&sorts);
        let order = by.map(|((a, b), (_, down))| cells(a, b, *down)).find(|order| order.is_ne());
        order.unwrap_or(a.1.cmp(&b.1))
    };
    let room = until.saturating_mul(2).clamp(1024, 1 << 22).max(until.saturating_add(1024));
    let mut matcher = Matcher::new(table, &selected.conditions);
    let within = matcher.within();
    let (mut count, mut picked) = (0u64, Vec::new());
    // A row that does not stand before this one is none of the first.
    let mut worst: Option<(Vec<Value<'_>>, u32)> = None;
    for (batch, start) in table.starts().iter().enumerate() {
        if give_up() {
            return Err(PivotError::GivenUp);
        }
        let view = |column: usize| table.view(batch, column);
        matcher.rows_of(batch, &within, &mut picked);
        let before = usize::try_from(count).unwrap_or(usize::MAX);
        count += picked.len() as u64;
        if sorts.is_empty() {
            let wanted = picked.iter().take(until.saturating_sub(before));
            let wanted = wanted.skip(ask.offset.saturating_sub(before));
            kept.extend(wanted.map(|row| (Vec::new(), start.saturating_add(*row))));
            continue;
        }
        let views: Vec<_> = sorts.iter().map(|(reference, _)| view(reference.own)).collect();
        let cell = |at: usize, row: u32| {
            let (Some((reference, _)), Some(view)) = (sorts.get(at), views.get(at)) else {
                return Value::Null;
            };
            read(reference, view, row as usize)
        };
        for row in &picked {
            // Of equal rows the first stand first, and this one comes after all that are kept.
            if let Some(worst) = &worst
                && let (Some(theirs), Some((_, down))) = (worst.0.first(), sorts.first())
                && {
                    let order = cells(&cell(0, *row), theirs, *down);
                    order.is_gt() || (order.is_eq() && sorts.len() == 1)
                }
            {
                continue;
            }
            kept.push(((0..sorts.len()).map(|at| cell(at, *row)).collect(), start.saturating_add(*row)));
            if kept.len() >= room {
                top(&mut kept, until, compare);
                worst = kept.last().cloned();
            }
        }
    }
    if !sorts.is_empty() {
        top(&mut kept, until, compare);
        kept.drain(..ask.offset.min(kept.len()));
    }

    let mut specs: Vec<_> = columns.iter().map(|column| column.spec.clone()).collect();
    specs.extend(columns.iter().filter_map(label_spec));
    let mut builder = AdHocBuilder::new(spec(table, specs), &Memory::unlimited());
    for (_, row) in &kept {
        let Some((batch, at)) = table.locate(*row) else { continue };
        let mut cells: Vec<Value<'_>> =
            columns.iter().map(|column| read(column, &table.view(batch, column.own), at)).collect();
        let labels: Vec<Option<String>> = columns
            .iter()
            .zip(&cells)
            .filter(|(column, _)| target(&column.spec).is_some())
            .map(|(column, id)| label(db, column, *id))
            .collect();
        cells.extend(labels.iter().map(|label| label.as_deref().map_or(Value::Null, Value::Text)));
        builder.push(&cells)?;
    }
    Ok((builder.finish()?, sql, count))
}

fn read<'d>(reference: &Reference<'d>, view: &etwhy_table::ColumnView<'d>, row: usize) -> Value<'d> {
    let Some(far) = &reference.far else { return view.value(row) };
    let id = view.i64(row).map_or(usize::MAX, position);
    let place = far.rows.get(id).filter(|row| **row != NOWHERE).and_then(|row| far.table.locate(*row));
    place.map_or(Value::Null, |(batch, row)| far.table.view(batch, far.column).value(row))
}
