//! The critical path of any stretch of a thread: what it ran, what it waited for, and who ended each wait, transitively.
//!
//! # How it is computed
//!
//! As table `critical_path` (which holds stretches that were known when the trace was read), from table `cswitch`: the stretch
//! is walked backwards from its end. While the thread ran, the time is its own. While it was ready, it is charged to the queue of
//! the processor. While it waited, the path goes over to the thread that readied it, at that moment, and follows that one back
//! to the start of the wait. If a DPC ended the wait, or nothing tells who did, the time is charged to the wait itself with its
//! reason. Every nanosecond stands in exactly one piece.
//!
//! # What fools it
//!
//! Who readies is not always who did the work: a thread pool's dispatcher may hand on what another thread made ready. Waits that
//! reach back to before the first switch of a thread, beyond its last one, or over missing buffers, end the path as *unknown*.
//! Of two threads that were asked at the same time, the one that was waited for first has the time, whichever answered last (`critical_path`
//! looks at the stacks of such waits, and names the last).

use super::{Index, Range, State, Switches};
use crate::operators::add;
use etwhy_table::Database;
use foldhash::HashMap;

/// A run of a thread and what went before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece<'t> {
    from: i64,
    /// `i64::MAX` if it is not known.
    to: i64,
    /// When the thread left a processor before.
    left: Option<i64>,
    ready: Option<i64>,
    by: Option<u32>,
    in_dpc: bool,
    waited: bool,
    reason: Option<&'t str>,
    cpu: i64,
    stack: Option<i64>,
    row: u32,
}

/// A piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'t> {
    /// From (included) to (not).
    pub range: Range,
    /// Thread that it is charged to.
    pub utid: u32,
    /// Wake-ups away from the thread itself.
    pub depth: i32,
    /// What it is.
    pub kind: State,
    /// Processor on which it ran, or for which it stood in the queue.
    pub cpu: Option<i64>,
    /// Why it waited.
    pub reason: Option<&'t str>,
    /// The wait was ended in a DPC.
    pub in_dpc: bool,
    /// Where it had been switched in, or where it waited.
    pub stack: Option<i64>,
    /// Row of `cswitch` that tells.
    pub row: Option<u32>,
}

/// Most pieces of a path: one of a minute on a busy server has thousands.
pub const MOST_LINKS: usize = 100_000;
/// Most wake-ups that are followed into each other.
const MOST_DEPTH: usize = 256;

/// Pieces of threads, read when the path comes to them.
struct Threads<'a, 't> {
    switches: &'a Switches<'t>,
    index: &'a Index,
    read: HashMap<u32, Vec<Piece<'t>>>,
}

impl<'t> Threads<'_, 't> {
    fn of(&mut self, utid: u32) -> &[Piece<'t>] {
        let (switches, index) = (self.switches, self.index);
        self.read.entry(utid).or_insert_with(|| {
            let piece = |&row: &u32| {
                let one = switches.get(row);
                Piece {
                    from: one.ts,
                    to: one.run.map_or(i64::MAX, |run| one.ts.saturating_add(run)),
                    left: one.since_last.map(|ns| one.ts.saturating_sub(ns)),
                    ready: one.ready.map(|ns| one.ts.saturating_sub(ns)),
                    // The idle thread does nothing that could explain a wait: an interrupt came while it ran.
                    by: one.by.filter(|&by| !index.is_idle(by)),
                    in_dpc: one.in_dpc == Some(true),
                    waited: one.waited,
                    reason: one.reason,
                    cpu: one.cpu,
                    stack: one.stack,
                    row,
                }
            };
            if index.is_idle(utid) { Vec::new() } else { index.rows_of(utid).iter().map(piece).collect() }
        })
    }
}

/// The path of a thread in a range, latest piece first. `go_on` is asked now and then.
pub fn path<'t>(
    switches: &Switches<'t>,
    index: &Index,
    utid: u32,
    (from, to): Range,
    mut go_on: impl FnMut() -> bool,
) -> Vec<Link<'t>> {
    let mut threads = Threads { switches, index, read: HashMap::default() };
    let mut links: Vec<Link<'t>> = Vec::new();
    // Threads whose waits are being explained: thread, and the moment at which to go on with it.
    let mut waiting: Vec<(u32, i64)> = vec![(utid, from)];
    let (mut utid, mut at) = (utid, to);
    let mut steps = 0u32;
    while links.len() < MOST_LINKS {
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(1024) && !go_on() {
            break;
        }
        let Some(&(_, low)) = waiting.last() else { break };
        if at <= low {
            // The wait is explained down to its start: go on with the thread that waited.
            waiting.pop();
            match waiting.last() {
                Some(&(above, _)) => utid = above,
                None => break,
            }
            continue;
        }
        let depth = waiting.len() as i32 - 1;
        let mut push = |kind, start: i64, end: i64, piece: Option<&Piece<'t>>| {
            if end > start {
                links.push(Link {
                    range: (start, end),
                    utid,
                    depth,
                    kind,
                    cpu: piece.filter(|_| kind != State::Wait).map(|p| p.cpu),
                    reason: piece.filter(|_| kind == State::Wait).and_then(|p| p.reason),
                    in_dpc: kind == State::Wait && piece.is_some_and(|p| p.in_dpc),
                    stack: piece.and_then(|p| p.stack),
                    row: piece.map(|p| p.row),
                });
            }
        };
        let pieces = threads.of(utid);
        // The last piece that began before the moment.
        let place = pieces.partition_point(|p| p.from < at);
        let before = place.checked_sub(1).and_then(|i| pieces.get(i));
        if let Some(piece) = before.filter(|p| p.to >= at) {
            push(State::Run, piece.from.max(low), at, Some(piece));
            at = piece.from.max(low);
            continue;
        }
        // It was off the processors: the piece behind the moment tells why.
        let off_since = before.map_or(low, |p| p.to).max(low);
        let first = |p: &&Piece<'_>| p.left.is_none() && p.ready.is_some_and(|ready| ready < at);
        if let Some(next) = pieces.get(place).filter(first) {
            // Its first run: nothing tells what went before, but it was readied.
            let ready = next.ready.unwrap_or(at).max(off_since);
            push(State::Ready, ready, at, Some(next));
            at = ready;
            continue;
        }
        // What left at this very moment was elsewhere before: nothing tells where.
        let Some(next) = pieces.get(place).filter(|p| p.left.is_some_and(|left| left < at)) else {
            push(State::Unknown, off_since, at, None);
            at = off_since;
            continue;
        };
        let left = next.left.unwrap_or(off_since).max(off_since);
        let ready = next.ready.unwrap_or(at).max(left).min(next.from);
        if !next.waited {
            push(State::Ready, left, at, Some(next));
            at = left;
        } else if at > ready {
            push(State::Ready, ready, at, Some(next));
            at = ready;
        } else {
            match next.by.filter(|&by| by != utid && waiting.len() < MOST_DEPTH) {
                // Only from the moment of the wake-up on does the other thread explain the wait.
                Some(by) if next.ready == Some(at) && !waiting.iter().any(|w| w.0 == by) => {
                    waiting.push((by, left));
                    utid = by;
                }
                _ => {
                    push(State::Wait, left, at, Some(next));
                    at = left;
                }
            }
        }
    }
    links
}

/// What took time on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause<'t> {
    /// What it was.
    pub kind: State,
    /// Thread that it is charged to.
    pub utid: u32,
    /// Why it waited.
    pub reason: Option<&'t str>,
    /// The wait was ended in a DPC.
    pub in_dpc: bool,
    /// Time.
    pub dur_ns: i64,
    /// Pieces.
    pub pieces: i64,
    /// The longest piece: its place in the path.
    pub longest: usize,
}

/// Sums of a path by what took the time, largest first.
pub fn causes<'t>(links: &[Link<'t>]) -> Vec<Cause<'t>> {
    type Key<'t> = (State, u32, Option<&'t str>, bool);
    let mut sums: HashMap<Key<'t>, (Cause<'t>, i64)> = HashMap::default();
    for (place, link) in links.iter().enumerate() {
        let ns = link.range.1.saturating_sub(link.range.0);
        let (sum, longest) =
            sums.entry((link.kind, link.utid, link.reason, link.in_dpc)).or_insert_with(|| {
                let (kind, utid, reason, in_dpc) = (link.kind, link.utid, link.reason, link.in_dpc);
                (Cause { kind, utid, reason, in_dpc, dur_ns: 0, pieces: 0, longest: place }, 0)
            });
        add(&mut sum.dur_ns, ns);
        sum.pieces += 1;
        if ns > *longest {
            (*longest, sum.longest) = (ns, place);
        }
    }
    let mut out: Vec<Cause<'t>> = sums.into_values().map(|(cause, _)| cause).collect();
    out.sort_by_key(|cause| (std::cmp::Reverse(cause.dur_ns), cause.utid, cause.kind, cause.reason));
    out
}

/// The path of a thread of a trace.
pub fn path_of<'t>(
    db: &'t Database,
    index: &Index,
    utid: u32,
    range: Range,
    go_on: impl FnMut() -> bool,
) -> Vec<Link<'t>> {
    Switches::read(db).map(|switches| path(&switches, index, utid, range, go_on)).unwrap_or_default()
}
