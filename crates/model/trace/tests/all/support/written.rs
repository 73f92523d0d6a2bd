//! Small traces written record by record, so that every expected number can be counted by hand.

use super::{rows, table};
use etwhy_base::Guid;
use etwhy_decode::{Decoder, DecoderOptions};
use etwhy_etl::Ledger;
use etwhy_etl::read::{EtlFile, OpenOptions};
use etwhy_etl::write::{EventHead, RecordBuf, TraceSetup, TraceWriter};
use etwhy_table::{Memory, Table};
use etwhy_trace::{Options, Output, Symbols, analyse};
use std::collections::BTreeSet;

/// A trace in the making. Times are microseconds since its start.
#[derive(Default)]
pub struct Written {
    records: Vec<(i64, u16, Vec<u8>)>,
    /// When events of processor 0 were lost, in ticks.
    lost: Vec<i64>,
    setup: TraceSetup,
}

impl Written {
    pub fn new() -> Written {
        Written { setup: TraceSetup { processors: 2, ..TraceSetup::default() }, ..Written::default() }
    }

    pub fn ticks(&self, us: i64) -> i64 {
        self.setup.ticks_at(us * 1000)
    }

    fn add(&mut self, us: i64, cpu: u16, record: &mut RecordBuf) -> &mut Written {
        let bytes = record.finish().unwrap().to_vec();
        self.records.push((self.ticks(us), cpu, bytes));
        self
    }

    /// A kernel event that names no thread.
    pub fn perf(
        &mut self,
        us: i64,
        cpu: u16,
        hook: u16,
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) -> &mut Written {
        let mut record = RecordBuf::new();
        record.perfinfo(8, hook, 2, self.ticks(us));
        build(&mut record);
        self.add(us, cpu, &mut record)
    }

    /// A kernel event of a thread (process and thread id).
    pub fn system(
        &mut self,
        us: i64,
        who: (u32, u32),
        hook: u16,
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) -> &mut Written {
        let mut record = RecordBuf::new();
        record.system(8, hook, 2, self.ticks(us), who.0, who.1, (0, 0));
        build(&mut record);
        self.add(us, 0, &mut record)
    }

    /// An event of a provider.
    pub fn event(
        &mut self,
        us: i64,
        who: (u32, u32),
        provider: &str,
        id: u16,
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) -> &mut Written {
        self.event_version(us, who, provider, (id, 0), build)
    }

    /// An event of a provider by id and version.
    pub fn event_version(
        &mut self,
        us: i64,
        who: (u32, u32),
        provider: &str,
        (id, version): (u16, u8),
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) -> &mut Written {
        let provider: Guid = provider.parse().unwrap();
        let head = EventHead { provider, id, version, pid: who.0, tid: who.1, ..EventHead::default() };
        let mut record = RecordBuf::new();
        record.event(8, self.ticks(us), &head);
        build(&mut record);
        self.add(us, 0, &mut record)
    }

    /// A process with one thread begins (`1`) or ends (`2`), or is told of by a rundown (`3`, `4`).
    pub fn process(&mut self, us: i64, op: u16, pid: u32, tid: u32, name: &str) -> &mut Written {
        let mut record = RecordBuf::new();
        record.system(8, 0x0300 | op, 4, self.ticks(us), pid, tid, (0, 0));
        record.ptr(0xFFFF_8000_0000_0000 + u64::from(pid)).u32(pid).u32(4).u32(1).u32(0);
        record.ptr(0).u32(0).u32(0).text_z(name).utf16z("").utf16z("").utf16z("");
        self.add(us, 0, &mut record)
    }

    /// A thread is told of (`1` start, `2` end, `3` rundown).
    pub fn thread(&mut self, us: i64, op: u16, pid: u32, tid: u32) -> &mut Written {
        let mut record = RecordBuf::new();
        record.system(8, 0x0500 | op, 3, self.ticks(us), pid, tid, (0, 0));
        record.u32(pid).u32(tid).zeros(128);
        self.add(us, 0, &mut record)
    }

    /// `new` comes onto the processor in place of `old`.
    pub fn switch(&mut self, us: i64, cpu: u16, new: u32, old: u32) -> &mut Written {
        self.perf(us, cpu, 0x0524, |r| r.u32(new).u32(old).zeros(16))
    }

    /// The stack of the event at `event_us`.
    pub fn stack(&mut self, us: i64, event_us: i64, who: (u32, u32), frames: &[u64]) -> &mut Written {
        let event = self.ticks(event_us);
        self.perf(us, 0, 0x1820, |r| {
            r.i64(event).u32(who.0).u32(who.1);
            for &frame in frames {
                r.ptr(frame);
            }
            r
        })
    }

    /// Processor 0 loses events here: its buffer ends, and says so.
    pub fn lost(&mut self, us: i64) -> &mut Written {
        self.lost.push(self.ticks(us));
        self
    }

    /// One pass for the tables named, separated by blanks.
    pub fn pass(&self, tables: &str) -> Output {
        self.pass_with(tables, Symbols::new(&[]))
    }

    /// The same with symbols.
    pub fn pass_with(&self, tables: &str, symbols: Symbols) -> Output {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("written.etl");
        let mut records: Vec<&(i64, u16, Vec<u8>)> = self.records.iter().collect();
        records.sort_by_key(|r| r.0);
        let mut writer = TraceWriter::create(&path, self.setup.clone()).unwrap();
        let mut lost = self.lost.iter().peekable();
        for (ticks, cpu, bytes) in records {
            if lost.next_if(|&lost| lost <= ticks).is_some() {
                writer.mark_lost(0, true, false);
                writer.flush_cpu(0).unwrap();
            }
            writer.write_bytes(*cpu, *ticks, bytes).unwrap();
        }
        writer.finish().unwrap();
        let mut ledger = Ledger::new();
        let options = Options {
            tables: Some(tables.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>()),
            memory: Memory::unlimited(),
            symbols,
            inputs: etwhy_trace::Inputs::default(),
            threads: 1,
            decoder: Decoder::new(&DecoderOptions::default(), &mut ledger),
        };
        let file = EtlFile::open(&path, &path, &OpenOptions::default()).unwrap();
        analyse(&[file], options, &mut (), ledger).unwrap()
    }
}

/// Rows of a table as text: the columns named, separated by blanks, `-` for null, processes and threads as ids.
pub fn shown(output: &Output, name: &str, columns: &str) -> Vec<String> {
    let of = table(output, name);
    lines(of, columns, |row, column| cell(output, of, row, column))
}

/// Rows of a table as text: the columns named, separated by blanks.
pub fn lines(of: &Table, columns: &str, cell: impl Fn(u32, &str) -> String) -> Vec<String> {
    let line = |row| columns.split_whitespace().map(|c| cell(row, c)).collect::<Vec<_>>().join(" ");
    rows(of).map(line).collect()
}

fn cell(output: &Output, table: &Table, row: u32, column: &str) -> String {
    let spec = table.spec().column(column).unwrap_or_else(|| panic!("{} has no {column}", table.name()));
    let id = |other: &str, what: &str| {
        let number = table.i64(row, column)?;
        output.db.get(other)?.i64(number as u32, what)
    };
    let number = match spec.role.name() {
        "process" => id("process", "pid"),
        "thread" => id("thread", "tid"),
        // Microseconds are easier to count.
        _ if column.ends_with("_ns") => table.i64(row, column).map(|ns| ns / 1000),
        _ => table.i64(row, column),
    };
    match (table.text(row, column), number) {
        (Some(text), _) => text.to_owned(),
        (None, Some(number)) => number.to_string(),
        (None, None) => "-".into(),
    }
}
