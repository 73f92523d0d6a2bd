//! Records of one or more files, pushed in time order.
//!
//! Buffers of one processor follow each other in time, buffers of different processors interleave. Rather
//! than keep one chain per processor and repair what does not fit, every buffer is a stream of its own:
//! buffers are sorted by their first timestamp and join the merge when it gets there. Sound files have one
//! active buffer per processor; wrapped circular files, appended sessions, overlapping buffers and clocks
//! that were set back need no special case.

use super::ahead::Ahead;
use super::anomalies::*;
use super::file::EtlFile;
use super::heap::{Heap, Key};
use super::index::BufferEntry;
use super::pipe;
use super::timeline::Timeline;
use super::tokens::{Stop, Token, Tokenizer, ticks_of};
use crate::abi::buffer::LEN;
use crate::{Ledger, Record};
use etwhy_base::Bytes;
use std::collections::HashSet;

/// Records taken out of a buffer at a time: enough to amortise, few enough that their bytes are still in
/// the cache when they are pushed.
const BLOCK: usize = 256;

/// What a walk saw.
#[derive(Clone, Debug, Default)]
pub struct WalkStats {
    /// Records pushed.
    pub records: u64,
    /// Buffers read.
    pub buffers: u64,
    /// Bytes of records, headers included.
    pub bytes: u64,
}

/// A buffer to be read: its file, its entry, its first key and its rank among equals.
#[derive(Clone, Copy, Debug)]
struct Pending<'f> {
    first: Key,
    /// First key of the next buffer of the same processor.
    next_first: i64,
    /// Upper bound of the last key: first key of the buffer behind the next one, to be safe against overlap.
    bound: i64,
    /// End of the ranges of time in which this buffer is looked at; see [`Walk::split`].
    covered: i64,
    file: u16,
    entry: &'f BufferEntry,
}

/// A walk over the records of files.
#[derive(Debug)]
pub struct Walk<'f> {
    files: &'f [EtlFile],
    timeline: &'f Timeline,
    pending: Vec<Pending<'f>>,
    /// Buffers that should hold data and do not begin with a record: looked at only to say what is wrong.
    unreadable: Vec<(u16, &'f BufferEntry)>,
    from: i64,
    to: i64,
}

impl<'f> Walk<'f> {
    /// A walk over all records of `files` in time order.
    pub fn new(files: &'f [EtlFile], timeline: &'f Timeline) -> Walk<'f> {
        let mut pending = Vec::with_capacity(files.iter().map(|f| f.buffers().len()).sum());
        let mut unreadable = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let mut entries: Vec<&BufferEntry> = file.buffers().iter().collect();
            // Rank: the order in which the session wrote them, which decides ties.
            entries.sort_by_key(|b| (b.segment, b.sequence, b.offset));
            for entry in entries {
                let Some(ticks) = entry.first_ticks else {
                    if entry.end as usize > LEN {
                        unreadable.push((number, entry));
                    }
                    continue;
                };
                let rank = u32::try_from(pending.len()).unwrap_or(u32::MAX);
                let first = (timeline.key(number, entry.segment, ticks), rank);
                pending.push(Pending {
                    first,
                    next_first: i64::MAX,
                    bound: i64::MAX,
                    covered: i64::MAX,
                    file: number,
                    entry,
                });
            }
        }
        link_chains(&mut pending);
        pending.sort_by_key(|p| p.first);
        Walk { files, timeline, pending, unreadable, from: i64::MIN, to: i64::MAX }
    }

    /// Whether a record outside of this walk's range is pushed here all the same: no other range looks for it
    /// in its buffer, and the buffer begins here.
    #[cold]
    fn adopts(&self, pending: &Pending<'_>, key: i64) -> bool {
        let begins_here = pending.first.0 >= self.from && (pending.first.0 < self.to || self.to == i64::MAX);
        begins_here && (key < self.from || key >= pending.covered)
    }

    /// Counts what is wrong with buffers that do not begin with a record.
    fn judge_unreadable(&self, ledger: &mut Ledger) {
        let mut stream = Stream::default();
        for &(file, entry) in &self.unreadable {
            let first = (i64::MAX, 0);
            let (next_first, bound, covered) = (i64::MAX, i64::MAX, i64::MAX);
            stream.open(self, Pending { first, next_first, bound, covered, file, entry }, None, ledger);
            stream.head(self, ledger);
        }
    }

    /// Bytes of buffers that may be open at the same time. Buffers of sound files overlap as far as processors
    /// work side by side, and raw ones never reach this; small compressed buffers that unpack to megabytes and
    /// all last for the whole trace are made to fill the memory.
    fn most_held(&self) -> u64 {
        let bytes: u64 = self.files.iter().map(EtlFile::len).sum();
        bytes.saturating_mul(4).saturating_add(64 << 20).min(2 << 30).max(bytes)
    }

    /// Counts the places where the clock of a processor was set back.
    pub fn judge_clocks(&self, ledger: &mut Ledger) {
        ledger.count(&CLOCK_JUMPS, self.pending.iter().filter(|p| p.next_first < p.first.0).count() as u64);
    }

    /// Cuts the walk into at most `n` walks over consecutive ranges of time with about equally many
    /// bytes, to be run in parallel. Together they push what this one would, each in time order. (Records
    /// whose time lies outside of everything that their buffer may hold are pushed with its first record.)
    pub fn split(self, n: usize) -> Vec<Walk<'f>> {
        let total: u64 = self.pending.iter().map(|p| u64::from(p.entry.end)).sum();
        let mut cuts = Vec::new();
        let mut sum = 0u64;
        for p in &self.pending {
            let part = sum.saturating_mul(n as u64) / total.max(1);
            if part > cuts.len() as u64 && cuts.last().is_none_or(|&c| p.first.0 > c) {
                cuts.push(p.first.0);
            }
            sum += u64::from(p.entry.end);
        }
        self.cut(cuts)
    }

    /// The records at or behind the order key `from` and before `to`. Parts that follow each other push what the whole walk would.
    pub fn part(self, from: i64, to: i64) -> Walk<'f> {
        let (whole_from, whole_to) = (self.from, self.to);
        let cuts: Vec<i64> =
            [from, to].into_iter().filter(|&cut| cut > whole_from && cut < whole_to).collect();
        let number = usize::from(from > whole_from).min(cuts.len());
        let empty = Walk {
            files: self.files,
            timeline: self.timeline,
            pending: vec![],
            unreadable: vec![],
            from,
            to,
        };
        self.cut(cuts).into_iter().nth(number).unwrap_or(empty)
    }

    /// The buffers, by file and offset, that no part from the order key `from` on would look at.
    pub(super) fn past(&self, from: i64) -> HashSet<(u16, u64)> {
        let past = self.pending.iter().filter(|p| from > p.bound && from > p.first.0);
        past.map(|p| (p.file, p.entry.offset)).collect()
    }

    /// Cuts the walk at order keys, which have to ascend.
    fn cut(self, cuts: Vec<i64>) -> Vec<Walk<'f>> {
        let mut walks = Vec::new();
        let mut from = self.from;
        let mut unreadable = self.unreadable;
        let mut all = self.pending;
        for p in &mut all {
            let later = cuts.iter().position(|&cut| cut > p.bound && cut > p.first.0);
            p.covered = later.and_then(|i| cuts.get(i)).copied().unwrap_or(self.to);
        }
        for to in cuts.into_iter().chain([self.to]) {
            let pending: Vec<Pending<'f>> = all
                .iter()
                .filter(|p| (p.first.0 < to || to == i64::MAX) && p.covered > from)
                .copied()
                .collect();
            let unreadable = std::mem::take(&mut unreadable);
            walks.push(Walk { files: self.files, timeline: self.timeline, pending, unreadable, from, to });
            from = to;
        }
        walks
    }

    /// Pushes every record into `each`, in time order, together with its order key.
    ///
    /// Damage is counted in `ledger` and skipped. Where a clock was set back or a timestamp is damaged, a
    /// record can come late; that is counted too.
    pub fn for_each(self, ledger: &mut Ledger, mut each: impl FnMut(&Record<'_>, i64)) -> WalkStats {
        self.run(None, ledger, &mut each)
    }

    /// As [`Walk::for_each`], with up to `threads` threads: all but one of them load and unpack buffers
    /// ahead. What is pushed, and in which order, does not depend on their number.
    pub fn for_each_threaded(
        self,
        threads: usize,
        ledger: &mut Ledger,
        mut each: impl FnMut(&Record<'_>, i64),
    ) -> WalkStats {
        /// More helpers than this only wait for the merge.
        const MOST_HELPERS: usize = 4;
        let helpers = threads.saturating_sub(1).min(MOST_HELPERS);
        if helpers == 0 || self.pending.len() < 4 {
            return self.run(None, ledger, &mut each);
        }
        let buffers: Vec<(u16, &BufferEntry)> = self.pending.iter().map(|p| (p.file, p.entry)).collect();
        std::thread::scope(|scope| {
            let ahead = Ahead::start(scope, self.files, &buffers, helpers);
            self.run(Some(ahead), ledger, &mut each)
        })
    }

    /// As [`Walk::for_each_threaded`], for an `each` that is so much work that even the merge is left to another thread.
    /// Records are copied into batches on the way.
    pub fn for_each_pipelined(
        self,
        threads: usize,
        ledger: &mut Ledger,
        each: impl FnMut(&Record<'_>, i64),
    ) -> WalkStats {
        if threads < 2 || self.pending.len() < 4 {
            return self.for_each(ledger, each);
        }
        pipe::run(each, move |send| {
            let mut own = Ledger::new();
            // One thread is the caller's, one merges, the others load ahead.
            let stats = self.for_each_threaded(threads - 1, &mut own, |record, key| send(record, key));
            (stats, own)
        })
        .map_or_else(WalkStats::default, |(stats, own)| {
            ledger.merge(&own);
            stats
        })
    }

    fn run(
        &self,
        ahead: Option<Ahead>,
        ledger: &mut Ledger,
        each: &mut impl FnMut(&Record<'_>, i64),
    ) -> WalkStats {
        let mut merge = Merge {
            walk: self,
            streams: Vec::new(),
            free: Vec::new(),
            heap: Heap::default(),
            held: 0,
            ahead,
        };
        self.judge_unreadable(ledger);
        let most = self.most_held();
        let mut stats = WalkStats::default();
        let mut next = 0usize;
        loop {
            while let Some(pending) = self.pending.get(next) {
                if merge.heap.top().is_some_and(|(key, _)| key < pending.first || merge.held > most) {
                    break;
                }
                next += 1;
                stats.buffers += 1;
                merge.activate(*pending, ledger);
            }
            let Some((_, number)) = merge.heap.top() else { break };
            let upcoming = self.pending.get(next).map_or((i64::MAX, u32::MAX), |p| p.first);
            let limit = merge.heap.second().map_or(upcoming, |key| key.min(upcoming));
            let limit = if merge.held > most {
                ledger.count(&TOO_MANY_OVERLAP, 1);
                (i64::MAX, u32::MAX)
            } else {
                limit
            };
            let Some(stream) = merge.streams.get_mut(number as usize) else { break };
            match stream.emit(self, limit, &mut stats, ledger, each) {
                Some(key) => merge.heap.replace_top(key),
                None => {
                    merge.heap.pop();
                    merge.release(number);
                }
            }
        }
        self.files.iter().for_each(|file| file.judge_end(ledger));
        stats
    }
}

/// Fills in what follows each buffer on its processor; `pending` is in the order of writing.
fn link_chains(pending: &mut [Pending<'_>]) {
    let mut seen: std::collections::HashMap<(u16, u16, u16, u16), [i64; 2]> = Default::default();
    for p in pending.iter_mut().rev() {
        let chain = (p.file, p.entry.segment, p.entry.logger_id, p.entry.cpu);
        let next = seen.entry(chain).or_insert([i64::MAX; 2]);
        p.next_first = next[0];
        // A clock that was set back says nothing about where this buffer ends.
        let back = next[0] < p.first.0 || next[1] < p.first.0;
        p.bound = if back { i64::MAX } else { next[1] };
        *next = [p.first.0, next[0]];
    }
}

/// State of a running merge.
struct Merge<'w, 'f> {
    walk: &'w Walk<'f>,
    streams: Vec<Stream<'f>>,
    free: Vec<u32>,
    heap: Heap,
    /// Bytes of the buffers that are open, unpacked.
    held: u64,
    ahead: Option<Ahead>,
}

impl<'f> Merge<'_, 'f> {
    /// Opens a buffer as a stream and puts it into the heap.
    fn activate(&mut self, pending: Pending<'f>, ledger: &mut Ledger) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.streams.push(Stream::default());
            (self.streams.len() - 1) as u32
        });
        let Some(stream) = self.streams.get_mut(number as usize) else { return };
        stream.open(self.walk, pending, self.ahead.as_mut(), ledger);
        self.held += stream.size as u64;
        match stream.head(self.walk, ledger) {
            Some(key) => self.heap.push(key, number),
            None => self.release(number),
        }
    }

    /// Gives back a slot whose buffer is read.
    fn release(&mut self, number: u32) {
        /// Larger buffers are rare; their memory is not kept for later.
        const KEPT: usize = 4 << 20;
        if let Some(stream) = self.streams.get_mut(number as usize) {
            self.held = self.held.saturating_sub(stream.size as u64);
            if stream.owned.capacity() > KEPT {
                stream.owned = Vec::new();
            }
        }
        self.free.push(number);
    }
}

/// A buffer being read. Slots and their memory are used again for later buffers.
#[derive(Debug, Default)]
struct Stream<'f> {
    pending: Option<Pending<'f>>,
    mapped: Option<&'f [u8]>,
    owned: Vec<u8>,
    packed: Vec<u8>,
    /// Bytes of the buffer.
    size: usize,
    tokens: Vec<Token>,
    next: usize,
    tokenizer: Tokenizer,
    done: bool,
    block: usize,
    last_key: i64,
}

impl<'f> Stream<'f> {
    fn open(
        &mut self,
        walk: &Walk<'f>,
        pending: Pending<'f>,
        ahead: Option<&mut Ahead>,
        ledger: &mut Ledger,
    ) {
        self.pending = Some(pending);
        self.mapped = None;
        self.tokens.clear();
        self.next = 0;
        self.done = false;
        self.last_key = i64::MIN;
        self.tokenizer = Tokenizer::new(LEN);
        let Some(file) = walk.files.get(usize::from(pending.file)) else { return };
        self.block = if file.may_be_unsorted(pending.entry) { usize::MAX } else { BLOCK };
        self.mapped = file.mapped_buffer(pending.entry);
        let loaded = ahead.and_then(|a| a.take(std::mem::take(&mut self.owned), ledger));
        if let Some(owned) = loaded {
            self.owned = owned;
        } else if self.mapped.is_none() {
            file.load_buffer(pending.entry, &mut self.owned, &mut self.packed, ledger);
        }
        self.size = self.mapped.unwrap_or(&self.owned).len();
    }

    /// Key of the next record; `None` when the buffer is read.
    fn head(&mut self, walk: &Walk<'f>, ledger: &mut Ledger) -> Option<Key> {
        let rank = self.pending?.first.1;
        if self.next >= self.tokens.len() {
            self.refill(walk, ledger);
        }
        self.tokens.get(self.next).map(|token| (token.key, rank))
    }

    /// Splits the next block of records off the buffer.
    fn refill(&mut self, walk: &Walk<'f>, ledger: &mut Ledger) {
        self.tokens.clear();
        self.next = 0;
        let Some(pending) = self.pending.filter(|_| !self.done) else { return };
        let (start, messages) = (self.last_key, self.tokenizer.without_time);
        self.fill(walk, pending, self.block, 0, ledger);
        let mut late = count_late(&self.tokens, start);
        if late > 0 {
            // Not in order: take the rest of the buffer and sort it all. `sort_by_key` is stable.
            while !self.done {
                let from = self.tokens.len();
                self.fill(walk, pending, usize::MAX, from, ledger);
            }
            late = count_late(&self.tokens, start);
            self.tokens.sort_by_key(|t| t.key);
            ledger.note(&RECORDS_OUT_OF_ORDER, late, || {
                let file = walk.files.get(usize::from(pending.file)).map(|f| f.shown().display().to_string());
                format!("{}: buffer at {:#x}", file.unwrap_or_default(), pending.entry.offset)
            });
        }
        ledger.count(&MESSAGE_WITHOUT_TIME, self.tokenizer.without_time - messages);
        if let Some(last) = self.tokens.last() {
            self.last_key = last.key;
        }
        if self.done && self.last_key > pending.next_first {
            ledger.count(&BUFFERS_OVERLAP, 1);
        }
    }

    fn fill(
        &mut self,
        walk: &Walk<'f>,
        pending: Pending<'f>,
        block: usize,
        from: usize,
        ledger: &mut Ledger,
    ) {
        let bytes = self.mapped.unwrap_or(&self.owned);
        let stop = self.tokenizer.block(bytes, block, &mut self.tokens);
        if !walk.timeline.shared {
            for token in self.tokens.iter_mut().skip(from) {
                token.key = walk.timeline.key(pending.file, pending.entry.segment, token.key);
            }
        }
        let anomaly = match stop {
            Stop::Block => return,
            Stop::End if ends_early(bytes, self.tokenizer.position(), pending.entry) => {
                Some(&RECORD_HEADER_UNKNOWN)
            }
            Stop::End => walk
                .files
                .get(usize::from(pending.file))
                .filter(|file| file.goes_on_behind(pending.entry))
                .map(|_| &RECORDS_BEHIND_END),
            Stop::UnknownHeader => Some(&RECORD_HEADER_UNKNOWN),
            Stop::BadSize => Some(&RECORD_SIZE_BAD),
        };
        self.done = true;
        if let Some(anomaly) = anomaly {
            ledger.note(anomaly, 1, || {
                let file = walk.files.get(usize::from(pending.file)).map(|f| f.shown().display().to_string());
                format!(
                    "{}: buffer at {:#x}, {:#x} bytes into it",
                    file.unwrap_or_default(),
                    pending.entry.offset,
                    self.tokenizer.position()
                )
            });
        }
    }

    /// Pushes records up to `limit`; returns the key of the next one, `None` when the buffer is read.
    #[inline]
    fn emit(
        &mut self,
        walk: &Walk<'f>,
        limit: Key,
        stats: &mut WalkStats,
        ledger: &mut Ledger,
        each: &mut impl FnMut(&Record<'_>, i64),
    ) -> Option<Key> {
        let pending = self.pending?;
        let rank = pending.first.1;
        loop {
            let bytes = self.mapped.unwrap_or(&self.owned);
            let shared = walk.timeline.shared;
            let mut beyond = None;
            for token in self.tokens.get(self.next..).unwrap_or(&[]) {
                if (token.key, rank) > limit {
                    beyond = Some((token.key, rank));
                    break;
                }
                self.next += 1;
                if (token.key < walk.from || token.key >= walk.to) && !walk.adopts(&pending, token.key) {
                    continue;
                }
                let Some(bytes) = bytes.sub(token.at as usize, usize::from(token.len)) else { continue };
                // No record begins with zeros: the file became shorter after this one was found (`judge_end` says so).
                if bytes.u32_at(0) == Some(0) {
                    continue;
                }
                let ticks = if shared { token.key } else { ticks_of(bytes, token.kind, token.key) };
                stats.records += 1;
                stats.bytes += u64::from(token.len);
                let record = Record {
                    bytes,
                    kind: token.kind,
                    ticks,
                    cpu: pending.entry.cpu,
                    logger_id: pending.entry.logger_id,
                    file: pending.file,
                };
                each(&record, token.key);
            }
            if beyond.is_some() {
                return beyond;
            }
            self.refill(walk, ledger);
            if self.tokens.is_empty() {
                self.pending = None;
                return None;
            }
        }
    }
}

/// True if padding begins at `at` where the buffer's header says that there is data: zeroed sectors, or a
/// damaged record. Where the header does not say, padding up to the end is as it should be.
#[cold]
fn ends_early(bytes: &[u8], at: usize, entry: &BufferEntry) -> bool {
    let rest = bytes.get(at..).unwrap_or(&[]);
    if rest.len() < 8 {
        // Less than the head of a record: padding, or a record that is cut off.
        let is_padding = |with: u8| rest.iter().all(|&byte| byte == with);
        return !(is_padding(0) || is_padding(0xFF));
    }
    entry.end_known || rest.iter().any(|byte| rest.first() != Some(byte))
}

/// Number of tokens that are earlier than one before them (or than `start`).
fn count_late(tokens: &[Token], start: i64) -> u64 {
    let mut high = start;
    let mut late = 0;
    for token in tokens {
        late += u64::from(token.key < high);
        high = high.max(token.key);
    }
    late
}
