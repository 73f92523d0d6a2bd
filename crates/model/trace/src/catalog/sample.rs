//! CPU samples: who was running when the profiling timer fired.
//!
//! # How it is computed
//! One row per `SampledProfile` event, idle ones included, so that shares of the machine can be told. The
//! weight is the interval of the timer in force times the sample's count. The thread is the sample's own word;
//! its process comes from thread starts, rundowns and stack records.
//!
//! # What fools it
//! Sampling sees only code that runs with interrupts enabled. Work shorter than the interval shows up by luck.
//! Where DPCs run for long, samples hit the thread that they interrupted: `in_dpc` and `in_isr` tell.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{PAYLOAD_TOO_SHORT, SAMPLE_INTERVAL_ASSUMED, SAMPLES_WITHOUT_STACK};
use crate::event::{Context, Event, Select, What};
use crate::finish::process_later;
use crate::model::stack::NO_STACK;
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_table::{TableBuilder, define_table};

define_table! {
    /// CPU samples (`SampledProfile`), idle ones included.
    ///
    /// Sum `weight_ns` for CPU time. Time of the idle threads (`upid` of process Idle) is time nobody used.
    pub table SAMPLE: SampleRow = "sample" {
        sorted_by: "ts_ns", version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64 and net.4.5.x86"),
        /// When the sample was taken, since the start of the trace.
        ts_ns: i64 [Ns, Time],
        /// Logical processor.
        cpu: i32 [None, Cpu],
        /// Process that was running (table `process`).
        upid: Option<i32> [None, Process],
        /// Thread that was running (table `thread`).
        utid: i32 [None, Thread],
        /// Instruction pointer.
        ip: i64 [Address, Address],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// CPU time that the sample stands for.
        weight_ns: i64 [Ns, Weight],
        /// The timer interrupted a DPC.
        in_dpc: bool [None, Flag],
        /// The timer interrupted an ISR.
        in_isr: bool [None, Flag],
        /// Priority of the thread, where recorded.
        priority: i32 [None, Other],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&SAMPLE],
    selects: &[Select::with(
        What::Kernel(PerfInfo::SampledProfile),
        0,
        &["InstructionPointer", "ThreadId", "Count", "Flags"],
    )],
    stacks: true,
    on_demand: false,
    new: |memory| Box::new(Samples { rows: TableBuilder::new(memory), assumed: 0 }),
};

struct Samples {
    rows: TableBuilder<SampleRow>,
    assumed: u64,
}

/// Windows samples once a millisecond unless told otherwise.
const DEFAULT_INTERVAL_NS: i64 = 1_000_000;

impl Analysis for Samples {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(ip), Some(tid)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let tid = tid as u32;
        let count = event.u64(2).unwrap_or(1).max(1) as i64;
        let flags = event.u64(3).unwrap_or(0);
        let interval = cx.model.system.sample_interval.unwrap_or_else(|| {
            self.assumed += 1;
            DEFAULT_INTERVAL_NS
        });
        // Thread 0 is the idle thread of any processor.
        let utid = cx.model.thread(tid, (tid == 0).then_some(0), event.ns);
        // What the idle thread does is nobody's cost: no stacks for it, unless a DPC or ISR interrupted it.
        let interrupt = flags & 3 != 0;
        let stack = if tid == 0 && !interrupt {
            NO_STACK
        } else {
            cx.stack_ticket_at(event, Some(tid), Some(utid), ip)
        };
        self.rows.push(SampleRow {
            ts_ns: event.ns,
            cpu: i32::from(event.record.cpu),
            upid: Some(process_later(utid)),
            utid: utid as i32,
            ip: ip as i64,
            stack_id: Some(stack),
            weight_ns: interval.saturating_mul(count),
            in_dpc: flags & 1 != 0,
            in_isr: flags & 2 != 0,
            priority: (flags >> 3 & 31) as i32,
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let mut without = 0;
        self.rows.remap_i32("stack_id", |ticket| {
            let stack = end.resolved.stack_of_ticket(ticket?);
            let whole = stack.and_then(|s| end.resolved.stacks.get(s as usize)).is_some_and(|s| !s.leaf_only);
            without += u64::from(!whole && ticket != Some(NO_STACK));
            stack
        })?;
        end.ledger.count(&SAMPLES_WITHOUT_STACK, without);
        end.processes_of(&mut self.rows, "upid")?;
        if end.model.system.first_sample_interval.is_none() {
            end.ledger.count(&SAMPLE_INTERVAL_ASSUMED, self.assumed);
        }
        Ok(vec![self.rows.into()])
    }
}
