//! Idle states of processors: when each was entered and left, and which the system had chosen.
//!
//! # How it is computed
//! Kernel events of group `Power`: `PpmIdleStateEnter` (57) and `PpmIdleStateExit` (58), both written on the processor
//! that they speak of; an exit ends the enter before it on the same processor.
//!
//! Layouts: phnt's ntwmi.h (System Informer); no public trace holds these events.
//!
//! # What fools it
//! The numbers are indexes into the machine's list of states, not the C-numbers that a processor's maker uses. The
//! time is that between the two events, not the time that the processor really slept.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select};
use etwhy_decode::kernel::events::Power;
use etwhy_table::{TableBuilder, define_table};

define_table! {
    /// Idle periods of processors.
    pub table IDLE_STATE: IdleStateRow = "idle_state" {
        version: 1, evidence: Documented,
        /// When it was entered.
        start_ns: i64 [Ns, Time],
        /// When it was left; none if that was not recorded.
        ts_ns: Option<i64> [Ns, Time],
        /// How long it took; none if buffers are missing in between.
        dur_ns: Option<i64> [Ns, Duration],
        /// Logical processor.
        cpu: i32 [None, Cpu],
        /// State that was asked for.
        state: i32 [None, Kind],
        /// State that was reached, as the exit says.
        exit_state: Option<i32> [None, Other],
        /// Status of the exit.
        status: Option<i32> [Hex32, Status],
        /// How long the system expected to be idle, in its own unit.
        expected: i64 [None, Other],
        /// Flags of the enter.
        flags: i32 [Hex32, Flag],
    }
}

const ENTER: u8 = Power::PpmIdleStateEnter.opcode;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&IDLE_STATE],
    selects: &[
        Select::kernel(Power::PpmIdleStateEnter, &["State", "Flags", "ExpectedDuration"]),
        Select::kernel(Power::PpmIdleStateExit, &["State", "Status"]),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(IdleStates { rows: TableBuilder::new(memory), open: Vec::new() }),
};

#[derive(Clone, Copy)]
struct Enter {
    ns: i64,
    state: i32,
    flags: i32,
    expected: i64,
}

struct IdleStates {
    rows: TableBuilder<IdleStateRow>,
    /// By processor.
    open: Vec<Option<Enter>>,
}

impl IdleStates {
    fn push(&mut self, cpu: usize, enter: Enter, exit: Option<(i64, bool, i32, Option<i32>)>) {
        let sound = exit.filter(|(_, doubtful, ..)| !doubtful);
        self.rows.push(IdleStateRow {
            start_ns: enter.ns,
            ts_ns: exit.map(|(ns, ..)| ns),
            dur_ns: sound.map(|(ns, ..)| ns.saturating_sub(enter.ns).max(0)),
            cpu: cpu as i32,
            state: enter.state,
            exit_state: exit.map(|(.., state, _)| state),
            status: exit.and_then(|(.., status)| status),
            expected: enter.expected,
            flags: enter.flags,
        });
    }
}

impl Analysis for IdleStates {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let Some(state) = event.u64(0).map(|s| s as i32) else {
            cx.ledger.count(&crate::anomalies::PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let cpu = usize::from(event.record.cpu);
        if self.open.len() <= cpu {
            self.open.resize(cpu + 1, None);
        }
        let Some(slot) = self.open.get_mut(cpu) else { return };
        if event.tag == ENTER {
            let enter = Enter {
                ns: event.ns,
                state,
                flags: event.u64(1).unwrap_or(0) as i32,
                expected: event.u64(2).unwrap_or(0) as i64,
            };
            if let Some(lost) = slot.replace(enter) {
                self.push(cpu, lost, None);
            }
        } else if let Some(enter) = slot.take() {
            let doubtful = cx.model.cpus.doubtful_on(event.record.cpu, enter.ns, event.ns);
            let status = event.u64(1).map(|s| s as i32);
            self.push(cpu, enter, Some((event.ns, doubtful, state, status)));
        }
    }

    fn finish(mut self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        for (cpu, enter) in std::mem::take(&mut self.open).into_iter().enumerate() {
            if let Some(enter) = enter {
                self.push(cpu, enter, None);
            }
        }
        Ok(vec![self.rows.into()])
    }
}
