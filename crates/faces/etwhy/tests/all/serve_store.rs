//! The page of a store: it says what `etwhy fleet` says, of what a filter leaves, and opens what is where it was.

use crate::server::{Answer, Server};
use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::root;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Two written traces, and the store of them.
fn store(folder: &Path) -> PathBuf {
    std::fs::create_dir(folder.join("inbox")).unwrap();
    for (story, scale) in [("dpc_flood", "0.005"), ("openmp_spin", "0.005")] {
        let trace = folder.join("inbox").join(format!("{story}.etl"));
        ETWHY.synth(&root().join(format!("scenarios/{story}.toml")), &trace, &["--scale", scale]);
    }
    let store = folder.join("store");
    ETWHY.run(&["fleet", "run", folder.join("inbox").str(), "-o", store.str(), "--quiet"]);
    store
}

fn ask(server: &Server, question: &str, body: &Value) -> Answer {
    server.ask(&format!("store/{question}"), body)
}

#[test]
fn the_page_says_what_the_commands_say() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let server = Server::at_once(&[&store]);
    for (what, plural) in [("driver", "drivers"), ("process", "processes"), ("finding", "findings")] {
        let said: Value = ETWHY.json(&["fleet", "rank", plural, store.str(), "--json"]);
        let page = ask(&server, "rank", &json!({ "what": what })).json();
        let rows: Vec<&Value> =
            said["rows"].list().iter().filter(|row| what != "finding" || row["found"] != 0).collect();
        assert_eq!(page["rows"].list().iter().collect::<Vec<_>>(), rows, "{what}");
    }
    let facts = ask(&server, "facts", &json!({})).json();
    assert_eq!((&facts["traces"], &facts["machines"]), (&json!(2), &json!(2)), "{facts}");

    // From the rank to the machine to the trace, of what a filter leaves.
    let system = facts["systems"].list()[0]["name"].clone();
    let left = ask(&server, "rank", &json!({ "what": "process", "filter": { "os": system } })).json();
    assert_eq!(left["traces"], 1, "the machines have different systems: {facts}");
    let name = left["rows"].list()[0]["culprit"].clone();
    let machines = ask(&server, "machines", &json!({ "what": "process", "name": name })).json();
    let machine = machines["rows"].list()[0]["machine_id"].clone();
    let traces =
        ask(&server, "traces", &json!({ "what": "process", "name": name, "machine_id": machine })).json();
    let trace = traces["rows"].list()[0].clone();
    assert_eq!(trace["of"]["share_percent"], machines["rows"].list()[0]["share_percent"], "its only trace");
    let detail = ask(&server, "trace", &json!({ "trace_id": trace["trace_id"] })).json();
    assert_eq!(detail["file"], trace["path"], "{detail}");

    let none = json!({ "what": "process", "filter": { "from": "2199-01-01" } });
    assert_eq!(ask(&server, "rank", &none).json()["rows"], json!([]));
    for (question, body, status) in [
        ("nothing", json!({}), 404),
        ("trace", json!({ "trace_id": "' OR 1=1" }), 404),
        ("traces", json!({ "machine_id": "nobody" }), 404),
        ("open", json!({ "trace_id": "/etc/passwd" }), 404),
        ("rank", json!({ "filter": { "model": 7 } }), 400),
    ] {
        let answer = ask(&server, question, &body);
        assert_eq!(answer.status, status, "{question}: {}", answer.error());
    }
}

#[test]
fn a_trace_opens_where_it_is_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let server = Server::at_once(&[&store]);
    let get = |path: &str| server.request("GET", &format!("/{}/{path}", server.token), "", "");
    let first = get("");
    assert!(first.status == 303 && first.head.contains("/store/"), "{}", first.head);
    let page = get("store/");
    assert!(page.status == 200 && page.head.contains("script-src 'self'"), "{}", page.head);
    assert_eq!(server.request("GET", "/wrong/store/", "", "").status, 403);

    let traces = ask(&server, "rank", &json!({ "what": "process" })).json();
    assert_eq!(traces["traces"], 2);
    let ids: Vec<Value> = ["dpc_flood", "openmp_spin"]
        .iter()
        .map(|name| {
            let said: Value = ETWHY.json(&["fleet", "show", &format!("{name}.etl"), store.str(), "--json"]);
            said["rows"].list()[0]["trace"]["trace_id"].clone()
        })
        .collect();
    let opened = ask(&server, "open", &json!({ "trace_id": ids[0] })).json();
    let again = ask(&server, "open", &json!({ "trace_id": ids[0] })).json();
    assert_eq!((&opened, &again), (&json!({ "trace": 0 }), &json!({ "trace": 0 })), "it is opened once");
    let session = server.settle();
    assert_eq!(session["traces"][0]["trace_id"], ids[0], "{session}");
    assert_eq!(get("").status, 200, "now there is a trace to look at");

    // What changed or is gone is said, and found again where a folder has it.
    let file = folder.path().join("inbox/openmp_spin.etl");
    std::fs::create_dir(folder.path().join("moved")).unwrap();
    std::fs::rename(&file, folder.path().join("moved/openmp_spin.etl")).unwrap();
    let gone = ask(&server, "open", &json!({ "trace_id": ids[1] }));
    assert!(gone.status == 404 && gone.error().contains("--folder"), "{}", gone.error());
    std::fs::write(&file, "something else").unwrap();
    let changed = ask(&server, "open", &json!({ "trace_id": ids[1] }));
    assert!(changed.status == 404 && changed.error().contains("changed"), "{}", changed.error());
    let moved = folder.path().join("moved");
    let server = Server::at_once(&[store.as_os_str(), "--folder".as_ref(), moved.as_os_str()]);
    assert_eq!(ask(&server, "open", &json!({ "trace_id": ids[1] })).status, 200);
    assert_eq!(server.settle()["traces"][0]["trace_id"], ids[1]);

    let server = Server::at_once(&[store.as_os_str(), "--readonly".as_ref()]);
    assert_eq!(ask(&server, "open", &json!({ "trace_id": ids[0] })).status, 403);
    let (code, _, errors) = ETWHY.ran(&["serve", store.str(), file.str()]);
    assert!(code != 0 && errors.contains("alone"), "{errors}");
}
