//! All tables, whether made from events or from other tables.

use etwhy_table::TableSpec;

/// Every table of the contract.
pub fn specs() -> impl Iterator<Item = &'static TableSpec> {
    made_together().flat_map(|tables| tables.iter().copied())
}

/// Every table of the contract, with those that are made in the same place.
pub fn made_together() -> impl Iterator<Item = &'static [&'static TableSpec]> {
    let traced = etwhy_trace::catalog::ALL.iter().map(|analysis| analysis.tables);
    let derived = etwhy_query::derived::ALL.iter().map(|derived| derived.tables);
    traced.chain(derived)
}

/// True if the table is only made when it is asked for by name.
pub fn is_on_demand(name: &str) -> bool {
    let traced = etwhy_trace::catalog::ALL.iter().filter(|a| a.on_demand).flat_map(|a| a.tables.iter());
    let derived = etwhy_query::derived::ALL.iter().filter(|d| d.on_demand).flat_map(|d| d.tables.iter());
    traced.chain(derived).any(|table| table.name == name)
}
