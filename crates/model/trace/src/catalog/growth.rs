//! Growth laws: operations that cost more the more often they were done, or more than in proportion to their size.
//!
//! # How it is computed
//! Calls of one operation by one process are numbered from 1 (starts of processes: by image name) and gathered in at most 64 bins
//! of equally many calls. The cost of a bin is typical of its calls (geometric mean: a few slow ones do not move it). Laws are
//! fitted and compared as `crates/foundation/stats/src/growth.rs` says; its tests show how often that is right.
//!
//! What the cost is depends on what the trace has, see `cost_source`:
//!
//! * `duration`: file and registry operations; also system calls that wait for the kernel only (`NtCreateFile`, `NtOpenKey`, ...).
//! * `on_cpu`: system calls, time on a processor from enter to exit, by context switches.
//! * `samples`: `VirtualAlloc` and handles have no duration. Samples with `NtAllocateVirtualMemory` (and the like) on the stack,
//!   since the call before of the same process. Bins with fewer than 9 samples are put together (fewer than 4, where there are not
//!   enough samples for 24 bins); below some 85 samples in all there are too few bins for a law.
//! * `kernel_samples`: the same where no symbols name functions: all samples in the kernel since the call before.
//! * `interval`: without samples, the time since the call before. It also grows when a program merely calls less often, so it
//!   never makes a verdict.
//! * `lifetime`, `load`: process starts, as table `process_start` has them.
//!
//! *Cost for each call* and *cost in all* are two ways to say the same: if the n-th call costs in proportion to n (`model` is `n`),
//! all calls together cost in proportion to n² (`total_model`). The verdict is about all of them: `super_linear` means that twice
//! as many calls cost clearly more than twice as much.
//!
//! With `predictor` `size_bytes` (file reads and writes) n is the size, the cost is that of a call, and ordinary is what grows
//! like the size.
//!
//! The verdict is withheld (`cannot_tell`, and `why`) where time explains a rise as well as the number of calls, where the cost rose
//! at once, where the calls grew larger too, and where so clear a trend is to be expected among so many series by chance
//! (Bonferroni).
//!
//! `function` is where the growth is: sampled time for each call in the last third of the calls less that in the first third, by
//! function; of those that hold four fifths of the growth the innermost.
//!
//! # What fools it
//! Programs do different things with the same call: files become larger, keys deeper, caches warm. A law is a description
//! of what was seen; the prediction holds if the program goes on like that. Series with fewer than 20 calls, and those that
//! cost less than 0.01 % of the trace's time, have no row. Calls before the trace and in missing buffers are not counted. The culprit is that of the process
//! over that time, also of its other work.

mod bins;
mod calls;
mod laws;
mod rows;
mod samples;
mod series;

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::GROWTH_BEYOND_LIMIT;
use crate::event::{Context, Event, OPERATION_BEFORE_NS, Select, What};
use crate::owner::Owner;
use calls::Syscalls;
use etwhy_base::aside::Aside;
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::{FileIo, Object, PageFault, PerfInfo, Registry, Thread};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use laws::{Laws, Seen};
use series::{Memory, Operation};

define_table! {
    /// Growth laws: how the cost of an operation of a process depends on how often it was done, or on size.
    pub table GROWTH: GrowthRow = "growth" {
        title: "Growth laws", version: 2,
        /// Number of the row, for table `growth_point`.
        growth_id: i32 [None, Id],
        /// virtual_alloc, process_start, file, registry, syscall or handle.
        kind: Sym [None, Kind],
        /// Operation: `VirtualAlloc MEM_TOP_DOWN`, `Create`, `ntoskrnl.exe!NtCreateFile`, ...
        operation: Sym [None, Name],
        /// Process; null for starts of processes.
        upid: Option<i32> [None, Process],
        /// Image name of the process, or of the processes that were started.
        name: Sym [None, Name],
        /// What n is: calls (the number of the call, from 1) or size_bytes.
        predictor: Sym [None, Kind],
        /// What the cost is: duration, on_cpu, samples, kernel_samples, interval, lifetime or load.
        cost_source: Sym [None, Kind],
        /// Calls whose cost is known.
        calls: i64 [Count, Count],
        /// Smallest and largest n of the points.
        n_low: f64 [None, Other],
        /// Largest n of the points.
        n_high: f64 [None, Other],
        /// Points that the law was fitted to (table `growth_point`).
        points: i32 [Count, Other],
        /// Samples in its calls; null where the calls have a duration of their own.
        samples: Option<i64> [Count, Count],
        /// super_linear, slight (to less than one and a half times), constant, logarithmic, linear, with_time, cannot_tell.
        verdict: Sym [None, Kind],
        /// Why it cannot be determined, or what the verdict says, in words.
        why: Sym [None, Message],
        /// What else explains a rise: time, step or size; null if nothing does.
        confounded_by: Option<Sym> [None, Kind],
        /// Law of one call: 1, log n, n^0.5, n, n log n, n^1.5, n^2 or n^3.
        model: Sym [None, Kind],
        /// Law of all calls together. With `size_bytes` the same as `model`.
        total_model: Sym [None, Kind],
        /// Weight of the law among those compared, 0 to 1.
        weight: f64 [None, Other],
        /// Weight of all laws together that make the whole super-linear, 0 to 1.
        super_weight: f64 [None, Other],
        /// Offset: cost of a call is a + b * f(n), ns.
        a: f64 [Ns, Other],
        /// Factor of the law, ns.
        b: f64 [Ns, Other],
        /// Exponent p of a + b * n^p, cost of one call; null if it does not grow.
        exponent: Option<f64> [None, Other],
        /// Lower end of its 95 % interval.
        exponent_low: Option<f64> [None, Other],
        /// Upper end.
        exponent_high: Option<f64> [None, Other],
        /// Share of the variation of log cost that the law explains, 0 to 1.
        r2: f64 [None, Other],
        /// Cost of a call at the smallest n, by the law.
        start_cost_ns: f64 [Ns, Other],
        /// Cost of a call at the largest n, by the law.
        end_cost_ns: f64 [Ns, Other],
        /// What all calls cost.
        total_ns: i64 [Ns, Duration],
        /// Of that, what they would not have cost if each had cost as much as the first ones; null with `size_bytes`.
        excess_ns: Option<i64> [Ns, Duration],
        /// Cost of a call at ten times the largest n, by the law.
        cost_10x_ns: f64 [Ns, Other],
        /// What twice as many calls cost in all, by the law; null with `size_bytes`.
        total_2x_ns: Option<f64> [Ns, Other],
        /// What ten times as many calls cost in all, by the law.
        total_10x_ns: Option<f64> [Ns, Other],
        /// End of the first and of the last call.
        start_ns: i64 [Ns, Time],
        /// End of the last call.
        end_ns: i64 [Ns, Time],
        /// Kendall's tau of cost over time: -1 falls all the time, 1 rises all the time; null with `size_bytes`.
        trend_tau: Option<f64> [None, Other],
        /// Probability of so clear a trend by chance.
        trend_p: Option<f64> [None, Other],
        /// How much the cost of a call rises each second (Theil-Sen), ns.
        trend_ns_per_s: Option<f64> [None, Other],
        /// By how much the number of calls explains the cost better than time does: 6 is odds of 20 to 1 (AICc).
        better_than_time: Option<f64> [None, Other],
        /// Mean size of the calls in the last third divided by that in the first; null if they have no size.
        size_factor: Option<f64> [None, Other],
        /// `module!function` that holds the growth, by samples.
        function: Option<Sym> [None, Name],
        /// Its module.
        module: Option<Sym> [None, Name],
        /// Innermost function on the stack that grew most that belongs to none of Windows's own layers.
        caller: Option<Sym> [None, Name],
        /// The stack that grew most (table `stack`).
        stack_id: Option<i32> [None, Stack],
        /// By how much the sampled time in `function` grew, ns for each call, from the first to the last third of the calls.
        function_growth_ns: Option<f64> [Ns, Other],
    }
}

define_table! {
    /// Points of growth laws: cost of calls by their number, or by size.
    ///
    /// Of series that do not grow and cost less than 0.1 % of the trace's time there are none.
    pub table GROWTH_POINT: GrowthPointRow = "growth_point" {
        title: "Points of growth laws", version: 1,
        /// Row of table `growth`.
        growth_id: i32 [None, Id],
        /// virtual_alloc, process_start, file, registry, syscall or handle.
        kind: Sym [None, Kind],
        /// Operation.
        operation: Sym [None, Name],
        /// Process; null for starts of processes.
        upid: Option<i32> [None, Process],
        /// What n is: calls or size_bytes.
        predictor: Sym [None, Kind],
        /// What the cost is, as in table `growth`.
        cost_source: Sym [None, Kind],
        /// First call of the bin; with `size_bytes` the mean size.
        n_low: f64 [None, Other],
        /// Last call of the bin.
        n_high: f64 [None, Other],
        /// Middle of the bin: the n that the law is fitted to.
        n_mid: f64 [None, Other],
        /// Calls whose cost is known.
        calls: i64 [Count, Count],
        /// Typical cost of a call (geometric mean).
        cost_ns: f64 [Ns, Other],
        /// Mean cost of a call.
        mean_ns: f64 [Ns, Other],
        /// Cost of these calls together.
        total_ns: i64 [Ns, Duration],
        /// Cost of a call by the law.
        fit_ns: f64 [Ns, Other],
        /// End of the first of these calls.
        start_ns: i64 [Ns, Time],
        /// End of the last of these calls.
        end_ns: i64 [Ns, Time],
    }
}

const SYSCALL_ENTER: u8 = 1;
const SYSCALL_EXIT: u8 = 2;
const CSWITCH: u8 = 3;
const THREAD_END: u8 = 4;
const SAMPLE: u8 = 5;
const FILE_END: u8 = 6;
const ALLOC: u8 = 7;
const FREE: u8 = 8;
const HANDLE: u8 = 9;
const HANDLE_TYPE: u8 = 10;
/// File operations keep their event types as tags (64 and more), registry operations have this added to theirs.
const REGISTRY: u8 = 100;

const READ: u8 = FileIo::Read.opcode;
const WRITE: u8 = FileIo::Write.opcode;
const FILE: &[&str] = &["IrpPtr", "TTID"];
const FILE_SIZED: &[&str] = &["IrpPtr", "TTID", "IoSize"];
const KEY: &[&str] = &["InitialTime"];
const SAMPLE_FIELDS: &[&str] = &["InstructionPointer", "ThreadId", "Count", "Flags"];
const MEMORY: &[&str] = &["ProcessId", "Flags"];

const fn registry(event: KernelEvent) -> Select {
    Select::with(What::Kernel(event), REGISTRY + event.opcode, KEY)
}

/// Declaration.
///
/// `DirNotify` and `FSControl` wait for other programs: their durations are no costs.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&GROWTH, &GROWTH_POINT],
    selects: &[
        Select::with(What::Kernel(PerfInfo::SysClEnter), SYSCALL_ENTER, &["SysCallAddress"]),
        Select::with(What::Kernel(PerfInfo::SysClExit), SYSCALL_EXIT, &["SysCallNtStatus"]),
        Select::with(What::Kernel(Thread::CSwitch), CSWITCH, &["OldThreadId"]),
        Select::with(What::Kernel(Thread::End), THREAD_END, &["TThreadId|ThreadId|ThreadID"]),
        Select::with(What::Kernel(PerfInfo::SampledProfile), SAMPLE, SAMPLE_FIELDS),
        Select::kernel(FileIo::Create, FILE),
        Select::kernel(FileIo::Cleanup, FILE),
        Select::kernel(FileIo::Close, FILE),
        Select::kernel(FileIo::Read, FILE_SIZED),
        Select::kernel(FileIo::Write, FILE_SIZED),
        Select::kernel(FileIo::SetInfo, FILE),
        Select::kernel(FileIo::Delete, FILE),
        Select::kernel(FileIo::Rename, FILE),
        Select::kernel(FileIo::DirEnum, FILE),
        Select::kernel(FileIo::Flush, FILE),
        Select::kernel(FileIo::QueryInfo, FILE),
        Select::with(What::Kernel(FileIo::OperationEnd), FILE_END, &["IrpPtr"]),
        registry(Registry::Create),
        registry(Registry::Open),
        registry(Registry::Delete),
        registry(Registry::Query),
        registry(Registry::SetValue),
        registry(Registry::DeleteValue),
        registry(Registry::QueryValue),
        registry(Registry::EnumerateKey),
        registry(Registry::EnumerateValueKey),
        registry(Registry::QueryMultipleValue),
        registry(Registry::SetInformation),
        registry(Registry::Flush),
        registry(Registry::Close),
        Select::with(What::Kernel(PageFault::VirtualAlloc), ALLOC, MEMORY),
        Select::with(What::Kernel(PageFault::VirtualFree), FREE, MEMORY),
        Select::with(What::Kernel(Object::CreateHandle), HANDLE, &["ObjectType"]),
        Select::with(What::Kernel(Object::TypeDCStart), HANDLE_TYPE, &["ObjectType"]),
        Select::with(What::Kernel(Object::TypeDCEnd), HANDLE_TYPE, &["ObjectType"]),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(Growths {
            rows: TableBuilder::new(memory),
            points: TableBuilder::new(memory),
            laws: Aside::new(Laws::default(), memory.is_threaded()),
            syscalls: Syscalls::default(),
            files: HashMap::default(),
            types: HashMap::default(),
        })
    },
};

// winnt.h.
const MEM_RESERVE: u64 = 0x2000;
const MEM_TOP_DOWN: u64 = 0x10_0000;

/// A file operation under way.
struct Pending {
    op: u8,
    cpu: u16,
    utid: u32,
    start_ns: i64,
    size: u64,
}

/// File operations that may be under way at once, as in table `file_io`.
const MOST_PENDING: usize = 1 << 20;

struct Growths {
    rows: TableBuilder<GrowthRow>,
    points: TableBuilder<GrowthPointRow>,
    laws: Aside<Laws>,
    syscalls: Syscalls,
    /// By IRP.
    files: HashMap<u64, Pending>,
    /// Names of types of objects.
    types: HashMap<u16, Sym>,
}

impl Analysis for Growths {
    #[inline]
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        // Payloads that are too short are counted by the tables of these events.
        let first = event.u64(0);
        match event.tag {
            SYSCALL_ENTER => first.into_iter().for_each(|address| self.syscalls.enter(event, address, cx)),
            SYSCALL_EXIT => self.syscalls.exit(event, &mut self.laws, cx),
            CSWITCH => first.into_iter().for_each(|old| self.syscalls.switch(event, old as u32, cx)),
            THREAD_END => {
                let utid = first.and_then(|tid| cx.model.threads.current(tid as u32));
                utid.into_iter().for_each(|utid| self.syscalls.thread_end(utid));
            }
            SAMPLE => self.sample(event, cx),
            FILE_END => {
                if let Some(pending) = first.and_then(|irp| self.files.remove(&irp)) {
                    self.file_ends(&pending, event, cx);
                }
            }
            ALLOC | FREE => self.memory(event, cx),
            HANDLE => {
                let upid = cx.actor(event).and_then(|actor| cx.model.upid_of(actor.utid));
                if let (Some(ty), Some(upid)) = (first, upid) {
                    let operation = Operation::Handle(ty as u16);
                    self.laws.give(Seen::Call { operation, upid, ns: event.ns }, Laws::see);
                }
            }
            HANDLE_TYPE => {
                let name = cx.sym_or_none(event.fields().text("TypeName"));
                if let (Some(ty), Some(name)) = (first, name) {
                    self.types.insert(ty as u16, name);
                }
            }
            tag if tag >= REGISTRY => self.key(event, tag - REGISTRY, cx),
            op => self.file_begins(event, op, cx),
        }
    }

    fn finish(self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let Growths { mut rows, mut points, laws, types, .. } = *self;
        let Laws { mut series, samples } = laws.into_done();
        end.ledger.count(&GROWTH_BEYOND_LIMIT, series.beyond);
        rows::fill(&mut rows, &mut points, &mut series, &samples, &types, end);
        Ok(vec![rows.into(), points.into()])
    }
}

impl Growths {
    fn sample(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(ip), Some(tid)) = (event.u64(0), event.u64(1)) else { return };
        let tid = tid as u32;
        // Neither idle nor in a DPC or ISR.
        if tid == 0 || event.u64(3).unwrap_or(0) & 3 != 0 {
            return;
        }
        let count = event.u64(2).unwrap_or(1).max(1) as i64;
        let interval = cx.model.system.sample_interval.unwrap_or(1_000_000);
        let utid = cx.model.thread(tid, None, event.ns);
        let ticket = cx.stack_ticket_at(event, Some(tid), Some(utid), ip);
        let upid = cx.model.upid_of(utid);
        let weight_ns = interval.saturating_mul(count);
        self.laws.give(Seen::Sample { ns: event.ns, utid, upid, ticket, weight_ns }, Laws::see);
    }

    fn file_begins(&mut self, event: &Event<'_>, op: u8, cx: &mut Context<'_>) {
        let Some(irp) = event.u64(0) else { return };
        let header = event.tid_pid();
        let tid = event.u64(1).map(|tid| tid as u32).filter(|&tid| tid != 0 && tid != u32::MAX);
        let Some(tid) = tid.or(header.map(|(tid, _)| tid)) else { return };
        let pid = header.filter(|(t, _)| *t == tid).map(|(_, pid)| pid);
        let utid = cx.model.thread(tid, pid, event.ns);
        let size = event.u64(2).unwrap_or(0);
        let pending = Pending { op, cpu: event.record.cpu, utid, start_ns: event.ns, size };
        if self.files.len() < MOST_PENDING || self.files.contains_key(&irp) {
            self.files.insert(irp, pending);
        }
    }

    fn file_ends(&mut self, pending: &Pending, event: &Event<'_>, cx: &Context<'_>) {
        let (cpus, cpu, start) = (&cx.model.cpus, event.record.cpu, pending.start_ns);
        let doubtful = cpus.parted((pending.cpu, start), (cpu, event.ns))
            && !(cpu == pending.cpu && cpus.stayed(cpu, pending.utid, start, event.ns));
        let cost = (!doubtful).then(|| event.ns.saturating_sub(start));
        let owner = Owner::for_thread(cx.model, Some(pending.utid));
        let of = (Operation::File(pending.op), owner);
        self.laws.give(Seen::Timed { of, ns: event.ns, cost, wall: None, size: pending.size }, Laws::see);
    }

    fn key(&mut self, event: &Event<'_>, op: u8, cx: &mut Context<'_>) {
        let initial = event.i64(0).filter(|&initial| initial > 0);
        let cost = initial.and_then(|initial| cx.span_since_uncounted(event, initial, OPERATION_BEFORE_NS));
        let Some(actor) = cx.actor(event) else { return };
        let of = (Operation::Registry(op), Owner::for_thread(cx.model, Some(actor.utid)));
        self.laws.give(Seen::Timed { of, ns: event.ns, cost, wall: None, size: 0 }, Laws::see);
    }

    fn memory(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(pid), Some(flags)) = (event.u64(0), event.u64(1)) else { return };
        let upid = cx.model.processes.at(pid as u32, event.ns);
        let what = match (event.tag == FREE, flags & MEM_RESERVE != 0, flags & MEM_TOP_DOWN != 0) {
            (true, _, _) => Memory::Free,
            (false, true, true) => Memory::ReserveTopDown,
            (false, true, false) => Memory::Reserve,
            (false, false, _) => Memory::Commit,
        };
        let operation = Operation::Memory(what);
        self.laws.give(Seen::Call { operation, upid, ns: event.ns }, Laws::see);
    }
}
