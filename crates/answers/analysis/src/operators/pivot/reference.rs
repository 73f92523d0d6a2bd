//! Columns of a table, and columns of the tables that its ids refer to.

use super::{PivotError, fields, wrong};
use etwhy_table::filter::quoted;
use etwhy_table::{ColumnSpec, ColumnView, Database, Role, Table, Value};
use std::borrow::Cow;

/// References may follow this many ids.
const HOPS: usize = 4;

/// Table and id column that an id refers to.
pub fn target(column: &ColumnSpec) -> Option<(&'static str, &'static str)> {
    const PROCESS: (&str, &str) = ("process", "upid");
    const THREAD: (&str, &str) = ("thread", "utid");
    const STACK: (&str, &str) = ("stack", "stack_id");
    const FRAME: (&str, &str) = ("frame", "frame_id");
    const IMAGE: (&str, &str) = ("image", "image_id");
    match column.role {
        Role::Process => return Some(PROCESS),
        Role::Thread => return Some(THREAD),
        Role::Stack => return Some(STACK),
        Role::Frame => return Some(FRAME),
        Role::Image => return Some(IMAGE),
        _ => {}
    }
    let by_name =
        [PROCESS, THREAD, STACK, FRAME, IMAGE, ("file", "file_id"), ("event_type", "event_type_id")];
    let stem =
        |id: &str| column.name.strip_suffix(id).is_some_and(|stem| stem.is_empty() || stem.ends_with('_'));
    by_name.into_iter().find(|(_, id)| column.ty.is_number() && stem(id))
}

/// The tables of a question: the one that is asked about, `t`, and those that ids of it refer to.
pub(super) struct Joins<'d> {
    db: &'d Database,
    /// The table that is asked about.
    pub table: &'d Table,
    /// Path of ids, alias, clause.
    joined: Vec<(String, String, String)>,
}

/// A column that a question names.
pub(super) struct Reference<'d> {
    /// As the question spells it.
    pub name: String,
    /// What it holds.
    pub spec: ColumnSpec,
    /// Its expression in SQL.
    pub sql: String,
    /// Column of the asked table: itself, or the id that leads to it.
    pub own: usize,
    /// Where it is, if an id leads there.
    pub far: Option<Far<'d>>,
}

/// A column of a table that an id leads to.
pub(super) struct Far<'d> {
    /// The table.
    pub table: &'d Table,
    /// The column.
    pub column: usize,
    /// Row of the table by id; none: [`NOWHERE`].
    pub rows: Vec<u32>,
}

/// No row.
pub(super) const NOWHERE: u32 = u32::MAX;

impl<'d> Far<'d> {
    /// The cells by id.
    pub fn cells(&self) -> Vec<Value<'d>> {
        let views: Vec<ColumnView<'d>> =
            (0..self.table.batches().len()).map(|batch| self.table.view(batch, self.column)).collect();
        let cell = |row: &u32| {
            let place = self.table.locate(*row);
            place.and_then(|(batch, row)| Some(views.get(batch)?.value(row))).unwrap_or(Value::Null)
        };
        self.rows.iter().map(cell).collect()
    }
}

/// The number of an id as a position.
pub(super) fn position(id: i64) -> usize {
    usize::try_from(id).unwrap_or(usize::MAX)
}

impl<'d> Joins<'d> {
    pub fn new(db: &'d Database, table: &str) -> Result<Joins<'d>, PivotError> {
        match db.get(table) {
            Some(table) => Ok(Joins { db, table, joined: Vec::new() }),
            None => wrong(format!("there is no table `{table}`")),
        }
    }

    /// All tables.
    pub fn db(&self) -> &'d Database {
        self.db
    }

    /// `FROM …` with all joins.
    pub fn from(&self) -> String {
        let mut out = format!("FROM {} AS t", quoted(self.table.name()));
        for (_, _, clause) in &self.joined {
            out.push_str(clause);
        }
        out
    }

    /// The column that `name` names.
    pub fn find(&mut self, name: &str) -> Result<Reference<'d>, PivotError> {
        // A field of events, which was made a column.
        if let (Some(field), Some(own)) = (fields::field_of(name), self.table.spec().column_index(name))
            && let Some(spec) = self.table.spec().columns.get(own)
        {
            let sql = fields::sql(field);
            return Ok(Reference { name: name.to_owned(), spec: spec.clone(), sql, own, far: None });
        }
        let mut parts = name.split('.');
        let first = parts.next().unwrap_or("");
        let (mut table, mut alias) = (self.table, "t".to_owned());
        let own = column(table, first)?;
        let mut at = own;
        let mut rows: Option<Vec<u32>> = None;
        let mut path = first.to_owned();
        for (hops, part) in parts.enumerate() {
            if hops >= HOPS {
                return wrong(format!("`{name}` follows too many ids"));
            }
            let id = table.spec().columns.get(at);
            let Some((next, id_column)) = id.and_then(target) else {
                return wrong(format!("`{path}` refers to no table, so there is no `{name}`"));
            };
            let Some(next) = self.db.get(next) else { return wrong(format!("there is no table `{next}`")) };
            numbered(next, id_column)?;
            let id_sql = format!("{alias}.{}", quoted(table.spec().columns.get(at).map_or("", |c| &c.name)));
            let count = u32::try_from(next.rows()).unwrap_or(u32::MAX);
            rows = Some(match rows {
                None => (0..count).collect(),
                Some(before) => {
                    let far = Far { table, column: at, rows: before };
                    let row = |cell: Value<'_>| cell.as_i64().and_then(|id| u32::try_from(id).ok());
                    far.cells()
                        .into_iter()
                        .map(|c| row(c).filter(|r| *r < count).unwrap_or(NOWHERE))
                        .collect()
                }
            });
            alias = self.join(&path, next.name(), id_column, &id_sql);
            table = next;
            at = column(table, part)?;
            path = format!("{path}.{part}");
        }
        let Some(spec) = table.spec().columns.get(at) else { return wrong(format!("there is no `{name}`")) };
        let sql = format!("{alias}.{}", quoted(&spec.name));
        let spec = ColumnSpec { name: Cow::Owned(name.to_owned()), nullable: true, ..spec.clone() };
        let far = rows.map(|rows| Far { table, column: at, rows });
        Ok(Reference { name: name.to_owned(), spec, sql, own, far })
    }

    fn join(&mut self, path: &str, table: &str, id: &str, of: &str) -> String {
        if let Some((_, alias, _)) = self.joined.iter().find(|(known, _, _)| known == path) {
            return alias.clone();
        }
        let alias = format!("j{}", self.joined.len() + 1);
        let clause = format!(" LEFT JOIN {} AS {alias} ON {alias}.{} = {of}", quoted(table), quoted(id));
        self.joined.push((path.to_owned(), alias.clone(), clause));
        alias
    }
}

fn column(table: &Table, name: &str) -> Result<usize, PivotError> {
    match table.spec().column_index(name) {
        Some(at) => Ok(at),
        None => wrong(format!("table `{}` has no column `{name}`", table.name())),
    }
}

/// Ids are row numbers, in traces as in extracts; where that is not so, nothing may rest on it.
fn numbered(table: &Table, id: &str) -> Result<(), PivotError> {
    let views = table.column(id).unwrap_or_default();
    let dense = views.iter().zip(table.starts()).all(|(view, start)| {
        (0..view.len()).all(|row| view.i64(row) == Some(i64::from(*start).saturating_add(row as i64)))
    });
    if dense { Ok(()) } else { wrong(format!("rows of table `{}` are not numbered by `{id}`", table.name())) }
}
