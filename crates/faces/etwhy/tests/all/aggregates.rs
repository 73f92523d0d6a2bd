//! Tables that findings read and that are made from other tables: they agree with what a scenario planted.

use crate::{ETWHY, Str as _};
use serde_json::Value;

fn n(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_else(|| panic!("{column} in {row}"))
}

#[test]
fn a_call_goes_through_the_chain_of_services_that_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.story("event_log", "0.01", folder.path());
    let calls = ETWHY.dump::<Value>("alpc", &trace).len() as i64;
    let chain = ETWHY.dump::<Value>("service_chain", &trace);
    let links: Vec<(&str, i64)> = chain.iter().map(|row| (row["process"].str(), n(row, "depth"))).collect();
    let wanted =
        [("query.exe", 0), ("svchost.exe", 1), ("WmiPrvSE.exe", 2), ("svchost.exe", 3), ("lsass.exe", 4)];
    assert_eq!(links, wanted);
    // Each message of the program makes one of each link.
    assert!(chain.iter().all(|row| 4 * n(row, "calls") == calls), "{chain:?}");
    let last = chain.last().unwrap()["chain"].str();
    let whole = "query.exe > svchost.exe (Winmgmt) > WmiPrvSE.exe > svchost.exe (EventLog) > lsass.exe";
    assert_eq!(last, whole);
    // 60, 60, 160 and 10 µs are the servers' own work; 8 µs twice is the way to the next one and back.
    for (row, own_us) in chain.iter().skip(1).zip([60, 60, 160, 10]) {
        assert_eq!(n(row, "own_ns"), n(row, "calls") * own_us * 1000, "{row}");
    }
}

#[test]
fn memory_goes_from_the_writer_to_the_watcher() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.story("directory_watcher", "0.01", folder.path());
    let pool = ETWHY.dump::<Value>("pool", &trace);
    let flow = ETWHY.dump::<Value>("pool_flow", &trace);
    assert_eq!(flow.len(), 1, "{flow:?}");
    assert_eq!(n(&flow[0], "count"), pool.len() as i64);
    assert_eq!(n(&flow[0], "max_bytes"), 2 << 20);
    assert_eq!(flow[0]["function"], "ntoskrnl.exe!FsRtlNotifyFilterReportChangeLiteEx");
    assert_ne!(flow[0]["upid"], flow[0]["freed_by_upid"]);

    let faults: i64 = ETWHY.dump::<Value>("page_fault_cost", &trace).iter().map(|row| n(row, "count")).sum();
    let sites = ETWHY.dump::<Value>("page_fault_site", &trace);
    assert_eq!(sites.iter().map(|row| n(row, "count")).sum::<i64>(), faults);
    let most = &sites[0];
    assert_eq!(most["function"], "ntoskrnl.exe!FsRtlNotifyFilterReportChangeLiteEx");
    assert!(100 * n(most, "count") >= 99 * faults, "{sites:?}");
}

#[test]
fn registry_operations_have_the_caller_that_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.story("registry_storm", "0.01", folder.path());
    let all = ETWHY.dump::<Value>("registry", &trace).len() as i64;
    let callers = ETWHY.dump::<Value>("registry_caller", &trace);
    assert_eq!(callers.iter().map(|row| n(row, "count")).sum::<i64>(), all);
    assert_eq!(callers[0]["caller"], "tray.exe!PollSettings");
    assert_eq!(callers[0]["api"], "KernelBase.dll!RegQueryValueExW");
    // Sums without rows are those with them.
    let usage: i64 = ETWHY.dump::<Value>("registry_usage", &trace).iter().map(|row| n(row, "count")).sum();
    assert_eq!(usage, all);
}

#[test]
fn disks_are_summed_as_their_transfers_are() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.story("tables/disk_io", "1", folder.path());
    let transfers = ETWHY.dump::<Value>("disk_io", &trace);
    let costs = ETWHY.dump::<Value>("disk_cost", &trace);
    for level in ["disk", "process"] {
        let level: Vec<&Value> = costs.iter().filter(|row| row["level"] == level).collect();
        let sum = |column: &str| level.iter().map(|row| n(row, column)).sum::<i64>();
        let of = |column: &str| transfers.iter().map(|row| n(row, column)).sum::<i64>();
        assert_eq!(sum("count"), transfers.len() as i64);
        assert_eq!((sum("service_ns"), sum("total_ns")), (of("service_ns"), of("dur_ns")));
        assert_eq!(sum("reads") + sum("writes") + sum("flushes"), sum("count"));
        assert!(level.iter().all(|row| n(row, "busy_ns") <= n(row, "total_ns")));
    }
}

#[test]
fn hard_faults_are_summed_by_process_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let trace = ETWHY.story("findings/memory.hard-faults", "0.5", folder.path());
    let faults = ETWHY.dump::<Value>("hard_fault", &trace);
    let costs = ETWHY.dump::<Value>("hard_fault_cost", &trace);
    let sum = |rows: &[Value], column: &str| rows.iter().map(|row| n(row, column)).sum::<i64>();
    assert_eq!(sum(&costs, "count"), faults.len() as i64);
    assert_eq!(sum(&costs, "total_ns"), sum(&faults, "dur_ns"));
    assert_eq!(costs[0]["path"], "C:\\Program Files\\start\\start.dll");
}
