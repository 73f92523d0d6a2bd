//! Which files are parts of one recording: all pairs of real traces, and files written for each rule.

use crate::support;
use etwhy_etl::Ledger;
use etwhy_etl::abi::logfile::{MODE_NEW_FILE, MODE_NO_PER_PROCESSOR_BUFFERING};
use etwhy_etl::read::anomalies::{BUFFERS_MISSING, FEWER_BUFFERS, SEGMENT_OF_SERIES};
use etwhy_etl::read::{EtlFile, OpenOptions};
use etwhy_etl::write::{EventHead, RecordBuf, TraceSetup, TraceWriter};
use etwhy_testkit::traces;
use etwhy_trace::identity::recording::{Relation, relation};
use etwhy_trace::identity::{Identity, group};
use std::path::Path;

const SECOND: i64 = 10_000_000;

fn identity(path: &Path) -> Identity {
    Identity::from_file(&EtlFile::open(path, path, &OpenOptions::default()).unwrap())
}

/// Every real trace is a recording of its own.
#[test]
fn no_two_real_traces_are_one_recording() {
    let Some(corpus) = support::corpus() else { return };
    let all: Vec<Identity> = traces(&corpus).iter().map(|path| identity(path)).collect();
    assert!(all.len() > 30);
    for (n, a) in all.iter().enumerate() {
        assert_eq!(a.trace_id.len(), 32);
        for b in &all[n + 1..] {
            assert_ne!(relation(a, b), Relation::Parts, "{a:#?} {b:#?}");
            assert_eq!(facts(&relation(a, b)), facts(&relation(b, a)), "the order of files decides nothing");
            assert_ne!(a.trace_id, b.trace_id);
        }
    }
    let grouping = group(&all);
    assert_eq!(grouping.recordings.len(), all.len());
    assert_eq!(grouping.apart.len(), all.len() - 1);
    assert!(grouping.apart.iter().all(|apart| !apart.differences.is_empty()));
}

fn facts(relation: &Relation) -> Vec<&'static str> {
    match relation {
        Relation::Parts => Vec::new(),
        Relation::Unrelated(difference) => vec![difference.fact],
        Relation::Apart(list) => list.iter().map(|difference| difference.fact).collect(),
    }
}

/// What looks at some buffers sees what a whole pass sees.
#[test]
fn a_look_at_some_buffers_finds_the_computer() {
    let Some(corpus) = support::corpus() else { return };
    for (file, computer, memory_mb) in [
        ("microsoft+perfview/net.4.5.2.x64.etl", "BRIANROB-W8", 4096),
        ("microsoft+perfview/net.4.5.x86_PerfViewData.etl", "JEFFSCHW-GC2", 3584),
        ("Siemens-Healthineers+ETWAnalyzer/TraceLoggingTester.etl", "MAGNON", 65349),
    ] {
        let identity = identity(&corpus.join(file));
        assert_eq!(identity.machine.computer.as_deref(), Some(computer), "{file}");
        let memory = identity.machine.memory_mb.unwrap();
        assert!(memory.abs_diff(memory_mb) < 2, "{file}: {memory}");
        assert!(identity.kernel, "{file}");
    }
}

/// A file to be written.
struct File {
    setup: TraceSetup,
    /// Seconds after the setup's start.
    seconds: std::ops::Range<i64>,
    kernel: bool,
    computer: Option<&'static str>,
    memory_mb: u32,
    first_sequence: i64,
}

fn kernel() -> File {
    let setup = TraceSetup { processors: 4, log_file_name: "C:\\k.etl".into(), ..TraceSetup::default() };
    File { setup, seconds: 0..10, kernel: true, computer: Some("PC"), memory_mb: 4096, first_sequence: 1 }
}

fn user() -> File {
    let mut file = File { kernel: false, computer: None, ..kernel() };
    file.setup.session_name = "user".into();
    file.setup.log_file_name = "C:\\u.etl".into();
    file
}

impl File {
    /// The same session later.
    fn at(mut self, seconds: std::ops::Range<i64>) -> File {
        self.setup.start_time += seconds.start * SECOND;
        self.setup.start_ticks += seconds.start * self.setup.perf_freq;
        self.seconds = 0..seconds.end - seconds.start;
        self
    }

    fn with(mut self, change: impl FnOnce(&mut TraceSetup)) -> File {
        change(&mut self.setup);
        self
    }

    fn write(&self, path: &Path) -> Identity {
        let mut writer = TraceWriter::create(path, self.setup.clone()).unwrap();
        let mut r = RecordBuf::new();
        let tick = |ms: i64| self.setup.start_ticks + ms * self.setup.perf_freq / 1000;
        if let Some(computer) = self.computer {
            // SystemConfig/CPU.
            r.system(8, 0x0B0A, 2, tick(self.seconds.start * 1000), 4, 8, (0, 0))
                .u32(3000)
                .u32(4)
                .u32(self.memory_mb);
            r.u32(4096).u32(65536).utf16_fixed(computer, 256).utf16_fixed("D", 134).ptr(0);
            writer.write(0, &mut r).unwrap();
        }
        for ms in (self.seconds.start * 1000..self.seconds.end * 1000).step_by(10) {
            if self.kernel {
                r.perfinfo(8, 0x0F2E, 2, tick(ms)).u64(0).u32(4).u16(1).u16(0);
            } else {
                r.event(8, tick(ms), &EventHead::default()).u64(0);
            }
            writer.write(0, &mut r).unwrap();
        }
        writer.finish().unwrap();
        if self.first_sequence > 1 {
            renumber(path, self.first_sequence - 1);
        }
        identity(path)
    }
}

/// Adds to the sequence numbers of all buffers but the first, as in a later file of a series.
fn renumber(path: &Path, by: i64) {
    use etwhy_base::Bytes;
    use etwhy_etl::abi::buffer;
    let mut bytes = std::fs::read(path).unwrap();
    let mut at = bytes.u32_at(buffer::BUFFER_SIZE).unwrap() as usize;
    while at + buffer::LEN <= bytes.len() {
        let size = bytes.u32_at(at + buffer::BUFFER_SIZE).unwrap() as usize;
        let place = at + buffer::SEQUENCE_NUMBER;
        let number = bytes.i64_at(place).unwrap() + by;
        bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
        at += size;
    }
    std::fs::write(path, bytes).unwrap();
}

fn pair(a: &File, b: &File) -> Relation {
    named(a, b, ["a.etl", "b.etl"])
}

fn named(a: &File, b: &File, names: [&str; 2]) -> Relation {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = [a.write(&folder.path().join(names[0])), b.write(&folder.path().join(names[1]))];
    let found = relation(&a, &b);
    assert_eq!(found == Relation::Parts, relation(&b, &a) == Relation::Parts);
    assert_eq!(group(&[a, b]).recordings.len() == 1, found == Relation::Parts);
    found
}

#[test]
fn parts_of_one_recording_are_read_as_one() {
    let parts = |what: &str, a: &File, b: &File| assert_eq!(pair(a, b), Relation::Parts, "{what}");
    parts("kernel and user part", &kernel(), &user().at(1..9));
    parts("a user part that outlives the kernel's", &kernel(), &user().at(2..30));
    parts("two user parts", &user(), &user().at(3..5).with(|s| s.session_name = "another".into()));
    parts("no boot time", &kernel(), &user().with(|s| s.boot_time = 0));
    parts("the clock was set a little", &kernel(), &user().with(|s| s.boot_time += 3 * SECOND));
    parts(
        "processors that share buffers",
        &kernel(),
        &user().with(|s| {
            s.processors = 1;
            s.log_file_mode |= MODE_NO_PER_PROCESSOR_BUFFERING;
        }),
    );
    parts("memory of a virtual machine", &kernel(), &File { kernel: false, memory_mb: 8192, ..kernel() });
    let segment = |seconds, first_sequence, start| File {
        seconds,
        first_sequence,
        ..kernel().with(|s| {
            s.log_file_mode |= MODE_NEW_FILE;
            s.start_time += start;
            s.start_ticks += start;
        })
    };
    parts("a series of one session", &segment(0..10, 1, 0), &segment(10..20, 500, 0));
    parts("a series with a hole", &segment(0..10, 1, 0), &segment(40..50, 900, 0));
    parts(
        "a series whose files have starts of their own",
        &segment(0..10, 1, 0),
        &segment(0..10, 500, 10 * SECOND),
    );
    let collector = |number: &str, seconds| {
        kernel().at(seconds).with(|s| s.log_file_name = format!("C:\\PerfLogs\\trace_{number}.etl"))
    };
    parts("a collector's numbered files", &collector("000001", 0..10), &collector("000002", 11..20));
    let told = |number: &str, seconds| File {
        seconds,
        ..kernel().with(|s| s.log_file_name = format!("D:\\traces\\0000000a-kernel-1-{number}.etl"))
    };
    parts("a session that was told to go on in other files", &told("001", 0..10), &told("002", 10..20));
    parts("of which some were deleted", &told("001", 0..10), &told("017", 160..170));
    // What etwhy leaves beside a flight recorder, and of a session that was taken.
    let later = || kernel().at(12..13).with(|s| s.session_name = "etwhy".into());
    for name in ["x.names.etl", "x.kernel-2.etl", "X.Names-12.etl"] {
        assert_eq!(named(&kernel(), &later(), ["x.etl", name]), Relation::Parts, "{name}");
    }
    for name in ["0000000a-names-3-001.etl", "0000000a-kernel-2-001.etl"] {
        let names = ["0000000A-kernel-save-001.etl", name];
        assert_eq!(named(&kernel(), &later(), names), Relation::Parts, "{name}");
    }
    for name in ["0000000b-names-3-001.etl", "0000000a-kernel-save-004.etl"] {
        let names = ["0000000a-kernel-save-001.etl", name];
        assert_ne!(named(&kernel(), &later(), names), Relation::Parts, "{name}");
    }
    for name in ["y.names.etl", "x.names.old.etl", "x-2.etl", "x.kernel-.etl"] {
        assert_ne!(named(&kernel(), &later(), ["x.etl", name]), Relation::Parts, "{name}");
    }
    let merged = |seconds| {
        kernel().at(seconds).with(|s| {
            s.session_name = "Relogger".into();
            s.log_file_name = "[multiple files]".into();
        })
    };
    let names = ["t_0009.etl", "t_0010.etl"];
    assert_eq!(named(&merged(0..10), &merged(10..20), names), Relation::Parts, "merged segments");
    // Short runs of the same moment, numbered by whoever copied them.
    let apart = named(&merged(0..3), &merged(0..4), names);
    assert_eq!(facts(&apart), ["overlapping kernel sessions"], "two traces of one moment");
    let names = ["x.etl", "x.clrRundown.etl"];
    assert_eq!(
        named(&kernel(), &user().at(15..20), names),
        Relation::Parts,
        "the rundown of .NET comes later"
    );
}

/// Whether Windows numbers buffers anew in each file or not, and whether headers count those of the file or of the session.
#[test]
fn a_session_that_went_on_in_another_file_has_lost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.etl");
    let losses = |log_file: &str, counts_all: bool| {
        let later = File { first_sequence: 500, ..kernel().with(|s| s.log_file_name = log_file.to_owned()) };
        later.write(&path);
        if counts_all {
            // `TRACE_LOGFILE_HEADER::BuffersWritten`, behind the headers of buffer and record.
            let at = 72 + 32 + 36;
            let mut bytes = std::fs::read(&path).unwrap();
            let found = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            bytes[at..at + 4].copy_from_slice(&(found + 499).to_le_bytes());
            std::fs::write(&path, bytes).unwrap();
        }
        let file = EtlFile::open(&path, &path, &OpenOptions::default()).unwrap();
        [&BUFFERS_MISSING, &FEWER_BUFFERS, &SEGMENT_OF_SERIES].map(|anomaly| file.ledger().get(anomaly))
    };
    for counts_all in [false, true] {
        let [missing, fewer, earlier] = losses("D:\\t\\0000000a-kernel-1-002.etl", counts_all);
        assert_eq!((missing, fewer), (0, 0), "{counts_all}");
        assert!(earlier > 400);
    }
    let [missing, _, earlier] = losses("D:\\t\\0000000a-kernel-1-001.etl", true);
    assert!(missing > 400 && earlier == 0, "the first file has no files before it");
}

#[test]
fn each_fact_sets_files_apart_and_is_named() {
    let apart = |fact: &str, a: &File, b: &File| {
        assert_eq!(facts(&pair(a, b)), [fact]);
    };
    let other = || File { kernel: false, ..kernel() };
    apart("computer", &kernel(), &File { computer: Some("OTHER"), ..other() });
    apart("boot time", &kernel(), &other().with(|s| s.boot_time -= 3600 * SECOND));
    apart("Windows build", &kernel(), &other().with(|s| s.os_build = 22631));
    apart("processors", &kernel(), &other().with(|s| s.processors = 8));
    apart("clock", &kernel(), &other().with(|s| s.perf_freq = 3_000_000));
    let unnamed = |memory_mb, kernel| File { computer: Some(""), memory_mb, kernel, ..user() };
    apart("memory", &unnamed(4096, true), &unnamed(8192, false));
    apart("overlapping kernel sessions", &kernel(), &kernel().at(5..15));
    apart("time", &kernel(), &user().at(20..30));
    apart("time", &kernel(), &kernel().at(20..30));
    // A number that a person wrote is no series.
    let version = |name: &str, seconds| kernel().at(seconds).with(|s| s.log_file_name = name.into());
    apart("time", &version("data_v1.etl", 0..10), &version("data_v2.etl", 11..20));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    let a = kernel().write(&path);
    let copy = Identity { shown: folder.path().join("copy.etl"), ..a.clone() };
    let Relation::Apart(list) = relation(&a, &copy) else { panic!("a copy is read as a part") };
    assert!(list.iter().any(|difference| difference.fact == "content"));
}

#[test]
fn segments_with_users_parts_are_one_and_a_stranger_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let collector = |number: &str, seconds| {
        kernel().at(seconds).with(|s| s.log_file_name = format!("C:\\trace_{number}.etl"))
    };
    let stranger = || File { computer: Some("OTHER"), ..kernel() };
    let mut files = [
        collector("000002", 10..20).write(&at("a.etl")),
        user().at(1..19).write(&at("b.etl")),
        stranger().with(|s| s.boot_time -= 3600 * SECOND).write(&at("c.etl")),
        collector("000001", 0..10).write(&at("d.etl")),
    ];
    let grouping = group(&files);
    assert_eq!(grouping.recordings, [vec![0, 1, 3], vec![2]]);
    assert_eq!(grouping.apart.len(), 1);
    assert!(grouping.apart[0].differences.iter().any(|d| d.text == "computer PC and OTHER"));
    // Two machines that booted alike: whose the part without a name is cannot be determined.
    files[2] = stranger().write(&at("c.etl"));
    let grouping = group(&files);
    assert_eq!(grouping.recordings, [vec![0, 3], vec![1], vec![2]]);
    assert_eq!(grouping.apart.len(), 2);
    // A part that lasted through two recordings of one machine and boot connects them.
    let apart = [kernel().write(&at("a.etl")), kernel().at(20..30).write(&at("d.etl"))];
    assert_eq!(group(&apart).recordings.len(), 2);
    let [first, second] = apart;
    assert_eq!(group(&[first, user().at(1..29).write(&at("b.etl")), second]).recordings, [vec![0, 1, 2]]);
}

/// A later file of a series is called one; a file whose first buffer was empty is not.
#[test]
fn only_a_series_has_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.etl");
    for (mode, name) in [(MODE_NEW_FILE, "segment_of_series"), (0, "first_buffers_absent")] {
        File { first_sequence: 8, ..kernel().with(|s| s.log_file_mode |= mode) }.write(&path);
        let file = EtlFile::open(&path, &path, &OpenOptions::default()).unwrap();
        let mut ledger = Ledger::new();
        ledger.merge(file.ledger());
        let names: Vec<&str> = ledger.entries().map(|entry| entry.anomaly.name).collect();
        assert_eq!(names, [name]);
    }
}

#[test]
fn the_id_of_a_trace_is_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.etl", "b.etl"].map(|name| folder.path().join(name));
    let first = kernel().write(&a);
    std::fs::copy(&a, &b).unwrap();
    assert_eq!(first.trace_id, identity(&b).trace_id);
    let pieces = EtlFile::open(&a, &a, &OpenOptions { chunk: Some(4096) }).unwrap();
    assert_eq!(first.trace_id, pieces.trace_id());
    // One byte of the header, one at the end, one more.
    let bytes = std::fs::read(&a).unwrap();
    for change in [0x300, bytes.len() - 1] {
        let mut other = bytes.clone();
        other[change] ^= 1;
        std::fs::write(&b, &other).unwrap();
        assert_ne!(first.trace_id, identity(&b).trace_id, "byte {change}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    std::fs::write(&b, longer).unwrap();
    assert_ne!(first.trace_id, identity(&b).trace_id);
    // As `sha256sum` prints it.
    std::fs::write(&b, &bytes).unwrap();
    let file = EtlFile::open(&b, &b, &OpenOptions::default()).unwrap();
    assert_eq!(file.sha256().len(), 64);
    assert_eq!(file.sha256(), pieces.sha256());
}
