//! Tables of processes, services, sessions, network, intervals and power, on small written traces whose figures stand
//! in the scenarios below: counts are exact, times are those that were written.

use crate::{Are as _, ETWHY, Str as _};
use serde_json::Value;
use std::path::Path;

fn rows(trace: &Path, table: &str, more: &[&str]) -> Vec<Value> {
    let trace = trace.str();
    let mut answers = Vec::new();
    for threads in ["1", "2"] {
        let mut arguments = vec!["dump", table, trace, "--format", "jsonl", "--quiet", "--threads", threads];
        arguments.extend(more);
        answers.push(ETWHY.run(&arguments));
    }
    assert_eq!(answers[0], answers[1], "{table}: 1 and 2 threads");
    answers[0].lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text<'v>(row: &'v Value, column: &str) -> &'v str {
    row.get(column).unwrap_or_else(|| panic!("no column {column}")).as_str().unwrap_or("")
}

fn number(row: &Value, column: &str) -> Option<i64> {
    row.get(column).unwrap_or_else(|| panic!("no column {column}")).as_i64()
}

const MS: i64 = 1_000_000;

#[test]
fn processes_and_services() {
    let trace = ETWHY.scenario(
        r#"
[machine]
cpus = 2
duration = "10s"
samples = false

[[process]]
name = "host.exe"
services = ["Alpha", "Beta"]
threads = [{ name = "main" }, { name = "alpha", service_tag = 1 }, { name = "beta", service_tag = 2 }]

[[process]]
name = "build.exe"
start = "1s"
end = "9s"

[[process]]
name = "tool.exe"
parent = "build.exe"
start = "2s"
end = "2500ms"
count = 5
every = "1s"
exit_code = -1073741819

[[process]]
name = "killed.exe"
start = "1s"
end = "2s"
exit_code = -1073741510

[[event]]
process = "host.exe"
thread = "main"
type = "Thread/SubProcessTagChanged"
header = "system"
at = ["5s"]
fields = { OldTag = 1, NewTag = 2 }

[[page_fault]]
process = "host.exe"
thread = "alpha"
count = 30
op = "demand_zero"

[[file_io]]
process = "host.exe"
thread = "beta"
op = "read"
count = 20
file = 'C:\beta.dat'
"#,
    );
    let processes = rows(&trace, "process", &[]);
    let find = |name: &str| processes.iter().find(|p| text(p, "name") == name).unwrap();
    let tool = find("tool.exe");
    assert_eq!(text(tool, "exit_name"), "STATUS_ACCESS_VIOLATION");
    assert_eq!((text(tool, "exit_kind"), number(tool, "dur_ns")), ("crash", Some(500 * MS)));
    assert!(
        text(tool, "ancestry").ends_with("build.exe (1008)")
            || text(tool, "ancestry").contains("build.exe (")
    );
    assert_eq!(text(find("killed.exe"), "exit_kind"), "killed");
    assert_eq!(text(find("build.exe"), "exit_kind"), "normal");
    assert_eq!(text(find("host.exe"), "exit_kind"), "running");
    assert_eq!(text(find("host.exe"), "services"), "Alpha, Beta");

    let starts = rows(&trace, "process_start", &["--where", "name=tool.exe"]);
    assert_eq!(starts.len(), 5);
    for (n, start) in starts.iter().enumerate() {
        assert_eq!(number(start, "n"), Some(n as i64 + 1));
        assert_eq!((text(start, "parent"), number(start, "dur_ns")), ("build.exe", Some(500 * MS)));
        assert_eq!(number(start, "since_last_ns"), (n > 0).then_some(1000 * MS));
        assert_eq!(number(start, "alive"), Some(0));
    }
    let rates = rows(&trace, "process_rate", &["--where", "name=tool.exe"]);
    let started: i64 = rates.iter().filter_map(|r| number(r, "started")).sum();
    let ended: i64 = rates.iter().filter_map(|r| number(r, "ended")).sum();
    assert_eq!((started, ended), (5, 5));

    let services = rows(&trace, "service", &[]);
    let names: Vec<&str> = services.iter().map(|s| text(s, "name")).collect();
    assert_eq!(names, ["Alpha", "Beta"]);
    assert!(services.iter().all(|s| text(s, "state") == "running" && number(s, "threads") == Some(2)));
    // The main thread worked for both, as its changed tag says.
    let threads = rows(&trace, "thread", &["--service", "alpha"]);
    let found: Vec<_> = threads.iter().map(|t| (text(t, "name"), text(t, "service"))).collect();
    assert_eq!(found, [("main", "Alpha, Beta"), ("alpha", "Alpha")]);
    assert_eq!(rows(&trace, "service", &["--service", "beta"]).len(), 1);
    let (code, _, errors) = ETWHY.ran(&["dump", "thread", trace.str(), "--service", "gamma", "--quiet"]);
    assert!(code != 0 && errors.contains("no service matches `gamma`"), "{errors}");
}

#[test]
fn connections_and_network_use() {
    let trace = ETWHY.scenario(
        r#"
[machine]
cpus = 2
duration = "10s"
samples = false

[[process]]
name = "client.exe"

[[network]]
process = "client.exe"
op = "connect"
at = ["1s", "6s"]
local = "10.0.0.5:50001"
remote = "10.0.0.9:443"

[[network]]
process = "client.exe"
op = "send"
at = ["1100ms", "1200ms", "6100ms"]
size = 1000
local = "10.0.0.5:50001"
remote = "10.0.0.9:443"

[[network]]
process = "client.exe"
op = "receive"
at = ["1150ms", "1300ms"]
size = 3000
local = "10.0.0.5:50001"
remote = "10.0.0.9:443"

[[network]]
process = "client.exe"
op = "retransmit"
at = ["1400ms"]
size = 1000
local = "10.0.0.5:50001"
remote = "10.0.0.9:443"

[[network]]
process = "client.exe"
op = "disconnect"
at = ["3s"]
local = "10.0.0.5:50001"
remote = "10.0.0.9:443"

[[network]]
process = "client.exe"
protocol = "udp"
op = ["send", "receive"]
count = 14
size = 100
local = "[::1]:5353"
remote = "[ff02::fb]:5353"
"#,
    );
    let found = rows(&trace, "tcp_connection", &[]);
    assert_eq!(found.len(), 2, "{found:?}");
    let first = &found[0];
    assert_eq!((text(first, "local"), text(first, "remote")), ("10.0.0.5:50001", "10.0.0.9:443"));
    assert_eq!((text(first, "role"), number(first, "dur_ns")), ("client", Some(2000 * MS)));
    assert_eq!((number(first, "sent_bytes"), number(first, "received_bytes")), (Some(2000), Some(6000)));
    assert_eq!((number(first, "sends"), number(first, "receives")), (Some(2), Some(2)));
    assert_eq!((number(first, "retransmits"), number(first, "first_response_ns")), (Some(1), Some(50 * MS)));
    let second = &found[1];
    assert_eq!((number(second, "sent_bytes"), number(second, "dur_ns")), (Some(1000), None));
    let usage = rows(&trace, "network_usage", &[]);
    let udp = usage.iter().find(|u| text(u, "protocol") == "udp").unwrap();
    assert_eq!((text(udp, "remote"), number(udp, "sent_bytes")), ("ff02::fb", Some(700)));
    assert_eq!((number(udp, "received_bytes"), usage.len()), (Some(700), 2));
    let tcp = usage.iter().find(|u| text(u, "protocol") == "tcp").unwrap();
    assert_eq!((number(tcp, "connections"), number(tcp, "sends")), (Some(2), Some(3)));
}

#[test]
fn queries_intervals_and_power() {
    let dns = |id: u32, at: &str, fields: &str| {
        format!(
            "[[manifest_event]]\nprocess = \"app.exe\"\nprovider = \"1c95126e-7eea-49a9-a3fe-a378b03ddb4d\"\n\
             id = {id}\nat = [\"{at}\"]\nfields = [{fields}]\n"
        )
    };
    let n = |ty: &str, value: u64| format!("{{ type = \"{ty}\", value = {value} }}");
    let (u32_, u64_, u16_) = (|v| n("u32", v), |v| n("u64", v), |v| n("u16", v));
    let zero = u32_(0);
    let mut scenario = String::from(
        "[machine]\ncpus = 2\nduration = \"10s\"\nsamples = false\n[[process]]\nname = \"app.exe\"\n",
    );
    let query = |name: &str, kind: u64| format!("\"{name}\", {}, {}", u32_(kind), u64_(0x4000_0000));
    let called =
        |name: &str, kind: u64| format!("{}, \"\", {zero}, {zero}, {zero}, {zero}", query(name, kind));
    scenario += &dns(3006, "1s", &called("www.example.com", 1));
    scenario += &dns(3010, "1010ms", &format!("\"www.example.com\", {}, \"10.0.0.1\"", u32_(1)));
    scenario +=
        &dns(3008, "1040ms", &format!("{}, {zero}, \"93.184.216.34;\"", query("WWW.example.com.", 1)));
    scenario += &dns(3006, "2s", &called("nowhere.example", 28));
    scenario += &dns(3008, "2500ms", &format!("{}, {}, \"\"", query("nowhere.example", 28), u32_(9003)));
    scenario += &dns(3006, "3s", &called("never.example", 1));
    let power = "0f67e49f-fe51-4e9f-b490-6f2948cc6027";
    scenario += &format!(
        "[[manifest_event]]\nprocess = \"app.exe\"\nprovider = \"{power}\"\nid = 10\nversion = 1\nat = [\"4s\"]\n\
         fields = [{zero}, {}, {}, {}, {}]\n",
        u32_(1800),
        u16_(0),
        n("u8", 1),
        u32_(60)
    );
    scenario += &format!(
        "[[manifest_event]]\nprocess = \"app.exe\"\nprovider = \"331c3b3a-2005-44c2-ac5e-77220c37d6b4\"\nid = 95\n\
         at = [\"5s\"]\nfields = [{}]\n",
        u32_(10_000)
    );
    for (opcode, name, at) in [
        (1, "WorkStart", "6s"),
        (1, "WorkStart", "6100ms"),
        (2, "WorkStop", "6200ms"),
        (2, "WorkStop", "6500ms"),
    ] {
        scenario += &format!(
            "[[tracelogging]]\nprocess = \"app.exe\"\nprovider = \"App\"\nname = \"{name}\"\nopcode = {opcode}\n\
             at = [\"{at}\"]\n"
        );
    }
    let trace = ETWHY.scenario(&scenario);

    let found = rows(&trace, "dns_query", &[]);
    assert_eq!(found.len(), 3, "{found:?}");
    let (good, bad, open) = (&found[0], &found[1], &found[2]);
    assert_eq!((text(good, "name"), text(good, "query_type")), ("www.example.com", "A"));
    assert_eq!((number(good, "dur_ns"), text(good, "servers")), (Some(40 * MS), "10.0.0.1"));
    assert_eq!((text(good, "results"), good["cached"].as_bool()), ("93.184.216.34;", Some(false)));
    assert_eq!(
        (text(bad, "status_name"), number(bad, "dur_ns")),
        ("DNS_ERROR_RCODE_NAME_ERROR", Some(500 * MS))
    );
    assert_eq!(text(bad, "query_type"), "AAAA");
    assert_eq!((text(open, "name"), number(open, "dur_ns")), ("never.example", None));

    let frequency = rows(&trace, "cpu_frequency", &[]);
    assert_eq!(frequency.len(), 1);
    let set = &frequency[0];
    assert_eq!(
        (number(set, "cpu"), number(set, "mhz"), number(set, "percent")),
        (Some(1), Some(1800), Some(60))
    );
    let timer = rows(&trace, "timer_resolution", &[]);
    assert_eq!((text(&timer[0], "kind"), number(&timer[0], "period_ns")), ("clock", Some(MS)));

    // The inner one ends first.
    let intervals = rows(&trace, "interval", &["--where", "provider=App"]);
    let times: Vec<_> =
        intervals.iter().map(|i| (number(i, "start_ns"), number(i, "dur_ns"), number(i, "depth"))).collect();
    times.are(&[(Some(6100 * MS), Some(100 * MS), Some(1)), (Some(6000 * MS), Some(500 * MS), Some(0))]);
    assert!(intervals.iter().all(|i| text(i, "name") == "Work" && text(i, "matched") == "thread"));
}

#[test]
fn idle_states() {
    let trace = ETWHY.scenario(
        r#"
[machine]
cpus = 2
duration = "10s"
samples = false

[[event]]
type = "Power/PpmIdleStateEnter"
cpu = 1
at = ["1s", "2s", "3s"]
fields = { State = { cycle = [0, 2, 1] }, ExpectedDuration = 5000 }

[[event]]
type = "Power/PpmIdleStateExit"
cpu = 1
at = ["1010ms", "2300ms"]
fields = { State = { cycle = [0, 1] } }
"#,
    );
    let found = rows(&trace, "idle_state", &[]);
    let seen: Vec<_> =
        found.iter().map(|r| (number(r, "cpu"), number(r, "state"), number(r, "dur_ns"))).collect();
    let one = Some(1);
    assert_eq!(seen, [(one, Some(0), Some(10 * MS)), (one, Some(2), Some(300 * MS)), (one, Some(1), None)]);
}

#[test]
fn a_taken_kernel_session() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.written(
        folder.path(),
        r#"
[machine]
cpus = 2
duration = "10s"
samples = false
rundown_end = false
session = "NT Kernel Logger"
log_file = 'C:\kernel.etl'

[[process]]
name = "app.exe"

[[event]]
process = "app.exe"
type = "PerfInfo/SampledProfile"
rate = 1000
to = "4s"
fields = { ThreadId = "tid", Count = 1 }

[[tracelogging]]
process = "app.exe"
provider = "App"
name = "Tick"
rate = 10
"#,
    );
    let classes = rows(&trace, "kernel_class", &[]);
    let profile = classes.iter().find(|c| text(c, "class") == "PROFILE").unwrap();
    assert_eq!((number(profile, "events"), profile["stopped"].as_bool()), (Some(4000), Some(true)));
    assert!(text(profile, "reason").contains("all kernel events stop there"), "{profile}");
    // What xperf printed while the foreign session had the kernel's events, as PowerShell saves it.
    let listed = "Logger Name           : NT Kernel Logger\r\nLogger Id             : ffff\r\n\
                  Log Filename          : PaloNull\r\nTrace Flags           : SYSCALL\r\n";
    let utf16: Vec<u8> = listed.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let saved = [b"\xFF\xFE", utf16.as_slice()].concat();
    let given = folder.path().join("elsewhere.txt");
    std::fs::write(&given, &saved).unwrap();
    assert_eq!(rows(&trace, "logger", &["--where", "source=text"]).len(), 0);
    let check = |more: &[&str], from: &str| {
        let found = rows(&trace, "logger", &[&["--where", "source=text"], more].concat());
        assert_eq!(found.len(), 1);
        assert_eq!((text(&found[0], "log_file"), text(&found[0], "kernel_flags")), ("PaloNull", "SYSCALL"));
        assert!(text(&found[0], "conflict").ends_with("but holds SYSCALL"), "{}", found[0]);
        assert_eq!(text(&found[0], "listed_by"), format!("xperf in {from}"));
    };
    check(&["--loggers", given.str()], "elsewhere.txt");
    std::fs::write(folder.path().join("s.etl.loggers.txt"), &saved).unwrap();
    check(&[], "s.etl.loggers.txt");
    let (code, _, errors) = ETWHY.ran(&["dump", "logger", trace.str(), "--loggers", "/no/such/file", "-q"]);
    assert!(code != 0 && errors.contains("cannot read"), "{errors}");
}

#[test]
fn an_empty_table_says_what_to_record() {
    let trace = ETWHY
        .scenario("[machine]\ncpus = 2\nduration = \"1s\"\nsamples = true\n[[process]]\nname = \"a.exe\"\n");
    let dump = |table: &str, more: &[&str]| {
        let mut arguments = vec!["dump", table, trace.str(), "--quiet"];
        arguments.extend(more);
        let (code, out, errors) = ETWHY.ran(&arguments);
        assert!(code == 0, "{errors}");
        (out, errors)
    };
    for (table, profile) in
        [("syscall", "syscall"), ("ui_delay", "ui"), ("pool", "memory"), ("registry", "registry")]
    {
        let (_, errors) = dump(table, &[]);
        let wanted = format!(
            "table {table} is empty: none of its events were recorded; record: etwhy record --print {profile}"
        );
        assert!(errors.contains(&wanted), "{errors}");
    }
    let (_, errors) = dump("unobserved", &[]);
    assert!(errors.contains("no buffers are missing") && !errors.contains("etwhy record"), "{errors}");
    // Rows that a condition leaves out were recorded.
    assert!(!dump("process", &["--where", "name=nobody"]).1.contains("is empty"));
    let (out, errors) = dump("registry", &["--format", "csv"]);
    assert!(!out.contains("is empty") && errors.contains("is empty"), "{out}{errors}");
}

/// Zeros that come from an empty table would look like facts of the trace.
#[test]
fn a_query_says_which_of_its_tables_were_not_recorded() {
    let trace = ETWHY
        .scenario("[machine]\ncpus = 2\nduration = \"1s\"\nsamples = true\n[[process]]\nname = \"a.exe\"\n");
    let ask = |query: &str, more: &[&str]| {
        let (code, out, errors) = ETWHY.ran(&[&["sql", trace.str(), "-c", query], more].concat());
        assert!(code == 0 && !out.contains("is empty"), "{query}: {out}{errors}");
        errors
    };
    let none = "none of its events were recorded; record: etwhy record --print";
    let syscalls = format!("etwhy: table syscall is empty: {none} syscall\n");
    for query in [
        "SELECT count(*) AS n FROM syscall",
        "SELECT p.name, count(s.ts_ns) AS calls FROM process AS p LEFT JOIN syscall AS s USING (upid) GROUP BY 1",
    ] {
        assert_eq!(ask(query, &[]), syscalls, "{query}");
        assert_eq!(ask(query, &["--quiet"]), "", "{query}");
    }
    // Of what is made from other tables, those.
    let disks = format!("etwhy: table disk_cost (made from disk_io) is empty: {none} file\n");
    for query in ["SELECT sum(count) AS n FROM disk_cost", "SELECT * FROM disk_by_process"] {
        assert_eq!(ask(query, &[]), disks, "{query}");
    }
    let both = ask("SELECT (SELECT count(*) FROM syscall) AS a, (SELECT count(*) FROM disk_io) AS b", &[]);
    let said = "tables disk_io, syscall are empty: none of their events were recorded; record: etwhy record --print file,syscall\n";
    assert!(both.ends_with(said) && both.lines().count() == 1, "{both}");
    // What was recorded, and names of columns that are names of tables.
    for query in [
        "SELECT count(*) AS n FROM sample WHERE cpu = 99",
        "SELECT upid, syscall FROM (SELECT 1 AS upid, 0 AS syscall) AS t",
        "SELECT name, pid FROM process",
    ] {
        assert_eq!(ask(query, &[]), "", "{query}");
    }
    let errors = ETWHY.ran(&["dump", "disk_cost", trace.str(), "--quiet"]).2;
    assert!(errors.contains("table disk_cost (made from disk_io) is empty"), "{errors}");
}

#[test]
fn without_readythread_waits_hold_the_time_in_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios/tables/cswitch.toml");
    let trace = ETWHY.written(folder.path(), &std::fs::read_to_string(scenario).unwrap());
    let off = |trace: &Path| -> i64 {
        let of_one = |row: &Value| {
            // Of these every wait is ended by a ReadyThread.
            let waited =
                text(row, "process").starts_with("store.exe") && !text(row, "wait_reason").is_empty();
            let both = number(row, "wait_sum_ns").unwrap() + number(row, "ready_sum_ns").unwrap();
            if waited { both } else { 0 }
        };
        rows(trace, "wait_cost", &[]).iter().map(of_one).sum()
    };
    let all = off(&trace);
    // ReadyThread (group 5, type 50) becomes a type that does not exist.
    let mut bytes = std::fs::read(&trace).unwrap();
    for at in 0..bytes.len() - 8 {
        if matches!(bytes[at..at + 8], [0x10 | 0x11, 0xC0, _, _, 0x32, 0x05, ..]) {
            bytes[at + 4] = 0xFA;
        }
    }
    let without = folder.path().join("without.etl");
    std::fs::write(&without, bytes).unwrap();
    assert!(all > 0);
    assert_eq!(off(&without), all);
    assert!(rows(&without, "wait_cost", &[]).iter().all(|row| number(row, "ready_max_ns") == Some(0)));
}
