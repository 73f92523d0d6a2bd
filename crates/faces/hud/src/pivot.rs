//! Pivot tables and rows of the part of a trace that the page looks at: what `api/pivot.rs`, `api/rows.rs` and `api/table_file.rs` share.

use crate::call::{Call, Fault};
use crate::part::{Part, time_column};
use crate::trace::Trace;
use etwhy_analysis::pivot::{
    Answer, Condition, GiveUp, Pivot, PivotError, Rows, Spark, field_of, with_fields,
};
use etwhy_table::{Database, Memory, Table};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// More rows are a file's business.
const MOST: usize = 100_000;

impl From<PivotError> for Fault {
    fn from(error: PivotError) -> Fault {
        match error {
            PivotError::GivenUp => Fault::Cancelled,
            error => Fault::wrong(error),
        }
    }
}

#[derive(Deserialize)]
struct Extra {
    /// Parts of the line over time; 0: none.
    #[serde(default)]
    spark: usize,
    /// Rows instead of groups.
    #[serde(default)]
    rows: bool,
}

/// A question about a table.
pub struct Asked {
    /// The trace.
    pub trace: Arc<Trace>,
    /// What it looks at.
    part: Part,
    body: Value,
    extra: Extra,
    /// What of the part says nothing of the table.
    pub unused: Vec<&'static str>,
}

impl Asked {
    /// The question of a call.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn parse(call: &Call<'_>) -> Result<Asked, Fault> {
        let extra: Extra = call.parse()?;
        let (trace, part) = (call.trace()?, Part::parse(call)?);
        Ok(Asked { trace, part, body: call.body.clone(), extra, unused: Vec::new() })
    }

    /// True if rows are wanted instead of groups.
    pub fn wants_rows(&self) -> bool {
        self.extra.rows
    }

    /// The tables, with the fields of events that the question names as columns of table `name`.
    fn database(&self, name: &str, give_up: GiveUp<'_>) -> Result<Database, Fault> {
        let mut names = BTreeSet::new();
        fields_in(&self.body, &mut names);
        let mut db = self.trace.db.clone();
        let Some(table) = db.get(name).filter(|_| !names.is_empty()) else { return Ok(db) };
        let names: Vec<String> = names.into_iter().collect();
        let made = self.trace.cached(&format!("{name} with {names:?}"), || {
            let made =
                with_fields(table, &names, &|| !give_up(), &Memory::default()).map_err(Fault::wrong)?;
            if give_up() {
                return Err(Fault::Cancelled);
            }
            // A text of a few letters and its place, for each row.
            let bytes = made.rows().saturating_mul(16).saturating_mul(names.len());
            Ok((made, bytes))
        })?;
        db.insert((*made).clone());
        Ok(db)
    }

    fn table(&mut self, name: &str) -> Result<(&Table, Vec<Condition>), Fault> {
        let found = self.trace.db.get(name);
        let table = found.ok_or_else(|| Fault::Missing(format!("there is no table `{name}`")))?;
        let (conditions, unused) = self.part.conditions(table.spec());
        self.unused = unused;
        Ok((table, conditions))
    }

    /// Groups; at most `most` of them.
    ///
    /// # Errors
    /// If the question makes no sense, or nobody waits.
    pub fn pivot(&mut self, most: Option<usize>, give_up: GiveUp<'_>) -> Result<Answer, Fault> {
        let mut ask: Pivot = serde_json::from_value(self.body.clone()).map_err(Fault::wrong)?;
        let (parts, range) = (self.extra.spark, self.part.range);
        let extent = self.trace.extent();
        let (table, mut all) = self.table(&ask.table)?;
        let spark = time_column(table.spec()).filter(|_| parts > 0).map(|column| Spark {
            column: column.name.to_string(),
            range: range.unwrap_or([extent.first_ns, extent.last_ns.saturating_add(1)]),
            parts,
        });
        all.append(&mut ask.conditions);
        ask.conditions = all;
        ask.limit = Some(ask.limit.unwrap_or(etwhy_analysis::pivot::SOME).min(most.unwrap_or(MOST)));
        let db = self.database(&ask.table, give_up)?;
        Ok(etwhy_analysis::pivot::pivot(&db, &ask, spark.as_ref(), give_up)?)
    }

    /// Rows, the query that gives them, and how many there are in all.
    ///
    /// # Errors
    /// If the question makes no sense, or nobody waits.
    pub fn rows(&mut self, most: Option<usize>, give_up: GiveUp<'_>) -> Result<(Table, String, u64), Fault> {
        let mut ask: Rows = serde_json::from_value(self.body.clone()).map_err(Fault::wrong)?;
        let (_, mut all) = self.table(&ask.table)?;
        all.append(&mut ask.conditions);
        ask.conditions = all;
        ask.limit = Some(ask.limit.unwrap_or(etwhy_analysis::pivot::SOME).min(most.unwrap_or(MOST)));
        let db = self.database(&ask.table, give_up)?;
        Ok(etwhy_analysis::pivot::rows(&db, &ask, give_up)?)
    }
}

/// Names of fields of events in a question. Texts that people look for stand under `value`.
fn fields_in(body: &Value, names: &mut BTreeSet<String>) {
    match body {
        Value::String(text) => names.extend(field_of(text).map(str::to_owned)),
        Value::Array(list) => list.iter().for_each(|value| fields_in(value, names)),
        Value::Object(object) => {
            object.iter().filter(|(key, _)| *key != "value").for_each(|(_, value)| fields_in(value, names));
        }
        _ => {}
    }
}
