//! Traces from the writer, counted by dissect.etl, a reader that shares no code with ours.
//!
//! `ETWHY_PYTHON` names an interpreter that has it (`pip install dissect.etl`).

use etwhy_base::Guid;
use etwhy_etl::abi::ext;
use etwhy_etl::write::*;
use etwhy_testkit::dissected;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const CLASS: Guid = Guid::from_text("01234567-89ab-cdef-0123-456789abcdef");
const PROVIDER: Guid = Guid::from_text("fedcba98-7654-3210-fedc-ba9876543210");

fn file(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("etwhy-write-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// One record of every header kind, and what a reader must call it.
fn record(n: u64, ticks: i64, r: &mut RecordBuf) -> String {
    let pointer = if n.is_multiple_of(2) { 8 } else { 4 };
    let wide = u8::from(pointer == 8);
    let classic = ClassicHead { guid: CLASS, opcode: 33, level: 4, version: 1, tid: 7, pid: 8 };
    let event = EventHead {
        provider: PROVIDER,
        id: 300,
        version: 2,
        channel: 11,
        level: 5,
        opcode: 9,
        task: 3,
        keyword: 0x8000_0000_0000_0010,
        tid: 9,
        pid: 10,
        activity: CLASS,
        ..EventHead::default()
    };
    match n / 2 % 9 {
        0 => {
            r.system(pointer, 0x0303, 4, ticks, 4, 8, (1, 2)).ptr(n).text_z("System");
            format!("kernel/3/3 {}", 1 + wide)
        }
        1 => {
            r.compact(pointer, 0x0524, 2, ticks, 4, 8).u64(n).u64(n).u64(n);
            format!("kernel/5/36 {}", 3 + wide)
        }
        2 => {
            r.perfinfo(pointer, 0x0F2E, 2, ticks).ptr(n).u32(4).u32(1);
            format!("kernel/15/46 {}", 16 + wide)
        }
        3 => {
            r.perfinfo(pointer, 0x0F33, 2, ticks).counters(Some(1), &[2, 3, 4]).ptr(n);
            format!("kernel/15/51 {}", 16 + wide)
        }
        4 => {
            r.full(pointer, ticks, &classic).utf16z("classic");
            format!("classic/{CLASS}/33 {}", if wide == 1 { 20 } else { 10 })
        }
        5 => {
            r.instance(pointer, ticks, &classic, (1, 2, PROVIDER)).u32(5);
            format!("classic/{CLASS}/33 {}", if wide == 1 { 21 } else { 11 })
        }
        6 => {
            let field = TlField { name: "value".into(), in_type: 8, out_type: 0, count: 0 };
            let sid = [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
            r.event(pointer, ticks, &event).related_activity(PROVIDER).sid(&sid);
            r.stack(0, &[n, n + 1, 3]).ext(ext::PROV_TRAITS, &tracelogging_traits("Test.Provider"));
            r.ext(ext::EVENT_SCHEMA_TL, &tracelogging_schema("Event", &[field])).u32(n as u32);
            format!("event/{PROVIDER}/300/9 {}", 18 + wide)
        }
        7 => {
            r.event(pointer, ticks, &event).stack_key(0, 0xFFFF_8000_1234_0000).u64(n);
            format!("event/{PROVIDER}/300/9 {}", 18 + wide)
        }
        _ => {
            let head = MessageHead {
                number: 12,
                guid: Some(CLASS),
                ticks: Some(ticks),
                tid_pid: Some((1, 2)),
                pointer,
                sequence: Some(n as u32),
                component: None,
            };
            r.message(ticks, &head).u32(n as u32);
            format!("message/{CLASS}/12 64")
        }
    }
}

/// Writes `n` records over `cpus` processors; the keys and counts a reader must find.
fn write(path: &Path, setup: TraceSetup, n: u64, cpus: u64) -> (BTreeMap<String, u64>, Written) {
    let header = format!("kernel/0/0 {}", if setup.pointer_size == 4 { 1 } else { 2 });
    let mut expected = BTreeMap::from([(header, 1)]);
    let first = setup.first_ticks();
    let mut writer = TraceWriter::create(path, setup).unwrap();
    let mut r = RecordBuf::new();
    for i in 0..n {
        *expected.entry(record(i, first + 10 * i as i64, &mut r)).or_default() += 1;
        writer.write((i * 7 % cpus) as u16, &mut r).unwrap();
    }
    let written = writer.finish().unwrap();
    assert_eq!(written.bytes, std::fs::metadata(path).unwrap().len());
    assert_eq!(written.records, n + 1);
    (expected, written)
}

#[test]
fn an_independent_reader_counts_what_was_written() {
    let setups = [
        ("raw.etl", TraceSetup { processors: 4, ..TraceSetup::default() }),
        ("small_buffers.etl", TraceSetup { processors: 4, buffer_size: 1024, ..TraceSetup::default() }),
        ("compressed.etl", TraceSetup { processors: 4, compressed: true, ..TraceSetup::default() }),
        (
            "wide.etl",
            TraceSetup { pointer_size: 4, windows7: true, os_version: (6, 1), ..TraceSetup::default() },
        ),
        ("system_time.etl", TraceSetup { clock: Clock::SystemTime, ..TraceSetup::default() }),
    ];
    for (name, setup) in setups {
        let path = file(name);
        let (expected, written) = write(&path, setup, 20_000, 4);
        assert!(written.buffers > 5);
        let counted = dissected(&path, &["--kinds"]);
        std::fs::remove_file(&path).unwrap();
        let Some(counted) = counted else { return };
        assert_eq!(counted, expected, "{name}");
    }
}

#[test]
fn more_than_256_processors_survive() {
    let path = file("many.etl");
    let setup = TraceSetup { processors: 320, buffer_size: 4096, ..TraceSetup::default() };
    let (expected, written) = write(&path, setup, 9000, 320);
    assert!(written.buffers > 320);
    let bytes = std::fs::read(&path).unwrap();
    let highest = bytes.chunks(4096).map(|b| u16::from_le_bytes([b[0x28], b[0x29]])).max();
    assert_eq!(highest, Some(319));
    let counted = dissected(&path, &["--kinds"]);
    std::fs::remove_file(&path).unwrap();
    let Some(counted) = counted else { return };
    assert_eq!(counted, expected);
}
