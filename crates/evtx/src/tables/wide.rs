//! A table for each event id, with a column for each of its fields.

use super::make::{MakeError, Options};
use crate::codes::Codes;
use crate::columns::{Batch, ColumnKind, columns};
use crate::read::{Damage, LogFile};
use crate::scan::ScanOptions;
use etwhy_table::{AdHocBuilder, ColumnSpec, ColumnType, Evidence, Role, Table, TableSpec, Unit, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Columns that every table begins with.
const SYSTEM: [(&str, ColumnType, Unit, Role, &str); 15] = [
    ("ts_ns", ColumnType::I64, Unit::Ns, Role::Time, "When it was written."),
    ("utc_ns", ColumnType::I64, Unit::Ns, Role::Other, "The same since 1970 (UTC)."),
    ("log", ColumnType::I32, Unit::None, Role::Id, "The log, as in `log_file`."),
    ("record_id", ColumnType::I64, Unit::None, Role::Other, "`EventRecordID`."),
    ("channel", ColumnType::Text, Unit::None, Role::Name, "Channel."),
    ("provider", ColumnType::Text, Unit::None, Role::Name, "Provider."),
    ("version", ColumnType::I32, Unit::None, Role::Other, "Version of the event."),
    ("level", ColumnType::I32, Unit::None, Role::Other, "Level."),
    ("task", ColumnType::I32, Unit::None, Role::Other, "Task."),
    ("opcode", ColumnType::I32, Unit::None, Role::Other, "Opcode."),
    ("keywords", ColumnType::I64, Unit::Hex64, Role::Flag, "Keywords, as a bit mask."),
    ("computer", ColumnType::Text, Unit::None, Role::Name, "Computer."),
    ("user_sid", ColumnType::Text, Unit::None, Role::Name, "Security identifier of the user."),
    ("pid", ColumnType::I32, Unit::None, Role::Pid, "Process that wrote it."),
    ("tid", ColumnType::I32, Unit::None, Role::Tid, "Thread that wrote it."),
];

/// A batch with what its numbers stand for.
struct Kept {
    log: i32,
    batch: Batch,
    /// Channel, computer, user of each row.
    texts: Vec<[String; 3]>,
}

/// Makes a table `event_<id>` for each event id that is asked for, and says what was wrong with each log. Fields of all providers and
/// versions stand side by side; a field that is a number in one and a text in another is a text.
///
/// # Errors
/// The system's, and those of the table builder.
pub(super) fn wide(
    logs: &[LogFile],
    zero_utc_ns: i64,
    options: &Options,
) -> Result<(Vec<Table>, Vec<Damage>), MakeError> {
    let ids = &options.ids;
    let mut damage = Vec::new();
    let kept: Mutex<Vec<Kept>> = Mutex::default();
    for (n, log) in logs.iter().enumerate() {
        let scanning = ScanOptions { threads: options.threads, in_order: true };
        let keep = |batch: &Batch, codes: &Codes| {
            let system = &batch.system;
            let rows = system.channel.iter().zip(&system.computer).zip(&system.user);
            let texts = rows
                .map(|((channel, computer), user)| {
                    [channel, computer, user].map(|c| codes.text(*c).to_owned())
                })
                .collect();
            let entry = Kept { log: n as i32, batch: batch.rows_alone(), texts };
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        };
        damage.push(columns(log, &scanning, &|_, id| ids.contains(&id), &options.filter, &keep)?);
    }
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut tables = Vec::new();
    for id in ids {
        let batches: Vec<&Kept> = kept.iter().filter(|k| k.batch.event_id == *id).collect();
        tables.push(table(*id, &batches, zero_utc_ns, options)?);
    }
    Ok((tables, damage))
}

/// A field.
struct Field {
    name: String,
    kind: ColumnKind,
    /// All its numbers are written in hexadecimal: logon ids, status codes, process ids.
    hex: bool,
}

/// Fields in order of first use, with their common type.
fn fields(batches: &[&Kept]) -> Vec<Field> {
    let mut names: Vec<Field> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for kept in batches {
        for column in &kept.batch.columns {
            let at = *known.entry(column.shown.clone()).or_insert_with(|| {
                names.push(Field { name: column.shown.clone(), kind: ColumnKind::Null, hex: true });
                names.len() - 1
            });
            if let Some(Field { kind, hex, .. }) = names.get_mut(at) {
                *hex &= column.kind == ColumnKind::Null || column.is_hex();
                *kind = match (*kind, column.kind) {
                    (ColumnKind::Null, new) => new,
                    (old, ColumnKind::Null) => old,
                    (old, new) if old == new => old,
                    _ => ColumnKind::Text,
                };
            }
        }
    }
    names
}

fn table(id: u16, batches: &[&Kept], zero: i64, options: &Options) -> Result<Table, MakeError> {
    let names = fields(batches);
    let mut specs: Vec<ColumnSpec> = SYSTEM
        .iter()
        .map(|(name, ty, unit, role, doc)| spec((*name).into(), *ty, *unit, *role, (*doc).into()))
        .collect();
    for Field { name, kind, hex } in &names {
        // A field may be called as a system value, or differ from another in case alone.
        let mut unique = name.clone();
        while specs.iter().any(|c| c.name.eq_ignore_ascii_case(&unique)) {
            unique.push('_');
        }
        let (ty, unit) = match kind {
            ColumnKind::Int if *hex => (ColumnType::I64, Unit::Hex64),
            ColumnKind::Int => (ColumnType::I64, Unit::None),
            ColumnKind::Time => (ColumnType::I64, Unit::Ns),
            ColumnKind::Real => (ColumnType::F64, Unit::None),
            ColumnKind::Text | ColumnKind::Null => (ColumnType::Text, Unit::None),
        };
        let doc = match kind {
            ColumnKind::Time => format!("Field `{name}` of the event, since 1970 (UTC)."),
            _ => format!("Field `{name}` of the event."),
        };
        specs.push(spec(unique.into(), ty, unit, Role::Other, doc.into()));
    }
    let spec = TableSpec {
        name: format!("event_{id}").into(),
        title: format!("Events {id} with their fields as columns").into(),
        doc: Cow::Borrowed("One row per event of this id, whatever its provider and version."),
        columns: specs.into(),
        sorted_by: Some("ts_ns".into()),
        version: 1,
        evidence: Evidence::Verified("the crate `evtx`, field by field"),
    };
    let mut builder = AdHocBuilder::new(spec, &options.memory);
    let mut order: Vec<(i64, usize, usize)> = Vec::new();
    for (n, kept) in batches.iter().enumerate() {
        order.extend(kept.batch.system.utc_ns.iter().enumerate().map(|(row, ns)| (*ns, n, row)));
    }
    order.sort_by_key(|(ns, n, row)| {
        (*ns, batches.get(*n).and_then(|k| k.batch.system.record_id.get(*row).copied()))
    });
    // Where each field stands in each batch.
    let places: Vec<Vec<Option<usize>>> = batches
        .iter()
        .map(|k| {
            names
                .iter()
                .map(|Field { name, .. }| k.batch.columns.iter().position(|c| c.shown == *name))
                .collect()
        })
        .collect();
    let mut scratch: Vec<String> = vec![String::new(); names.len()];
    for (_, n, row) in order {
        let (Some(kept), Some(places)) = (batches.get(n), places.get(n)) else { continue };
        for ((Field { kind, .. }, place), text) in names.iter().zip(places).zip(&mut scratch) {
            text.clear();
            let column = place.and_then(|at| kept.batch.columns.get(at));
            if let Some(column) = column
                && *kind == ColumnKind::Text
                && column.kind != ColumnKind::Text
                && let Some(number) = column.numbers.get(row)
            {
                column.push_number(*number, text);
            }
        }
        let mut cells = system_cells(kept, row, zero);
        for ((Field { kind, .. }, place), text) in names.iter().zip(places).zip(&scratch) {
            let column = place.and_then(|at| kept.batch.columns.get(at));
            let null = column.is_none_or(|c| c.nulls.get(row).copied().unwrap_or(true));
            let number = column.and_then(|c| c.numbers.get(row)).copied().unwrap_or(0);
            cells.push(match (column, kind) {
                (Some(_), _) if null => Value::Null,
                (Some(column), ColumnKind::Text) if column.kind == ColumnKind::Text => {
                    column.text_at(row).map_or(Value::Null, Value::Text)
                }
                (Some(_), ColumnKind::Text) => Value::Text(text),
                (Some(_), ColumnKind::Real) => Value::F64(f64::from_bits(number as u64)),
                (Some(_), ColumnKind::Int | ColumnKind::Time) => Value::I64(number),
                _ => Value::Null,
            });
        }
        builder.push(&cells)?;
    }
    Ok(builder.finish()?)
}

fn system_cells(kept: &Kept, row: usize, zero: i64) -> Vec<Value<'_>> {
    let system = &kept.batch.system;
    let utc_ns = system.utc_ns.get(row).copied().unwrap_or(0);
    let text = |n: usize| {
        let text = kept.texts.get(row).and_then(|t| t.get(n)).map_or("", String::as_str);
        if text.is_empty() { Value::Null } else { Value::Text(text) }
    };
    let number = |n: Option<u64>| n.map_or(Value::Null, |n| Value::I64(n as i64));
    let some =
        |n: Option<&u32>| n.filter(|n| **n > 0).map_or(Value::Null, |n| Value::I64(i64::from(*n as i32)));
    vec![
        Value::I64(utc_ns.saturating_sub(zero)),
        Value::I64(utc_ns),
        Value::I64(i64::from(kept.log)),
        number(system.record_id.get(row).copied()),
        text(0),
        Value::Text(&kept.batch.provider),
        number(system.version.get(row).copied().map(u64::from)),
        number(system.level.get(row).copied().map(u64::from)),
        number(system.task.get(row).copied().map(u64::from)),
        number(system.opcode.get(row).copied().map(u64::from)),
        number(system.keywords.get(row).copied()),
        text(1),
        text(2),
        some(system.process.get(row)),
        some(system.thread.get(row)),
    ]
}

fn spec(
    name: Cow<'static, str>,
    ty: ColumnType,
    unit: Unit,
    role: Role,
    doc: Cow<'static, str>,
) -> ColumnSpec {
    ColumnSpec { name, ty, unit, role, doc, nullable: true }
}
