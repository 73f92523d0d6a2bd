//! Numbers of the panels of precise CPU usage and of DPCs and ISRs: they are those of SQL, of the tables, and of `etwhy path`.

use crate::server;
use crate::{ETWHY, Json as _, Str as _};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

struct Server(server::Server);

impl Server {
    fn start(trace: &Path) -> Server {
        Server(server::Server::start(&[trace]))
    }

    fn ask(&self, name: &str, body: &Value) -> Value {
        let answer = self.0.ask(name, body);
        assert_eq!(answer.status, 200, "{name} {body}: {}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }
}

fn scenario(name: &str) -> PathBuf {
    etwhy_testkit::root().join(format!("scenarios/{name}.toml"))
}

/// Lines that stand for rows, of both sides.
fn lines(rows: &[Value], names: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| names.iter().map(|name| row[*name].to_string()).collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort();
    lines
}

#[test]
fn interrupts_are_those_of_sql_and_of_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("flood.etl");
    ETWHY.synth(&scenario("dpc_flood"), &trace, &["--scale", "0.01"]);
    let server = Server::start(&trace);
    const SUMS: [&str; 12] = [
        "class",
        "module",
        "count",
        "total_ns",
        "exclusive_ns",
        "mean_ns",
        "p50_ns",
        "p95_ns",
        "p99_ns",
        "max_ns",
        "over_limit",
        "over_limit_ns",
    ];
    let parts = [
        json!({}),
        json!({ "range": [20_000_000, 61_000_000] }),
        json!({ "filters": [{ "kind": "cpu", "value": 2 }] }),
        json!({ "filters": [{ "kind": "module", "value": "ndis.sys", "not": true }] }),
    ];
    for part in parts {
        let answer = server.ask("interrupts", &part);
        let drivers = answer["drivers"].list();
        assert!(!drivers.is_empty(), "{part}");
        let queries: Vec<&str> = answer["sql"].list().iter().map(|q| q.str()).collect();
        let (sums, bins): (Vec<&str>, Vec<&str>) = queries.iter().partition(|q| q.contains("p95_ns"));
        let theirs: Vec<Value> = sums.iter().flat_map(|query| ETWHY.sql::<Value>(&trace, query)).collect();
        assert_eq!(lines(drivers, &SUMS), lines(&theirs, &SUMS), "{part}");
        let ours: Vec<Value> = drivers
            .iter()
            .flat_map(|driver| {
                let bin = |bin: &Value| {
                    json!({ "module": driver["module"], "above_ns": bin["above_ns"], "count": bin["count"], "total_ns": bin["total_ns"] })
                };
                driver["bins"].list().iter().map(bin).collect::<Vec<_>>()
            })
            .collect();
        let theirs: Vec<Value> = bins.iter().flat_map(|query| ETWHY.sql::<Value>(&trace, query)).collect();
        let names = ["module", "above_ns", "count", "total_ns"];
        assert_eq!(lines(&ours, &names), lines(&theirs, &names), "{part}");
    }
    // The whole trace: what is over the limit as in table dpc_histogram, sums as in interrupt_cost, hot processors as in interrupt_spread.
    let answer = server.ask("interrupts", &json!({}));
    let drivers = answer["drivers"].list();
    let flood = &drivers[0];
    assert_eq!((&flood["module"], &flood["hot"]), (&json!("ndis.sys"), &json!([0, 2, 4, 6])));
    let over = |bins: &[Value]| -> i64 {
        bins.iter()
            .filter(|bin| bin["over_limit"] == true || bin["over_limit"] == 1)
            .map(|bin| bin["count"].int())
            .sum()
    };
    let classes = ETWHY.sql::<Value>(
        &trace,
        "SELECT count, over_limit FROM dpc_histogram WHERE class = 'dpc' AND module = 'ndis.sys'",
    );
    assert_eq!(over(flood["bins"].list()), over(&classes));
    assert!(flood["bins"].list().len() > classes.len(), "finer classes");
    let names =
        ["class", "module", "count", "total_ns", "exclusive_ns", "over_limit", "over_limit_ns", "max_ns"];
    let costs = ETWHY.sql::<Value>(&trace, "SELECT * FROM interrupt_cost WHERE level = 'module'");
    assert_eq!(lines(drivers, &names), lines(&costs, &names));
    let names = ["routine", "count", "total_ns", "exclusive_ns", "max_ns"];
    let routines: Vec<Value> = drivers.iter().flat_map(|d| d["routines"].list().clone()).collect();
    let costs = ETWHY.sql::<Value>(&trace, "SELECT * FROM interrupt_cost WHERE level = 'routine'");
    assert_eq!(lines(&routines, &names), lines(&costs, &names));
    let loads: i64 = answer["cpus"].list().iter().map(|cpu| cpu["dpc_ns"].int()).sum();
    let all = ETWHY.sql::<Value>(
        &trace,
        "SELECT sum(exclusive_ns) AS ns FROM interrupt_cost WHERE level = 'cpu' AND class = 'dpc'",
    );
    assert_eq!(json!(loads), all[0]["ns"]);
    let guest = &answer["stacks"][0];
    assert_eq!((&guest["driver"], &guest["security"]), (&json!("IDSvia64.sys"), &json!(true)));
}

fn by_tid(answer: &Value) -> String {
    let query = answer["sql"].str();
    format!("SELECT t.tid, q.* FROM ({query}) AS q JOIN thread AS t ON t.utid = q.new_utid")
}

#[test]
fn states_are_those_of_sql() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("lock.etl");
    ETWHY.synth(&scenario("findings/lock.contention"), &trace, &["--scale", "0.1"]);
    let server = Server::start(&trace);
    let parts = [
        json!({}),
        json!({ "range": [100_300_123, 200_700_456] }),
        json!({ "range": [33_000_000, 133_000_000], "filters": [{ "kind": "cpu", "value": 1, "not": true }] }),
    ];
    // Numbers of threads depend on what is read; their ids do not.
    let names = ["tid", "run_ns", "ready_ns", "wait_ns", "switches"];
    for part in parts {
        let answer = server.ask("thread_states", &part);
        let some = |row: &Value| names[1..].iter().any(|name| row[*name].as_i64().unwrap_or(0) > 0);
        let ours: Vec<Value> = answer["threads"]
            .list()
            .iter()
            .map(|t| json!({ "tid": t["tid"], "run_ns": t["run_ns"], "ready_ns": t["ready_ns"], "wait_ns": t["wait_ns"], "switches": t["switches"] }))
            .filter(some)
            .collect();
        assert!(ours.len() > 4, "{part}");
        let theirs: Vec<Value> = ETWHY
            .sql::<Value>(&trace, &by_tid(&answer))
            .into_iter()
            .map(|mut row| {
                for name in names {
                    // No row with a known time: nothing to add up.
                    if row[name].is_null() {
                        row[name] = json!(0);
                    }
                }
                row
            })
            .filter(some)
            .collect();
        assert_eq!(lines(&ours, &names), lines(&theirs, &names), "{part}");
    }
    // The whole trace again, as table thread_time has it.
    let answer = server.ask("thread_states", &json!({}));
    for thread in answer["threads"].list() {
        let query = format!(
            "SELECT run_ns, ready_ns, wait_ns, runs AS switches FROM thread_time JOIN thread USING (utid) WHERE tid = {}",
            thread["tid"]
        );
        let row = &ETWHY.sql::<Value>(&trace, &query)[0];
        for name in ["run_ns", "ready_ns", "wait_ns", "switches"] {
            assert_eq!(thread[name], row[name], "{name} of {thread}");
        }
    }
}

/// Pieces of a path, as both sides tell them. What interrupts took of a piece stands before it on one side only.
fn pieces(list: &Value, threads: &Value) -> Vec<String> {
    let tid_of = |utid: &Value| {
        let thread = threads.list().iter().find(|thread| thread["utid"] == *utid);
        thread.map_or(Value::Null, |thread| thread["tid"].clone())
    };
    let mut interrupted = 0;
    let mut out = Vec::new();
    for p in list.list() {
        let dur = p["dur_ns"].int() + std::mem::take(&mut interrupted);
        if p["kind"] == "interrupt" {
            interrupted = dur;
            continue;
        }
        let reason = p.get("reason").or(p.get("wait_reason")).unwrap();
        let in_dpc = p.get("in_dpc").or(p.get("readied_in_dpc")).unwrap();
        let tid = p.get("tid").cloned().unwrap_or_else(|| tid_of(&p["utid"]));
        out.push(format!("{} {dur} {} {} {tid} {reason} {in_dpc}", p["start_ns"], p["kind"], p["depth"]));
    }
    out
}

#[test]
fn paths_are_those_of_the_trace_reader() {
    let folder = tempfile::tempdir().unwrap();
    // Locks, and a window that says that it hung: the reader makes paths of both.
    let hang = "\n[[manifest_event]]\nprocess = \"shop.exe\"\nprovider = \"8c416c79-d49b-4f01-a467-e56d3aa8234c\"\nid = 38\ncount = 40\n\
                keyword = \"0x40000\"\nfields = [{ type = \"u32\", value = 1 }, { type = \"u32\", value = 90 }, { type = \"u32\", value = 520 }, \
                { type = \"u32\", value = 540 }, \"Edit\", \"MainWindow\", \"shop.exe\", { type = \"u32\", value = 513 }, { type = \"u64\", value = 1 }]\n";
    let text = std::fs::read_to_string(scenario("findings/lock.contention")).unwrap() + hang;
    let locks = folder.path().join("locks.toml");
    std::fs::write(&locks, text).unwrap();
    let mut compared = (0, 0);
    for (name, file) in [
        ("locks", locks),
        ("busy", scenario("clean_busy_machine")),
        ("inversion", scenario("findings/cpu.priority-inversion")),
        // A window asks two services at once and waits for one after the other.
        ("fork", scenario("hard/hang-behind-two-overlapping-answers")),
        ("fork", scenario("hard/hang-behind-two-overlapping-answers-without-stacks")),
        ("fork", scenario("hard/hang-behind-a-fork-whose-quicker-branch-holds-the-lock")),
    ] {
        let trace = folder.path().join(format!("{name}.etl"));
        ETWHY.synth(&file, &trace, &["--scale", if name == "fork" { "1" } else { "0.1" }]);
        let server = Server::start(&trace);
        let path = trace.str();
        let known: Value = serde_json::from_str(&ETWHY.run(&["path", path, "-q", "--json"])).unwrap();
        for hang in known.list() {
            if name == "locks" {
                assert_eq!(hang["origin"], "MessageCheckDelay");
            }
            let (from, length) = (hang["start_ns"].int(), hang["dur_ns"].int());
            let all = server.ask("thread_states", &json!({ "search": hang["tid"].to_string() }));
            let utid = &all["threads"][0]["utid"];
            let body = json!({ "range": [from, from + length], "thread": utid, "limit": 100_000 });
            let answer = server.ask("path", &body);
            assert_eq!(
                pieces(&answer["pieces"], &answer["threads"]),
                pieces(&hang["links"], &json!([])),
                "{name} {body}"
            );
            compared.0 += 1;
        }
        let busiest = server.ask("thread_states", &json!({ "sort": "switches" }));
        for thread in busiest["threads"].list().iter().take(6) {
            let (tid, utid) = (thread["tid"].to_string(), &thread["utid"]);
            for (from, to) in [(50_000_000i64, 90_000_000i64), (20_000_001, 20_900_003)] {
                let [a, b] = [from, to].map(|ns| format!("{ns}ns"));
                let out =
                    ETWHY.run(&["path", path, "-q", "--json", "--thread", &tid, "--from", &a, "--to", &b]);
                let theirs: Value = serde_json::from_str(&out).unwrap();
                let asked: Vec<&Value> = theirs.list().iter().filter(|p| p["origin"] == "asked").collect();
                assert_eq!(asked.len(), 1, "{name} {tid}");
                let answer =
                    server.ask("path", &json!({ "range": [from, to], "thread": utid, "limit": 100_000 }));
                assert_eq!(
                    pieces(&answer["pieces"], &answer["threads"]),
                    pieces(&asked[0]["links"], &json!([])),
                    "{name} {tid} {from}"
                );
                let sums = |list: &Value| list.list().iter().map(|c| c["dur_ns"].int()).sum::<i64>();
                assert_eq!(sums(&answer["causes"]), to - from, "{name} {tid}");
                compared.1 += 1;
            }
        }
    }
    assert!(compared.0 >= 3 && compared.1 >= 20, "{compared:?}");
}
