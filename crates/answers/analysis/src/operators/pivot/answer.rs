//! Groups in order, as a table.

use super::order::{cells, top};
use super::reference::{Reference, position, target};
use super::scan::{Found, Question};
use super::sql::order;
use super::{Answer, Function, Pivot, PivotError, SOME, wrong};
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Database, Memory, Role, Table, TableSpec, Unit, Value,
};
use etwhy_trace::catalog::{
    event_type::EventTypeRow,
    file::FileRow,
    image::ImageRow,
    process::ProcessRow,
    stack::{FrameRow, StackRow},
    thread::ThreadRow,
};
use std::borrow::Cow;

/// The declaration of a table that is made for an answer.
pub(super) fn spec(of: &Table, columns: Vec<ColumnSpec>) -> TableSpec {
    TableSpec {
        name: Cow::Owned(of.name().to_owned()),
        title: of.spec().title.clone(),
        doc: of.spec().doc.clone(),
        columns: Cow::Owned(columns),
        sorted_by: None,
        version: of.spec().version,
        evidence: of.spec().evidence,
    }
}

fn column(name: String, ty: ColumnType, unit: Unit, role: Role, doc: String) -> ColumnSpec {
    ColumnSpec { name: name.into(), ty, unit, role, doc: doc.into(), nullable: true }
}

/// The label column of an id column, if ids of that kind have names.
pub(super) fn label_spec(reference: &Reference<'_>) -> Option<ColumnSpec> {
    target(&reference.spec)?;
    let doc = format!("What {} {}", reference.name, "stands for.");
    Some(column(format!("{}.label", reference.name), ColumnType::Text, Unit::None, Role::Name, doc))
}

/// What people call what an id refers to.
pub(super) fn label(db: &Database, reference: &Reference<'_>, id: Value<'_>) -> Option<String> {
    let (name, _) = target(&reference.spec)?;
    let id = position(id.as_i64()?);
    let process = |id: i64| {
        let processes = db.read_or_empty::<ProcessRow>();
        processes.get(id).map(|process| format!("{} ({})", process.name(), process.pid()))
    };
    match name {
        "process" => process(id.try_into().ok()?),
        "thread" => {
            let threads = db.read_or_empty::<ThreadRow>();
            let thread = threads.get(id)?;
            let of = thread.upid().and_then(process).unwrap_or_else(|| "?".to_owned());
            let name = thread.name().or(thread.start_function()).filter(|name| !name.is_empty());
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            Some(format!("{}{name} · {of}", thread.tid()))
        }
        "stack" => db.read_or_empty::<StackRow>().get(id)?.leaf().map(str::to_owned),
        "frame" => Some(db.read_or_empty::<FrameRow>().get(id)?.label().to_owned()),
        "image" => Some(db.read_or_empty::<ImageRow>().get(id)?.name().to_owned()),
        "file" => {
            let files = db.read_or_empty::<FileRow>();
            let file = files.get(id)?;
            file.path().or(file.name()).map(str::to_owned)
        }
        "event_type" => {
            let types = db.read_or_empty::<EventTypeRow>();
            types.get(id).map(|event| format!("{}/{}", event.provider(), event.name()))
        }
        _ => None,
    }
}

fn value_spec(ask: &super::Value, of: Option<&Reference<'_>>) -> ColumnSpec {
    let name = ask.name();
    let Some(of) = of else {
        return column(name, ColumnType::I64, Unit::Count, Role::Count, "Rows.".to_owned());
    };
    let spec = &of.spec;
    let words = match ask.function {
        Function::Count => "How many rows have one",
        Function::Sum => "Sum",
        Function::Min => "Smallest",
        Function::Max => "Largest",
        Function::Avg => "Mean",
        Function::Unique => "Distinct values",
    };
    let doc = format!("{words}. {}: {}", spec.name, spec.doc);
    match ask.function {
        Function::Count | Function::Unique => column(name, ColumnType::I64, Unit::Count, Role::Count, doc),
        Function::Avg => column(name, ColumnType::F64, spec.unit, spec.role, doc),
        Function::Sum if spec.ty == ColumnType::F64 => column(name, spec.ty, spec.unit, spec.role, doc),
        Function::Sum => column(name, ColumnType::I64, spec.unit, spec.role, doc),
        Function::Min | Function::Max => column(name, spec.ty, spec.unit, spec.role, doc),
    }
}

fn json(value: Value<'_>) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::I64(number) => number.into(),
        Value::F64(number) => number.into(),
        Value::Bool(flag) => flag.into(),
        Value::Text(text) => text.into(),
    }
}

pub(super) fn answer(
    db: &Database,
    ask: &Pivot,
    question: &Question<'_, '_>,
    found: Found<'_>,
    sql: String,
) -> Result<Answer, PivotError> {
    let mut groups = found.groups();
    let all = groups.len();
    if ask.group.is_empty() {
        // Without keys there is one group, even of no rows.
        groups = vec![0];
    }
    let totals: Vec<Value<'_>> =
        found.accs.iter().zip(&ask.values).map(|(acc, value)| acc.total(value.function)).collect();
    let value = |group: u32, at: usize| match (found.accs.get(at), ask.values.get(at)) {
        (Some(acc), Some(value)) => match acc.value(group as usize, value.function) {
            Value::Null if matches!(value.function, Function::Count | Function::Unique) => Value::I64(0),
            value => value,
        },
        _ => Value::Null,
    };
    let sorts = order(ask);
    // The first criterion is at hand for every group; the others are looked up where that is equal.
    let criterion = |group: u32, sort: &super::Sort| match (sort.value, sort.key) {
        (Some(at), _) => value(group, at),
        (None, Some(at)) => found.keys(group).get(at).copied().unwrap_or(Value::Null),
        _ => Value::Null,
    };
    let first = sorts.first().copied().unwrap_or_default();
    let mut ranked: Vec<(Value<'_>, u32)> = groups.iter().map(|g| (criterion(*g, &first), *g)).collect();
    // Without keys there is nothing to page through.
    let (offset, limit) = if ask.group.is_empty() { (0, 1) } else { (ask.offset, ask.limit.unwrap_or(SOME)) };
    top(&mut ranked, offset.saturating_add(limit), |a, b| {
        cells(&a.0, &b.0, first.down).then_with(|| {
            let rest = sorts.iter().skip(1);
            rest.map(|sort| cells(&criterion(a.1, sort), &criterion(b.1, sort), sort.down))
                .find(|order| order.is_ne())
                .unwrap_or(a.1.cmp(&b.1))
        })
    });

    let mut columns: Vec<ColumnSpec> = question.keys.iter().map(|key| key.spec.clone()).collect();
    let labelled: Vec<&Reference<'_>> =
        question.keys.iter().filter(|key| target(&key.spec).is_some()).collect();
    columns.extend(labelled.iter().filter_map(|key| label_spec(key)));
    for (value, measure) in ask.values.iter().zip(&question.measures) {
        columns.push(value_spec(value, measure.reference.as_ref()));
    }
    for at in &ask.share {
        let Some(value) = ask.values.get(*at) else {
            return wrong(format!("there is no value {at} to share"));
        };
        if !matches!(value.function, Function::Count | Function::Sum) {
            return wrong(format!("`{}` has no share: only counts and sums have", value.name()));
        }
        let (name, doc) = (format!("share({})", value.name()), format!("Share of all {}.", value.name()));
        columns.push(column(name, ColumnType::F64, Unit::Percent, Role::Other, doc));
    }
    if found.sparks.is_some() {
        let doc =
            "The first value over the shown time, from left to right; - where there is none.".to_owned();
        columns.push(column("spark".to_owned(), ColumnType::LongText, Unit::None, Role::Other, doc));
    }
    let mut builder = AdHocBuilder::new(spec(question.table, columns), &Memory::unlimited());
    for (_, group) in ranked.iter().skip(offset) {
        let keys = found.keys(*group);
        let labels: Vec<Option<String>> = question
            .keys
            .iter()
            .zip(&keys)
            .filter(|(key, _)| target(&key.spec).is_some())
            .map(|(key, id)| label(db, key, *id))
            .collect();
        let line = found.sparks.as_ref().map(|sparks| sparks.text(*group as usize));
        let mut row = keys;
        row.extend(labels.iter().map(|label| label.as_deref().map_or(Value::Null, Value::Text)));
        row.extend((0..ask.values.len()).map(|at| value(*group, at)));
        for at in &ask.share {
            let all = totals.get(*at).and_then(|total| total.as_f64()).filter(|all| *all != 0.0);
            let own = value(*group, *at).as_f64();
            row.push(own.zip(all).map_or(Value::Null, |(own, all)| Value::F64(100.0 * own / all)));
        }
        if let Some(line) = &line {
            row.push(line.as_deref().map_or(Value::Null, Value::Text));
        }
        builder.push(&row)?;
    }
    Ok(Answer {
        table: builder.finish()?,
        sql,
        groups: if ask.group.is_empty() { 1 } else { all },
        rows: found.rows(),
        totals: totals.into_iter().map(json).collect(),
        spark: found.sparks.as_ref().is_some_and(|sparks| !sparks.given_up),
    })
}
