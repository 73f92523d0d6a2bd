//! Files that are still being written: buffers are found as they come, and forgotten when they are past.

use super::file::{EtlFile, OpenOptions, Segment};
use super::index::BufferEntry;
use super::walk::Walk;
use crate::error::Result;
use std::collections::{HashSet, VecDeque};
use std::path::Path;

/// Bytes that are read at a time. A file that grows is not mapped: it may be cut off or replaced at any moment.
const PIECE: usize = 1 << 20;

/// A recording that is played again waits no longer for its last buffer.
const LONGEST_WAIT_NS: i64 = 3_600_000_000_000;

/// What has become of a file since it was looked at last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// So many buffers were found, which may be none.
    Buffers(usize),
    /// Another recording stands in its place, or it became shorter than what was read.
    Replaced,
}

impl EtlFile {
    /// Opens a file that may still grow. Buffers that do not stand there whole are found by [`EtlFile::grow`] later. One that does
    /// not begin with its session's header (what a session has written since some moment) is read with the header `outside`, that
    /// of another file of the session: clock, machine and size of buffers are its.
    ///
    /// # Errors
    /// Those of [`EtlFile::open`]; a file whose first buffer was not written yet is no trace yet.
    pub fn open_growing(path: &Path, shown: &Path, outside: Option<&Segment>) -> Result<EtlFile> {
        let mut file = EtlFile::open_header(path, shown, &OpenOptions { chunk: Some(PIECE) }, outside)?;
        file.find_buffers(true);
        Ok(file)
    }

    /// Looks for buffers that came since; `ended` says that no more will, so that what is left is judged as it stands.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn grow(&mut self, path: &Path, ended: bool) -> Result<Growth> {
        let options = OpenOptions { chunk: Some(PIECE) };
        let now = match EtlFile::open_header(path, self.shown(), &options, self.outside()) {
            Ok(now) => now,
            Err(error @ crate::error::Error::Io { .. }) => return Err(error),
            Err(_) => return Ok(Growth::Replaced),
        };
        let same =
            self.segments().first().zip(now.segments().first()).is_some_and(|(a, b)| one_session(a, b));
        if !same || now.len() < self.found_until() {
            return Ok(Growth::Replaced);
        }
        let before = self.buffers().len();
        self.take_over(now);
        self.find_buffers(!ended);
        Ok(Growth::Buffers(self.buffers().len().saturating_sub(before)))
    }
}

/// Whether two headers are of one session. Counts and the end of the session are written when it stops.
fn one_session(a: &Segment, b: &Segment) -> bool {
    let of = |s: &Segment| (s.clock, s.header.start_time, s.header.processors, s.header.buffer_size);
    of(a) == of(b) && a.header.session_name == b.header.session_name
}

/// Forgets the buffers of `files` that [`Walk::part`] needs for nothing at or behind the order key `from`. What they tell of losses
/// is kept.
pub fn forget_before(files: &mut [EtlFile], timeline: &super::Timeline, from: i64) {
    let past: HashSet<(u16, u64)> = Walk::new(files, timeline).past(from);
    for (number, file) in files.iter_mut().enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let end = past.iter().filter(|(of, _)| *of == number).map(|(_, offset)| *offset).max();
        let without_records = |offset: u64| end.is_some_and(|end| offset < end);
        file.forget_where(|entry| match entry.first_ticks {
            Some(_) => past.contains(&(number, entry.offset)),
            None => without_records(entry.offset),
        });
    }
}

/// Buffers of a finished file, held back until the moment at which they were written: a recording that is played again.
#[derive(Debug, Default)]
pub struct Held(VecDeque<(i64, BufferEntry)>);

impl Held {
    /// When the next buffer was written, in ticks; `None` if all were given back.
    pub fn next_ticks(&self) -> Option<i64> {
        self.0.front().map(|(ticks, _)| *ticks)
    }
}

impl EtlFile {
    /// Takes all buffers out of a file that is complete, in the order in which they were written: when their last record had come.
    pub fn hold_back(&mut self) -> Held {
        let mut all: Vec<(i64, BufferEntry)> =
            self.take_buffers().into_iter().map(|entry| (self.last_ticks(&entry), entry)).collect();
        all.sort_by_key(|(ticks, entry)| (*ticks, entry.sequence, entry.offset));
        // One record with a wrong time would keep everybody waiting for years.
        if let [.., (before, _), (last, _)] = all.as_mut_slice()
            && self.clock().span_ns(last.saturating_sub(*before)) > LONGEST_WAIT_NS
        {
            *last = *before;
        }
        Held(all.into())
    }

    /// Gives back the buffers that were written up to `until_ticks`; how many they are.
    pub fn release(&mut self, held: &mut Held, until_ticks: i64) -> usize {
        let mut given = Vec::new();
        while held.next_ticks().is_some_and(|ticks| ticks <= until_ticks) {
            given.extend(held.0.pop_front().map(|(_, entry)| entry));
        }
        let count = given.len();
        self.give_buffers(given, held.0.is_empty());
        count
    }

    /// Timestamp of the last record of a buffer, in ticks; `i64::MIN` if it has none.
    pub fn last_of(&self, entry: &BufferEntry) -> i64 {
        self.last_ticks(entry)
    }
}
