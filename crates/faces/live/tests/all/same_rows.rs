//! Following gives the rows of the batch, whatever the pieces in which a trace grows.

use crate::growing::{Growing, batch, difference, drawn, follow, followed};
use etwhy_live::Follower;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Traces of the corpus that are followed by default: the smallest of those with some length.
const MOST: usize = 14;
const SIZES: std::ops::Range<u64> = 200_000..4_000_000;

fn corpus() -> Vec<PathBuf> {
    let Some(folder) = etwhy_testkit::corpus_file("etl") else { return Vec::new() };
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut all: Vec<PathBuf> = etwhy_testkit::traces(&folder);
    all.retain(|path| SIZES.contains(&size(path)));
    all.sort_by_key(size);
    all.truncate(MOST);
    all
}

/// Follows a trace that grows in drawn pieces and compares some windows on the way, and the last one.
fn follows_like_batch(name: &str, bytes: Vec<u8>, window_ns: Option<i64>) {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = drawn(name);
    let total = bytes.len() as u64;
    let mut file = Growing::new(&folder.path().join("growing.etl"), bytes);
    let mut follower = follow(&file.path, window_ns);
    let begin = Instant::now();
    let mut compared = 0;
    while file.write(1 + usize::try_from(rng.below(total / 8 + 1)).unwrap()) {
        follower.poll().unwrap();
        if follower.files().is_empty() {
            continue;
        }
        let Some(window) = follower.advance().unwrap() else { continue };
        if rng.below(3) == 0 {
            compare(&mut follower, &window, true, name);
            compared += 1;
        }
    }
    follower.end().unwrap();
    if follower.files().is_empty() {
        return;
    }
    let Some(window) = follower.advance().unwrap() else { return };
    compare(&mut follower, &window, false, name);
    eprintln!("{name}: {compared} windows on the way, {:?}", begin.elapsed());
}

fn compare(follower: &mut Follower, window: &etwhy_live::Window, growing: bool, name: &str) {
    if follower.too_late() > 0 {
        eprintln!("{name}: {} buffers came too late for a window of this length", follower.too_late());
        return;
    }
    let seen = followed(follower, window);
    let expected = batch(follower.paths(), window, growing);
    if let Some(text) = difference(&seen, &expected) {
        panic!("{name}, window {window:?}: followed and batch differ in {text}");
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn real_traces_grow() {
    for path in corpus() {
        let bytes = std::fs::read(&path).unwrap();
        follows_like_batch(&format!("{} whole", name(&path)), bytes.clone(), None);
        follows_like_batch(&format!("{} 2 s", name(&path)), bytes, Some(2_000_000_000));
    }
}

#[test]
fn written_traces_grow_with_buffers_out_of_order() {
    for (scenario, scale) in
        [("dpc_flood.toml", 0.02), ("registry_storm.toml", 0.01), ("antivirus_opens.toml", 0.02)]
    {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = crate::growing_segments::written(folder.path(), scenario, scale);
        let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let mut rng = drawn(scenario);
        // Some buffers are written after the next one.
        for at in (size..bytes.len().saturating_sub(2 * size)).step_by(2 * size) {
            if rng.below(4) == 0 {
                let (a, b) = bytes[at..at + 2 * size].split_at_mut(size);
                a.swap_with_slice(b);
            }
        }
        follows_like_batch(scenario, bytes.clone(), None);
        follows_like_batch(&format!("{scenario} 2 s"), bytes, Some(2_000_000_000));
    }
}
