//! The critical path of a stretch of one thread: what it ran, what it waited for, and who ended each wait, transitively.
//!
//! # How it is computed
//! The stretch is walked backwards from its end. While the thread ran, the time is its own, but for what DPCs and ISRs took of it
//! (`interrupted_ns`; of a run that the path holds in part, as much as of the run). While it was ready, it is charged to
//! the queue of the processor, and what DPCs and ISRs took of the processor meanwhile to them. While it waited, the path goes over to the thread that readied it, at the moment when it did
//! so, and follows that one back to the start of the wait. If a DPC ended the wait (a timer, a transfer), or nothing tells who did, the
//! time is charged to the wait itself with its reason. So every nanosecond of the stretch stands in exactly one row, and
//! the rows add up to its length.
//!
//! Of two that a thread had asked at the same time and waited for one after the other, the one that answered last made it wait since it was
//! asked: it has the time in which the thread waited for the other one, which would have ended nothing sooner by being quicker. What the thread itself
//! did meanwhile stays its own. This needs the stacks of both waits, because a lock that is handed over looks the same.
//!
//! Which stretches: those asked for (`etwhy path`); else every delay of a window (table `ui_delay`), and of each process and wait
//! reason the eight longest waits of 5 ms or more that another thread ended, unless the thread had no work (classes `queue`,
//! `condition`, `sleep` of table `wait_chain`).
//!
//! # What fools it
//! Who readies is not always who did the work: a thread pool's dispatcher may hand on what another thread made ready. Waits that
//! reach back to before the first switch of a thread, or over missing buffers, end the path as *unknown*. Of the latter the part behind the
//! last gap is known: all switches since then were recorded, and the thread was in none. A run in whose time records of its processor
//! are missing is unknown from there on, until something tells who runs. Where no stretch was
//! asked for, the last half million runs are kept: the begin of a delay before that is unknown too.

mod forks;
mod runs;
mod walk;

use super::ui_delay::{self, WIN32K};
use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PATHS_BEYOND_LIMIT;
use crate::event::{Context, Event, Select, What};
use crate::model::place::PlaceId;
use crate::model::stack::NO_STACK;
use crate::model::switch::{Out, WAITING};
use crate::wait_class::{self, WaitClasses};
pub use crate::wait_class::{Named, reason_of};
use etwhy_decode::kernel::events::Thread;
use etwhy_knowledge::WaitClass;
use etwhy_table::{Sym, TableBuilder, define_table};
use runs::Runs;
use std::collections::BTreeMap;
pub use walk::{Kind, Link, MOST_LINKS, NEVER, NOBODY, Piece, Threads};
use walk::{Walked, path, until};

define_table! {
    /// Critical paths: for each stretch of a thread the chain of causes, latest first.
    ///
    /// `dur_ns` of the rows of one path add up to the length of the stretch.
    pub table CRITICAL_PATH: CriticalPathRow = "critical_path" {
        version: 3,
        /// Number of the stretch.
        path_id: i32 [None, Id],
        /// Why the stretch was looked at: asked, the kind of a window's delay (as in `ui_delay`), or lock wait, call wait, other wait.
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
        /// Thread that had the processor for most of the time in which this one was ready (as far as the processor's last 128 runs tell), DPCs and ISRs
        /// left out; null for other pieces, and where the processor was idle.
        displaced_by_utid: Option<i32> [None, Thread],
        /// What DPCs and ISRs took of a run, or of the processor while the thread was ready; 0 for other pieces.
        interrupted_ns: i64 [Ns, Other],
        /// Module of the routine that took most of that; null where it was less than 0.1 ms of it.
        interrupted_by: Option<Sym> [None, Name],
        /// Why it waited.
        wait_reason: Option<Sym> [None, Kind],
        /// What it waited for, as in `wait_chain`.
        wait_class: Option<Sym> [None, Kind],
        /// The wait was ended in a DPC.
        readied_in_dpc: Option<bool> [None, Flag],
        /// Share of the stretch.
        percent: f64 [Percent, Other],
        /// Stack: where it had been switched in, or where it waited (table `stack`).
        stack_id: Option<i32> [None, Stack],
    }
}

/// The path of a thread between two moments, latest piece first, over runs that are kept somewhere else than in the pass.
pub fn path_over(threads: &impl Threads, named: &impl Named, utid: u32, from: i64, to: i64) -> Vec<Link> {
    forks::decide(walk::walk(threads, utid, from, to), named, &mut WaitClasses::default())
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

// Not their types: CSwitch has the number of the rundown of windows.
const SWITCH: u8 = 1;
const READY: u8 = 2;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CRITICAL_PATH],
    selects: &[
        Select::with(What::Kernel(Thread::CSwitch), SWITCH, &["NewThreadId", "OldThreadId"]),
        Select::with(What::Kernel(Thread::ReadyThread), READY, &["TThreadId"]),
        Select::new(What::Manifest(WIN32K, 36), ui_delay::RUNDOWN),
        Select::new(What::Manifest(WIN32K, 37), ui_delay::INPUT_DELAY),
        Select::new(What::Manifest(WIN32K, 38), ui_delay::CHECK_DELAY),
        Select::new(What::Manifest(WIN32K, 172), ui_delay::IMMERSIVE_INPUT_DELAY),
        Select::new(What::Manifest(WIN32K, 173), ui_delay::IMMERSIVE_CHECK_DELAY),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Paths {
            rows: TableBuilder::new(memory),
            runs: Runs::default(),
            found: Vec::new(),
            waits: BTreeMap::new(),
            wakers: BTreeMap::new(),
            links: 0,
            walked: 0,
            beyond: 0,
        })
    },
};

/// Waits of each process and wait reason whose paths are kept: the longest.
const WAITS_PER_REASON: usize = 8;
/// Shorter waits are not followed: there are many, and a file operation that would explain them is not in `slow_file_io` either. Nobody
/// notices a single wait of this length, but a queue at a lock consists of them.
const MIN_WAIT_NS: i64 = 5_000_000;
/// Processes and wait reasons whose longest waits are followed.
const MAX_WAIT_GROUPS: usize = 4_096;

/// Most pieces of all paths together, for each run of a thread and in all. Paths of windows that wait at the same time
/// have pieces in common, but a trace in which every window says that it waited all the time would make as many long
/// paths as it has events.
const LINKS_PER_RUN: usize = 4;
const MOST_LINKS_IN_ALL: usize = 1_000_000;
/// Pieces walked for waits, those of displaced paths included, in multiples of what all paths may have: waits that each are a little
/// longer than the one before would have every path walked.
const MAX_WALKS: usize = 4;

/// A path that was followed.
struct Followed {
    origin: &'static str,
    utid: u32,
    from: i64,
    to: i64,
    walked: Walked,
}

/// A long wait, and the stack at its end.
struct LongWait {
    followed: Followed,
    reason: u8,
    ticket: i32,
    /// The stack of the thread that ended it.
    waker: i32,
}

struct Paths {
    rows: TableBuilder<CriticalPathRow>,
    runs: Runs,
    /// Delays of windows.
    found: Vec<Followed>,
    /// The longest waits of each process (or thread whose process is not known) and reason.
    waits: BTreeMap<(Option<u32>, u32, u8), Vec<LongWait>>,
    /// Stack tickets of the `ReadyThread` that ended the long wait of threads that have not run since.
    wakers: BTreeMap<u32, (i64, i32)>,
    /// Pieces of all of them.
    links: usize,
    /// Pieces that were ever walked for waits, those of paths that longer ones displaced included.
    walked: usize,
    /// Paths that were left out.
    beyond: u64,
}

impl Analysis for Paths {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        if event.tag == READY {
            self.wake(event, cx);
            return;
        }
        if event.tag != SWITCH {
            let Ok(Some(delay)) = ui_delay::delay(event, cx) else { return };
            let Some(utid) = delay.utid else { return };
            if let Some(path) = self.follow(delay.kind, utid, delay.start_ns, event, event.ns, cx) {
                self.found.push(path);
            }
            return;
        }
        let (Some(_), Some(_)) = (event.u64(0), event.u64(1)) else { return };
        let asked = !cx.inputs.all::<Stretch>().is_empty();
        let switch = cx.model.switches.current;
        let woken = self.wakers.remove(&switch.new_utid);
        let waker = woken.filter(|woken| switch.ready.is_some_and(|ready| ready.ns == woken.0));
        let waker = waker.map_or(NO_STACK, |waker| waker.1);
        self.runs.switch(event, cx, asked, waker);
        if !asked {
            self.long_wait(event, cx, waker);
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        self.runs.end(end.span_ns.1, &end.model.cpus);
        let mut all: Vec<Followed> = Vec::new();
        for stretch in end.inputs.all::<Stretch>() {
            let (from, to) = (stretch.from_ns.max(end.span_ns.0), stretch.to_ns.min(end.span_ns.1));
            for utid in self.threads_of(stretch, end, from, to) {
                if self.links >= self.most_links() {
                    self.beyond += 1;
                    continue;
                }
                let walked = path(&self.runs.threads, &end.model.switches, utid, from, to);
                self.links += walked.links.len();
                all.push(Followed { origin: "asked", utid, from, to, walked });
            }
        }
        all.append(&mut self.found);
        let mut classes = WaitClasses::default();
        for wait in std::mem::take(&mut self.waits).into_values().flatten() {
            let class = classes.class(end, wait.reason, wait.ticket, wait.waker);
            if let Some(origin) = origin_of(class) {
                all.push(Followed { origin, ..wait.followed });
            }
        }
        end.ledger.count(&PATHS_BEYOND_LIMIT, self.beyond);
        // A session that was stopped or taken: what threads did last goes on for nobody knows how long.
        let (_, ceased) = end.model.cpus.observed(end.span_ns);
        for (path_id, path) in all.into_iter().enumerate() {
            let links = forks::decide(path.walked, end, &mut classes);
            let links = until(ceased, path.utid, path.from, path.to, links);
            let whole = path.to.saturating_sub(path.from).max(1);
            for (position, link) in links.iter().enumerate() {
                let class = (link.kind == Kind::Wait)
                    .then(|| classes.class(end, link.reason.unwrap_or(u8::MAX), link.ticket, NO_STACK));
                self.rows.push(CriticalPathRow {
                    path_id: path_id as i32,
                    origin: end.strings.intern(path.origin),
                    of_utid: path.utid as i32,
                    position: position as i32,
                    depth: link.depth,
                    start_ns: link.from,
                    dur_ns: link.to.saturating_sub(link.from),
                    kind: end.strings.intern(link.kind.name()),
                    upid: end.model.upid_of(link.utid).map(|u| u as i32),
                    utid: link.utid as i32,
                    cpu: link.cpu.map(i32::from),
                    displaced_by_utid: link.displaced_by.map(|u| u as i32),
                    interrupted_ns: link.interrupted,
                    interrupted_by: link.routine.map(PlaceId::name_later),
                    wait_reason: link.wait_reason().map(|name| end.strings.intern(name)),
                    wait_class: class.map(|class| end.strings.intern(class.name())),
                    readied_in_dpc: (link.kind == Kind::Wait).then_some(link.in_dpc),
                    percent: 100.0 * link.to.saturating_sub(link.from) as f64 / whole as f64,
                    stack_id: Some(link.ticket),
                });
            }
        }
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.modules_of(&mut self.rows, "interrupted_by")?;
        Ok(vec![self.rows.into()])
    }
}

/// Why the path of a long wait is worth looking at; nothing if the thread had no work.
fn origin_of(class: WaitClass) -> Option<&'static str> {
    match class {
        WaitClass::Lock => Some("lock wait"),
        WaitClass::Call => Some("call wait"),
        WaitClass::Object | WaitClass::LockOrCondition | WaitClass::Io | WaitClass::Other => {
            Some("other wait")
        }
        _ => None,
    }
}

impl Paths {
    /// Pieces that all paths may have together.
    fn most_links(&self) -> usize {
        self.runs.seen.saturating_mul(LINKS_PER_RUN).clamp(MOST_LINKS, MOST_LINKS_IN_ALL)
    }

    /// The path of a thread that ends now.
    fn follow(
        &mut self,
        origin: &'static str,
        utid: u32,
        from: i64,
        event: &Event<'_>,
        to: i64,
        cx: &mut Context<'_>,
    ) -> Option<Followed> {
        if self.links >= self.most_links() {
            self.beyond += 1;
            return None;
        }
        self.runs.look_at_open(event, cx);
        let walked = path(&self.runs.threads, &cx.model.switches, utid, from, to);
        self.links += walked.links.len();
        Some(Followed { origin, utid, from, to, walked })
    }

    /// Keeps the stack of the thread that ends a wait which may be followed: what the wait was for may stand there alone.
    fn wake(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(utid) = cx.model.switches.readied else { return };
        let long = |out: &Out| event.ns.saturating_sub(out.ns) >= MIN_WAIT_NS;
        let Some(out) = cx.model.switches.out(utid).filter(long) else { return };
        if out.state == WAITING && wait_class::of_object(wait_class::of_reason(out.reason)) {
            let ticket = cx.stack_ticket_if_recorded(event, None, None);
            self.wakers.insert(utid, (event.ns, ticket));
        }
    }

    /// Follows the wait that a context switch has ended if another thread ended it and it is one of the longest of its kind.
    fn long_wait(&mut self, event: &Event<'_>, cx: &mut Context<'_>, waker: i32) {
        let switch = cx.model.switches.current;
        let (Some(wait_ns), Some(ready_ns), Some(prev)) = (switch.wait_ns, switch.ready_ns, switch.prev)
        else {
            return;
        };
        let ended_by_thread = switch.ready.is_some_and(|ready| ready.by.is_some());
        if wait_ns < MIN_WAIT_NS
            || !ended_by_thread
            || origin_of(wait_class::of_reason(prev.reason)).is_none()
        {
            return;
        }
        let utid = switch.new_utid;
        let upid = cx.model.upid_of(utid);
        let key = (upid, if upid.is_some() { u32::MAX } else { utid }, prev.reason);
        let length = |wait: &LongWait| wait.followed.to.saturating_sub(wait.followed.from);
        let shortest = match self.waits.get(&key) {
            Some(waits) if waits.len() >= WAITS_PER_REASON => {
                let shortest = waits.iter().enumerate().min_by_key(|(_, wait)| length(wait));
                match shortest.map(|(at, wait)| (at, length(wait))) {
                    Some((at, length)) if length < wait_ns => Some(at),
                    _ => return,
                }
            }
            None if self.waits.len() >= MAX_WAIT_GROUPS => return,
            _ => None,
        };
        if self.walked >= self.most_links().saturating_mul(MAX_WALKS) {
            self.beyond += 1;
            return;
        }
        let to = event.ns.saturating_sub(ready_ns);
        let from = to.saturating_sub(wait_ns);
        let Some(followed) = self.follow("wait", utid, from, event, to, cx) else { return };
        self.walked += followed.walked.links.len();
        let ticket = cx.stack_ticket_if_recorded(event, Some(switch.new_tid), Some(utid));
        let waits = self.waits.entry(key).or_default();
        if let Some(at) = shortest {
            let dropped = waits.swap_remove(at);
            self.links = self.links.saturating_sub(dropped.followed.walked.links.len());
        }
        waits.push(LongWait { followed, reason: prev.reason, ticket, waker });
    }

    /// Threads that a question means: the one with that id, or of the processes with that name the thread that ran
    /// longest in the stretch.
    fn threads_of(&self, stretch: &Stretch, end: &Finish<'_>, from: i64, to: i64) -> Vec<u32> {
        let threads = end.model.threads.all();
        let ran = |utid: u32| -> i64 {
            let pieces = self.runs.threads.get(utid as usize).into_iter().flatten();
            let part = |p: &Piece| p.to.min(to).saturating_sub(p.from.max(from)).max(0);
            pieces.map(part).fold(0, i64::saturating_add)
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
