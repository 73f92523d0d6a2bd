//! Who somebody is, apart from the number that he has in one trace.
//!
//! Numbers of processes and threads (`upid`, `utid`) count the instances of one trace. In another trace the same number is somebody
//! else. A process is its image name, process id and start; a thread its id, start and process. Starts are times of the clock, so that
//! they mean the same in every trace of a machine. One that began before its trace has no start: then what is known is when it lived.

use crate::trace::Trace;
use etwhy_trace::catalog::{process::ProcessRow, thread::ThreadRow, trace::TraceRow};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A process, wherever it is seen.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, TS)]
#[ts(rename = "KnownProcess")]
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
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, TS)]
#[ts(rename = "KnownThread")]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, TS)]
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

/// When something began and was seen, by the clock.
fn life(trace: &Trace, start_ns: Option<i64>, first_ns: i64) -> Life {
    let begin = trace.db.read_or_empty::<TraceRow>().first().map(|trace| trace.start_unix_ns());
    let ms = |ns: i64| Some((begin?.checked_add(ns)? as f64 / 1e6).round());
    Life { start_ms: start_ns.and_then(ms), seen_ms: ms(first_ns) }
}

/// Who has this number.
pub fn process(trace: &Trace, upid: i64) -> Option<Process> {
    let table = trace.db.read_or_empty::<ProcessRow>();
    let row = table.get(upid)?;
    let life = life(trace, row.start_ns(), row.first_ns());
    Some(Process { name: row.name().to_owned(), pid: row.pid(), life })
}

/// Who has this number.
pub fn thread(trace: &Trace, utid: i64) -> Option<Thread> {
    let table = trace.db.read_or_empty::<ThreadRow>();
    let row = table.get(utid)?;
    let process = row.upid().and_then(|upid| process(trace, upid));
    Some(Thread { tid: row.tid(), life: life(trace, row.start_ns(), row.first_ns()), process })
}

/// The number that a process has here.
pub fn find_process(trace: &Trace, wanted: &Process) -> Option<i64> {
    let table = trace.db.read_or_empty::<ProcessRow>();
    let same = table
        .iter()
        .zip(0i64..)
        .filter(|(row, _)| row.pid() == wanted.pid && row.name().eq_ignore_ascii_case(&wanted.name));
    nearest(&wanted.life, same.map(|(row, upid)| (upid, life(trace, row.start_ns(), row.first_ns()))))
}

/// The number that a thread has here.
pub fn find_thread(trace: &Trace, wanted: &Thread) -> Option<i64> {
    let upid = match &wanted.process {
        Some(process) => Some(find_process(trace, process)?),
        None => None,
    };
    let table = trace.db.read_or_empty::<ThreadRow>();
    let same = table.iter().zip(0i64..).filter(|(row, _)| row.tid() == wanted.tid && row.upid() == upid);
    nearest(&wanted.life, same.map(|(row, utid)| (utid, life(trace, row.start_ns(), row.first_ns()))))
}

/// The number of the one whose start is nearest; none if two fit alike.
fn nearest(wanted: &Life, lives: impl Iterator<Item = (i64, Life)>) -> Option<i64> {
    let mut fitting: Vec<(f64, i64)> = lives
        .filter(|(_, life)| life.fits(wanted))
        .map(|(number, life)| (life.distance(wanted), number))
        .collect();
    fitting.sort_by(|a, b| a.0.total_cmp(&b.0));
    match fitting.as_slice() {
        [] => None,
        [(a, _), (b, _), ..] if a == b => None,
        [(_, number), ..] => Some(*number),
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
