//! The bill of small machines, by hand.

use super::charge::{Source, Time};
use super::energy::Model;
use super::party::{Parties, Party};
use crate::derive;
use crate::fold::tests::{sampled, sampled_in, table};
use etwhy_table::{Database, Memory, Value};
use etwhy_testkit::Are as _;
use std::collections::BTreeSet;

const MS: i64 = 1_000_000;

/// Two processors for `ms` milliseconds, of which samples say that `idle` were idle, and `unobserved` had no samples.
fn machine(db: &mut Database, ms: i64, idle: i64, unobserved: i64) {
    let ns = |ms: i64| Value::I64(ms * MS);
    let columns = "elapsed_cpu_ns capacity_ns busy_ns idle_ns sampled_busy_ns sampled_stack_ns switched_busy_ns sample_interval_ns";
    let (all, observed) = (2 * ms, 2 * ms - unobserved);
    let busy = ns(observed - idle);
    let row = vec![ns(all), ns(observed), busy, ns(idle), busy, ns(1), Value::Null, ns(1)];
    db.insert(table("machine", columns, &[row]));
    let columns = "last_ns cpu_mhz processor";
    let trace = vec![ns(ms), Value::I64(2000), Value::Text("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz")];
    db.insert(table("trace", columns, &[trace]));
    let process = |name, pid| vec![Value::Text(name), Value::I64(pid)];
    let processes = [process("Idle", 0), process("app.exe", 7), process("MsMpEng.exe", 8)];
    db.insert(table("process", "name pid", &processes));
}

const STACKS: &[(&str, i64, i64, &str)] = &[
    ("thread", 1, 500, " | app.exe!Work"),
    ("thread", 1, 200, "ntoskrnl.exe!KeAcquireSpinLock WdFilter.sys!Scan fltmgr.sys!Call | app.exe!Open"),
    // A library of a security product: its own code is its vendor's, what it calls is not.
    ("thread", 1, 70, " | aswhook.dll!Hook app.exe!Open"),
    ("thread", 1, 30, " | ntdll.dll!NtClose aswhook.dll!Hook app.exe!Open"),
    ("thread", 2, 40, " | mpengine.dll!Scan"),
    ("dpc", 1, 100, "nic.sys!Poll ndis.sys!ndisInterruptDpc ntoskrnl.exe!KiExecuteAllDpcs"),
    ("isr", 2, 10, "ntoskrnl.exe!KiInterruptDispatch"),
];

/// Rows of a kind as `part culprit own frames dpc isr total`, in ms.
fn bill(db: &mut Database, kind: &str) -> Vec<String> {
    derive(db, Some(&BTreeSet::from(["bill".to_owned()])), &Memory::default(), 1).unwrap();
    let bill = db.get("bill").unwrap();
    (0..bill.rows() as u32)
        .filter(|&row| bill.text(row, "kind") == Some(kind))
        .map(|row| {
            let ms = |column| bill.i64(row, column).unwrap() / MS;
            let text = |column| bill.text(row, column).unwrap();
            let [own, frames, dpc, isr, total] =
                ["own_cpu_ns", "frames_cpu_ns", "dpc_ns", "isr_ns", "total_cpu_ns"].map(ms);
            format!("{} {}: {own} {frames} {dpc} {isr} = {total}", text("part"), text("culprit"))
        })
        .collect()
}

/// Why time was not observed, of samples that came from `first` to `last` on both processors, `samples` on each; so much of one was lost.
fn why_unobserved(unobserved: i64, (first, last): (i64, i64), samples: i64, lost: i64) -> String {
    let mut db = sampled(STACKS);
    machine(&mut db, 1000, 1000, unobserved);
    let row = |cpu| [cpu, samples, first * MS, last * MS].map(Value::I64).to_vec();
    db.insert(table("cpu", "cpu samples first_sample_ns last_sample_ns", &[row(0), row(1)]));
    let range = vec![Value::I64(100 * MS), Value::I64(lost * MS), Value::I64(1)];
    db.insert(table("unobserved", "start_ns dur_ns cpu", &[range]));
    derive(&mut db, Some(&BTreeSet::from(["bill".to_owned()])), &Memory::default(), 1).unwrap();
    let bill = db.get("bill").unwrap();
    let mut rows = 0..bill.rows() as u32;
    let row = rows.find(|&row| bill.text(row, "part") == Some("unobserved")).unwrap();
    bill.text(row, "why").unwrap().to_owned()
}

#[test]
fn time_without_samples_is_explained_by_what_it_mostly_is() {
    let ends = why_unobserved(200, (50, 950), 901, 0);
    assert!(ends.starts_with("no samples before 0.050 s and after 0.950 s of 1.000 s"), "{ends}");
    let slow = why_unobserved(50, (0, 1000), 977, 0);
    assert!(slow.starts_with("samples came every 1.02 ms on average rather than every 1 ms"), "{slow}");
    let lost = why_unobserved(50, (0, 1000), 977, 50);
    assert!(lost.starts_with("gaps between the samples"), "{lost}");
}

#[test]
fn each_kind_is_a_partition() {
    let mut db = sampled(STACKS);
    machine(&mut db, 1000, 1000, 50);
    bill(&mut db, "process").are(&[
        "culprit app.exe (7): 800 0 0 0 = 800",
        "culprit MsMpEng.exe (8): 40 0 0 0 = 40",
        "interrupt [DPC and ISR]: 0 0 100 10 = 110",
        "idle [idle]: 0 0 0 0 = 1000",
        "unobserved [not observed]: 0 0 0 0 = 0",
    ]);
    bill(&mut db, "driver").are(&[
        "culprit WdFilter.sys: 0 200 0 0 = 200",
        "culprit nic.sys: 0 0 100 0 = 100",
        "rest [no driver]: 640 0 0 0 = 640",
        "interrupt [DPC and ISR]: 0 0 0 10 = 10",
        "idle [idle]: 0 0 0 0 = 1000",
        "unobserved [not observed]: 0 0 0 0 = 0",
    ]);
    let products = bill(&mut db, "product");
    assert!(products.contains(&"culprit app.exe: 530 0 0 0 = 530".to_owned()), "{products:?}");
    // Defender's service and its filter are one.
    assert!(products.iter().any(|row| row.ends_with(": 40 200 0 0 = 240")), "{products:?}");
    assert!(
        products.iter().any(|row| row.contains("Avast") && row.ends_with(": 0 70 0 0 = 70")),
        "{products:?}"
    );
    let categories = bill(&mut db, "category");
    assert!(categories.contains(&"culprit antivirus: 40 270 0 0 = 310".to_owned()), "{categories:?}");
    assert!(categories.contains(&"culprit [other drivers]: 0 0 100 0 = 100".to_owned()), "{categories:?}");
}

#[test]
fn more_time_than_there_is_is_scaled() {
    let mut db = sampled(&[("thread", 1, 3000, " | app.exe!Work")]);
    machine(&mut db, 1000, 1000, 0);
    derive(&mut db, Some(&BTreeSet::from(["driver_cost".to_owned()])), &Memory::default(), 1).unwrap();
    let time = Time::read(&db, &Parties::read(&db)).unwrap();
    assert_eq!((time.source, time.capacity), (Source::Sample, 2000 * MS));
    assert_eq!((time.busy(), time.idle, time.unattributed), (1500 * MS, 500 * MS, 0));
    assert!((time.scale - 0.5).abs() < 1e-9);
}

#[test]
fn energy_by_hand() {
    let mut db = Database::new();
    machine(&mut db, 1000, 0, 0);
    // Half of the time at twice the nominal frequency.
    let columns = "ts_ns cpu kind mhz percent";
    let change = |ms: i64, mhz| {
        vec![Value::I64(ms * MS), Value::I64(0), Value::Text("change"), Value::I64(mhz), Value::Null]
    };
    db.insert(table("cpu_frequency", columns, &[change(0, 2000), change(500, 4000)]));
    let model = Model::read(&db, false).unwrap();
    assert_eq!((model.group(), model.known, model.frequency), ("Intel Xeon 2017+", true, true));
    // Means of 1 and 2, 4, 8; 3.21 W, from 2.02 to 3.94.
    let (phi, second) = ([1.5, 2.5, 4.5f64], 1_000 * MS);
    let joules = model.joules(second);
    assert!((joules.mid - 3.21 * phi[1]).abs() < 1e-9, "{joules:?}");
    let low = joules.mid / ((2.02f64 / 3.21).ln().powi(2) + (phi[0] / phi[1]).ln().powi(2)).sqrt().exp();
    let high = joules.mid * ((3.94f64 / 3.21).ln().powi(2) + (phi[2] / phi[1]).ln().powi(2)).sqrt().exp();
    assert!((joules.low - low).abs() < 1e-6 && (joules.high - high).abs() < 1e-6, "{joules:?} {low} {high}");
    assert_eq!(model.joules(0).high, 0.0);
    // Without frequencies, and with few samples: the bounds are wider than those of the watts.
    db.insert(table("cpu_frequency", "ts_ns", &[]));
    let sampled = Model::read(&db, true).unwrap();
    let (few, many) = (sampled.joules(10 * MS), sampled.joules(1_000_000 * MS));
    assert!((many.high / many.mid - 3.94 / 3.21).abs() < 0.001, "{many:?}");
    assert!(few.high / few.mid > 1.5 && few.low / few.mid < 0.66, "{few:?}");
}

#[test]
fn owners() {
    let of = |name, vendor, product, category| Party::of_module(name, vendor, product, category);
    let windows = of("Ntfs.sys", Some("Microsoft"), Some("Microsoft® Windows® Operating System"), Some("os"));
    assert!(windows.is_windows());
    let defender =
        of("MsMpEng.exe", Some("Microsoft"), Some("Microsoft® Windows® Operating System"), Some("antivirus"));
    assert!(!defender.is_windows() && defender.product.contains("Defender"), "{defender:?}");
    let agent = of("cyserver.exe", Some("Palo Alto Networks"), None, Some("EDR"));
    let driver = of("tedrdrv.sys", Some("Palo Alto Networks"), Some("Cortex XDR"), Some("EDR"));
    assert!(agent.is_same(&driver));
    assert_eq!(of("x.sys", None, None, None).category, "[other drivers]");
    assert_eq!(of("x.exe", None, None, None).product, "x.exe");
}

#[test]
fn queued_work_is_a_row_of_the_driver() {
    let work =
        |leaf: &str| format!("{leaf} ntoskrnl.exe!ExpWorkerThread ntoskrnl.exe!PspSystemThreadStartup");
    let (busy, innocent) = (work("busy.sys!Hash"), work("quiet.sys!Tick"));
    let cache = work("quiet.sys!Write ntoskrnl.exe!CcWorkerThread");
    let stacks = [
        ("thread", 1, 500, busy.as_str()),
        ("thread", 1, 10, &innocent),
        ("thread", 1, 300, &cache),
        ("thread", 1, 90, "busy.sys!Hash"),
    ];
    let mut db = sampled_in(&[("Idle", 0), ("System", 4)], &stacks);
    machine(&mut db, 1000, 1000, 50);
    let process = |name, pid| vec![Value::Text(name), Value::I64(pid)];
    db.insert(table("process", "name pid", &[process("Idle", 0), process("System", 4)]));
    let rows = bill(&mut db, "process");
    rows[..3].to_vec().are(&[
        "culprit busy.sys: 500 0 0 0 = 500",
        "culprit System (4): 390 0 0 0 = 390",
        "culprit quiet.sys: 10 0 0 0 = 10",
    ]);
    let bill = db.get("bill").unwrap();
    let why = (0..bill.rows() as u32).find(|&row| bill.text(row, "culprit") == Some("System (4)")).unwrap();
    let why = bill.text(why, "why").unwrap();
    assert!(why.contains("for 23 % no stack tells whether a driver had queued the work"), "{why}");
}
