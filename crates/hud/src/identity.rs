//! Who somebody is, apart from the number that he has in one trace.
//!
//! Numbers of processes and threads (`upid`, `utid`) count the instances of one trace. In another trace the same number is somebody
//! else. A process is its image name, process id and start; a thread its id, start and process. Starts are times of the clock, so that
//! they mean the same in every trace of a machine. One that began before its trace has no start: then what is known is when it lived.

use crate::trace::Trace;
use etwhy_table::Table;
use serde::{Deserialize, Serialize};

/// A process, wherever it is seen.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Process {
    /// Image name.
    pub name: String,
    /// Process id.
    pub pid: i64,
    /// When it began and when it was seen.
    #[serde(flatten)]
    pub life: Life,
}

/// A thread, wherever it is seen.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Thread {
    /// Thread id.
    pub tid: i64,
    /// When it began and when it was seen.
    #[serde(flatten)]
    pub life: Life,
    /// Its process.
    pub process: Option<Process>,
}

/// Times of the clock, milliseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Life {
    /// Start; `None`: before the trace.
    pub start_ms: Option<f64>,
    /// First moment at which the trace shows it.
    pub seen_ms: Option<f64>,
}

/// Starts of the same instance in two traces differ by what clocks were corrected between them. Windows gives a process id to the next
/// one of the same name sooner than this only if nothing else begins meanwhile.
const TOLERANCE_MS: f64 = 1000.0;

impl Life {
    /// True if both may be of one instance.
    fn fits(&self, other: &Life) -> bool {
        let not_after = |start: f64, seen: Option<f64>| seen.is_none_or(|seen| start <= seen + TOLERANCE_MS);
        match (self.start_ms, other.start_ms) {
            (Some(a), Some(b)) => (a - b).abs() <= TOLERANCE_MS,
            // It began before the other trace, which must have seen it later.
            (Some(start), None) => not_after(start, other.seen_ms),
            (None, Some(start)) => not_after(start, self.seen_ms),
            (None, None) => true,
        }
    }

    /// How far apart the starts are.
    fn distance(&self, other: &Life) -> f64 {
        self.start_ms.zip(other.start_ms).map_or(f64::MAX, |(a, b)| (a - b).abs())
    }
}

fn row_of(number: i64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// Rows are instances: the row is the number.
fn life(trace: &Trace, table: &Table, row: u32) -> Life {
    let begin = trace.db.get("trace").and_then(|trace| trace.i64(0, "start_unix_ns"));
    let ms = |column: &str| {
        let ns = begin?.checked_add(table.i64(row, column)?)?;
        Some((ns as f64 / 1e6).round())
    };
    Life { start_ms: ms("start_ns"), seen_ms: ms("first_ns") }
}

/// Who has this number.
pub fn process(trace: &Trace, upid: i64) -> Option<Process> {
    let table = trace.db.get("process")?;
    let row = row_of(upid)?;
    Some(Process {
        name: table.text(row, "name")?.to_owned(),
        pid: table.i64(row, "pid")?,
        life: life(trace, table, row),
    })
}

/// Who has this number.
pub fn thread(trace: &Trace, utid: i64) -> Option<Thread> {
    let table = trace.db.get("thread")?;
    let row = row_of(utid)?;
    let process = table.i64(row, "upid").and_then(|upid| process(trace, upid));
    Some(Thread { tid: table.i64(row, "tid")?, life: life(trace, table, row), process })
}

/// The number that a process has here.
pub fn find_process(trace: &Trace, wanted: &Process) -> Option<i64> {
    let table = trace.db.get("process")?;
    let same = |row: &u32| {
        table.i64(*row, "pid") == Some(wanted.pid)
            && table.text(*row, "name").is_some_and(|name| name.eq_ignore_ascii_case(&wanted.name))
    };
    nearest(trace, table, &wanted.life, (0..table.rows() as u32).filter(same))
}

/// The number that a thread has here.
pub fn find_thread(trace: &Trace, wanted: &Thread) -> Option<i64> {
    let table = trace.db.get("thread")?;
    let upid = match &wanted.process {
        Some(process) => Some(find_process(trace, process)?),
        None => None,
    };
    let same = |row: &u32| table.i64(*row, "tid") == Some(wanted.tid) && table.i64(*row, "upid") == upid;
    nearest(trace, table, &wanted.life, (0..table.rows() as u32).filter(same))
}

/// The row whose start is nearest; none if two fit alike.
fn nearest(trace: &Trace, table: &Table, wanted: &Life, rows: impl Iterator<Item = u32>) -> Option<i64> {
    let lives = rows.map(|row| (row, life(trace, table, row)));
    let mut fitting: Vec<(f64, u32)> =
        lives.filter(|(_, life)| life.fits(wanted)).map(|(row, life)| (life.distance(wanted), row)).collect();
    fitting.sort_by(|a, b| a.0.total_cmp(&b.0));
    match fitting.as_slice() {
        [] => None,
        [(a, _), (b, _), ..] if a == b => None,
        [(_, row), ..] => Some(i64::from(*row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(start_ms: Option<f64>, seen_ms: f64) -> Life {
        Life { start_ms, seen_ms: Some(seen_ms) }
    }

    #[test]
    fn lives_of_one_instance_fit() {
        let fits = |a: Life, b: Life| {
            assert_eq!(a.fits(&b), b.fits(&a));
            a.fits(&b)
        };
        assert!(fits(life(Some(5_000.0), 5_000.0), life(Some(5_400.0), 5_400.0)));
        assert!(!fits(life(Some(5_000.0), 5_000.0), life(Some(9_000.0), 9_000.0)), "the id was given again");
        assert!(fits(life(Some(5_000.0), 5_000.0), life(None, 60_000.0)), "a later trace sees it running");
        assert!(!fits(life(Some(90_000.0), 90_000.0), life(None, 60_000.0)), "it ran before this one began");
        assert!(fits(life(None, 1.0), life(None, 2.0)));
    }
}
