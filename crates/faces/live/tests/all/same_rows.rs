//! Following gives the rows of the batch, whatever the pieces in which a trace grows.
//!
//! Each run takes some traces of the corpus and draws some scenarios; `ETWHY_SEED` draws others, `ETWHY_FOLLOW=all` takes all of them:
//!
//! ```sh
//! ETWHY_FOLLOW=all cargo test -p etwhy-live --test all same_rows:: -- --nocapture
//! ```

use crate::growing::{Growing, batch, difference, drawn, follow, followed};
use crate::growing_segments::segments;
use etwhy_live::Follower;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Traces of the corpus that are followed by default: the smallest of those with some length.
const MOST: usize = 14;
const SIZES: std::ops::Range<u64> = 200_000..4_000_000;
/// The last part of a window, which is compared as well.
const LAST_NS: i64 = 300_000_000;
/// So many scenarios are drawn by default.
const DRAWN: usize = 6;
/// Those of stories are long: so much of them is followed.
const OF_STORIES: f64 = 0.02;

fn all() -> bool {
    std::env::var("ETWHY_FOLLOW").is_ok_and(|value| value == "all")
}

fn corpus() -> Vec<PathBuf> {
    let Some(folder) = etwhy_testkit::corpus_file("etl") else { return Vec::new() };
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut list: Vec<PathBuf> = etwhy_testkit::traces(&folder);
    if !all() {
        list.retain(|path| SIZES.contains(&size(path)));
    }
    list.sort_by_key(size);
    if !all() {
        list.truncate(MOST);
    }
    list
}

/// Follows a trace that grows in drawn pieces, in one file or in several, one after the other, and compares some windows on the way, and the last
/// one. How many were compared.
fn follows_like_batch(name: &str, parts: Vec<Vec<u8>>, window_ns: Option<i64>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = drawn(name);
    let begin = Instant::now();
    let mut compared = 0;
    let mut follower: Option<Follower> = None;
    let is_one = parts.len() == 1;
    for (number, part) in parts.into_iter().enumerate() {
        let piece = part.len() as u64 / 8 + 1;
        let mut file = Growing::new(&folder.path().join(format!("{number:03}.etl")), part);
        let place = if is_one { &*file.path } else { folder.path() };
        let follower = follower.get_or_insert_with(|| follow(place, window_ns));
        while file.write(1 + usize::try_from(rng.below(piece)).unwrap()) {
            follower.poll().unwrap();
            if follower.files().is_empty() {
                continue;
            }
            let Some(window) = follower.advance().unwrap() else { continue };
            if rng.below(3) == 0 {
                compared += usize::from(compare(follower, &window, true, name));
            }
        }
    }
    let Some(mut follower) = follower else { return compared };
    follower.end().unwrap();
    if follower.files().is_empty() {
        return compared;
    }
    let Some(window) = follower.advance().unwrap() else { return compared };
    compared += usize::from(compare(&mut follower, &window, false, name));
    eprintln!("{name}: {compared} windows, {:?}", begin.elapsed());
    compared
}

/// Whether nothing came too late for the window, so that it can be compared.
fn compare(follower: &mut Follower, window: &etwhy_live::Window, growing: bool, name: &str) -> bool {
    if follower.too_late() > 0 {
        eprintln!("{name}: {} buffers came too late for a window of this length", follower.too_late());
        return false;
    }
    let seen = followed(follower, window);
    let expected = batch(follower.paths(), window, growing);
    if let Some(text) = difference(&seen, &expected) {
        panic!("{name}, window {window:?}: followed and batch differ in {text}");
    }
    let last = follower.last(window, LAST_NS).filter(|_| follower.late_for_last() == 0);
    if let Some(last) = last {
        let seen = followed(follower, &last);
        let expected = batch(follower.paths(), &last, growing);
        if let Some(text) = difference(&seen, &expected) {
            panic!("{name}, last {last:?}: followed and batch differ in {text}");
        }
    }
    true
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn real_traces_grow() {
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        follows_like_batch(&format!("{} whole", name(&path)), vec![bytes.clone()], None);
        follows_like_batch(&format!("{} 2 s", name(&path)), vec![bytes], Some(2_000_000_000));
    }
}

/// Some buffers are written after the next one.
fn out_of_order(bytes: &mut [u8], name: &str) {
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let mut rng = drawn(name);
    for at in (size..bytes.len().saturating_sub(2 * size)).step_by(2 * size) {
        if rng.below(4) == 0 {
            let (a, b) = bytes[at..at + 2 * size].split_at_mut(size);
            a.swap_with_slice(b);
        }
    }
}

#[test]
fn written_traces_grow_with_buffers_out_of_order() {
    for (scenario, scale) in
        [("dpc_flood.toml", 0.02), ("registry_storm.toml", 0.01), ("antivirus_opens.toml", 0.02)]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = crate::growing_segments::written(folder.path(), scenario, scale);
        out_of_order(&mut bytes, scenario);
        follows_like_batch(scenario, vec![bytes.clone()], None);
        follows_like_batch(&format!("{scenario} 2 s"), vec![bytes], Some(2_000_000_000));
    }
}

/// Whether a file has nothing but buffers of the size that its first one has: no packed ones, which cannot be cut so.
fn is_raw(bytes: &[u8]) -> bool {
    let size =
        |at: usize| bytes.get(at..at + 4).map(|four| u32::from_le_bytes(four.try_into().unwrap()) as usize);
    let Some(first @ 1024..) = size(0) else { return false };
    bytes.len().is_multiple_of(first) && (0..bytes.len()).step_by(first).all(|at| size(at) == Some(first))
}

#[test]
fn scenarios_grow_in_one_file_and_in_segments() {
    let mut list: Vec<(PathBuf, f64)> = Vec::new();
    for (folder, scale) in [("scenarios", OF_STORIES), ("scenarios/findings", 1.0), ("scenarios/hard", 1.0)] {
        list.extend(etwhy_testkit::scenarios(&[folder]).into_iter().map(|path| (path, scale)));
    }
    assert!(list.len() > 100);
    if !all() {
        let mut rng = drawn("scenarios");
        let mut some = Vec::new();
        for _ in 0..DRAWN {
            some.push(list.swap_remove(rng.index(list.len())));
        }
        list = some;
    }
    let (mut compared, count) = (0, list.len());
    for (path, scale) in list {
        let folder = tempfile::tempdir().unwrap();
        let called = name(&path);
        let mut bytes = crate::growing_segments::written(folder.path(), path.to_str().unwrap(), scale);
        if !is_raw(&bytes) {
            compared += follows_like_batch(&called, vec![bytes], None);
            continue;
        }
        out_of_order(&mut bytes, &called);
        compared += follows_like_batch(&called, vec![bytes.clone()], None);
        compared +=
            follows_like_batch(&format!("{called} in segments"), segments(&bytes, 3), Some(5_000_000_000));
    }
    assert!(compared >= count, "{compared} windows of {count} scenarios");
}
