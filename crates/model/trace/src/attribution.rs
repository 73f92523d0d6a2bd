//! Whose an event is: what its header says, else who ran on its processor, else whose stack it has.
//!
//! Events with a `PERFINFO_TRACE_HEADER` (page faults, `VirtualAlloc`, pool) name no thread. Which header the kernel
//! uses differs between types and builds, so every analysis looks at the header first.

use crate::event::{Context, Event};
use etwhy_decode::kernel::KernelEvent;
use etwhy_decode::kernel::events::{PerfInfo, Thread};

/// DPCs and ISRs.
const INTERRUPTS: [KernelEvent; 7] = [
    PerfInfo::ISR,
    PerfInfo::ISR_MSI,
    PerfInfo::ISR_PASS,
    PerfInfo::DPC,
    PerfInfo::ThreadedDPC,
    PerfInfo::TimerDPC,
    PerfInfo::IOTimer,
];

/// A thread: its id and its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Thread id.
    pub tid: u32,
    /// Its instance.
    pub utid: u32,
}

impl Context<'_> {
    /// The thread whose event this is: that of the header, else the one which the context switches put on the
    /// event's processor. `None` if nothing tells.
    #[inline]
    pub fn actor(&mut self, event: &Event<'_>) -> Option<Actor> {
        if let Some((tid, _)) = event.tid_pid() {
            return self.utid(event).map(|utid| Actor { tid, utid });
        }
        let running = self.model.cpus.running(event.record.cpu, event.ns)?;
        Some(Actor { tid: running.tid, utid: running.utid })
    }

    /// Whose an event is in the widest sense: thread id, thread and process, as far as header, payload or the state of
    /// the processor tell. DPCs and ISRs are nobody's.
    pub(crate) fn whose(&mut self, event: &Event<'_>) -> (Option<u32>, Option<u32>, Option<u32>) {
        let header = event.tid_pid();
        if let Some((tid, _)) = header {
            return (Some(tid), self.utid(event), self.upid(event));
        }
        let named = self.model.named;
        let system = event.record.kind.is_system();
        let is = |kernel: &KernelEvent| system && event.record.hook() == kernel.hook;
        // The stack of a context switch is that of the new thread.
        let switch = is(&Thread::CSwitch).then_some(self.model.switches.current);
        let thread = match switch {
            Some(switch) => Some((switch.new_tid, switch.new_utid)),
            None => named.thread,
        };
        let interrupts = INTERRUPTS.iter().any(is);
        let runs = || {
            let known = system && !interrupts && named.upid.is_none() && event.pid().is_none();
            let running = self.model.cpus.running(event.record.cpu, event.ns).filter(|_| known)?;
            Some((running.tid, running.utid))
        };
        let thread = thread.or_else(runs);
        let of_thread = thread.and_then(|(_, utid)| self.model.upid_of(utid));
        let upid = named.upid.or(of_thread).or_else(|| self.upid(event));
        (thread.map(|t| t.0), thread.map(|t| t.1), upid)
    }

    /// A ticket for the stack of an actor's event.
    #[inline]
    pub fn actor_stack(&mut self, event: &Event<'_>, actor: Option<Actor>) -> i32 {
        self.stack_ticket(event, actor.map(|a| a.tid), actor.map(|a| a.utid))
    }
}
