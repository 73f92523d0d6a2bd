//! What docs/wpa.md and the recording profiles name, against the catalogue of tables.

use etwhy_table::TableSpec;
use etwhy_testkit::Are as _;
use std::collections::BTreeSet;
use std::path::Path;

/// Tables that are named before they exist. One that has come is checked, whether it is named here or not.
const NOT_YET: &[&str] = &[];

/// Tables that no recording profile fills: heap tracing is switched on by process, before it starts.
const NO_PROFILE: &[&str] = &["heap"];

/// What may stand behind a dot without being a column.
const FILE_ENDINGS: &[&str] = &["etl", "md", "wprp", "parquet"];

/// Tables that are made from others need no recording of their own.
fn derived() -> impl Iterator<Item = &'static TableSpec> {
    etwhy_analysis::derived::ALL.iter().flat_map(|derived| derived.tables.iter().copied())
}

fn catalogue() -> Vec<&'static TableSpec> {
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|analysis| analysis.tables.iter().copied());
    traced.chain(derived()).collect()
}

fn table(name: &str) -> Option<&'static TableSpec> {
    catalogue().into_iter().find(|spec| spec.name == name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// What stands between backticks, outside of fenced blocks, with its line.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(n, line)| line.split('`').skip(1).step_by(2).map(move |quoted| (n + 1, quoted)))
        .collect()
}

/// What is wrong with the names of a page.
fn faults(page: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (line, name) in quoted(page) {
        // `etwhy dump TABLE` names a table too.
        if let Some(name) = name.strip_prefix("etwhy dump ").and_then(|rest| rest.split(' ').next())
            && table(name).is_none()
            && !NOT_YET.contains(&name)
        {
            faults.push(format!("line {line}: no table {name}"));
        }
        let Some((table_name, column)) = name.split_once('.').filter(|(t, c)| is_name(t) && is_name(c))
        else {
            continue;
        };
        if FILE_ENDINGS.contains(&column) {
            continue;
        }
        match table(table_name) {
            None if NOT_YET.contains(&table_name) => {}
            None => faults.push(format!("line {line}: no table {table_name}")),
            Some(spec) if spec.columns.iter().all(|c| c.name != column) => {
                faults.push(format!("line {line}: {table_name} has no column {column}"));
            }
            Some(_) => {}
        }
    }
    for (n, line) in
        page.lines().enumerate().filter(|(_, line)| line.starts_with("## ") && line.contains(": `"))
    {
        for name in line.split('`').skip(1).step_by(2) {
            if table(name).is_none() && !NOT_YET.contains(&name) {
                faults.push(format!("line {}: no table {name}", n + 1));
            }
        }
    }
    faults
}

#[test]
fn the_page_names_tables_and_columns_that_exist() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/wpa.md");
    let page = std::fs::read_to_string(path).unwrap();
    assert!(quoted(&page).len() > 200);
    assert_eq!(faults(&page), Vec::<String>::new());
}

#[test]
fn the_check_sees_wrong_names() {
    let page = "## X: `sample`, `samples`\n`sample.weight_ns` `sample.weight` `smaple.ip` `trace.etl` `etwhy dump foo x.etl`";
    faults(page).are(&[
        "line 2: sample has no column weight",
        "line 2: no table smaple",
        "line 2: no table foo",
        "line 1: no table samples",
    ]);
}

#[test]
fn every_table_has_a_recording_and_every_recording_its_tables() {
    for spec in catalogue() {
        let profile = etwhy_record::profile_of_table(&spec.name);
        assert!(
            profile.is_some()
                || NO_PROFILE.contains(&spec.name.as_ref())
                || derived().any(|d| d.name == spec.name),
            "table {}: name it in `tables` of a file of crates/sources/record/profiles",
            spec.name
        );
    }
    let named: BTreeSet<&str> =
        etwhy_record::profiles().iter().flat_map(|p| p.tables.iter().map(String::as_str)).collect();
    for name in named {
        assert!(table(name).is_some() || NOT_YET.contains(&name), "no table {name}");
    }
}
