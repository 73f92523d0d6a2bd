//! Tables, views, functions and metrics, and what this trace lacks.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use etwhy_analysis::stacks::METRICS;
use etwhy_rules::CostOf;
use etwhy_sql::{functions, scalars, views};
use etwhy_table::TableSpec;
use serde::Serialize;
use std::collections::BTreeMap;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "schema",
    about: "of a trace: tables (columns with type, unit, role, meaning; rows; why empty), views, functions, metrics",
    work: Work::Known,
    answer,
};

#[derive(Serialize, TS)]
pub(crate) struct Schema {
    tables: Vec<TableInfo>,
    views: Vec<ViewInfo>,
    functions: Vec<FunctionInfo>,
    scalars: Vec<ScalarInfo>,
    metrics: Vec<MetricInfo>,
    /// What the costs of findings are times of, by id: samples, or elapsed (waits, which are of no processor).
    #[ts(type = "Record<string, \"samples\" | \"elapsed\">")]
    costs: BTreeMap<String, CostOf>,
}

#[derive(Serialize, TS)]
struct TableInfo {
    name: &'static str,
    title: &'static str,
    doc: String,
    sorted_by: Option<&'static str>,
    rows: usize,
    why_empty: Option<String>,
    /// The command that records it, if it is empty.
    recording: Option<String>,
    columns: Vec<ColumnInfo>,
}

#[derive(Serialize, TS)]
struct ColumnInfo {
    name: &'static str,
    r#type: &'static str,
    unit: &'static str,
    role: &'static str,
    doc: &'static str,
}

#[derive(Serialize, TS)]
struct ViewInfo {
    name: &'static str,
    title: String,
    doc: String,
    columns: Vec<(String, String)>,
    sql: &'static str,
}

#[derive(Serialize, TS)]
struct FunctionInfo {
    name: &'static str,
    args: Vec<&'static str>,
    about: &'static str,
}

#[derive(Serialize, TS)]
struct ScalarInfo {
    usage: &'static str,
    about: &'static str,
}

#[derive(Serialize, TS)]
struct MetricInfo {
    name: &'static str,
    about: &'static str,
    manual: &'static str,
    unit: &'static str,
    table: &'static str,
    /// Its table has rows.
    there: bool,
}

fn costs() -> BTreeMap<String, CostOf> {
    let rules = etwhy_rules::builtin().unwrap_or_default();
    rules.into_iter().filter_map(|rule| Some((rule.id, rule.cost_of?))).collect()
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let trace = call.trace()?;
    let host = &call.hud.host;
    let rows_of = |table: &str| trace.rows_of(table);
    let table = |spec: &'static TableSpec| {
        let columns = spec.columns.iter().map(|c| ColumnInfo {
            name: &c.name,
            r#type: c.ty.name(),
            unit: c.unit.name(),
            role: c.role.name(),
            doc: &c.doc,
        });
        let rows = rows_of(&spec.name);
        TableInfo {
            name: &spec.name,
            title: &spec.title,
            doc: spec.manual().to_string(),
            sorted_by: spec.sorted_by.as_deref(),
            rows,
            why_empty: if rows == 0 { host.why_empty(&trace.db, &spec.name) } else { None },
            recording: (rows == 0).then(|| host.recording_for(&spec.name)),
            columns: columns.collect(),
        }
    };
    let metrics = METRICS.iter().map(|metric| MetricInfo {
        name: metric.name,
        about: metric.about,
        manual: metric.manual,
        unit: metric.unit.name(),
        table: metric.table(),
        there: rows_of(metric.table()) > 0,
    });
    let functions = functions::ALL.iter().map(|function| FunctionInfo {
        name: function.name,
        args: function.args.iter().map(|arg| arg.name).collect(),
        about: function.about,
    });
    let scalars = scalars::ALL.iter().map(|scalar| ScalarInfo { usage: scalar.usage, about: scalar.about });
    let views = views::all().map(|view| ViewInfo {
        name: view.name,
        title: view.title,
        doc: view.manual,
        columns: view.columns,
        sql: view.sql,
    });
    Reply::json(&Schema {
        tables: host.specs().into_iter().map(table).collect(),
        views: views.collect(),
        functions: functions.collect(),
        scalars: scalars.collect(),
        metrics: metrics.collect(),
        costs: costs(),
    })
}
