//! Records on their way to the file: held back until their time comes, counted by type.

use crate::without::Without;
use crate::world::LossRange;
use etwhy_base::rng::Xoshiro;
use etwhy_base::{Bytes, Guid};
use etwhy_etl::write::{RecordBuf, TraceSetup, TraceWriter, Written};
use etwhy_etl::{HeaderKind, Record};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
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

/// What was lost.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// Single records, for the header.
    events: u32,
    /// Buffers, for the header.
    buffers: u32,
    /// Records in those buffers.
    records: u64,
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
    /// From the first moment on, the clock shows so much more.
    pub(crate) clock_jump: Option<(i64, i64)>,
    /// Kinds of events that are not written.
    pub(crate) without: Without,
    /// When records are lost.
    pub(crate) losses: Vec<LossRange>,
    /// Lost records that no record followed yet, by place in the list and processor.
    open_losses: BTreeSet<(usize, u16)>,
    /// Of the processors in whose lost buffers records are put now: bytes in the open one.
    lost_fill: BTreeMap<u16, usize>,
    lost: Lost,
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
            clock_jump: None,
            without: Without::default(),
            losses: Vec::new(),
            open_losses: BTreeSet::new(),
            lost_fill: BTreeMap::new(),
            lost: Lost::default(),
        })
    }

    /// The moment itself, or the end of the stall that it lies in: nothing begins or ends while the machine stands still.
    fn after_stall(&self, ns: i64) -> i64 {
        self.stall.filter(|(from, to)| (*from..*to).contains(&ns)).map_or(ns, |(_, to)| to)
    }

    /// Timestamp of a moment in nanoseconds.
    pub(crate) fn ticks(&self, ns: i64) -> i64 {
        let ns = self.after_stall(ns);
        let jumped = self.clock_jump.filter(|(at, _)| *at <= ns).map_or(0, |(_, by)| by);
        self.setup.ticks_at(ns + jumped)
    }

    /// Length of a span in ticks: drivers measure it, whatever becomes of the clock.
    pub(crate) fn span(&self, from: i64, to: i64) -> i64 {
        self.setup.ticks_at(to) - self.setup.ticks_at(from)
    }

    /// Adds a record at a moment, now or later. Records of the past are moved to now: a processor's
    /// records stay in order.
    pub(crate) fn add(
        &mut self,
        cpu: u16,
        ns: i64,
        build: impl FnOnce(&mut RecordBuf, i64) -> &mut RecordBuf,
    ) -> io::Result<()> {
        let ns = self.after_stall(ns.max(self.now));
        let ticks = self.ticks(ns);
        build(&mut self.record, ticks);
        let kind = self.record.kind();
        let bytes = self.record.finish()?;
        if ns >= self.silent_from && kind.is_system() || self.without.drops(kind, bytes, ticks) {
            return Ok(());
        }
        let lost = self.losses.iter().position(|l| l.covers(cpu, ns));
        let whole = lost.and_then(|at| self.losses.get(at)).is_some_and(|l| l.buffers);
        if let (Some(at), false) = (lost, whole) {
            self.open_losses.insert((at, cpu));
            self.lost.events += 1;
            return Ok(());
        }
        if whole {
            self.lost.records += 1;
        } else {
            self.counts.count(kind, bytes);
        }
        self.bytes += bytes.len().next_multiple_of(8) as u64;
        if ns <= self.now {
            let length = bytes.len();
            let behind = self.around_losses(cpu, ns, length)?;
            self.writer.write_bytes(cpu, ticks, self.record.finish()?)?;
            self.writer.mark_lost(cpu, false, behind);
            return Ok(());
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
            let next = self.held.get(slot).map(|held| (held.cpu, held.bytes.len()));
            let behind = next.map_or(Ok(false), |(cpu, length)| self.around_losses(cpu, ns, length))?;
            if let Some(held) = self.held.get(slot) {
                self.writer.write_bytes(held.cpu, held.ticks, &held.bytes)?;
                self.writer.mark_lost(held.cpu, false, behind);
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

    pub(crate) fn finish(mut self) -> io::Result<(Written, Counts)> {
        let Lost { events, buffers, records } = self.lost;
        self.writer.set_lost(self.setup.events_lost + events, self.setup.buffers_lost + buffers);
        let mut written = self.writer.finish()?;
        written.records -= records;
        written.buffers -= u64::from(buffers);
        Ok((written, self.counts))
    }

    /// What losses do before a processor's next record: it is the first one behind lost records or buffers, or the first one in a lost
    /// buffer. True if it follows a lost buffer.
    fn around_losses(&mut self, cpu: u16, ns: i64, length: usize) -> io::Result<bool> {
        if self.losses.is_empty() {
            return Ok(false);
        }
        let over = |at: usize| self.losses.get(at).is_some_and(|l| l.to <= ns);
        if let Some(&key) = self.open_losses.iter().find(|(at, of)| *of == cpu && over(*at)) {
            self.open_losses.remove(&key);
            self.writer.mark_lost(cpu, true, false);
            self.writer.flush_cpu(cpu)?;
        }
        let inside = self.losses.iter().any(|l| l.buffers && l.covers(cpu, ns));
        let was = self.lost_fill.contains_key(&cpu);
        if inside != was {
            self.writer.flush_cpu(cpu)?;
            self.lost_fill.remove(&cpu);
        }
        if inside {
            let (head, size) =
                (etwhy_etl::abi::buffer::LEN, self.setup.buffer_size.next_multiple_of(1024) as usize);
            let fill = self.lost_fill.entry(cpu).or_insert(usize::MAX);
            let length = length.next_multiple_of(8);
            if fill.saturating_add(length) > size {
                *fill = head;
                self.lost.buffers += 1;
            }
            *fill += length;
        }
        Ok(was && !inside)
    }
}
