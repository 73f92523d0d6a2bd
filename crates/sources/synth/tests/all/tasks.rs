//! Tasks, disks, working sets and losses are what their scenario asks for, as another reader sees them.

use etwhy_synth::{Scenario, write};
use etwhy_testkit::{script, told};
use serde_json::Value;

/// What `tests/python/waits.py` says of a scenario's trace; `None` without Python.
fn read(name: &str, text: &str) -> Option<Value> {
    let folder = std::env::temp_dir().join(format!("etwhy-tasks-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join("out.etl");
    let report = write(&Scenario::parse(text, name).unwrap(), &out, &mut |_| ()).unwrap();
    if let Some(counted) = etwhy_testkit::dissected(&out, &[]) {
        assert_eq!(counted, report.events, "{name}");
        assert_eq!(report.events.values().sum::<u64>(), report.records);
    }
    let read = script("waits.py").map(|mut s| serde_json::from_str(&told(s.arg(&out))).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
    read
}

/// Rows of a list as numbers; null is -1.
fn rows(read: &Value, list: &str) -> Vec<Vec<i64>> {
    let numbers = |row: &Value| row.as_array().unwrap().iter().map(|n| n.as_i64().unwrap_or(-1)).collect();
    read[list].as_array().unwrap().iter().map(numbers).collect()
}

const LOCK: &str = r#"
[machine]
cpus = 4
duration = "2s"
samples = false

[truth.lock."orders"]
count = 2
total_ms = 333

[[process]]
name = "shop.exe"
threads = [{ name = "owner", tid = 4000 }, { name = "one", tid = 4004 }, { name = "two", tid = 4008 }]

[[lock]]
name = "orders"

[[disk]]
service = "3ms"

[[task]]
thread = "shop.exe/owner"
at = 0.1
steps = [{ acquire = "orders" }, { run = "10ms" }, { sleep = "200ms" }, { run = "10ms" }, { release = "orders" }, { run = "1ms" }]

[[task]]
thread = "shop.exe/one"
at = 0.15
steps = [{ run = "1ms" }, { acquire = "orders" }, { run = "5ms" }, { release = "orders" }]

[[task]]
thread = "shop.exe/two"
at = 0.16
steps = [{ run = "1ms" }, { acquire = "orders" }, { run = "5ms" }, { release = "orders" }]
"#;

/// The first waits from 151 ms to 320 ms, the second from 161 ms to 325 ms. Who waits for a lock waits as long as the other has it, and the other readies it.
#[test]
fn locks_have_owners_who_ready_the_next() {
    let Some(read) = read("lock", LOCK) else { return };
    let lock: Vec<_> = rows(&read, "waits").into_iter().filter(|w| w[1] == 37).collect();
    let [first, second] = lock.as_slice() else { panic!("{lock:?}") };
    assert_eq!(
        (first[0], first[4], second[0], second[4]),
        (4004, 4000, 4008, 4004),
        "the owner readies, in turn"
    );
    let ran: Vec<_> = rows(&read, "runs").into_iter().filter(|r| [4000, 4004].contains(&r[0])).collect();
    for wait in &lock {
        let running = |r: &Vec<i64>| r[0] == wait[4] && r[1] <= wait[3] && wait[3] <= r[2];
        assert!(ran.iter().any(running), "who readies runs: {wait:?}");
    }
    // Released 220 ms after it was taken; the next one holds it for 5 ms.
    assert!((first[3] - 320_000_000).abs() < 200_000, "{first:?}");
    assert!((second[3] - first[3] - 5_000_000).abs() < 50_000, "{second:?}");
    let slept: Vec<_> = rows(&read, "waits").into_iter().filter(|w| w[0] == 4000 && w[1] == 4).collect();
    assert!(slept.iter().any(|w| (w[3] - w[2] - 200_000_000).abs() < 1000 && w[4] == -1), "{slept:?}");
}

const POOL: &str = r#"
[machine]
cpus = 2
duration = "2s"
samples = false

[[process]]
name = "shop.exe"
threads = [{ name = "accept", tid = 4000 }, { name = "worker", tid = 4100 }, { name = "worker", tid = 4104 }]

[[queue]]
name = "jobs"

[[task]]
thread = "shop.exe/accept"
every = "10ms"
steps = [{ run = "100us" }, { put = "jobs" }, { run = "50us" }]

[[task]]
thread = "shop.exe/worker"
steps = [{ take = "jobs" }, { run = "2ms" }]
"#;

/// Workers of a healthy pool wait for work, and who brings it readies them.
#[test]
fn pools_wait_for_work() {
    let Some(read) = read("pool", POOL) else { return };
    let waits: Vec<_> = rows(&read, "waits").into_iter().filter(|w| w[1] == 15).collect();
    assert!((190..=200).contains(&waits.len()), "{}", waits.len());
    assert!(waits.iter().all(|w| w[0] > 4000 && w[4] == 4000), "accept readies the workers");
    let runs = rows(&read, "runs");
    let worked: i64 = runs.iter().filter(|r| r[0] > 4000).map(|r| r[2] - r[1]).sum();
    assert!((worked - 200 * 2_000_000).abs() < 8_000_000, "{worked}");
}

const PRIORITIES: &str = r#"
[machine]
cpus = 1
duration = "1s"
samples = false

[[process]]
name = "a.exe"
threads = [{ name = "low", tid = 4000, priority = 4 }, { name = "high", tid = 4004, priority = 15 }]

[[task]]
thread = "a.exe/low"
steps = [{ run = "50ms" }, { sleep = "1ms" }]

[[task]]
thread = "a.exe/high"
every = "100ms"
arrival = "exact"
steps = [{ run = "40ms" }]
"#;

/// A higher priority takes the processor; the lower one goes on when it is free again.
#[test]
fn priorities_share_a_processor() {
    let Some(read) = read("priorities", PRIORITIES) else { return };
    let runs = rows(&read, "runs");
    let high: Vec<_> = runs.iter().filter(|r| r[0] == 4004).collect();
    assert_eq!(high.len(), 10, "{high:?}");
    for run in high {
        assert!((run[2] - run[1] - 40_000_000).abs() < 300_000, "nobody takes it from the high one: {run:?}");
        let ready = run[1] % 100_000_000;
        assert!(ready < 300_000, "it runs within a slice of being ready: {run:?}");
    }
    let mut all = runs.clone();
    all.sort_by_key(|r| r[1]);
    assert!(all.windows(2).all(|two| two[0][2] <= two[1][1]), "one at a time");
}

const DISK: &str = r#"
[machine]
cpus = 4
duration = "1s"
samples = false
context_switches = true

[[process]]
name = "victim.exe"
threads = [{ name = "main", tid = 4000 }]

[[process]]
name = "flusher.exe"
pid = 3000

[[disk]]
service = "5ms"

[[disk_io]]
process = "flusher.exe"
op = "write"
at = [0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]

[[task]]
thread = "victim.exe/main"
at = 0.21
steps = [{ run = "1ms" }, { read = 'C:\data.bin' }, { run = "1ms" }, { fault = 'C:\page.bin' }, { run = "1ms" }]

[[registry]]
process = "flusher.exe"
at = 0.5
op = "flush"
duration = "30ms"
blocks = true

[[working_set]]
process = "flusher.exe"
every = "250ms"
bytes = { counter = ["40KB", "4KB"] }
"#;

/// Transfers follow each other on the disk, and threads wait for theirs.
#[test]
fn disks_have_queues_and_operations_block() {
    let Some(read) = read("disk", DISK) else { return };
    let mut transfers = rows(&read, "transfers");
    transfers.sort_by_key(|t| t[2]);
    assert_eq!(transfers.len(), 10);
    let ends: Vec<i64> = transfers.iter().map(|t| t[2]).collect();
    for two in ends[..9].windows(2) {
        assert!((two[1] - two[0] - 5_000_000).abs() < 1000, "one after the other: {ends:?}");
    }
    // The victim's read comes ninth and waits for all before it.
    let waits = rows(&read, "waits");
    let io: Vec<_> = waits.iter().filter(|w| w[0] == 4000 && w[1] == 0).collect();
    let [wait] = io.as_slice() else { panic!("{waits:?}") };
    assert_eq!((wait[3], wait[4]), (ends[8], -1), "the disk's DPC ends the wait when the transfer is over");
    assert!((wait[3] - wait[2]) > 30_000_000, "{wait:?}");
    let fault: Vec<_> = waits.iter().filter(|w| w[0] == 4000 && w[1] == 9).collect();
    assert!(fault.len() == 1 && fault[0][3] == ends[9] && fault[0][3] - fault[0][2] < 5_100_000, "{fault:?}");
    let key: Vec<_> =
        waits.iter().filter(|w| w[0] != 4000 && (w[3] - w[2] - 30_000_000).abs() < 100_000).collect();
    assert_eq!(key.len(), 1, "the registry operation blocks: {waits:?}");
    let sets = read["working_sets"].as_array().unwrap();
    let pages: Vec<i64> = sets.iter().map(|s| s[1]["3000"].as_i64().unwrap()).collect();
    assert_eq!(pages, [10, 11, 12, 13]);
}

const LOSSES: &str = r#"
[machine]
cpus = 4
duration = "4s"
buffer_size = "4KB"
LOSSES

[[process]]
name = "a.exe"
threads = 4

[[samples]]
process = "a.exe"
busy = 3
stack = "a.exe!main;a.exe!Work"
"#;

/// Losses are where the scenario says, and the header and the numbers of the buffers tell.
#[test]
fn losses_have_places_and_counts() {
    let with = |losses: &str| LOSSES.replace("LOSSES", losses);
    let Some(whole) = read("whole", &with("")) else { return };
    let longest = |read: &Value, cpu: u16| read["gaps"][cpu.to_string()].as_i64().unwrap();
    assert_eq!((whole["lost"][0].as_i64(), whole["missing"].as_array().unwrap().len()), (Some(0), 0));
    assert!((0..4).all(|cpu| longest(&whole, cpu) < 10_000_000));
    let one = "losses = [{ from = \"1s\", to = \"1500ms\", cpus = 2 }]";
    let one = read("buffers", &with(one)).unwrap();
    assert!((495_000_000..505_000_000).contains(&longest(&one, 2)), "{}", one["gaps"]);
    assert!([0, 1, 3].iter().all(|cpu| longest(&one, *cpu) < 10_000_000), "{}", one["gaps"]);
    let missing = one["missing"].as_array().unwrap().len() as i64;
    assert!(missing > 3, "{}", one["missing"]);
    assert_eq!((one["lost"][0].as_i64(), one["lost"][1].as_i64()), (Some(0), Some(missing)));
    let bursts = "losses = [{ from = 2, to = 3, kind = \"events\", burst = { on = \"20ms\", off = \"180ms\" } }]\nevents_lost = 5";
    let bursts = read("bursts", &with(bursts)).unwrap();
    // Five bursts of 20 ms on four processors: 400 samples with a stack record each where somebody runs.
    let lost = bursts["lost"][0].as_i64().unwrap();
    assert!((700..1000).contains(&lost), "{lost}");
    assert_eq!((bursts["lost"][1].as_i64(), bursts["missing"].as_array().unwrap().len()), (Some(0), 0));
    assert!(
        (0..4).all(|cpu| (18_000_000..25_000_000).contains(&longest(&bursts, cpu))),
        "{}",
        bursts["gaps"]
    );
}

#[test]
fn mistakes_in_tasks_are_told() {
    let error = |text: &str| {
        let out = std::env::temp_dir().join(format!("etwhy-mistake-{}.etl", std::process::id()));
        let scenario = Scenario::parse(text, "s.toml");
        scenario.and_then(|s| write(&s, &out, &mut |_| ())).unwrap_err().to_string()
    };
    let task = |steps: &str| {
        format!(
            "[[process]]\nname = 'a.exe'\n[[lock]]\nname = 'l'\n[[task]]\nprocess = 'a.exe'\nsteps = [{steps}]\n"
        )
    };
    for (text, hint) in [
        (task("{ acquire = 'm' }"), "known: l"),
        (task("{ run = 1, sleep = 1 }"), "step 1: it is one of run"),
        (task(""), "it needs steps"),
        (task("{ walk = 1 }"), "acquire"),
        (task("{ run = '1ms' }, { release = 'l' }"), "which it does not have"),
        ("[[lock]]\nname = 'l'\nkind = 'spin'\n".to_owned(), "srw"),
        ("[[disk]]\n[[disk]]\n".to_owned(), "each has one"),
        ("[machine]\nlosses = [{ kind = 'all' }]\n".to_owned(), "buffers and events"),
    ] {
        let message = error(&text);
        assert!(message.contains(hint), "{text}\n{message}");
    }
}
