//! The server of `etwhy serve` against everything but its own page: strangers, bad questions, many at a time, clients that go away.

use crate::server::Server;
use crate::{ETWHY, Json as _, Str as _};
use etwhy_testkit::Run as _;
use std::net::TcpStream;
use std::time::Duration;

fn sql(query: &str) -> serde_json::Value {
    serde_json::json!({ "trace": 0, "sql": query })
}

#[test]
fn strangers_get_nothing() {
    let server = Server::start(&["--demo"]);
    let page = format!("/{}/", server.token);
    let good = server.request("GET", &page, "", "");
    assert_eq!(good.status, 200);
    let policy =
        good.head.lines().find(|l| l.to_ascii_lowercase().starts_with("content-security-policy")).unwrap();
    assert!(
        policy.contains("default-src 'none'")
            && policy.contains("script-src 'self'")
            && !policy.contains("unsafe")
    );
    let body = String::from_utf8(good.body).unwrap();
    assert!(!body.contains(&server.token), "the page does not name its token");
    for path in
        ["/", "/x/", "/00000000000000000000000000000000/", "/00000000000000000000000000000000/api/v1/session"]
    {
        for method in ["GET", "POST"] {
            assert_eq!(server.request(method, path, "", "{}").status, 403, "{method} {path}");
        }
    }
    let foreign = [
        "Host: evil.example\r\n",
        "Host: 127.0.0.1:1\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
    ];
    for headers in foreign {
        assert_eq!(server.request("GET", &page, headers, "").status, 403, "{headers}");
        assert_eq!(
            server.request("POST", &format!("{page}api/v1/session"), headers, "{}").status,
            403,
            "{headers}"
        );
    }
    let own = format!("Origin: http://127.0.0.1:{}\r\n", server.port);
    assert_eq!(server.request("POST", &format!("{page}api/v1/session"), &own, "{}").status, 200);
    // Files of the page are named by what they hold, and kept.
    let script = body.split("src=\"assets/").nth(1).unwrap().split('"').next().unwrap();
    let asset = server.request("GET", &format!("{page}assets/{script}"), "Accept-Encoding: gzip\r\n", "");
    let head = asset.head.to_ascii_lowercase();
    assert!(
        asset.status == 200 && head.contains("immutable") && head.contains("content-encoding: gzip"),
        "{head}"
    );
    // Another program's files are not given in the place of these: a browser would keep them.
    let older = format!("{page}assets/0{}", script.get(1..).unwrap());
    assert!(script.starts_with('0') || server.request("GET", &older, "", "").status == 404);
    for path in ["assets/../../../etc/passwd", "assets/%2e%2e%2fetc", "api/v1/../session", "api/v2/session"] {
        let status = server.request("GET", &format!("{page}{path}"), "", "").status;
        assert!([403, 404, 405].contains(&status), "{path}: {status}");
    }
}

#[test]
fn bad_questions_are_answered_in_words() {
    let server = Server::start(&["--demo"]);
    let wrong = server.ask("sql", &sql("SELECT nothing FROM nowhere"));
    assert!(wrong.status == 400 && wrong.error().contains("nowhere"), "{}", wrong.error());
    let wrong = server.ask("sql", &sql("DROP TABLE sample"));
    assert_eq!(wrong.status, 400);
    let wrong = server.ask("sql", &serde_json::json!({ "trace": 7, "sql": "SELECT 1" }));
    assert!(wrong.status == 404 && wrong.error().contains("no trace 7"));
    let page = format!("/{}/api/v1/sql", server.token);
    assert_eq!(server.request("POST", &page, "", "{").status, 400);
    assert_eq!(server.request("POST", &page, "", "[]").status, 400);
    assert_eq!(server.request("POST", &page, "", &"x".repeat(2 << 20)).status, 413);
    assert_eq!(server.ask("no_such_thing", &serde_json::json!({})).status, 404);
    assert_eq!(server.ask("select", &serde_json::json!({ "finding": "no.such" })).status, 404);
    assert_eq!(server.ask("knowledge", &serde_json::json!({ "name": "" })).status, 400);
    let known = server.ask("knowledge", &serde_json::json!({ "name": "WdFilter.sys" })).json();
    assert_eq!(known["module"]["security"], true);
}

#[test]
fn two_hundred_questions_at_a_time() {
    let server = Server::start(&["--demo"]);
    let first = server.ask("sql", &sql("SELECT count(*) AS n, sum(weight_ns) AS ns FROM sample"));
    assert_eq!(first.status, 200);
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..200)
            .map(|_| {
                scope.spawn(|| {
                    server.ask("sql", &sql("SELECT count(*) AS n, sum(weight_ns) AS ns FROM sample"))
                })
            })
            .collect();
        for one in asked {
            let answer = one.join().unwrap();
            assert_eq!(answer.status, 200);
            assert_eq!(answer.body, first.body);
        }
    });
}

#[test]
fn work_ends_when_the_client_goes_away() {
    let server = Server::start(&["--demo"]);
    // Each would take hours, and there are more than may run at a time: if they went on, nothing else would be answered.
    let endless = sql("SELECT count(*) FROM sample a, sample b, sample c").to_string();
    let path = format!("/{}/api/v1/sql", server.token);
    let streams: Vec<TcpStream> = (0..64).map(|_| server.send("POST", &path, "", &endless)).collect();
    std::thread::sleep(Duration::from_millis(300));
    drop(streams);
    assert_eq!(server.ask("sql", &sql("SELECT 1 AS one")).status, 200);
    assert_eq!(server.ask("session", &serde_json::json!({})).status, 200);
}

#[test]
fn traces_are_opened_beside_each_other_unless_that_is_forbidden() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("second.etl");
    ETWHY.demo(&trace);
    let nonsense = folder.path().join("notes.txt");
    std::fs::write(&nonsense, "no trace").unwrap();
    // A file that is no trace does not keep the other from being shown.
    let server = Server::start(&[trace.str(), nonsense.str()]);
    let stages = |session: &serde_json::Value| {
        let traces = session["traces"].list().iter();
        traces.map(|t| (t["name"].str().to_owned(), t["stage"].str().to_owned())).collect::<Vec<_>>()
    };
    let pair = |name: &str, stage: &str| (name.to_owned(), stage.to_owned());
    let session = server.settle();
    assert_eq!(stages(&session), [pair("second.etl", "ready"), pair("notes.txt", "failed")]);
    assert!(session["traces"][1]["error"].str().contains("notes.txt"), "{session}");
    let opened = server.ask("open", &serde_json::json!({ "path": trace }));
    assert_eq!((opened.status, opened.json()["trace"].as_u64()), (200, Some(2)));
    assert_eq!(stages(&server.settle())[2], pair("second.etl", "ready"));
    let listed = server.ask("folder", &serde_json::json!({ "path": folder.path() })).json();
    let of_traces: Vec<&serde_json::Value> =
        listed["entries"].list().iter().filter(|one| one["trace"] == true).collect();
    assert!(matches!(of_traces.as_slice(), [one] if one["name"] == "second.etl"), "{listed}");
    assert_eq!(server.ask("folder", &serde_json::json!({ "path": "/" })).status, 404);
    let readonly = Server::start(&["--demo", "--readonly"]);
    for (name, body) in [("open", serde_json::json!({ "path": trace })), ("folder", serde_json::json!({}))] {
        assert_eq!(readonly.ask(name, &body).status, 403);
    }
    assert_eq!(readonly.ask("session", &serde_json::json!({})).json()["readonly"], true);
}

/// What a trace costs if its process is killed: itself, until it is read again.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_process_costs_its_trace_alone_and_none_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.etl"), folder.path().join("b.etl"));
    ETWHY.demo(&a);
    std::fs::copy(&a, &b).unwrap();
    let server = Server::start(&[a.str(), b.str()]);
    let processes = || -> Vec<String> {
        let children = format!("/proc/{0}/task", server.pid());
        let tasks = std::fs::read_dir(children).unwrap().flatten();
        let text = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        text.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    let all = processes();
    assert_eq!(all.len(), 2, "one for each trace");
    let line = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    let reads_a = |pid: &&String| {
        line(pid).split('\0').any(|word| word.strip_prefix("--of=").is_some_and(|of| of.ends_with("a.etl")))
    };
    let of_a = all.iter().find(reads_a);
    assert!(std::process::Command::new("kill").args(["-9", of_a.unwrap()]).status().unwrap().success());
    let ended = || server.ask("session", &serde_json::json!({})).json()["traces"][0]["stage"] == "ended";
    while !ended() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ask =
        |trace: u32| server.ask("sql", &serde_json::json!({ "trace": trace, "sql": "SELECT 1 AS one" }));
    let refused = ask(0);
    assert!(refused.status == 409 && refused.error().contains("read again"), "{}", refused.error());
    assert_eq!(ask(1).status, 200);
    assert_eq!(server.ask("open", &serde_json::json!({ "trace": 0 })).status, 200);
    server.settle();
    assert_eq!(ask(0).status, 200);
    let left = processes();
    drop(server);
    // The server was killed: what it started ends by itself.
    for _ in 0..500 {
        let alive = |pid: &String| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.contains("--worker"))
        };
        if !left.iter().any(alive) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("processes outlive their server: {left:?}");
}

#[test]
fn a_token_of_ones_own_survives_a_restart_and_stays_off_other_command_lines() {
    const TOKEN: &str = "a-long-word-of-mine";
    let server = Server::start(&["--demo", "--token", TOKEN]);
    assert_eq!(server.token, TOKEN);
    let again = Server::start(&["--demo", "--token", TOKEN]);
    let id = |server: &Server| {
        server.ask("session", &serde_json::json!({})).json()["traces"][0]["trace_id"].str().to_owned()
    };
    assert!(!id(&server).is_empty() && id(&server) == id(&again), "a link names the trace by it");
    if cfg!(target_os = "linux") {
        let holders = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            line.contains(TOKEN) && line.contains("--worker")
        });
        assert_eq!(holders.count(), 0);
    }
    for (option, why) in [("short", "16 to 200"), ("sixteen/letters..", "letters, digits")] {
        let refused = ETWHY.command(&["serve", "--demo", "--token", option]).outcome();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(why), "{said}");
    }
}

/// The verdict of a range is that of `etwhy why --from --to`, and parts add up to the whole.
#[test]
fn the_verdict_of_a_range_is_that_of_why() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = |name: &str| {
        let trace = folder.path().join(format!("{name}.etl"));
        let file = etwhy_testkit::root().join("scenarios").join(format!("{name}.toml"));
        ETWHY.synth(&file, &trace, &["--scale", "0.1"]);
        trace
    };
    let corpus = etwhy_testkit::corpus_file("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl");
    let traces = ["dpc_flood", "syscall_hook", "antivirus_opens"].map(scenario);
    for trace in traces.into_iter().chain(corpus) {
        let server = Server::start(&[trace.str(), "--offline"]);
        let info = server.ask("session", &serde_json::json!({})).json()["traces"][0].clone();
        let (first, last) = (info["first_ns"].int(), info["last_ns"].int());
        let cuts = [first, first + (last - first) / 3, first + (last - first) / 2, last + 1];
        let (mut samples, mut events) = (0, 0);
        for part in cuts.windows(2) {
            let times =
                ["--from", &format!("{}ns", part[0]), "--to", &format!("{}ns", part[1])].map(str::to_owned);
            let line = ["why", trace.str(), "--offline", "--quiet", "--top", "20", "--json"];
            let printed = ETWHY.command(&line).args(times).outcome().stdout;
            let of_why: serde_json::Value = serde_json::from_slice(&printed).unwrap();
            let body = serde_json::json!({ "trace": 0, "range": part });
            let of_page = server.ask("verdict", &body).json();
            assert_eq!(of_page["report"], of_why, "{} {part:?}", trace.display());
            samples += of_why["cpu"]["samples"].int();
            events += of_why["quality"]["events"].int();
        }
        let whole = server.ask("report", &serde_json::json!({})).json();
        assert_eq!(samples, whole["cpu"]["samples"].int(), "{}", trace.display());
        assert_eq!(events, whole["quality"]["events"].int(), "{}", trace.display());
        let all = server.ask("verdict", &serde_json::json!({ "trace": 0 })).json();
        assert_eq!(all["report"]["findings"], whole["findings"]);
        let process = serde_json::json!({ "trace": 0, "filters": [{ "kind": "process", "value": 0 }, { "kind": "cpu", "value": 0 }] });
        let of_process = server.ask("verdict", &process).json();
        assert!(
            of_process["processes"][0]["name"].is_string()
                && of_process["unused"] == serde_json::json!(["processor"])
        );
        // Two processes are either of them; one that is excluded is neither.
        let filter = |n: i64, not: bool| serde_json::json!({ "kind": "process", "value": n, "not": not });
        let ask = |filters: Vec<serde_json::Value>| {
            server.ask("verdict", &serde_json::json!({ "trace": 0, "filters": filters })).json()
        };
        let (both, one) = (ask(vec![filter(0, false), filter(1, false)]), ask(vec![filter(0, true)]));
        assert_eq!(both["processes"].as_array().map(Vec::len), Some(2), "{both}");
        assert_eq!(one["processes"].as_array().map(Vec::len), Some(0), "{one}");
        assert_eq!(one["excluded"][0], of_process["processes"][0], "{one}");
    }
}

#[test]
fn notes_are_kept_beside_their_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("a.etl");
    ETWHY.demo(&trace);
    let server = Server::start(&[trace.str()]);
    let file = folder.path().join("a.etl.notes.json");
    let empty = server.ask("notes", &serde_json::json!({ "trace": 0 })).json();
    assert!(empty["notes"].is_null() && empty["version"] == "", "{empty}");
    let keep = |version: &str, text: &str| {
        server.ask(
            "notes",
            &serde_json::json!({ "trace": 0, "version": version, "notes": { "flags": [text] } }),
        )
    };
    let kept = keep("", "here");
    assert_eq!(kept.status, 200);
    assert!(std::fs::read_to_string(&file).unwrap().contains("here"));
    assert_eq!(keep("", "there").status, 409, "another page was faster");
    assert_eq!(keep(kept.json()["version"].str(), "there").status, 200);
    assert_eq!(keep(kept.json()["version"].str(), &"x".repeat(2 << 20)).status, 413);
    #[cfg(unix)]
    {
        std::fs::remove_file(&file).unwrap();
        let secret = folder.path().join("secret.json");
        std::fs::write(&secret, "{}").unwrap();
        std::os::unix::fs::symlink(&secret, &file).unwrap();
        assert_eq!(keep("", "away").status, 403);
        assert_eq!(std::fs::read_to_string(secret).unwrap(), "{}");
    }
    let demo = Server::start(&["--demo"]);
    assert!(demo.ask("notes", &serde_json::json!({})).json()["file"].is_null());
}

#[test]
fn tables_that_are_left_out_say_so() {
    let server = Server::start(&["--demo", "--without", "event,isr"]);
    let schema = server.ask("schema", &serde_json::json!({})).json();
    let tables = schema["tables"].list();
    let table = |name: &str| tables.iter().find(|t| t["name"] == name).unwrap().clone();
    assert_eq!(table("event")["rows"], 0);
    assert!(table("event")["why_empty"].str().contains("--without event"));
    assert!(table("sample")["rows"].uint() > 0);
    let wrong = ETWHY.command(&["serve", "--demo", "--without", "evnt"]).outcome();
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("evnt"));
}

/// The table of all events is made when somebody asks for it: the same one that a whole pass makes, with the ids of the tables
/// that were there before.
#[test]
fn events_are_made_when_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo.etl");
    ETWHY.demo(&demo);
    let real = etwhy_testkit::corpus_file("etl/microsoft+perfview/net.4.5.x86_PerfViewData.etl");
    for trace in [Some(demo), real].into_iter().flatten() {
        let server = Server::start(&[trace.str(), "--offline"]);
        let rows = || {
            let schema = server.ask("schema", &serde_json::json!({})).json();
            let event = schema["tables"].list().iter().find(|t| t["name"] == "event").unwrap().clone();
            (event["rows"].int(), event["why_empty"].clone())
        };
        let before = rows();
        assert!(before.0 > 0 && before.1.is_null(), "{before:?}");
        // Several at once wait for the same one, and one that goes away takes nobody else's.
        let query = "SELECT count(*) AS n, count(DISTINCT e.provider) AS providers, sum(e.ts_ns % 1000003) AS ts, \
                     sum(coalesce(e.stack_id, -1) % 1009) AS stacks, sum(length(e.fields)) AS fields, \
                     count(t.name) AS named, count(p.name) AS owned, min(e.event_type_id) AS types \
                     FROM event e LEFT JOIN event_type t ON t.event_type_id = e.event_type_id \
                     LEFT JOIN process p ON p.upid = e.upid";
        let body = sql(query).to_string();
        drop(server.send("POST", &format!("/{}/api/v1/sql", server.token), "", &body));
        let answers: Vec<_> = std::thread::scope(|scope| {
            let ask = || server.ask("sql", &sql(query));
            let waiting: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            waiting.into_iter().map(|one| one.join().unwrap()).collect()
        });
        for answer in &answers {
            assert_eq!((answer.status, &answer.body), (200, &answers[0].body));
        }
        assert_eq!(rows(), before);
        let extract = folder.path().join("all");
        ETWHY.partly().run(&["extract", trace.str(), "--quiet", "--offline", "-o", extract.str()]);
        let of_extract = Server::start(&[extract.str()]).ask("sql", &sql(query));
        assert_eq!((of_extract.status, &of_extract.body), (200, &answers[0].body));
        std::fs::remove_dir_all(&extract).unwrap();
    }
}

#[test]
fn an_extract_is_served_like_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let extract = folder.path().join("extract");
    let status = ETWHY.command(&["extract", "--demo", "--quiet", "-o"]).arg(&extract).status();
    assert!(status.unwrap().success());
    let (of_trace, of_extract) = (Server::start(&["--demo"]), Server::start(&[extract.str()]));
    let query = sql("SELECT upid, sum(weight_ns) AS ns FROM sample GROUP BY upid ORDER BY ns DESC");
    let (a, b) = (of_trace.ask("sql", &query), of_extract.ask("sql", &query));
    assert_eq!((a.status, b.status), (200, 200));
    assert_eq!(a.body, b.body);
}
