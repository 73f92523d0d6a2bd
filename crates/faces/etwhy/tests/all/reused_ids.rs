//! Processes that follow each other with the same process and thread ids: each has its own rows and its own figures.

use crate::ETWHY;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

type Row = Map<String, Value>;

const FRAME: &str = r#"
[machine]
cpus = 2
duration = "4s"
context_switches = true
[[process]]
name = "server.exe"
threads = "rpc*3"
[[process]]
name = "copy.exe"
count = 6
start = "300ms"
every = "500ms"
life = "450ms"
reuse_ids = true
[[samples]]
process = "copy.exe"
busy = 0.3
[[syscall]]
process = "copy.exe"
count = 600
to = "3.2s"
[[registry]]
process = "copy.exe"
count = 600
to = "3.2s"
"#;

type Life = (&'static str, i64, Option<i64>, i64, i64, i64);

/// Name, start and end of life, begin and end of its work in ms, events of the first table (one more in each further).
const LIVES: [Life; 3] = [
    ("first.exe", 200, Some(1000), 250, 950, 100),
    ("second.exe", 1200, Some(2000), 1250, 1950, 170),
    ("third.exe", 2200, None, 2250, 3900, 230),
];

/// All work of one process. The addresses that it takes, and the ends of its connections, are those of the others.
fn scenario() -> String {
    let mut text = FRAME.to_owned();
    for (name, start, end, from, to, n) in LIVES {
        let life = end.map_or(String::new(), |e| format!("end = \"{e}ms\"\n"));
        write!(
            text,
            "[[process]]\nname = \"{name}\"\npid = 7000\nthreads = [{{ name = \"main\", tid = 7004 }}]\n\
             start = \"{start}ms\"\n{life}"
        )
        .unwrap();
        let tag = name.get(..4).unwrap();
        let tables = [
            ("samples", "busy = 0.2".to_owned()),
            ("syscall", "function = \"NtWaitForSingleObject\"\nwait = \"500us\"".to_owned()),
            ("file_io", format!("op = [\"create\", \"read\", \"close\"]\nfile = 'C:\\{name}.dat'")),
            ("registry", format!("op = \"query_value\"\nkey = 'HKLM\\SOFTWARE\\{name}'")),
            ("handle", "leak = 1".to_owned()),
            ("pool", format!("tag = \"{tag}\"\nfree_after = \"1ms\"")),
            ("page_fault", String::new()),
            ("virtual_alloc", "address = { counter = [0x10000000, 0x10000] }".to_owned()),
            ("disk_io", String::new()),
            ("network", String::new()),
            ("minifilter", "routine = \"filter.sys!PreCreate\"".to_owned()),
            ("alpc", "servers = \"server.exe/rpc\"".to_owned()),
            ("hard_fault", String::new()),
        ];
        for (i, (table, more)) in tables.iter().enumerate() {
            let count = if i == 0 { String::new() } else { format!("count = {}\n", n + i as i64 - 1) };
            let window = format!("process = \"{name}\"\nfrom = \"{from}ms\"\nto = \"{to}ms\"");
            write!(text, "[[{table}]]\n{window}\n{count}{more}\n").unwrap();
        }
    }
    text
}

/// Our tables with the number of rows for one event, and which kind of event it is.
const TABLES: [(&str, i64, i64); 14] = [
    ("syscall", 1, 0),
    ("file_io", 3, 1),
    ("registry", 1, 2),
    ("handle", 1, 3),
    ("pool", 1, 4),
    ("page_fault", 1, 5),
    ("virtual_alloc", 1, 6),
    ("disk_io", 1, 7),
    ("network", 1, 8),
    ("minifilter", 1, 9),
    ("alpc", 1, 10),
    ("hard_fault", 1, 11),
    ("page_fault_cost", 1, 5),
    ("network_usage", 1, 8),
];

fn rows(trace: &Path, table: &str) -> Vec<Row> {
    ETWHY.dump(table, trace)
}

fn int(row: &Row, column: &str) -> Option<i64> {
    row.get(column)?.as_i64()
}

#[test]
fn each_process_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (story, trace) = (folder.path().join("story.toml"), folder.path().join("story.etl"));
    std::fs::write(&story, scenario()).unwrap();
    ETWHY.synth(&story, &trace, &[]);
    let truth = std::fs::read(folder.path().join("story.truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();

    // Ids: every instance one row, with the life that the scenario gives it.
    let lives = |rows: Vec<Row>, id: &str| -> BTreeMap<i64, (Row, i64, i64)> {
        let life = |r: &Row| (int(r, "start_ns").unwrap_or(0), int(r, "end_ns").unwrap_or(i64::MAX));
        rows.into_iter().map(|r| (int(&r, id).unwrap(), (r.clone(), life(&r).0, life(&r).1))).collect()
    };
    let (processes, threads) =
        (lives(rows(&trace, "process"), "upid"), lives(rows(&trace, "thread"), "utid"));
    let mut upids = BTreeMap::new();
    for (name, start, end, ..) in LIVES {
        let own: Vec<_> = processes.iter().filter(|(_, (r, ..))| r["name"] == name).collect();
        let [(upid, (row, ..))] = own[..] else { panic!("{name}: {own:?}") };
        assert_eq!(int(row, "pid"), Some(7000));
        let wanted = (Some(start * 1_000_000), end.map(|e| e * 1_000_000));
        assert_eq!((int(row, "start_ns"), int(row, "end_ns")), wanted, "{name}");
        upids.insert(name, *upid);
        let own: Vec<_> = threads.values().filter(|(r, ..)| int(r, "upid") == Some(*upid)).collect();
        assert_eq!(own.len(), 1, "{name}: {own:?}");
        assert_eq!(int(&own[0].0, "tid"), Some(7004));
    }
    let copies: Vec<_> = processes.values().filter(|(r, ..)| r["name"] == "copy.exe").collect();
    let starts: BTreeSet<i64> = copies.iter().map(|c| c.1).collect();
    assert_eq!((copies.len(), starts.len()), (6, 6));
    assert!(copies.iter().all(|c| c.0["pid"] == copies[0].0["pid"]));

    // Nothing happens to anybody who does not live.
    let list = ETWHY.run(&["dump", "--list"]);
    let (mut judged, mut wrong) = (0, Vec::new());
    let tables = list.lines().filter_map(|l| l.split_whitespace().next());
    // Table `event` meets threads in headers that no other table looks at, and numbers them too: alone it has other ids.
    for table in tables.filter(|t| *t != "event") {
        for row in rows(&trace, table) {
            for (times, upid, utid) in [
                (["ts_ns", "start_ns"], "upid", "utid"),
                (["ts_ns", "ready_ts_ns"], "new_upid", "new_utid"),
                (["ready_ts_ns", "ready_ts_ns"], "readying_upid", "readying_utid"),
                (["send_ns", "reply_receive_ns"], "client_upid", "client_utid"),
                (["receive_ns", "reply_ns"], "server_upid", "server_utid"),
                (["freed_ns", "close_ns"], "freed_by_upid", "closed_by_utid"),
            ] {
                for (of, lives) in [(upid, &processes), (utid, &threads)] {
                    let Some((_, from, to)) = int(&row, of).and_then(|id| lives.get(&id)) else { continue };
                    for ns in times.iter().filter_map(|t| int(&row, t)) {
                        judged += 1;
                        if ns < *from || ns > *to {
                            wrong.push(format!("{table}.{of}, lives from {from} to {to}: {row:?}"));
                        }
                    }
                }
            }
            // A wait does not begin before its thread.
            if table == "cswitch"
                && let Some((_, from, _)) = int(&row, "new_utid").and_then(|id| threads.get(&id))
            {
                for column in ["wait_ns", "ready_ns", "since_last_ns"] {
                    let began = int(&row, "ts_ns").unwrap() - int(&row, column).unwrap_or(0);
                    if began < *from {
                        wrong.push(format!("cswitch.{column} of a thread that starts at {from}: {row:?}"));
                    }
                }
            }
        }
    }
    println!("{judged} moments lie in the lives of their processes and threads");
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert!(judged > 20_000);

    // What each did.
    for (table, each, kind) in TABLES {
        let all = rows(&trace, table);
        for (name, .., n) in LIVES {
            let upid = Some(upids[name]);
            let column = if table == "alpc" { "client_upid" } else { "upid" };
            let own = all.iter().filter(|r| int(r, column) == upid);
            let count: i64 = match table {
                "page_fault_cost" => own.map(|r| int(r, "count").unwrap()).sum(),
                "network_usage" => own.map(|r| int(r, "sends").unwrap()).sum(),
                _ => own.count() as i64,
            };
            assert_eq!(count, (n + kind) * each, "{table} of {name}");
        }
    }
    for (table, column, name_of) in
        [("file_io", "path", r"C:\NAME.dat"), ("registry", "key", r"HKLM\SOFTWARE\NAME")]
    {
        let upid_of = |n: &str| Some(upids[n]);
        for row in rows(&trace, table) {
            let Some((name, ..)) = LIVES.iter().find(|l| row[column] == name_of.replace("NAME", l.0)) else {
                continue;
            };
            assert_eq!(int(&row, "upid"), upid_of(name), "{table}: {row:?}");
        }
    }
    // What it held is gone with it, not the next one's.
    for row in rows(&trace, "handle_leak") {
        let (name, .., n) = *LIVES.iter().find(|l| Some(upids[l.0]) == int(&row, "upid")).unwrap();
        let all = Some(n + 3);
        let wanted = if name == "third.exe" { (Some(0), all) } else { (all, Some(0)) };
        assert_eq!((int(&row, "closed_by_exit"), int(&row, "outstanding")), wanted, "{name}");
    }
    for row in rows(&trace, "virtual_alloc") {
        let lives_on = int(&row, "upid") == Some(upids["third.exe"]);
        let wanted = if lives_on { (Value::Null, Some(65536)) } else { ("exit".into(), Some(0)) };
        assert_eq!((row["freed_by"].clone(), int(&row, "outstanding_bytes")), wanted);
    }
    let connections: BTreeMap<i64, i64> = rows(&trace, "tcp_connection")
        .iter()
        .map(|r| (int(r, "upid").unwrap(), int(r, "sends").unwrap()))
        .collect();
    let wanted = LIVES.iter().map(|l| (upids[l.0], l.5 + 8)).collect();
    assert_eq!(connections, wanted, "sends of connections with the same ends");
    // Processor time, by samples and by context switches; each life ran for about its samples.
    for (name, ..) in LIVES {
        let upid = Some(upids[name]);
        let samples = rows(&trace, "sample");
        let sampled: i64 = samples.iter().filter(|r| int(r, "upid") == upid).count() as i64;
        let key = format!("{name} (7000)/main (7004)");
        assert_eq!(Some(sampled), truth["cpu_by_thread_ms"][&key].as_i64(), "{name}: samples");
        let times = rows(&trace, "thread_time");
        let own: Vec<_> = times.iter().filter(|r| int(r, "upid") == upid).collect();
        let run = int(own[0], "run_ns").unwrap();
        assert!((run - sampled * 1_000_000).abs() < run / 10, "{name}: {run} ns in {sampled} samples");
    }
}
