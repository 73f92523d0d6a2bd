//! The findings that ship, by the tests that their files hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use etwhy_query::findings::{builtin, check::check};
use etwhy_table::TableSpec;

fn specs() -> Vec<&'static TableSpec> {
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|a| a.tables.iter().copied());
    traced.chain(etwhy_query::derived::ALL.iter().flat_map(|d| d.tables.iter().copied())).collect()
}

#[test]
fn every_finding_passes_its_own_tests() {
    let specs = specs();
    let rules = builtin();
    assert!(!rules.is_empty());
    let faults: Vec<String> = rules.iter().filter_map(|rule| check(rule, &specs).err()).flatten().collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_recording_that_a_finding_names_exists() {
    for rule in builtin() {
        for need in &rule.needs {
            let known = etwhy_record::profiles().iter().any(|p| p.name == need.record);
            assert!(known, "{}: no recording profile {}", rule.id, need.record);
        }
    }
}

#[test]
fn every_view_can_be_asked() {
    let mut db = etwhy_table::Database::new();
    for spec in specs() {
        let empty = etwhy_table::AdHocBuilder::new(spec.clone(), &Default::default()).finish().unwrap();
        db.insert(empty);
    }
    let engine = etwhy_query::sql::Engine::new(&db).unwrap();
    for view in etwhy_query::sql::views::all() {
        let table = engine.query(view.name, &format!("SELECT * FROM {}", view.name)).unwrap();
        let had: Vec<&str> = table.spec().columns.iter().map(|c| c.name.as_ref()).collect();
        let documented: Vec<&str> = view.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(had, documented, "{}", view.name);
        assert!(view.columns.iter().all(|(_, meaning)| meaning.len() > 3), "{}", view.name);
    }
}
