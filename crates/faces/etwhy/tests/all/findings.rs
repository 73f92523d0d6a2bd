//! The findings that ship, by the tests that their files hold.

use crate::unfilled;
use etwhy_rules::builtin;
use etwhy_rules::check::{check, check_sql, is_flag};
use etwhy_table::TableSpec;
use etwhy_testkit::{Program, Str as _};

/// The program.
const ETWHY: Program = crate::ETWHY.wide("80");

fn specs() -> Vec<&'static TableSpec> {
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|a| a.tables.iter().copied());
    let derived = etwhy_analysis::derived::ALL.iter().flat_map(|d| d.tables.iter().copied());
    let logs = etwhy_evtx::tables::ALL
        .iter()
        .chain(etwhy_counters::tables::ALL)
        .chain(etwhy_audit::table::ALL)
        .copied();
    traced.chain(derived).chain(logs).collect()
}

#[test]
fn every_finding_passes_its_own_tests() {
    let specs = specs();
    let rules = builtin().unwrap();
    assert!(!rules.is_empty());
    let faults: Vec<String> = rules.iter().filter_map(|rule| check(rule, &specs).err()).flatten().collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn names_that_nothing_fills_are_refused() {
    let text = include_str!("../../../../../xtask/src/skeletons/finding.txt").replace("@name@", "my.own");
    let parse = |text: &str| etwhy_rules::Rule::parse("mine.toml", text);
    let manual = text.replacen("# What fools it", "{least_nothing}\n# What fools it", 1);
    let error = parse(&manual).unwrap_err().to_string();
    assert!(error.contains("mine.toml") && error.contains("least_nothing"), "{error}");
    let rule = parse(&text).unwrap();
    for part in ["headline", "explanation", "fix", "disproof"] {
        let mut wrong = rule.clone();
        let text = " {nobody}";
        match part {
            "headline" => wrong.headline.push_str(text),
            "explanation" => wrong.explanation.push_str(text),
            "fix" => wrong.fix = etwhy_rules::Advice::Text(text.to_owned()),
            _ => wrong.disproof.push_str(text),
        }
        let faults = check(&wrong, &specs()).unwrap_err().join("\n");
        assert!(faults.contains("`nobody`"), "{part}: {faults}");
    }
}

#[test]
fn every_recording_that_a_finding_names_exists() {
    for rule in builtin().unwrap() {
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
    let engine = etwhy_sql::Engine::new(&db).unwrap();
    for view in etwhy_sql::views::all() {
        let table = engine.query(view.name, &format!("SELECT * FROM {}", view.name)).unwrap();
        let had: Vec<&str> = table.spec().columns.iter().map(|c| c.name.as_ref()).collect();
        let documented: Vec<&str> = view.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(had, documented, "{}", view.name);
        assert!(view.columns.iter().all(|(_, meaning)| meaning.len() > 3), "{}", view.name);
    }
}

#[test]
fn findings_and_views_are_written_in_the_sql_that_databases_share() {
    let specs = specs();
    let mut faults: Vec<String> =
        builtin().unwrap().iter().flat_map(|rule| check_sql(rule, &specs)).collect();
    for view in etwhy_sql::views::all() {
        let found = etwhy_sql::subset::faults(view.sql, &|name| is_flag(&specs, name));
        faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", view.name)));
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn the_skeleton_of_a_finding_works() {
    let text = include_str!("../../../../../xtask/src/skeletons/finding.txt").replace("@name@", "my.own");
    let rule = etwhy_rules::Rule::parse("skeleton", &text).unwrap();
    assert_eq!(check(&rule, &specs()), Ok(()));
    assert_eq!(check_sql(&rule, &specs()), Vec::<String>::new());
}

#[test]
fn users_test_their_own_findings() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, out, err) = ETWHY.ran(&["rules", "test", "--rules", folder.path().str()]);
    assert!(exit == 2 && out.is_empty() && err.contains("no finding in this folder (*.toml)"), "{out}{err}");
    let text = include_str!("../../../../../xtask/src/skeletons/finding.txt").replace("@name@", "my.own");
    let good = folder.path().join("good.toml");
    std::fs::write(&good, &text).unwrap();
    let (exit, out, _) = ETWHY.ran(&["rules", "test", good.str()]);
    assert!(exit == 0 && out.contains("ok      my.own (3 tests)"), "{out}");
    // A wrong threshold fails the test, wrong SQL is named, an id of ours is taken.
    let bad = text.replace("my.own", "dpc.over-limit").replace("value = 10\n", "value = 50\n");
    std::fs::write(folder.path().join("bad.toml"), bad.replace("c.class = 'thread'", "c.class == 'thread'"))
        .unwrap();
    let dir = folder.path().str();
    let (exit, out, _) = ETWHY.ran(&["rules", "test", "--rules", dir]);
    assert_eq!(exit, 1, "{out}");
    for part in ["ok      my.own", "FAILED  dpc.over-limit", "==: write =", "the answer should be found"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (exit, out, err) = ETWHY.ran(&["rules", "--rules", dir]);
    assert!(
        exit == 0 && out.contains("my.own") && err.contains("takes the place of the one that ships"),
        "{err}"
    );
}

#[test]
fn the_list_and_the_pages_fit_a_terminal() {
    let (_, list, _) = ETWHY.ran(&["rules"]);
    let (_, json, _) = ETWHY.ran(&["rules", "--json"]);
    let json: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(json.len(), builtin().unwrap().len());
    for rule in builtin().unwrap() {
        assert!(list.contains(&rule.id));
        let (exit, page, _) = ETWHY.ran(&["rules", "show", &rule.id]);
        assert!(
            exit == 0
                && page.contains("WHAT FOOLS IT")
                && (rule.thresholds.is_empty() || page.contains("THRESHOLDS")),
            "{page}"
        );
        let prose = page.lines().filter(|line| !line.starts_with("    "));
        for line in prose.clone() {
            assert_eq!(unfilled::unfilled(line), None, "{}: {line}", rule.id);
        }
        assert!(prose.clone().all(|line| line.chars().count() <= 80), "{page}");
    }
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let (exit, _, err) = ETWHY.ran(&["rules", "show", "dpc.over-limits"]);
    assert!(exit == 2 && err.contains("there is no finding"), "{err}");
}
