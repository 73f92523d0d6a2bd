//! Sampled time by stack: in threads, in DPCs and in ISRs, kept apart.
//!
//! # How it is computed
//! Samples of table `sample` with the same process, stack and class, added up. A sample that interrupted a DPC belongs to
//! class `dpc`, one in an ISR to class `isr` (also if the ISR had interrupted a DPC), all others that are not idle to `thread`. The
//! stack of a DPC shows which filter or team driver its module called: what the `DPC` event, which names the
//! routine only, cannot tell.
//!
//! # What fools it
//! The process of a DPC or ISR is the one that it interrupted, by chance. Stacks are recorded with the sample; where that failed,
//! the stack is the instruction pointer alone (`stack.leaf_only`).

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::model::stack::NO_STACK;
use crate::stacks::Class;
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Sampled time by class, process and stack.
    pub table STACK_COST: StackCostRow = "stack_cost" {
        version: 2, evidence: Verified("adds up rows of `sample`"),
        /// thread, dpc or isr.
        class: Sym [None, Kind],
        /// Process that was running.
        upid: Option<i32> [None, Process],
        /// Stack (table `stack`).
        stack_id: Option<i32> [None, Stack],
        /// Samples.
        samples: i64 [Count, Count],
        /// CPU time that they stand for.
        weight_ns: i64 [Ns, Weight],
        /// Part of it with the instruction pointer in the kernel.
        kernel_ns: i64 [Ns, Weight],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&STACK_COST],
    selects: &[Select::with(
        What::Kernel(PerfInfo::SampledProfile),
        0,
        &["InstructionPointer", "ThreadId", "Count", "Flags"],
    )],
    stacks: true,
    on_demand: false,
    new: |memory| Box::new(StackCosts { rows: TableBuilder::new(memory), samples: Vec::new() }),
};

struct Sample {
    class: Class,
    kernel: bool,
    utid: u32,
    ticket: i32,
    weight_ns: i64,
}

/// Class, process and stack.
type Key = (Class, Option<u32>, i32);

struct StackCosts {
    rows: TableBuilder<StackCostRow>,
    samples: Vec<Sample>,
}

impl Analysis for StackCosts {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(ip), Some(tid)) = (event.u64(0), event.u64(1)) else { return };
        let tid = tid as u32;
        let flags = event.u64(3).unwrap_or(0);
        let class = Class::of_sample(flags & 1 != 0, flags & 2 != 0);
        if tid == 0 && class == Class::Thread {
            return;
        }
        let count = event.u64(2).unwrap_or(1).max(1) as i64;
        let interval = cx.model.system.sample_interval.unwrap_or(1_000_000);
        let utid = cx.model.thread(tid, (tid == 0).then_some(0), event.ns);
        let ticket = cx.stack_ticket_at(event, Some(tid), Some(utid), ip);
        // Addresses of the kernel are the upper half, those of 32-bit traces sign-extended (table `sample`).
        let kernel = (ip as i64) < 0;
        self.samples.push(Sample { class, kernel, utid, ticket, weight_ns: interval.saturating_mul(count) });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut sums: HashMap<Key, (i64, i64, i64)> = HashMap::default();
        for sample in std::mem::take(&mut self.samples) {
            let stack = end.resolved.stack_of_ticket(sample.ticket).unwrap_or(NO_STACK);
            let key = (sample.class, end.model.upid_of(sample.utid), stack);
            let sum = sums.entry(key).or_default();
            let kernel = if sample.kernel { sample.weight_ns } else { 0 };
            *sum = (sum.0 + 1, sum.1.saturating_add(sample.weight_ns), sum.2.saturating_add(kernel));
        }
        let classes = Class::ALL.map(|class| end.strings.intern(class.name()));
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_unstable();
        for ((class, upid, stack), (samples, weight_ns, kernel_ns)) in sums {
            self.rows.push(StackCostRow {
                class: classes.get(class as usize).copied().unwrap_or(Sym::EMPTY),
                upid: upid.map(|u| u as i32),
                stack_id: Some(stack).filter(|&s| s != NO_STACK),
                samples,
                weight_ns,
                kernel_ns,
            });
        }
        Ok(vec![self.rows.into()])
    }
}
