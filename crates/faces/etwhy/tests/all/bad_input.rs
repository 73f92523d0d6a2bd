//! Traces that are damaged or made to do harm, through the program: what is left is shown, the message names the place, the
//! exit code is right. `refusals.rs` has the input that is no trace at all.

use crate::{ETWHY, Str as _};
use etwhy_etl::abi::{buffer, header, logfile};
use etwhy_etl::write::{RecordBuf, TraceSetup, TraceWriter};
use etwhy_testkit::text;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Stdio};

type Writer = TraceWriter<Cursor<Vec<u8>>>;

const START: i64 = 1_000_000;
/// Where the session's header (`TRACE_LOGFILE_HEADER`) begins.
const SESSION: usize = buffer::LEN + header::SYSTEM_LEN;
const BUFFER: usize = 1024;

fn writer() -> Writer {
    let setup = TraceSetup { buffer_size: BUFFER as u32, ..TraceSetup::default() };
    TraceWriter::new(Cursor::new(Vec::new()), setup).unwrap()
}

fn bytes(writer: Writer) -> Vec<u8> {
    writer.finish_into().unwrap().1.into_inner()
}

/// `Process/DCStart` version 4.
fn process(record: &mut RecordBuf, ticks: i64, pid: u32, name: &[u8], command_line: &[u8]) {
    record.system(8, 0x0303, 4, ticks, pid, 8, (0, 0));
    record.u64(0xFFFF_A000_0000_0000 + u64::from(pid)).u32(pid).u32(4).u32(1).u32(0).u64(0x1000).u32(0);
    // No user: four bytes of zero in place of the SID.
    record.u32(0).bytes(name).bytes(command_line);
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A trace of processes that fill some buffers.
fn processes(n: u32) -> Vec<u8> {
    let mut writer = writer();
    let mut record = RecordBuf::new();
    for i in 0..n {
        process(
            &mut record,
            START + i64::from(i),
            100 + 4 * i,
            b"program.exe\0",
            // Behind the command line: no package, no application.
            &wide("program.exe --run\0\0\0"),
        );
        writer.write(0, &mut record).unwrap();
    }
    bytes(writer)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

struct Run {
    code: i32,
    out: String,
    err: String,
}

fn run(trace: &[u8], arguments: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.etl");
    std::fs::write(&path, trace).unwrap();
    let mut all = arguments.to_vec();
    let path = path.str().to_owned();
    all.push(&path);
    let output = ETWHY.output(&all);
    Run { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

fn dump_processes(trace: &[u8]) -> Run {
    run(trace, &["dump", "process", "--columns", "pid,name,command_line", "--format", "csv"])
}

fn count(run: &Run) -> usize {
    run.out.matches("program.exe --run").count()
}

#[test]
fn a_cut_in_the_session_header_is_told_with_its_offset() {
    let whole = processes(60);
    for (cut, offset) in [(10, "0x0"), (71, "0x0"), (79, "0x0"), (81, "0x48"), (200, "0x48"), (350, "0x48")] {
        let cut = run(&whole[..cut], &["why"]);
        assert_eq!((cut.code, cut.out.as_str()), (3, ""), "{}", cut.err);
        assert_eq!(cut.err.lines().count(), 1);
        assert!(cut.err.contains("bad.etl") && cut.err.contains(offset), "{}", cut.err);
        assert!(cut.err.contains("etwhy reads .etl files"), "{}", cut.err);
    }
}

#[test]
fn a_cut_anywhere_behind_it_keeps_what_stands_before() {
    let whole = processes(60);
    let all = dump_processes(&whole);
    assert_eq!((all.code, count(&all), all.err.as_str()), (0, 60, ""));
    let per_buffer = count(&dump_processes(&whole[..2 * BUFFER]));
    assert!(per_buffer > 3);
    for cut in [BUFFER, BUFFER + 1, BUFFER + 100, 2 * BUFFER, 3 * BUFFER - 1, whole.len() - 700] {
        let left = dump_processes(&whole[..cut]);
        assert!(count(&left) >= (cut / BUFFER - 1) * per_buffer, "{cut}: {}", left.out);
        assert!(count(&left) < 60);
        assert_eq!(left.code, 1, "{cut}: {}", left.err);
        assert_eq!(left.err.lines().count(), 1, "{}", left.err);
        assert!(left.err.contains("bad.etl") && left.err.contains("copy it again"), "{}", left.err);
    }
}

#[test]
fn a_damaged_buffer_costs_that_buffer_only() {
    let whole = processes(60);
    let per_buffer = count(&dump_processes(&whole[..2 * BUFFER]));
    let second = 2 * BUFFER;
    type Damage = fn(&mut [u8], usize);
    let damages: [(&str, Damage); 6] = [
        ("size 0", |b, at| put(b, at, &[0; 4])),
        ("size 2^32-1", |b, at| put(b, at, &[0xFF; 4])),
        ("size of two", |b, at| put(b, at, &(2 * BUFFER as u32).to_le_bytes())),
        ("end beyond", |b, at| put(b, at + buffer::OFFSET, &[0xFF; 4])),
        ("record size 0", |b, at| put(b, at + buffer::LEN + header::SYSTEM_SIZE, &[0; 2])),
        ("zeros", |b, at| b[at..at + BUFFER].fill(0)),
    ];
    for (name, damage) in damages {
        let mut damaged = whole.clone();
        damage(&mut damaged, second);
        let left = dump_processes(&damaged);
        assert!(count(&left) >= 60 - per_buffer, "{name}: {} of 60", count(&left));
        if count(&left) < 60 {
            assert_eq!(left.code, 1, "{name}: {}", left.err);
            assert!(left.err.contains("0x800"), "{name}: no place in {}", left.err);
        }
    }
}

#[test]
fn sizes_of_the_first_buffer_that_cannot_be_are_refused() {
    let whole = processes(5);
    for size in [0u32, 71, 16 * 1024 * 1024 + 1, u32::MAX] {
        let mut bad = whole.clone();
        put(&mut bad, buffer::BUFFER_SIZE, &size.to_le_bytes());
        let refused = run(&bad, &["info"]);
        assert_eq!(refused.code, 3, "{}", refused.err);
        assert!(
            refused.err.contains("BufferSize") && refused.err.contains(&size.to_string()),
            "{}",
            refused.err
        );
    }
}

#[test]
fn a_header_that_counts_to_the_end_of_numbers_is_no_reason_to_fail() {
    let mut bad = processes(60);
    for field in [
        logfile::BUFFER_SIZE,
        logfile::NUMBER_OF_PROCESSORS,
        logfile::TIMER_RESOLUTION,
        logfile::MAXIMUM_FILE_SIZE,
        logfile::BUFFERS_WRITTEN,
        logfile::START_BUFFERS,
        logfile::EVENTS_LOST,
        logfile::CPU_SPEED_IN_MHZ,
        logfile::LAYOUT64.buffers_lost,
    ] {
        put(&mut bad, SESSION + field, &[0xFF; 4]);
    }
    for field in [logfile::LAYOUT64.boot_time, logfile::LAYOUT64.perf_freq, logfile::LAYOUT64.start_time] {
        put(&mut bad, SESSION + field, &i64::MAX.to_le_bytes());
    }
    let left = dump_processes(&bad);
    assert_eq!((left.code, count(&left)), (1, 60), "{}", left.err);
    assert!(left.err.contains("fewer_buffers_than_written"), "{}", left.err);
    for command in ["why", "info"] {
        let shown = run(&bad, &[command]);
        assert_eq!(shown.code, 1, "{}", shown.err);
        assert!(shown.out.contains("4,294,967,295"), "{}", shown.out);
    }
}

#[test]
fn compression_that_nobody_knows_yet_is_newer_than_known() {
    let setup = TraceSetup { compressed: true, buffer_size: BUFFER as u32, ..TraceSetup::default() };
    let mut writer = TraceWriter::new(Cursor::new(Vec::new()), setup).unwrap();
    let mut record = RecordBuf::new();
    for i in 0..60 {
        process(&mut record, START + i, 100 + i as u32, b"program.exe\0", &wide("program.exe --run\0"));
        writer.write(0, &mut record).unwrap();
    }
    let mut bad = bytes(writer);
    assert_eq!(count(&dump_processes(&bad)), 60);
    put(&mut bad, buffer::STATE, &9u16.to_le_bytes());
    let refused = dump_processes(&bad);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(
        refused.err.contains("compression format 9") && refused.err.contains("Update etwhy"),
        "{}",
        refused.err
    );
}

#[test]
fn names_without_an_end_end_with_their_record() {
    let mut writer = writer();
    let mut record = RecordBuf::new();
    process(&mut record, START, 40, b"no end at all", &[]);
    writer.write(0, &mut record).unwrap();
    // An odd number of bytes of UTF-16, with half a surrogate pair.
    process(&mut record, START + 1, 44, b"b.exe\0", &[b'x', 0, 0x00, 0xD8, b'y', 0, b'z']);
    writer.write(0, &mut record).unwrap();
    process(&mut record, START + 2, 48, b"program.exe\0", &wide("program.exe --run\0"));
    writer.write(0, &mut record).unwrap();
    let shown = dump_processes(&bytes(writer));
    assert_eq!(count(&shown), 1, "{}", shown.out);
    assert!(shown.out.contains("no end at all") && shown.out.contains("x\u{FFFD}y"), "{}", shown.out);
}

/// A sample and its stack by key.
fn sample(writer: &mut Writer, record: &mut RecordBuf, ticks: i64, key: u64) {
    record.perfinfo(8, 0x0F2E, 2, ticks).u64(0xFFFF_F800_0000_0010).u32(8).u16(1).u16(0);
    writer.write(0, record).unwrap();
    record.perfinfo(8, 0x1825, 2, ticks).i64(ticks).u32(100).u32(8).u64(key);
    writer.write(0, record).unwrap();
}

fn define(writer: &mut Writer, record: &mut RecordBuf, ticks: i64, key: u64, frames: &[u64]) {
    record.perfinfo(8, 0x1824, 2, ticks).u64(key);
    for &frame in frames {
        record.u64(frame);
    }
    writer.write(0, record).unwrap();
}

#[test]
fn stack_keys_may_be_reused_empty_undefined_or_defined_by_themselves() {
    const A: u64 = 0xFFFF_8000_0000_0001;
    const B: u64 = 0xFFFF_8000_0000_0002;
    let mut writer = writer();
    let mut record = RecordBuf::new();
    sample(&mut writer, &mut record, START, A);
    define(&mut writer, &mut record, START + 1, A, &[0xFFFF_F800_0000_0100, 0xFFFF_F800_0000_0200]);
    // Used again: other frames.
    sample(&mut writer, &mut record, START + 2, A);
    define(&mut writer, &mut record, START + 3, A, &[0xFFFF_F800_0000_0300]);
    // Defined without frames; by keys, its own among them; and never.
    sample(&mut writer, &mut record, START + 4, B);
    define(&mut writer, &mut record, START + 5, B, &[]);
    sample(&mut writer, &mut record, START + 6, B);
    define(&mut writer, &mut record, START + 7, B, &[A, B, B]);
    sample(&mut writer, &mut record, START + 8, 77);
    define(&mut writer, &mut record, START + 9, 99, &[1, 2, 3]);
    let trace = bytes(writer);
    let shown = run(&trace, &["dump", "sample", "--columns", "ts_ns,leaf", "--format", "csv"]);
    let lines: Vec<&str> = shown.out.lines().collect();
    assert_eq!(lines.len(), 6, "{}", shown.out);
    assert!(
        lines[1].contains("0xfffff80000000100") && lines[2].contains("0xfffff80000000300"),
        "{}",
        shown.out
    );
    assert!(shown.code <= 1);
    let why = run(&trace, &["why"]);
    assert!(why.code <= 1 && why.out.contains("[unknown]"), "{}", why.out);
}

#[test]
fn folders_without_traces_and_bad_files_beside_good_ones() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("readme.txt"), "no trace").unwrap();
    let refused = ETWHY.output(&["why", folder.path().str()]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("no .etl files"), "{}", text(&refused.stderr));
    // What is no trace is left out as long as one is.
    std::fs::write(folder.path().join("a.etl"), processes(5)).unwrap();
    std::fs::write(folder.path().join("b.etl"), b"\x01\x02\x03 garbage").unwrap();
    let output = ETWHY.output(&["dump", "process", folder.path().str()]);
    assert!(text(&output.stdout).contains("program.exe"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("b.etl"), "{}", text(&output.stderr));
}

/// Runs the program on a terminal, if `script` (util-linux) can make one: what the terminal got.
fn on_a_terminal(arguments: &str, environment: &[(&str, &str)]) -> Option<String> {
    let command = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_etwhy"));
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .envs(environment.iter().copied())
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Some(text(&output.stdout)),
        _ => {
            etwhy_testkit::skipped("`script` makes no terminal here");
            None
        }
    }
}

fn hostile_name(folder: &Path) -> String {
    let mut writer = writer();
    let mut record = RecordBuf::new();
    process(&mut record, START, 40, b"\x1b[31mred.exe\0", &wide("\u{202e}exe.cod\u{9b}31m \u{7}\0"));
    writer.write(0, &mut record).unwrap();
    let path = folder.join("hostile.etl");
    std::fs::write(&path, bytes(writer)).unwrap();
    path.str().to_owned()
}

#[test]
fn colours_honour_no_color_and_names_never_reach_a_terminal_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let trace = hostile_name(folder.path());
    let forbidden = ["\x1b[31m", "\u{202e}", "\u{9b}", "\u{7}"];
    for command in ["why", "info", "dump process", "dump process --format csv", "dump process --format json"]
    {
        let Some(plain) = on_a_terminal(&format!("{command} --quiet '{trace}'"), &[("NO_COLOR", "1")]) else {
            return;
        };
        assert!(!plain.contains('\x1b'), "{command} is coloured in spite of NO_COLOR:\n{plain}");
        assert!(!forbidden.iter().any(|bad| plain.contains(bad)), "{command}:\n{plain}");
        let coloured = on_a_terminal(&format!("{command} --quiet '{trace}'"), &[("NO_COLOR", "")]);
        let coloured = coloured.unwrap_or_default();
        assert!(!forbidden.iter().any(|bad| coloured.contains(bad)), "{command}:\n{coloured}");
    }
    let coloured = on_a_terminal(&format!("dump process --quiet '{trace}'"), &[("NO_COLOR", "")]);
    assert!(coloured.is_none_or(|c| c.contains("\x1b[")), "no colours on a terminal");
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    let demo = ETWHY.output(&["why", "--demo"]);
    assert_eq!((demo.status.code(), text(&demo.stderr).as_str()), (Some(0), ""));
    assert!(!text(&demo.stdout).contains('\x1b'));
}
