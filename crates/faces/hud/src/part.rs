//! The part of a trace that a question is about: a range of time and filters, as conditions on rows and as what operators read.
//!
//! A row is in a range `[from, to)` if the column that its table is sorted by (else its first column of role `time`) is. Tables
//! without a time are sums over the whole trace, and tables of what lives (processes, images) tell when it began: a range says nothing of
//! them, and the answer says so.

use crate::call::{Call, Fault};
use crate::trace::Trace;
use etwhy_analysis::operators::among::Among;
use etwhy_analysis::pivot::{Condition, Op};
use etwhy_analysis::stacks::{Matcher, TracePart};
use etwhy_table::{ColumnSpec, Role, TableSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// What the page asks about; it is listed with the other keys of a body.
#[derive(Clone, Debug, Default, Deserialize, TS)]
pub struct Part {
    /// From (included) and to (not), ns.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Of filters of one kind one must hold, of each kind; those that leave something out hold all.
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
    /// All kinds, in the order of their conditions.
    const ALL: [Kind; 5] = [Kind::Process, Kind::Thread, Kind::Cpu, Kind::Module, Kind::Frame];

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
        for kind in Kind::ALL {
            let of_kind: Vec<&Filter> = self.filters.iter().filter(|filter| filter.kind == kind).collect();
            let Some((column, op)) = kind.column(spec).filter(|_| of_kind.iter().all(|f| f.fits())) else {
                unused.extend((!of_kind.is_empty()).then_some(kind.name()));
                continue;
            };
            let (out, wanted): (Vec<&Filter>, Vec<&Filter>) = of_kind.into_iter().partition(|f| f.not);
            let values: Vec<Value> = wanted.iter().map(|filter| filter.value.clone()).collect();
            match (values.as_slice(), op) {
                ([], _) => {}
                ([one], _) => push(column, op, one.clone(), false),
                (_, Op::Eq) => push(column, Op::In, values.into(), false),
                _ => push(column, op, values.into(), false),
            }
            for filter in out {
                push(column, op, filter.value.clone(), true);
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
        let mask = |kind: Kind, list: &mut Option<Vec<bool>>, rows: usize| {
            let among = self.numbers(kind);
            *list = (!among.is_empty()).then(|| (0i64..).take(rows).map(|id| among.has(Some(id))).collect());
        };
        mask(Kind::Process, &mut part.processes, count("process"));
        mask(Kind::Thread, &mut part.threads, count("thread"));
        mask(Kind::Cpu, &mut part.cpus, MOST_CPUS);
        part
    }

    /// Numbers that filters of a kind name.
    pub fn numbers(&self, kind: Kind) -> Among {
        let of_kind = self.filters.iter().filter(|filter| filter.kind == kind);
        of_kind.filter_map(|filter| Some((filter.value.as_i64()?, !filter.not))).collect()
    }

    /// Names that filters of a kind name.
    pub fn names(&self, kind: Kind) -> Among<&str> {
        let of_kind = self.filters.iter().filter(|filter| filter.kind == kind);
        of_kind.filter_map(|filter| Some((filter.value.as_str()?, !filter.not))).collect()
    }

    /// What must be on stacks, each with one of its frames, and frames that must not.
    pub fn frames(&self) -> (Vec<Matcher>, Vec<Matcher>) {
        let (mut focus, mut exclude) = (Vec::new(), Vec::new());
        for kind in [Kind::Module, Kind::Frame] {
            let names = self.names(kind);
            let wanted: Vec<Matcher> = names.wanted().iter().copied().map(Matcher::as_sql).collect();
            focus.extend((!wanted.is_empty()).then(|| Matcher::any(wanted)));
            exclude.extend(names.unwanted().iter().copied().map(Matcher::as_sql));
        }
        (focus, exclude)
    }
}

impl Filter {
    /// True if its value is one of its kind.
    fn fits(&self) -> bool {
        match self.kind {
            Kind::Process | Kind::Thread | Kind::Cpu => self.value.as_i64().is_some(),
            Kind::Module | Kind::Frame => self.value.as_str().is_some(),
        }
    }
}

impl Kind {
    /// The column that filters of this kind speak of, and how it is compared.
    fn column(self, spec: &TableSpec) -> Option<(&ColumnSpec, Op)> {
        let of_role = |role: Role| spec.columns.iter().find(|column| column.role == role);
        match self {
            Kind::Process => Some((of_role(Role::Process)?, Op::Eq)),
            Kind::Thread => Some((of_role(Role::Thread)?, Op::Eq)),
            Kind::Cpu => Some((of_role(Role::Cpu)?, Op::Eq)),
            Kind::Module => {
                let own = ["module", "driver"].iter().find_map(|name| spec.column(name));
                own.map(|column| (column, Op::Eq)).or_else(|| Some((of_role(Role::Stack)?, Op::StackHas)))
            }
            Kind::Frame => Some((of_role(Role::Stack)?, Op::StackHas)),
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
        assert_eq!(unused, ["range", "process", "processor", "frame"]);
    }

    #[test]
    fn either_of_a_kind_and_all_kinds() {
        let part = part(serde_json::json!({ "filters": [
            { "kind": "process", "value": 3 },
            { "kind": "module", "value": "a.sys" },
            { "kind": "frame", "value": "a!b" },
            { "kind": "process", "value": 5 },
            { "kind": "module", "value": "b.sys" },
            { "kind": "frame", "value": "c!d" },
            { "kind": "process", "value": 7, "not": true },
            { "kind": "process", "value": 9, "not": true },
        ]}));
        let columns = [("upid", Role::Process), ("module", Role::Name), ("stack_id", Role::Stack)];
        let (sql, unused) = asked(&part, spec(&columns));
        assert!(
            sql.ends_with(
                "WHERE t.\"upid\" IN (3, 5)\n  AND NOT coalesce(t.\"upid\" = 7, 0)\n  AND NOT coalesce(t.\"upid\" = 9, 0)\n  \
                 AND t.\"module\" IN ('a.sys', 'b.sys')\n  \
                 AND (stack_has(t.\"stack_id\", 'a!b') OR stack_has(t.\"stack_id\", 'c!d'))"
            ),
            "{sql}"
        );
        assert!(unused.is_empty(), "{unused:?}");
        let (focus, exclude) = part.frames();
        assert_eq!((focus.len(), exclude.len()), (2, 0));
        let numbers = part.numbers(Kind::Process);
        assert_eq!([3, 5, 7, 9, 11].map(|upid| numbers.has(Some(upid))), [true, true, false, false, false]);
    }

    #[test]
    fn a_value_of_another_type_names_nobody() {
        let part = part(serde_json::json!({ "filters": [{ "kind": "process", "value": "3" }] }));
        let (sql, unused) = asked(&part, spec(&[("upid", Role::Process)]));
        assert!(!sql.contains("WHERE"), "{sql}");
        assert_eq!(unused, ["process"]);
    }
}
