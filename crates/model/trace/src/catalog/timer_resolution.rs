//! Timer resolution: who asked for a finer clock, and what the clock then did.
//!
//! A finer clock wakes all processors more often. Windows' own period is 15.625 ms (64 interrupts a second).
//!
//! # How it is computed
//! One row for each event of Microsoft-Windows-Kernel-Power that speaks of it: a program's request (63, and 97 for
//! those that were in force when the recording asked), a driver's (98), and the clock's new period (95, and 96 at the
//! rundown). How the end of a request looks is not documented; table rows show what was written.
//!
//! Layouts: the provider's manifest of Windows 10; no public trace holds these events. All periods are units of
//! 100 ns there.
//!
//! # What fools it
//! Since Windows 10 2004 a request holds for the process that makes it; the clock may still run at the finest that
//! anybody wants. Windows 11 may ignore requests of windows that nobody sees.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::model::image::base_name;
use etwhy_base::Guid;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Requests for a timer resolution, and changes of the clock.
    pub table TIMER_RESOLUTION: TimerResolutionRow = "timer_resolution" {
        sorted_by: "ts_ns", version: 1, evidence: Documented,
        /// When.
        ts_ns: i64 [Ns, Time],
        /// request (of a program), running (a program's request at the rundown), driver (request of a driver), clock
        /// (the new period) or rundown (the period at that time).
        kind: Sym [None, Kind],
        /// Process that asks.
        upid: Option<i32> [None, Process],
        /// Thread that asks; none at rundowns.
        utid: Option<i32> [None, Thread],
        /// Period that was asked for, or that the clock has.
        period_ns: i64 [Ns, Duration],
        /// Name of the program, as the event tells it.
        program: Option<Sym> [None, Name],
        /// Service that asks, by its `SubProcessTag`.
        service: Option<Sym> [None, Name],
        /// Finest period that the clock can do, at rundowns.
        finest_ns: Option<i64> [Ns, Duration],
        /// Requests of drivers in force, at rundowns.
        driver_requests: Option<i32> [Count, Count],
    }
}

/// `Microsoft-Windows-Kernel-Power`.
const KERNEL_POWER: Guid = Guid::from_text("331c3b3a-2005-44c2-ac5e-77220c37d6b4");
const REQUEST: u8 = 63;
const CLOCK: u8 = 95;
const RUNDOWN: u8 = 96;
const RUNNING: u8 = 97;
const DRIVER: u8 = 98;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&TIMER_RESOLUTION],
    selects: &[
        Select::new(What::Manifest(KERNEL_POWER, 63), REQUEST),
        Select::new(What::Manifest(KERNEL_POWER, 95), CLOCK),
        Select::new(What::Manifest(KERNEL_POWER, 96), RUNDOWN),
        Select::new(What::Manifest(KERNEL_POWER, 97), RUNNING),
        Select::new(What::Manifest(KERNEL_POWER, 98), DRIVER),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Resolutions { rows: TableBuilder::new(memory), tags: Vec::new() }),
};

struct Resolutions {
    rows: TableBuilder<TimerResolutionRow>,
    /// Process id and service tag of the rows that have one.
    tags: Vec<(u32, u32)>,
}

impl Analysis for Resolutions {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let period = fields.u32("RequestedResolution|RequestedPeriod|NewResolution|CurrentPeriod");
        // Version 0 of the request has another, unknown layout.
        let Some(period) = period else { return };
        let asks = matches!(event.tag, REQUEST | RUNNING);
        let pid = fields.u32("Pid").or_else(|| event.pid()).filter(|_| asks);
        let tag = fields.u32("SubProcessTag").filter(|&t| t != 0);
        let service = pid.zip(tag).map(|(pid, tag)| {
            self.tags.push((pid, tag));
            Sym::provisional((self.tags.len() - 1) as u32)
        });
        let name = fields.text("AppName");
        let name = base_name(name.trim_end_matches('\0')).to_owned();
        let kind = match event.tag {
            REQUEST => "request",
            CLOCK => "clock",
            RUNDOWN => "rundown",
            RUNNING => "running",
            _ => "driver",
        };
        let ns = |units: u32| i64::from(units).saturating_mul(100);
        self.rows.push(TimerResolutionRow {
            ts_ns: event.ns,
            kind: cx.sym(kind),
            upid: pid.map(|pid| cx.model.processes.at(pid, event.ns) as i32),
            utid: cx.utid(event).filter(|_| event.tag == REQUEST).map(|u| u as i32),
            period_ns: ns(period),
            program: cx.sym_or_none(&name),
            service,
            // Which of the two is called the minimum has changed with the interfaces.
            finest_ns: fields
                .u32("MinimumPeriod")
                .zip(fields.u32("MaximumPeriod"))
                .map(|(a, b)| ns(a.min(b))),
            driver_requests: fields.u32("KernelRequestCount").map(|n| n as i32),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let tags = std::mem::take(&mut self.tags);
        self.rows.remap_text("service", |number| {
            let &(pid, tag) = tags.get(number? as usize)?;
            Some(end.model.services.by_tag(pid, tag)?.name)
        })?;
        Ok(vec![self.rows.into()])
    }
}
