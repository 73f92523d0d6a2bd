//! What DPCs and ISRs cost, by driver, routine and processor, and how their durations are spread.
//!
//! # How it is computed
//! From the same events as `dpc` and `isr`. Counts and sums are exact, percentiles are within 0.4 %. Averages follow from
//! counts and sums; a driver that makes few long DPCs and one that makes many short ones may cost the same.
//!
//! # What fools it
//! The sum of `total_ns` over rows counts an ISR inside a DPC twice; the sum of `exclusive_ns` counts nothing twice. A short DPC that
//! the ISR of another driver interrupts is long by its begin and end, so limits are compared with what it took itself: `over_limit`,
//! `over_limit_ns` and `max_exclusive_ns`. Percentiles, `max_ns` and the histogram are inclusive, as in xperf's report.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select, What};
use crate::histogram::Histogram;
use crate::model::place::PlaceId;
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_table::{Sym, TableBuilder, define_table};
use std::collections::BTreeMap;

define_table! {
    /// DPC and ISR time by module, routine and processor.
    ///
    /// `level` says what a row sums over: `all`, `module`, `routine`, `cpu`, or `routine_cpu`. Take rows of one
    /// level only.
    pub table INTERRUPT_COST: InterruptCostRow = "interrupt_cost" {
        version: 2,
        /// What the row sums over: all, module, routine, cpu, routine_cpu.
        level: Sym [None, Kind],
        /// dpc or isr.
        class: Sym [None, Kind],
        /// Module, at levels that have one.
        module: Option<Sym> [None, Name],
        /// Routine, `module!function`, at levels that have one.
        routine: Option<Sym> [None, Name],
        /// Logical processor, at levels that have one.
        cpu: Option<i32> [None, Cpu],
        /// How many.
        count: i64 [Count, Count],
        /// Sum of durations, with what interrupted them.
        total_ns: i64 [Ns, Duration],
        /// Sum without what interrupted them.
        exclusive_ns: i64 [Ns, Duration],
        /// Mean duration.
        mean_ns: i64 [Ns, Duration],
        /// Half of them took no longer.
        p50_ns: i64 [Ns, Duration],
        /// 95 % took no longer.
        p95_ns: i64 [Ns, Duration],
        /// 99 % took no longer.
        p99_ns: i64 [Ns, Duration],
        /// The longest.
        max_ns: i64 [Ns, Duration],
        /// The longest without what interrupted it.
        max_exclusive_ns: i64 [Ns, Duration],
        /// Longer than Microsoft's limit, without what interrupted them: 100 µs for a DPC, 25 µs for an ISR.
        over_limit: i64 [Count, Count],
        /// Duration of those, without what interrupted them.
        over_limit_ns: i64 [Ns, Duration],
        /// The longest without what interrupted it, but for threaded DPCs and ISRs at passive level, which run in threads. Null in extracts and stores of
        /// before it was known.
        max_raised_ns: Option<i64> [Ns, Duration],
    }
}

define_table! {
    /// Durations of DPCs and ISRs in classes, by module.
    ///
    /// Class borders lie at the limits of 25 µs (ISR) and 100 µs (DPC), and at powers of two between. Duration is
    /// the inclusive one, as xperf's `dpcisr` report counts it.
    pub table DPC_HISTOGRAM: DpcHistogramRow = "dpc_histogram" {
        version: 1,
        /// dpc or isr.
        class: Sym [None, Kind],
        /// Module; empty for all modules together.
        module: Option<Sym> [None, Name],
        /// Durations above this.
        above_ns: i64 [Ns, Duration],
        /// Durations up to this; empty in the last class.
        up_to_ns: Option<i64> [Ns, Duration],
        /// How many.
        count: i64 [Count, Count],
        /// Their durations.
        total_ns: i64 [Ns, Duration],
        /// The class lies above Microsoft's limit.
        over_limit: bool [None, Flag],
    }
}

/// "DPCs should not run longer than 100 microseconds": Microsoft, WDK, "Example 15: Measuring DPC/ISR Time".
pub const DPC_LIMIT_NS: i64 = 100_000;
/// "ISRs should not run longer than 25 microseconds": the same page.
pub const ISR_LIMIT_NS: i64 = 25_000;
/// Upper borders of duration classes, µs.
const BORDERS_US: [i64; 17] = [1, 2, 4, 8, 16, 25, 32, 64, 100, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

const FIELDS: &[&str] = &["InitialTime", "Routine"];
const IS_DPC: u8 = 0;
const IS_ISR: u8 = 1;
/// Beside them: it runs in a thread, at passive level.
const IN_THREAD: u8 = 2;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&INTERRUPT_COST, &DPC_HISTOGRAM],
    selects: &[
        Select::with(What::Kernel(PerfInfo::ThreadedDPC), IS_DPC | IN_THREAD, FIELDS),
        Select::with(What::Kernel(PerfInfo::DPC), IS_DPC, FIELDS),
        Select::with(What::Kernel(PerfInfo::TimerDPC), IS_DPC, FIELDS),
        Select::with(What::Kernel(PerfInfo::IOTimer), IS_DPC, FIELDS),
        Select::with(What::Kernel(PerfInfo::ISR_MSI), IS_ISR, FIELDS),
        Select::with(What::Kernel(PerfInfo::ISR), IS_ISR, FIELDS),
        Select::with(What::Kernel(PerfInfo::ISR_PASS), IS_ISR | IN_THREAD, FIELDS),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Costs {
            by: BTreeMap::new(),
            costs: TableBuilder::new(memory),
            histogram: TableBuilder::new(memory),
        })
    },
};

/// Durations of one routine on one processor, or of several.
#[derive(Clone, Debug, Default)]
struct Cost {
    durations: Histogram,
    exclusive_ns: i64,
    max_exclusive_ns: i64,
    max_raised_ns: i64,
    over: (i64, i64),
    classes: BTreeMap<usize, (i64, i64)>,
}

impl Cost {
    fn add(&mut self, dur: i64, exclusive: i64, limit: i64, in_thread: bool) {
        self.durations.add(dur);
        self.exclusive_ns = self.exclusive_ns.saturating_add(exclusive);
        self.max_exclusive_ns = self.max_exclusive_ns.max(exclusive);
        if !in_thread {
            self.max_raised_ns = self.max_raised_ns.max(exclusive);
        }
        if exclusive > limit {
            self.over = (self.over.0 + 1, self.over.1.saturating_add(exclusive));
        }
        let class = BORDERS_US.partition_point(|border| border * 1000 < dur);
        let class = self.classes.entry(class).or_default();
        *class = (class.0 + 1, class.1.saturating_add(dur));
    }

    fn merge(&mut self, other: &Cost) {
        self.durations.merge(&other.durations);
        self.exclusive_ns = self.exclusive_ns.saturating_add(other.exclusive_ns);
        self.max_exclusive_ns = self.max_exclusive_ns.max(other.max_exclusive_ns);
        self.max_raised_ns = self.max_raised_ns.max(other.max_raised_ns);
        self.over = (self.over.0 + other.over.0, self.over.1.saturating_add(other.over.1));
        for (&class, &(n, ns)) in &other.classes {
            let class = self.classes.entry(class).or_default();
            *class = (class.0 + n, class.1.saturating_add(ns));
        }
    }
}

struct Costs {
    /// By class (DPC or ISR), place of the routine, processor.
    by: BTreeMap<(u8, PlaceId, u16), Cost>,
    costs: TableBuilder<InterruptCostRow>,
    histogram: TableBuilder<DpcHistogramRow>,
}

fn limit(class: u8) -> i64 {
    if class == IS_ISR { ISR_LIMIT_NS } else { DPC_LIMIT_NS }
}

impl Analysis for Costs {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(_), Some(routine)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let cpu = event.record.cpu;
        let interrupt = cx.model.cpus.last_interrupt(cpu);
        let place = cx.place(None, routine);
        let (class, in_thread) = (event.tag & IS_ISR, event.tag & IN_THREAD != 0);
        let cost = self.by.entry((class, place, cpu)).or_default();
        cost.add(interrupt.inclusive_ns(), interrupt.exclusive_ns(), limit(class), in_thread);
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let names = [end.strings.intern("dpc"), end.strings.intern("isr")];
        let unknown = end.strings.intern("[unknown]");
        // Level, class, module, routine, processor. Names stand for places: two addresses may be one routine.
        type Key = (&'static str, u8, Option<Sym>, Option<Sym>, Option<u16>);
        let mut sums: BTreeMap<Key, Cost> = BTreeMap::new();
        for ((class, place, cpu), cost) in &self.by {
            let frame = end.resolved.frame_of_place(*place).map(|(_, f)| (f.module, f.label));
            let (module, routine) = frame.unwrap_or((unknown, unknown));
            let (module, routine) = (Some(module), Some(routine));
            let keys: [Key; 5] = [
                ("all", *class, None, None, None),
                ("module", *class, module, None, None),
                ("routine", *class, module, routine, None),
                ("cpu", *class, None, None, Some(*cpu)),
                ("routine_cpu", *class, module, routine, Some(*cpu)),
            ];
            for key in keys {
                sums.entry(key).or_default().merge(cost);
            }
        }
        for ((level, class, module, routine, cpu), cost) in &sums {
            let class_name = names.get(usize::from(*class)).copied().unwrap_or(unknown);
            let d = &cost.durations;
            self.costs.push(InterruptCostRow {
                level: end.strings.intern(level),
                class: class_name,
                module: *module,
                routine: *routine,
                cpu: cpu.map(i32::from),
                count: i64::try_from(d.count).unwrap_or(i64::MAX),
                total_ns: d.total_ns,
                exclusive_ns: cost.exclusive_ns,
                mean_ns: d.mean().unwrap_or(0),
                p50_ns: d.percentile(50).unwrap_or(0),
                p95_ns: d.percentile(95).unwrap_or(0),
                p99_ns: d.percentile(99).unwrap_or(0),
                max_ns: d.max_ns,
                max_exclusive_ns: cost.max_exclusive_ns,
                over_limit: cost.over.0,
                over_limit_ns: cost.over.1,
                max_raised_ns: Some(cost.max_raised_ns),
            });
            if !matches!(*level, "all" | "module") {
                continue;
            }
            for (&at, &(count, total_ns)) in &cost.classes {
                let border = |at: Option<usize>| at.and_then(|at| BORDERS_US.get(at)).map(|us| us * 1000);
                let above_ns = border(at.checked_sub(1)).unwrap_or(0);
                self.histogram.push(DpcHistogramRow {
                    class: class_name,
                    module: *module,
                    above_ns,
                    up_to_ns: border(Some(at)),
                    count,
                    total_ns,
                    over_limit: above_ns >= limit(*class),
                });
            }
        }
        Ok(vec![self.costs.into(), self.histogram.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed() {
        let mut cost = Cost::default();
        for dur in [DPC_LIMIT_NS, DPC_LIMIT_NS + 1] {
            cost.add(dur, dur, DPC_LIMIT_NS, false);
        }
        assert_eq!(cost.over, (1, DPC_LIMIT_NS + 1));
        let classes: Vec<_> = cost.classes.into_iter().collect();
        assert_eq!(classes, [(8, (1, 100_000)), (9, (1, 100_001))]);
        assert_eq!((BORDERS_US[8], BORDERS_US[5]), (100, 25));
    }

    #[test]
    fn what_another_driver_interrupts_is_not_over_the_limit() {
        let mut cost = Cost::default();
        cost.add(5 * DPC_LIMIT_NS, DPC_LIMIT_NS / 2, DPC_LIMIT_NS, false);
        assert_eq!((cost.over, cost.max_exclusive_ns), ((0, 0), DPC_LIMIT_NS / 2));
        assert_eq!(cost.durations.max_ns, 5 * DPC_LIMIT_NS);
    }

    #[test]
    fn what_runs_in_a_thread_keeps_no_thread_off_the_processor() {
        let mut cost = Cost::default();
        cost.add(DPC_LIMIT_NS, DPC_LIMIT_NS, DPC_LIMIT_NS, false);
        cost.add(9 * DPC_LIMIT_NS, 9 * DPC_LIMIT_NS, DPC_LIMIT_NS, true);
        assert_eq!((cost.max_exclusive_ns, cost.max_raised_ns), (9 * DPC_LIMIT_NS, DPC_LIMIT_NS));
    }
}
