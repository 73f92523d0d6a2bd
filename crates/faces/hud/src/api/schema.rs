//! Tables, views, functions and metrics, and what this trace lacks.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use etwhy_analysis::stacks::METRICS;
use etwhy_sql::{functions, scalars, views};
use etwhy_table::{Table, TableSpec};
use serde_json::json;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "schema",
    about: "of a trace: tables (columns with type, unit, role, meaning; rows; why empty), views, functions, metrics",
    work: Work::Known,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let trace = call.trace()?;
    let host = &call.hud.host;
    let table = |spec: &TableSpec| {
        let found = trace.db.get(&spec.name);
        let columns = spec.columns.iter().map(|c| {
            json!({ "name": c.name, "type": c.ty.name(), "unit": c.unit.name(), "role": c.role.name(), "doc": c.doc })
        });
        let rows = found.map_or(0, Table::rows);
        let empty = if rows == 0 { host.why_empty(&trace.db, &spec.name) } else { None };
        json!({
            "name": spec.name,
            "title": spec.title,
            "doc": spec.manual(),
            "sorted_by": spec.sorted_by,
            "rows": rows,
            "why_empty": empty,
            "recording": (rows == 0).then(|| host.recording_for(&spec.name)),
            "columns": columns.collect::<Vec<_>>(),
        })
    };
    let metrics = METRICS.iter().map(|metric| {
        let rows = trace.db.get(metric.table()).map_or(0, Table::rows);
        json!({
            "name": metric.name, "about": metric.about, "manual": metric.manual, "unit": metric.unit.name(),
            "table": metric.table(), "there": rows > 0,
        })
    });
    let functions = functions::ALL.iter().map(|function| {
        let args: Vec<&str> = function.args.iter().map(|arg| arg.name).collect();
        json!({ "name": function.name, "args": args, "about": function.about })
    });
    let scalars = scalars::ALL.iter().map(|scalar| json!({ "usage": scalar.usage, "about": scalar.about }));
    let views = views::all().map(|view| {
        json!({ "name": view.name, "title": view.title, "doc": view.manual, "columns": view.columns, "sql": view.sql })
    });
    Reply::json(&json!({
        "tables": host.specs().iter().map(|spec| table(spec)).collect::<Vec<_>>(),
        "views": views.collect::<Vec<_>>(),
        "functions": functions.collect::<Vec<_>>(),
        "scalars": scalars.collect::<Vec<_>>(),
        "metrics": metrics.collect::<Vec<_>>(),
    }))
}
