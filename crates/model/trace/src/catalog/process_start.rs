//! Process starts: each with its ordinal among the starts of its program, so that a start-up that grows with the
//! number of starts before it shows, and how many start and end each second.
//!
//! # How it is computed
//! Only processes whose start lies in the trace, or in the part of it that is looked at. `n` counts the starts of one image name from 1, `earlier` all
//! starts before this one. Three durations tell how long a start took, see table `process` for two of them:
//! `load_ns` (initial image loads), `startup_ns` (first request for a window message) and `dur_ns`, the lifetime,
//! which is the cost of a start for programs that do little else (compilers, scripts, build tools). A law such as
//! `dur_ns = a + b * n` is fitted to the rows of one name.
//!
//! # What fools it
//! A lifetime contains the work, which may grow for other reasons than the start. Starts of a name that overlap
//! share processors and disks: `alive` says how many of the same name ran already.

use super::process::{initial_loads, lifetime, name_and_path};
use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

define_table! {
    /// Processes that started within the trace, in order.
    pub table PROCESS_START: ProcessStartRow = "process_start" {
        sorted_by: "start_ns", version: 1, evidence: Documented,
        /// Start.
        start_ns: i64 [Ns, Time],
        /// Process (table `process`).
        upid: i32 [None, Process],
        /// Image name.
        name: Sym [None, Name],
        /// Image name of the parent, if it is known.
        parent: Option<Sym> [None, Name],
        /// Instance of the parent.
        parent_upid: Option<i32> [None, Other],
        /// Which start of this name in the trace it is, from 1.
        n: i32 [Count, Other],
        /// Starts of any process before this one.
        earlier: i32 [Count, Other],
        /// Processes of this name that were alive at that moment.
        alive: i32 [Count, Other],
        /// Time since the last start of this name.
        since_last_ns: Option<i64> [Ns, Duration],
        /// Lifetime, if it ended within the trace.
        dur_ns: Option<i64> [Ns, Duration],
        /// From start to the end of the initial image loads.
        load_ns: Option<i64> [Ns, Duration],
        /// From start to the first request for a window message, where recorded.
        startup_ns: Option<i64> [Ns, Duration],
        /// Images that it loaded, if the trace tells of any.
        images: Option<i32> [Count, Count],
    }
}

define_table! {
    /// Starts and ends of processes in each second, by name and parent. Seconds without any have no row.
    pub table PROCESS_RATE: ProcessRateRow = "process_rate" {
        sorted_by: "start_ns", version: 1, evidence: Documented,
        /// Start of the second.
        start_ns: i64 [Ns, Time],
        /// Image name.
        name: Sym [None, Name],
        /// Image name of the parent, if it is known.
        parent: Option<Sym> [None, Name],
        /// Processes that started.
        started: i64 [Count, Count],
        /// Processes that ended.
        ended: i64 [Count, Count],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&PROCESS_START, &PROCESS_RATE],
    selects: &[],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Starts { rows: TableBuilder::new(memory), rates: TableBuilder::new(memory) }),
};

struct Starts {
    rows: TableBuilder<ProcessStartRow>,
    rates: TableBuilder<ProcessRateRow>,
}

const SECOND: i64 = 1_000_000_000;

/// What is counted while the starts of one name go by.
#[derive(Default)]
struct Seen {
    starts: i32,
    last_ns: Option<i64>,
    /// When those that are alive will end, as far as they do.
    ends: BinaryHeap<Reverse<i64>>,
    alive: i32,
}

impl Analysis for Starts {
    fn event(&mut self, _: &Event<'_>, _: &mut Context<'_>) {}

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let unknown = end.strings.intern("[unknown]");
        let parents = end.model.processes.parents();
        let count = end.model.processes.all().len() as u32;
        let names: Vec<Sym> = (0..count).map(|u| name_and_path(end, u).0.unwrap_or(unknown)).collect();
        let name_of = |upid: u32| names.get(upid as usize).copied().unwrap_or(unknown);
        let parent_of = |upid: u32| parents.get(upid as usize).copied().flatten();
        let mut seen: HashMap<Sym, Seen> = HashMap::default();
        let mut rates: BTreeMap<(i64, Sym, Option<Sym>), (i64, i64)> = BTreeMap::new();
        let mut starts: Vec<(i64, u32)> = Vec::new();
        // The model knows what was before a part of a trace and what came behind it; rows are those of the part.
        let (from_ns, to_ns) = end.span_ns;
        let inside = |ns: i64| (from_ns..=to_ns).contains(&ns);
        for (upid, process) in end.model.processes.all().iter().enumerate() {
            let upid = upid as u32;
            let name = name_of(upid);
            let parent = parent_of(upid).map(&name_of);
            if let Some(start) = process.start_ns {
                starts.push((start, upid));
                if inside(start) {
                    rates.entry((start.div_euclid(SECOND), name, parent)).or_default().0 += 1;
                }
            } else if process.described || process.end_ns.is_some() {
                let seen = seen.entry(name).or_default();
                seen.add(process.end_ns);
            }
            if let Some(end) = process.end_ns.filter(|&ns| inside(ns)) {
                rates.entry((end.div_euclid(SECOND), name, parent)).or_default().1 += 1;
            }
        }
        starts.sort_unstable();
        for (earlier, &(start, upid)) in starts.iter().enumerate() {
            let Some(process) = end.model.processes.get(upid) else { continue };
            let name = name_of(upid);
            let seen = seen.entry(name).or_default();
            let alive = seen.alive(start);
            seen.starts += 1;
            seen.add(process.end_ns);
            let last_ns = seen.last_ns.replace(start);
            if !inside(start) {
                continue;
            }
            let (load, images) = initial_loads(end.model.images.for_process(Some(upid)), end, process);
            self.rows.push(ProcessStartRow {
                start_ns: start,
                upid: upid as i32,
                name,
                parent: parent_of(upid).map(&name_of),
                parent_upid: parent_of(upid).map(|p| p as i32),
                n: seen.starts,
                earlier: i32::try_from(earlier).unwrap_or(i32::MAX),
                alive,
                since_last_ns: last_ns.map(|last| start.saturating_sub(last)),
                dur_ns: lifetime(process),
                load_ns: load,
                startup_ns: process.pump_ns.map(|p| p.saturating_sub(start).max(0)),
                images,
            });
        }
        for ((second, name, parent), (started, ended)) in rates {
            self.rates.push(ProcessRateRow {
                start_ns: second.saturating_mul(SECOND),
                name,
                parent,
                started,
                ended,
            });
        }
        Ok(vec![self.rows.into(), self.rates.into()])
    }
}

impl Seen {
    /// How many are alive at `ns`; moments come in order.
    fn alive(&mut self, ns: i64) -> i32 {
        while self.ends.peek().is_some_and(|end| end.0 <= ns) {
            self.ends.pop();
            self.alive -= 1;
        }
        self.alive
    }

    /// One more lives, until `end` if that is known.
    fn add(&mut self, end: Option<i64>) {
        self.alive = self.alive.saturating_add(1);
        self.ends.extend(end.map(Reverse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_are_counted() {
        let mut seen = Seen::default();
        assert_eq!(seen.alive(0), 0);
        seen.add(Some(10));
        seen.add(Some(5));
        seen.add(None);
        assert_eq!(seen.alive(4), 3);
        assert_eq!(seen.alive(5), 2);
        assert_eq!(seen.alive(100), 1);
    }
}
