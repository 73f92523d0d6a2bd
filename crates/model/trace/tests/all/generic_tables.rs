//! Services, threads, connections, intervals and sessions of the two traces of PerfView. The figures were counted by
//! dissect.etl, which shares no code with this project, with payload structures written by hand.

use crate::support::{corpus, number, pass, rows, table, text, walk};
use etwhy_decode::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const X64: &str = "net.4.5.2.x64.etl";
const X86: &str = "net.4.5.x86_PerfViewData.etl";

fn trace(name: &str) -> Option<PathBuf> {
    Some(corpus()?.join("microsoft+perfview").join(name))
}

/// Every service record is a row with its process, and threads with a tag belong to a service of their process.
#[test]
fn services_are_those_of_the_records() {
    for path in [X64, X86].into_iter().filter_map(trace) {
        let mut raw: BTreeSet<(String, i64, i64)> = BTreeSet::new();
        walk(&path, |_, _, decoded, _| {
            let Some((schema, fields)) = decoded.filter(|(s, _)| &*s.name == "SystemConfig/Services") else {
                return;
            };
            let get = |name| fields.get(schema, name).and_then(Value::as_u64).unwrap() as i64;
            let name = fields.get(schema, "ServiceName").and_then(Value::as_text).unwrap().to_str();
            raw.insert((name.into_owned(), get("ProcessId"), get("SubProcessTag")));
        });
        let output = pass(&path, "service process thread");
        let (services, processes) = (table(&output, "service"), table(&output, "process"));
        let seen: BTreeSet<(String, i64, i64)> = rows(services)
            .map(|row| {
                let get = |column| number(services, row, column).unwrap_or(0);
                (text(services, row, "name").to_owned(), get("pid"), get("tag"))
            })
            .collect();
        assert_eq!(seen, raw);
        for row in rows(services) {
            let running = text(services, row, "state") == "running";
            let upid = number(services, row, "upid").map(|u| u as u32);
            assert_eq!(upid.is_some(), running, "{}", text(services, row, "name"));
            if let Some(upid) = upid {
                assert_eq!(number(processes, upid, "pid"), number(services, row, "pid"));
                assert_eq!(text(processes, upid, "name"), text(services, row, "process_name"));
            }
        }
        let threads = table(&output, "thread");
        let named = rows(threads).filter(|&row| !text(threads, row, "service").is_empty()).count();
        let start = rows(threads).filter(|&row| !text(threads, row, "start_module").is_empty()).count();
        println!("{} services, {named} of {} threads work for one", services.rows(), threads.rows());
        println!("{start} threads have a start module");
        assert!(named > 100 && start * 10 >= threads.rows() * 9);
        // The DNS cache's own threads begin in its library.
        let dns = rows(threads).find(|&r| text(threads, r, "service") == "Dnscache").unwrap();
        assert_eq!(text(threads, dns, "start_module"), "dnsrslvr.dll");
    }
}

/// (local port, remote port, sends, bytes sent, receives, bytes received, copies).
type Connection = (i64, i64, i64, i64, i64, i64, i64);

#[test]
fn connections_are_those_of_the_records() {
    let expected: [(&str, &[Connection]); 2] = [
        (
            X64,
            &[
                (64022, 445, 63, 3_089_665, 63, 6_905, 0),
                (64023, 445, 59, 2_825_702, 61, 17_658, 0),
                (64024, 445, 58, 2_629_303, 61, 13_321, 0),
                (64025, 445, 60, 2_891_718, 65, 42_681, 0),
            ],
        ),
        (
            X86,
            &[
                (3389, 31055, 32, 2_576, 4, 308, 0),
                (50271, 2869, 1, 323, 5, 5_904, 5),
                (50272, 2869, 1, 206, 4, 5_615, 5),
            ],
        ),
    ];
    for (name, expected) in expected {
        let Some(path) = trace(name) else { return };
        let output = pass(&path, "tcp_connection");
        let connections = table(&output, "tcp_connection");
        let mut seen: Vec<Connection> = rows(connections)
            .map(|row| {
                let get = |column| number(connections, row, column).unwrap();
                let (sent, received) = (get("sent_bytes"), get("received_bytes"));
                let ports = (get("local_port"), get("remote_port"));
                (ports.0, ports.1, get("sends"), sent, get("receives"), received, get("copies"))
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, expected, "{name}");
    }
}

/// Name, pairs and their summed durations, ns.
type Pairs = &'static [(&'static str, u64, i64)];

#[test]
fn intervals_are_those_of_the_records() {
    let expected: [(&str, Pairs); 2] = [
        (
            X64,
            &[
                ("GC", 264, 35_777_800),
                ("ImmersiveShellAppManagerOnShellHookMessage", 2, 26_730_100),
                ("ImmersiveShellAppManagerSetActiveProcess", 2, 26_374_500),
                ("Rundown", 1, 2_529_601_300),
                ("TaskExecute", 1, 345_800),
                ("Tracing", 1, 9_732_910_000),
            ],
        ),
        (X86, &[("GC", 1050, 101_465_200), ("Rundown", 1, 2_545_768_500)]),
    ];
    for (name, expected) in expected {
        let Some(path) = trace(name) else { return };
        let output = pass(&path, "interval");
        let intervals = table(&output, "interval");
        let mut seen: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
        for row in rows(intervals).filter(|&row| text(intervals, row, "state") == "complete") {
            let sum = seen.entry(text(intervals, row, "name")).or_default();
            *sum = (sum.0 + 1, sum.1 + number(intervals, row, "dur_ns").unwrap());
        }
        let seen: Vec<(&str, u64, i64)> = seen.into_iter().map(|(name, (n, sum))| (name, n, sum)).collect();
        assert_eq!(seen, expected, "{name}");
    }
}

/// No kernel class of the corpus looks as if somebody had taken its session.
#[test]
fn whole_recordings_have_no_silent_classes() {
    for path in [X64, X86].into_iter().filter_map(trace) {
        let output = pass(&path, "kernel_class logger_provider sample");
        let classes = table(&output, "kernel_class");
        assert!(rows(classes).all(|row| number(classes, row, "stopped") == Some(0)));
        let profile = rows(classes).find(|&row| text(classes, row, "class") == "PROFILE").unwrap();
        let samples = i64::try_from(table(&output, "sample").rows()).unwrap();
        assert_eq!(number(classes, profile, "events"), Some(samples));
        let providers = table(&output, "logger_provider");
        assert!(rows(providers).all(|row| text(providers, row, "session") == "PerfViewSession"));
    }
}
