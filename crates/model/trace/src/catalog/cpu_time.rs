//! Processors over time: threads, idle, DPCs, ISRs, and how many threads stood in the queue.
//!
//! # How it is computed
//! The trace is cut into slices of equal length. Each processor's time in a slice is divided by its context switches, DPCs
//! and ISRs: a DPC's time is not the interrupted thread's, an ISR's not the interrupted DPC's. What lies before a processor's first
//! switch, or behind a place where buffers are missing, is in no lane. Samples divide the same time a second time, in columns of
//! their own, so that the two can be compared. Threads that were ready are charged to the processor on which they ran
//! next; divided by the slice's length they give the mean length of its queue.
//!
//! # What fools it
//! A processor that never switched (it idled throughout, or one thread had it) shows nothing in the lanes of threads and idle, and
//! without samples nothing tells whether it was busy. Work in a virtual machine's host, or in firmware (SMM), shows as time of whoever was interrupted.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_decode::kernel::events::{PerfInfo, Thread};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeSet;

define_table! {
    /// What each processor did, in slices of time.
    pub table CPU_TIME: CpuTimeRow = "cpu_time" {
        sorted_by: "start_ns", version: 1,
        /// Start of the slice.
        start_ns: i64 [Ns, Time],
        /// Length of the slice; the last one ends with the trace.
        dur_ns: i64 [Ns, Duration],
        /// Logical processor.
        cpu: i32 [None, Cpu],
        /// Threads ran, without DPCs and ISRs; empty without context switches on it.
        thread_ns: Option<i64> [Ns, Duration],
        /// The idle thread ran, without DPCs and ISRs; empty without context switches on it.
        idle_ns: Option<i64> [Ns, Duration],
        /// DPCs ran, without ISRs that interrupted them.
        dpc_ns: i64 [Ns, Duration],
        /// ISRs ran; those at passive level run in threads and count there, as threaded DPCs do.
        isr_ns: i64 [Ns, Duration],
        /// Threads that were ready and ran here next, summed; empty without `ReadyThread`.
        ready_ns: Option<i64> [Ns, Duration],
        /// Context switches.
        switches: i32 [Count, Count],
        /// Samples of threads, in time.
        sampled_thread_ns: i64 [Ns, Duration],
        /// Samples of the idle thread, in time.
        sampled_idle_ns: i64 [Ns, Duration],
        /// Samples in DPCs, in time.
        sampled_dpc_ns: i64 [Ns, Duration],
        /// Samples in ISRs, in time.
        sampled_isr_ns: i64 [Ns, Duration],
        /// Share of the time that is known to be not idle: by context switches, or by samples where there are none.
        busy_percent: Option<f64> [Percent, Other],
    }
}

define_table! {
    /// Processors: place in the machine, and how busy they were.
    pub table CPU: CpuRow = "cpu" {
        sorted_by: "cpu", version: 2,
        /// Logical processor, counted over all groups.
        cpu: i32 [None, Cpu],
        /// Processor group, where recorded.
        group: Option<i32> [None, Other],
        /// Number in its group.
        number: Option<i32> [None, Other],
        /// NUMA node, where recorded.
        numa_node: Option<i32> [None, Other],
        /// Nominal speed, where recorded.
        mhz: Option<i32> [MHz, Other],
        /// Threads ran, without DPCs and ISRs; empty without context switches on it.
        thread_ns: Option<i64> [Ns, Duration],
        /// Idle, without DPCs and ISRs; empty without context switches on it.
        idle_ns: Option<i64> [Ns, Duration],
        /// DPCs ran.
        dpc_ns: i64 [Ns, Duration],
        /// ISRs ran.
        isr_ns: i64 [Ns, Duration],
        /// Mean number of threads in the queue; empty without `ReadyThread`.
        queue_mean: Option<f64> [None, Other],
        /// Largest mean of a slice.
        queue_max: Option<f64> [None, Other],
        /// Context switches.
        switches: i64 [Count, Count],
        /// Samples, in time, that were not idle.
        sampled_busy_ns: i64 [Ns, Duration],
        /// Samples, in time, of the idle thread.
        sampled_idle_ns: i64 [Ns, Duration],
        /// Samples, those of the idle thread included.
        samples: i64 [Count, Count],
        /// When the first sample came.
        first_sample_ns: Option<i64> [Ns, Time],
        /// When the last sample came.
        last_sample_ns: Option<i64> [Ns, Time],
        /// Share of the known time that is not idle.
        busy_percent: Option<f64> [Percent, Other],
        /// Time in slices that were at least 95 % busy.
        pegged_ns: i64 [Ns, Duration],
        /// What `busy_percent` rests on: cswitch, or sample for a processor that hardly had any switches.
        source: Option<Sym> [None, Kind],
    }
}

const SWITCH: u8 = Thread::CSwitch.opcode;
const DPC: u8 = PerfInfo::DPC.opcode;
const ISR: u8 = PerfInfo::ISR.opcode;
const SAMPLE: u8 = PerfInfo::SampledProfile.opcode;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CPU_TIME, &CPU],
    selects: &[
        Select::kernel(Thread::CSwitch, &["NewThreadId", "OldThreadId"]),
        Select::kernel(PerfInfo::DPC, &["InitialTime"]),
        Select::with(What::Kernel(PerfInfo::TimerDPC), DPC, &["InitialTime"]),
        Select::with(What::Kernel(PerfInfo::IOTimer), DPC, &["InitialTime"]),
        Select::kernel(PerfInfo::ISR, &["InitialTime"]),
        Select::with(What::Kernel(PerfInfo::ISR_MSI), ISR, &["InitialTime"]),
        Select::kernel(PerfInfo::SampledProfile, &["ThreadId", "Count", "Flags"]),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(CpuTimes {
            slices: TableBuilder::new(memory),
            cpus: TableBuilder::new(memory),
            width: FIRST_WIDTH_NS,
            cells: HashMap::default(),
            lanes: Vec::new(),
            most_cpus: 0,
            budget: FREE_STEPS,
        })
    },
};

/// Slices begin at this length and double whenever there are too many.
const FIRST_WIDTH_NS: i64 = 100_000_000;
/// Most slices of a trace.
const MOST_SLICES: i64 = 2_000;
/// Most slices times processors.
const MOST_CELLS: usize = 400_000;
/// Slices that every event may be divided into on average, and some to begin with. On one processor stretches follow
/// each other or lie in each other, a few levels deep, so that an honest trace needs one or two; a damaged one may
/// say of every event that it began with the trace.
const STEPS_PER_EVENT: i64 = 16;
const FREE_STEPS: i64 = 4_000_000;
/// A slice in which a processor was busier than this counts as pegged.
const PEGGED_PERCENT: f64 = 95.0;

#[derive(Clone, Copy, Default)]
struct Cell {
    thread: i64,
    idle: i64,
    dpc: i64,
    isr: i64,
    ready: i64,
    switches: i32,
    sampled: [i64; 4],
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        let add = |a: &mut i64, b: i64| *a = a.saturating_add(b);
        add(&mut self.thread, other.thread);
        add(&mut self.idle, other.idle);
        add(&mut self.dpc, other.dpc);
        add(&mut self.isr, other.isr);
        add(&mut self.ready, other.ready);
        self.switches = self.switches.saturating_add(other.switches);
        for (a, b) in self.sampled.iter_mut().zip(other.sampled) {
            add(a, b);
        }
    }

    /// Busy and known time, and whether context switches tell it (else samples do). Switches tell nothing of a
    /// processor that has none: it may have idled, or run one thread, or nothing but DPCs, all the time.
    fn busy(&self) -> Option<(i64, i64, bool)> {
        let add = i64::saturating_add;
        let [thread, idle, dpc, isr] = self.sampled;
        let sampled_busy = add(add(thread, dpc), isr);
        let sampled = add(sampled_busy, idle);
        let switched = add(self.thread, self.idle);
        let busy = add(self.thread, add(self.dpc, self.isr));
        let known = add(busy, self.idle);
        if switched > 0 && known >= sampled / 2 {
            Some((busy, known, true))
        } else {
            (sampled > 0).then_some((sampled_busy, sampled, false))
        }
    }
}

/// Which lane a stretch of time goes to.
#[derive(Clone, Copy)]
enum Lane {
    Thread,
    Idle,
    Dpc,
    Isr,
    Ready,
}

/// State of a processor.
#[derive(Clone, Default)]
struct Processor {
    /// Up to when its time has been divided; `None` while nobody is known to run.
    mark: Option<i64>,
    /// The slice that was last added to, from `open_ns` to `open_ns + width`: nearly all that comes belongs there.
    open: Option<Open>,
    samples: i64,
    first_sample_ns: Option<i64>,
    last_sample_ns: Option<i64>,
}

#[derive(Clone, Copy)]
struct Open {
    start_ns: i64,
    cell: Cell,
}

struct CpuTimes {
    slices: TableBuilder<CpuTimeRow>,
    cpus: TableBuilder<CpuRow>,
    width: i64,
    /// Slices that are not open.
    cells: HashMap<(i64, u16), Cell>,
    lanes: Vec<Processor>,
    most_cpus: usize,
    /// Slices that stretches may still be divided into.
    budget: i64,
}

impl CpuTimes {
    /// Adds to the slice of `ns`.
    #[inline]
    fn add(&mut self, ns: i64, cpu: u16, add: impl FnOnce(&mut Cell)) {
        let ns = ns.max(0);
        let width = self.width;
        let open = self.lanes.get_mut(usize::from(cpu)).and_then(|lane| lane.open.as_mut());
        match open {
            Some(open) if ns >= open.start_ns && ns - open.start_ns < width => add(&mut open.cell),
            _ => add(self.open(ns, cpu)),
        }
    }

    /// Opens the slice of `ns` in the place of the processor's open one.
    #[cold]
    fn open(&mut self, ns: i64, cpu: u16) -> &mut Cell {
        self.fit(ns);
        let slice = ns / self.width;
        let cell = self.cells.remove(&(slice, cpu)).unwrap_or_default();
        let start_ns = slice.saturating_mul(self.width);
        let (width, cells) = (self.width, &mut self.cells);
        let index = usize::from(cpu);
        if self.lanes.len() <= index {
            self.lanes.resize(index + 1, Processor::default());
        }
        // `resize` made it.
        let open = self.lanes.get_mut(index).map(|lane| &mut lane.open);
        match open {
            Some(open) => {
                if let Some(old) = open.take() {
                    cells.insert((old.start_ns / width, cpu), old.cell);
                }
                &mut open.insert(Open { start_ns, cell }).cell
            }
            None => cells.entry((slice, cpu)).or_insert(cell),
        }
    }

    /// Widens slices until `ns` lies in one, and there are not too many.
    fn fit(&mut self, ns: i64) {
        while ns / self.width >= MOST_SLICES || self.cells.len() > MOST_CELLS {
            self.close();
            self.widen();
        }
    }

    /// Puts all open slices to the others.
    fn close(&mut self) {
        for (cpu, lane) in self.lanes.iter_mut().enumerate() {
            if let Some(open) = lane.open.take() {
                self.cells.insert((open.start_ns / self.width, cpu as u16), open.cell);
            }
        }
    }

    /// Makes slices twice as long; none may be open.
    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        let mut cells: HashMap<(i64, u16), Cell> = HashMap::default();
        for ((slice, cpu), cell) in self.cells.drain() {
            cells.entry((slice / 2, cpu)).or_default().add(&cell);
        }
        self.cells = cells;
    }

    /// Gives the time from `from` to `to`, or `amount` spread evenly over it, to a lane.
    fn spread(&mut self, cpu: u16, lane: Lane, from: i64, to: i64, amount: i64) {
        let whole = to.saturating_sub(from);
        if whole <= 0 {
            return;
        }
        // Widens the slices as far as the end needs, before the stretch is cut.
        self.fit(to.max(0));
        let (mut at, mut left) = (from.max(0), amount);
        if self.budget <= 0 {
            // All of it goes to the slice in which it ends.
            at = at.max(to.saturating_sub(1));
        }
        while at < to {
            self.budget = self.budget.saturating_sub(1);
            let end = (at / self.width + 1).saturating_mul(self.width).min(to);
            let part = if end == to {
                left
            } else {
                (i128::from(amount) * i128::from(end - at) / i128::from(whole)) as i64
            };
            left = left.saturating_sub(part);
            self.add(at, cpu, |cell| {
                let slot = match lane {
                    Lane::Thread => &mut cell.thread,
                    Lane::Idle => &mut cell.idle,
                    Lane::Dpc => &mut cell.dpc,
                    Lane::Isr => &mut cell.isr,
                    Lane::Ready => &mut cell.ready,
                };
                *slot = slot.saturating_add(part);
            });
            at = end;
        }
    }

    fn processor(&mut self, cpu: u16) -> Option<&mut Processor> {
        let index = usize::from(cpu);
        if self.lanes.len() <= index {
            self.lanes.resize(index + 1, Processor::default());
        }
        self.lanes.get_mut(index)
    }

    /// Sets up to when a processor's time has been divided, and gives what it was before.
    fn mark(&mut self, cpu: u16, ns: i64) -> Option<i64> {
        self.processor(cpu)?.mark.replace(ns)
    }
}

fn lane_of(tid: u32) -> Lane {
    if tid == 0 { Lane::Idle } else { Lane::Thread }
}

impl Analysis for CpuTimes {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (cpu, ns) = (event.record.cpu, event.ns);
        // Payloads that are too short were counted by the trackers.
        let Some(first) = event.u64(0) else { return };
        self.budget = self.budget.saturating_add(STEPS_PER_EVENT);
        match event.tag {
            SAMPLE => {
                let flags = event.u64(2).unwrap_or(0);
                let interval = cx.model.system.sample_interval.unwrap_or(1_000_000);
                let count = event.u64(1).unwrap_or(1).max(1) as i64;
                let lane = if flags & 2 != 0 {
                    3
                } else if flags & 1 != 0 {
                    2
                } else {
                    usize::from(first as u32 == 0)
                };
                let weight = interval.saturating_mul(count);
                self.add(ns, cpu, |cell| {
                    if let Some(slot) = cell.sampled.get_mut(lane) {
                        *slot = slot.saturating_add(weight);
                    }
                });
                if let Some(processor) = self.processor(cpu) {
                    processor.samples += 1;
                    processor.first_sample_ns.get_or_insert(ns);
                    processor.last_sample_ns = Some(ns);
                }
            }
            SWITCH => {
                let Some(old_tid) = event.u64(1) else { return };
                let known = cx.model.cpus.replaced(cpu).is_some();
                let mark = self.mark(cpu, ns);
                if let Some(from) = mark.filter(|_| known) {
                    self.spread(cpu, lane_of(old_tid as u32), from, ns, ns.saturating_sub(from));
                }
                self.add(ns, cpu, |cell| cell.switches = cell.switches.saturating_add(1));
                let switch = cx.model.switches.current;
                if let Some(ready) = switch.ready_ns.filter(|_| switch.new_tid != 0) {
                    self.spread(cpu, Lane::Ready, ns.saturating_sub(ready), ns, ready);
                }
            }
            _ => {
                let interrupt = cx.model.cpus.last_interrupt(cpu);
                let (start, exclusive) = (interrupt.start_ns, interrupt.exclusive_ns());
                let lane = if event.tag == ISR { Lane::Isr } else { Lane::Dpc };
                self.spread(cpu, lane, start, ns, exclusive);
                let Some(running) = cx.model.cpus.running(cpu, ns) else { return };
                let Some(mark) = self.mark(cpu, ns) else { return };
                // Before it the thread ran. If interrupts inside it were divided before, what lay between them was
                // taken for the thread's and is given back.
                let lane = lane_of(running.tid);
                self.spread(cpu, lane, mark, start, start.saturating_sub(mark));
                let since_mark = ns.saturating_sub(mark.max(start));
                let back = exclusive.saturating_sub(since_mark);
                if back > 0 {
                    self.spread(cpu, lane, start, mark, back.saturating_neg());
                }
            }
        }
        self.most_cpus = self.most_cpus.max(usize::from(cpu) + 1);
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let until = end.kernel_end_ns();
        let sampled = self.lanes.iter().filter_map(|lane| lane.last_sample_ns).max();
        let last = until.max(sampled.unwrap_or(until));
        for cpu in 0..self.lanes.len() {
            let mark = self.lanes.get(cpu).and_then(|lane| lane.mark);
            let cpu = cpu as u16;
            if let (Some(from), Some(running)) = (mark, end.model.cpus.running(cpu, until)) {
                self.spread(cpu, lane_of(running.tid), from, until, until.saturating_sub(from));
            }
        }
        self.close();
        let ready = end.model.switches.readies;
        let mut cells: Vec<((i64, u16), Cell)> = self.cells.iter().map(|(k, c)| (*k, *c)).collect();
        cells.sort_unstable_by_key(|(key, _)| *key);
        let switched: BTreeSet<u16> =
            cells.iter().filter(|(_, cell)| cell.switches > 0).map(|((_, cpu), _)| *cpu).collect();
        let mut sums: Vec<(Cell, f64, i64)> = vec![Default::default(); self.most_cpus];
        for ((slice, cpu), cell) in &cells {
            let start_ns = slice.saturating_mul(self.width);
            let rest = last.saturating_sub(start_ns);
            let dur_ns = if rest > 0 { self.width.min(rest) } else { self.width };
            let busy = cell.busy().map(|(busy, known, _)| 100.0 * busy as f64 / known as f64);
            let switched = switched.contains(cpu);
            let [sampled_thread_ns, sampled_idle_ns, sampled_dpc_ns, sampled_isr_ns] = cell.sampled;
            if let Some((sum, queue, pegged)) = sums.get_mut(usize::from(*cpu)) {
                sum.add(cell);
                *queue = queue.max(cell.ready as f64 / dur_ns as f64);
                if busy.is_some_and(|b| b >= PEGGED_PERCENT) {
                    *pegged = pegged.saturating_add(dur_ns);
                }
            }
            self.slices.push(CpuTimeRow {
                start_ns,
                dur_ns,
                cpu: i32::from(*cpu),
                thread_ns: switched.then_some(cell.thread),
                idle_ns: switched.then_some(cell.idle),
                dpc_ns: cell.dpc,
                isr_ns: cell.isr,
                ready_ns: ready.then_some(cell.ready),
                switches: cell.switches,
                sampled_thread_ns,
                sampled_idle_ns,
                sampled_dpc_ns,
                sampled_isr_ns,
                busy_percent: busy,
            });
        }
        let (by_samples, by_switches) = (end.strings.intern("sample"), end.strings.intern("cswitch"));
        let facts = &end.model.system;
        let length = last.max(1) as f64;
        for (cpu, (cell, queue_max, pegged_ns)) in sums.iter().enumerate() {
            let place = facts.processor_place(cpu);
            let busy = cell.busy();
            let switches = cell.switches > 0;
            let [thread, idle, dpc, isr] = cell.sampled;
            let lane = self.lanes.get(cpu).cloned().unwrap_or_default();
            self.cpus.push(CpuRow {
                cpu: cpu as i32,
                group: place.group,
                number: place.number,
                numa_node: place.numa_node,
                mhz: place.mhz.or(facts.mhz).map(|mhz| mhz as i32),
                thread_ns: switches.then_some(cell.thread),
                idle_ns: switches.then_some(cell.idle),
                dpc_ns: cell.dpc,
                isr_ns: cell.isr,
                queue_mean: ready.then_some(cell.ready as f64 / length),
                queue_max: ready.then_some(*queue_max),
                switches: i64::from(cell.switches),
                sampled_busy_ns: thread.saturating_add(dpc).saturating_add(isr),
                sampled_idle_ns: idle,
                samples: lane.samples,
                first_sample_ns: lane.first_sample_ns,
                last_sample_ns: lane.last_sample_ns,
                busy_percent: busy.map(|(busy, known, _)| 100.0 * busy as f64 / known as f64),
                pegged_ns: *pegged_ns,
                source: busy.map(|(_, _, switches)| if switches { by_switches } else { by_samples }),
            });
        }
        Ok(vec![self.slices.into(), self.cpus.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_switches_samples_tell_how_busy_a_processor_was() {
        let switched = Cell { thread: 60, idle: 30, dpc: 10, sampled: [50, 51, 0, 0], ..Cell::default() };
        assert_eq!(switched.busy(), Some((70, 100, true)));
        // Nothing but DPCs on an idle processor: not 100 % busy.
        let dpcs = Cell { dpc: 90, sampled: [0, 10, 90, 0], ..Cell::default() };
        assert_eq!(dpcs.busy(), Some((90, 100, false)));
        // The first switch came late.
        let late = Cell { idle: 5, sampled: [95, 5, 0, 0], ..Cell::default() };
        assert_eq!(late.busy(), Some((95, 100, false)));
        assert_eq!(Cell { dpc: 90, ..Cell::default() }.busy(), None);
    }
}
