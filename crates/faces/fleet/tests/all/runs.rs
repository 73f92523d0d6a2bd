//! Runs over files that are programs: what each does is what reading a trace may do.
#![cfg(unix)]

use etwhy_fleet::inbox::list;
use etwhy_fleet::memory::Memory;
use etwhy_fleet::runner::Limits;
use etwhy_fleet::session::{self, Host, Settings, Summary};
use etwhy_fleet::store::Store;
use etwhy_fleet::tables::{InputRow, RunRow};
use etwhy_table::Database;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

struct Shell;

impl Host for Shell {
    fn extract(&self, files: &[&Path], trace_id: Option<&str>, folder: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(files).arg(folder).args(trace_id);
        command
    }

    fn identify(&self, _: &[&Path]) -> Command {
        Command::new("true")
    }
}

/// What the process of a good trace leaves.
fn good(trace: &str, exit: i32) -> String {
    format!(
        r#"mkdir "$1/0"; echo '{{"exit":{exit},"message":null,"cpu_ns":5,"memory_bytes":7,"recordings":[{{"part":"0","trace_id":"{trace}",
        "machine_id":"m","extract_id":"e{trace}","exit":{exit},"message":null,"file":"{trace}.etl","files":1,"size_bytes":9}}]}}' > "$1/end.json"; exit {exit}"#
    )
}

fn settings(name: &str) -> Settings {
    Settings {
        program: "test".to_owned(),
        settings_id: name.to_owned(),
        jobs: 3,
        limits: Limits { time: Some(Duration::from_secs(2)), memory: Some(100_000_000) },
        batch: 3,
    }
}

fn run(store: &Store, inbox: &Path, settings: &Settings, retry: bool) -> Summary {
    let mut memory = Memory::of(store, retry).unwrap();
    let files = list(&[inbox.to_path_buf()]).unwrap().files;
    session::run(store, files, &mut memory, settings, &Shell, &mut |_| {}).unwrap()
}

fn ledger(store: &Store) -> BTreeMap<String, Vec<(String, String)>> {
    let mut database = Database::new();
    store.all::<RunRow>(&mut database).unwrap();
    let mut all: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for row in &database.read::<RunRow>().unwrap() {
        let name = row.path().rsplit('/').next().unwrap().to_owned();
        let said = (row.outcome().to_owned(), row.reason().unwrap_or_default().to_owned());
        all.entry(name).or_default().push(said);
    }
    all
}

#[test]
fn each_trace_has_its_row_whatever_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    std::fs::create_dir(&inbox).unwrap();
    let write = |name: &str, script: &str| std::fs::write(inbox.join(name), script).unwrap();
    write("good.etl", &good("good", 0));
    write("damaged.etl", &good("damaged", 1));
    write("same.etl", &good("good", 0));
    write("hangs.etl", "exec sleep 600");
    write("crashes.etl", "echo 'it was \u{1b}[31mme' >&2; kill -SEGV $$");
    write("none.etl", "echo 'not a trace' >&2; exit 3");
    write("lies.etl", r#"echo '{"exit":0,"recordings":[{"part":"../../../etc"' > "$1/end.json""#);
    if cfg!(target_os = "linux") {
        write("bomb.etl", "exec tail /dev/zero");
    }
    let (store, _lock) = Store::create(&folder.path().join("store")).unwrap();
    let summary = run(&store, &inbox, &settings("a"), false);
    let rows = ledger(&store);
    let outcome = |name: &str| rows[name].iter().map(|(outcome, _)| outcome.as_str()).collect::<Vec<_>>();
    assert_eq!(outcome("good.etl"), ["read"]);
    assert_eq!(outcome("damaged.etl"), ["in_part"]);
    assert_eq!(outcome("same.etl"), ["copy"]);
    assert_eq!(outcome("hangs.etl"), ["timeout"]);
    assert_eq!(outcome("crashes.etl"), ["crashed"]);
    assert!(!rows["crashes.etl"][0].1.contains('\u{1b}'), "{:?}", rows["crashes.etl"]);
    assert_eq!(outcome("none.etl"), ["not_a_trace"]);
    assert!(rows["none.etl"][0].1.contains("not a trace"));
    assert_eq!(outcome("lies.etl"), ["failed"]);
    if cfg!(target_os = "linux") {
        assert_eq!(outcome("bomb.etl"), ["memory"]);
    }
    assert_eq!(rows.values().map(Vec::len).sum::<usize>(), summary.files);
    assert!(store.batches().unwrap().len() >= 2, "batches of three");

    // Nothing is new.
    let again = run(&store, &inbox, &settings("a"), false);
    assert_eq!((again.known, again.outcomes.len()), (summary.files, 0), "{again:?}");
    assert_eq!(ledger(&store), rows);

    // What failed may be tried again; what was read is not.
    write("late.etl", &good("late", 0));
    let again = run(&store, &inbox, &settings("a"), true);
    assert_eq!(again.outcomes.get("read"), Some(&1), "{again:?}");
    assert_eq!(again.outcomes.get("timeout"), Some(&1));
    assert_eq!(again.outcomes.get("in_part"), None);

    // Other settings are another reading.
    let other = run(&store, &inbox, &settings("b"), false);
    assert_eq!(other.known, 0);
    let mut database = Database::new();
    store.all::<InputRow>(&mut database).unwrap();
    assert!(database.read::<InputRow>().unwrap().len() > summary.files);
}

/// A disk that is full, or a process that cannot be started, is no fault of the trace.
#[test]
fn what_this_machine_could_not_do_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let (inbox, place) = (folder.path().join("inbox"), folder.path().join("place"));
    std::fs::create_dir(&inbox).unwrap();
    let full = r#"{"exit":1,"message":"no space","again":true,"cpu_ns":1,"memory_bytes":1,"recordings":[]}"#;
    for (name, fails) in
        [("a", "exit 1".to_owned()), ("b", format!(r#"echo '{full}' > "$1/end.json"; exit 1"#))]
    {
        let script = format!("test -e '{}' || {{ {fails}; }}\n{}", place.display(), good(name, 0));
        std::fs::write(inbox.join(format!("{name}.etl")), script).unwrap();
    }
    let (store, _lock) = Store::create(&folder.path().join("store")).unwrap();
    for _ in 0..2 {
        let summary = run(&store, &inbox, &settings("a"), false);
        assert_eq!((summary.known, summary.outcomes.get("failed")), (0, Some(&2)), "{summary:?}");
    }
    std::fs::write(&place, "").unwrap();
    let summary = run(&store, &inbox, &settings("a"), false);
    assert_eq!(summary.outcomes.get("read"), Some(&2), "{summary:?}");
    assert_eq!(run(&store, &inbox, &settings("a"), false).known, 2);
}

/// Whoever can put files into the inbox knows where samples are taken.
#[test]
fn a_twin_with_the_same_samples_is_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    std::fs::create_dir(&inbox).unwrap();
    // The trace is called as the run says, whose name is the second argument.
    let script = good("'\"$2\"'", 0) + "\n#";
    let write = |name: &str, byte: u8| {
        let mut bytes = script.clone().into_bytes();
        bytes.resize(1 << 20, b' ');
        bytes[5000] = byte;
        std::fs::write(inbox.join(name), bytes).unwrap();
    };
    write("a.etl", b'a');
    write("copy.etl", b'a');
    write("twin.etl", b'b');
    let (store, _lock) = Store::create(&folder.path().join("store")).unwrap();
    let summary = run(&store, &inbox, &settings("a"), false);
    assert_eq!(summary.outcomes, BTreeMap::from([("copy", 1), ("read", 2)]), "{:?}", ledger(&store));
    // Each is known again under another name.
    std::fs::rename(inbox.join("twin.etl"), inbox.join("moved.etl")).unwrap();
    std::fs::rename(inbox.join("a.etl"), inbox.join("z.etl")).unwrap();
    let again = run(&store, &inbox, &settings("a"), false);
    assert_eq!(again.outcomes, BTreeMap::from([("copy", 2)]), "{:?}", ledger(&store));
}

/// An archive names what is in it by samples: a trace of it does not pass for another one.
#[test]
fn a_twin_in_an_archive_is_said_to_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    std::fs::create_dir(&inbox).unwrap();
    for (name, sha256) in [("a", "1"), ("b", "1"), ("c", "2")] {
        let hashed = format!(r#""sha256":"{sha256}","exit":0,"message":null,"file""#);
        let script = good("same", 0).replace(r#""exit":0,"message":null,"file""#, &hashed);
        std::fs::write(inbox.join(format!("{name}.etl")), format!("{script} # {name}")).unwrap();
    }
    let (store, _lock) = Store::create(&folder.path().join("store")).unwrap();
    let settings = Settings { jobs: 1, ..settings("a") };
    let summary = run(&store, &inbox, &settings, false);
    let expected = BTreeMap::from([("copy", 1), ("failed", 1), ("read", 1)]);
    assert_eq!(summary.outcomes, expected, "{:?}", ledger(&store));
    assert_eq!(run(&store, &inbox, &settings, false).known, 3);
}

#[test]
fn one_at_a_time_writes() {
    let folder = tempfile::tempdir().unwrap();
    let held = Store::create(folder.path()).unwrap();
    assert!(Store::create(folder.path()).unwrap_err().to_string().contains("another"));
    drop(held);
    Store::create(folder.path()).unwrap();
    // Something else is not taken for a store.
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("thesis.txt"), "mine").unwrap();
    assert!(Store::create(other.path()).is_err() && Store::open(other.path()).is_err());
}

/// A batch that was being written when the program was killed is not there.
#[test]
fn half_a_batch_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _lock) = Store::create(folder.path()).unwrap();
    std::fs::create_dir(folder.path().join("batches/.half")).unwrap();
    std::fs::write(folder.path().join("batches/.half/run.parquet"), "PAR1").unwrap();
    assert!(store.batches().unwrap().is_empty());
    assert!(Memory::of(&store, false).is_ok());
}
