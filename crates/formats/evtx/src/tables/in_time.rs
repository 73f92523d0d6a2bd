//! The records of all logs in order of time, without holding them all.
//!
//! A log is nearly in order of time, but not quite: writers race, clocks are set, a file that wraps begins in its middle. Counting says
//! when each chunk begins, so chunks are read in that order, and a record is handed over as soon as no chunk that is still to be read
//! has an earlier one. What waits is a few chunks, or much for a log whose clock jumped.

use super::options::MakeError;
use crate::binxml::time;
use crate::counts::Counts;
use crate::read::{Damage, LogFile};
use crate::scan::{Batch, Reader, scan_batches};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Chunks that are read at a time, 1 MiB: what they give waits until those before them are taken.
const CHUNKS: usize = 16;

/// Takes what chunks gave.
pub(super) trait Rows<T> {
    /// Begins, perhaps again.
    fn begin(&mut self);

    /// For each row its time, and what comes first of those of the same time.
    fn keys(&self, log: i32, part: &T) -> Vec<(i64, u64)>;

    /// Takes the next row in order of time.
    fn write(&mut self, log: i32, part: &T, at: usize) -> Result<(), MakeError>;
}

/// Reads logs, and hands the rows that `make`'s readers give to `rows` in order of time. Says what was wrong with each log.
///
/// # Errors
/// The system's, and those of `rows`.
pub(super) fn in_time<R: Reader>(
    logs: &[LogFile],
    counts: &[Counts],
    threads: usize,
    make: impl Fn() -> R + Sync,
    rows: &mut impl Rows<R::Output>,
) -> Result<Vec<Damage>, MakeError> {
    let mut todo: Vec<(i64, i32, Batch<'_>)> = Vec::new();
    for (n, (log, counts)) in logs.iter().zip(counts).enumerate() {
        let starts = counts.starts.chunks(CHUNKS).map(|starts| starts.iter().copied().min());
        // A chunk that was not counted may begin at any time.
        let starts = starts.chain(std::iter::repeat(None)).map(|start| start.unwrap_or(0));
        for (places, start) in log.in_order().chunks(CHUNKS).zip(starts) {
            let batch = Batch { log, number: n as u32, places: places.to_vec() };
            todo.push((time::utc_ns(start), n as i32, batch));
        }
    }
    // Stable: what begins at the same time stays in the order of the log.
    todo.sort_by_key(|(start, ..)| *start);
    let (keys, batches): (Vec<(i64, i32)>, Vec<Batch<'_>>) =
        todo.into_iter().map(|(start, log, batch)| ((start, log), batch)).unzip();
    // If somebody writes the logs while they are read, a record may come too late: then all of them wait. What the rows of the first
    // attempt held stays counted against the memory.
    for hold in [false, true] {
        rows.begin();
        let mut damage: Vec<Damage> = logs.iter().map(|log| log.damage.clone()).collect();
        let mut waiting = Waiting { order: BinaryHeap::new(), parts: BTreeMap::new(), written: i64::MIN };
        let (mut late, mut failure) = (false, None);
        scan_batches(&batches, threads, &make, |n, part, found| {
            let log = keys.get(n).map_or(0, |(_, log)| *log);
            if let Some(damage) = damage.get_mut(log as usize) {
                damage.merge(&found);
            }
            late |= waiting.add(n, log, part, rows) && !hold;
            if let Some((until, _)) = keys.get(n + 1).filter(|_| !hold) {
                failure = waiting.write(Some(*until), rows).err();
            }
            !late && failure.is_none()
        })?;
        match failure {
            Some(error) => return Err(error),
            None if late => continue,
            None => {}
        }
        waiting.write(None, rows)?;
        return Ok(damage);
    }
    Ok(Vec::new())
}

/// Rows that wait for earlier ones.
struct Waiting<T> {
    /// Time, what comes first of those of the same time, batch, place in the batch.
    order: BinaryHeap<Reverse<(i64, u64, usize, usize)>>,
    /// Batches of which rows wait: log, what it gave, how many wait.
    parts: BTreeMap<usize, (i32, T, usize)>,
    /// All rows before this time were written.
    written: i64,
}

impl<T> Waiting<T> {
    /// Adds what a batch gave; true if some of it should have been written before.
    fn add(&mut self, batch: usize, log: i32, part: T, rows: &impl Rows<T>) -> bool {
        let keys = rows.keys(log, &part);
        let late = keys.iter().any(|(utc_ns, _)| *utc_ns < self.written);
        if !keys.is_empty() {
            self.parts.insert(batch, (log, part, keys.len()));
        }
        self.order.extend(keys.into_iter().enumerate().map(|(at, (ns, tie))| Reverse((ns, tie, batch, at))));
        late
    }

    /// Writes rows before `until`, or all. Those of that time wait for others of the same.
    fn write(&mut self, until: Option<i64>, rows: &mut impl Rows<T>) -> Result<(), MakeError> {
        self.written = until.unwrap_or(i64::MAX);
        while let Some(Reverse((utc_ns, _, batch, at))) = self.order.peek().copied() {
            if until.is_some_and(|until| utc_ns >= until) {
                break;
            }
            self.order.pop();
            let Some((log, part, left)) = self.parts.get_mut(&batch) else { continue };
            rows.write(*log, part, at)?;
            *left -= 1;
            if *left == 0 {
                self.parts.remove(&batch);
            }
        }
        Ok(())
    }
}
