//! Who had the processor while a thread was ready.
//!
//! # How it is computed
//! A thread that comes on a processor was ready before, for as long as table `thread_time` counts it. What ran on this processor in that time had
//! what the thread waited for: runs of other threads, without the DPCs and ISRs that interrupted them, and these under the module whose routine
//! took most of each run. Times of less than a millisecond are left out: waking a thread takes some microseconds on every machine.
//!
//! # What fools it
//! Windows may have looked for a free processor elsewhere meanwhile; the thread is charged to the one on which it ran at last, which is right
//! where it was bound to it or all were busy. Time that the idle thread had is time in which something else kept the thread from running (a
//! limit of its job, a processor that woke slowly). Of a time in the queue only the last 1,024 runs of the processor are charged.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::READY_BEYOND_LIMIT;
use crate::event::{Context, Event, Select};
use crate::model::place::PlaceId;
use crate::model::ran::{LatestRuns, Ran};
use etwhy_base::aside::{Aside, Work};
use etwhy_decode::kernel::events::Thread;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// Time that threads were ready, by who had the processor meanwhile.
    pub table READY_COST: ReadyCostRow = "ready_cost" {
        sorted_by: "utid", version: 1,
        /// Process of the thread that was ready.
        upid: Option<i32> [None, Process],
        /// Thread that was ready.
        utid: i32 [None, Thread],
        /// Process that had the processor (the idle process, if nobody had it); null for DPCs and ISRs.
        by_upid: Option<i32> [None, Other],
        /// Module whose DPCs and ISRs had it; null for threads.
        by_module: Option<Sym> [None, Name],
        /// Processor of these DPCs and ISRs; null for threads.
        cpu: Option<i32> [None, Cpu],
        /// Times in the queue in which it had the processor.
        count: i64 [Count, Count],
        /// Time.
        ready_ns: i64 [Ns, Duration],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&READY_COST],
    selects: &[Select::kernel(Thread::CSwitch, &["NewThreadId", "OldThreadId"])],
    stacks: false,
    on_demand: false,
    new: |memory| {
        let sums = Aside::new(Sums::default(), memory.is_threaded());
        Box::new(Ready { rows: TableBuilder::new(memory), sums })
    },
};

/// Shorter times in the queue are not charged.
const MIN_READY_NS: i64 = 1_000_000;

/// Pairs of a thread and of what it was ready behind.
const MAX_PAIRS: usize = 1 << 18;

/// What had the processor.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Thread(u32),
    Interrupts(PlaceId, u16),
}

struct Ready {
    rows: TableBuilder<ReadyCostRow>,
    sums: Aside<Sums>,
}

/// A context switch.
struct Switched {
    cpu: u16,
    ns: i64,
    /// What ran until then.
    run: Option<Ran>,
    /// The place of the routine that interrupted it most.
    interrupted_by: Option<PlaceId>,
    /// The thread that came, and for how long it was ready, if that was long.
    ready: Option<(u32, i64)>,
}

#[derive(Default)]
struct Sums {
    /// Latest runs of each processor.
    ran: LatestRuns,
    /// Places of the routines that interrupted runs.
    places: HashMap<u64, PlaceId>,
    /// Number and time by thread and by what had the processor.
    sums: HashMap<(u32, By), (i64, i64)>,
    /// Times that are in no sum.
    beyond: u64,
}

impl Work for Sums {
    type Batch = Vec<Switched>;

    fn work(&mut self, batch: &mut Vec<Switched>) {
        batch.drain(..).for_each(|one| self.switch(one));
    }
}

impl Sums {
    fn switch(&mut self, one: Switched) {
        if let Some(run) = one.run {
            if let (Some(routine), Some(place)) = (run.routine, one.interrupted_by) {
                self.places.insert(routine, place);
            }
            self.ran.push(one.cpu, run);
        }
        let Some((utid, ready)) = one.ready else { return };
        let during: Vec<_> = self.ran.during(one.cpu, one.ns.saturating_sub(ready), one.ns).collect();
        for (run, own, interrupted) in during {
            self.add(utid, By::Thread(run.utid), own);
            let place = run.routine.filter(|_| interrupted > 0).and_then(|r| self.places.get(&r).copied());
            if let Some(place) = place {
                self.add(utid, By::Interrupts(place, one.cpu), interrupted);
            }
        }
    }

    fn add(&mut self, utid: u32, by: By, ns: i64) {
        if ns <= 0 {
            return;
        }
        if self.sums.len() >= MAX_PAIRS && !self.sums.contains_key(&(utid, by)) {
            self.beyond += 1;
            return;
        }
        let sum = self.sums.entry((utid, by)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(ns));
    }
}

impl Analysis for Ready {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(_), Some(_)) = (event.u64(0), event.u64(1)) else { return };
        let switch = cx.model.switches.current;
        let run = Ran::ended_by(&switch, event.ns);
        let routine = run.and_then(|run| run.routine);
        let one = Switched {
            cpu: event.record.cpu,
            ns: event.ns,
            run,
            interrupted_by: routine.map(|routine| cx.place(None, routine)),
            ready: switch
                .ready_ns
                .filter(|&ns| ns >= MIN_READY_NS && switch.new_tid != 0)
                .map(|ns| (switch.new_utid, ns)),
        };
        self.sums.give(one, Sums::switch);
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let taken = self.sums.into_done();
        end.ledger.count(&READY_BEYOND_LIMIT, taken.beyond);
        /// Whose thread was ready, and the module with its processor or the process that had the processor.
        type Key = (u32, Option<PlaceId>, Option<u16>, Option<i32>);
        let upid_of = |utid: u32| end.model.upid_of(utid).map(|upid| upid as i32);
        let mut sums: BTreeMap<Key, (i64, i64)> = BTreeMap::new();
        for ((utid, by), (count, ns)) in taken.sums {
            let (place, cpu, upid) = match by {
                By::Thread(by) => (None, None, upid_of(by)),
                By::Interrupts(place, cpu) => (Some(place), Some(cpu), None),
            };
            let sum = sums.entry((utid, place, cpu, upid)).or_default();
            *sum = (sum.0 + count, sum.1.saturating_add(ns));
        }
        for ((utid, place, cpu, by_upid), (count, ready_ns)) in sums {
            self.rows.push(ReadyCostRow {
                upid: upid_of(utid),
                utid: utid as i32,
                by_upid,
                by_module: place.map(PlaceId::name_later),
                cpu: cpu.map(i32::from),
                count,
                ready_ns,
            });
        }
        end.modules_of(&mut self.rows, "by_module")?;
        Ok(vec![self.rows.into()])
    }
}
