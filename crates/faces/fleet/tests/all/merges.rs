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

/// Files of others, in the places of a store.
fn put(folder: &Path, names: &[&str]) {
    for name in names {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "mine").unwrap();
    }
}

#[test]
fn what_others_put_where_batches_are_merged_stays() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["batches/2023/a.jpg", "replaced/thesis.doc", "merging/0-9999/b.jpg", "merging/notes.txt"];
    let is_there = |folder: &Path| names.iter().all(|name| folder.join(name).is_file());
    // A project that calls its folders as a store does is none.
    let project = folder.path().join("project");
    put(&project, &names);
    assert!(Store::create(&project).is_err() && is_there(&project));
    let path = folder.path().join("store");
    store(&path, 2);
    put(&path, &names);
    put(&path, &["replaced/00000007/c.jpg", "replaced/00000007/run.parquet"]);
    let (opened, lock) = Store::create(&path).unwrap();
    assert!(is_there(&path) && path.join("replaced/00000007/c.jpg").is_file());
    assert!(!path.join("replaced/00000007/run.parquet").exists(), "a part of a batch that is merged");
    assert_eq!(opened.batches().unwrap().len(), 2);
    drop(lock);
    // What is called like a merged batch and is none does not take the place of batches.
    let other = "merging/00000001-00000002/d.jpg";
    put(&path, &[other]);
    for is_empty in [false, true] {
        if is_empty {
            fs::remove_file(path.join(other)).unwrap();
        }
        assert!(Store::create(&path).unwrap_err().to_string().contains("is no merged batch"));
        assert!(path.join("batches/00000001").is_dir() && path.join("batches/00000002").is_dir());
    }
}

/// A link leads out of the store: to pictures that would be moved and removed, or to a device without an end.
#[cfg(unix)]
#[test]
fn a_link_is_no_part_of_a_store() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    for name in ["batches", "merging", "replaced", "views", "lock", "contract.json", "knowledge.parquet"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        let path = folder.path().join(name).join("store");
        store(&path, 1);
        let aside = folder.path().join(name).join("aside");
        if fs::rename(path.join(name), &aside).is_err() {
            put(&aside, &["00000001/a.jpg"]);
        }
        symlink(&aside, path.join(name)).unwrap();
        assert!(Store::create(&path).is_err() && Store::open(&path).is_err(), "{name}");
        assert!(aside.exists(), "{name}");
    }
    let path = folder.path().join("store");
    let one = store(&path, 1);
    put(folder.path(), &["pictures/a.jpg"]);
    symlink(folder.path().join("pictures"), path.join("batches/00000002")).unwrap();
    assert_eq!(one.batches().unwrap().len(), 1);
    fs::remove_file(path.join("contract.json")).unwrap();
    symlink("/dev/zero", path.join("contract.json")).unwrap();
    assert!(Store::open(&path).is_err());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap().path();
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}
