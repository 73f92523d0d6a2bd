//! System calls: which routine of the kernel was called by whom, how long it took and what it returned.
//!
//! # How it is computed
//! `SysCallEnter` and `SysCallExit` name neither thread nor process. They belong to the thread that the last
//! context switch put on their processor, wherever the call began: a call that blocks may end on another one.
//! An exit ends the innermost call that its thread is inside of; kernel code that calls system services (`Zw`
//! routines), and callbacks to user mode, make calls inside calls. Time on processors is that between context
//! switches, without the DPCs and ISRs that ran meanwhile. A call's stack is that of its `SysCallEnter`.
//!
//! Where it is not known who runs on a processor (context switches not recorded, buffers missing, before its
//! first switch), the stack record of the `SysCallEnter` names the thread, if there is one. If nothing does, the
//! call has no thread, and nothing is paired.
//!
//! Rows stand in the order in which the calls ended; calls that did not come behind them. An exit without an
//! enter (a call that began before the trace) makes a row of its own, without start and function.
//!
//! # What fools it
//! * Between missing buffers exits may be missing too. Calls that were open then are given up (`outcome`
//!   unknown) unless their thread stayed on one processor that lacks nothing.
//! * `NtContinue`, `NtRaiseException` and `NtCallbackReturn` do not come back. They are known by name, that is,
//!   only if symbols are there and the images were named before (rundown at the start of the trace). Otherwise
//!   a callback's exit ends `NtCallbackReturn` in place of the call that made the callback, which stays open.
//! * What calls of `win32k` return is no `NTSTATUS`; the same goes for a few others (`NtGetTickCount`).
//! * The time includes that of logging both events, which for short calls is most of it.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{
    PAYLOAD_TOO_SHORT, SYSCALLS_UNATTRIBUTED, SYSCALLS_UNPAIRED, SYSCALLS_WITHOUT_SWITCHES,
};
use crate::calls::{Call, Moment, ThreadCalls, Times};
use crate::event::{Context, Event, Select, What};
use crate::finish::process_later;
use crate::model::place::PlaceId;
use crate::model::stack::NO_STACK;
use etwhy_decode::kernel::events::{PerfInfo, StackWalk, Thread};
use etwhy_table::{Strings, Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// System calls.
    ///
    /// One row per `SysCallEnter`, and one per `SysCallExit` whose enter was not recorded. Times of calls inside
    /// another call (`depth` > 0) are part of that call's times too.
    pub table SYSCALL: SyscallRow = "syscall" {
        version: 1,
        /// When it began; empty if it began before the trace.
        start_ns: Option<i64> [Ns, Time],
        /// When it returned; empty if it did not, or if that is not known.
        ts_ns: Option<i64> [Ns, Time],
        /// From begin to return.
        dur_ns: Option<i64> [Ns, Duration],
        /// Time that the thread was on a processor meanwhile, without DPCs and ISRs.
        on_cpu_ns: Option<i64> [Ns, Duration],
        /// Time that the thread was switched out meanwhile: waiting, or ready and not yet running.
        off_cpu_ns: Option<i64> [Ns, Duration],
        /// Process that called.
        upid: Option<i32> [None, Process],
        /// Thread that called; empty if nothing tells.
        utid: Option<i32> [None, Thread],
        /// Processor on which it began.
        cpu: Option<i32> [None, Cpu],
        /// Address of the routine.
        address: Option<i64> [Address, Address],
        /// `module!function` of the routine.
        function: Option<Sym> [None, Name],
        /// Frame of the routine (table `frame`).
        frame_id: Option<i32> [None, Frame],
        /// What it returned.
        status: Option<i32> [Hex32, Status],
        /// Name of the status, if it is a known `NTSTATUS`.
        status_name: Option<Sym> [None, Name],
        /// The status is an error (severity 3 of `NTSTATUS`; warnings are none). Empty if there is none.
        failed: Option<bool> [None, Flag],
        /// Calls that it lies inside of, of those that returned; empty where that is not known.
        depth: Option<i32> [Count, Count],
        /// returned; unfinished (at the end of the trace); thread_ended (inside of it); no_return (it is one that
        /// does not come back); no_enter (it began before the trace); unknown (its end, see the ledger).
        outcome: Sym [None, Kind],
        /// It had not returned when the trace or its thread ended.
        unfinished: bool [None, Flag],
        /// Stack of the caller (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

const ENTER: u8 = PerfInfo::SysClEnter.opcode;
const EXIT: u8 = PerfInfo::SysClExit.opcode;
const CSWITCH: u8 = Thread::CSwitch.opcode;
const STACK: u8 = StackWalk::Stack.opcode;

const STACK_FIELDS: &[&str] = &["EventTimeStamp", "StackThread"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&SYSCALL],
    selects: &[
        Select::kernel(PerfInfo::SysClEnter, &["SysCallAddress"]),
        Select::kernel(PerfInfo::SysClExit, &["SysCallNtStatus"]),
        Select::kernel(Thread::CSwitch, &["OldThreadId"]),
        Select::kernel(Thread::End, &["TThreadId|ThreadId|ThreadID"]),
        Select::kernel(StackWalk::Stack, STACK_FIELDS),
        Select::with(What::Kernel(StackWalk::StackKeyKernel), STACK, STACK_FIELDS),
        Select::with(What::Kernel(StackWalk::StackKeyUser), STACK, STACK_FIELDS),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Syscalls {
            rows: Rows { table: TableBuilder::new(memory), never: HashMap::default() },
            threads: HashMap::default(),
            cpus: Vec::new(),
            services: HashMap::default(),
            late: BTreeMap::new(),
        })
    },
};

/// How calls ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Returned,
    Unfinished,
    ThreadEnded,
    NoReturn,
    NoEnter,
    Unknown,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Outcome::Returned => "returned",
            Outcome::Unfinished => "unfinished",
            Outcome::ThreadEnded => "thread_ended",
            Outcome::NoReturn => "no_return",
            Outcome::NoEnter => "no_enter",
            Outcome::Unknown => "unknown",
        }
    }
}

/// What is known of a routine.
#[derive(Clone, Copy)]
struct Service {
    place: PlaceId,
    calls: u32,
    known: bool,
    no_return: bool,
    no_status: bool,
}

/// Routines that come back under another call's name or not at all: they put the thread where it was before an
/// exception, an APC or a callback (documented by phnt, the System Informer project's headers).
const NO_RETURN: &[&str] = &["NtContinue", "NtContinueEx", "NtRaiseException", "NtCallbackReturn"];

/// Distinct routines that are remembered. Windows has some two thousand; more are damage.
const MOST_SERVICES: usize = 1 << 16;

/// What is known of a processor beyond the context switches.
#[derive(Clone, Copy, Default)]
struct Cpu {
    /// A call of an unknown thread, whose stack record may name it. With the ticks of its event.
    pending: Option<(Call, i64, i64)>,
    /// The thread that a stack record named, and when: it is there until the next context switch.
    told: Option<(u32, u32, i64)>,
}

struct Syscalls {
    rows: Rows,
    threads: HashMap<u32, ThreadCalls>,
    cpus: Vec<Cpu>,
    services: HashMap<u64, Service>,
    /// Calls of unknown threads whose stack did not come at once, by ticks and processor.
    late: BTreeMap<(i64, u16), Call>,
}

/// Calls that wait for a late stack. User halves come up to hundreds of milliseconds late.
const MOST_LATE: usize = 1 << 16;

impl Analysis for Syscalls {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(value) = event.u64(0) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, u64::from(matches!(event.tag, ENTER | EXIT)));
            return;
        };
        match event.tag {
            ENTER => self.enter(event, value, cx),
            EXIT => self.exit(event, value as u32, cx),
            CSWITCH => self.switch(event, value as u32, cx),
            STACK => self.stack(event, value as i64, cx),
            _ => self.thread_end(value as u32, cx),
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let pending = self.cpus.iter_mut().filter_map(|c| c.pending.take()).map(|p| p.0);
        let unknown: Vec<Call> = self.late.into_values().chain(pending).collect();
        end.ledger.count(&SYSCALLS_UNATTRIBUTED, unknown.len() as u64);
        for call in &unknown {
            self.rows.open(end.strings, None, call, Outcome::Unknown, None);
        }
        let switches = end.model.cpus.switches;
        let mut threads: Vec<(u32, ThreadCalls)> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_unstable_by_key(|(utid, _)| *utid);
        for (utid, mut thread) in threads {
            let ended = end.model.threads.get(utid).is_some_and(|t| t.end_ns.is_some());
            let doubtful = end.model.cpus.doubtful(thread.last_ns, end.span_ns.1);
            let outcome = match (switches && !doubtful, ended) {
                (false, _) => Outcome::Unknown,
                (true, true) => Outcome::ThreadEnded,
                (true, false) => Outcome::Unfinished,
            };
            self.rows.give_up(end.strings, utid, &mut thread, outcome);
        }
        self.rows.correct_depths()?;
        let mut rows = self.rows.table;
        if !switches && rows.rows() > 0 {
            end.ledger.count(&SYSCALLS_WITHOUT_SWITCHES, 1);
        }
        end.processes_of(&mut rows, "upid")?;
        end.routines_of(&mut rows, "function")?;
        end.frames_of(&mut rows, "frame_id")?;
        end.stacks_of(&mut rows, "stack_id")?;
        Ok(vec![rows.into()])
    }
}

/// An end: when, with what status, and the times.
struct Ended {
    ns: i64,
    status: u32,
    times: Option<Times>,
}

impl Syscalls {
    fn enter(&mut self, event: &Event<'_>, address: u64, cx: &mut Context<'_>) {
        self.drop_pending(event.record.cpu, cx);
        let service = self.service(address, cx);
        let who = self.who(event, cx);
        let (tid, utid) = (who.map(|w| w.0), who.map(|w| w.1));
        let call = Call {
            start_ns: event.ns,
            cpu: event.record.cpu,
            address,
            place: service.place,
            ticket: cx.stack_ticket(event, tid, utid),
            no_status: service.no_status,
            rows_before: self.rows.table.rows(),
        };
        match utid {
            Some(utid) => self.begin(event, utid, call, moment(event, cx), cx),
            None => {
                let pending = Some((call, event.record.ticks, moment(event, cx).interrupted_ns));
                if let Some(cpu) = self.cpu(event.record.cpu) {
                    cpu.pending = pending;
                }
            }
        }
    }

    /// A call of a known thread, at the moment of its enter.
    fn begin(&mut self, event: &Event<'_>, utid: u32, call: Call, at: Moment, cx: &mut Context<'_>) {
        let no_return = self.services.get(&call.address).is_some_and(|s| s.no_return);
        let thread = self.threads.entry(utid).or_default();
        judge(&mut self.rows, event, utid, thread, cx);
        thread.here(at);
        if no_return {
            self.rows.open(cx.strings, Some(utid), &call, Outcome::NoReturn, Some(thread.depth()));
        } else if let Some(gone) = thread.begin(call) {
            cx.ledger.count(&SYSCALLS_UNPAIRED, 1);
            self.rows.open(cx.strings, Some(utid), &gone, Outcome::Unknown, None);
        }
    }

    fn exit(&mut self, event: &Event<'_>, status: u32, cx: &mut Context<'_>) {
        self.drop_pending(event.record.cpu, cx);
        let Some((_, utid)) = self.who(event, cx) else {
            cx.ledger.count(&SYSCALLS_UNATTRIBUTED, 1);
            // It may be the end of the call of the thread that was there last.
            let told = self.cpu(event.record.cpu).and_then(|c| c.told);
            if let Some((_, utid, _)) = told
                && let Some((call, _)) = self.threads.get_mut(&utid).and_then(ThreadCalls::end)
            {
                self.rows.open(cx.strings, Some(utid), &call, Outcome::Unknown, None);
            }
            return;
        };
        let thread = self.threads.entry(utid).or_default();
        judge(&mut self.rows, event, utid, thread, cx);
        thread.here(moment(event, cx));
        match thread.end() {
            Some((call, times)) => {
                let ended = Ended { ns: event.ns, status, times };
                let depth = Some(thread.depth());
                self.rows.push(cx.strings, Some(utid), Some(&call), Some(&ended), Outcome::Returned, depth);
            }
            None if thread.given_up > 0 => thread.given_up -= 1,
            None => {
                let ended = Ended { ns: event.ns, status, times: None };
                self.rows.push(cx.strings, Some(utid), None, Some(&ended), Outcome::NoEnter, None);
            }
        }
    }

    fn thread_end(&mut self, tid: u32, cx: &mut Context<'_>) {
        let Some(utid) = cx.model.threads.current(tid) else { return };
        if let Some(mut thread) = self.threads.remove(&utid) {
            let known = cx.model.cpus.switches;
            let outcome = if known { Outcome::ThreadEnded } else { Outcome::Unknown };
            self.rows.give_up(cx.strings, utid, &mut thread, outcome);
        }
    }

    fn switch(&mut self, event: &Event<'_>, old_tid: u32, cx: &mut Context<'_>) {
        let number = event.record.cpu;
        self.drop_pending(number, cx);
        let told = self.cpu(number).and_then(|cpu| cpu.told.take());
        let now = moment(event, cx);
        let cpus = &cx.model.cpus;
        let replaced = cpus.replaced(number).map(|r| (r.utid, true));
        let told =
            told.filter(|(tid, _, since)| *tid == old_tid && !cpus.doubtful_on(number, *since, event.ns));
        let old = replaced
            .or(told.map(|(_, utid, _)| (utid, true)))
            .or_else(|| Some((cx.model.threads.current(old_tid)?, false)));
        if let Some((utid, known)) = old.filter(|_| old_tid != 0)
            && let Some(thread) = self.threads.get_mut(&utid).filter(|t| t.depth() > 0)
        {
            thread.switched_out(now, known);
        }
        if let Some(new) = cpus.running(number, event.ns)
            && let Some(thread) = self.threads.get_mut(&new.utid).filter(|t| t.depth() > 0)
        {
            thread.switched_in(now);
        }
    }

    /// A stack record names the thread of the event at `ticks`.
    fn stack(&mut self, event: &Event<'_>, ticks: i64, cx: &mut Context<'_>) {
        let number = event.record.cpu;
        let tid = event.u64(1).map(|tid| tid as u32).filter(|&tid| tid != 0 && tid != u32::MAX);
        let Some((tid, utid)) = tid.and_then(|tid| Some((tid, cx.model.threads.current(tid)?))) else {
            return;
        };
        let pending = self.cpus.get(usize::from(number)).and_then(|c| c.pending);
        let Some((call, _, interrupted_ns)) = pending.filter(|(_, of, _)| *of == ticks) else {
            return self.late_stack(ticks, utid, cx);
        };
        if let Some(cpu) = self.cpu(number) {
            *cpu = Cpu { pending: None, told: Some((tid, utid, call.start_ns)) };
        }
        let at = Moment { cpu: number, ns: call.start_ns, interrupted_ns };
        self.begin(event, utid, call, at, cx);
    }

    /// The thread of the event, with its tid.
    fn who(&mut self, event: &Event<'_>, cx: &Context<'_>) -> Option<(u32, u32)> {
        let cpus = &cx.model.cpus;
        if let Some(running) = cpus.running(event.record.cpu, event.ns) {
            // The idle thread calls nobody: switches must be missing.
            return Some((running.tid, running.utid)).filter(|(tid, _)| *tid != 0);
        }
        let told = self.cpu(event.record.cpu)?.told?;
        let doubtful = cpus.doubtful_on(event.record.cpu, told.2, event.ns);
        (cpus.switches && !doubtful).then_some((told.0, told.1))
    }

    /// The stack record of the call that waits for it did not come at once: it can still name the thread, but
    /// the thread may be elsewhere by then.
    fn drop_pending(&mut self, number: u16, cx: &mut Context<'_>) {
        let Some((call, ticks, _)) = self.cpu(number).and_then(|cpu| cpu.pending.take()) else { return };
        let twin = self.late.insert((ticks, number), call);
        let oldest = (self.late.len() > MOST_LATE).then(|| self.late.pop_first()).flatten();
        for call in twin.into_iter().chain(oldest.map(|(_, call)| call)) {
            cx.ledger.count(&SYSCALLS_UNATTRIBUTED, 1);
            self.rows.open(cx.strings, None, &call, Outcome::Unknown, None);
        }
    }

    /// The stack of a call that has waited for it.
    fn late_stack(&mut self, ticks: i64, utid: u32, cx: &mut Context<'_>) {
        let mut these = self.late.range((ticks, 0)..=(ticks, u16::MAX)).map(|(key, _)| *key);
        // Two processors, one tick: the record does not say which of them it means.
        let (Some(key), None) = (these.next(), these.next()) else { return };
        if let Some(call) = self.late.remove(&key) {
            self.rows.open(cx.strings, Some(utid), &call, Outcome::Unknown, None);
        }
    }

    fn cpu(&mut self, number: u16) -> Option<&mut Cpu> {
        let index = usize::from(number);
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, Cpu::default());
        }
        self.cpus.get_mut(index)
    }

    fn service(&mut self, address: u64, cx: &mut Context<'_>) -> Service {
        if let Some(service) = self.services.get_mut(&address) {
            service.calls = service.calls.saturating_add(1);
            // Symbols need the image's identity, which may come later: it is looked for ever more seldom.
            if !service.known && service.calls.is_power_of_two() {
                service.look(address, cx);
            }
            return *service;
        }
        let place = cx.place(None, address);
        let mut service = Service { place, calls: 1, known: false, no_return: false, no_status: false };
        if self.services.len() < MOST_SERVICES {
            service.look(address, cx);
            self.services.insert(address, service);
        }
        service
    }
}

/// The table being filled.
struct Rows {
    table: TableBuilder<SyscallRow>,
    /// Calls that never returned, by thread: how many rows there were when they began.
    never: HashMap<u32, Vec<u64>>,
}

impl Rows {
    /// A call whose end is not known, or that has none.
    fn open(
        &mut self,
        strings: &mut Strings,
        utid: Option<u32>,
        call: &Call,
        outcome: Outcome,
        depth: Option<usize>,
    ) {
        self.push(strings, utid, Some(call), None, outcome, depth);
    }

    /// All calls that a thread is inside of.
    fn give_up(&mut self, strings: &mut Strings, utid: u32, thread: &mut ThreadCalls, outcome: Outcome) {
        for call in thread.take() {
            if outcome != Outcome::Unknown {
                self.never.entry(utid).or_default().push(call.rows_before);
            }
            self.open(strings, Some(utid), &call, outcome, None);
        }
    }

    /// Calls that never returned hold nothing: most of them are calls that do not come back
    /// (`NtContinue`), and all that the thread did later is not inside of them.
    fn correct_depths(&mut self) -> etwhy_table::Result<()> {
        if self.never.is_empty() {
            return Ok(());
        }
        let mut threads: Vec<Option<i32>> = Vec::new();
        self.table.remap_i32("utid", |utid| {
            threads.push(utid);
            utid
        })?;
        for starts in self.never.values_mut() {
            starts.sort_unstable();
        }
        let mut rows = threads.into_iter().zip(0u64..);
        self.table.remap_i32("depth", |depth| {
            let (utid, row) = rows.next()?;
            let starts = utid.and_then(|utid| self.never.get(&(utid as u32)));
            let around = starts.map_or(0, |starts| starts.partition_point(|&before| before <= row));
            depth.map(|depth| depth.saturating_sub(around as i32).max(0))
        })
    }

    fn push(
        &mut self,
        strings: &mut Strings,
        utid: Option<u32>,
        call: Option<&Call>,
        ended: Option<&Ended>,
        outcome: Outcome,
        depth: Option<usize>,
    ) {
        let start_ns = call.map(|c| c.start_ns);
        let times = ended.and_then(|e| e.times);
        let status = ended.map(|e| e.status);
        let is_status = call.is_none_or(|c| !c.no_status);
        let name = status.filter(|_| is_status).and_then(etwhy_knowledge::ntstatus_name);
        self.table.push(SyscallRow {
            start_ns,
            ts_ns: ended.map(|e| e.ns),
            dur_ns: start_ns.zip(ended).map(|(start, e)| e.ns.saturating_sub(start)),
            on_cpu_ns: times.map(|t| t.on_cpu_ns),
            off_cpu_ns: times.map(|t| t.off_cpu_ns),
            upid: utid.map(process_later),
            utid: utid.map(|u| u as i32),
            cpu: call.map(|c| i32::from(c.cpu)),
            address: call.map(|c| c.address as i64),
            function: call.map(|c| c.place.name_later()),
            frame_id: call.map(|c| c.place.frame_later()),
            status: status.map(|s| s as i32),
            status_name: name.map(|n| strings.intern(n)),
            failed: status.filter(|_| is_status).map(|s| s >> 30 == 3),
            depth: depth.map(|d| d as i32),
            outcome: strings.intern(outcome.name()),
            unfinished: matches!(outcome, Outcome::Unfinished | Outcome::ThreadEnded),
            stack_id: Some(call.map_or(NO_STACK, |c| c.ticket)),
        });
    }
}

impl Service {
    fn look(&mut self, address: u64, cx: &mut Context<'_>) {
        let Some((module, function)) = cx.kernel_routine(address) else { return };
        self.no_status = module.get(..6).is_some_and(|m| m.eq_ignore_ascii_case("win32k"));
        if let Some(function) = function {
            self.known = true;
            self.no_return = NO_RETURN.contains(&function.as_str());
        }
    }
}

/// Gives up the open calls of a thread that may have had events that are missing.
fn judge(rows: &mut Rows, event: &Event<'_>, utid: u32, thread: &mut ThreadCalls, cx: &mut Context<'_>) {
    let last = std::mem::replace(&mut thread.last_ns, event.ns);
    let depth = thread.depth();
    if depth > 0 && cx.model.may_have_run_unseen(event.record.cpu, utid, last, event.ns) {
        cx.ledger.count(&SYSCALLS_UNPAIRED, depth as u64);
        rows.give_up(cx.strings, utid, thread, Outcome::Unknown);
        thread.given_up = depth as u32;
    }
}

fn moment(event: &Event<'_>, cx: &Context<'_>) -> Moment {
    let cpu = event.record.cpu;
    Moment { cpu, ns: event.ns, interrupted_ns: cx.model.cpus.interrupted_ns(cpu) }
}
