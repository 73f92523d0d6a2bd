//! The critical path of a stretch of one thread: what it ran, what it waited for, and who ended each wait, transitively.
//!
//! # How it is computed
//! The stretch is walked backwards from its end. While the thread ran, the time is its own. While it was ready, it is charged to
//! the queue of the processor. While it waited, the path goes over to the thread that readied it, at the moment when it did
//! so, and follows that one back to the start of the wait. If a DPC ended the wait (a timer, a transfer), or nothing tells who did, the
//! time is charged to the wait itself with its reason. So every nanosecond of the stretch stands in exactly one row, and
//! the rows add up to its length.
//!
//! Which stretches: those asked for (`etwhy path`), and every delay of a window (`MessageCheckDelay` of Win32k).
//!
//! # What fools it
//! Who readies is not always who did the work: a thread pool's dispatcher may hand on what another thread made ready. Waits that
//! reach back to before the first switch of a thread, or over missing buffers, end the path as *unknown*.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PATHS_BEYOND_LIMIT;
use crate::event::{Context, Event, Select, What};
use crate::model::stack::NO_STACK;
use crate::model::switch::WAITING;
use etwhy_base::Guid;
use etwhy_decode::kernel::events::Thread;
use etwhy_decode::kernel::names::wait_reason;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Critical paths: for each stretch of a thread the chain of causes, latest first.
    ///
    /// `dur_ns` of the rows of one path add up to the length of the stretch.
    pub table CRITICAL_PATH: CriticalPathRow = "critical_path" {
        version: 1,
        /// Number of the stretch.
        path_id: i32 [None, Id],
        /// Why the stretch was looked at: asked, or MessageCheckDelay.
        origin: Sym [None, Kind],
        /// Thread whose stretch it is.
        of_utid: i32 [None, Thread],
        /// Place in the chain, from the end backwards.
        position: i32 [None, Other],
        /// How many wake-ups away from the thread itself.
        depth: i32 [Count, Count],
        /// Start of the piece.
        start_ns: i64 [Ns, Time],
        /// Its length.
        dur_ns: i64 [Ns, Duration],
        /// run, ready, wait, or unknown.
        kind: Sym [None, Kind],
        /// Process that it is charged to.
        upid: Option<i32> [None, Process],
        /// Thread that it is charged to.
        utid: i32 [None, Thread],
        /// Processor on which it ran, or for which it waited in the queue.
        cpu: Option<i32> [None, Cpu],
        /// Why it waited.
        wait_reason: Option<Sym> [None, Kind],
        /// The wait was ended in a DPC.
        readied_in_dpc: Option<bool> [None, Flag],
        /// Share of the stretch.
        percent: f64 [Percent, Other],
        /// Stack: where it had been switched in, or where it waited (table `stack`).
        stack_id: Option<i32> [None, Stack],
    }
}

/// A stretch of a thread that somebody asks about.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Processes; any if none is given.
    pub process: Option<NameOrId>,
    /// Threads; of the process's threads the one that ran longest if none is given.
    pub thread: Option<NameOrId>,
    /// First moment, ns.
    pub from_ns: i64,
    /// End, ns.
    pub to_ns: i64,
}

/// Processes or threads by name or id.
#[derive(Clone, Debug)]
pub struct NameOrId(pub String);

impl NameOrId {
    /// True for that name (with or without `.exe`, in any case) or that id.
    pub fn matches(&self, name: &str, id: u32) -> bool {
        let bare = name.strip_suffix(".exe").unwrap_or(name);
        let wanted = self.0.as_str();
        wanted.parse() == Ok(id) || wanted.eq_ignore_ascii_case(name) || wanted.eq_ignore_ascii_case(bare)
    }
}

const DELAY: u8 = 38;
/// `Microsoft-Windows-Win32k`.
const WIN32K: Guid = Guid::from_text("8c416c79-d49b-4f01-a467-e56d3aa8234c");

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CRITICAL_PATH],
    selects: &[
        Select::kernel(Thread::CSwitch, &["NewThreadId", "OldThreadId"]),
        Select::new(What::Manifest(WIN32K, 38), DELAY),
        Select::new(What::Manifest(WIN32K, 172), DELAY),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Paths {
            rows: TableBuilder::new(memory),
            threads: Vec::new(),
            open: Vec::new(),
            delays: Vec::new(),
        })
    },
};

/// A run of a thread and what went before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Switched in.
    from: i64,
    /// Switched out; `i64::MAX` if it is not known.
    to: i64,
    /// When the thread left a processor before; `None` if not known.
    left: Option<i64>,
    /// When it was readied.
    ready: Option<i64>,
    by: Option<u32>,
    in_dpc: bool,
    waited: bool,
    reason: u8,
    cpu: u16,
    ticket: i32,
}

struct Paths {
    rows: TableBuilder<CriticalPathRow>,
    /// Pieces of each thread, in time order.
    threads: Vec<Vec<Piece>>,
    /// Thread that runs on each processor.
    open: Vec<Option<u32>>,
    delays: Vec<(u32, i64, i64)>,
}

impl Analysis for Paths {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        if event.tag == DELAY {
            let ms = i64::from(event.fields().u32("DelayTimeMs").unwrap_or(0));
            if let Some(utid) = cx.utid(event).filter(|_| ms > 0) {
                let from = event.ns.saturating_sub(ms.saturating_mul(1_000_000));
                self.delays.push((utid, from, event.ns));
            }
            return;
        }
        let (Some(_), Some(_)) = (event.u64(0), event.u64(1)) else { return };
        let switch = cx.model.switches.current;
        let cpu = event.record.cpu;
        let index = usize::from(cpu);
        if self.open.len() <= index {
            self.open.resize(index + 1, None);
        }
        let new = (switch.new_tid != 0).then_some(switch.new_utid);
        let old = self.open.get_mut(index).and_then(|slot| std::mem::replace(slot, new));
        if let (Some(old), Some(_)) = (old, switch.old_run)
            && let Some(piece) = self.threads.get_mut(old as usize).and_then(|pieces| pieces.last_mut())
        {
            piece.to = event.ns;
        }
        let Some(new) = new else { return };
        if self.threads.len() <= new as usize {
            self.threads.resize_with(new as usize + 1, Vec::new);
        }
        let ticket = cx.stack_ticket(event, Some(switch.new_tid), Some(new));
        let left = switch.prev.map(|prev| prev.ns);
        let piece = Piece {
            from: event.ns,
            to: i64::MAX,
            left,
            ready: switch.ready_ns.map(|ready| event.ns.saturating_sub(ready)),
            // The idle thread does nothing that could explain a wait: an interrupt came while it ran.
            by: switch
                .ready
                .and_then(|ready| ready.by)
                .filter(|by| cx.model.threads.get(*by).is_some_and(|thread| thread.tid != 0)),
            in_dpc: switch.ready.is_some_and(|ready| ready.in_dpc),
            waited: switch.prev.is_none_or(|prev| prev.state == WAITING),
            reason: switch.prev.map_or(u8::MAX, |prev| prev.reason),
            cpu,
            ticket,
        };
        if let Some(pieces) = self.threads.get_mut(new as usize) {
            if pieces.is_empty() {
                // Many threads run once.
                pieces.reserve_exact(1);
            }
            pieces.push(piece);
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut wanted: Vec<(&str, u32, i64, i64)> = Vec::new();
        for stretch in end.inputs.all::<Stretch>() {
            let (from, to) = (stretch.from_ns.max(end.span_ns.0), stretch.to_ns.min(end.span_ns.1));
            wanted
                .extend(self.threads_of(stretch, end, from, to).into_iter().map(|u| ("asked", u, from, to)));
        }
        wanted.extend(self.delays.iter().map(|&(utid, from, to)| ("MessageCheckDelay", utid, from, to)));
        let runs: usize = self.threads.iter().map(Vec::len).sum();
        let mut left = runs.saturating_mul(LINKS_PER_RUN).clamp(MOST_LINKS, MOST_LINKS_IN_ALL);
        let count = wanted.len();
        for (path_id, (origin, utid, from, to)) in wanted.into_iter().enumerate() {
            if left == 0 {
                end.ledger.count(&PATHS_BEYOND_LIMIT, (count - path_id) as u64);
                break;
            }
            let links = path(&self.threads, utid, from, to);
            left = left.saturating_sub(links.len());
            let whole = to.saturating_sub(from).max(1);
            for (position, link) in links.iter().enumerate() {
                self.rows.push(CriticalPathRow {
                    path_id: path_id as i32,
                    origin: end.strings.intern(origin),
                    of_utid: utid as i32,
                    position: position as i32,
                    depth: link.depth,
                    start_ns: link.from,
                    dur_ns: link.to.saturating_sub(link.from),
                    kind: end.strings.intern(link.kind.name()),
                    upid: end.model.upid_of(link.utid).map(|u| u as i32),
                    utid: link.utid as i32,
                    cpu: link.cpu.map(i32::from),
                    wait_reason: link
                        .reason
                        .and_then(|r| wait_reason(u32::from(r)))
                        .map(|name| end.strings.intern(name)),
                    readied_in_dpc: (link.kind == Kind::Wait).then_some(link.in_dpc),
                    percent: 100.0 * link.to.saturating_sub(link.from) as f64 / whole as f64,
                    stack_id: Some(link.ticket),
                });
            }
        }
        end.stacks_of(&mut self.rows, "stack_id")?;
        Ok(vec![self.rows.into()])
    }
}

impl Paths {
    /// Threads that a question means: the one with that id, or of the processes with that name the thread that ran
    /// longest in the stretch.
    fn threads_of(&self, stretch: &Stretch, end: &Finish<'_>, from: i64, to: i64) -> Vec<u32> {
        let threads = end.model.threads.all();
        let ran = |utid: u32| -> i64 {
            let pieces = self.threads.get(utid as usize).map_or(&[][..], Vec::as_slice);
            let part = |p: &Piece| p.to.min(to).saturating_sub(p.from.max(from)).max(0);
            pieces.iter().map(part).fold(0, i64::saturating_add)
        };
        let candidates = threads.iter().enumerate().filter(|(_, thread)| {
            let lives = thread.first_ns <= to && thread.end_ns.is_none_or(|end| end >= from);
            let process = thread.upid.and_then(|u| end.model.processes.get(u));
            let named = stretch.process.as_ref().is_none_or(|wanted| {
                process.is_some_and(|p| wanted.matches(p.name.map_or("", |n| end.strings.get(n)), p.pid))
            });
            let wanted = stretch.thread.as_ref().is_none_or(|wanted| {
                wanted.matches(thread.name.map_or("", |n| end.strings.get(n)), thread.tid)
            });
            lives && thread.tid != 0 && named && wanted
        });
        let candidates: Vec<u32> = candidates.map(|(utid, _)| utid as u32).collect();
        if stretch.thread.is_some() {
            return candidates;
        }
        let longest = candidates.into_iter().max_by_key(|&utid| (ran(utid), std::cmp::Reverse(utid)));
        longest.into_iter().collect()
    }
}

/// What a piece of a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Run,
    Ready,
    Wait,
    Unknown,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Ready => "ready",
            Kind::Wait => "wait",
            Kind::Unknown => "unknown",
        }
    }
}

/// A piece of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    from: i64,
    to: i64,
    utid: u32,
    depth: i32,
    kind: Kind,
    cpu: Option<u16>,
    reason: Option<u8>,
    in_dpc: bool,
    ticket: i32,
}

/// Most pieces of one path, and most wake-ups that are followed into each other: a path of a minute on a busy server
/// has thousands.
const MOST_LINKS: usize = 100_000;
const MOST_DEPTH: usize = 256;

/// Most pieces of all paths together, for each run of a thread and in all. Paths of windows that wait at the same time
/// have pieces in common, but a trace in which every window says that it waited all the time would make as many long
/// paths as it has events.
const LINKS_PER_RUN: usize = 4;
const MOST_LINKS_IN_ALL: usize = 1_000_000;

/// The path of `utid` between two moments, latest piece first.
fn path(threads: &[Vec<Piece>], utid: u32, from: i64, to: i64) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    // Threads whose waits are being explained: thread, and the moment at which to go on with it.
    let mut waiting: Vec<(u32, i64)> = vec![(utid, from)];
    let (mut utid, mut at) = (utid, to);
    while links.len() < MOST_LINKS {
        let Some(&(_, low)) = waiting.last() else { break };
        if at <= low {
            // The wait is explained down to its start: go on with the thread that waited.
            waiting.pop();
            match waiting.last() {
                Some(&(above, _)) if !waiting.is_empty() => utid = above,
                _ => break,
            }
            continue;
        }
        let depth = waiting.len() as i32 - 1;
        let mut push = |kind, start: i64, end: i64, piece: Option<&Piece>| {
            if end > start {
                links.push(Link {
                    from: start,
                    to: end,
                    utid,
                    depth,
                    kind,
                    cpu: piece.filter(|_| kind != Kind::Wait).map(|p| p.cpu),
                    reason: piece.filter(|p| kind == Kind::Wait && p.reason != u8::MAX).map(|p| p.reason),
                    in_dpc: piece.is_some_and(|p| p.in_dpc),
                    ticket: piece.map_or(NO_STACK, |p| p.ticket),
                });
            }
        };
        let pieces = threads.get(utid as usize).map_or(&[][..], Vec::as_slice);
        // The last piece that began before the moment.
        let index = pieces.partition_point(|p| p.from < at);
        let before = index.checked_sub(1).and_then(|i| pieces.get(i));
        if let Some(piece) = before.filter(|p| p.to >= at) {
            push(Kind::Run, piece.from.max(low), at, Some(piece));
            at = piece.from.max(low);
            continue;
        }
        // It was off the processors: the piece behind the moment tells why.
        let off_since = before.map_or(low, |p| p.to).max(low);
        // What left at this very moment was elsewhere before: nothing tells where.
        let Some(next) = pieces.get(index).filter(|p| p.left.is_some_and(|left| left < at)) else {
            push(Kind::Unknown, off_since, at, None);
            at = off_since;
            continue;
        };
        let left = next.left.unwrap_or(off_since).max(off_since);
        let ready = next.ready.unwrap_or(at).clamp(left, next.from);
        if !next.waited {
            push(Kind::Ready, left, at, Some(next));
            at = left;
        } else if at > ready {
            push(Kind::Ready, ready, at, Some(next));
            at = ready;
        } else {
            match next.by.filter(|&by| by != utid && waiting.len() < MOST_DEPTH) {
                // Only from the moment of the wake-up on does the other thread explain the wait.
                Some(by) if next.ready == Some(at) && !waiting.iter().any(|w| w.0 == by) => {
                    waiting.push((by, left));
                    utid = by;
                }
                _ => {
                    push(Kind::Wait, left, at, Some(next));
                    at = left;
                }
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from: i64, to: i64, left: i64, ready: i64, by: Option<u32>) -> Piece {
        let (left, ready) = (Some(left), Some(ready));
        let (in_dpc, waited, reason, cpu, ticket) = (by.is_none(), true, 6, 0, 0);
        Piece { from, to, left, ready, by, in_dpc, waited, reason, cpu, ticket }
    }

    fn short(links: &[Link]) -> Vec<(i64, i64, u32, &'static str)> {
        links.iter().map(|l| (l.from, l.to, l.utid, l.kind.name())).collect()
    }

    #[test]
    fn a_chain_of_three_is_followed() {
        // 0 waits from 10 to 50, readied by 1, which waited from 20 to 40 for 2, which a DPC woke at 30.
        let first = |to| Piece { left: None, ready: None, ..piece(0, to, 0, 0, None) };
        let zero = vec![first(10), piece(52, 60, 10, 50, Some(1))];
        let one = vec![first(20), piece(41, 51, 20, 40, Some(2))];
        let two = vec![first(12), piece(30, 45, 12, 30, None)];
        let links = path(&[zero, one, two], 0, 5, 60);
        assert_eq!(
            short(&links),
            [
                (52, 60, 0, "run"),
                (50, 52, 0, "ready"),
                (41, 50, 1, "run"),
                (40, 41, 1, "ready"),
                (30, 40, 2, "run"),
                (20, 30, 2, "wait"),
                (10, 20, 1, "run"),
                (5, 10, 0, "run"),
            ]
        );
        assert_eq!(links.iter().map(|l| l.to - l.from).sum::<i64>(), 55);
        assert_eq!(links.iter().map(|l| l.depth).max(), Some(2));
    }

    #[test]
    fn two_that_wake_each_other_end() {
        let zero = vec![piece(10, 20, 0, 10, Some(1)), piece(30, 40, 20, 30, Some(1))];
        let one = vec![piece(10, 30, 0, 10, Some(0))];
        let links = path(&[zero, one], 0, 0, 40);
        assert_eq!(links.iter().map(|l| l.to - l.from).sum::<i64>(), 40);
    }

    #[test]
    fn what_is_not_recorded_is_unknown() {
        let links = path(&[Vec::new()], 0, 3, 9);
        assert_eq!(short(&links), [(3, 9, 0, "unknown")]);
    }

    #[test]
    fn a_thread_that_left_twice_ends_nowhere() {
        // Switched out at 10 and, on another processor, at 20 again. The path begins at this very moment.
        let mut again = piece(30, 40, 20, 25, Some(1));
        let first = Piece { left: None, ready: None, ..piece(0, 10, 0, 0, None) };
        for waited in [true, false] {
            again.waited = waited;
            let links = path(&[vec![first, again]], 0, 5, 20);
            assert_eq!(short(&links), [(10, 20, 0, "unknown"), (5, 10, 0, "run")]);
        }
    }
}
