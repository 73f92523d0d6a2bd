//! The part of a trace that a question is about: a range of time and filters, as conditions on rows and as what operators read.
//!
//! A row is in a range `[from, to)` if the column that its table is sorted by (else its first column of role `time`) is. Tables
//! without a time are sums over the whole trace, and tables of what lives (processes, images) tell when it began: a range says nothing of
//! them, and the answer says so.

use crate::call::{Call, Fault};
use crate::trace::Trace;
use etwhy_analysis::pivot::{Condition, Op};
use etwhy_analysis::stacks::{Matcher, TracePart};
use etwhy_table::{ColumnSpec, Role, TableSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// What the page asks about; it stands beside the other keys of a body.
#[derive(Clone, Debug, Default, Deserialize, TS)]
pub struct Part {
    /// From (included) and to (not), ns.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// All must hold.
    #[serde(default)]
    pub filters: Vec<Filter>,
}

/// A filter of the page.
#[derive(Clone, Debug, Deserialize, TS)]
pub struct Filter {
    /// What it speaks of.
    pub kind: Kind,
    /// upid, utid, number of a processor, name of a module, or a frame as [`Matcher`] reads it.
    #[ts(type = "number | string")]
    pub value: Value,
    /// The others.
    #[serde(default)]
    pub not: bool,
}

/// A filter that an answer suggests.
#[derive(Clone, Debug, Serialize, TS)]
pub struct Chosen {
    kind: Kind,
    #[ts(type = "number | string")]
    value: Value,
    /// What people read.
    label: String,
}

impl Chosen {
    /// A filter and what people read.
    pub fn new(kind: Kind, value: impl Into<Value>, label: impl Into<String>) -> Chosen {
        Chosen { kind, value: value.into(), label: label.into() }
    }
}

/// What a filter speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "FilterKind")]
pub enum Kind {
    /// Process.
    Process,
    /// Thread.
    Thread,
    /// Processor.
    Cpu,
    /// Module: by its column, else on the stack.
    Module,
    /// Frame on the stack.
    Frame,
}

impl Kind {
    /// The word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Process => "process",
            Kind::Thread => "thread",
            Kind::Cpu => "processor",
            Kind::Module => "module",
            Kind::Frame => "frame",
        }
    }
}

/// Windows has at most 2048 logical processors.
const MOST_CPUS: usize = 2048;

/// Tables of what lives: their times say when it began or was first seen, not when the row counts. A range says nothing of them.
const INSTANCES: &[&str] = &[
    "trace",
    "process",
    "thread",
    "image",
    "cpu",
    "file",
    "logger",
    "logger_provider",
    "clr_method",
    "kernel_class",
];

/// The column that tells when a row is.
pub fn time_column(spec: &TableSpec) -> Option<&ColumnSpec> {
    if INSTANCES.contains(&spec.name.as_ref()) {
        return None;
    }
    let sorted =
        spec.sorted_by.as_deref().and_then(|name| spec.column(name)).filter(|c| c.role == Role::Time);
    sorted.or_else(|| spec.columns.iter().find(|c| c.role == Role::Time))
}

impl Part {
    /// The part that a call's body names.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn parse(call: &Call<'_>) -> Result<Part, Fault> {
        let part: Part = call.parse()?;
        match part.range {
            Some([from, to]) if from >= to => Err(Fault::wrong("the range ends before it begins")),
            _ => Ok(part),
        }
    }

    /// Conditions on the rows of a table that are in it, and what of it says nothing of that table: `range`, `process`, …
    pub fn conditions(&self, spec: &TableSpec) -> (Vec<Condition>, Vec<&'static str>) {
        let (mut out, mut unused) = (Vec::new(), Vec::new());
        let mut push = |column: &ColumnSpec, op: Op, value: Value, not: bool| {
            out.push(Condition { column: column.name.to_string(), or: Vec::new(), op, value, not });
        };
        match (self.range, time_column(spec)) {
            (Some([from, to]), Some(column)) => {
                push(column, Op::Ge, from.into(), false);
                push(column, Op::Lt, to.into(), false);
            }
            (Some(_), None) => unused.push("range"),
            (None, _) => {}
        }
        for filter in &self.filters {
            match filter.column(spec) {
                Some((column, op)) => push(column, op, filter.value.clone(), filter.not),
                None => unused.push(filter.kind.name()),
            }
        }
        (out, unused)
    }

    /// What trees of stacks need: the part, and frames that must (not) be on stacks.
    pub fn of_stacks(&self, trace: &Trace) -> TracePart {
        let count = |table: &str| trace.rows_of(table);
        let mut part = TracePart {
            from_ns: self.range.map(|[from, _]| from),
            to_ns: self.range.map(|[_, to]| to),
            ..TracePart::default()
        };
        for filter in &self.filters {
            let (list, rows) = match filter.kind {
                Kind::Process => (&mut part.processes, count("process")),
                Kind::Thread => (&mut part.threads, count("thread")),
                Kind::Cpu => (&mut part.cpus, MOST_CPUS),
                _ => continue,
            };
            let wanted = filter.value.as_u64().and_then(|id| usize::try_from(id).ok());
            let list = list.get_or_insert_with(|| vec![true; rows]);
            for (id, allowed) in list.iter_mut().enumerate() {
                *allowed &= (Some(id) == wanted) != filter.not;
            }
        }
        part
    }

    /// Frames that must be on stacks, and frames that must not.
    pub fn frames(&self) -> (Vec<Matcher>, Vec<Matcher>) {
        let of = |not: bool| {
            let named = self
                .filters
                .iter()
                .filter(move |f| f.not == not && matches!(f.kind, Kind::Module | Kind::Frame));
            named.filter_map(|f| f.value.as_str()).map(Matcher::as_sql).collect()
        };
        (of(false), of(true))
    }
}

impl Filter {
    /// The column that it speaks of, and how it is compared.
    fn column<'s>(&self, spec: &'s TableSpec) -> Option<(&'s ColumnSpec, Op)> {
        let of_role = |role: Role| spec.columns.iter().find(|column| column.role == role);
        let number = self.value.as_i64().is_some();
        let text = self.value.as_str().is_some();
        match self.kind {
            Kind::Process if number => Some((of_role(Role::Process)?, Op::Eq)),
            Kind::Thread if number => Some((of_role(Role::Thread)?, Op::Eq)),
            Kind::Cpu if number => Some((of_role(Role::Cpu)?, Op::Eq)),
            Kind::Module if text => {
                let own = ["module", "driver"].iter().find_map(|name| spec.column(name));
                own.map(|column| (column, Op::Eq)).or_else(|| Some((of_role(Role::Stack)?, Op::StackHas)))
            }
            Kind::Frame if text => Some((of_role(Role::Stack)?, Op::StackHas)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_analysis::pivot::{Function, Pivot, pivot};
    use etwhy_table::{AdHocBuilder, ColumnType, Database, Evidence, Memory, Unit};
    use std::borrow::Cow;

    fn spec(columns: &[(&'static str, Role)]) -> TableSpec {
        let column = |(name, role): &(&'static str, Role)| ColumnSpec {
            name: Cow::Borrowed(name),
            ty: if *role == Role::Name { ColumnType::Text } else { ColumnType::I64 },
            unit: Unit::None,
            role: *role,
            doc: Cow::Borrowed(""),
            nullable: true,
        };
        TableSpec {
            name: Cow::Borrowed("t"),
            title: Cow::Borrowed(""),
            doc: Cow::Borrowed(""),
            columns: columns.iter().map(column).collect(),
            sorted_by: None,
            version: 1,
            evidence: Evidence::Documented,
        }
    }

    /// The query of the rows of a part, and what says nothing of them.
    fn asked(part: &Part, spec: TableSpec) -> (String, Vec<&'static str>) {
        let (conditions, unused) = part.conditions(&spec);
        let mut db = Database::new();
        db.insert(AdHocBuilder::new(spec, &Memory::unlimited()).finish().unwrap());
        let rows = etwhy_analysis::pivot::Value { column: None, function: Function::Count };
        let ask = Pivot { table: "t".to_owned(), conditions, values: vec![rows], ..Pivot::default() };
        (pivot(&db, &ask, None, &|| false).unwrap().sql, unused)
    }

    fn part(json: serde_json::Value) -> Part {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn conditions_follow_roles() {
        let part = part(serde_json::json!({
            "range": [5, 9],
            "filters": [
                { "kind": "process", "value": 3 },
                { "kind": "module", "value": "o'neil.sys" },
                { "kind": "frame", "value": "a!b", "not": true },
                { "kind": "cpu", "value": 1 },
            ],
        }));
        let table = spec(&[("ts_ns", Role::Time), ("new_upid", Role::Process), ("stack_id", Role::Stack)]);
        let (sql, unused) = asked(&part, table);
        assert_eq!(
            sql,
            "SELECT count(*) AS \"count\"\nFROM \"t\" AS t\nWHERE t.\"ts_ns\" >= 5\n  AND t.\"ts_ns\" < 9\n  AND t.\"new_upid\" = 3\n  \
             AND stack_has(t.\"stack_id\", 'o''neil.sys')\n  AND NOT coalesce(stack_has(t.\"stack_id\", 'a!b'), 0)"
        );
        assert_eq!(unused, ["processor"]);
        let (sql, unused) = asked(&part, spec(&[("module", Role::Name)]));
        assert!(sql.ends_with("\nWHERE t.\"module\" = 'o''neil.sys'"), "{sql}");
        assert_eq!(unused, ["range", "process", "frame", "processor"]);
    }
}
