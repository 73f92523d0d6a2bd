//! Samples in DPCs and ISRs, with the routine that each of them hit.
//!
//! # How it is computed
//! A sample says whether the timer interrupted a DPC or an ISR. Which one, the event tells that is written when it ends: the sample belongs to the
//! innermost of its class on the same processor, in whose time it lies.
//!
//! # What fools it
//! A sample whose DPC or ISR was not recorded (lost, not enabled, or never ended) is in no row. Threaded DPCs and ISRs at passive level run in
//! threads, and so do their samples.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::stacks::Class;
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_table::{Sym, TableBuilder, define_table};
use std::collections::BTreeMap;

define_table! {
    /// CPU samples in DPCs and ISRs, by the routine that they hit.
    pub table INTERRUPT_SAMPLE: InterruptSampleRow = "interrupt_sample" {
        version: 1,
        /// dpc or isr.
        class: Sym [None, Kind],
        /// When the sample was taken.
        ts_ns: i64 [Ns, Time],
        /// Logical processor.
        cpu: i32 [None, Cpu],
        /// Module of the routine.
        module: Sym [None, Name],
        /// When the DPC or ISR began.
        start_ns: i64 [Ns, Other],
        /// How long it took, without what interrupted it.
        exclusive_ns: i64 [Ns, Duration],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// CPU time that the sample stands for.
        weight_ns: i64 [Ns, Weight],
    }
}

const IN_DPC: u8 = 0;
const IN_ISR: u8 = 1;
const SAMPLE: u8 = 2;

const FIELDS: &[&str] = &["InitialTime", "Routine"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&INTERRUPT_SAMPLE],
    selects: &[
        Select::with(
            What::Kernel(PerfInfo::SampledProfile),
            SAMPLE,
            &["InstructionPointer", "ThreadId", "Count", "Flags"],
        ),
        Select::with(What::Kernel(PerfInfo::DPC), IN_DPC, FIELDS),
        Select::with(What::Kernel(PerfInfo::TimerDPC), IN_DPC, FIELDS),
        Select::with(What::Kernel(PerfInfo::IOTimer), IN_DPC, FIELDS),
        Select::with(What::Kernel(PerfInfo::ISR_MSI), IN_ISR, FIELDS),
        Select::with(What::Kernel(PerfInfo::ISR), IN_ISR, FIELDS),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| Box::new(Samples { rows: TableBuilder::new(memory), open: BTreeMap::new() }),
};

/// Samples of one processor that wait for the end of their DPC or ISR: a minute of them. Without events of DPCs nothing ever takes them.
const MOST_OPEN: usize = 1 << 16;

/// A sample whose DPC or ISR has not ended.
struct Open {
    class: Class,
    ts_ns: i64,
    ticket: i32,
    weight_ns: i64,
}

struct Samples {
    rows: TableBuilder<InterruptSampleRow>,
    open: BTreeMap<u16, Vec<Open>>,
}

impl Samples {
    fn sample(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(ip), Some(tid)) = (event.u64(0), event.u64(1)) else { return };
        let flags = event.u64(3).unwrap_or(0);
        let class = Class::of_sample(flags & 1 != 0, flags & 2 != 0);
        if class == Class::Thread {
            return;
        }
        let tid = tid as u32;
        let count = event.u64(2).unwrap_or(1).max(1) as i64;
        let interval = cx.model.system.sample_interval.unwrap_or(1_000_000);
        let utid = cx.model.thread(tid, (tid == 0).then_some(0), event.ns);
        let ticket = cx.stack_ticket_at(event, Some(tid), Some(utid), ip);
        let open = self.open.entry(event.record.cpu).or_default();
        if open.len() >= MOST_OPEN {
            open.clear();
        }
        open.push(Open { class, ts_ns: event.ns, ticket, weight_ns: interval.saturating_mul(count) });
    }
}

impl Analysis for Samples {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        if event.tag == SAMPLE {
            self.sample(event, cx);
            return;
        }
        let (Some(_), Some(routine)) = (event.u64(0), event.u64(1)) else { return };
        let cpu = event.record.cpu;
        let Some(open) = self.open.get_mut(&cpu) else { return };
        let interrupt = cx.model.cpus.last_interrupt(cpu);
        let first = open.partition_point(|sample| sample.ts_ns < interrupt.start_ns);
        if first >= open.len() {
            return;
        }
        let (class, name) = if event.tag == IN_ISR { (Class::Isr, "isr") } else { (Class::Dpc, "dpc") };
        let place = cx.place(None, routine);
        for sample in open.split_off(first) {
            if sample.class == class {
                self.rows.push(InterruptSampleRow {
                    class: cx.sym(name),
                    ts_ns: sample.ts_ns,
                    cpu: i32::from(cpu),
                    module: place.name_later(),
                    start_ns: interrupt.start_ns,
                    exclusive_ns: interrupt.exclusive_ns(),
                    stack_id: Some(sample.ticket),
                    weight_ns: sample.weight_ns,
                });
            } else if class == Class::Isr {
                // The DPC that the ISR had interrupted, or another of them, goes on.
                open.push(sample);
            }
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        self.rows.remap_i32("stack_id", |ticket| end.resolved.stack_of_ticket(ticket?))?;
        end.modules_of(&mut self.rows, "module")?;
        Ok(vec![self.rows.into()])
    }
}
