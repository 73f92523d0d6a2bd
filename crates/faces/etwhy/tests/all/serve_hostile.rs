//! Damaged traces behind the page, and questions at the ends of what numbers can be: every answer is an answer or a reason, none is a
//! fault of the program's own, and the server goes on. Arithmetic that overflows panics in this build, which the server tells as 500.

use crate::server::Server;
use crate::{ETWHY, Json as _, Str as _};
use etwhy_base::rng::Rng;
use serde_json::{Value, json};

/// Everything that the page asks, over a part.
fn questions(part: &Value, tables: &[String]) -> Vec<(&'static str, Value)> {
    let with = |more: Value| {
        let mut body = part.clone();
        body.as_object_mut().unwrap().extend(more.fields().clone());
        body
    };
    let mut all = vec![
        ("session", json!({})),
        ("schema", json!({})),
        ("report", json!({})),
        ("report_file", json!({})),
        ("lanes", with(json!({ "width": 1000 }))),
        ("lanes", with(json!({ "width": 4_294_967_295u64 }))),
        ("interrupts", part.clone()),
        ("thread_states", part.clone()),
        ("states", with(json!({ "utids": [0, 1, 2, 4_294_967_295u64], "width": 800 }))),
        ("path", with(json!({ "utid": 1 }))),
        ("switch", with(json!({ "utid": 1, "ts_ns": i64::MAX }))),
        ("functions", with(json!({ "metric": "cpu", "by": ["process"], "steps": [] }))),
        ("butterfly", with(json!({ "metric": "cpu", "by": [], "steps": [], "function": "*", "name": "*" }))),
        ("stack_chart", with(json!({ "width": 500, "utid": 1 }))),
    ];
    for metric in ["cpu", "wait", "dpc", "disk-bytes", "energy", "virtual-outstanding"] {
        all.push(("tree", with(json!({ "metric": metric, "by": ["process", "thread"], "steps": [], "inverted": true, "width": 0.0 }))));
    }
    for table in tables {
        all.push(("rows", with(json!({ "table": table, "limit": 50, "offset": u32::MAX }))));
        all.push(("rows", with(json!({ "table": table, "limit": 50 }))));
        all.push((
            "pivot",
            with(json!({ "table": table, "group": [], "values": [{ "fn": "count" }], "spark": 4_000 })),
        ));
    }
    all
}

fn check(server: &Server, what: &str) {
    let schema = server.ask("schema", &json!({}));
    assert_eq!(schema.status, 200, "{what}");
    let tables: Vec<String> = schema.json()["tables"]
        .list()
        .iter()
        .filter(|table| table["rows"].as_u64() > Some(0))
        .map(|table| table["name"].str().to_owned())
        .collect();
    let parts = [
        json!({}),
        json!({ "range": [i64::MIN, i64::MAX] }),
        json!({ "range": [i64::MAX - 1, i64::MAX], "filters": [{ "kind": "process", "value": i64::MAX }] }),
        json!({ "range": [-5, 1_000_000], "filters": [{ "kind": "frame", "value": "*;!" }, { "kind": "cpu", "value": -1, "not": true }] }),
    ];
    let mut wrong = Vec::new();
    for part in &parts {
        for (name, body) in questions(part, &tables) {
            let answer = server.ask(name, &body);
            if ![200, 400, 404].contains(&answer.status) {
                wrong.push(format!(
                    "{name} {body}: {} {}",
                    answer.status,
                    String::from_utf8_lossy(&answer.body)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{what}: {} faults\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
    assert_eq!(server.ask("session", &json!({})).status, 200, "{what}: the server is gone");
}

#[test]
fn extreme_questions_are_answered() {
    check(&Server::start(&["--demo"]), "demo");
}

#[test]
fn damaged_traces_are_shown_without_faults() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng::new(1);
    for scenario in ["scenarios/dpc_flood.toml", "scenarios/syscall_hook.toml"] {
        let trace = folder.path().join("sound.etl");
        ETWHY.synth(&etwhy_testkit::root().join(scenario), &trace, &["--scale", "0.02"]);
        let sound = std::fs::read(&trace).unwrap();
        for round in 0..4 {
            let mut bytes = sound.clone();
            // Behind the header of the session: what is damaged there is another test's matter.
            for _ in 0..400 {
                let at = 8_192 + rng.index(bytes.len() - 8_192);
                bytes[at] = if round % 2 == 0 { rng.bits() as u8 } else { 0xff };
            }
            let damaged = folder.path().join("damaged.etl");
            std::fs::write(&damaged, &bytes).unwrap();
            let server = Server::start(&[&damaged]);
            check(&server, &format!("{scenario}, round {round}"));
        }
    }
}
