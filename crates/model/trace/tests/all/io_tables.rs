//! Files, disks, filters and the registry: records laid out here by hand, byte for byte as the classes of the
//! kernel provider are documented, and what the tables must make of them, computed here by hand.
//!
//! Times are ticks of 100 ns.

use crate::support;
use crate::support::written;
use crate::support::{Are, assert_ledger, ledger_count, number, pass, rows, table, text};
use etwhy_etl::write::{RecordBuf, TraceSetup, TraceWriter};
use etwhy_trace::Output;
use std::fs::File;
use std::io::BufWriter;

mod filters;

/// A trace under construction.
struct Writer {
    folder: std::path::PathBuf,
    writer: TraceWriter<BufWriter<File>>,
    start: i64,
    pointer: u8,
}

const PID: u32 = 400;
const TID: u32 = 404;

impl Writer {
    fn new(name: &str, pointer: u8) -> Writer {
        Writer::on(2, name, pointer)
    }

    fn on(processors: u32, name: &str, pointer: u8) -> Writer {
        let folder = std::env::temp_dir().join(format!("etwhy-io-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let setup = TraceSetup { pointer_size: pointer, processors, ..TraceSetup::default() };
        let start = setup.start_ticks;
        let writer = TraceWriter::create(&folder.join("trace.etl"), setup).unwrap();
        let mut writer = Writer { folder, writer, start, pointer };
        // Process DCStart and Thread DCStart, version 3: the thread is one of the process.
        writer.system(0, 0x0303, 3, 0, |r| {
            r.ptr(0xFFFF_8000_0000_1000).u32(PID).u32(4).u32(1).u32(0).ptr(0).u32(0).text_z("app.exe");
            r.utf16z("app.exe")
        });
        writer.system(0, 0x0503, 3, 0, |r| {
            r.u32(PID).u32(TID).ptr(0).ptr(0).ptr(0).ptr(0).ptr(0xFF).ptr(0).ptr(0).u32(0);
            r.u8(8).u8(8).u8(5).u8(0)
        });
        writer
    }

    /// A record with `PERFINFO_TRACE_HEADER`.
    fn perf(
        &mut self,
        cpu: u16,
        hook: u16,
        version: u8,
        at: i64,
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) {
        let mut record = RecordBuf::new();
        record.perfinfo(self.pointer, hook, version, self.start + at);
        build(&mut record);
        self.writer.write(cpu, &mut record).unwrap();
    }

    /// A record with `SYSTEM_TRACE_HEADER` of the thread.
    fn system(
        &mut self,
        cpu: u16,
        hook: u16,
        version: u8,
        at: i64,
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) {
        let mut record = RecordBuf::new();
        record.system(self.pointer, hook, version, self.start + at, PID, TID, (0, 0));
        build(&mut record);
        self.writer.write(cpu, &mut record).unwrap();
    }

    fn create(&mut self, at: i64, irp: u64, object: u64, path: &str) {
        self.perf(0, 0x0440, 3, at, |r| {
            r.ptr(irp).ptr(object).u32(TID).u32(0x0200_0060).u32(0x80).u32(3).utf16z(path)
        });
    }

    /// Cleanup, Close, Flush.
    fn simple(&mut self, op: u16, at: i64, irp: u64, object: u64, key: u64) {
        self.perf(0, 0x0400 | op, 3, at, |r| r.ptr(irp).ptr(object).ptr(key).u32(TID));
    }

    fn read(&mut self, at: i64, irp: u64, object: u64, key: u64, size: u32) {
        self.perf(0, 0x0443, 3, at, |r| {
            r.u64(4096).ptr(irp).ptr(object).ptr(key).u32(TID).u32(size).u32(0x900)
        });
    }

    fn end(&mut self, at: i64, irp: u64, information: u64, status: u32) {
        self.perf(0, 0x044C, 3, at, |r| r.ptr(irp).ptr(information).u32(status));
    }

    /// FileIo Name (0), FileCreate (32), FileDelete (35), FileRundown (36).
    fn name(&mut self, op: u16, at: i64, key: u64, path: &str) {
        self.perf(0, 0x0400 | op, 2, at, |r| r.ptr(key).utf16z(path));
    }

    /// Registry, version 2.
    fn registry(&mut self, op: u16, at: i64, began: i64, status: u32, kcb: u64, name: &str) {
        let began = self.start + began;
        self.system(0, 0x0900 | op, 2, at, |r| r.i64(began).u32(status).u32(3).ptr(kcb).utf16z(name));
    }

    fn tables(self, names: &str) -> Output {
        self.writer.finish().unwrap();
        let output = pass(&self.folder.join("trace.etl"), &format!("{names} process thread file ledger"));
        std::fs::remove_dir_all(&self.folder).unwrap();
        output
    }
}

/// The cells of all rows as text: numbers, texts, `-` for nothing.
fn lines(output: &Output, name: &str, columns: &str) -> Vec<String> {
    let of = table(output, name);
    written::lines(of, columns, |row, column| match number(of, row, column) {
        Some(n) => n.to_string(),
        None => of.text(row, column).unwrap_or("-").to_owned(),
    })
}

const OK: u32 = 0;
const NOT_FOUND: u32 = 0xC000_0034;
const C: &str = "\\Device\\HarddiskVolume1\\";

#[test]
fn file_operations_are_paired_by_irp() {
    let mut w = Writer::new("pairs", 8);
    let (a, b) = (format!("{C}a.txt"), format!("{C}b.txt"));
    w.create(100, 1, 0x10, &a);
    w.end(130, 1, 1, OK);
    // Two operations under way at once, ends crossed.
    w.read(200, 1, 0x10, 0xA0, 512);
    w.read(210, 2, 0x10, 0xA0, 1024);
    w.end(240, 1, 500, OK);
    w.end(260, 2, 1024, OK);
    // A failed create, then the same IRP without an end in between.
    w.create(300, 3, 0x20, &b);
    w.end(320, 3, 0, NOT_FOUND);
    w.simple(73, 400, 4, 0x10, 0xA0);
    w.simple(73, 410, 4, 0x10, 0xA0);
    w.end(415, 4, 0, OK);
    // Nobody began this; and this never ends.
    w.end(420, 9, 0, OK);
    w.simple(65, 430, 5, 0x10, 0xA0);
    w.simple(66, 440, 6, 0x10, 0xA0);
    w.end(441, 6, 0, OK);
    let output = w.tables("file_io");
    let columns = "start_ns ts_ns dur_ns op file_id size_bytes done_bytes status";
    lines(&output, "file_io", columns).are(&[
        "10000 13000 3000 Create 0 - - 0",
        "20000 24000 4000 Read 0 512 500 0",
        "21000 26000 5000 Read 0 1024 1024 0",
        "30000 32000 2000 Create - - - -1073741772",
        "40000 - - Flush 0 - - -",
        "41000 41500 500 Flush 0 - - 0",
        "44000 44100 100 Close 0 - - 0",
        "43000 - - Cleanup 0 - - -",
    ]);
    let io = table(&output, "file_io");
    let (process, thread) = (table(&output, "process"), table(&output, "thread"));
    for row in rows(io) {
        let path = if row == 3 { &b } else { &a };
        assert_eq!(text(io, row, "path"), path);
        let upid = number(io, row, "upid").unwrap() as u32;
        assert_eq!(text(process, upid, "name"), "app.exe");
        let utid = number(io, row, "utid").unwrap() as u32;
        assert_eq!(number(thread, utid, "tid"), Some(i64::from(TID)));
    }
    assert_eq!(
        lines(&output, "file_io", "disposition options share attributes result")[0],
        "FILE_CREATE FILE_SYNCHRONOUS_IO_NONALERT|FILE_NON_DIRECTORY_FILE FILE_SHARE_READ|FILE_SHARE_WRITE NORMAL \
         opened"
    );
    assert_eq!(text(io, 3, "status_name"), "STATUS_OBJECT_NAME_NOT_FOUND");
    assert_eq!(lines(&output, "file_io", "offset_bytes io_flags")[1], "4096 2304");
    assert_ledger(&output, &[("file_operations_without_end", 2), ("file_ends_without_operation", 1)]);
}

#[test]
fn names_come_from_opens_name_events_and_the_rundown_at_the_end() {
    let mut w = Writer::new("names", 8);
    // No open was seen; the rundown at the end names the key.
    w.read(100, 1, 0x10, 0xA0, 1);
    w.end(110, 1, 1, OK);
    // The open names it by a short name; the rundown knows better.
    w.create(200, 1, 0x20, &format!("{C}LONGNA~1.TXT"));
    w.end(210, 1, 1, OK);
    w.read(220, 1, 0x20, 0xB0, 1);
    w.end(230, 1, 1, OK);
    w.simple(66, 240, 1, 0x20, 0xB0);
    w.end(241, 1, 0, OK);
    // The object and the key are reused for another file; only its open names it.
    w.name(35, 300, 0xB0, &format!("{C}long name.txt"));
    w.create(310, 1, 0x20, &format!("{C}other.txt"));
    w.end(320, 1, 2, OK);
    w.read(330, 1, 0x20, 0xB0, 1);
    w.end(340, 1, 1, OK);
    // The object was closed: an operation on it later is not that file's.
    w.simple(66, 350, 1, 0x20, 0xB0);
    w.end(351, 1, 0, OK);
    w.read(360, 1, 0x20, 0xC0, 1);
    w.end(370, 1, 1, OK);
    w.name(36, 900, 0xA0, &format!("{C}first.txt"));
    let output = w.tables("file_io");
    lines(&output, "file_io", "op file_id path").are(&[
        "Read 0 \\Device\\HarddiskVolume1\\first.txt",
        "Create 1 \\Device\\HarddiskVolume1\\long name.txt",
        "Read 1 \\Device\\HarddiskVolume1\\long name.txt",
        "Close 1 \\Device\\HarddiskVolume1\\long name.txt",
        "Create 2 \\Device\\HarddiskVolume1\\other.txt",
        "Read 2 \\Device\\HarddiskVolume1\\other.txt",
        "Close 2 \\Device\\HarddiskVolume1\\other.txt",
        "Read 3 -",
    ]);
    let files = lines(&output, "file", "file_id path file_key");
    assert_eq!(files[2], "2 \\Device\\HarddiskVolume1\\other.txt 176");
}

/// Version 2 has the thread as a pointer behind the IRP; Windows 7, here with 4 and 8 bytes.
#[test]
fn version_2_layouts() {
    for pointer in [4, 8] {
        println!("pointers of {pointer} bytes");
        let mut w = Writer::new(&format!("v2-{pointer}"), pointer);
        w.perf(0, 0x0440, 2, 100, |r| {
            r.ptr(1).ptr(TID.into()).ptr(0x10).u32(0x0100_0000).u32(0).u32(1).utf16z("\\x")
        });
        w.end(110, 1, 1, OK);
        w.perf(0, 0x0448, 2, 120, |r| {
            r.ptr(1).ptr(TID.into()).ptr(0x10).ptr(0xA0).u32(4096).u32(37).u32(0).utf16z("*.txt")
        });
        w.end(130, 1, 200, 0x8000_0006);
        w.perf(0, 0x0447, 2, 140, |r| r.ptr(1).ptr(TID.into()).ptr(0x10).ptr(0xA0).ptr(0).u32(10));
        // Windows 8 and later tell the new name with the IRP of the rename.
        w.perf(0, 0x0450, 3, 141, |r| r.ptr(1).ptr(0x10).ptr(0xA0).ptr(0).u32(TID).u32(10).utf16z("\\y"));
        w.end(150, 1, 0, OK);
        w.perf(0, 0x044F, 3, 160, |r| r.ptr(1).ptr(0x10).ptr(0xA0).ptr(0).u32(TID).u32(13).utf16z("\\x"));
        w.perf(0, 0x0446, 3, 161, |r| r.ptr(1).ptr(0x10).ptr(0xA0).ptr(0).u32(TID).u32(13));
        w.end(170, 1, 0, OK);
        w.perf(0, 0x044B, 2, 180, |r| r.ptr(1).ptr(TID.into()).ptr(0x10).ptr(0xA0).ptr(0).u32(0x0009_00A8));
        w.end(190, 1, 0, OK);
        let output = w.tables("file_io file_usage");
        let columns = "op dur_ns file_id path info_class pattern target";
        lines(&output, "file_io", columns).are(&[
            "Create 1000 0 \\x - - -",
            "DirEnum 1000 0 \\x FileIdBothDirectoryInformation *.txt -",
            "Rename 1000 0 \\x FileRenameInformation - \\y",
            "Delete 900 0 \\x FileDispositionInformation - \\x",
            "FSControl 1000 0 \\x 0x000900a8 - -",
        ]);
        let threads = table(&output, "thread");
        for row in rows(table(&output, "file_io")) {
            let utid = number(table(&output, "file_io"), row, "utid").unwrap() as u32;
            assert_eq!(number(threads, utid, "tid"), Some(i64::from(TID)));
        }
        let usage =
            lines(&output, "file_usage", "path opens dir_enums changes others unfinished open_ns total_ns");
        assert_eq!(usage, ["\\x 1 1 2 1 0 1000 4900"]);
        assert_eq!(ledger_count(&output, "file_operations_without_end"), 0);
    }
}

#[test]
fn first_and_later_opens() {
    let mut w = Writer::new("opens", 8);
    for (n, took) in [700, 20, 10, 30].into_iter().enumerate() {
        let (at, object) = (1000 * (n as i64 + 1), 0x10 + n as u64);
        // In any case of letters.
        w.create(at, 1, object, if n == 1 { "\\SCANNED" } else { "\\scanned" });
        w.end(at + took, 1, 1, OK);
        w.simple(66, at + took + 1, 1, object, 0xA0);
        w.end(at + took + 2, 1, 0, OK);
    }
    for (n, status) in [NOT_FOUND, 0xC000_0022, NOT_FOUND].into_iter().enumerate() {
        w.create(6000 + 10 * n as i64, 1, 0x50, "\\missing");
        w.end(6005 + 10 * n as i64, 1, 0, status);
    }
    // A link is no open.
    w.create(7000, 1, 0x50, "\\link");
    w.end(7001, 1, 0, 0x104);
    let output = w.tables("file_open file_usage");
    let columns = "path opens failed_opens processes first_ns first_open_ns later_opens later_open_avg_ns \
                   later_open_max_ns";
    lines(&output, "file_open", columns)
        .are(&["\\missing 0 3 1 - - 0 - -", "\\scanned 4 0 1 100000 70000 3 2000 3000"]);
    assert_eq!(table(&output, "file_open").f64(1, "first_to_later"), Some(35.0));
    let columns = "path opens failed_opens closes open_ns total_ns others failures";
    lines(&output, "file_usage", columns).are(&[
        "\\scanned 4 0 4 76000 76400 0 -",
        "\\missing 0 3 0 1500 1500 0 STATUS_OBJECT_NAME_NOT_FOUND 2, STATUS_ACCESS_DENIED 1",
        "\\link 0 0 0 100 100 1 -",
    ]);
}

#[test]
fn what_lies_across_missing_buffers_has_no_duration() {
    let mut w = Writer::new("gap", 8);
    w.read(100, 1, 0x10, 0xA0, 1);
    w.end(110, 1, 1, OK);
    w.read(200, 1, 0x10, 0xA0, 1);
    w.writer.flush_cpu(0).unwrap();
    w.end(500, 1, 1, OK);
    w.writer.mark_lost(0, false, true);
    w.read(600, 1, 0x10, 0xA0, 1);
    w.end(610, 1, 1, OK);
    let output = w.tables("file_io");
    // The gap reaches from the last record of the buffer before it to the first behind it.
    lines(&output, "file_io", "start_ns ts_ns dur_ns").are(&[
        "10000 11000 1000",
        "20000 - -",
        "60000 61000 1000",
    ]);
    assert_eq!(ledger_count(&output, "file_operations_across_gaps"), 1);
}

/// Operations that begin on processor 0 and end on processor 1, while processor 5 or 0 has a gap.
fn across_a_gap_of(cpu: u16, processors: u32) -> String {
    let mut w = Writer::on(processors, &format!("gap{cpu}of{processors}"), 8);
    w.perf(5, 0x0400, 2, 10, |r| r.ptr(0xA0).utf16z("\\a"));
    w.read(100, 1, 0x10, 0xA0, 1);
    w.writer.flush_cpu(cpu).unwrap();
    w.perf(1, 0x044C, 3, 150, |r| r.ptr(1).ptr(1).u32(OK));
    w.perf(cpu, 0x0400, 2, 200, |r| r.ptr(0xA0).utf16z("\\a"));
    w.writer.mark_lost(cpu, false, true);
    let output = w.tables("file_io");
    lines(&output, "file_io", "start_ns dur_ns").concat()
}

#[test]
fn a_gap_of_one_of_many_processors_leaves_the_pairs_of_others() {
    assert_eq!(across_a_gap_of(5, 16), "10000 5000");
    // On its own processor the read may have ended, and another one have got its IRP.
    assert_eq!(across_a_gap_of(0, 16), "10000 -");
    assert_eq!(across_a_gap_of(5, 6), "10000 -");
}

#[test]
fn short_payloads_are_counted_and_harm_nobody() {
    let hooks: [(u16, u8); 10] = [
        (0x0440, 3),
        (0x0443, 3),
        (0x0448, 3),
        (0x044C, 3),
        (0x0462, 3),
        (0x0464, 3),
        (0x0910, 2),
        (0x0916, 2),
        (0x010A, 3),
        (0x010C, 3),
    ];
    for (hook, version) in hooks {
        for length in 0..80 {
            let mut w = Writer::new(&format!("short-{hook:x}"), 8);
            w.perf(0, hook, version, 100, |r| r.bytes(&vec![1; length]));
            let output = w.tables("file_io minifilter registry disk_io file_usage disk_file");
            let names = ["file_io", "minifilter", "registry", "disk_io"];
            let rows: usize = names.iter().map(|name| table(&output, name).rows()).sum();
            let counted = ledger_count(&output, "payload_too_short");
            // Ends, inits and KCB records make no row; of all others each is a row or counted.
            let quiet = matches!(hook, 0x044C | 0x010C | 0x0916);
            assert!(quiet || rows as u64 + counted == 1, "{hook:#x} with {length} bytes: {rows}, {counted}");
        }
    }
}

#[test]
fn disk_requests_have_queue_depth_priority_and_issue() {
    let mut w = Writer::new("disk", 8);
    let init = |w: &mut Writer, op: u16, at: i64, irp: u64| {
        w.system(1, 0x0100 | op, 3, at, |r| r.ptr(irp).u32(TID));
    };
    let done = |w: &mut Writer, op: u16, at: i64, irp: u64, took: u64, flags: u32| {
        w.perf(0, 0x0100 | op, 3, at, |r| {
            r.u32(0).u32(flags).u32(8192).u32(0).u64(1 << 20).ptr(0xA0).ptr(irp).u64(took).u32(TID)
        });
    };
    init(&mut w, 12, 100, 1);
    init(&mut w, 12, 120, 2);
    init(&mut w, 13, 130, 3);
    done(&mut w, 10, 200, 1, 100, 0x0006_0043);
    done(&mut w, 10, 260, 2, 140, 0x0002_0043);
    init(&mut w, 15, 300, 4);
    done(&mut w, 11, 400, 3, 270, 0x0000_0043);
    w.perf(0, 0x010E, 3, 410, |r| r.u32(0).u32(0).u64(110).ptr(4).u32(TID));
    // No Init event was recorded.
    done(&mut w, 10, 500, 5, 20, 0x000A_0043);
    w.name(36, 900, 0xA0, "\\data");
    let output = w.tables("disk_io disk_file");
    let columns = "op start_ns dur_ns service_ns queue_ns priority depth init_ns";
    lines(&output, "disk_io", columns).are(&[
        "read 10000 10000 10000 0 Normal 0 10000",
        "read 12000 14000 6000 8000 VeryLow 1 12000",
        "write 13000 27000 14000 13000 NotSet 2 13000",
        "flush 30000 11000 1000 10000 NotSet 1 30000",
        "read 48000 2000 2000 0 Critical - -",
    ]);
    let columns = "path disk reads read_bytes writes written_bytes flushes service_ns queue_ns total_ns max_ns \
                   first_ns last_ns";
    lines(&output, "disk_file", columns).are(&[
        "\\data 0 3 24576 1 8192 0 32000 21000 53000 27000 10000 50000",
        "- 0 0 0 0 0 1 1000 10000 11000 11000 30000 41000",
    ]);
}

/// In real traces every request has its Init event, at the moment that its response time tells, and its stack.
#[test]
fn real_requests_were_issued_when_their_response_time_says() {
    let Some(corpus) = support::corpus() else { return };
    let output = pass(&corpus.join("microsoft+perfview/net.4.5.2.x64.etl"), "disk_io");
    let disk = table(&output, "disk_io");
    assert_eq!(disk.rows(), 1231);
    for row in rows(disk) {
        let get = |column| number(disk, row, column).unwrap();
        assert!((get("start_ns") - get("init_ns")).abs() < 20_000, "row {row}");
        assert_eq!(get("dur_ns"), get("service_ns") + get("queue_ns"));
        assert!(get("stack_id") >= 0 && get("depth") < 10);
        // A request that was issued alone on this machine of one disk does not wait for another one, unless
        // that was under way when the trace began.
        let waited = get("queue_ns") > 20_000;
        assert!(!waited || get("depth") > 0 || later_ones_overtook(disk, row), "row {row}");
    }
}

/// Whether a request that was issued later completed before `row` did.
fn later_ones_overtook(disk: &etwhy_table::Table, row: u32) -> bool {
    let get = |row, column| number(disk, row, column).unwrap();
    rows(disk)
        .any(|other| get(other, "init_ns") > get(row, "init_ns") && get(other, "ts_ns") < get(row, "ts_ns"))
}

const HKLM: &str = "\\REGISTRY\\MACHINE";

#[test]
fn registry_keys_have_their_full_path() {
    let mut w = Writer::new("registry", 8);
    // Whole path, relative to a key that the rundown at the end names, value of such a key.
    w.registry(11, 100, 90, OK, 0, &format!("{HKLM}\\SOFTWARE\\App"));
    w.registry(11, 110, 105, NOT_FOUND, 0xA0, "Sub\\Key");
    w.registry(16, 120, 117, 0x8000_0005, 0xA0, "Language");
    w.registry(16, 130, 128, OK, 0xA0, "LANGUAGE");
    w.registry(16, 140, 139, OK, 0xA0, "");
    // A key control block that is made, used and freed, and another one at its address.
    w.registry(22, 200, 0, OK, 0xB0, "\\REGISTRY\\USER\\S-1-5-18\\Env");
    w.registry(14, 210, 209, OK, 0xB0, "Path");
    w.registry(23, 220, 0, OK, 0xB0, "\\REGISTRY\\USER\\S-1-5-18\\Env");
    w.registry(17, 230, 229, 0x8000_001A, 0xB0, "");
    w.registry(22, 240, 0, OK, 0xB0, &format!("{HKLM}\\SYSTEM"));
    w.registry(13, 250, 248, OK, 0xB0, "");
    w.registry(27, 255, 254, OK, 0xC0, "");
    w.registry(25, 900, 0, OK, 0xA0, &format!("{HKLM}\\SYSTEM\\Nls"));
    let output = w.tables("registry registry_usage registry_stack");
    let columns = "start_ns ts_ns dur_ns op key value status_name index";
    lines(&output, "registry", columns).are(&[
        "9000 10000 1000 Open HKLM\\SOFTWARE\\App - STATUS_SUCCESS -",
        "10500 11000 500 Open HKLM\\SYSTEM\\Nls\\Sub\\Key - STATUS_OBJECT_NAME_NOT_FOUND -",
        "11700 12000 300 QueryValue HKLM\\SYSTEM\\Nls Language STATUS_BUFFER_OVERFLOW -",
        "12800 13000 200 QueryValue HKLM\\SYSTEM\\Nls LANGUAGE STATUS_SUCCESS -",
        "13900 14000 100 QueryValue HKLM\\SYSTEM\\Nls  STATUS_SUCCESS -",
        "20900 21000 100 SetValue HKU\\S-1-5-18\\Env Path STATUS_SUCCESS -",
        "22900 23000 100 EnumerateKey - - STATUS_NO_MORE_ENTRIES 3",
        "24800 25000 200 Query HKLM\\SYSTEM - STATUS_SUCCESS -",
        "25400 25500 100 Close - - STATUS_SUCCESS -",
    ]);
    assert_eq!(ledger_count(&output, "registry_keys_unnamed"), 2);
    let columns =
        "key op count failed total_ns max_ns values repeats top_value top_value_reads first_ns last_ns";
    let usage = lines(&output, "registry_usage", columns);
    assert_eq!(usage[0], "HKLM\\SYSTEM\\Nls QueryValue 3 0 600 300 2 1 Language 2 12000 14000");
    assert!(usage.contains(&"HKLM\\SYSTEM\\Nls\\Sub\\Key Open 1 1 500 500 - - - - 11000 11000".to_owned()));
    assert_eq!(usage.len(), 7);
    let stacks = lines(&output, "registry_stack", "stack_id op count failed total_ns");
    assert_eq!(stacks[0], "- QueryValue 3 0 600");
    assert!(stacks.contains(&"- Open 2 1 1500".to_owned()));
}

/// Before Vista: status as a pointer, elapsed time of unknown unit, names told on first use.
#[test]
fn old_registry_layouts() {
    let mut w = Writer::new("old-registry", 4);
    w.system(0, 0x0910, 1, 100, |r| r.ptr(0xC000_0034).ptr(0xA0).i64(12345).u32(7).utf16z("Value"));
    w.system(0, 0x0916, 1, 110, |r| r.ptr(0).ptr(0xA0).i64(0).u32(0).utf16z("\\REGISTRY\\MACHINE\\A"));
    w.system(0, 0x0910, 0, 120, |r| r.ptr(0).ptr(0xA0).i64(12345).utf16z("Other"));
    let output = w.tables("registry");
    lines(&output, "registry", "start_ns ts_ns dur_ns op key value status_name").are(&[
        "- 10000 - QueryValue HKLM\\A Value STATUS_OBJECT_NAME_NOT_FOUND",
        "- 12000 - QueryValue HKLM\\A Other STATUS_SUCCESS",
    ]);
}

/// Operations on one stack are counted on it, whether its halves came early or late.
#[test]
fn registry_operations_by_stack() {
    let mut w = Writer::new("registry-stacks", 8);
    for n in 0..40 {
        // One a second: most tickets are closed during the pass.
        let at = 10_000_000 * n + 100;
        w.registry(16, at, at - 5, OK, 0xA0, "Value");
        let (ticks, user) = (w.start + at, 0x0000_7FF6_0000_1000 + (n as u64 % 2) * 0x100);
        w.perf(0, 0x1820, 2, at + 1, |r| r.i64(ticks).u32(PID).u32(TID).ptr(0xFFFF_F800_0000_1000));
        if n != 7 {
            w.perf(0, 0x1820, 2, at + 50, |r| r.i64(ticks).u32(PID).u32(TID).ptr(user));
        }
    }
    let output = w.tables("registry registry_stack stack");
    let by_stack = lines(&output, "registry_stack", "op count failed total_ns");
    assert_eq!(by_stack, ["QueryValue 20 0 10000", "QueryValue 19 0 9500", "QueryValue 1 0 500"]);
    let of = table(&output, "registry_stack");
    let ids: Vec<_> = rows(of).map(|row| number(of, row, "stack_id").unwrap()).collect();
    let registry = table(&output, "registry");
    for (row, n) in ids.iter().zip([20, 19, 1]) {
        let with = rows(registry).filter(|r| number(registry, *r, "stack_id") == Some(*row)).count();
        assert_eq!(with, n);
    }
}
