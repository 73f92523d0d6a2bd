//! What findings tell people to do: over all findings, all kinds of culprits and all versions of Windows, nobody is told to stop or remove
//! a part of Windows, or to use what that Windows does not have; and every command is known with its source.

use etwhy_knowledge::{commands_in, windows_of_build};
use etwhy_rules::check::database;
use etwhy_rules::{Class, Hit, Rule, builtin_with_tests, evaluate};
use etwhy_sql::Cell;
use etwhy_sql::Engine;
use etwhy_table::TableSpec;
use std::collections::BTreeSet;

const BUILDS: [i32; 6] = [7601, 9200, 9600, 14393, 19045, 22631];

/// Culprits by name and kind, and whose they are.
const CULPRITS: [(&str, &str, Class); 12] = [
    ("System", "process", Class::Windows),
    ("svchost.exe", "process", Class::Service),
    ("svchost.exe (EventLog)", "process", Class::Service),
    ("lsass.exe", "process", Class::Windows),
    ("explorer.exe", "process", Class::Windows),
    ("csrss.exe", "process", Class::Windows),
    ("MsMpEng.exe", "process", Class::Windows),
    ("ntoskrnl.exe", "driver", Class::Windows),
    ("WdFilter.sys", "driver", Class::Windows),
    ("filter.sys", "driver", Class::Driver),
    ("acronis_mms.exe", "process", Class::Product),
    ("mine.exe", "process", Class::Program),
];

/// Words that end something, and what they may be said of: nothing that Windows needs.
const ENDING: [&str; 14] = [
    "stop",
    "stops",
    "stopping",
    "uninstall",
    "uninstalled",
    "disable",
    "remove",
    "kill",
    "unload",
    "terminate",
    "end",
    "close",
    "restart",
    "detach",
];
const ALLOWED: [&str; 21] = [
    // Of a recording, a scan, a policy, an adapter, a machine, a setting, a log.
    "stop sessions that nobody reads",
    "stop it right after the problem",
    "stop work that need not run",
    "logman stop",
    "restart the adapter",
    "restart the machine",
    "and restart it (",
    "remove the registry value",
    "remove calls of gc",
    "detach debuggers and profilers",
    "close what is no longer needed",
    "appverif -logtofile disable",
    "appverif -disable",
    "gflags /p /disable",
    "and restart,",
    "with a stop code",
    "before the stop",
    "remove it from there",
    "and a restart turn it off",
    "before the machine stops",
    "end or restart it unless it is part of windows",
];

fn specs() -> Vec<&'static TableSpec> {
    let traced = etwhy_trace::catalog::ALL.iter().flat_map(|a| a.tables.iter().copied());
    let derived = etwhy_analysis::derived::ALL.iter().flat_map(|d| d.tables.iter().copied());
    let logs =
        etwhy_evtx::tables::ALL.iter().chain(etwhy_counters::tables::ALL).chain(etwhy_audit::table::ALL);
    traced.chain(derived).chain(logs.copied()).collect()
}

/// The rows that a finding's tests find.
fn hits(rule: &Rule, specs: &[&TableSpec]) -> Vec<Hit> {
    let found = rule.tests.iter().filter(|test| test.expect == "found");
    found
        .flat_map(|test| {
            let db = database(rule, test, specs).unwrap();
            evaluate(&Engine::new(&db).unwrap(), rule).hits
        })
        .collect()
}

fn windows(class: Option<Class>) -> bool {
    matches!(class, Some(Class::Windows | Class::Service))
}

/// The advice of a row, as if this were the culprit.
fn advice(rule: &Rule, hit: &Hit, name: &str, kind: &str, build: Option<i32>) -> String {
    let value = |column: &str| match column {
        "culprit" => Some(Cell::Text(name.to_owned())),
        // A driver that a row names besides is part of Windows too.
        "driver" | "inside" if windows(Class::for_culprit(name, kind, "")) => {
            Some(Cell::Text(if kind == "driver" { name } else { "WdFilter.sys" }.to_owned()))
        }
        _ => hit
            .values
            .get(column)
            .cloned()
            .or_else(|| rule.thresholds.get(column).map(|t| Cell::F64(t.value))),
    };
    let class = |column: &str| {
        let cell = value(column)?;
        Class::for_culprit(cell.text()?, if column == "culprit" { kind } else { "" }, "")
    };
    let chosen = hit.values.get("fix").and_then(Cell::text);
    rule.fix.render(chosen, &value, &class, build)
}

/// Parts of a text that end something which is not among what may be ended.
fn endings(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let sentences = text.split_inclusive(['.', ';', ':', '(', ')', ',']).map(str::to_owned);
    let ends = |clause: &String| {
        let left = ALLOWED.iter().fold(clause.clone(), |left, allowed| left.replace(allowed, ""));
        left.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| ENDING.contains(&word))
    };
    sentences.filter(ends).collect()
}

#[test]
fn culprits_have_their_class() {
    for (name, kind, class) in CULPRITS {
        assert_eq!(Class::for_culprit(name, kind, ""), Some(class), "{name}");
    }
}

#[test]
fn no_advice_harms_windows_or_names_what_it_lacks() {
    let specs = specs();
    let mut faults = BTreeSet::new();
    for rule in builtin_with_tests().unwrap() {
        let hits = hits(&rule, &specs);
        assert!(!hits.is_empty(), "{}: no test finds it", rule.id);
        for hit in &hits {
            let own = (hit.culprit.as_str(), hit.culprit_kind.as_str(), None);
            let others = CULPRITS.iter().map(|(name, kind, class)| (*name, *kind, Some(*class)));
            for (name, kind, class) in others.chain([own]) {
                for build in BUILDS {
                    let text = advice(&rule, hit, name, kind, Some(build));
                    let missing: Vec<&str> =
                        commands_in(&text).filter(|c| c.since_build > build).map(|c| c.name).collect();
                    if !missing.is_empty() {
                        faults.insert(format!("{}: {} has no {missing:?}", rule.id, windows_of_build(build)));
                    }
                    // No process is found where drivers are, and the other way round.
                    if text.len() < 20 && kind == hit.culprit_kind {
                        faults.insert(format!("{}: {name}, build {build}: nothing to do", rule.id));
                    }
                    if windows(class) && !hit.culprit_kind.starts_with("audit") {
                        let told = endings(&text);
                        faults.extend(told.iter().map(|told| format!("{}: of {name}: {told}", rule.id)));
                    }
                }
                let text = advice(&rule, hit, name, kind, None);
                for command in commands_in(&text).filter(|c| c.since_build > etwhy_knowledge::FIRST_BUILD) {
                    let note = format!("`{}` needs {}", command.name, windows_of_build(command.since_build));
                    assert!(text.contains(&note), "{}: {text}", rule.id);
                }
                let plain = text.replace("{{", "");
                let left = etwhy_rules::text::names(&plain);
                let left =
                    left.iter().filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
                faults.extend(left.map(|name| format!("{}: {{{name}}} is not filled in", rule.id)));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_command_is_known_with_its_source() {
    let specs = specs();
    let rules = builtin_with_tests().unwrap();
    let mut faults = BTreeSet::new();
    for rule in &rules {
        let mut texts: Vec<String> = rule.fix.steps().into_iter().map(|step| step.text).collect();
        texts.extend(
            hits(rule, &specs).iter().filter_map(|hit| hit.values.get("fix")?.text().map(str::to_owned)),
        );
        for text in &texts {
            assert_eq!(text.matches('`').count() % 2, 0, "{}: {text}", rule.id);
            for code in text.split('`').skip(1).step_by(2) {
                let table =
                    |name: &str| specs.iter().any(|spec| spec.name == name || spec.column(name).is_some());
                let known = code.starts_with("etwhy ")
                    || commands_in(code).next().is_some()
                    || rules.iter().any(|rule| rule.id == code)
                    || etwhy_record::profiles().iter().any(|profile| profile.name == code)
                    || table(code);
                if !known {
                    faults.insert(format!(
                        "{}: `{code}` is not in crates/model/knowledge/data/commands.tsv",
                        rule.id
                    ));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.into_iter().collect::<Vec<_>>().join("\n"));
}
