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
    fn keys(&self, log: i32, part: &T) -> impl Iterator<Item = (i64, u64)>;

    /// Takes the next row in order of time.
    fn write(&mut self, log: i32, part: &mut T, at: usize) -> Result<(), MakeError>;

    /// All rows of it were taken: its memory may be used again.
    fn done(&mut self, _part: T) {}
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
    /// Of each batch the row that comes next: time, what comes first of those of the same time, batch.
    order: BinaryHeap<Reverse<(i64, u64, usize)>>,
    /// Batches of which rows wait.
    parts: BTreeMap<usize, Part<T>>,
    /// All rows before this time were written.
    written: i64,
}

/// A batch of which rows wait.
struct Part<T> {
    log: i32,
    part: T,
    /// Time, what comes first of those of the same time, and place of each row, in the order in which they are written.
    rows: Vec<(i64, u64, usize)>,
    /// How many of them were written.
    written: usize,
}

impl<T> Waiting<T> {
    /// Adds what a batch gave; true if some of it should have been written before.
    fn add(&mut self, batch: usize, log: i32, part: T, rows: &mut impl Rows<T>) -> bool {
        let keys = rows.keys(log, &part).enumerate();
        let mut keys: Vec<(i64, u64, usize)> = keys.map(|(at, (utc_ns, tie))| (utc_ns, tie, at)).collect();
        // Most batches are in order already, which this sees.
        keys.sort_unstable();
        let Some((first, tie, _)) = keys.first().copied() else {
            rows.done(part);
            return false;
        };
        self.parts.insert(batch, Part { log, part, rows: keys, written: 0 });
        self.order.push(Reverse((first, tie, batch)));
        first < self.written
    }

    /// Writes rows before `until`, or all. Those of that time wait for others of the same.
    fn write(&mut self, until: Option<i64>, rows: &mut impl Rows<T>) -> Result<(), MakeError> {
        self.written = until.unwrap_or(i64::MAX);
        let waits = |utc_ns: i64| until.is_some_and(|until| utc_ns >= until);
        while let Some(Reverse((utc_ns, _, batch))) = self.order.peek().copied() {
            if waits(utc_ns) {
                break;
            }
            self.order.pop();
            // One batch goes on until another has an earlier row, which is seldom.
            let other = self.order.peek().map(|Reverse(next)| *next);
            let Some(Part { log, part, rows: keys, written }) = self.parts.get_mut(&batch) else { continue };
            let mut next = None;
            for (utc_ns, tie, at) in keys.get(*written..).unwrap_or(&[]).iter().copied() {
                let key = (utc_ns, tie, batch);
                if waits(utc_ns) || other.is_some_and(|other| other < key) {
                    next = Some(Reverse(key));
                    break;
                }
                rows.write(*log, part, at)?;
                *written += 1;
            }
            match next {
                Some(next) => self.order.push(next),
                None => {
                    if let Some(Part { part, .. }) = self.parts.remove(&batch) {
                        rows.done(part);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    /// Time, what comes first of those of the same time, number.
    type Row = (i64, u64, usize);

    /// Rows that were written, and batches that are done.
    #[derive(Default)]
    struct Noted(Vec<Row>, usize);

    impl Rows<Vec<Row>> for Noted {
        fn begin(&mut self) {}

        fn keys(&self, _: i32, part: &Vec<Row>) -> impl Iterator<Item = (i64, u64)> {
            part.iter().map(|(utc_ns, tie, _)| (*utc_ns, *tie))
        }

        fn write(&mut self, _: i32, part: &mut Vec<Row>, at: usize) -> Result<(), MakeError> {
            self.0.push(part[at]);
            Ok(())
        }

        fn done(&mut self, _: Vec<Row>) {
            self.1 += 1;
        }
    }

    #[test]
    fn rows_of_batches_that_overlap_come_once_and_in_order() {
        let mut rng = Rng::new(5);
        for _ in 0..200 {
            let mut waiting = Waiting { order: BinaryHeap::new(), parts: BTreeMap::new(), written: i64::MIN };
            let (mut noted, mut all, mut start) = (Noted::default(), Vec::new(), 0);
            for batch in 0..20 {
                // Numbers tell batch and place: of the same time and tie the first comes first.
                let row = |n: usize, rng: &mut Rng| {
                    (start + rng.index(12) as i64, rng.index(2) as u64, batch * 8 + n)
                };
                let part: Vec<Row> = (0..rng.index(8)).map(|n| row(n, &mut rng)).collect();
                all.extend_from_slice(&part);
                assert!(!waiting.add(batch, 0, part, &mut noted));
                start += rng.index(6) as i64;
                waiting.write(Some(start), &mut noted).unwrap();
                assert!(noted.0.iter().all(|(utc_ns, ..)| *utc_ns < start));
            }
            waiting.write(None, &mut noted).unwrap();
            all.sort_unstable();
            assert_eq!((noted.0, noted.1), (all, 20));
        }
    }
}
