//! Folders of segments, files that are cut off, replaced or hostile, and what is kept in memory.

use crate::growing::{Growing, batch, difference, drawn, follow, followed, options};
use crate::rotation::END_TIME;
use etwhy_live::anomalies::TIME_DOUBTED;
use etwhy_live::{FollowOptions, Follower, no_schemas};
use etwhy_synth::Scenario;
use etwhy_trace::Symbols;
use std::path::Path;

/// A written trace.
pub fn written(folder: &Path, scenario: &str, scale: f64) -> Vec<u8> {
    let path = etwhy_testkit::root().join("scenarios").join(scenario);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut scenario = Scenario::parse(&text, &path.display().to_string()).unwrap();
    scenario.scale(scale).unwrap();
    let trace = folder.join("written.etl");
    etwhy_synth::write(&scenario, &trace, &mut |_| {}).unwrap();
    std::fs::read(&trace).unwrap()
}

/// Cuts a raw trace into segments of one session: each has the header and some of the buffers.
pub fn segments(bytes: &[u8], count: usize) -> Vec<Vec<u8>> {
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let buffers: Vec<&[u8]> = bytes.chunks(size).collect();
    let (header, rest) = buffers.split_first().unwrap();
    rest.chunks(rest.len().div_ceil(count).max(1)).map(|part| [&[*header], part].concat().concat()).collect()
}

#[test]
fn segments_are_read_as_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "clean_web_server.toml", 0.5);
    std::fs::remove_file(folder.path().join("written.etl")).unwrap();
    let mut rng = drawn("segments");
    let mut follower = follow(folder.path(), Some(3_000_000_000));
    let parts = segments(&bytes, 4);
    let count = parts.len();
    for (number, part) in parts.into_iter().enumerate() {
        let mut file = Growing::new(&folder.path().join(format!("{number:03}.etl")), part);
        while file.write(1 + usize::try_from(rng.below(400_000)).unwrap()) {
            follower.poll().unwrap();
            follower.advance().unwrap();
        }
    }
    follower.end().unwrap();
    let window = follower.advance().unwrap().unwrap();
    assert!(count > 2);
    assert_eq!((follower.files().len(), follower.too_late()), (count, 0));
    let seen = followed(&mut follower, &window);
    let expected = batch(follower.paths(), &window, false);
    assert_eq!(difference(&seen, &expected), None);
}

#[test]
fn what_is_kept_does_not_grow_with_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "clean_web_server.toml", 2.0);
    let path = folder.path().join("written.etl");
    let options = FollowOptions { patience_ns: 500_000_000, ..options(Some(1_000_000_000)) };
    let mut follower = Follower::replay(&path, options, Symbols::new(&[]), no_schemas()).unwrap();
    let mut at = 0;
    let (mut most, mut all) = (0, 0);
    while !follower.has_ended() {
        at += 500_000_000;
        all += follower.play(at).buffers;
        if follower.advance().unwrap().is_some() {
            most = most.max(follower.files()[0].buffers().len());
        }
    }
    assert_eq!(follower.files()[0].buffers_found(), all as u64);
    assert!(all > 2 * most, "{most} of {all} buffers of {} bytes were held", bytes.len());
}

/// Records of a damaged file may lie years ahead, or behind all that nanoseconds can count; several may have like times.
#[test]
fn wrong_times_do_not_move_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "openmp_spin.toml", 0.02);
    let path = folder.path().join("written.etl");
    let end_ns = || {
        let mut follower = follow(&path, Some(2_000_000_000));
        follower.end().unwrap();
        follower.advance().unwrap().unwrap().to_ns
    };
    let right = end_ns();
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    // Of the first record of a buffer: behind the 72 bytes of the buffer's header and 8 of its own (PERFINFO_TRACE_HEADER).
    let at = bytes.len() / size / 2 * size + 72 + 8;
    for (wrong, count) in [(1i64 << 62, 1), (1 << 50, 1), (1 << 50, 2), (1 << 50, 4)] {
        let mut damaged = bytes.clone();
        for number in 0..count {
            let at = at + number * size;
            damaged[at..at + 8].copy_from_slice(&(wrong + i64::try_from(number).unwrap()).to_le_bytes());
        }
        std::fs::write(&path, &damaged).unwrap();
        assert!(end_ns().abs_diff(right) < 1_000_000_000, "{wrong:x}: {} instead of {right}", end_ns());
        // As it grows, nobody knows when the session ended.
        let mut growing = damaged.clone();
        growing[END_TIME..END_TIME + 8].fill(0);
        let mut file = Growing::new(&folder.path().join("growing.etl"), growing);
        let mut follower = follow(&file.path, Some(2_000_000_000));
        let mut doubted = 0;
        while file.write(4 * size) {
            follower.poll().unwrap();
            let Some(window) = follower.advance().unwrap() else { continue };
            assert!(window.to_ns <= right + 1_000_000_000, "{wrong:x}: {window:?}");
            doubted = followed(&mut follower, &window).ledger.get(&TIME_DOUBTED);
        }
        assert!(doubted <= count as u64, "{wrong:x}: {doubted}");
        let options = options(Some(2_000_000_000));
        let mut follower = Follower::replay(&path, options, Symbols::new(&[]), no_schemas()).unwrap();
        let mut steps = 0;
        while let Some(next) = follower.next_ns() {
            follower.play(next);
            steps += 1;
            assert!(steps < 1_000, "{wrong:x}: never ends");
        }
    }
}

/// Files vanish between the list of a folder and their opening, and some nobody may read.
#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_read_does_not_end_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "openmp_spin.toml", 0.02);
    let at = |name: &str| folder.path().join(name);
    std::fs::remove_file(at("written.etl")).unwrap();
    // No user may read this one.
    std::os::unix::fs::symlink("/proc/sys/vm/compact_memory", at("b.etl")).unwrap();
    let alone = Follower::new(folder.path(), options(None), Symbols::new(&[]), no_schemas());
    assert!(alone.is_err_and(|error| error.to_string().contains("b.etl")));
    std::os::unix::fs::symlink(at("loop.etl"), at("loop.etl")).unwrap();
    std::fs::create_dir(at("folder.etl")).unwrap();
    std::fs::write(at("a.etl"), &bytes).unwrap();
    let mut follower = follow(folder.path(), None);
    follower.advance().unwrap();
    // A pipe would be waited for.
    let pipe = at("pipe.etl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let piped = Follower::new(&pipe, options(None), Symbols::new(&[]), no_schemas());
    assert!(piped.is_err_and(|error| error.to_string().contains("neither a file nor a folder")));
    // What was read can become unreadable, too.
    std::fs::write(at("c.etl"), &bytes).unwrap();
    follower.poll().unwrap();
    std::fs::remove_file(at("c.etl")).unwrap();
    std::os::unix::fs::symlink("/proc/sys/vm/compact_memory", at("c.etl")).unwrap();
    follower.end().unwrap();
    let window = follower.advance().unwrap().unwrap();
    let wanted = ["ledger".to_owned()].into();
    let ledger = follower.tables(&window, &wanted, &etwhy_table::Memory::unlimited()).unwrap().ledger;
    let refused =
        ledger.entries().find(|entry| entry.anomaly.name == "file_refused").map(|entry| entry.count);
    assert_eq!((follower.files().len(), refused), (2, Some(2)));
}

#[test]
fn files_that_are_cut_off_or_replaced_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "openmp_spin.toml", 0.02);
    let other = written(folder.path(), "clean_web_server.toml", 0.01);
    let path = folder.path().join("x.etl");
    std::fs::write(&path, &bytes).unwrap();
    let mut follower = follow(&path, Some(2_000_000_000));
    follower.advance().unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(follower.poll().unwrap().replaced, 1);
    follower.advance().unwrap();
    std::fs::write(&path, &other).unwrap();
    assert_eq!(follower.poll().unwrap().replaced, 1);
    follower.end().unwrap();
    let window = follower.advance().unwrap().unwrap();
    let seen = followed(&mut follower, &window);
    assert_eq!(difference(&seen, &batch(&[path], &window, false)), None);
}

#[test]
fn damage_while_following_is_no_crash() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "openmp_spin.toml", 0.02);
    for round in 0..12 {
        let mut rng = drawn(&format!("damage {round}"));
        let mut damaged = bytes.clone();
        for _ in 0..40 {
            let at = usize::try_from(rng.below(damaged.len() as u64 - 4096)).unwrap() + 2048;
            damaged[at] = rng.bits() as u8;
        }
        damaged.truncate(damaged.len() - usize::try_from(rng.below(100_000)).unwrap());
        let mut file = Growing::new(&folder.path().join(format!("{round}.etl")), damaged);
        let mut follower = follow(&file.path, Some(1_000_000_000));
        while file.write(1 + usize::try_from(rng.below(300_000)).unwrap()) {
            follower.poll().unwrap();
            if let Some(window) = follower.advance().unwrap() {
                followed(&mut follower, &window);
            }
        }
        follower.end().unwrap();
        if let Some(window) = follower.advance().unwrap() {
            followed(&mut follower, &window);
        }
    }
}

#[test]
fn what_is_no_trace_is_refused_and_what_is_none_yet_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.etl");
    let open = || Follower::new(&path, options(None), Symbols::new(&[]), no_schemas());
    assert!(open().is_err());
    std::fs::write(&path, b"").unwrap();
    assert!(open().unwrap().window().is_none());
    std::fs::write(&path, vec![7u8; 100_000]).unwrap();
    assert!(open().is_err());
}
