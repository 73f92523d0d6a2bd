//! One opened trace file.

use super::anomalies::*;
use super::clock::{Clock, ClockKind};
use super::header::{Header, Nominal};
use super::index::{BufferEntry, Index, index};
use super::logfile::LogFileHeader;
use super::past::{Past, Ranges};
use super::series::goes_on;
use super::source::Source;
use super::tokens::{first_record, first_ticks, until_repeated};
use crate::Ledger;
use crate::abi::buffer::*;
use crate::abi::logfile::{
    MODE_APPEND, MODE_CIRCULAR, MODE_COMPRESSED, MODE_NEW_FILE, MODE_NO_PER_PROCESSOR_BUFFERING,
};
use crate::decompress::{Format, SLACK};
use crate::error::{Error, Result};
use etwhy_base::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How to open a file.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Read in pieces of this many bytes instead of mapping the file.
    pub chunk: Option<usize>,
}

/// A session within a file: its header and clock. A file has one, unless sessions were appended.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The session's header.
    pub header: LogFileHeader,
    /// The session's clock.
    pub clock: Clock,
}

/// An opened `.etl` file: header read, buffers found, nothing decoded. A copy stays as it is while the original grows or forgets.
#[derive(Clone, Debug)]
pub struct EtlFile {
    shown: PathBuf,
    source: Source,
    format: Option<Format>,
    segments: Vec<Segment>,
    buffers: Vec<BufferEntry>,
    /// Where the buffers end that were found.
    end: u64,
    /// More buffers may come.
    growing: bool,
    /// Buffers that were found and are no longer looked at.
    past: Past,
    /// What was noticed while buffers were searched.
    found: Ledger,
    ledger: Ledger,
    newer: Option<String>,
    /// The header was given from outside.
    outside: Option<Segment>,
}

/// Bytes looked at for the session header: far more than it takes.
const HEADER_PROBE: usize = 16 * 1024;

/// How many times larger than on disk a buffer may be, above the size that any buffer may have.
const MAX_RATIO: usize = 2048;
const MIN_UNPACKED: usize = 64 * 1024;

/// Bytes of a record that tell whether it is one.
pub(crate) const RECORD_PROBE: usize = 24;

/// Most sessions in one file; what is appended to it later counts as part of the last one.
const MAX_SEGMENTS: u16 = 1024;

impl EtlFile {
    /// Opens `path`; `shown` is its name in messages.
    ///
    /// # Errors
    /// [`Error::Io`] if the system refuses, [`Error::NotATrace`] if the first buffer does not start with a
    /// session header.
    pub fn open(path: &Path, shown: &Path, options: &OpenOptions) -> Result<EtlFile> {
        let mut file = EtlFile::open_header(path, shown, options, None)?;
        file.find_buffers(false);
        Ok(file)
    }

    /// The header of a session, without looking for buffers.
    ///
    /// # Errors
    /// Those of [`EtlFile::open`].
    pub fn read_header(path: &Path) -> Result<Segment> {
        let options = OpenOptions { chunk: Some(HEADER_PROBE) };
        let mut file = EtlFile::open_header(path, path, &options, None)?;
        Ok(file.segments.swap_remove(0))
    }

    /// Opens `path` without looking for its buffers. A file that begins with another buffer than the first of its session is read with
    /// the header `outside`, if there is one.
    pub(super) fn open_header(
        path: &Path,
        shown: &Path,
        options: &OpenOptions,
        outside: Option<&Segment>,
    ) -> Result<EtlFile> {
        let source = Source::open(path, shown, options.chunk)?;
        let mut scratch = Vec::new();
        let first = source.bytes(0, HEADER_PROBE, &mut scratch).unwrap_or(&[]);
        let segment = session_header(first, shown).map_err(|error| match source.is_whole() {
            true => error,
            false => shrank(shown),
        });
        let (segment, outside) = match (segment, outside) {
            (Err(Error::NotATrace { .. }), Some(outside)) if begins_a_buffer(first, outside) => {
                (without_counts(outside), Some(outside.clone()))
            }
            (segment, _) => (segment?, None),
        };
        let state = first.u32_at(STATE).unwrap_or(0);
        let mut newer = None;
        let mut format = None;
        if segment.header.log_file_mode & MODE_COMPRESSED != 0 {
            format = Format::from_number(state as u16);
            if format.is_none() {
                newer = Some(format!("compression format {}", state as u16));
            }
        }
        if segment.header.version[2] > 2 {
            newer = Some(format!("log format {}.{}", segment.header.version[2], segment.header.version[3]));
        }
        Ok(EtlFile {
            shown: shown.to_owned(),
            source,
            format,
            segments: vec![segment],
            buffers: Vec::new(),
            end: 0,
            growing: false,
            past: Past::default(),
            found: Ledger::new(),
            ledger: Ledger::new(),
            newer,
            outside,
        })
    }

    /// The header that was given, if the file has none of its own.
    pub(super) fn outside(&self) -> Option<&Segment> {
        self.outside.as_ref()
    }

    /// Finds the buffers behind those that are known; what is not there whole of a `growing` file is left for the next time.
    pub(super) fn find_buffers(&mut self, growing: bool) {
        self.growing = growing;
        let header = self.header();
        let packed = header.log_file_mode & MODE_COMPRESSED != 0;
        let (size, shown) = (header.buffer_size, self.shown.clone());
        let nominal = Nominal { shown: &shown, size, packed, format: self.format };
        let known = Index { buffers: std::mem::take(&mut self.buffers), end: self.end };
        let before = known.buffers.len();
        let Index { buffers, end } = index(&self.source, &nominal, &mut self.found, known, growing);
        (self.buffers, self.end) = (buffers, end);
        self.read_appended_headers(before);
        self.judge();
    }

    /// Takes all buffers away.
    pub(super) fn take_buffers(&mut self) -> Vec<BufferEntry> {
        self.growing = true;
        let taken = std::mem::take(&mut self.buffers);
        self.judge();
        taken
    }

    /// Adds buffers that were taken away.
    pub(super) fn give_buffers(&mut self, buffers: Vec<BufferEntry>, all: bool) {
        self.growing = !all;
        self.buffers.extend(buffers);
        self.judge();
    }

    /// Counts anew what the header and the numbers of buffers tell.
    fn judge(&mut self) {
        self.ledger = self.found.clone();
        self.ledger
            .note(&HEADER_GIVEN, u64::from(self.outside.is_some()), || self.shown.display().to_string());
        self.judge_header();
        self.judge_sequence();
    }

    /// Goes on with what is at the file's place now, of which the header was read anew.
    pub(super) fn take_over(&mut self, now: EtlFile) {
        self.source = now.source;
        if let (Some(first), Some(new)) = (self.segments.first_mut(), now.segments.into_iter().next()) {
            *first = new;
        }
    }

    /// Where the buffers end that were found, as an offset.
    pub(super) fn found_until(&self) -> u64 {
        self.end
    }

    /// What is kept of buffers that are no longer looked at.
    pub(super) fn past(&self) -> &Past {
        &self.past
    }

    /// Takes note of buffers that are past, and forgets them.
    pub(super) fn forget_where(&mut self, past: impl Fn(&BufferEntry) -> bool) {
        if !self.buffers.iter().any(&past) {
            return;
        }
        let (gaps, last) = self.past_chains(&past);
        gaps.into_iter().for_each(|gap| self.past.add_gap(gap));
        self.past.last.extend(last);
        let (gone, kept) = std::mem::take(&mut self.buffers).into_iter().partition(|entry| past(entry));
        self.buffers = kept;
        gone.iter().for_each(|entry: &BufferEntry| self.past.add(entry));
    }

    /// Sequence numbers of a session's buffers. While more may come, no number is missing that a processor may still be filling:
    /// those behind the last one of the processor that wrote least lately.
    pub(super) fn sequences(&self, segment: usize) -> Ranges {
        let number = u16::try_from(segment).unwrap_or(u16::MAX);
        let mut all = self.past.sequences.get(&number).cloned().unwrap_or_default();
        let of_session = |b: &&BufferEntry| b.segment == number && b.kind != TYPE_HEADER;
        let mut seen: Vec<i64> = self.buffers.iter().filter(of_session).map(|b| b.sequence).collect();
        seen.sort_unstable();
        seen.into_iter().for_each(|sequence| all.add(sequence));
        if self.growing
            && let Some((_, newest)) = all.all().last().copied()
        {
            let mut last: BTreeMap<u16, i64> = BTreeMap::new();
            let past = self.past.last.iter().filter(|((of, _), _)| *of == number);
            let past = past.map(|((_, cpu), buffer)| (*cpu, buffer.sequence));
            for (cpu, sequence) in
                past.chain(self.buffers.iter().filter(of_session).map(|b| (b.cpu, b.sequence)))
            {
                let own = last.entry(cpu).or_insert(sequence);
                *own = sequence.max(*own);
            }
            all.fill(last.into_values().min().unwrap_or(newest), newest);
        }
        all
    }

    /// The name for messages.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Size of the file in bytes.
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// True for a file of no bytes (which cannot be opened, so never).
    pub fn is_empty(&self) -> bool {
        self.source.len() == 0
    }

    /// Header of the (first) session.
    pub fn header(&self) -> &LogFileHeader {
        &self.segments[0].header
    }

    /// Clock of the (first) session.
    pub fn clock(&self) -> &Clock {
        &self.segments[0].clock
    }

    /// The sessions: one, unless some were appended.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The buffers in the order of the file; of a file that is followed those that are not past.
    pub fn buffers(&self) -> &[BufferEntry] {
        &self.buffers
    }

    /// Number of buffers that were found, with those that are past.
    pub fn buffers_found(&self) -> u64 {
        self.past.buffers.saturating_add(self.buffers.len() as u64)
    }

    /// Number of compressed buffers.
    pub fn compressed_buffers(&self) -> u64 {
        let here = self.buffers.iter().filter(|b| b.is_compressed()).count();
        self.past.compressed.saturating_add(here as u64)
    }

    /// Processors that wrote buffers.
    pub fn cpus_seen(&self) -> BTreeSet<u16> {
        self.past.cpus.iter().copied().chain(self.buffers.iter().map(|b| b.cpu)).collect()
    }

    /// What was found while opening.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What in this file is newer than this program knows, as an error to show beside the results.
    pub fn newer_than_known(&self) -> Option<Error> {
        self.newer.as_ref().map(|had| Error::TooNew {
            file: self.shown.clone(),
            offset: 0,
            structure: "WMI_BUFFER_HEADER",
            had: had.clone(),
        })
    }

    /// The raw bytes of a buffer up to the end of its data, without a copy; `None` if the buffer is
    /// compressed or the file is not mapped.
    pub(crate) fn mapped_buffer(&self, entry: &BufferEntry) -> Option<&[u8]> {
        if entry.is_compressed() {
            return None;
        }
        self.source.mapped(entry.offset, entry.end as usize)
    }

    /// Whether a record stands behind the end of a buffer's data, as far as its header gives one. Sound buffers are
    /// padded there.
    pub(crate) fn goes_on_behind(&self, entry: &BufferEntry) -> bool {
        let end = entry.end.next_multiple_of(8);
        let room = (entry.size.saturating_sub(end) as usize).min(RECORD_PROBE);
        if entry.is_compressed() || !entry.end_known || room == 0 {
            return false;
        }
        let mut scratch = Vec::new();
        let bytes = self.source.bytes(entry.offset + u64::from(end), room, &mut scratch);
        bytes.and_then(first_ticks).is_some()
    }

    /// Counts it if the file has become shorter since it was opened.
    pub(crate) fn judge_end(&self, ledger: &mut Ledger) {
        ledger.note(&FILE_SHRANK, u64::from(!self.source.is_whole()), || self.shown.display().to_string());
    }

    /// Bytes of the file as they stand on disk; `None` if the system refuses.
    pub(crate) fn raw_bytes<'a>(
        &'a self,
        offset: u64,
        len: usize,
        scratch: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        self.source.bytes(offset, len, scratch)
    }

    /// True when records inside this buffer may be out of order by design: wall time can be set back, and
    /// without per-processor buffers several processors write into one.
    pub(crate) fn may_be_unsorted(&self, entry: &BufferEntry) -> bool {
        let Some(segment) = self.segments.get(usize::from(entry.segment)) else { return true };
        segment.clock.kind == ClockKind::SystemTime
            || segment.header.log_file_mode & MODE_NO_PER_PROCESSOR_BUFFERING != 0
    }

    /// Reads (and unpacks) a buffer into `out`: header and data up to the end of the data.
    pub(crate) fn load_buffer(
        &self,
        entry: &BufferEntry,
        out: &mut Vec<u8>,
        packed: &mut Vec<u8>,
        ledger: &mut Ledger,
    ) {
        let place = || format!("{}: buffer at {:#x}", self.shown.display(), entry.offset);
        if !entry.is_compressed() {
            if self.source.read_into(entry.offset, entry.end as usize, out).is_none() {
                ledger.note(&READ_FAILED, 1, place);
                out.clear();
            }
            return;
        }
        let Some(bytes) = self.source.bytes(entry.offset, entry.size as usize, packed) else {
            ledger.note(&READ_FAILED, 1, place);
            out.clear();
            return;
        };
        let Some(format) = self.format else {
            ledger.note(&FORMAT_NEWER, 1, place);
            out.clear();
            return;
        };
        let header = bytes.get(..LEN).unwrap_or(bytes);
        let data = bytes.get(LEN..).unwrap_or(&[]);
        // What a header claims is believed within reason: a long run of zeros packs to nearly nothing, but
        // events hold more than zeros.
        let most = MIN_UNPACKED.saturating_add(data.len().saturating_mul(MAX_RATIO));
        let claimed = (entry.end as usize).saturating_sub(LEN);
        let want = claimed.min(most);
        let mut unpack = |want: usize| {
            // Not cleared: only what `decompress` has written is kept below.
            out.resize(LEN + want + SLACK, 0);
            if let Some(target) = out.get_mut(..header.len()) {
                target.copy_from_slice(header);
            }
            let done = out.get_mut(LEN..).map_or(0, |target| format.decompress(data, target, want));
            let behind = out.get(LEN + claimed.next_multiple_of(8)..LEN + done);
            (done, behind.is_some_and(|behind| first_ticks(behind).is_some()))
        };
        let (mut done, more) = unpack(want.saturating_add(RECORD_PROBE).min(most));
        if more {
            // The session packed more than the header says.
            ledger.note(&BUFFER_END_ODD, 1, place);
            done = unpack(most.min(MAX_SIZE as usize)).0;
        } else {
            done = done.min(claimed);
        }
        if (more || !entry.end_known) && !self.may_be_unsorted(entry) {
            let sorted = out.get(LEN..LEN + done).map_or(done, until_repeated);
            ledger.note(&BUFFER_NOT_UNPACKED, u64::from(sorted < done), place);
            done = sorted;
        }
        if done < claimed && (entry.end_known || done == 0) {
            ledger.note(&BUFFER_NOT_UNPACKED, 1, place);
        }
        out.truncate(LEN + done);
    }

    /// Numbers the sessions of the buffers from the `from`th on and reads the headers of those that were appended: a header buffer
    /// behind the first starts one. Without a readable header it goes on with the clock before it.
    fn read_appended_headers(&mut self, from: usize) {
        let mut scratch = Vec::new();
        let none_before = self.past.buffers == 0;
        for (at, entry) in self.buffers.iter_mut().enumerate().skip(from) {
            let is_first = none_before && at == 0;
            let header = !is_first && entry.kind == TYPE_HEADER && entry.sequence == 0;
            if header && self.segments.len() < usize::from(MAX_SEGMENTS) {
                let bytes = self.source.bytes(entry.offset, HEADER_PROBE, &mut scratch).unwrap_or(&[]);
                let segment = session_header(bytes, &self.shown).ok();
                let place = || format!("{}: buffer at {:#x}", self.shown.display(), entry.offset);
                self.found.note(&BUFFER_HEADER_BAD, u64::from(segment.is_none()), place);
                let segment = segment.or_else(|| self.segments.last().cloned());
                self.segments.extend(segment);
            }
            entry.segment = u16::try_from(self.segments.len().saturating_sub(1)).unwrap_or(MAX_SEGMENTS);
        }
    }

    fn judge_header(&mut self) {
        for segment in &self.segments {
            let header = &segment.header;
            self.ledger.count(&EVENTS_LOST, u64::from(header.events_lost));
            self.ledger.count(&BUFFERS_LOST, u64::from(header.buffers_lost));
            self.ledger.count(&HEADER_IMPLAUSIBLE, u64::from(header.implausible));
            let given = self.outside.is_some();
            if !self.growing && !given && (header.buffers_written == 0 || header.end_time == 0) {
                self.ledger.count(&NOT_FINALISED, 1);
            }
        }
    }

    /// Gaps in the sequence numbers of each session.
    fn judge_sequence(&mut self) {
        let sequences: Vec<Ranges> = (0..self.segments.len()).map(|number| self.sequences(number)).collect();
        // A copy that ends between two buffers shows no gap. Every finished file that was seen holds as many
        // buffers as its header says; wrapped ones hold fewer than were written.
        let said = u64::from(self.header().buffers_written);
        let short = if self.growing { 0 } else { said.saturating_sub(self.buffers_found()) };
        for (number, (segment, seen)) in self.segments.iter().zip(sequences).enumerate() {
            let mode = segment.header.log_file_mode;
            let (first, last) = (seen.all().first(), seen.all().last());
            let (low, high) = (first.map_or(1, |range| range.0), last.map_or(0, |range| range.1));
            let distinct = seen.count();
            let inside = high.saturating_sub(low).saturating_add(1).saturating_sub(distinct);
            // Buffers are not overwritten in the order of their numbers: a processor that writes seldom keeps an old one.
            let circular = mode & MODE_CIRCULAR != 0;
            let overwritten = if circular { self.missing_before_the_last_first(number, &seen) } else { 0 };
            let inside = inside.saturating_sub(overwritten);
            // Before the oldest one: overwritten (circular), in an earlier file of the series, lost, or never written: a
            // buffer that holds nothing has a number too.
            let before = u64::try_from(low.saturating_sub(1).saturating_add(overwritten)).unwrap_or(0);
            let whole = number == 0 && said > 0 && short == 0;
            let goes_on = number == 0 && goes_on(&segment.header.log_file_name);
            let anomaly = match mode {
                _ if mode & MODE_CIRCULAR != 0 => &CIRCULAR_OVERWRITTEN,
                _ if (mode & MODE_NEW_FILE != 0 && number == 0) || goes_on => &SEGMENT_OF_SERIES,
                _ if whole => &FIRST_BUFFERS_ABSENT,
                _ => &BUFFERS_MISSING,
            };
            self.ledger.count(anomaly, before);
            if mode & MODE_APPEND != 0 {
                continue;
            }
            let inside = u64::try_from(inside).unwrap_or(0);
            self.ledger.count(&BUFFERS_MISSING, inside);
            if mode & MODE_CIRCULAR == 0 && self.segments.len() == 1 {
                // What the numbers show to be missing is not missing once more, nor what the session wrote to files before this one.
                let counts_all = goes_on && i64::try_from(said).is_ok_and(|said| said >= high);
                let is_shown = anomaly.name == BUFFERS_MISSING.name || counts_all;
                let shown = inside.saturating_add(if is_shown { before } else { 0 });
                let at_end = short.saturating_sub(shown);
                self.ledger.note(&FEWER_BUFFERS, at_end, || format!("{}: its end", self.shown.display()));
            }
        }
    }

    /// How many numbers are missing before the first buffer of some processor: it may have written them.
    fn missing_before_the_last_first(&self, segment: usize, seen: &Ranges) -> i64 {
        let of_session = |b: &&BufferEntry| usize::from(b.segment) == segment && b.kind != TYPE_HEADER;
        let mut first: BTreeMap<u16, i64> = BTreeMap::new();
        for buffer in self.buffers.iter().filter(of_session) {
            let own = first.entry(buffer.cpu).or_insert(buffer.sequence);
            *own = buffer.sequence.min(*own);
        }
        let last = first.into_values().max().unwrap_or(0);
        let holes = seen.all().windows(2).filter_map(|pair| match pair {
            [before, behind] if behind.0 <= last => Some(behind.0.saturating_sub(before.1).saturating_sub(1)),
            _ => None,
        });
        holes.fold(0, i64::saturating_add)
    }
}

/// Whether a buffer of a session stands at the beginning: of its size, with a record in it. Sessions that pack their buffers are not
/// written while they run.
fn begins_a_buffer(bytes: &[u8], outside: &Segment) -> bool {
    let header = &outside.header;
    header.log_file_mode & MODE_COMPRESSED == 0
        && bytes.u32_at(BUFFER_SIZE) == Some(header.buffer_size)
        && Header::read(bytes).is_some_and(|buffer| buffer.plausible())
        && bytes.get(LEN..).is_some_and(|data| first_record(data).is_some())
}

/// The header for another file of its session. What it counts is of its own file, and buffers before this one are in others.
fn without_counts(outside: &Segment) -> Segment {
    let mut segment = outside.clone();
    let header = &mut segment.header;
    (header.buffers_written, header.events_lost, header.buffers_lost, header.end_time) = (0, 0, 0, 0);
    header.log_file_mode |= MODE_NEW_FILE;
    segment
}

/// The error for a file whose beginning went while it was opened.
fn shrank(shown: &Path) -> Error {
    let source = std::io::Error::other("the file became shorter while it was read");
    Error::Io { file: shown.to_owned(), what: "read", source }
}

/// Reads the session header at the start of a buffer.
fn session_header(bytes: &[u8], shown: &Path) -> Result<Segment> {
    let fail = |offset: usize, structure, problem, needed: String, had: String| Error::NotATrace {
        file: shown.to_owned(),
        offset: offset as u64,
        structure,
        problem,
        needed,
        had,
    };
    let Some(size) = bytes.u32_at(BUFFER_SIZE).filter(|_| bytes.len() >= LEN + 8) else {
        return Err(fail(
            0,
            "WMI_BUFFER_HEADER",
            "is cut off",
            format!("{} bytes", LEN + 8),
            format!("{} bytes", bytes.len()),
        ));
    };
    if size < LEN as u32 || size > MAX_SIZE {
        return Err(fail(
            BUFFER_SIZE,
            "WMI_BUFFER_HEADER.BufferSize",
            "is impossible",
            format!("{LEN} to {MAX_SIZE}"),
            size.to_string(),
        ));
    }
    let data = bytes.get(LEN..).unwrap_or(&[]);
    let header_record = first_record(data).filter(|r| r.kind.is_system() && r.hook() == 0);
    let Some(record) = header_record else {
        return Err(fail(
            LEN,
            "first record",
            "is no whole EventTrace/Header",
            "SYSTEM_TRACE_HEADER with hook 0".into(),
            data.get(..8).map_or("nothing".into(), |b| format!("bytes {b:02x?}")),
        ));
    };
    let header = LogFileHeader::read(&record).ok_or_else(|| {
        fail(
            LEN,
            "TRACE_LOGFILE_HEADER",
            "is cut off",
            "272 bytes or more".into(),
            format!("{} bytes", record.payload().len()),
        )
    })?;
    let clock = Clock::from_header(&header, record.ticks);
    Ok(Segment { header, clock })
}
