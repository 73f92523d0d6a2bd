//! Intervals: start and stop events of any provider, put together.
//!
//! # How it is computed
//! An event of any provider with opcode 1 (`win:Start`) begins an interval, the next one with opcode 2 (`win:Stop`), the
//! same provider and the same task ends it. TraceLogging has no tasks: there the name without `Start` or `Stop` at its
//! end counts. Which of several belong together is decided by, in this order, and told in `matched`:
//!
//! * `activity`: the activity id, if both events carry one and it is the same;
//! * `thread`: the thread, the innermost interval first;
//! * `process`: the process, if only one interval of that kind is open in it (work that begins on one thread and ends
//!   on another).
//!
//! Runtimes of .NET 4.5 write a start twice, in two versions: the same id with another version on the same thread is
//! the same start, and the fields are those of the second one.
//!
//! Intervals without an end are `unfinished`, ends without a start `no_start`. Kinds that never pair in the whole trace
//! (`ProcessStart` and `ProcessStop` are different tasks) are left out.
//!
//! # What fools it
//! A provider may use opcodes for something else. Where buffers are missing between start and stop, a pair of one
//! thread or process may be two halves of different ones: it is shown as `doubtful`, without a duration.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{INTERVALS_BEYOND_LIMIT, INTERVALS_DOUBTFUL};
use crate::event::{Context, Event, Select, What};
use crate::extended;
use crate::fields_text::FieldsText;
use crate::model::stack::NO_STACK;
use etwhy_base::Guid;
use etwhy_table::{Strings, Sym, TableBuilder, define_table};
use foldhash::{HashMap, HashSet};

define_table! {
    /// Start and stop events of all providers, as intervals.
    pub table INTERVAL: IntervalRow = "interval" {
        version: 1, evidence: Verified("pairs of the corpus, put together independently from records read by dissect.etl"),
        /// Start; none if it was before the trace.
        start_ns: Option<i64> [Ns, Time],
        /// Stop; none if it was not recorded.
        ts_ns: Option<i64> [Ns, Time],
        /// How long it took.
        dur_ns: Option<i64> [Ns, Duration],
        /// Provider.
        provider: Sym [None, Name],
        /// Task, or the common name of the two events.
        name: Sym [None, Name],
        /// complete, unfinished, no_start or doubtful.
        state: Sym [None, Kind],
        /// How the two were put together: activity, thread or process.
        matched: Option<Sym> [None, Kind],
        /// Process of the start.
        upid: Option<i32> [None, Process],
        /// Thread of the start.
        utid: Option<i32> [None, Thread],
        /// Thread of the stop (number of table `thread`), if it is another one.
        stop_utid: Option<i32> [None, Other],
        /// Intervals of the same thread that were open at the start.
        depth: i32 [Count, Other],
        /// Activity, if the events have one.
        activity: Option<Sym> [None, Guid],
        /// Activity that it belongs to, if the start says.
        parent_activity: Option<Sym> [None, Guid],
        /// Fields of the start as a JSON object.
        start_fields: Option<Box<str>> [None, Message],
        /// Fields of the stop as a JSON object.
        stop_fields: Option<Box<str>> [None, Message],
        /// Stack of the start (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&INTERVAL],
    selects: &[Select::new(What::AnyUser, 0)],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Intervals {
            rows: TableBuilder::new(memory),
            kinds: HashMap::default(),
            names: Vec::new(),
            open: HashMap::default(),
            count: 0,
            depths: HashMap::default(),
            orphans: Vec::new(),
            paired: HashSet::default(),
            texts: FieldsText::default(),
        })
    },
};

/// `win:Start` and `win:Stop` (winmeta.xml).
const START: u8 = 1;
const STOP: u8 = 2;

/// Intervals that are open at a time, and ends that wait for the decision whether their kind pairs at all.
const MAX_OPEN: usize = 262_144;
const MAX_ORPHANS: usize = 262_144;

/// Open intervals of one kind and process that an end is compared with, the last ones first. Without a limit a hostile
/// trace makes every end look at all starts before it.
const MAX_LOOKED_AT: usize = 4096;

/// Provider, and task or name.
type Kind = (Guid, u16, Sym);

struct Intervals {
    rows: TableBuilder<IntervalRow>,
    kinds: HashMap<Kind, u32>,
    /// Names of the kinds: provider, interval.
    names: Vec<(Sym, Sym)>,
    /// Open intervals by kind and process, in the order of their starts.
    open: HashMap<(u32, Option<u32>), Vec<Open>>,
    count: usize,
    /// Open intervals of each thread.
    depths: HashMap<u32, i32>,
    orphans: Vec<(u32, Half)>,
    paired: HashSet<u32>,
    texts: FieldsText,
}

/// One event of the two.
struct Half {
    ns: i64,
    upid: Option<u32>,
    utid: Option<u32>,
    activity: Option<Guid>,
    parent: Option<Guid>,
    fields: Box<str>,
}

struct Open {
    half: Half,
    /// Id and version of the event.
    event: (u16, u16),
    stack: i32,
    depth: i32,
}

impl Intervals {
    fn kind(&mut self, event: &Event<'_>, cx: &mut Context<'_>) -> Option<u32> {
        let provider = event.record.guid()?;
        let task = event.record.task();
        let name = interval_name(event.names.1);
        let name_sym = cx.sym(name);
        // Tasks number the operations of a provider; without them names do.
        let key = (provider, task, if task == 0 { name_sym } else { Sym::default() });
        let next = self.names.len() as u32;
        let kind = *self.kinds.entry(key).or_insert(next);
        if kind == next {
            self.names.push((cx.sym(event.names.0), name_sym));
        }
        Some(kind)
    }

    fn half(&mut self, event: &Event<'_>, cx: &mut Context<'_>) -> Half {
        let record = event.record;
        let (fields, _) = self.texts.json(event, |_, _, _| None::<((), usize)>);
        Half {
            ns: event.ns,
            upid: cx.upid(event),
            utid: cx.utid(event),
            activity: record.activity_id().filter(|a| a.0 != [0; 16]),
            parent: extended::related_activity(record).filter(|a| a.0 != [0; 16]),
            fields,
        }
    }

    /// The open interval that an end belongs to, and how that is known.
    fn take(&mut self, kind: u32, stop: &Half) -> Option<(Open, &'static str)> {
        let list = self.open.get_mut(&(kind, stop.upid))?;
        let first = list.len().saturating_sub(MAX_LOOKED_AT);
        let last_where = |wanted: &dyn Fn(&Open) -> bool| {
            list.iter().enumerate().skip(first).rev().find(|(_, o)| wanted(o)).map(|(at, _)| at)
        };
        let activity = last_where(&|o| o.half.activity.is_some() && o.half.activity == stop.activity);
        // Two different activities are two different operations, whatever the thread.
        let free = |o: &Open| o.half.activity.is_none() || stop.activity.is_none();
        let thread = || last_where(&|o| o.half.utid == stop.utid && stop.utid.is_some() && free(o));
        let only = || (list.len() == 1 && list.first().is_some_and(free)).then_some(0);
        let (at, how) = match activity {
            Some(at) => (at, "activity"),
            None => match thread() {
                Some(at) => (at, "thread"),
                None => (only()?, "process"),
            },
        };
        let open = list.remove(at);
        if list.is_empty() {
            self.open.remove(&(kind, stop.upid));
        }
        self.count -= 1;
        if let Some(depth) = open.half.utid.and_then(|u| self.depths.get_mut(&u)) {
            *depth -= 1;
        }
        Some((open, how))
    }

    fn push(
        &mut self,
        kind: u32,
        start: Option<&Open>,
        stop: Option<&Half>,
        (state, matched): (&str, Option<&str>),
        strings: &mut Strings,
    ) {
        let Some(&(provider, name)) = self.names.get(kind as usize) else { return };
        let half = start.map(|o| &o.half).or(stop);
        let mut guid = |g: Option<Guid>| g.map(|g| strings.intern(&g.to_string()));
        let activity = guid(half.and_then(|h| h.activity));
        let parent_activity = guid(half.and_then(|h| h.parent));
        let ends = start.map(|o| o.half.ns).zip(stop.map(|s| s.ns)).filter(|_| state == "complete");
        let stop_utid = stop.and_then(|s| s.utid).filter(|u| half.and_then(|h| h.utid) != Some(*u));
        self.rows.push(IntervalRow {
            start_ns: start.map(|o| o.half.ns),
            ts_ns: stop.map(|s| s.ns),
            dur_ns: ends.map(|(start, end)| end.saturating_sub(start).max(0)),
            provider,
            name,
            state: strings.intern(state),
            matched: matched.map(|m| strings.intern(m)),
            upid: half.and_then(|h| h.upid).map(|u| u as i32),
            utid: half.and_then(|h| h.utid).map(|u| u as i32),
            stop_utid: stop_utid.map(|u| u as i32),
            depth: start.map_or(0, |o| o.depth),
            activity,
            parent_activity,
            start_fields: start.map(|o| o.half.fields.clone()),
            stop_fields: stop.map(|s| s.fields.clone()),
            stack_id: Some(start.map_or(NO_STACK, |o| o.stack)),
        });
    }
}

/// What start and stop have in common.
fn interval_name(name: &str) -> &str {
    let cut =
        |suffixes: [&str; 3]| suffixes.iter().find_map(|s| name.strip_suffix(s)).filter(|n| !n.is_empty());
    cut(["/Start", "/win:Start", "Start"]).or_else(|| cut(["/Stop", "/win:Stop", "Stop"])).unwrap_or(name)
}

impl Analysis for Intervals {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let opcode = event.record.opcode();
        if opcode != START && opcode != STOP {
            return;
        }
        let Some(kind) = self.kind(event, cx) else { return };
        let half = self.half(event, cx);
        if opcode == START {
            if self.count >= MAX_OPEN {
                cx.ledger.count(&INTERVALS_BEYOND_LIMIT, 1);
                return;
            }
            let key = (kind, half.upid);
            let id = (event.record.id(), event.record.version());
            // TraceLogging events all have id 0.
            let twin = self.open.get_mut(&key).and_then(|list| list.last_mut()).filter(|last| {
                last.half.utid == half.utid && last.event.0 == id.0 && id.0 != 0 && last.event.1 != id.1
            });
            if let Some(twin) = twin {
                twin.half.fields = half.fields;
                return;
            }
            let stack = cx.stack_ticket(event, event.tid_pid().map(|(tid, _)| tid), half.utid);
            let depth = half.utid.map_or(0, |u| {
                let depth = self.depths.entry(u).or_default();
                *depth += 1;
                *depth - 1
            });
            self.count += 1;
            self.open.entry(key).or_default().push(Open { half, event: id, stack, depth });
            return;
        }
        match self.take(kind, &half) {
            Some((open, how)) => {
                let doubtful = how != "activity" && cx.model.cpus.doubtful(open.half.ns, half.ns);
                cx.ledger.count(&INTERVALS_DOUBTFUL, u64::from(doubtful));
                self.paired.insert(kind);
                let state = if doubtful { "doubtful" } else { "complete" };
                self.push(kind, Some(&open), Some(&half), (state, Some(how)), cx.strings);
            }
            None if self.orphans.len() < MAX_ORPHANS => self.orphans.push((kind, half)),
            None => cx.ledger.count(&INTERVALS_BEYOND_LIMIT, 1),
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let open = std::mem::take(&mut self.open);
        let mut left: Vec<(u32, Open)> =
            open.into_iter().flat_map(|((kind, _), list)| list.into_iter().map(move |o| (kind, o))).collect();
        left.sort_by_key(|(kind, o)| (o.half.ns, *kind, o.half.utid, o.half.activity));
        for (kind, open) in left.iter().filter(|(kind, _)| self.paired.contains(kind)).collect::<Vec<_>>() {
            self.push(*kind, Some(open), None, ("unfinished", None), end.strings);
        }
        for (kind, half) in std::mem::take(&mut self.orphans) {
            if self.paired.contains(&kind) {
                self.push(kind, None, Some(&half), ("no_start", None), end.strings);
            }
        }
        end.stacks_of(&mut self.rows, "stack_id")?;
        Ok(vec![self.rows.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_start_and_stop_have_the_rest_in_common() {
        for (start, stop, common) in [
            ("GC/Start", "GC/Stop", "GC"),
            ("RequestStart", "RequestStop", "Request"),
            ("Request", "Request", "Request"),
            ("Start", "Stop", "Start"),
        ] {
            assert_eq!(interval_name(start), common);
            assert_eq!(interval_name(stop), if start == "Start" { "Stop" } else { common });
        }
    }
}
