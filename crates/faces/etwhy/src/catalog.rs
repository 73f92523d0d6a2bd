//! All tables, whether made from events or from other tables.

use etwhy_analysis::derive::is_beside_traces;
use etwhy_sql::{SqlError, views};
use etwhy_table::{TableSpec, closest};

/// Every table of traces.
pub fn specs() -> impl Iterator<Item = &'static TableSpec> {
    all().filter(|spec| !is_beside_traces(&spec.name))
}

/// Every table of the contract: of traces, event logs, audit policy, counter logs and probes.
pub fn all() -> impl Iterator<Item = &'static TableSpec> {
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|analysis| analysis.tables.iter().copied());
    let derived = etwhy_analysis::derived::ALL.iter().flat_map(|derived| derived.tables.iter().copied());
    let logs = etwhy_evtx::tables::ALL.iter().copied();
    let counters = etwhy_counters::tables::ALL.iter().copied();
    let policies = etwhy_audit::table::ALL.iter().copied();
    let probes = etwhy_probe::tables::ALL.iter().copied();
    traced.chain(derived).chain(logs).chain(counters).chain(policies).chain(probes)
}

/// The name that was meant, perhaps, as the end of a message; nothing for a name that there is.
pub fn meant<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    if names.contains(&name) {
        return String::new();
    }
    // Of names that begin alike the shortest has the fewest letters more.
    names.sort_by_key(|name| name.len());
    closest(name, names.into_iter()).map(|like| format!("; did you mean `{like}`?")).unwrap_or_default()
}

/// That traces have no table of this name.
pub fn no_table(name: &str) -> anyhow::Error {
    let meant = meant(name, specs().map(|spec| spec.name.as_ref()));
    anyhow::anyhow!("there is no table `{name}`{meant}; `etwhy dump --list` names them")
}

/// What went wrong with a query; of a table that is missing also the one that was meant, perhaps.
pub fn explained(error: SqlError) -> anyhow::Error {
    let text = error.to_string();
    let Some(name) = text.strip_prefix("no such table: ") else { return error.into() };
    let names = all().map(|spec| spec.name.as_ref());
    let meant = meant(name, names.chain(views::all().map(|view| view.name)));
    anyhow::anyhow!("{text}{meant} (docs/reference/tables.md and docs/reference/views.md list what there is)")
}

/// True if the table is only made when it is asked for by name.
pub fn is_on_demand(name: &str) -> bool {
    let traced = etwhy_trace::catalog::ALL.iter().filter(|a| a.on_demand).flat_map(|a| a.tables.iter());
    let derived = etwhy_analysis::derived::ALL.iter().filter(|d| d.on_demand).flat_map(|d| d.tables.iter());
    traced.chain(derived).any(|table| table.name == name)
}
