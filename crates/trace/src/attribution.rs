//! Whose an event is: what its header says, else who ran on its processor, else whose stack it has.
//!
//! Events with a `PERFINFO_TRACE_HEADER` (page faults, `VirtualAlloc`, pool) name no thread. Which header the kernel
//! uses differs between types and builds, so every analysis looks at the header first.

use crate::engine::Finish;
use crate::event::{Context, Event};
use etwhy_table::{Row, TableBuilder};

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
        if let Some((tid, pid)) = event.tid_pid() {
            return Some(Actor { tid, utid: self.model.thread(tid, Some(pid), event.ns) });
        }
        let running = self.model.cpus.running(event.record.cpu, event.ns)?;
        Some(Actor { tid: running.tid, utid: running.utid })
    }

    /// A ticket for the stack of an actor's event.
    #[inline]
    pub fn actor_stack(&mut self, event: &Event<'_>, actor: Option<Actor>) -> i32 {
        self.stack_ticket(event, actor.map(|a| a.tid), actor.map(|a| a.utid))
    }
}

impl Finish<'_> {
    /// Exchanges the tickets in `stack` for stack numbers, and the thread numbers in `upid` for their processes;
    /// where there is no thread, the process is that of the stack.
    ///
    /// # Errors
    /// Those of the table builder.
    pub fn stacks_and_processes_of<R: Row>(
        &self,
        rows: &mut TableBuilder<R>,
        stack: &str,
        upid: &str,
    ) -> etwhy_table::Result<()> {
        let mut owners: Vec<u32> = Vec::new();
        rows.remap_i32(stack, |ticket| {
            let stack = self.resolved.stack_of_ticket(ticket?);
            let found = stack.and_then(|s| self.resolved.stacks.get(s as usize)).and_then(|s| s.upid);
            owners.push(found.unwrap_or(u32::MAX));
            stack
        })?;
        let mut owners = owners.into_iter();
        rows.remap_i32(upid, |utid| {
            let owner = owners.next().filter(|&u| u != u32::MAX);
            let of_thread = utid.and_then(|u| self.model.threads.get(u32::try_from(u).ok()?)?.upid);
            of_thread.or(owner).map(|u| u as i32)
        })
    }
}
