//! Files of one recording as one trace: the same records, the same gaps, no crash.

use etwhy_base::rng::Rng;
use etwhy_etl::Ledger;
use etwhy_etl::read::anomalies::EVENTS_LOST;
use etwhy_etl::read::{EtlFile, Gap, OpenOptions, Timeline, Walk};
use etwhy_etl::write::{TraceSetup, TraceWriter};
use etwhy_record::merge::{MergeError, MergeOptions, Merged, Volume, merge};
use etwhy_synth::{DEMO, Scenario};
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// A record: its processor, its time, its bytes.
type Copied = (u16, i64, Vec<u8>);

fn open(path: &Path) -> EtlFile {
    EtlFile::open(path, path, &OpenOptions::default()).unwrap()
}

/// All records but the headers of sessions.
fn records(files: &[EtlFile]) -> Vec<Copied> {
    let timeline = Timeline::read(files, &mut Ledger::new());
    let mut all = Vec::new();
    Walk::new(files, &timeline).for_each(&mut Ledger::new(), |record, _| {
        if !(record.kind.is_system() && record.hook() == 0) {
            all.push((record.cpu, record.ticks, record.bytes.to_vec()));
        }
    });
    all
}

/// In the order of time and processor: that of records of two processors at one time is nobody's.
fn by_time(mut all: Vec<Copied>) -> Vec<Copied> {
    all.sort_by_key(|record| (record.1, record.0));
    all
}

fn merged(files: &[EtlFile], to: &Path) -> Merged {
    let options = MergeOptions { threads: 2, ..MergeOptions::default() };
    merge(files, &options, File::create(to).unwrap()).unwrap()
}

/// The demonstration as its recorder would have left it: not merged.
fn demo(folder: &Path, scale: f64) -> PathBuf {
    let text = DEMO.replace("[machine]", "[machine]\nmerged = false");
    let mut scenario = Scenario::parse(&text, "demo").unwrap();
    scenario.scale(scale).unwrap();
    let trace = folder.join("whole.etl");
    etwhy_synth::write(&scenario, &trace, &mut |_| {}).unwrap();
    trace
}

/// What the kernel and what providers have written, as files of two sessions.
fn two_sessions(whole: &EtlFile, folder: &Path) -> Vec<EtlFile> {
    let header = whole.header();
    let setup = |name: &str, ahead: i64| TraceSetup {
        processors: header.processors,
        start_time: header.start_time + ahead,
        start_ticks: whole.clock().anchor_ticks + ahead,
        boot_time: header.boot_time,
        perf_freq: header.perf_freq,
        os_build: header.os_build,
        session_name: name.to_owned(),
        events_lost: 3,
        buffers_lost: 1,
        ..TraceSetup::default()
    };
    let parts = ["kernel", "user"].map(|name| folder.join(format!("{name}.etl")));
    let mut kernel = TraceWriter::create(&parts[0], setup("NT Kernel Logger", 0)).unwrap();
    let mut user = TraceWriter::create(&parts[1], setup("etwhy-user", 1000)).unwrap();
    for (cpu, ticks, bytes) in records(std::slice::from_ref(whole)) {
        // The byte that says what header it is.
        let writer = if matches!(bytes[2], 1..=4 | 16 | 17) { &mut kernel } else { &mut user };
        writer.write_bytes(cpu, ticks, &bytes).unwrap();
    }
    kernel.finish().unwrap();
    user.finish().unwrap();
    parts.iter().map(|part| open(part)).collect()
}

#[test]
fn a_merged_trace_has_the_records_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let whole = open(&demo(folder.path(), 0.3));
    let parts = two_sessions(&whole, folder.path());
    let all = by_time(records(&parts));
    assert!(parts.iter().all(|part| records(std::slice::from_ref(part)).len() > 20));
    let to = folder.path().join("merged.etl");
    let done = merged(&parts, &to);
    assert_eq!((done.copied, done.added), (all.len() as u64, 0));
    assert!(done.images > 10 && done.identified == 0 && done.ledger.get(&EVENTS_LOST) == 6);
    let result = [open(&to)];
    assert!(by_time(records(&result)) == all);
    let header = result[0].header();
    assert!(header.is_merged() && result[0].compressed_buffers() > 0);
    assert_eq!((header.events_lost, header.buffers_lost), (6, 2));
    assert_eq!(header.session_name, "NT Kernel Logger, etwhy-user");
    assert_eq!(header.start_time, parts[0].header().start_time);
    assert_eq!(header.time_zone, parts[0].header().time_zone);
    assert_eq!(u64::from(header.buffers_written), result[0].buffers_found());
    assert!(done.bytes < parts.iter().map(EtlFile::len).sum());

    // Once more: nothing changes.
    let again = folder.path().join("again.etl");
    assert!(merged(&result, &again).unchanged);
    assert_eq!(std::fs::read(&to).unwrap(), std::fs::read(&again).unwrap());
    // Volumes make it be written anew, once.
    let volume = Volume { nt_path: "\\Device\\HarddiskVolume3\\".into(), dos_path: Some("C:\\".into()) };
    let options =
        MergeOptions { volumes: std::slice::from_ref(&volume), threads: 1, ..MergeOptions::default() };
    let done = merge(&result, &options, File::create(&again).unwrap()).unwrap();
    assert_eq!((done.copied, done.added), (all.len() as u64, 1));
    let with_volume = [open(&again)];
    assert_eq!(records(&with_volume).len(), all.len() + 1);
    let third = folder.path().join("third.etl");
    let done = merge(&with_volume, &options, File::create(&third).unwrap()).unwrap();
    assert!(done.unchanged, "it has its volumes already");
}

#[test]
fn segments_are_one_trace_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = demo(folder.path(), 0.1);
    let bytes = std::fs::read(&path).unwrap();
    let whole = [open(&path)];
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let buffers: Vec<&[u8]> = bytes.chunks(size).collect();
    let (header, rest) = buffers.split_first().unwrap();
    let segments: Vec<EtlFile> = rest
        .chunks(rest.len().div_ceil(3))
        .enumerate()
        .map(|(number, part)| {
            let segment = folder.path().join(format!("{number}.etl"));
            std::fs::write(&segment, [&[*header], part].concat().concat()).unwrap();
            open(&segment)
        })
        .collect();
    assert_eq!(segments.len(), 3);
    let to = folder.path().join("merged.etl");
    merged(&segments, &to);
    // Records of the header's buffer stand in each segment.
    let expected = by_time(records(&whole));
    let mut seen = by_time(records(&[open(&to)]));
    seen.dedup();
    assert_eq!(seen.len(), expected.len());
    assert!(seen == expected);
}

/// Gaps behind a record: what is missing before the first record of a processor no buffer says.
fn sorted(mut gaps: Vec<Gap>) -> Vec<(u16, i64, i64)> {
    gaps.retain(|gap| gap.from_ticks > i64::MIN);
    gaps.sort_by_key(|gap| (gap.cpu, gap.from_ticks));
    gaps.into_iter().map(|gap| (gap.cpu, gap.from_ticks, gap.to_ticks)).collect()
}

#[test]
fn gaps_stay_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = demo(folder.path(), 0.2);
    let bytes = std::fs::read(&path).unwrap();
    let size = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let mut rng = Rng::new(3);
    for round in 0..8 {
        let buffers: Vec<&[u8]> = bytes.chunks(size).collect();
        // A few buffers are missing, never the first of a processor.
        let third = buffers.len() / 3;
        let lost: Vec<usize> = (0..3).map(|_| third + rng.index(buffers.len() - third)).collect();
        let kept = buffers.iter().enumerate().filter(|(n, _)| !lost.contains(n)).map(|(_, buffer)| *buffer);
        let part = folder.path().join("part.etl");
        std::fs::write(&part, kept.collect::<Vec<_>>().concat()).unwrap();
        let part = [open(&part)];
        let gaps = sorted(part[0].gaps());
        assert!(!gaps.is_empty());
        let to = folder.path().join("merged.etl");
        merged(&part, &to);
        let result = [open(&to)];
        assert!(by_time(records(&result)) == by_time(records(&part)), "{round}");
        assert_eq!(sorted(result[0].gaps()), gaps, "{round}");
    }
}

#[test]
fn sessions_with_other_clocks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = demo(folder.path(), 0.02);
    let other = folder.path().join("other.etl");
    let setup = TraceSetup { perf_freq: 3_000_000, ..TraceSetup::default() };
    TraceWriter::create(&other, setup).unwrap().finish().unwrap();
    let files = [open(&whole), open(&other)];
    let refused = merge(&files, &MergeOptions::default(), Cursor::new(Vec::new()));
    assert!(matches!(refused, Err(MergeError::Clocks)), "{refused:?}");
    let refused = merge(&[], &MergeOptions::default(), Cursor::new(Vec::new()));
    assert!(matches!(refused, Err(MergeError::Nothing)), "{refused:?}");
}

#[test]
fn damage_is_no_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = demo(folder.path(), 0.02);
    let bytes = std::fs::read(&path).unwrap();
    let mut rng = Rng::new(9);
    for round in 0..60 {
        let mut damaged = bytes.clone();
        // The header of the file stays readable.
        for _ in 0..1 + rng.index(400) {
            let at = 2048 + rng.index(damaged.len() - 2048);
            damaged[at] = rng.bits() as u8;
        }
        damaged.truncate(damaged.len() - rng.index(100_000).min(damaged.len() / 2));
        let part = folder.path().join("damaged.etl");
        std::fs::write(&part, damaged).unwrap();
        let Ok(file) = EtlFile::open(&part, &part, &OpenOptions::default()) else { continue };
        let to = folder.path().join("merged.etl");
        let done = merged(std::slice::from_ref(&file), &to);
        // What can be read of the one is in the other, whatever it is.
        let (a, b) = (records(&[file]).len() as u64, records(&[open(&to)]).len() as u64);
        assert_eq!((a, b), (done.copied, done.copied), "{round}");
    }
}
