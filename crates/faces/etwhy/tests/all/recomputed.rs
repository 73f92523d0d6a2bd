//! What verdicts rest on against `tests/python/verdicts.py`, which recomputes it from the same files: critical paths, what
//! waits were for, the samples that drivers are charged with, whose work the System process does, and which wake-ups cross NUMA nodes.

use etwhy_testkit::{Program, Str as _, script, told};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// The program.
const ETWHY: Program = crate::ETWHY.partly();

/// Stories with a path, with waits or with drivers.
const SCENARIOS: [&str; 23] = [
    "../system_worker_threads",
    "clr.lock-contention",
    "cpu.kernel-spinlock",
    "cpu.priority-inversion",
    "cpu.starvation",
    "dpc.filter-in-path",
    "dpc.flood",
    "dpc.over-limit",
    "file.encryption",
    "isr.storm",
    "lock.contention",
    "memory.verifier",
    "net.numa-crossing",
    "security.code-integrity",
    "security.driver-hot-path",
    "security.injected-dll",
    "security.network-filter",
    "security.process-start",
    "security.rundown-contention",
    "security.service-waits",
    "service.formatting-chain",
    "trace.syscall-tracing-cost",
    "ui.hang",
];

#[derive(Deserialize)]
struct Piece {
    path_id: i64,
    of_tid: i64,
    tid: i64,
    kind: String,
    start_ns: i64,
    dur_ns: i64,
}

#[derive(Deserialize)]
struct Waits {
    readied_by: String,
    wait_class: String,
    count: i64,
    wait_sum_ns: i64,
}

#[derive(Deserialize)]
struct Driver {
    driver: Option<String>,
    charged_ns: i64,
    exclusive_ns: i64,
    passed_on_ns: i64,
}

#[derive(Deserialize)]
struct System {
    whose: String,
    driver: Option<String>,
    disk: Option<i32>,
    cpu_ns: i64,
    passed_on_ns: i64,
}

#[derive(Deserialize)]
struct Wakeups {
    driver: Option<String>,
    pid: Option<i64>,
    near: i64,
    far: i64,
}

#[derive(Deserialize)]
struct Interval {
    sample_interval_ns: Option<i64>,
}

/// What is compared; in the shape in which the script prints it.
#[derive(Debug, Default, Deserialize, PartialEq)]
struct Verdicts {
    /// Time by "thread kind", for each path.
    paths: Vec<BTreeMap<String, i64>>,
    /// Number and time of waits by class.
    waits: BTreeMap<String, (i64, i64)>,
    /// Samples that a driver is charged with, those of them that are its own, and those that it passed on.
    drivers: BTreeMap<String, (i64, i64, i64)>,
    /// Samples of threads of the System process by driver whose work it was, `windows` or `unknown`.
    system: BTreeMap<String, i64>,
    /// Wake-ups in DPCs by "driver pid": those that stayed on the node, and those that crossed.
    wakeups: BTreeMap<String, (i64, i64)>,
}

fn verdicts(trace: &Path) -> (Verdicts, Vec<(i64, i64, i64)>) {
    let mut found = Verdicts::default();
    let mut paths: BTreeMap<i64, (i64, i64, i64, BTreeMap<String, i64>)> = BTreeMap::new();
    for piece in ETWHY.dump::<Piece>("critical_path", trace) {
        let path = paths.entry(piece.path_id).or_insert((piece.of_tid, i64::MAX, 0, BTreeMap::new()));
        (path.1, path.2) = (path.1.min(piece.start_ns), path.2.max(piece.start_ns + piece.dur_ns));
        *path.3.entry(format!("{} {}", piece.tid, piece.kind)).or_default() += piece.dur_ns;
    }
    let ranges = paths.values().map(|&(tid, from, to, _)| (tid, from, to)).collect();
    found.paths = paths.into_values().map(|path| path.3).collect();
    for wait in ETWHY.dump::<Waits>("wait_chain", trace).into_iter().filter(|w| w.readied_by == "thread") {
        let sum = found.waits.entry(wait.wait_class).or_default();
        *sum = (sum.0 + wait.count, sum.1 + wait.wait_sum_ns);
    }
    let intervals = ETWHY.sql::<Interval>(trace, "SELECT sample_interval_ns FROM machine");
    let interval = intervals.iter().find_map(|row| row.sample_interval_ns).unwrap_or(1_000_000);
    for row in ETWHY.dump::<Driver>("driver_cost", trace) {
        let Some(name) = row.driver else { continue };
        let sum = found.drivers.entry(name.to_lowercase()).or_default();
        let times = [row.charged_ns, row.exclusive_ns, row.passed_on_ns].map(|ns| ns / interval);
        *sum = (sum.0 + times[0], sum.1 + times[1], sum.2 + times[2]);
    }
    for row in ETWHY.dump::<System>("system_work", trace).into_iter().filter(|row| row.disk.is_none()) {
        let whose = row.driver.map_or(row.whose, |name| name.to_lowercase());
        *found.system.entry(whose).or_default() += (row.cpu_ns + row.passed_on_ns) / interval;
    }
    let wakeups = "SELECT w.driver, p.pid, w.near, w.far FROM dpc_wakeup w LEFT JOIN process p ON p.upid = w.upid WHERE w.near + w.far > 0";
    for row in ETWHY.sql::<Wakeups>(trace, wakeups) {
        let name = |text: Option<String>| text.map_or("None".to_owned(), |text| text.to_lowercase());
        let key = format!("{} {}", name(row.driver), name(row.pid.map(|pid| pid.to_string())));
        let sum = found.wakeups.entry(key).or_default();
        *sum = (sum.0 + row.near, sum.1 + row.far);
    }
    (found, ranges)
}

#[test]
fn paths_waits_and_charges_are_what_brute_force_recomputes() {
    let mut compared = (0, 0, 0, 0, 0);
    for name in SCENARIOS {
        let folder = tempfile::tempdir().unwrap();
        let scenario = etwhy_testkit::root().join(format!("scenarios/findings/{name}.toml"));
        let (trace, questions) = (folder.path().join("trace.etl"), folder.path().join("questions.json"));
        ETWHY.synth(&scenario, &trace, &[]);
        let (ours, ranges) = verdicts(&trace);
        let facts = etwhy_testkit::root().join("crates/model/knowledge/data");
        let drivers: Vec<&String> = ours.drivers.keys().collect();
        let asked = json!({ "ranges": ranges, "drivers": drivers, "facts": facts });
        std::fs::write(&questions, asked.to_string()).unwrap();
        let Some(mut script) = script("verdicts.py") else { return };
        let theirs: Verdicts =
            serde_json::from_str(&told(script.args([trace.str(), questions.str()]))).unwrap();
        compared.0 += ours.paths.len();
        compared.1 += ours.waits.len();
        compared.2 += ours.drivers.len();
        compared.3 += ours.system.len();
        compared.4 += ours.wakeups.len();
        assert_eq!(ours, theirs, "{name}");
    }
    println!("paths, classes of waits, drivers, work of System, wake-ups compared: {compared:?}");
    assert!(
        compared.0 >= 15 && compared.1 >= 5 && compared.2 >= 10 && compared.3 >= 3 && compared.4 >= 3,
        "{compared:?}"
    );
}
