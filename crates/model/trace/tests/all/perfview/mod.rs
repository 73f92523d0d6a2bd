//! Event by event and field by field against what PerfView makes of the same traces.
//!
//! Every line of the baselines must be found and every field on it must be equal, by itself or by a line of
//! `*.txt` that states how and why PerfView shows it differently. Lines that are no longer needed fail
//! the test too.

mod baseline;
mod judge;
mod rules;
mod tables;
mod value;

use crate::support::{corpus, number, pass, rows, table, text, walk};
use baseline::{Baseline, Line};
use judge::{Verdict, judge};
use rules::{Rule, like};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use tables::Tables;
use value::{Plain, flatten, json_agrees, same};

/// Baselines and their traces.
const TRACES: &[(&str, &str)] = &[
    ("gcevents", "gcevents.PerfViewData.etl"),
    ("net.4.5.2.x64", "net.4.5.2.x64.etl"),
    ("net.4.5.x86", "net.4.5.x86_PerfViewData.etl"),
    ("primitive-types", "primitive-types.etl"),
];

/// One of our events at a time that the baseline mentions.
struct Event {
    /// Place among all events of the trace.
    index: u32,
    name: String,
    fields: Vec<(String, Plain)>,
    pid: Option<u32>,
    tid: Option<u32>,
    cpu: u16,
    data_len: usize,
    ns: i64,
    taken: bool,
}

#[derive(Default)]
struct Tally {
    events: u64,
    fields: u64,
    heads: u64,
    json: u64,
    by_rule: u64,
    /// What differs and how often, with an example.
    wrong: BTreeMap<String, (u64, String)>,
    used: BTreeSet<usize>,
    tolerated: BTreeMap<String, u64>,
}

impl Tally {
    fn differ(&mut self, what: String, example: String) {
        self.wrong.entry(what).or_insert_with(|| (0, example)).0 += 1;
    }
}

fn baseline_of(corpus: &Path, name: &str, trace: &str) -> (Baseline, PathBuf) {
    let text = std::fs::read_to_string(corpus.join(format!("oracles/{name}.baseline.txt"))).unwrap();
    (baseline::parse(&text), corpus.join("microsoft+perfview").join(trace))
}

/// Our names of one of PerfView's events.
fn our_names<'n>(names: &'n [(String, String)], perfview: &'n str) -> Vec<&'n str> {
    let list: Vec<&str> = names.iter().filter(|n| n.0 == perfview).map(|n| n.1.as_str()).collect();
    if list.is_empty() { vec![perfview] } else { list }
}

/// Milliseconds with three digits, rounded half away from zero as .NET does.
fn ms_text(ns: i64) -> String {
    let us = (ns + 500) / 1000;
    format!("{}.{:03}", us / 1000, us % 1000)
}

/// Our events at the baseline's times, the volumes of the trace, and the number of all events.
fn events_of(
    path: &Path,
    baseline: &Baseline,
) -> (HashMap<String, Vec<Event>>, HashMap<String, String>, u32) {
    let wanted: HashSet<&str> = baseline.events.iter().map(|e| e.ms.as_str()).collect();
    let mut by_time: HashMap<String, Vec<Event>> = HashMap::new();
    let mut volumes = HashMap::new();
    let mut index = 0;
    walk(path, |record, ns, decoded, _| {
        let ms = ms_text(ns);
        index += 1;
        if !wanted.contains(ms.as_str()) {
            return;
        }
        let name = decoded.map_or(String::new(), |(s, _)| format!("{}/{}", s.provider, s.name));
        let fields = decoded.map_or(Vec::new(), |(s, d)| flatten(&s.fields, &d.values));
        if name.ends_with("SysConfigEx/VolumeMapping")
            && let [(_, Plain::Text(nt)), (_, Plain::Text(dos))] = &fields[..]
            && nt.len() > 4
        {
            volumes.insert(nt.clone(), dos.clone());
        }
        let ids = record.tid_pid();
        by_time.entry(ms).or_default().push(Event {
            index: index - 1,
            name,
            fields,
            pid: ids.map(|i| i.1),
            tid: ids.map(|i| i.0),
            cpu: record.cpu,
            data_len: record.payload().len(),
            ns,
            taken: false,
        });
    });
    (by_time, volumes, index)
}

#[test]
fn events_and_fields_are_those_of_perfview() {
    let Some(corpus) = corpus() else { return };
    let (names, rules) = (rules::names(), rules::rules());
    let mut tally = Tally::default();
    for (name, trace) in TRACES {
        let (baseline, path) = baseline_of(&corpus, name, trace);
        let (mut by_time, volumes, total) = events_of(&path, &baseline);
        let tables =
            Tables::new(pass(&path, &format!("event trace process thread image file {}", tables::BY_TIME)));
        let judged = Judged { trace, rules: &rules, tables: &tables, volumes: &volumes };
        assert_eq!(table(&tables.output, "event").rows(), total as usize, "{trace}: rows of `event`");
        for line in &baseline.events {
            let ours = our_names(&names, &line.event);
            let here = by_time.get_mut(&line.ms).map_or(&mut [][..], Vec::as_mut_slice);
            let there: Vec<String> = here.iter().map(|e| e.name.clone()).collect();
            let Some(event) = here.iter_mut().find(|e| !e.taken && ours.contains(&e.name.as_str())) else {
                tally.differ(
                    format!("event {}", line.event),
                    format!("{trace} line {} at {} ms: {there:?}", line.number, line.ms),
                );
                continue;
            };
            event.taken = true;
            tally.events += 1;
            judged.head(line, event, &mut tally);
            for (field, theirs) in &line.fields {
                let ours = event.fields.iter().find(|(n, _)| n == field).map(|(_, v)| v);
                tally.fields += 1;
                if !ours.is_some_and(|v| same(theirs, v)) {
                    judged.field(line, field, theirs, event, &mut tally);
                }
            }
            judged.json(line, event, &mut tally);
        }
    }
    for (what, (n, example)) in &tally.wrong {
        println!("WRONG {n:5} {what}: {example}");
    }
    for (line, n) in &tally.tolerated {
        println!("tolerated {n:4} {line}");
    }
    let idle: Vec<&str> =
        (0..rules.len()).filter(|i| !tally.used.contains(i)).map(|i| rules[i].line.as_str()).collect();
    println!(
        "{} events, {} fields ({} by {} rules, {} tolerated), {} header values, {} JSON values",
        tally.events,
        tally.fields,
        tally.by_rule,
        tally.used.len(),
        tally.tolerated.values().sum::<u64>(),
        tally.heads,
        tally.json
    );
    assert!(tally.wrong.is_empty(), "{} kinds of differences", tally.wrong.len());
    assert!(idle.is_empty(), "rules that no field needs: {idle:#?}");
}

/// Tables with one row for each of some events, and these events.
const TABLE_COUNTS: &[(&str, &[&str])] = &[
    (
        "disk_io",
        &["Windows Kernel/DiskIO/Read", "Windows Kernel/DiskIO/Write", "Windows Kernel/DiskIO/FlushBuffers"],
    ),
    ("hard_fault", &["Windows Kernel/Memory/HardFault"]),
    (
        "network",
        &[
            "Windows Kernel/TcpIp/AcceptIPV6",
            "Windows Kernel/TcpIp/DisconnectIPV6",
            "Windows Kernel/TcpIp/RecvIPV6",
            "Windows Kernel/TcpIp/SendIPV6",
            "Windows Kernel/TcpIp/TCPCopyIPV6",
            "Windows Kernel/UdpIp/Recv",
            "Windows Kernel/UdpIp/RecvIPV6",
            "Windows Kernel/UdpIp/Send",
            "Windows Kernel/UdpIp/SendIPV6",
        ],
    ),
    // The runtime of .NET 4.5.2 writes each start twice.
    ("clr_gc", &["Microsoft-Windows-DotNETRuntime/GC/Stop"]),
    ("clr_exception", &["Microsoft-Windows-DotNETRuntime/Exception/Start"]),
    ("clr_jit", &["Microsoft-Windows-DotNETRuntime/Method/JittingStarted"]),
];
const COUNTED_TABLES: &str = "disk_io hard_fault network clr_gc clr_exception clr_jit";

#[test]
fn counts_are_those_of_perfview() {
    let Some(corpus) = corpus() else { return };
    let (names, rules) = (rules::names(), rules::counts());
    let (mut compared, mut used) = (0, BTreeSet::new());
    for (name, trace) in TRACES {
        let (baseline, path) = baseline_of(&corpus, name, trace);
        let output = pass(&path, &format!("event_type sample thread event {COUNTED_TABLES}"));
        let types = table(&output, "event_type");
        let mut ours: BTreeMap<String, i64> = BTreeMap::new();
        for row in rows(types) {
            let event = format!("{}/{}", text(types, row, "provider"), text(types, row, "name"));
            let shown = names.iter().find(|n| n.1 == event).map_or(event.as_str(), |n| n.0.as_str());
            *ours.entry(shown.to_owned()).or_default() += number(types, row, "count").unwrap();
        }
        let theirs: BTreeMap<&str, i64> =
            baseline.counts.iter().map(|(event, n)| (event.as_str(), i64::try_from(*n).unwrap())).collect();
        let all: BTreeSet<&str> = ours.keys().map(String::as_str).chain(theirs.keys().copied()).collect();
        for event in all {
            let show = |n: Option<i64>| n.map_or("-".to_owned(), |n| n.to_string());
            let (ours, theirs) = (show(ours.get(event).copied()), show(theirs.get(event).copied()));
            compared += 1;
            if ours == theirs {
                continue;
            }
            let rule = rules.iter().position(|r| {
                like(&r.trace, name)
                    && like(&r.event, event)
                    && r.perfview == theirs
                    && (r.ours == "*" || r.ours == ours)
            });
            used.insert(rule.unwrap_or_else(|| panic!("{name}: {event}: PerfView {theirs}, we {ours}")));
        }
        // What PerfView counts as samples and as methods, from our tables.
        let (samples, threads) = (table(&output, "sample"), table(&output, "thread"));
        let idle_thread = rows(threads).find(|t| number(threads, *t, "tid") == Some(0)).map(i64::from);
        let idle = |row: u32| {
            let flag = |column| number(samples, row, column) == Some(1);
            number(samples, row, "utid") == idle_thread && !flag("in_dpc") && !flag("in_isr")
        };
        let busy = rows(samples).filter(|row| !idle(*row)).count() as i64;
        if let Some(&n) = theirs.get("Windows Kernel/PerfInfo/Sample") {
            assert_eq!(busy, n, "{name}: samples that are not idle");
        }
        for (rows, events) in TABLE_COUNTS {
            let sum: i64 = events.iter().filter_map(|event| theirs.get(event)).sum();
            assert_eq!(table(&output, rows).rows() as i64, sum, "{name}: rows of {rows}");
        }
        let collections = table(&output, "clr_gc");
        assert!(rows(collections).all(|r| number(collections, r, "dur_ns").is_some()), "{name}");
        let events = table(&output, "event");
        let loads = rows(events).filter(|row| text(events, *row, "name") == "Method/LoadVerbose");
        let jitted = loads.filter(|row| text(events, *row, "fields").contains("Jitted")).count() as i64;
        if let Some(&n) = theirs.get("Microsoft-Windows-DotNETRuntime/Method/LoadVerbose") {
            assert_eq!(jitted, n, "{name}: methods compiled");
        }
    }
    let idle: Vec<&str> =
        (0..rules.len()).filter(|i| !used.contains(i)).map(|i| rules[i].line.as_str()).collect();
    println!("{compared} counts compared, {} rules used", used.len());
    assert!(idle.is_empty(), "rules that no count needs: {idle:#?}");
}

struct Judged<'j> {
    trace: &'j str,
    rules: &'j [Rule],
    tables: &'j Tables,
    volumes: &'j HashMap<String, String>,
}

impl Judged<'_> {
    /// Ids, process name, processor and length.
    fn head(&self, line: &Line, event: &Event, tally: &mut Tally) {
        let id = |v: Option<u32>| Plain::Number(v.map_or(-1, |v| i128::from(v as i32)), 32);
        for (field, theirs, ours) in [
            ("PID", &line.head[0], id(event.pid)),
            ("TID", &line.head[1], id(event.tid)),
            ("ProceNum", &line.head[3], Plain::Number(i128::from(event.cpu), 32)),
            ("DataLen", &line.head[4], Plain::Number(event.data_len as i128, 32)),
        ] {
            tally.heads += 1;
            if !same(theirs, &ours) {
                self.field(line, field, theirs, event, tally);
            }
        }
        // The name of the process that PerfView names, as we know it.
        let pid: i64 = line.head[0].parse().unwrap();
        let name = &line.head[2];
        tally.heads += 1;
        let unknown = format!("Process({pid})");
        // Who is named by nothing but the header of a record about others has no row.
        let ours = self.tables.names_of(pid, event.ns);
        let known = (ours.is_empty() && *name == unknown)
            || ours.into_iter().any(|ours| match ours {
                "[unknown]" => *name == unknown,
                ours => ours.strip_suffix(".exe").unwrap_or(ours) == name,
            });
        let nobody = pid == -1 && name.is_empty();
        if !known && !nobody {
            self.field(line, "PName", name, event, tally);
        }
    }

    /// A value that is not equal by itself: some rule must explain it.
    fn field(&self, line: &Line, field: &str, theirs: &str, event: &Event, tally: &mut Tally) {
        for (i, rule) in self.rules.iter().enumerate() {
            if !like(&rule.event, &line.event) || !like(&rule.field, field) {
                continue;
            }
            match judge(rule, field, theirs, event, self.tables, self.volumes) {
                Verdict::Different => continue,
                Verdict::Tolerated => *tally.tolerated.entry(rule.line.clone()).or_default() += 1,
                Verdict::Equal => tally.by_rule += 1,
            }
            tally.used.insert(i);
            return;
        }
        let ours = event.fields.iter().find(|(n, _)| n == field).map(|(_, v)| v);
        let names: Vec<&str> = event.fields.iter().map(|f| f.0.as_str()).collect();
        let head = (event.pid.map(|v| v as i32), event.tid.map(|v| v as i32));
        let shown = ours.map_or_else(|| format!("none of {head:?} {names:?}"), |v| format!("{v:?}"));
        tally.differ(
            format!("{} {field}", line.event),
            format!("{} line {}: {theirs:?} != {shown}", self.trace, line.number),
        );
    }

    /// The row of the table `event` shows what was decoded.
    fn json(&self, line: &Line, event: &Event, tally: &mut Tally) {
        let events = table(&self.tables.output, "event");
        assert_eq!(number(events, event.index, "ts_ns"), Some(event.ns), "{}", line.event);
        assert_eq!(number(events, event.index, "cpu"), Some(i64::from(event.cpu)), "{}", line.event);
        let name = format!("{}/{}", text(events, event.index, "provider"), text(events, event.index, "name"));
        assert_eq!(name.trim_matches('/'), event.name, "{}", line.event);
        let shown: serde_json::Value = serde_json::from_str(text(events, event.index, "fields")).unwrap();
        for (field, plain) in event.fields.iter().filter(|(name, _)| !name.contains('.')) {
            tally.json += 1;
            if !json_agrees(&shown[field], plain) {
                tally.differ(
                    format!("JSON of {} {field}", line.event),
                    format!("{} != {plain:?}", shown[field]),
                );
            }
        }
    }
}
