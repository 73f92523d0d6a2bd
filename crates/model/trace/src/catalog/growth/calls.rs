//! System calls: from enter to exit, and the time on a processor in between.
//!
//! As table `syscall` does it, but only where the context switches say who runs: a call whose thread or end is doubtful has no
//! cost here.

use super::laws::{Laws, Seen};
use super::series::Operation;
use crate::calls::{Call, Moment, ThreadCalls};
use crate::event::{Context, Event};
use crate::model::place::PlaceId;
use crate::model::stack::NO_STACK;
use crate::owner::Owner;
use etwhy_base::aside::Aside;
use foldhash::HashMap;

/// Calls that wait for the kernel and disks, not for what other programs do: their duration is a cost. (Of the others the time on
/// a processor is.)
const OWN_WORK: &[&str] = &[
    "NtAllocateVirtualMemory",
    "NtClose",
    "NtCreateFile",
    "NtCreateKey",
    "NtCreateSection",
    "NtCreateThreadEx",
    "NtCreateUserProcess",
    "NtDeleteFile",
    "NtDuplicateObject",
    "NtEnumerateKey",
    "NtEnumerateValueKey",
    "NtFreeVirtualMemory",
    "NtMapViewOfSection",
    "NtOpenFile",
    "NtOpenKey",
    "NtOpenKeyEx",
    "NtOpenProcess",
    "NtProtectVirtualMemory",
    "NtQueryAttributesFile",
    "NtQueryDirectoryFile",
    "NtQueryDirectoryFileEx",
    "NtQueryFullAttributesFile",
    "NtQuerySystemInformation",
    "NtQueryValueKey",
    "NtQueryVirtualMemory",
    "NtSetValueKey",
    "NtUnmapViewOfSection",
];

/// A routine of the kernel.
#[derive(Clone, Copy)]
struct Service {
    place: PlaceId,
    own_work: bool,
}

/// Distinct routines; more are damage.
const MOST_SERVICES: usize = 1 << 16;

/// Threads inside of system calls.
#[derive(Default)]
pub(super) struct Syscalls {
    threads: HashMap<u32, ThreadCalls>,
    services: HashMap<u64, Service>,
}

impl Syscalls {
    pub(super) fn enter(&mut self, event: &Event<'_>, address: u64, cx: &mut Context<'_>) {
        let Some(utid) = who(event, cx) else { return };
        let full = self.services.len() >= MOST_SERVICES;
        let place = match self.services.get(&address) {
            Some(service) => service.place,
            None if full => return,
            None => {
                let place = cx.place(None, address);
                let own_work = cx
                    .kernel_routine(address)
                    .and_then(|(_, function)| function)
                    .is_some_and(|function| OWN_WORK.contains(&function.as_str()));
                self.services.insert(address, Service { place, own_work });
                place
            }
        };
        let thread = self.threads.entry(utid).or_default();
        judge(event, utid, thread, cx);
        thread.here(moment(event, cx));
        // What is given back never returned: a call that does not.
        let _ = thread.begin(Call {
            start_ns: event.ns,
            cpu: event.record.cpu,
            address,
            place,
            ticket: NO_STACK,
            no_status: false,
            rows_before: 0,
        });
    }

    pub(super) fn exit(&mut self, event: &Event<'_>, laws: &mut Aside<Laws>, cx: &mut Context<'_>) {
        let Some(utid) = who(event, cx) else { return };
        let Some(thread) = self.threads.get_mut(&utid) else { return };
        judge(event, utid, thread, cx);
        thread.here(moment(event, cx));
        if thread.given_up > 0 && thread.depth() == 0 {
            thread.given_up -= 1;
            return;
        }
        let Some((call, times)) = thread.end() else { return };
        let own_work = self.services.get(&call.address).is_some_and(|s| s.own_work);
        let of = (Operation::Syscall(call.place), Owner::for_thread(cx.model, Some(utid)));
        let wall = own_work.then(|| event.ns.saturating_sub(call.start_ns));
        let cost = times.map(|t| t.on_cpu_ns);
        laws.give(Seen::Timed { of, ns: event.ns, cost, wall, size: 0 }, Laws::see);
    }

    pub(super) fn switch(&mut self, event: &Event<'_>, old_tid: u32, cx: &mut Context<'_>) {
        if self.threads.is_empty() {
            return;
        }
        let (number, now) = (event.record.cpu, moment(event, cx));
        let cpus = &cx.model.cpus;
        let old = cpus
            .replaced(number)
            .map(|r| (r.utid, true))
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

    pub(super) fn thread_end(&mut self, utid: u32) {
        self.threads.remove(&utid);
    }
}

/// The thread that the context switches put on the event's processor.
fn who(event: &Event<'_>, cx: &Context<'_>) -> Option<u32> {
    let running = cx.model.cpus.running(event.record.cpu, event.ns)?;
    (running.tid != 0).then_some(running.utid)
}

/// Gives up the open calls of a thread that may have had events that are missing.
fn judge(event: &Event<'_>, utid: u32, thread: &mut ThreadCalls, cx: &Context<'_>) {
    let last = std::mem::replace(&mut thread.last_ns, event.ns);
    let depth = thread.depth();
    if depth > 0 && cx.model.may_have_run_unseen(event.record.cpu, utid, last, event.ns) {
        drop(thread.take());
        thread.given_up = depth as u32;
    }
}

fn moment(event: &Event<'_>, cx: &Context<'_>) -> Moment {
    let cpu = event.record.cpu;
    Moment { cpu, ns: event.ns, interrupted_ns: cx.model.cpus.interrupted_ns(cpu) }
}
