//! What each thread did with its time: it ran, it waited, it was ready and had no processor.
//!
//! # How it is computed
//! Sums over the context switches of table `cswitch`. Times that are not known there (the first run, waits across missing
//! buffers) are in no sum; `runs` counts all switches to the thread, `waits` and `readies` those whose times are known.
//!
//! # What fools it
//! A thread whose wait or run reaches over the start or the end of the trace has sums that are too small by that
//! part; `open_run_ns` is the run that was going on when the trace ended.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Select, What};
use crate::finish::process_later;
use crate::histogram::Histogram;
use etwhy_decode::kernel::events::Thread;
use etwhy_table::{TableBuilder, define_table};

define_table! {
    /// Running, waiting and ready time of threads, from context switches.
    pub table THREAD_TIME: ThreadTimeRow = "thread_time" {
        sorted_by: "utid", version: 2,
        /// Process.
        upid: Option<i32> [None, Process],
        /// Thread; the idle threads of all processors are one.
        utid: i32 [None, Thread],
        /// How often it was switched in.
        runs: i64 [Count, Count],
        /// Time on a processor, DPCs and ISRs included.
        run_ns: i64 [Ns, Duration],
        /// Time on a processor without the DPCs and ISRs that were recorded.
        cpu_ns: i64 [Ns, Weight],
        /// Run that was going on at the end of the trace; not in `run_ns`.
        open_run_ns: i64 [Ns, Duration],
        /// Waits whose length is known, preemptions not counted.
        waits: i64 [Count, Count],
        /// Time waiting.
        wait_ns: i64 [Ns, Duration],
        /// Longest wait.
        wait_max_ns: i64 [Ns, Duration],
        /// How often it left a processor without waiting: preempted, at the end of its quantum, or by yielding.
        preempted: i64 [Count, Count],
        /// Runs before which the time in the queue is known.
        readies: i64 [Count, Count],
        /// Time ready without a processor.
        ready_ns: i64 [Ns, Duration],
        /// Half of the times in the queue were no longer.
        ready_p50_ns: i64 [Ns, Duration],
        /// 95 % of them were no longer.
        ready_p95_ns: i64 [Ns, Duration],
        /// 99 % of them were no longer.
        ready_p99_ns: i64 [Ns, Duration],
        /// Longest time in the queue.
        ready_max_ns: i64 [Ns, Duration],
        /// Time off processors that cannot be split into waiting and ready, because there are no `ReadyThread` events.
        off_ns: i64 [Ns, Duration],
        /// Switches to it that woke the processor from a C-state of 2 or deeper.
        deep_wakeups: i64 [Count, Count],
        /// Switches to it from a processor's idle thread: each of them ends a rest of the processor.
        idle_wakeups: i64 [Count, Count],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&THREAD_TIME],
    selects: &[Select::with(
        What::Kernel(Thread::CSwitch),
        0,
        &["NewThreadId", "OldThreadId", "PreviousCState"],
    )],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Times { rows: TableBuilder::new(memory), threads: Vec::new() }),
};

struct Times {
    rows: TableBuilder<ThreadTimeRow>,
    /// By `utid`.
    threads: Vec<Option<Box<Sum>>>,
}

#[derive(Default)]
struct Sum {
    runs: i64,
    run_ns: i64,
    cpu_ns: i64,
    waits: i64,
    wait_ns: i64,
    wait_max_ns: i64,
    preempted: i64,
    ready: Histogram,
    off_ns: i64,
    deep_wakeups: i64,
    idle_wakeups: i64,
}

impl Times {
    fn sum(&mut self, utid: u32) -> Option<&mut Sum> {
        let index = utid as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, || None);
        }
        Some(self.threads.get_mut(index)?.get_or_insert_default())
    }
}

impl Analysis for Times {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(_), Some(_)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let switch = cx.model.switches.current;
        if let Some(run) = switch.old_run
            && let Some(old) = self.sum(switch.old_utid)
        {
            old.run_ns = old.run_ns.saturating_add(run.run_ns);
            old.cpu_ns = old.cpu_ns.saturating_add(run.run_ns.saturating_sub(run.interrupted_ns).max(0));
        }
        let Some(new) = self.sum(switch.new_utid) else { return };
        new.runs += 1;
        if switch.new_tid == 0 {
            return;
        }
        new.idle_wakeups += i64::from(switch.old_tid == 0);
        // C1 is a mere halt; deeper states take tens of microseconds to leave.
        new.deep_wakeups += i64::from(switch.old_tid == 0 && event.u64(2).is_some_and(|c| c >= 2));
        let waited = switch.prev.is_some_and(|p| p.state == 5);
        match switch.wait_ns {
            Some(wait) if waited => {
                new.waits += 1;
                new.wait_ns = new.wait_ns.saturating_add(wait);
                new.wait_max_ns = new.wait_max_ns.max(wait);
            }
            Some(_) => new.preempted += 1,
            None => new.off_ns = new.off_ns.saturating_add(switch.since_last_ns.unwrap_or(0)),
        }
        if let Some(ready) = switch.ready_ns {
            new.ready.add(ready);
        }
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let open = end.model.cpus.open_runs(end.kernel_end_ns());
        for (utid, sum) in self.threads.iter().enumerate() {
            let Some(sum) = sum else { continue };
            self.rows.push(ThreadTimeRow {
                upid: Some(process_later(utid as u32)),
                utid: utid as i32,
                runs: sum.runs,
                run_ns: sum.run_ns,
                cpu_ns: sum.cpu_ns,
                open_run_ns: open.get(&(utid as u32)).copied().unwrap_or(0),
                waits: sum.waits,
                wait_ns: sum.wait_ns,
                wait_max_ns: sum.wait_max_ns,
                preempted: sum.preempted,
                readies: i64::try_from(sum.ready.count).unwrap_or(i64::MAX),
                ready_ns: sum.ready.total_ns,
                ready_p50_ns: sum.ready.percentile(50).unwrap_or(0),
                ready_p95_ns: sum.ready.percentile(95).unwrap_or(0),
                ready_p99_ns: sum.ready.percentile(99).unwrap_or(0),
                ready_max_ns: sum.ready.max_ns,
                off_ns: sum.off_ns,
                deep_wakeups: sum.deep_wakeups,
                idle_wakeups: sum.idle_wakeups,
            });
        }
        end.processes_of(&mut self.rows, "upid")?;
        Ok(vec![self.rows.into()])
    }
}
