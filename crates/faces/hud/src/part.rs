//! The part of a trace that a question is about: a range of time and filters, as SQL and as what operators read.
//!
//! A row is in a range `[from, to)` if the column that its table is sorted by (else its first column of role `time`) is. Tables
//! without a time are sums over the whole trace, and tables of what lives (processes, images) tell when it began: a range says nothing of
//! them, and the answer says so.

use crate::call::{Call, Fault};
use crate::trace::Trace;
use etwhy_analysis::stacks::{Matcher, Part as StackPart};
use etwhy_table::{ColumnSpec, Role, Table, TableSpec};
use serde::{Deserialize, Serialize};
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
    pub value: serde_json::Value,
    /// The others.
    #[serde(default)]
    pub not: bool,
}

/// A filter that an answer suggests.
#[derive(Clone, Debug, Serialize, TS)]
pub struct Chosen {
    kind: Kind,
    #[ts(type = "number | string")]
    value: serde_json::Value,
    /// What people read.
    label: String,
}

impl Chosen {
    /// A filter and what people read.
    pub fn new(kind: Kind, value: impl Into<serde_json::Value>, label: impl Into<String>) -> Chosen {
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

/// A part of a table as SQL.
#[derive(Clone, Debug, Default)]
pub struct Where {
    /// Conditions, to be joined by `AND`.
    pub conditions: Vec<String>,
    /// What says nothing of this table: `range`, `process`, …
    pub unused: Vec<&'static str>,
}

impl Where {
    /// ` WHERE …`, or nothing.
    pub fn clause(&self) -> String {
        if self.conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", self.conditions.join(" AND "))
        }
    }
}

/// A name in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL.
pub fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''").replace('\0', ""))
}

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
    pub fn of(call: &Call<'_>) -> Result<Part, Fault> {
        let part: Part = call.parse()?;
        match part.range {
            Some([from, to]) if from >= to => Err(Fault::wrong("the range ends before it begins")),
            _ => Ok(part),
        }
    }

    /// The rows of a table that are in it.
    pub fn of_table(&self, spec: &TableSpec) -> Where {
        let mut out = Where::default();
        if let Some([from, to]) = self.range {
            match time_column(spec) {
                Some(column) => {
                    let name = quoted(&column.name);
                    out.conditions.push(format!("{name} >= {from} AND {name} < {to}"));
                }
                None => out.unused.push("range"),
            }
        }
        for filter in &self.filters {
            match filter.condition(spec) {
                Some(condition) if filter.not => out.conditions.push(format!("NOT coalesce({condition}, 0)")),
                Some(condition) => out.conditions.push(condition),
                None => out.unused.push(filter.kind.name()),
            }
        }
        out
    }

    /// What trees of stacks need: the part, and frames that must (not) be on stacks.
    pub fn of_stacks(&self, trace: &Trace) -> StackPart {
        let count = |table: &str| trace.db.get(table).map_or(0, Table::rows);
        let mut part = StackPart {
            from_ns: self.range.map(|[from, _]| from),
            to_ns: self.range.map(|[_, to]| to),
            ..StackPart::default()
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
    fn condition(&self, spec: &TableSpec) -> Option<String> {
        let of_role = |role: Role| spec.columns.iter().find(|c| c.role == role);
        let number = || self.value.as_i64();
        let equals = |column: &ColumnSpec, n: i64| format!("{} = {n}", quoted(&column.name));
        let on_stack = |pattern: &str| {
            let stack = of_role(Role::Stack)?;
            Some(format!("stack_has({}, {})", quoted(&stack.name), text(pattern)))
        };
        match self.kind {
            Kind::Process => Some(equals(of_role(Role::Process)?, number()?)),
            Kind::Thread => Some(equals(of_role(Role::Thread)?, number()?)),
            Kind::Cpu => Some(equals(of_role(Role::Cpu)?, number()?)),
            Kind::Frame => on_stack(self.value.as_str()?),
            Kind::Module => {
                let module = self.value.as_str()?;
                let own = ["module", "driver"].iter().find_map(|name| spec.column(name));
                match own {
                    Some(column) => Some(format!("{} = {}", quoted(&column.name), text(module))),
                    None => on_stack(module),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_table::{ColumnType, Evidence, Unit};
    use std::borrow::Cow;

    fn spec(columns: &[(&'static str, Role)]) -> TableSpec {
        let column = |(name, role): &(&'static str, Role)| ColumnSpec {
            name: Cow::Borrowed(name),
            ty: ColumnType::I64,
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
        let made = part.of_table(&table);
        assert_eq!(
            made.clause(),
            " WHERE \"ts_ns\" >= 5 AND \"ts_ns\" < 9 AND \"new_upid\" = 3 AND stack_has(\"stack_id\", 'o''neil.sys') AND NOT \
             coalesce(stack_has(\"stack_id\", 'a!b'), 0)"
        );
        assert_eq!(made.unused, ["processor"]);
        let sums = spec(&[("module", Role::Name)]);
        let made = part.of_table(&sums);
        assert_eq!(made.clause(), " WHERE \"module\" = 'o''neil.sys'");
        assert_eq!(made.unused, ["range", "process", "frame", "processor"]);
    }
}
