//! `etwhy fleet` on real files: what it stores is what `why` says, and what ends it loses nothing.

use crate::{ETWHY, Json as _, Str as _};
use etwhy_fleet::tables::RunRow;
use etwhy_fleet::{Fleet, Store};
use etwhy_table::{Database, Table};
use etwhy_testkit::{corpus, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// A small written trace of a machine.
fn written(story: &str, computer: &str, scale: f64, trace: &Path) {
    let text = std::fs::read_to_string(root().join(format!("scenarios/{story}.toml"))).unwrap();
    let (before, machine) = text.split_once("[machine]\n").unwrap();
    let named = |line: &&str| !line.starts_with("name = ");
    let (own, rest) = machine.split_once("\n[").unwrap();
    let own: Vec<&str> = own.lines().filter(named).collect();
    let text = format!("{before}[machine]\nname = \"{computer}\"\n{}\n[{rest}", own.join("\n"));
    let mut scenario = etwhy_synth::Scenario::parse(&text, story).unwrap();
    scenario.scale(scale).unwrap();
    etwhy_synth::write(&scenario, trace, &mut |_| {}).unwrap();
}

fn run(inbox: &str, store: &str, more: &[&str]) -> Value {
    ETWHY.partly().json(&[&["fleet", "run", inbox, "-o", store, "--quiet", "--json"], more].concat())
}

fn opened(store: &str) -> Fleet {
    Fleet::new(Store::open(Path::new(store)).unwrap()).unwrap()
}

/// Rows of a table as JSON, as `etwhy sql` would print them.
fn rows(table: &Table) -> Vec<BTreeMap<String, String>> {
    let columns = || table.spec().columns.iter().enumerate();
    let row = |row: u32| columns().map(|(at, c)| (c.name.to_string(), cell(table.cell(row, at)))).collect();
    (0..table.rows() as u32).map(row).collect()
}

/// JSON is read to the last digit but one.
fn cell(value: etwhy_table::Value<'_>) -> String {
    match value {
        etwhy_table::Value::F64(n) => float(n),
        other => format!("{other:?}"),
    }
}

fn float(n: f64) -> String {
    format!("F64({n:.11e})")
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "Null".to_owned(),
        Value::String(text) => format!("Text({text:?})"),
        Value::Bool(flag) => format!("Bool({flag})"),
        Value::Number(n) if n.is_i64() => format!("I64({n})"),
        other => float(other.as_f64().unwrap()),
    }
}

/// Findings with their culprits, and lines of the bill, as `why` says them of the same files.
fn why_agrees(fleet: &Fleet) -> (usize, usize) {
    let files = fleet.select("files", "SELECT trace_id, file FROM trace_file").unwrap();
    let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows(&files) {
        let plain = |name: &str| row[name].trim_start_matches("Text(\"").trim_end_matches("\")").to_owned();
        of.entry(plain("trace_id")).or_default().push(plain("file"));
    }
    let all = |sql: &str| rows(&fleet.select("rows", sql).unwrap());
    let findings = all("SELECT trace_id, finding_id, answer, severity, caveats, hits FROM finding");
    let hits = all(
        "SELECT trace_id, finding_id, culprit, culprit_kind, severity, headline, cost_ns, share, confidence FROM finding_hit",
    );
    let bill = all(
        "SELECT trace_id, kind, part, culprit, vendor, category, total_cpu_ns, share_percent, imposed_wait_ns, energy_j, confidence, why FROM bill",
    );
    let (mut traces, mut compared) = (0, 0);
    for (trace, files) in of {
        if !files.iter().all(|file| Path::new(file).exists()) {
            continue;
        }
        let line: Vec<&str> = ["why", "--json", "--quiet", "--merge"]
            .into_iter()
            .chain(files.iter().map(String::as_str))
            .collect();
        let why: Value = ETWHY.partly().json(&line);
        let own = format!("Text({trace:?})");
        let mine = |rows: &[BTreeMap<String, String>]| -> BTreeSet<String> {
            rows.iter()
                .filter(|row| row["trace_id"] == own)
                .map(|row| {
                    row.iter()
                        .filter(|(name, _)| *name != "trace_id")
                        .map(|(name, value)| format!("{name}={value} "))
                        .collect()
                })
                .collect()
        };
        let pick = |value: &Value, names: &[&str]| -> BTreeMap<String, String> {
            names.iter().map(|name| ((*name).to_owned(), text(&value[*name]))).collect()
        };
        let line =
            |row: &BTreeMap<String, String>| row.iter().map(|(n, v)| format!("{n}={v} ")).collect::<String>();
        let (mut said, mut culprits) = (BTreeSet::new(), BTreeSet::new());
        for finding in why["findings"].list() {
            let mut row = pick(finding, &["answer", "severity"]);
            row.insert("finding_id".into(), text(&finding["id"]));
            let caveats: Vec<&str> = finding["caveats"].list().iter().map(|c| c.str()).collect();
            let caveats = if caveats.is_empty() { Value::Null } else { caveats.join("\n").into() };
            row.insert("caveats".into(), text(&caveats));
            row.insert("hits".into(), format!("I64({})", finding["hits"].list().len()));
            said.insert(line(&row));
            for hit in finding["hits"].list() {
                let names =
                    ["culprit", "culprit_kind", "severity", "headline", "cost_ns", "share", "confidence"];
                let mut row = pick(hit, &names);
                if let Some(share) = hit["share"].as_f64() {
                    row.insert("share".into(), float(share));
                }
                row.insert("finding_id".into(), text(&finding["id"]));
                culprits.insert(line(&row));
            }
        }
        assert_eq!(mine(&findings), said, "{files:?}");
        assert_eq!(mine(&hits), culprits, "{files:?}");
        let bill = mine(&bill);
        for item in why["bill"].list() {
            let names = [
                "kind",
                "part",
                "culprit",
                "vendor",
                "category",
                "total_cpu_ns",
                "imposed_wait_ns",
                "confidence",
                "why",
            ];
            let mut row = pick(item, &names);
            for name in ["share_percent", "energy_j"] {
                row.insert(name.into(), item[name].as_f64().map_or("Null".into(), float));
            }
            assert!(bill.contains(&line(&row)), "{files:?}: {}", line(&row));
            compared += 1;
        }
        compared += said.len() + culprits.len();
        traces += 1;
    }
    (traces, compared)
}

#[test]
fn the_store_says_what_why_says() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    std::fs::create_dir_all(&inbox).unwrap();
    for (n, story) in ["dpc_flood", "event_log", "syscall_hook", "antivirus_opens"].into_iter().enumerate() {
        written(story, &format!("PC-{n}"), 0.01, &inbox.join(format!("{story}.etl")));
    }
    let store = folder.path().join("store").str().to_owned();
    let mut line = vec!["fleet".to_owned(), "run".to_owned(), inbox.str().to_owned()];
    line.extend(corpus().map(|corpus| corpus.join("etl").str().to_owned()));
    line.extend(["-o", &store, "--quiet", "--json"].map(str::to_owned));
    let said: Value = ETWHY.partly().json(&line.iter().map(String::as_str).collect::<Vec<_>>());
    let fleet = opened(&store);
    let (traces, compared) = why_agrees(&fleet);
    println!("{traces} traces, {compared} findings, culprits and lines of bills agree; {said}");
    assert!(traces >= 4 && compared > 400);
}

/// Small traces of two machines, copies with other bytes in them, and files that are none.
fn mixed(inbox: &Path, copies: usize) -> usize {
    std::fs::create_dir_all(inbox.join("pc1")).unwrap();
    std::fs::create_dir_all(inbox.join("pc2")).unwrap();
    let [a, b] = ["pc1/a.etl", "pc2/b.etl"].map(|name| inbox.join(name));
    written("dpc_flood", "PC-1", 0.002, &a);
    written("openmp_spin", "PC-2", 0.002, &b);
    let bytes = std::fs::read(&a).unwrap();
    for n in 0..copies {
        let mut other = bytes.clone();
        let at = (n * 7_919 + 5_000) % (other.len() - 1);
        other[at] ^= 0x55;
        std::fs::write(inbox.join(format!("pc1/altered{n}.etl")), other).unwrap();
    }
    std::fs::write(inbox.join("pc1/half.etl"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(inbox.join("pc1/text.etl"), "this is no trace at all\n").unwrap();
    std::fs::write(inbox.join("pc1/empty.etl"), "").unwrap();
    std::fs::write(inbox.join("pc2/same.etl"), &bytes).unwrap();
    copies + 6
}

fn ledger(store: &str) -> Vec<(String, String, String)> {
    let mut database = Database::new();
    Store::open(Path::new(store)).unwrap().all::<RunRow>(&mut database).unwrap();
    let runs = database.read::<RunRow>().unwrap();
    runs.iter().map(|r| (r.path().to_owned(), r.extract_id().to_owned(), r.outcome().to_owned())).collect()
}

#[test]
fn killed_at_any_moment_nothing_is_lost_or_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    let files = mixed(&inbox, 10);
    let store = folder.path().join("store").str().to_owned();
    let line = ["fleet", "run", inbox.str(), "-o", &store, "--quiet", "--json", "--batch", "2"];
    for ms in [1, 300, 700, 1_500, 3_000] {
        let mut child = ETWHY.command(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(ms));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let _: Value = ETWHY.partly().json(&line);
    let rows = ledger(&store);
    let paths: BTreeSet<&str> = rows.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!((rows.len(), paths.len()), (files, files), "{rows:#?}");
    let read: Vec<&str> = rows
        .iter()
        .filter(|row| matches!(row.2.as_str(), "read" | "in_part"))
        .map(|row| row.1.as_str())
        .collect();
    assert_eq!(read.iter().collect::<BTreeSet<_>>().len(), read.len(), "no reading twice");
    let fleet = opened(&store);
    assert_eq!(fleet.traces(), read.len());
    // Equal to a run that nobody killed.
    let other = folder.path().join("other").str().to_owned();
    run(inbox.str(), &other, &[]);
    let answers =
        "SELECT trace_id, finding_id, answer, severity, hits FROM finding ORDER BY trace_id, finding_id";
    assert_eq!(rows_of(&fleet, answers), rows_of(&opened(&other), answers));
    // And now there is nothing to do.
    let again = run(inbox.str(), &store, &[]);
    assert_eq!(again["known"], files);
    assert_eq!(again["outcomes"], serde_json::json!({}));
    let leftovers: Vec<PathBuf> = std::fs::read_dir(&store).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(leftovers.len(), 5, "batches, contract, knowledge, lock, views: {leftovers:?}");
}

fn rows_of(fleet: &Fleet, sql: &str) -> Vec<BTreeMap<String, String>> {
    rows(&fleet.select("rows", sql).unwrap())
}

#[test]
fn files_of_one_recording_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    std::fs::create_dir_all(&inbox).unwrap();
    let text = "[machine]\nname = \"PC-9\"\nduration = \"2s\"\n[[process]]\nname = \"a.exe\"\n";
    let write = |name: &str, more: &str| {
        let scenario =
            etwhy_synth::Scenario::parse(&text.replace("[[process]]", &format!("{more}\n[[process]]")), name)
                .unwrap();
        etwhy_synth::write(&scenario, &inbox.join(name), &mut |_| {}).unwrap();
    };
    // PerfView's names of parts; only the first has kernel events.
    write("x.etl", "");
    let store = folder.path().join("store").str().to_owned();
    run(inbox.str(), &store, &[]);
    assert_eq!(opened(&store).traces(), 1);
    // The same file under another name is no other trace, and a list names files as well as a folder does.
    std::fs::copy(inbox.join("x.etl"), inbox.join("y.etl")).unwrap();
    let said = run(inbox.str(), &store, &[]);
    assert_eq!(said["outcomes"], serde_json::json!({ "copy": 1 }));
    assert_eq!(opened(&store).traces(), 1);
    // Nor is a copy that was cut, wherever it ends.
    let bytes = std::fs::read(inbox.join("x.etl")).unwrap();
    for (n, length) in [bytes.len() - 1, bytes.len() * 3 / 4].into_iter().enumerate() {
        std::fs::write(inbox.join(format!("cut{n}.etl")), &bytes[..length]).unwrap();
    }
    let said = run(inbox.str(), &store, &[]);
    assert_eq!((&said["outcomes"], &said["known"]), (&serde_json::json!({ "copy": 2 }), &2.into()), "{said}");
    assert_eq!(opened(&store).traces(), 1);
    assert_eq!(run(inbox.str(), &store, &[])["known"], 4);
    // In an empty store, too; and the folder of a store is not made where nobody wanted it.
    let other = folder.path().join("other").str().to_owned();
    assert_eq!(run(inbox.str(), &other, &[])["outcomes"], serde_json::json!({ "copy": 3, "read": 1 }));
    let mistyped = folder.path().join("mistyped");
    let refused = ETWHY.output(&["fleet", "run", inbox.str(), "-o", mistyped.join("store").str()]);
    let said = etwhy_testkit::text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("mistyped: there is no such folder") && !mistyped.exists(), "{said}");
    let said = run(inbox.str(), &store, &["--machine", "rack 7"]);
    assert_eq!(said["outcomes"]["read"], 1, "{said}");
    let fleet = opened(&store);
    let machines = rows_of(&fleet, "SELECT machine_id, machine_basis, computer FROM recording");
    assert_eq!(machines.len(), 1, "the later reading counts");
    assert_eq!(
        (machines[0]["machine_id"].as_str(), machines[0]["machine_basis"].as_str()),
        ("Text(\"rack 7\")", "Text(\"given\")")
    );
}

/// Every question, in every form, on a store of a few traces.
#[test]
fn questions_are_answered_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    mixed(&inbox, 1);
    let store = folder.path().join("store").str().to_owned();
    run(inbox.str(), &store, &[]);
    let questions: [&[&str]; 9] = [
        &["rank", "drivers"],
        &["rank", "processes"],
        &["rank", "findings"],
        &["coverage"],
        &["regressions"],
        &["outliers"],
        &["trend"],
        &["show", "pc-1"],
        &["show", "b.etl"],
    ];
    for question in questions {
        let line: Vec<&str> = [&["fleet"], question, &[store.as_str()]].concat();
        for width in ["80", "200"] {
            let said = ETWHY.wide(width).run(&line);
            assert!(said.lines().count() > 1, "{question:?}: {said}");
            let wide: Vec<&str> =
                said.lines().filter(|l| l.chars().count() > width.parse().unwrap()).collect();
            assert!(wide.is_empty(), "{question:?}: {wide:?}");
        }
        let json: Value = ETWHY.json(&[&line[..], &["--json"]].concat());
        assert!(json["rows"].is_array() && json["schema"].str().starts_with("etwhy.fleet-"), "{question:?}");
        assert!(ETWHY.run(&[&line[..], &["--md"]].concat()).contains('#'));
        let page = folder.path().join("page.html");
        ETWHY.run(&[&line[..], &["--html", page.str()]].concat());
        assert!(std::fs::read_to_string(&page).unwrap().contains("<h2>"));
    }
    let rank: Value = ETWHY.json(&["fleet", "rank", "processes", &store, "--json"]);
    assert!(rank["rows"].list().iter().any(|row| row["machines_able"] == 2), "{rank}");
    let (code, _, errors) = ETWHY.ran(&["fleet", "show", "nobody", &store]);
    assert_eq!(code, 2, "{errors}");
    let (code, _, errors) = ETWHY.ran(&["fleet", "rank", "drivers", inbox.str()]);
    assert!(code == 2 && errors.contains("no store"), "{errors}");
}
