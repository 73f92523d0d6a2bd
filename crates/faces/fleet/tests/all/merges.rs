//! Merged batches have the rows of their parts, at every moment and after every way to be killed.

use crate::made::Made;
use etwhy_fleet::merge::merge;
use etwhy_fleet::{Fleet, Store};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// A store of one trace a batch.
fn store(folder: &Path, batches: i64) -> Store {
    let mut made = Made::default();
    for n in 1..=batches {
        let (trace, machine) = (format!("t{n}"), format!("m{}", n % 7));
        let mut of = made.reading(&trace, &machine, "1", &trace, n);
        of.facts("Contoso Book 1", n % 28);
        of.driver("a.sys", "1.0", 0.01 * n as f64);
        of.finding("dpc.flood", if n % 2 == 0 { "found" } else { "cannot_tell" });
    }
    made.store(folder)
}

fn rows(path: &Path) -> (usize, String) {
    let fleet = Fleet::new(Store::open(path).unwrap()).unwrap();
    let rank = fleet.ask("rank").unwrap();
    let traces = fleet.ask("traces").unwrap();
    let names: Vec<&str> =
        (0..traces.rows() as u32).map(|row| traces.text(row, "trace_id").unwrap()).collect();
    (fleet.traces(), format!("{:?} {names:?}", rank.i64(0, "cpu_ns")))
}

#[test]
fn readers_see_each_row_once_while_batches_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let all = store(&path, 40);
    let before = rows(&path);
    assert_eq!((before.0, all.batches().unwrap().len()), (40, 40));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) || seen == 0 {
                assert_eq!(rows(&path), before);
                seen += 1;
            }
            seen
        });
        let (store, lock) = Store::create(&path).unwrap();
        assert!(merge(&store, &lock).unwrap());
        assert!(!merge(&store, &lock).unwrap(), "one batch is not many");
        done.store(true, Ordering::Relaxed);
        println!("{} readings meanwhile", reader.join().unwrap());
    });
    assert_eq!(rows(&path), before);
    assert_eq!(all.batches().unwrap().len(), 1);
    assert_eq!(all.next_batch().unwrap(), 41, "numbers go on");
    let names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "batches, contract, knowledge, lock, views: {names:?}");
}

#[test]
fn whoever_is_killed_while_merging_leaves_what_the_next_one_finishes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    store(&path, 20);
    let before = rows(&path);
    // The merged batch, as it is before the others leave.
    let whole = folder.path().join("whole");
    let (made, lock) = Store::create(&path).unwrap();
    let parts: Vec<_> = made.batches().unwrap();
    let saved = folder.path().join("parts");
    for part in &parts {
        copy(&part.folder, &saved.join(part.folder.file_name().unwrap()));
    }
    assert!(merge(&made, &lock).unwrap());
    drop(lock);
    fs::rename(path.join("batches/00000001-00000020"), &whole).unwrap();
    for gone in [0, 1, 19, 20] {
        let _ = fs::remove_dir_all(path.join("batches"));
        fs::create_dir_all(path.join("batches")).unwrap();
        fs::create_dir_all(path.join("merging")).unwrap();
        fs::create_dir_all(path.join("replaced")).unwrap();
        for (n, part) in parts.iter().enumerate() {
            let name = part.folder.file_name().unwrap();
            let to = path.join(if n < gone { "replaced" } else { "batches" }).join(name);
            copy(&saved.join(name), &to);
        }
        copy(&whole, &path.join("merging/00000001-00000020"));
        assert_eq!(rows(&path), before, "{gone} were moved");
        let (store, _lock) = Store::create(&path).unwrap();
        assert_eq!(store.batches().unwrap().len(), 1);
        assert_eq!(rows(&path), before, "{gone} were moved");
    }
}

/// An older program keeps what it does not know: the contract, and columns of batches.
#[test]
fn what_a_newer_program_wrote_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    store(&path, 20);
    let file = path.join("contract.json");
    let mut newer: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let column = serde_json::json!({ "name": "colour", "type": "text", "nullable": true });
    newer["tables"][0]["columns"].as_array_mut().unwrap().push(column);
    fs::write(&file, newer.to_string()).unwrap();
    let (older, lock) = Store::create(&path).unwrap();
    assert!(!merge(&older, &lock).unwrap());
    assert_eq!(older.batches().unwrap().len(), 20);
    assert!(fs::read_to_string(&file).unwrap().contains("colour"));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap().path();
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}
