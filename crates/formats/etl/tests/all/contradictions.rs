//! Buffers whose headers contradict themselves, each other or their content: what can be read is read, and what cannot is
//! in the ledger. `crates/tools/fuzz` (target `damage`) does the same with thousands of changes of real traces.

use etwhy_base::Bytes;
use etwhy_etl::abi::buffer;
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::write::*;
use etwhy_etl::{Ledger, Severity};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

const RECORDS: u64 = 2000;

fn written(setup: TraceSetup) -> Vec<u8> {
    let mut writer =
        TraceWriter::new(Cursor::new(Vec::new()), TraceSetup { buffer_size: 1024, ..setup }).unwrap();
    let mut r = RecordBuf::new();
    let first = writer.setup().first_ticks();
    for i in 0..RECORDS {
        r.perfinfo(8, 0x0F2E, 2, first + i as i64).u64(i).u64(i * 7919);
        writer.write((i % 2) as u16, &mut r).unwrap();
    }
    writer.finish_into().unwrap().1.into_inner()
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}.etl", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn walk(files: &[EtlFile]) -> (u64, Ledger) {
    let mut ledger = Ledger::new();
    let timeline = Timeline::read(files, &mut ledger);
    let stats = Walk::new(files, &timeline).for_each(&mut ledger, |_, _| {});
    files.iter().for_each(|file| ledger.merge(file.ledger()));
    (stats.records, ledger)
}

/// Records, and the ledger by name.
fn read(name: &str, bytes: &[u8]) -> (u64, BTreeMap<&'static str, Severity>) {
    let path = file(name, bytes);
    let mut both = Vec::new();
    for chunk in [None, Some(97)] {
        let file = EtlFile::open(&path, Path::new("x.etl"), &OpenOptions { chunk }).unwrap();
        let (records, ledger) = walk(&[file]);
        let lines: BTreeMap<_, _> = ledger.entries().map(|e| (e.anomaly.name, e.anomaly.severity)).collect();
        both.push((records, lines));
    }
    std::fs::remove_file(path).unwrap();
    let mapped = both.remove(0);
    assert_eq!(both, std::slice::from_ref(&mapped), "{name}: mapped and in pieces");
    mapped
}

fn places(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut list = Vec::new();
    let mut at = 0;
    while let Some(size) = bytes.u32_at(at) {
        list.push((at, size as usize));
        at += size as usize;
    }
    list
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn what_headers_contradict_is_read_all_the_same() {
    for compressed in [false, true] {
        let whole = written(TraceSetup { compressed, ..TraceSetup::default() });
        let (all, clean) = read("whole", &whole);
        assert!(all >= RECORDS && clean.is_empty(), "{clean:?}");
        let (at, _) = places(&whole)[5];
        let end = whole.u32_at(at + buffer::OFFSET).unwrap();
        let changes: &[(&str, u32, u32)] = &[
            ("impossible saved offset", 0x7fff_ffff, buffer::LEN as u32),
            ("saved offset alone", buffer::LEN as u32, end),
            ("offset alone", end, buffer::LEN as u32),
            ("a smaller one", end, end - 24),
        ];
        for &(name, saved, offset) in changes {
            let mut bytes = whole.clone();
            put(&mut bytes, at + buffer::SAVED_OFFSET, saved);
            put(&mut bytes, at + buffer::OFFSET, offset);
            let (records, ledger) = read("changed", &bytes);
            assert_eq!(records, all, "{name}, compressed: {compressed}");
            assert!(ledger.contains_key("buffer_end_odd"), "{name}, compressed: {compressed}: {ledger:?}");
        }
        // Both agree: what a compressed buffer unpacks to is its content; what stands behind the end of a raw one may be old.
        for less in [end - buffer::LEN as u32, 24 * 4] {
            let mut bytes = whole.clone();
            put(&mut bytes, at + buffer::SAVED_OFFSET, end - less);
            put(&mut bytes, at + buffer::OFFSET, end - less);
            let (records, ledger) = read("agree", &bytes);
            if compressed {
                assert_eq!((records, ledger.contains_key("buffer_end_odd")), (all, true), "{ledger:?}");
            } else {
                assert!(records < all);
                assert_eq!(ledger.get("records_behind_end"), Some(&Severity::DataLoss), "{ledger:?}");
            }
        }
        // The other kind of buffer than all others.
        let mut bytes = whole.clone();
        bytes[at + buffer::BUFFER_FLAG] ^= buffer::FLAG_COMPRESSED as u8;
        let (records, ledger) = read("packed", &bytes);
        if compressed {
            // The buffer before it leads nowhere that looks like a buffer.
            assert_eq!(
                (records < all, ledger.get("buffer_header_bad")),
                (true, Some(&Severity::Error)),
                "{ledger:?}"
            );
        } else {
            assert_eq!((records, ledger.contains_key("buffer_end_odd")), (all, true), "{ledger:?}");
        }
    }
}

#[test]
fn a_copied_buffer_hides_no_other() {
    let whole = written(TraceSetup::default());
    let (all, _) = read("all", &whole);
    let places = places(&whole);
    for (from, to) in [(0, 1), (0, 7), (4, 9), (0, places.len() - 1)] {
        let mut bytes = whole.clone();
        let (at, size) = places[from];
        let copy = bytes[at..at + size].to_vec();
        bytes[places[to].0..places[to].0 + size].copy_from_slice(&copy);
        let (records, ledger) = read("copied", &bytes);
        assert!(records < all && ledger.contains_key("buffers_repeated"), "{from} to {to}: {ledger:?}");
        let missing = ["buffers_missing", "fewer_buffers_than_written"];
        assert!(missing.iter().any(|name| ledger.get(name) == Some(&Severity::DataLoss)), "{ledger:?}");
        assert!(!ledger.contains_key("segment_of_series"), "{from} to {to}: {ledger:?}");
    }
    // Beside itself: nothing is lost, and nothing counts twice.
    for n in [0, 5] {
        let (at, size) = places[n];
        let bytes = [&whole[..at + size], &whole[at..]].concat();
        let (records, ledger) = read("twice", &bytes);
        assert_eq!((records, ledger.contains_key("buffers_repeated")), (all, true), "{ledger:?}");
        assert!(!ledger.contains_key("buffers_missing"), "{ledger:?}");
    }
}

#[test]
fn an_appended_session_that_lost_its_first_buffers_says_so() {
    let first = written(TraceSetup::default());
    let setup = TraceSetup { buffer_size: 1024, logger_id: 9, append_header: true, ..TraceSetup::default() };
    let start = TraceSetup { start_time: setup.start_time + 600_000_000, ..setup };
    let mut writer = TraceWriter::append(Cursor::new(first.clone()), start).unwrap();
    let mut r = RecordBuf::new();
    let ticks = writer.setup().first_ticks();
    for i in 0..500 {
        r.perfinfo(8, 0x0F2E, 2, ticks + i).u64(1).u64(2);
        writer.write(0, &mut r).unwrap();
    }
    let bytes = writer.finish_into().unwrap().1.into_inner();
    assert!(!read("appended", &bytes).1.contains_key("buffers_missing"));
    let second: Vec<_> = places(&bytes).into_iter().filter(|p| p.0 >= first.len()).collect();
    let cut = [&bytes[..second[1].0], &bytes[second[3].0..]].concat();
    let ledger = read("cut", &cut).1;
    assert_eq!(ledger.get("buffers_missing"), Some(&Severity::DataLoss), "{ledger:?}");
}

#[test]
fn what_a_circular_file_has_overwritten_is_not_missing() {
    let setup = TraceSetup { buffer_size: 1024, circular_buffers: Some(8), ..TraceSetup::default() };
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), setup).unwrap();
    let mut r = RecordBuf::new();
    let first = writer.setup().first_ticks();
    for i in 0..2000u64 {
        r.perfinfo(8, 0x0F2E, 2, first + i as i64).u64(i).u64(0);
        // The buffer of the second processor is old when it is written: those with the next numbers are overwritten by then.
        writer.write(u16::from(i % 100 == 7), &mut r).unwrap();
    }
    let bytes = writer.finish_into().unwrap().1.into_inner();
    let ledger = read("circular", &bytes).1;
    assert_eq!(ledger.get("circular_overwritten"), Some(&Severity::Info), "{ledger:?}");
    assert!(!ledger.contains_key("buffers_missing"), "{ledger:?}");
}

/// The file becomes shorter between opening and reading. Mapped pages that are gone would end the process.
#[test]
#[cfg(unix)]
fn a_file_that_becomes_shorter_is_read_as_far_as_it_goes() {
    let bytes = written(TraceSetup::default());
    let all = read("before", &bytes).0;
    for threads in [1, 3] {
        for (chunk, left) in
            [(None, bytes.len() / 2), (None, 0), (None, bytes.len() - 1), (Some(500), 20_000)]
        {
            let path = file("shrinks", &bytes);
            let opened = [EtlFile::open(&path, Path::new("x.etl"), &OpenOptions { chunk }).unwrap()];
            std::fs::File::options().write(true).open(&path).unwrap().set_len(left as u64).unwrap();
            let mut ledger = Ledger::new();
            let timeline = Timeline::read(&opened, &mut ledger);
            let walked = Walk::new(&opened, &timeline).for_each_threaded(threads, &mut ledger, |_, _| {});
            let most = if left + 1 == bytes.len() { all } else { all - 1 };
            assert!(walked.records <= most && (left < 4096 || walked.records > 0), "{left} bytes left");
            let said = ledger.entries().find(|e| e.anomaly.name == "file_shrank").unwrap();
            assert_eq!((said.count, said.anomaly.severity), (1, Severity::Error));
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// It becomes shorter while its records are pushed: those that were found and are gone are not pushed as records of zeros.
#[test]
#[cfg(unix)]
fn records_that_are_gone_are_not_invented() {
    let bytes = written(TraceSetup::default());
    let all = read("whole-shrinks", &bytes).0;
    for threads in [1, 3] {
        let path = file("shrinks-meanwhile", &bytes);
        let opened = [EtlFile::open(&path, Path::new("x.etl"), &OpenOptions::default()).unwrap()];
        let mut ledger = Ledger::new();
        let timeline = Timeline::read(&opened, &mut ledger);
        let (mut pushed, mut zeros) = (0, 0);
        let walk = Walk::new(&opened, &timeline);
        let walked = walk.for_each_threaded(threads, &mut ledger, |record, _| {
            pushed += 1;
            zeros += u64::from(record.bytes.iter().take(4).all(|byte| *byte == 0));
            if pushed == 5 {
                std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
            }
        });
        assert_eq!((walked.records, zeros), (pushed, 0));
        assert!(pushed >= 5 && pushed < all, "{pushed} of {all}");
        assert!(ledger.entries().any(|e| e.anomaly.name == "file_shrank"));
        std::fs::remove_file(path).unwrap();
    }
}
