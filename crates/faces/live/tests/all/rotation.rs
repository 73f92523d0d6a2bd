//! Sessions that go on in new files: windows over several of them, files that are past, and files without a header.

use crate::growing::{Growing, batch, batch_of, difference, drawn, follow, followed, options};
use crate::growing_segments::segments;
use crate::growing_segments::written;
use crate::parts::rows;
use etwhy_etl::read::EtlFile;
use etwhy_etl::read::anomalies::CLOCKS_DIFFER;
use etwhy_etl::write::{TraceSetup, TraceWriter};
use etwhy_live::{FollowOptions, Follower, no_schemas};
use etwhy_trace::anomalies::FIRST_FILE_ABSENT;
use etwhy_trace::{Output, Symbols};
use std::path::PathBuf;

/// Bytes of a buffer's header and of the header of its first record; offsets in the payload behind them (`TRACE_LOGFILE_HEADER`, 64-bit).
const PAYLOAD: usize = 72 + 32;
const ANCHOR: usize = 72 + 16;
pub const END_TIME: usize = PAYLOAD + 0x10;
const START_TIME: usize = PAYLOAD + 0x108;

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// One recording as sessions that follow each other: each ran for a part of it, and begins with who is who. And how long each ran, in
/// nanoseconds.
fn sessions(bytes: &[u8], count: i64) -> (Vec<Vec<u8>>, i64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.etl");
    std::fs::write(&path, bytes).unwrap();
    let whole = EtlFile::open_growing(&path, &path, None).unwrap();
    let all: Vec<(usize, i64, i64)> = whole
        .buffers()
        .iter()
        .filter_map(|b| Some((usize::try_from(b.offset).unwrap(), b.first_ticks?, whole.last_of(b))))
        .collect();
    let (first, last) = (all.iter().map(|b| b.1).min().unwrap(), all.iter().map(|b| b.2).max().unwrap());
    let step = (last - first) / count + 1;
    let (hz, size) = (whole.clock().frequency, whole.header().buffer_size as usize);
    let parts = (0..count).map(|n| {
        let (from, to) = (first + n * step, first + (n + 1) * step - 1);
        // What had been written when it ended.
        let begun = all.iter().filter(|b| b.0 == 0 || b.1 <= to).map(|b| &bytes[b.0..b.0 + size]);
        std::fs::write(&path, begun.collect::<Vec<_>>().concat()).unwrap();
        let mut part = Vec::new();
        EtlFile::open_growing(&path, &path, None).unwrap().write_part(from, to, &mut part).unwrap();
        let start = i64_at(&part, START_TIME) + (from - i64_at(&part, ANCHOR)) * 10_000_000 / hz;
        for (at, value) in [(ANCHOR, from), (START_TIME, start), (END_TIME, start + step * 10_000_000 / hz)] {
            part[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        part
    });
    (parts.collect(), whole.clock().span_ns(step))
}

#[test]
fn a_window_lies_over_several_files_and_those_before_it_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let made = tempfile::tempdir().unwrap();
    let bytes = written(made.path(), "clean_web_server.toml", 0.8);
    let mut rng = drawn("rotation");
    let (files, each_ns) = sessions(&bytes, 10);
    let window_ns = each_ns * 2;
    let mut follower = Follower::new(
        folder.path(),
        FollowOptions { patience_ns: 500_000_000, ..options(Some(window_ns)) },
        Symbols::new(&[]),
        no_schemas(),
    )
    .unwrap();
    let (mut over_several, mut dropped, mut compared) = (0, 0, 0);
    let mut all: Vec<PathBuf> = Vec::new();
    for (number, part) in files.iter().enumerate() {
        let mut file = Growing::new(&folder.path().join(format!("{number:03}.etl")), part.clone());
        all.push(file.path.clone());
        let mut more = true;
        while more {
            more = file.write(1 + usize::try_from(rng.below(part.len() as u64 / 3)).unwrap());
            follower.poll().unwrap();
            let Some(window) = follower.advance().unwrap() else { continue };
            assert!(window.to_ns - window.from_ns <= window_ns, "{window:?}");
            let inside = |path: &PathBuf| {
                let file = EtlFile::open_growing(path, path, None).unwrap();
                let mut firsts = file.buffers().iter().filter_map(|buffer| buffer.first_ticks);
                firsts.any(|ticks| (window.from..window.to).contains(&ticks))
            };
            over_several += usize::from(all.iter().filter(|path| inside(path)).count() > 1);
            dropped = dropped.max(all.len() - follower.files().len());
            if follower.too_late() == 0 && rng.below(3) == 0 {
                let seen = followed(&mut follower, &window);
                let left = batch(follower.paths(), &window, true);
                assert_eq!(difference(&seen, &left), None, "{window:?}");
                compared += 1;
            }
        }
    }
    follower.end().unwrap();
    let window = follower.advance().unwrap().unwrap();
    let seen = followed(&mut follower, &window);
    let left = batch(follower.paths(), &window, false);
    assert_eq!(difference(&seen, &left), None);
    // What was forgotten is missed by nobody: all files say the same of the window.
    let whole = batch(&all, &window, false);
    for name in ["sample", "cswitch", "dpc", "disk_io"] {
        let names = |output| rows(output, name).into_iter().map(|row| row.1).collect::<Vec<_>>();
        assert_eq!(names(&seen), names(&whole), "{name}");
    }
    assert!(seen.db.get("cswitch").unwrap().rows() > 1000);
    assert!(over_several > 3 && dropped >= 3 && compared > 3, "{over_several} {dropped} {compared}");
}

/// The session goes on in new files, of which the first was deleted before anybody followed.
#[test]
fn what_the_first_file_would_have_named_is_said_and_named_by_later_ones() {
    let made = tempfile::tempdir().unwrap();
    let mut bytes = written(made.path(), "clean_web_server.toml", 0.5);
    let mode = PAYLOAD + 0x20;
    let new_file = u32::from_le_bytes(bytes[mode..mode + 4].try_into().unwrap()) | 0x8;
    bytes[mode..mode + 4].copy_from_slice(&new_file.to_le_bytes());
    let parts = segments(&bytes, 4);
    let named =
        |output: &Output| rows(output, "process").into_iter().filter(|row| row.0.contains(".exe")).count();
    let follow_all = |parts: &[Vec<u8>]| {
        let folder = tempfile::tempdir().unwrap();
        let mut follower = follow(folder.path(), None);
        let mut seen = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{number:03}.etl")), part).unwrap();
            follower.poll().unwrap();
            let Some(window) = follower.advance().unwrap() else { continue };
            let output = followed(&mut follower, &window);
            assert_eq!(difference(&output, &batch(follower.paths(), &window, true)), None);
            seen.push((named(&output), output.ledger.get(&FIRST_FILE_ABSENT)));
        }
        follower.end().unwrap();
        let window = follower.advance().unwrap().unwrap();
        let output = followed(&mut follower, &window);
        seen.push((named(&output), output.ledger.get(&FIRST_FILE_ABSENT)));
        seen
    };
    let whole = follow_all(&parts);
    assert!(whole.iter().all(|(_, absent)| *absent == 0), "{whole:?}");
    let without = follow_all(&parts[1..]);
    assert_eq!(without[0].1, 1, "{without:?}");
    assert!(without[0].0 < whole[0].0, "{without:?}");
    // The last one has what the session says at its end.
    assert_eq!(without.last().unwrap(), &(whole.last().unwrap().0, 0), "{without:?} {whole:?}");
}

#[test]
fn a_stream_without_its_first_buffer_is_read_with_a_header_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = written(folder.path(), "openmp_spin.toml", 0.02);
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let whole = folder.path().join("written.etl");
    let header = EtlFile::read_header(&whole).unwrap();
    let path = folder.path().join("stream.etl");
    let mut file = Growing::new(&path, bytes[size..].to_vec());
    let given = FollowOptions { header: Some(header.clone()), ..options(Some(2_000_000_000)) };
    let mut follower = Follower::new(&path, given, Symbols::new(&[]), no_schemas()).unwrap();
    let mut rng = drawn("stream");
    while file.write(1 + usize::try_from(rng.below(300_000)).unwrap()) {
        follower.poll().unwrap();
        follower.advance().unwrap();
    }
    follower.end().unwrap();
    let window = follower.advance().unwrap().unwrap();
    assert_eq!((follower.files()[0].clock(), follower.too_late()), (&header.clock, 0));
    let seen = followed(&mut follower, &window);
    let mut again = EtlFile::open_growing(&path, &path, Some(&header)).unwrap();
    again.grow(&path, true).unwrap();
    assert_eq!(difference(&seen, &batch_of(vec![again], &window, false)), None);
    // The rows are those of the file with its header; what headers count is not known.
    let truth = batch(&[whole], &window, false);
    for name in ["sample", "cswitch", "process", "thread", "image"] {
        assert_eq!(rows(&seen, name), rows(&truth, name), "{name}");
    }
    assert!(seen.db.get("sample").unwrap().rows() > 100);

    // Without a header it is no trace; with that of a session whose buffers are larger neither.
    assert!(Follower::new(&path, options(None), Symbols::new(&[]), no_schemas()).is_err());
    let mut other = header;
    other.header.buffer_size *= 2;
    let wrong = FollowOptions { header: Some(other), ..options(None) };
    assert!(Follower::new(&path, wrong, Symbols::new(&[]), no_schemas()).is_err());
    // A header of its own wins.
    let mut follower = follow(&folder.path().join("written.etl"), None);
    follower.end().unwrap();
    assert!(follower.advance().unwrap().is_some());
}

/// What the batch says of the clocks of several files, a window says too: `trace.clock-anomaly` rests on it.
#[test]
fn files_with_different_clocks_are_told_in_each_window() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "openmp_spin.toml", 0.02);
    let told = |path: &std::path::Path| {
        let mut follower = follow(path, None);
        follower.end().unwrap();
        let window = follower.advance().unwrap().unwrap();
        followed(&mut follower, &window).ledger.get(&CLOCKS_DIFFER)
    };
    assert_eq!(told(folder.path()), 0);
    let setup = TraceSetup { perf_freq: 3_000_000, ..TraceSetup::default() };
    TraceWriter::create(&folder.path().join("z.etl"), setup).unwrap().finish().unwrap();
    assert_eq!(told(folder.path()), 2);
}
