//! Zombies: processes that have exited and whose kernel object still exists, because somebody holds a handle to it.
//!
//! # How it is computed
//! The rundowns at start and end of a recording write a `Process/Defunct` record for each of them. They are told apart by the address of
//! their object and their process id; what both rundowns name is one row. Process ids may have been given out again: a zombie is none of table `process`.
//!
//! Who holds them: rows of table `handle` whose `object` is `object` here and that are open at the end.
//!
//! # What fools it
//! A parent that has not asked for the exit code yet holds a handle for good reason, for a moment. Windows keeps a few itself.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{PAYLOAD_TOO_SHORT, ZOMBIES_BEYOND_LIMIT};
use crate::event::{Context, Event, Select};
use etwhy_decode::kernel::events::Process;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Processes that have exited and are kept by handles.
    pub table PROCESS_DEFUNCT: ProcessDefunctRow = "process_defunct" {
        title: "Zombies: exited processes that are kept by handles", version: 1,
        evidence: Verified("corpus traces of Windows 8.1 and 10"),
        /// First record that names it.
        first_ns: i64 [Ns, Time],
        /// Last record that names it.
        last_ns: i64 [Ns, Time],
        /// Process id that it had.
        pid: i32 [None, Pid],
        /// Process id of its parent.
        parent_pid: Option<i32> [None, Other],
        /// Image name.
        name: Option<Sym> [None, Name],
        /// Command line.
        command_line: Option<Sym> [None, Message],
        /// Exit status.
        exit_status: Option<i32> [Hex32, Status],
        /// Terminal session.
        session_id: Option<i32> [None, Other],
        /// Address of its kernel object.
        object: i64 [Address, Address],
        /// It was freed while the trace ran: the rundown at the end names others, and not this one.
        gone: bool [None, Flag],
    }
}

/// Zombies that are kept apart; a machine with more is out of memory.
const MOST: usize = 1 << 20;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&PROCESS_DEFUNCT],
    selects: &[Select::kernel(Process::Defunct, &["UniqueProcessKey", "ProcessId"])],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Zombies { rows: TableBuilder::new(memory), list: Vec::new(), known: HashMap::default() })
    },
};

struct Zombies {
    rows: TableBuilder<ProcessDefunctRow>,
    list: Vec<ProcessDefunctRow>,
    /// Row by address of the object and process id.
    known: HashMap<(u64, u64), usize>,
}

impl Analysis for Zombies {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(key), Some(pid)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        if let Some(row) = self.known.get(&(key, pid)).and_then(|&at| self.list.get_mut(at)) {
            row.last_ns = event.ns;
            return;
        }
        if self.list.len() >= MOST {
            cx.ledger.count(&ZOMBIES_BEYOND_LIMIT, 1);
            return;
        }
        let fields = event.fields();
        self.known.insert((key, pid), self.list.len());
        self.list.push(ProcessDefunctRow {
            first_ns: event.ns,
            last_ns: event.ns,
            pid: pid as i32,
            parent_pid: fields.u32("ParentId").map(|pid| pid as i32),
            name: cx.sym_or_none(fields.text("ImageFileName")),
            command_line: cx.sym_or_none(fields.text("CommandLine")),
            exit_status: fields.u32("ExitStatus").map(|status| status as i32),
            session_id: fields.u32("SessionId").map(|id| id as i32),
            object: key as i64,
            gone: false,
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let middle = end.span_ns.0.saturating_add(end.span_ns.1.saturating_sub(end.span_ns.0) / 2);
        let named_at_end = self.list.iter().any(|row| row.last_ns >= middle);
        for row in std::mem::take(&mut self.list) {
            self.rows.push(ProcessDefunctRow { gone: named_at_end && row.last_ns < middle, ..row });
        }
        Ok(vec![self.rows.into()])
    }
}
