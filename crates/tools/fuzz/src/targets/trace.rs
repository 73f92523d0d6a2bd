//! Targets that read traces.

use super::target::accepted;
use crate::scratch;
use crate::seeds::{self, Seed};
use etwhy_analysis::cpu::{Scope, Top};
use etwhy_analysis::strace;
use etwhy_base::Bytes;
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::decompress::{Format, SLACK};
use etwhy_etl::read::{EtlFile, OpenOptions, Timeline, Walk};
use etwhy_etl::write::compress_xpress;
use etwhy_etl::{HeaderKind, Ledger, Record};
use etwhy_table::{Database, Memory, Selection};
use etwhy_trace::catalog::critical_path::{NameOrId, Stretch};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// Opens a trace that has been written to the scratch folder.
pub fn open(path: &Path, chunk: Option<usize>) -> Option<EtlFile> {
    EtlFile::open(path, Path::new("mutant.etl"), &OpenOptions { chunk }).ok()
}

fn digest(record: &Record<'_>, key: i64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (record.bytes, record.ticks, record.cpu, key).hash(&mut hasher);
    hasher.finish()
}

/// Buffers and records: mapped, in pieces, and cut into ranges of time give the same.
pub fn walk(data: &[u8]) {
    let Some(path) = scratch::file("walk.etl", data) else { return };
    let mapped = open(&path, None);
    let pieces = open(&path, Some(97));
    assert_eq!(mapped.is_some(), pieces.is_some(), "the file opens in one way only");
    let (Some(mapped), Some(pieces)) = (mapped, pieces) else { return };
    accepted();
    let mut all = Vec::new();
    for files in [[mapped], [pieces]] {
        let mut ledger = Ledger::new();
        let timeline = Timeline::read(&files, &mut ledger);
        let mut records = Vec::new();
        let mut plain = Ledger::new();
        let stats = Walk::new(&files, &timeline).for_each(&mut plain, |r, key| records.push(digest(r, key)));
        assert_eq!(stats.records, records.len() as u64);
        let lines = |l: &Ledger| l.entries().map(|e| (e.anomaly.name, e.count)).collect::<Vec<_>>();
        let mut parts = 0;
        for part in Walk::new(&files, &timeline).split(3) {
            parts += part.for_each(&mut Ledger::new(), |_, _| {}).records;
        }
        assert_eq!(parts, stats.records, "walks over ranges of time lose or repeat records");
        let (mut threaded, mut at) = (Ledger::new(), 0);
        Walk::new(&files, &timeline).for_each_threaded(3, &mut threaded, |r, key| {
            assert_eq!(records.get(at), Some(&digest(r, key)), "results depend on the number of threads");
            at += 1;
        });
        assert_eq!(at, records.len());
        assert_eq!(lines(&threaded), lines(&plain), "the ledger depends on the number of threads");
        ledger.merge(&plain);
        all.push((records, lines(&ledger), lines(files.first().map_or(&ledger, EtlFile::ledger))));
    }
    assert!(all.first() == all.get(1), "results depend on how the file is read");
}

/// The whole pass over a trace, with everything that may be asked of its tables.
pub fn analyse(data: &[u8]) {
    let Some(path) = scratch::file("analyse.etl", data) else { return };
    // Every third way of reading: whether a file is mapped must not matter.
    analyse_file(&path, data.len().is_multiple_of(3).then_some(1000));
}

/// As [`analyse`], for a file.
pub fn analyse_file(path: &Path, chunk: Option<usize>) {
    let Some(file) = open(path, chunk) else { return };
    accepted();
    let mut ledger = Ledger::new();
    let tables: BTreeSet<String> =
        etwhy_trace::catalog::ALL.iter().flat_map(|a| a.tables).map(|t| t.name.to_string()).collect();
    let options = etwhy_trace::Options {
        tables: Some(tables),
        memory: Memory::unlimited(),
        symbols: etwhy_trace::Symbols::new(&[]),
        decoder: Decoder::new(&DecoderOptions::default(), &mut ledger),
        inputs: etwhy_trace::Inputs::default().with(stretches()),
        threads: 2,
    };
    let output = etwhy_trace::analyse(&[file], options, &mut (), ledger);
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            // The only errors are those of spill files, and there is none here.
            assert_eq!(error.to_string(), "", "the pass gave up");
            return;
        }
    };
    let top = Top { processes: 10, per_process: 5, overall: 10 };
    let cpu = etwhy_analysis::cpu::cpu(&output.db, &Scope::default(), top);
    assert!(cpu.processes.len() <= 10);
    etwhy_analysis::clr::clr(&output.db);
    etwhy_analysis::disk::disk(&output.db, 10);
    for path in etwhy_analysis::critical_path::paths(&output.db) {
        assert!(
            path.links.iter().all(|link| link.cause.dur_ns >= 0),
            "a piece of a path that ends before it begins"
        );
    }
    strace(&output.db);
    for table in output.db.tables() {
        let shown = Selection::all(table).top(200);
        for format in ["table", "csv", "jsonl"] {
            let Ok(format) = etwhy_export::Format::by_name(format) else { continue };
            for width in [Some(100), None] {
                let options = etwhy_export::Options { width, ..Default::default() };
                let written = (format.write)(&shown, &options, &mut std::io::sink());
                assert!(written.is_ok(), "{}: {:?}", table.name(), written.err().map(|e| e.to_string()));
            }
        }
    }
}

/// Stretches over all of the trace, and of one thread id of which there may be many instances.
fn stretches() -> Vec<Stretch> {
    let whole = |process: Option<&str>, thread: Option<&str>| Stretch {
        process: process.map(|name| NameOrId(name.into())),
        thread: thread.map(|name| NameOrId(name.into())),
        from_ns: i64::MIN,
        to_ns: i64::MAX,
    };
    let part = Stretch { from_ns: 1_000_000, to_ns: 40_000_000, ..whole(None, None) };
    vec![whole(None, None), whole(Some("app.exe"), None), whole(None, Some("8")), part]
}

/// System calls as the command shows them.
fn strace(db: &Database) {
    let Some(calls) = strace::Calls::read(db) else { return };
    let arguments = strace::Arguments::read(db, &calls, &strace::Choice::default());
    let mut choices = vec![strace::Choice::default()];
    for text in ["trace=file,registry", "!NtRead*", "status=failed"] {
        let mut choice = strace::Choice::default();
        assert!(choice.filter.add(text, &mut choice.results).is_ok(), "{text}");
        choices.push(choice);
    }
    for choice in &choices {
        let rows = strace::choose(&calls, choice, &arguments);
        assert!(rows.len() <= calls.len() as usize);
        let summary = strace::summary(&calls, &rows, true, strace::SummaryOrder::Time);
        assert_eq!(summary.total.calls, rows.len() as u64);
        for &row in rows.iter().take(2000) {
            arguments.of_call(row, 3);
        }
        for &row in rows.iter().take(20) {
            arguments.of_call(row, usize::MAX);
        }
    }
    let mut wanted: Vec<bool> =
        (0..db.get("process").map_or(0, etwhy_table::Table::rows)).map(|upid| upid % 3 == 0).collect();
    strace::with_children(db, &mut wanted);
}

/// The first two bytes say how much is wanted, the third which format; the rest is the stream.
pub fn decompress(data: &[u8]) {
    let Some(head) = data.first_chunk::<3>() else { return };
    let want = usize::from(u16::from_le_bytes([head[0], head[1]])) * if head[2] & 0x80 != 0 { 16 } else { 1 };
    let input = data.get(3..).unwrap_or(&[]);
    let format = match head[2] & 3 {
        0 => Format::Lznt1,
        1 => Format::XpressHuffman,
        _ => Format::Xpress,
    };
    let unpack = |fill: u8, want: usize| {
        let mut out = vec![fill; want + SLACK];
        let n = format.decompress(input, &mut out, want);
        assert!(n <= want, "more came out than was wanted");
        out.truncate(n);
        out
    };
    let whole = unpack(0xAA, want);
    if !whole.is_empty() {
        accepted();
    }
    assert!(whole == unpack(0x55, want), "bytes that were never written are given as output");
    // Less asked for: a prefix.
    let part = unpack(0xAA, want / 2);
    assert!(whole.starts_with(&part) && part.len() == whole.len().min(want / 2), "not a prefix");
    // A buffer that is too small for the slack is refused.
    assert_eq!(format.decompress(input, &mut vec![0; want], want.max(1)), 0);
}

/// Streams of the three formats.
pub fn packed(_: &Path, _: usize) -> Vec<Seed> {
    let mut text: Vec<u8> = b"windows event trace ".repeat(40);
    text.extend((0..600u32).flat_map(|i| (i * i).to_le_bytes()));
    let stream = |name: &str, format: u8, body: &[u8]| {
        let mut data = (text.len() as u16).to_le_bytes().to_vec();
        data.push(format);
        data.extend(body);
        Seed { name: name.into(), data }
    };
    let body = compress_xpress(&text);
    let mut lznt1 =
        vec![0x05, 0xB0, 0x08, b'a', b'b', b'c', 0x05, 0x20, b'd', 0x03, 0x30, b'x', b'y', b'z', 0x0F];
    lznt1.extend([0, 0]);
    // All 512 symbols with codes of 9 bits.
    let mut huffman = vec![0x99u8; 256];
    huffman.extend(text.iter().take(500));
    vec![
        stream("xpress", 2, &body),
        stream("xpress-long", 0x82, &body),
        stream("lznt1", 0, &lznt1),
        stream("xpress-huffman", 1, &huffman),
        stream("xpress-huffman-long", 0x81, &huffman),
    ]
}

/// One record: the first byte is its header kind, the rest its bytes.
pub fn record(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let kind = if kind == 64 { Some(HeaderKind::Message) } else { HeaderKind::from_type(kind) };
    let Some(kind) = kind else { return };
    let record = Record { bytes, kind, ticks: 0, cpu: 0, logger_id: 0, file: 0 };
    accepted();
    assert!(record.payload().len() <= bytes.len());
    assert!(matches!(record.pointer_size(), 4 | 8));
    let items: usize = record.ext_items().map(|item| item.data.len()).sum();
    assert!(items <= bytes.len());
    let _ = (record.hook(), record.group(), record.opcode(), record.version(), record.id(), record.task());
    let _ = (record.channel(), record.level(), record.keyword(), record.event_flags(), record.guid());
    let _ = (record.activity_id(), record.tid_pid(), record.message_flags(), record.message_component());
    assert!(record.pmc_counters().count() <= 8);
    let mut ledger = Ledger::new();
    let mut decoder = Decoder::new(&DecoderOptions::default(), &mut ledger);
    decoder.observe(&record, &mut ledger);
    super::decode::show(decoder.decode(&record));
}

/// The records of the written traces, one of each kind of event.
pub fn single_records(_: &Path, _: usize) -> Vec<Seed> {
    let mut seeds = Vec::new();
    let mut known = BTreeSet::new();
    for trace in seeds::written() {
        let Some(path) = scratch::file("records.etl", &trace.data) else { continue };
        let Some(file) = open(&path, None) else { continue };
        let files = [file];
        let timeline = Timeline::read(&files, &mut Ledger::new());
        Walk::new(&files, &timeline).for_each(&mut Ledger::new(), |record, _| {
            let kind = record.kind as u8;
            let key = (kind, record.hook(), record.guid().map(|g| g.0), record.opcode(), record.id());
            if known.insert(key) {
                let mut data = vec![kind];
                data.extend_from_slice(record.bytes);
                seeds.push(Seed { name: format!("{} {:#06x}", record.kind.name(), record.hook()), data });
            }
        });
    }
    seeds.sort_by_key(|s| s.data.u8_at(0).unwrap_or(0) < 10);
    seeds
}
