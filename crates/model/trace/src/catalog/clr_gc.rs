//! .NET garbage collections: how often, which generation, why, and how long everything stood still.
//!
//! # How it is computed
//! A collection lasts from `GCStart` to `GCEnd`. The pause is the time during which the runtime held all
//! threads: from `GCSuspendEEBegin` to `GCRestartEEEnd`, the part that belongs to this collection. A background
//! collection runs beside the program and pauses it only for short parts; several pauses are added up.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::model::clr::RUNTIME;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// .NET garbage collections.
    pub table CLR_GC: ClrGcRow = "clr_gc" {
        version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64, net.4.5.x86 and gcevents"),
        /// Start of the collection.
        ts_ns: i64 [Ns, Time],
        /// From start to end; none if its end was not recorded.
        dur_ns: Option<i64> [Ns, Duration],
        /// Time during which the program stood still for it.
        pause_ns: i64 [Ns, Duration],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Number of the collection within its process.
        number: i64 [Count, Other],
        /// Generation collected.
        generation: i32 [None, Kind],
        /// Why: alloc_small, induced, low_memory, ...
        reason: Sym [None, Kind],
        /// blocking, background or blocking_during_background.
        kind: Sym [None, Kind],
        /// Heap after the collection, all generations, if recorded.
        heap_bytes: Option<i64> [Bytes, Bytes],
    }
}

const START: u8 = 1;
const END: u8 = 2;
const RESTART_END: u8 = 3;
const HEAP_STATS: u8 = 4;
const SUSPEND_BEGIN: u8 = 9;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CLR_GC],
    selects: &[
        Select::new(What::Manifest(RUNTIME, 1), START),
        Select::new(What::Manifest(RUNTIME, 2), END),
        Select::new(What::Manifest(RUNTIME, 3), RESTART_END),
        Select::new(What::Manifest(RUNTIME, 4), HEAP_STATS),
        Select::new(What::Manifest(RUNTIME, 9), SUSPEND_BEGIN),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Collections { rows: TableBuilder::new(memory), runtimes: HashMap::default() }),
};

/// Reasons by number (`GCReason` of the runtime's manifest).
const REASONS: [&str; 19] = [
    "alloc_small",
    "induced",
    "low_memory",
    "empty",
    "alloc_large",
    "out_of_space_small",
    "out_of_space_large",
    "induced_not_forced",
    "stress",
    "induced_low_memory",
    "induced_compacting",
    "low_memory_host",
    "pm_full_gc",
    "low_memory_host_blocking",
    "bgc_tuning_small",
    "bgc_tuning_large",
    "bgc_stepping",
    "induced_aggressive",
    "induced_aggressive_2",
];
const KINDS: [&str; 3] = ["blocking", "background", "blocking_during_background"];

/// A collection in progress.
struct Open {
    start: i64,
    number: i64,
    generation: i32,
    reason: u64,
    kind: u64,
    pause: i64,
    end: Option<i64>,
    heap: Option<i64>,
}

/// One runtime in one process.
#[derive(Default)]
struct Runtime {
    suspended: Option<i64>,
    open: Vec<Open>,
}

struct Collections {
    rows: TableBuilder<ClrGcRow>,
    /// By process and runtime instance.
    runtimes: HashMap<(u32, u16), Runtime>,
}

impl Collections {
    fn push(rows: &mut TableBuilder<ClrGcRow>, upid: u32, gc: &Open, strings: &mut etwhy_table::Strings) {
        let reason = REASONS.get(gc.reason as usize).copied().unwrap_or("other");
        let kind = KINDS.get(gc.kind as usize).copied().unwrap_or("other");
        rows.push(ClrGcRow {
            ts_ns: gc.start,
            dur_ns: gc.end.map(|end| end.saturating_sub(gc.start)),
            pause_ns: gc.pause,
            upid: Some(upid as i32),
            number: gc.number,
            generation: gc.generation,
            reason: strings.intern(reason),
            kind: strings.intern(kind),
            heap_bytes: gc.heap,
        });
    }
}

impl Analysis for Collections {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(upid) = cx.upid(event) else { return };
        let fields = event.fields();
        let instance = fields.u64("ClrInstanceID") as u16;
        let runtime = self.runtimes.entry((upid, instance)).or_default();
        let ns = event.ns;
        match event.tag {
            SUSPEND_BEGIN => runtime.suspended = Some(ns),
            START => {
                let number = fields.u64("Count") as i64;
                // .NET Framework 4.5.2 writes each start twice, as versions 1 and 2 of the event.
                if runtime.open.iter().any(|g| g.number == number && g.end.is_none()) {
                    return;
                }
                runtime.open.push(Open {
                    start: ns,
                    number,
                    generation: fields.u64("Depth") as i32,
                    reason: fields.u64("Reason"),
                    kind: fields.u64("Type"),
                    pause: 0,
                    end: None,
                    heap: None,
                });
            }
            END => {
                let number = fields.u64("Count") as i64;
                if let Some(gc) =
                    runtime.open.iter_mut().rev().find(|g| g.number == number && g.end.is_none())
                {
                    gc.end = Some(ns);
                }
            }
            HEAP_STATS => {
                let sum = [
                    "GenerationSize0",
                    "GenerationSize1",
                    "GenerationSize2",
                    "GenerationSize3",
                    "GenerationSize4",
                ]
                .iter()
                .map(|name| fields.u64(name) as i64)
                .fold(0i64, i64::saturating_add);
                if let Some(gc) = runtime.open.iter_mut().rev().find(|g| g.heap.is_none()) {
                    gc.heap = Some(sum);
                }
            }
            _ => {
                let pause = runtime.suspended.take().map_or(0, |s| ns.saturating_sub(s));
                // The pause belongs to the collection that is running, the innermost one if a background
                // collection runs too.
                if let Some(gc) = runtime.open.last_mut() {
                    gc.pause = gc.pause.saturating_add(pause);
                }
                let done: Vec<Open> = runtime.open.extract_if(.., |g| g.end.is_some()).collect();
                for gc in &done {
                    Collections::push(&mut self.rows, upid, gc, cx.strings);
                }
            }
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut left: Vec<(u32, Open)> = self
            .runtimes
            .drain()
            .flat_map(|((upid, _), r)| r.open.into_iter().map(move |g| (upid, g)))
            .collect();
        left.sort_unstable_by_key(|(upid, gc)| (gc.start, *upid));
        for (upid, gc) in left {
            Collections::push(&mut self.rows, upid, &gc, end.strings);
        }
        Ok(vec![self.rows.into()])
    }
}
