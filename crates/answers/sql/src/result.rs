//! The rows of a query as a table, whose columns know their units where the query kept the names.

use super::error::SqlError;
use etwhy_table::{
    AdHocBuilder, ColumnSpec, ColumnType, Database, Evidence, Memory, Role, Table, TableSpec, Unit, Value,
};
use etwhy_vtab::{Connection, ValueRef};
use rusqlite::Statement;
use std::borrow::Cow;

/// Bytes that a value takes while rows come.
fn size(value: ValueRef<'_>) -> usize {
    let text = match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    };
    text.saturating_add(size_of::<Option<Box<str>>>())
}

/// Values of one column while rows come.
enum Values {
    /// Nothing but nulls so far.
    Nulls(usize),
    I64(Vec<Option<i64>>),
    F64(Vec<Option<f64>>),
    Text(Vec<Option<Box<str>>>),
}

impl Values {
    fn push(&mut self, value: ValueRef<'_>) {
        match (&mut *self, value) {
            (Values::Nulls(n), ValueRef::Null) => *n += 1,
            (Values::I64(v), ValueRef::Null) => v.push(None),
            (Values::F64(v), ValueRef::Null) => v.push(None),
            (Values::Text(v), ValueRef::Null) => v.push(None),
            (Values::I64(v), ValueRef::Integer(n)) => v.push(Some(n)),
            (Values::F64(v), ValueRef::Integer(n)) => v.push(Some(n as f64)),
            (Values::F64(v), ValueRef::Real(n)) => v.push(Some(n)),
            (Values::Text(v), ValueRef::Text(t) | ValueRef::Blob(t)) => {
                v.push(Some(String::from_utf8_lossy(t).into()))
            }
            (Values::Text(v), ValueRef::Integer(n)) => v.push(Some(n.to_string().into())),
            (Values::Text(v), ValueRef::Real(n)) => v.push(Some(n.to_string().into())),
            (_, value) => {
                self.widen(value);
                self.push(value);
            }
        }
    }

    /// Takes the narrowest kind that holds what is there and `value`.
    fn widen(&mut self, value: ValueRef<'_>) {
        *self = match (std::mem::replace(self, Values::Nulls(0)), value) {
            (Values::Nulls(n), ValueRef::Integer(_)) => Values::I64(vec![None; n]),
            (Values::Nulls(n), ValueRef::Real(_)) => Values::F64(vec![None; n]),
            (Values::Nulls(n), _) => Values::Text(vec![None; n]),
            (Values::I64(v), ValueRef::Real(_)) => {
                Values::F64(v.into_iter().map(|n| n.map(|n| n as f64)).collect())
            }
            (Values::I64(v), _) => {
                Values::Text(v.into_iter().map(|n| n.map(|n| n.to_string().into())).collect())
            }
            (Values::F64(v), _) => {
                Values::Text(v.into_iter().map(|n| n.map(|n| n.to_string().into())).collect())
            }
            (text, _) => text,
        };
    }

    fn ty(&self) -> ColumnType {
        match self {
            Values::I64(_) => ColumnType::I64,
            Values::F64(_) => ColumnType::F64,
            _ => ColumnType::Text,
        }
    }

    fn get(&self, row: usize) -> Value<'_> {
        match self {
            Values::Nulls(_) => Value::Null,
            Values::I64(v) => v.get(row).copied().flatten().map_or(Value::Null, Value::I64),
            Values::F64(v) => v.get(row).copied().flatten().map_or(Value::Null, Value::F64),
            Values::Text(v) => v.get(row).and_then(|t| t.as_deref()).map_or(Value::Null, Value::Text),
        }
    }
}

/// A query.
pub struct Ask<'a> {
    /// What the result is called.
    pub name: &'a str,
    /// One `SELECT`.
    pub sql: &'a str,
    /// Most rows.
    pub most: usize,
    /// Most bytes of all values.
    pub most_bytes: usize,
    /// `ATTACH` and `DETACH` are statements, too.
    pub attach: bool,
    /// Makes a statement that gives the same rows faster, once SQLite has allowed the query.
    pub faster: &'a dyn Fn() -> Result<Option<Statement<'a>>, SqlError>,
}

/// The rows of a query; whether there are more than wanted.
pub fn run<'a>(connection: &'a Connection, db: &Database, ask: &Ask<'a>) -> Result<(Table, bool), SqlError> {
    let Ask { name, sql, most, most_bytes, attach, faster } = *ask;
    let mut statement = connection.prepare(sql)?;
    // What gives no columns is no question; SQLite lets some of it pass without asking (`REINDEX` where there is no index).
    let first = super::tokens::first(sql);
    let attaches = attach && first.is_some_and(|token| token.is("attach") || token.is("detach"));
    if !statement.readonly() || (statement.column_count() == 0 && !attaches) {
        return Err(SqlError::Sql(super::capability::ONLY_QUESTIONS.to_owned()));
    }
    let names: Vec<String> = statement.column_names().map(|n| (*n).to_owned()).collect();
    if let Some(other) = faster()?.filter(|other| other.column_count() == names.len()) {
        statement = other;
    }
    let mut values: Vec<Values> = names.iter().map(|_| Values::Nulls(0)).collect();
    let mut rows = statement.query([])?;
    let mut count = 0;
    let mut bytes = 0usize;
    let mut more = false;
    while let Some(row) = rows.next()? {
        if count >= most {
            more = true;
            break;
        }
        for (column, values) in values.iter_mut().enumerate() {
            let value = row.get_ref(column)?;
            bytes = bytes.saturating_add(size(value));
            values.push(value);
        }
        if bytes > most_bytes {
            return Err(SqlError::Sql(format!(
                "the result is larger than the limit here, {most_bytes} bytes; ask for fewer rows or columns"
            )));
        }
        count += 1;
    }
    let columns = names.iter().zip(&values).map(|(name, values)| column(db, name, values.ty())).collect();
    let spec = TableSpec {
        name: Cow::Owned(name.to_owned()),
        title: Cow::Borrowed("Result of a query"),
        doc: Cow::Owned(sql.to_owned()),
        columns: Cow::Owned(columns),
        sorted_by: None,
        version: 1,
        evidence: Evidence::Documented,
    };
    let mut builder = AdHocBuilder::new(spec, &Memory::default());
    for row in 0..count {
        let cells: Vec<Value<'_>> = values.iter().map(|column| column.get(row)).collect();
        builder.push(&cells)?;
    }
    Ok((builder.finish()?, more))
}

/// What is known of a column by its name: that of a table's column if all tables agree, else the unit that the
/// name ends in.
fn column(db: &Database, name: &str, ty: ColumnType) -> ColumnSpec {
    let mut known = db.tables().filter_map(|table| table.spec().column(name));
    let first = known.next();
    let agreed = first.filter(|first| known.all(|c| (c.unit, c.role) == (first.unit, first.role)));
    let (unit, role, doc) = match agreed {
        Some(c) if c.ty.is_number() == ty.is_number() => (c.unit, c.role, c.doc.clone()),
        // A number that no column is called after was computed: most are counts.
        _ if ty == ColumnType::I64 => (unit_of(name, ty), Role::Count, Cow::Borrowed("")),
        _ => (unit_of(name, ty), Role::Other, Cow::Borrowed("")),
    };
    ColumnSpec { name: Cow::Owned(name.to_owned()), ty, unit, role, doc, nullable: true }
}

fn unit_of(name: &str, ty: ColumnType) -> Unit {
    if !ty.is_number() {
        return Unit::None;
    }
    match name.rsplit('_').next() {
        Some("ns") => Unit::Ns,
        Some("bytes") => Unit::Bytes,
        Some("percent") => Unit::Percent,
        _ => Unit::None,
    }
}
