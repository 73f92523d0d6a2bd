//! What the page asks about stacks: totals are those of SQL, steps keep sums, the story of the system calls is told.

use crate::server;
use crate::{ETWHY, Json as _, Str as _};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array as _, RecordBatch};
use serde_json::{Value, json};

struct Server(server::Server);

/// Rows with the facts about them.
struct Rows {
    facts: Value,
    batches: Vec<RecordBatch>,
}

impl Rows {
    fn numbers(&self, name: &str) -> Vec<i64> {
        let mut out = Vec::new();
        for batch in &self.batches {
            let column = batch.column_by_name(name).unwrap_or_else(|| panic!("no {name}"));
            let wide = column.as_primitive_opt::<Int64Type>();
            let narrow = column.as_primitive_opt::<Int32Type>();
            match (wide, narrow) {
                (Some(column), _) => out.extend(column.iter().map(|n| n.unwrap_or(0))),
                (_, Some(column)) => out.extend(column.iter().map(|n| i64::from(n.unwrap_or(0)))),
                // A sum of nothing has no type.
                _ => out.extend((0..column.len()).map(|row| {
                    assert!(column.is_null(row), "{name} is no number: {:?}", column.data_type());
                    0
                })),
            }
        }
        out
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let mut out = Vec::new();
        for batch in &self.batches {
            let column =
                arrow_array::cast::as_dictionary_array::<Int32Type>(batch.column_by_name(name).unwrap());
            let values = column.values().as_string::<i32>();
            out.extend(
                (0..batch.num_rows())
                    .map(|row| column.key(row).map_or_else(String::new, |key| values.value(key).to_owned())),
            );
        }
        out
    }

    fn fact(&self, name: &str) -> i64 {
        self.facts[name].as_i64().unwrap_or_else(|| panic!("no {name}: {}", self.facts))
    }

    /// Nodes as paths with total and own weight.
    fn paths(&self) -> Vec<(String, i64, i64)> {
        let (parents, names) = (self.numbers("parent"), self.texts("name"));
        let (totals, owns) = (self.numbers("total"), self.numbers("own"));
        let mut out: Vec<(String, i64, i64)> = Vec::new();
        for at in 0..names.len() {
            let above = usize::try_from(parents[at]).map_or(String::new(), |p| format!("{}>", out[p].0));
            out.push((format!("{above}{}", names[at]), totals[at], owns[at]));
        }
        out
    }
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        Server(server::Server::start(arguments))
    }

    fn post(&self, name: &str, body: &Value) -> (u16, Vec<u8>) {
        let answer = self.0.ask(name, body);
        (answer.status, answer.body)
    }

    fn ask(&self, name: &str, body: &Value) -> Rows {
        let (status, bytes) = self.post(name, body);
        assert_eq!(status, 200, "{name} {body}: {}", String::from_utf8_lossy(&bytes));
        let reader = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
        let facts = serde_json::from_str(&reader.schema().metadata()["etwhy.answer"]).unwrap();
        Rows { facts, batches: reader.map(Result::unwrap).collect() }
    }

    fn sql(&self, query: &str) -> i64 {
        let rows = self.ask("sql", &json!({ "sql": query }));
        let name = rows.batches[0].schema().field(0).name().clone();
        rows.numbers(&name)[0]
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.post(name, &json!({})).1).unwrap()
    }
}

fn merged(a: &Value, b: &Value) -> Value {
    let mut out = a.clone();
    out.as_object_mut().unwrap().extend(b.fields().clone());
    out
}

/// Totals of all metrics are those of the query that stands beside them, in every part; own weights add up to them.
fn totals_hold(server: &Server) -> usize {
    let session = server.json("session");
    let (first, last) = (session["traces"][0]["first_ns"].int(), session["traces"][0]["last_ns"].int());
    let third = (last - first) / 3;
    let whole = server.ask("functions", &json!({ "metric": "busy" }));
    let function = whole.texts("name").into_iter().find(|n| n.contains('!') && !n.ends_with("!?"));
    let module = whole.texts("module").into_iter().find(|m| !m.is_empty());
    let upid = server.sql(
        "SELECT upid FROM sample WHERE upid NOT IN (SELECT upid FROM process WHERE pid = 0) GROUP BY 1 ORDER BY sum(weight_ns) DESC LIMIT 1",
    );
    let filter = |kind: &str, value: Value, not: bool| json!({ "kind": kind, "value": value, "not": not });
    let mut parts = vec![
        json!({}),
        json!({ "range": [first + third, first + 2 * third] }),
        json!({ "filters": [filter("process", json!(upid), false)], "range": [first, first + 2 * third] }),
        json!({ "filters": [filter("cpu", json!(0), false)] }),
    ];
    let on_stack = [("frame", function), ("module", module)];
    for (kind, value) in on_stack.into_iter().filter_map(|(kind, value)| Some((kind, value?))) {
        parts.push(json!({ "filters": [filter(kind, json!(value), false)] }));
        parts.push(json!({ "filters": [filter(kind, json!(value), true)], "range": [first + third, last] }));
    }
    let mut compared = 0;
    let schema = server.json("schema");
    let there = schema["metrics"].list().iter().filter(|m| m["there"] == true);
    for metric in there.map(|m| m["name"].str()) {
        for part in &parts {
            let question = merged(part, &json!({ "metric": metric, "min_px": 0.0 }));
            let tree = server.ask("tree", &question);
            let total = tree.fact("total");
            if let Some(sql) = tree.facts["sql"].as_str() {
                assert_eq!(server.sql(sql), total, "{metric} {part}: {sql}");
                compared += usize::from(total > 0);
            }
            if total > 0 && tree.fact("left_out") == 0 {
                assert_eq!(tree.numbers("own").iter().sum::<i64>(), total, "{metric} {part}");
            } else if tree.fact("count") == 0 {
                assert!(tree.facts["why"].is_string(), "{metric} {part}");
            }
            // Turned around and by other levels it is the same sum.
            let other = merged(&question, &json!({ "inverted": true, "by": ["module", "thread"] }));
            assert_eq!(server.ask("tree", &other).fact("total"), total, "{metric} {part}");
            let functions = server.ask("functions", &question);
            assert_eq!(functions.fact("total"), total, "{metric} {part}");
        }
    }
    compared
}

#[test]
fn totals_are_those_of_sql() {
    let compared = totals_hold(&Server::start(&["--demo"]));
    assert!(compared > 40, "{compared}");
}

#[test]
fn totals_of_a_real_trace_are_those_of_sql() {
    let Some(trace) = etwhy_testkit::corpus_file("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl")
    else {
        return;
    };
    let server = Server::start(&[trace.str(), "--offline"]);
    let compared = totals_hold(&server);
    assert!(compared > 40, "{compared}");
    // In the order of time the samples of a thread are all there, whatever a pixel has room for.
    for width in [400, 4000] {
        let chart = server.ask("stack_chart", &json!({ "width": width }));
        let (weight, samples) = (chart.fact("weight"), chart.fact("samples"));
        assert_eq!(server.sql(chart.facts["sql"].str()), weight);
        let (depths, names) = (chart.numbers("depth"), chart.texts("kind"));
        let of_top = |name: &str| -> i64 {
            let list = chart.numbers(name);
            (0..list.len()).filter(|&at| depths[at] == 0 && names[at] != "group").map(|at| list[at]).sum()
        };
        assert_eq!((of_top("weight"), of_top("samples")), (weight, samples), "{width}");
        assert_eq!(chart.facts["threads"][0]["weight"].int(), weight);
        // Boxes of a level do not overlap.
        let (from, to) = (chart.numbers("from_ns"), chart.numbers("to_ns"));
        let mut ends: Vec<i64> = Vec::new();
        for at in (0..from.len()).filter(|&at| names[at] != "group") {
            let depth = depths[at] as usize;
            ends.resize(ends.len().max(depth + 1), i64::MIN);
            assert!(from[at] >= ends[depth] && to[at] >= from[at], "{width}: box {at}");
            ends[depth] = to[at];
        }
    }
}

#[test]
fn steps_are_taken_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.story("syscall_hook", "0.1", folder.path());
    let server = Server::start(&[trace.str()]);
    let tree = |steps: Value, more: Value| {
        server.ask("tree", &merged(&json!({ "by": [], "steps": steps, "min_px": 0.0 }), &more))
    };
    let find = |rows: &Rows, path: &str| -> (i64, i64) {
        let found = rows.paths().into_iter().find(|(known, ..)| known == path);
        let (_, total, own) = found.unwrap_or_else(|| panic!("no {path}: {:?}", rows.paths()));
        (total / 1_000_000, own / 1_000_000)
    };
    let sleep = json!({ "op": "focus", "function": "KernelBase.dll!SleepEx" });
    let focused = tree(json!([sleep]), json!({}));
    let whole = find(&focused, "[all]").0;
    // A tenth of the published milliseconds, as `etwhy tree` tells them.
    let entry =
        "[all]>KernelBase.dll!SleepEx>ntdll.dll!NtDelayExecution>ntoskrnl.exe!KiSystemServiceExitPico";
    for (path, ms) in [
        ("", 2_489_111),
        (">ntoskrnl.exe!PerfInfoLogSysCallEntry", 1_387_533),
        (
            ">ntoskrnl.exe!PerfInfoLogSysCallEntry>ntoskrnl.exe!EtwTraceKernelEvent>ntoskrnl.exe!EtwpLogKernelEvent>tedrdrv.sys!?",
            1_251_146,
        ),
    ] {
        let found = find(&focused, &format!("{entry}{path}")).0;
        assert!((10.0 * found as f64 / ms as f64 - 1.0).abs() < 0.02, "{path}: {found}");
    }
    assert!(focused.fact("part_total") > focused.fact("total"));
    assert_eq!(server.sql(focused.facts["sql"].str()), focused.fact("part_total"));
    // A module that became one frame can be merged by the next step; the other way around its frames are gone before.
    let collapse = json!({ "op": "collapse", "module": "ntoskrnl.exe" });
    let collapsed = tree(json!([sleep, collapse]), json!({}));
    let path = "[all]>KernelBase.dll!SleepEx>ntdll.dll!NtDelayExecution>ntoskrnl.exe";
    let kernel = find(&collapsed, path).0;
    assert_eq!(find(&collapsed, "[all]").0, whole);
    let merge = json!({ "op": "merge", "function": "ntoskrnl.exe" });
    let merged_away = tree(json!([sleep, collapse, merge]), json!({}));
    assert!(!merged_away.texts("name").contains(&"ntoskrnl.exe".to_owned()));
    assert_eq!(find(&merged_away, "[all]").0, whole);
    let other = tree(json!([sleep, merge, collapse]), json!({}));
    assert_eq!(find(&other, path).0, kernel, "no function is called ntoskrnl.exe before");
    // A subtree is what its node was, at the top.
    let labels =
        ["KernelBase.dll!SleepEx", "ntdll.dll!NtDelayExecution", "ntoskrnl.exe!KiSystemServiceExitPico"];
    let subtree = tree(json!([sleep, { "op": "subtree", "path": labels, "inverted": false }]), json!({}));
    assert_eq!(find(&subtree, "[all]").0, find(&focused, entry).0);
    assert_eq!(find(&subtree, &format!("[all]>{}", labels[2])), find(&focused, entry));
    // To zoom is to see the same nodes with another root.
    let zoomed = tree(json!([sleep]), json!({ "root": labels }));
    assert_eq!(find(&zoomed, labels[2]), find(&focused, entry));
    assert_eq!(zoomed.fact("total"), focused.fact("total"));
    // Both sides of a driver.
    let wings = server.ask("butterfly", &json!({ "module": "tedrdrv.sys" }));
    for (fact, ms) in [("inclusive", 2_167_695.0), ("exclusive", 958_198.0)] {
        let found = wings.fact(fact) as f64 / 1e5;
        assert!((found / ms - 1.0).abs() < 0.02, "{fact}: {found}");
    }
    let groups = wings.facts["groups"].list();
    assert_eq!(groups.iter().map(|g| g["total"].int()).sum::<i64>(), wings.fact("inclusive"));
    // Compared with itself nothing differs.
    let same = tree(json!([]), json!({ "other": { "trace": 0, "range": null } }));
    assert_eq!(same.numbers("before"), same.numbers("total"));
    assert_eq!((same.fact("before_total"), same.fact("gone")), (same.fact("total"), 0));
}

#[test]
fn questions_that_make_no_sense_are_told_so() {
    let server = Server::start(&["--demo"]);
    for (name, body) in [
        ("tree", json!({ "metric": "nonsense" })),
        ("tree", json!({ "metric": "sample.nonsense" })),
        ("tree", json!({ "by": ["nonsense"] })),
        ("tree", json!({ "steps": [{ "op": "nonsense" }] })),
        ("tree", json!({ "range": [5, 5] })),
        ("butterfly", json!({})),
    ] {
        let (status, answer) = server.post(name, &body);
        assert_eq!(status, 400, "{name} {body}: {}", String::from_utf8_lossy(&answer));
    }
    let nothing =
        server.ask("tree", &json!({ "metric": "sample.weight_ns", "root": ["not there"], "width": -1e300 }));
    assert_eq!(nothing.facts["root_found"], false);
    let many: Vec<Value> = (0..101).map(|_| json!({ "op": "mine" })).collect();
    assert_eq!(server.post("tree", &json!({ "steps": many })).0, 400);
    // Rows of sums have no time: that is told, and they count.
    let sums = server.ask("tree", &json!({ "metric": "stack_cost.weight_ns", "range": [0, 1] }));
    assert_eq!(sums.facts["unused"], json!(["range"]));
    assert!(sums.fact("total") > 0);
}
