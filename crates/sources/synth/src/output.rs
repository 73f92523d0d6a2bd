//! Records on their way to the file: held back until their time comes, counted by type.

use crate::without::Without;
use etwhy_base::rng::Xoshiro;
use etwhy_base::{Bytes, Guid};
use etwhy_etl::write::{RecordBuf, TraceSetup, TraceWriter, Written};
use etwhy_etl::{HeaderKind, Record};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Seek, Write};

/// What a trace can be written to.
pub(crate) trait Sink: Write + Seek {}
impl<T: Write + Seek> Sink for T {}

/// A record that is built but not yet due.
struct Held {
    cpu: u16,
    ticks: i64,
    bytes: Vec<u8>,
}

/// Key of the per-type counts for records with a GUID: header class, GUID, id, opcode.
type UserKey = (&'static str, Guid, u16, u8);

/// Counts of records by type, under the names that `tests/python/count_records.py` uses.
pub(crate) struct Counts {
    kernel: Vec<u64>,
    user: BTreeMap<UserKey, u64>,
}

impl Counts {
    fn count(&mut self, kind: HeaderKind, bytes: &[u8]) {
        if kind.is_system() {
            let hook = bytes.u16_at(6).unwrap_or(0);
            if let Some(n) = self.kernel.get_mut(usize::from(hook)) {
                *n += 1;
            }
            return;
        }
        let record = Record { bytes, kind, ticks: 0, cpu: 0, logger_id: 0, file: 0 };
        let class = if kind.is_event() { "event" } else { "classic" };
        let key = (class, record.guid().unwrap_or_default(), record.id(), record.opcode());
        *self.user.entry(key).or_default() += 1;
    }

    /// Name and count of every type that occurred.
    pub(crate) fn named(&self) -> BTreeMap<String, u64> {
        let kernel = self.kernel.iter().enumerate().filter(|(_, n)| **n > 0);
        let kernel = kernel.map(|(hook, n)| (format!("kernel/{}/{}", hook >> 8, hook & 0xFF), *n));
        let user = self.user.iter().map(|((class, guid, id, opcode), n)| match *class {
            "event" => (format!("event/{guid}/{id}/{opcode}"), *n),
            class => (format!("{class}/{guid}/{opcode}"), *n),
        });
        kernel.chain(user).collect()
    }
}

/// The writer with a queue in front of it that brings records into time order.
pub(crate) struct Output {
    writer: TraceWriter<Box<dyn Sink>>,
    setup: TraceSetup,
    queue: BinaryHeap<Reverse<(i64, u64, usize)>>,
    held: Vec<Held>,
    free: Vec<usize>,
    next: u64,
    now: i64,
    record: RecordBuf,
    pub(crate) counts: Counts,
    bytes: u64,
    /// Kernel records of this moment and later are not written.
    pub(crate) silent_from: i64,
    /// No record has a time from the first moment until the second.
    pub(crate) stall: Option<(i64, i64)>,
    /// Kinds of events that are not written.
    pub(crate) without: Without,
}

impl Output {
    pub(crate) fn new(sink: Box<dyn Sink>, setup: TraceSetup) -> io::Result<Output> {
        let mut counts = Counts { kernel: vec![0; 0x1_0000], user: BTreeMap::new() };
        // The header record.
        if let Some(n) = counts.kernel.first_mut() {
            *n = 1;
        }
        Ok(Output {
            writer: TraceWriter::new(sink, setup.clone())?,
            setup,
            queue: BinaryHeap::new(),
            held: Vec::new(),
            free: Vec::new(),
            next: 0,
            now: 0,
            record: RecordBuf::new(),
            counts,
            bytes: 0,
            silent_from: i64::MAX,
            stall: None,
            without: Without::default(),
        })
    }

    /// Timestamp of a moment in nanoseconds.
    pub(crate) fn ticks(&self, ns: i64) -> i64 {
        self.setup.ticks_at(ns)
    }

    /// Adds a record at a moment, now or later. Records of the past are moved to now: a processor's
    /// records stay in order.
    pub(crate) fn add(
        &mut self,
        cpu: u16,
        ns: i64,
        build: impl FnOnce(&mut RecordBuf, i64) -> &mut RecordBuf,
    ) -> io::Result<()> {
        let ns = ns.max(self.now);
        let ns = self.stall.filter(|(from, to)| (*from..*to).contains(&ns)).map_or(ns, |(_, to)| to);
        let ticks = self.setup.ticks_at(ns);
        build(&mut self.record, ticks);
        let kind = self.record.kind();
        let bytes = self.record.finish()?;
        if ns >= self.silent_from && kind.is_system() || self.without.drops(kind, bytes, ticks) {
            return Ok(());
        }
        self.counts.count(kind, bytes);
        self.bytes += bytes.len().next_multiple_of(8) as u64;
        if ns <= self.now {
            return self.writer.write_bytes(cpu, ticks, bytes);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.held.push(Held { cpu, ticks, bytes: Vec::new() });
            self.held.len() - 1
        });
        if let Some(held) = self.held.get_mut(slot) {
            (held.cpu, held.ticks) = (cpu, ticks);
            held.bytes.clear();
            held.bytes.extend_from_slice(bytes);
        }
        self.queue.push(Reverse((ns, self.next, slot)));
        self.next += 1;
        Ok(())
    }

    /// Moves the clock: everything that is due gets written.
    pub(crate) fn advance(&mut self, now: i64) -> io::Result<()> {
        while let Some(&Reverse((ns, _, slot))) = self.queue.peek() {
            if ns > now {
                break;
            }
            self.queue.pop();
            if let Some(held) = self.held.get(slot) {
                self.writer.write_bytes(held.cpu, held.ticks, &held.bytes)?;
            }
            self.free.push(slot);
        }
        self.now = self.now.max(now);
        Ok(())
    }

    /// When the last record that waits is due.
    pub(crate) fn last_due(&self) -> i64 {
        self.queue.iter().map(|Reverse((ns, ..))| *ns).max().unwrap_or(self.now)
    }

    /// Bytes of all records so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Marks some buffers as having lost events, as the counts in the header say.
    pub(crate) fn lose(&mut self, cpus: u16, rng: &mut Xoshiro) {
        if self.setup.events_lost > 0 || self.setup.buffers_lost > 0 {
            let cpu = rng.below(u64::from(cpus)) as u16;
            self.writer.mark_lost(cpu, self.setup.events_lost > 0, self.setup.buffers_lost > 0);
        }
    }

    pub(crate) fn finish(self) -> io::Result<(Written, Counts)> {
        Ok((self.writer.finish()?, self.counts))
    }
}
