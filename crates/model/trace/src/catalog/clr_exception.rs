//! .NET exceptions: every throw, with type and message.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::event::{Context, Event, Select, What};
use crate::model::clr::RUNTIME;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// .NET exceptions thrown (`ExceptionThrown`).
    pub table CLR_EXCEPTION: ClrExceptionRow = "clr_exception" {
        sorted_by: "ts_ns", version: 1, evidence: Verified("PerfView baselines of net.4.5.2.x64 and net.4.5.x86"),
        /// When.
        ts_ns: i64 [Ns, Time],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Thread that threw.
        utid: Option<i32> [None, Thread],
        /// Exception type.
        exception_type: Option<Sym> [None, Name],
        /// Exception message.
        message: Option<Sym> [None, Message],
        /// HRESULT.
        hresult: i32 [Hex32, Status],
        /// Flags: 1 has an inner exception, 2 nested, 4 rethrown, 8 corrupted state, 16 CLS compliant.
        flags: i32 [Hex32, Flag],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
    }
}

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&CLR_EXCEPTION],
    selects: &[Select::new(What::Manifest(RUNTIME, 80), 0)],
    stacks: true,
    on_demand: false,
    new: |memory| Box::new(Exceptions { rows: TableBuilder::new(memory) }),
};

struct Exceptions {
    rows: TableBuilder<ClrExceptionRow>,
}

impl Analysis for Exceptions {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let fields = event.fields();
        let (upid, utid) = (cx.upid(event), cx.utid(event));
        let stack = cx.stack_ticket(event, event.tid_pid().map(|(tid, _)| tid), utid);
        self.rows.push(ClrExceptionRow {
            ts_ns: event.ns,
            upid: upid.map(|u| u as i32),
            utid: utid.map(|u| u as i32),
            exception_type: cx.sym_or_none(fields.text("ExceptionType")),
            message: cx.sym_or_none(fields.text("ExceptionMessage")),
            hresult: fields.u64("ExceptionHRESULT") as i32,
            flags: fields.u64("ExceptionFlags") as i32,
            stack_id: Some(stack),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_of(&mut self.rows, "stack_id")?;
        Ok(vec![self.rows.into()])
    }
}
