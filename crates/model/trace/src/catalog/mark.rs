//! Marks: texts that somebody put into the trace to find a place again.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use etwhy_decode::kernel::events::PerfInfo;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Marks (`xperf -m`, `wpr -marker`, `EtwSetMark`).
    pub table MARK: MarkRow = "mark" {
        sorted_by: "ts_ns", version: 1, evidence: Verified("marks in sonde/test.etl and ebpforwindows.etl"),
        /// When.
        ts_ns: i64 [Ns, Time],
        /// The text.
        text: Sym [None, Name],
        /// Process that set it, if the record says.
        upid: Option<i32> [None, Process],
        /// Processor.
        cpu: i32 [None, Cpu],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&MARK],
    selects: &[Select::new(What::Kernel(PerfInfo::Mark), 0)],
    stacks: false,
    on_demand: false,
    new: |memory| Box::new(Marks { rows: TableBuilder::new(memory) }),
};

struct Marks {
    rows: TableBuilder<MarkRow>,
}

impl Analysis for Marks {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let upid = cx.upid(event);
        self.rows.push(MarkRow {
            ts_ns: event.ns,
            text: cx.sym(fields.text("Message")),
            upid: upid.map(|u| u as i32),
            cpu: i32::from(event.record.cpu),
        });
    }

    fn finish(self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        Ok(vec![self.rows.into()])
    }
}
