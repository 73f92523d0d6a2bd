//! The contract: which tables a store has, and what their columns are. One text for all batches, in place of a copy in each file.

use crate::tables::{FINDING, FINDING_HIT, INPUT, RECORDING, RUN};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use etwhy_table::{ColumnSpec, ColumnType, Role, TableSpec, Unit};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// Version of the contract: raised when a column changes its meaning or goes. New columns and tables keep it.
pub const VERSION: u32 = 1;

/// What the contract is called in its file.
pub const FORMAT: &str = "etwhy fleet store";

/// A table of the store.
#[derive(Debug)]
pub struct StoreTable {
    /// Its declaration in the store: the ids lead.
    pub spec: TableSpec,
    /// Name of the table whose rows it takes.
    pub source: &'static str,
    /// For each column behind the ids, the column of the source.
    pub columns: Vec<String>,
    /// Its rows bring their ids.
    pub own_ids: bool,
}

/// The columns that lead each table.
const IDS: [(&str, &str); 3] = [
    (
        "trace_id",
        "Name of the content of the trace. Numbers such as `upid` mean something within one trace only.",
    ),
    ("machine_id", "The machine, over all of its boots where its name is recorded, or what the caller said."),
    ("extract_id", "Name of the reading: trace, program, contract, symbols and knowledge."),
];

/// Columns that are called otherwise in the store, because the ids have their names; without a name they are left out.
const RENAMED: [(&str, &str, Option<&str>); 3] = [
    ("trace_file", "trace_id", Some("file_id")),
    ("trace_file", "machine_id", Some("boot_id")),
    ("trace_file", "recording_id", None),
];

/// Tables of traces that the store has of every trace, by their names there and here.
const OF_TRACES: [(&str, &str); 15] = [
    ("trace_file", "trace"),
    ("machine", "machine"),
    ("bill", "bill"),
    ("module", "module"),
    ("process", "process"),
    ("driver_cost", "driver_cost"),
    ("module_cost", "module_cost"),
    ("interrupt_cost", "interrupt_cost"),
    ("interrupt_spread", "interrupt_spread"),
    ("minifilter_cost", "minifilter_cost"),
    ("hard_fault_cost", "hard_fault_cost"),
    ("disk_cost", "disk_cost"),
    ("growth", "growth"),
    ("logger", "logger"),
    ("ledger", "ledger"),
];

/// Name of a module's build over all traces, made when it is stored.
pub const MODULE_ID: &str = "module_id";

static TABLES: LazyLock<Vec<StoreTable>> = LazyLock::new(|| {
    let own = [&RUN, &INPUT].map(|spec| StoreTable {
        spec: spec.clone(),
        source: "",
        columns: Vec::new(),
        own_ids: true,
    });
    let made = [&RECORDING, &FINDING, &FINDING_HIT].map(|spec| stamped(&spec.name, spec));
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|analysis| analysis.tables.iter().copied());
    let derived = etwhy_analysis::derived::ALL.iter().flat_map(|derived| derived.tables.iter().copied());
    let all: Vec<&TableSpec> = traced.chain(derived).collect();
    let of_traces = OF_TRACES.iter().filter_map(|(name, source)| {
        let spec = all.iter().find(|spec| spec.name == *source)?;
        Some(StoreTable { source, ..stamped(name, spec) })
    });
    own.into_iter().chain(made).chain(of_traces).collect()
});

/// All tables of a store.
pub fn tables() -> &'static [StoreTable] {
    &TABLES
}

/// The table of a name.
pub fn table(name: &str) -> Option<&'static StoreTable> {
    tables().iter().find(|table| table.spec.name == name)
}

/// Tables of a trace that the store takes.
pub fn sources() -> impl Iterator<Item = &'static str> {
    OF_TRACES.iter().map(|(_, source)| *source)
}

fn stamped(name: &str, spec: &'static TableSpec) -> StoreTable {
    let text = |name: &str, doc: &str, nullable: bool| ColumnSpec {
        name: Cow::Owned(name.to_owned()),
        ty: ColumnType::Text,
        unit: Unit::None,
        role: Role::Id,
        doc: Cow::Owned(doc.to_owned()),
        nullable,
    };
    let mut columns: Vec<ColumnSpec> = IDS.iter().map(|(name, doc)| text(name, doc, false)).collect();
    let mut taken = Vec::new();
    for column in spec.columns.iter() {
        let renamed =
            RENAMED.iter().find(|(table, of, _)| *table == name && *of == column.name).map(|(.., to)| *to);
        let called = match renamed {
            Some(None) => continue,
            Some(Some(other)) => Cow::Borrowed(other),
            None => column.name.clone(),
        };
        taken.push(column.name.to_string());
        columns.push(ColumnSpec { name: called, ..column.clone() });
    }
    if name == "module" {
        columns.push(text(
            MODULE_ID,
            "Name of this build of the module in all traces: from its name, version, size and link time.",
            true,
        ));
    }
    let spec = TableSpec {
        name: Cow::Owned(name.to_owned()),
        columns: Cow::Owned(columns),
        sorted_by: None,
        ..spec.clone()
    };
    StoreTable { source: "", spec, columns: taken, own_ids: false }
}

/// The columns of a file: texts are plain, so that every reader knows them.
pub fn schema(spec: &TableSpec) -> SchemaRef {
    let ty = |ty: ColumnType| match ty {
        ColumnType::I64 => DataType::Int64,
        ColumnType::I32 => DataType::Int32,
        ColumnType::F64 => DataType::Float64,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Text | ColumnType::LongText => DataType::Utf8,
    };
    let fields: Vec<Field> =
        spec.columns.iter().map(|c| Field::new(c.name.as_ref(), ty(c.ty), c.nullable)).collect();
    Arc::new(Schema::new(fields))
}

/// The contract as it lies in a store.
pub fn text() -> String {
    let column = |c: &ColumnSpec| {
        json!({
            "name": c.name, "type": c.ty.name(), "unit": c.unit.name(), "role": c.role.name(),
            "nullable": c.nullable, "doc": c.doc,
        })
    };
    let table = |spec: &TableSpec| {
        json!({
            "name": spec.name, "version": spec.version, "title": spec.title, "doc": spec.manual(),
            "columns": spec.columns.iter().map(column).collect::<Vec<Value>>(),
        })
    };
    let mut all: Vec<Value> = tables().iter().map(|t| table(&t.spec)).collect();
    all.push(table(&crate::tables::KNOWLEDGE));
    let whole = json!({ "format": FORMAT, "version": VERSION, "tables": all });
    serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
}

/// Tables and columns of a contract that another one does not have.
pub fn missing(of: &Value, in_other: &Value) -> Vec<String> {
    let names = |contract: &Value| -> Vec<String> {
        let list =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let name = |value: &Value| value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let columns = |table: &Value| {
            let of = name(table);
            list(table, "columns").iter().map(|column| format!("{of}.{}", name(column))).collect::<Vec<_>>()
        };
        list(contract, "tables").iter().flat_map(columns).collect()
    };
    let known = names(in_other);
    names(of).into_iter().filter(|name| !known.contains(name)).collect()
}

/// What a later contract breaks of an earlier one: a table or column that is gone, has another type, or may be empty no longer. A type may
/// become wider.
pub fn broken(earlier: &Value, later: &Value) -> Vec<String> {
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let named =
        |items: &[Value], name: &Value| items.iter().find(|item| item.get("name") == Some(name)).cloned();
    let said = |value: &Value, key: &str| value.get(key).map_or_else(String::new, ToString::to_string);
    let mut wrong = Vec::new();
    let tables = list(later, "tables");
    for old in list(earlier, "tables") {
        let name = old.get("name").cloned().unwrap_or_default();
        let Some(new) = named(&tables, &name) else {
            wrong.push(format!("table {name} is gone"));
            continue;
        };
        let columns = list(&new, "columns");
        for column in list(&old, "columns") {
            let called = column.get("name").cloned().unwrap_or_default();
            let Some(now) = named(&columns, &called) else {
                wrong.push(format!("column {called} of {name} is gone"));
                continue;
            };
            let (was, is) = (said(&column, "type"), said(&now, "type"));
            let wider = was == "\"i32\"" && (is == "\"i64\"" || is == "\"f64\"");
            if was != is && !wider {
                wrong.push(format!("column {called} of {name} was {was} and is {is}"));
            }
        }
        let before = list(&old, "columns");
        for added in
            columns.iter().filter(|c| named(&before, c.get("name").unwrap_or(&Value::Null)).is_none())
        {
            if added.get("nullable") != Some(&Value::Bool(true)) {
                wrong.push(format!(
                    "column {} of {name} is new and may not be empty: rows of before have none",
                    said(added, "name")
                ));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_every_table_and_names_are_unique() {
        for table in tables() {
            let names: Vec<&str> = table.spec.columns.iter().map(|c| c.name.as_ref()).collect();
            assert_eq!(names[..3], ["trace_id", "machine_id", "extract_id"], "{}", table.spec.name);
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), names.len(), "{}", table.spec.name);
        }
        assert_eq!(tables().len(), 5 + OF_TRACES.len(), "a table of traces has another name now");
    }

    /// Columns are added or widened only; `BLESS=1` writes the contract after such a change.
    #[test]
    fn the_contract_only_grows() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("contract.json");
        let now = text();
        let before = std::fs::read_to_string(&path).unwrap_or_else(|_| now.clone());
        let (old, new) = (serde_json::from_str(&before).unwrap(), serde_json::from_str(&now).unwrap());
        assert_eq!(broken(&old, &new), Vec::<String>::new());
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), now, "BLESS=1 writes it");
    }

    #[test]
    fn what_breaks_is_named() {
        let of = |columns: Value| json!({ "tables": [{ "name": "t", "columns": columns }] });
        let old = of(json!([{ "name": "a", "type": "i32" }, { "name": "b", "type": "text" }]));
        let wider = of(json!([{ "name": "a", "type": "i64" }, { "name": "b", "type": "text" },
            { "name": "c", "type": "text", "nullable": true }]));
        assert_eq!(broken(&old, &wider), Vec::<String>::new());
        assert_eq!(broken(&wider, &old).len(), 2);
        assert_eq!(broken(&old, &of(json!([{ "name": "a", "type": "text" }]))).len(), 2);
        let strict = of(json!([{ "name": "a", "type": "i32" }, { "name": "b", "type": "text" },
            { "name": "c", "type": "text", "nullable": false }]));
        assert_eq!(broken(&old, &strict).len(), 1);
        assert_eq!(missing(&wider, &old), ["t.c"]);
        assert_eq!(missing(&old, &wider), Vec::<String>::new());
    }
}
