//! Lanes of threads: what each did in each bucket of a range, or every interval where there are few, and who woke whom.
//!
//! # How it is computed
//!
//! [`intervals`] of each thread. If all lanes together have no more intervals than asked for, they are handed
//! over as they are; otherwise each is spread over buckets of equal length, exactly: the times of a bucket add up to its
//! length.
//!
//! # What fools it
//!
//! A bucket tells shares, not an order. Who readies is not always who did the work.

use super::{Index, Interval, Range, State, Switches, intervals};
use crate::operators::add;
use etwhy_table::Database;

/// What one lane shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Thread.
    pub utid: u32,
    /// Time in each state, in the order of [`State::ALL`].
    pub ns: [i64; 4],
    /// Of the waiting, what has no end in the trace.
    pub open_wait_ns: i64,
}

/// A piece of a lane: an interval, or what a bucket holds of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Place among the lanes.
    pub lane: u32,
    /// Start; of a bucket, that of the bucket.
    pub start: i64,
    /// Time in this state.
    pub dur: i64,
    /// State.
    pub state: State,
    /// Why it waits, as a place in [`Lanes::reasons`]; in a bucket the one with most time.
    pub reason: Option<u32>,
    /// Row of `cswitch`; none in buckets.
    pub row: Option<u32>,
    /// Its end is not in the trace.
    pub open: bool,
}

/// One thread readied another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// When.
    pub ts: i64,
    /// Lane of the thread that did it.
    pub from: u32,
    /// Lane of the thread that could run then.
    pub to: u32,
    /// Row of `cswitch`.
    pub row: u32,
}

/// All lanes.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// Lanes in the order asked for.
    pub lanes: Vec<Lane>,
    /// Length of a bucket; `None` if `pieces` are intervals.
    pub bucket_ns: Option<i64>,
    /// Lane by lane, in time order.
    pub pieces: Vec<Piece>,
    /// Wait reasons.
    pub reasons: Vec<String>,
    /// Wake-ups among the lanes; none if there are more than asked for.
    pub wakeups: Vec<WakeUp>,
    /// How many there are.
    pub wakeups_total: u64,
    /// Wake-ups of these threads by others, and by DPCs.
    pub from_elsewhere: (u64, u64),
}

/// How much to hand over.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// Buckets, if it must be buckets.
    pub width: usize,
    /// Most intervals that are handed over as they are.
    pub exact: usize,
    /// Most wake-ups.
    pub wakeups: usize,
}

fn number(reasons: &mut Vec<String>, reason: Option<&str>) -> Option<u32> {
    let reason = reason?;
    let found = reasons.iter().position(|one| one == reason).unwrap_or_else(|| {
        reasons.push(reason.to_owned());
        reasons.len() - 1
    });
    u32::try_from(found).ok()
}

/// The lanes of `threads`. `go_on` is asked before each.
pub fn lanes(
    db: &Database,
    index: &Index,
    threads: &[u32],
    range: Range,
    detail: Detail,
    mut go_on: impl FnMut() -> bool,
) -> Lanes {
    let mut out = Lanes::default();
    let Some(switches) = Switches::read(db) else { return out };
    let mut kept: Vec<Vec<Interval<'_>>> = Vec::new();
    let mut left = detail.exact;
    for &utid in threads {
        if !go_on() {
            return out;
        }
        let mut lane = Lane { utid, ..Lane::default() };
        let mut own = Vec::new();
        intervals(&switches, index, utid, range, |one| {
            let ns = one.range.1.saturating_sub(one.range.0);
            if let Some(sum) = lane.ns.get_mut(one.state.number()) {
                add(sum, ns);
            }
            if one.open && one.state == State::Wait {
                add(&mut lane.open_wait_ns, ns);
            }
            if own.len() <= left {
                own.push(one);
            }
        });
        left = left.saturating_sub(own.len());
        out.lanes.push(lane);
        kept.push(own);
    }
    if left > 0 {
        for (lane, own) in kept.iter().enumerate() {
            for one in own {
                let reason = number(&mut out.reasons, one.reason);
                out.pieces.push(Piece {
                    lane: lane as u32,
                    start: one.range.0,
                    dur: one.range.1.saturating_sub(one.range.0),
                    state: one.state,
                    reason,
                    row: one.row,
                    open: one.open,
                });
            }
        }
    } else {
        drop(kept);
        let width = i64::try_from(detail.width.clamp(1, 10_000)).unwrap_or(1);
        let length = range.1.saturating_sub(range.0).max(1);
        let bucket = length / width + i64::from(length % width > 0);
        out.bucket_ns = Some(bucket);
        for (lane, &utid) in threads.iter().enumerate() {
            if !go_on() {
                return out;
            }
            let mut buckets = Buckets { lane: lane as u32, start: range.0, bucket, at: 0, sums: Vec::new() };
            let (pieces, reasons) = (&mut out.pieces, &mut out.reasons);
            intervals(&switches, index, utid, range, |one| buckets.add(&one, reasons, pieces));
            buckets.flush(pieces);
        }
    }
    wakeups(&switches, index, threads, range, detail.wakeups, &mut out);
    out
}

/// The bucket that is being filled: intervals come in time order.
struct Buckets {
    lane: u32,
    start: i64,
    bucket: i64,
    at: i64,
    /// State, reason, time, open.
    sums: Vec<(State, Option<u32>, i64, bool)>,
}

impl Buckets {
    fn add(&mut self, one: &Interval<'_>, reasons: &mut Vec<String>, pieces: &mut Vec<Piece>) {
        let reason = number(reasons, one.reason.filter(|_| one.state == State::Wait));
        let mut from = one.range.0;
        while from < one.range.1 {
            let at = from.saturating_sub(self.start) / self.bucket;
            if at != self.at {
                self.flush(pieces);
                self.at = at;
            }
            let end = self.start.saturating_add((at + 1).saturating_mul(self.bucket)).min(one.range.1);
            if end <= from {
                break;
            }
            let found = self.sums.iter_mut().find(|sum| sum.0 == one.state && sum.1 == reason);
            match found {
                Some(sum) => add(&mut sum.2, end - from),
                None => self.sums.push((one.state, reason, end - from, one.open)),
            }
            from = end;
        }
    }

    fn flush(&mut self, pieces: &mut Vec<Piece>) {
        let start = self.start.saturating_add(self.at.saturating_mul(self.bucket));
        for state in State::ALL {
            let of = || self.sums.iter().filter(|sum| sum.0 == state);
            let dur = of().map(|sum| sum.2).fold(0i64, i64::saturating_add);
            let Some(most) = of().max_by_key(|sum| sum.2).filter(|_| dur > 0) else { continue };
            let (reason, open) = (most.1, most.3);
            pieces.push(Piece { lane: self.lane, start, dur, state, reason, row: None, open });
        }
        self.sums.clear();
    }
}

fn wakeups(
    switches: &Switches<'_>,
    index: &Index,
    threads: &[u32],
    range: Range,
    most: usize,
    out: &mut Lanes,
) {
    for (to, &utid) in threads.iter().enumerate() {
        let rows = index.rows_of(utid);
        // A thread runs soon after it was readied: rows are in the order of both.
        let first = rows.partition_point(|&row| switches.ts(row) < range.0);
        for &row in rows.get(first..).unwrap_or_default() {
            let switch = switches.get(row);
            let Some(ts) = switch.ready_ts.filter(|ts| *ts >= range.0) else {
                if switch.begins() >= range.1 {
                    break;
                }
                continue;
            };
            if ts >= range.1 {
                break;
            }
            let from = switch.by.filter(|&by| !index.is_idle(by));
            let lane = from.and_then(|by| threads.iter().position(|&utid| utid == by));
            match lane {
                Some(from) => {
                    out.wakeups_total += 1;
                    if out.wakeups.len() < most {
                        out.wakeups.push(WakeUp { ts, from: from as u32, to: to as u32, row });
                    }
                }
                None if from.is_some() => out.from_elsewhere.0 += 1,
                None => out.from_elsewhere.1 += 1,
            }
        }
    }
    if out.wakeups_total > out.wakeups.len() as u64 {
        // Some of them would look like all of them.
        out.wakeups.clear();
    }
}
