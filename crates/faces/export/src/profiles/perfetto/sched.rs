//! What processors did, as events of ftrace.

use super::ids::Ids;
use super::packets::{Packets, field};
use crate::Result;
use crate::profile::{People, Profile, row};
use crate::protobuf::Message;
use etwhy_trace::catalog::{cpu_frequency::CpuFrequencyRow, cswitch::CSwitchRow, idle_state::IdleStateRow};
use std::collections::BTreeMap;

/// Events of a bundle: a packet should stay small.
const BUNDLE: usize = 256;

/// Events of one processor that wait for their packet. One that tells something at its end (a thread is made ready on
/// the processor where it then runs) may stand out of order; the reader sorts.
#[derive(Default)]
struct Bundles {
    by_cpu: BTreeMap<u64, (i64, Vec<Message>)>,
}

impl Bundles {
    fn add(
        &mut self,
        cpu: u64,
        ts_ns: i64,
        packets: &mut Packets<'_>,
        write: impl FnOnce(&mut Message),
    ) -> Result<()> {
        let mut event = Message::default();
        event.uint(field::FTRACE_TIMESTAMP, ts_ns.max(0) as u64);
        write(&mut event);
        let (first, events) = self.by_cpu.entry(cpu).or_insert_with(|| (ts_ns, Vec::new()));
        *first = (*first).min(ts_ns);
        events.push(event);
        if events.len() >= BUNDLE {
            self.flush(cpu, packets)?;
        }
        Ok(())
    }

    fn flush(&mut self, cpu: u64, packets: &mut Packets<'_>) -> Result<()> {
        let Some((first, events)) = self.by_cpu.remove(&cpu) else { return Ok(()) };
        packets.packet(first, |packet| {
            packet.message(field::PACKET_FTRACE_EVENTS, |bundle| {
                bundle.uint(field::BUNDLE_CPU, cpu);
                for event in &events {
                    bundle.nested(field::BUNDLE_EVENT, event);
                }
            });
        })
    }

    fn finish(mut self, packets: &mut Packets<'_>) -> Result<()> {
        let cpus: Vec<u64> = self.by_cpu.keys().copied().collect();
        cpus.into_iter().try_for_each(|cpu| self.flush(cpu, packets))
    }
}

/// A state of a thread that leaves a processor (`KTHREAD_STATE`) in the bits of Linux's `prev_state`.
fn state(name: Option<&str>) -> u64 {
    match name {
        // TASK_INTERRUPTIBLE.
        Some("Waiting" | "GateWait" | "GateWaitObsolete" | "WaitingForProcessInSwap") => 1,
        // TASK_UNINTERRUPTIBLE: its kernel stack is paged out.
        Some("Transition") => 2,
        // EXIT_DEAD.
        Some("Terminated") => 0x10,
        // TASK_RUNNING: ready, preempted.
        _ => 0,
    }
}

/// Context switches and wake-ups. A choice of processes does not concern them: a processor has one story.
pub(super) fn switches(
    profile: &Profile<'_>,
    people: &People,
    ids: &Ids,
    packets: &mut Packets<'_>,
) -> Result<()> {
    let name = |utid: Option<u32>| people.thread(utid).map_or("unknown", |t| t.label.as_str());
    let id = |utid: Option<u32>| utid.map_or(0, |utid| ids.tid(utid));
    let mut bundles = Bundles::default();
    for of in &profile.db.read_or_empty::<CSwitchRow>() {
        let (ts, Some(cpu)) = (of.ts_ns(), row(of.cpu())) else { continue };
        if !profile.is_in_time(ts) {
            continue;
        }
        let (new, old) = (row(of.new_utid()), row(of.old_utid()));
        let waited = of.prev_state().is_some_and(|state| state.contains("Wait"));
        if let Some(ready) = of.ready_ts_ns().filter(|ready| waited && profile.is_in_time(*ready)) {
            bundles.add(u64::from(cpu), ready, packets, |event| {
                event.uint(field::FTRACE_PID, id(row(of.readying_utid())));
                event.message(field::FTRACE_SCHED_WAKING, |waking| {
                    waking.text(field::WAKING_COMM, name(new));
                    waking.uint(field::WAKING_PID, id(new));
                    waking.int(field::WAKING_PRIO, of.new_priority());
                    waking.uint(field::WAKING_SUCCESS, 1);
                    waking.uint(field::WAKING_TARGET_CPU, u64::from(cpu));
                });
            })?;
        }
        bundles.add(u64::from(cpu), ts, packets, |event| {
            event.uint(field::FTRACE_PID, id(old));
            event.message(field::FTRACE_SCHED_SWITCH, |switch| {
                switch.text(field::SWITCH_PREV_COMM, name(old));
                switch.uint(field::SWITCH_PREV_PID, id(old));
                switch.int(field::SWITCH_PREV_PRIO, of.old_priority());
                switch.uint(field::SWITCH_PREV_STATE, state(of.old_state()));
                switch.text(field::SWITCH_NEXT_COMM, name(new));
                switch.uint(field::SWITCH_NEXT_PID, id(new));
                switch.int(field::SWITCH_NEXT_PRIO, of.new_priority());
            });
        })?;
    }
    bundles.finish(packets)
}

/// `cpu_idle` says with this state that a processor is not idle any more.
const NOT_IDLE: u64 = u32::MAX as u64;

/// Frequencies and idle states of processors.
pub(super) fn power(profile: &Profile<'_>, packets: &mut Packets<'_>) -> Result<()> {
    let mut bundles = Bundles::default();
    for of in &profile.db.read_or_empty::<CpuFrequencyRow>() {
        let set = matches!(of.kind(), "change" | "rundown");
        let (ts, Some(cpu), Some(mhz), true) = (of.ts_ns(), row(of.cpu()), of.mhz(), set) else {
            continue;
        };
        if profile.is_in_time(ts) {
            bundles.add(u64::from(cpu), ts, packets, |event| {
                event.message(field::FTRACE_CPU_FREQUENCY, |power| {
                    power.uint(field::POWER_STATE, mhz.max(0).saturating_mul(1000) as u64);
                    power.uint(field::POWER_CPU, u64::from(cpu));
                });
            })?;
        }
    }
    for of in &profile.db.read_or_empty::<IdleStateRow>() {
        let Some(cpu) = row(of.cpu()) else { continue };
        let state = of.state().max(0) as u64;
        for (ts, state) in [(Some(of.start_ns()), state), (of.ts_ns(), NOT_IDLE)] {
            let Some(ts) = ts.filter(|ts| profile.is_in_time(*ts)) else { continue };
            bundles.add(u64::from(cpu), ts, packets, |event| {
                event.message(field::FTRACE_CPU_IDLE, |power| {
                    power.uint(field::POWER_STATE, state);
                    power.uint(field::POWER_CPU, u64::from(cpu));
                });
            })?;
        }
    }
    bundles.finish(packets)
}
