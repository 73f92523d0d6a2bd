//! Handles: who opened which object, when it was closed again, and what leaks.
//!
//! # How it is computed
//! A row is one handle, from `CreateHandle` or `DuplicateHandle` (then the target process has it) to `CloseHandle`, or
//! to the end of its process, which closes what is left. Handles that only a rundown names (`HandleDCStart`,
//! `HandleDCEnd`) were opened before the trace: `opened_by` says `rundown`, and `ts_ns` is the moment of the rundown.
//! Handles of the kernel (bit 31 of the value is set) stand in the table of process System, whoever opens them; `utid`
//! still says who did. Numbers of object types differ between builds: names come from the type records of the trace
//! only (`TypeDCStart`, `TypeDCEnd`).
//!
//! `handle_leak` fits a straight line to the number of open handles of a process and type, over the life of the process
//! within the trace: the slope is how many more are open each second, and `leak_r2` how well the line fits (1: steady
//! growth). The line minimises the squared distance over *time*, not over events, so opening and closing quickly does
//! not look like growth.
//!
//! # What fools it
//! Closes without an open mean that the handle was opened before the trace or inherited; `handle_leak` counts them as
//! open at the start. While a process exits Windows closes its handles: those closes that are recorded before its end count as
//! `close`. A thread that is attached to another process opens handles there, while the header names its own. Where
//! buffers are missing, closes may be: see the anomalies `outstanding_doubtful` and `ends_doubtful`. A handle value that is opened again
//! without a close has an earlier close that was not recorded (`unseen`).
//!
//! The layouts rest on documentation (wmicore.mof, ntwmi.h); no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{FREES_OF_UNKNOWN, FREES_UNSEEN, PAYLOAD_TOO_SHORT};
use crate::attribution::Actor;
use crate::event::{Context, Event, Select, What};
use crate::model::stack::NO_STACK;
use crate::row_ends::{Counter, How, RowEnds};
use crate::trend::Leak;
use etwhy_base::Guid;
use etwhy_decode::kernel::events::{Object, Process};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Handles, from open to close.
    pub table HANDLE: HandleRow = "handle" {
        sorted_by: "ts_ns", version: 1,
        /// When it was opened; for those that were open before, when the rundown named them.
        ts_ns: i64 [Ns, Time],
        /// When it was closed; null if that is not in the trace.
        close_ns: Option<i64> [Ns, Time],
        /// How long it was open.
        dur_ns: Option<i64> [Ns, Duration],
        /// create, duplicate, rundown (it was open before the trace).
        opened_by: Sym [None, Kind],
        /// close, exit (with the process), unseen (its value was given out again), doubtful (it was closed, but buffers
        /// may be missing in between); null if open at the end.
        closed_by: Option<Sym> [None, Kind],
        /// Process that has the handle.
        upid: Option<i32> [None, Process],
        /// Thread that opened it.
        utid: Option<i32> [None, Thread],
        /// Thread that closed it.
        closed_by_utid: Option<i32> [None, Thread],
        /// Value of the handle.
        handle: i32 [Hex32, Other],
        /// Address of the object.
        object: i64 [Address, Address],
        /// Type of the object (File, Event, Key, ...); null if the trace does not name the types.
        object_type: Option<Sym> [None, Kind],
        /// Number of the type; it means nothing outside this trace.
        type_number: i32 [None, Other],
        /// Name of the object, where the open or a rundown says it.
        name: Option<Sym> [None, Name],
        /// Process whose handle was duplicated.
        from_upid: Option<i32> [None, Process],
        /// Handle that was duplicated.
        from_handle: Option<i32> [Hex32, Other],
        /// Stack of the open (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// Stack of the close.
        close_stack_id: Option<i32> [None, Stack],
    }
}

define_table! {
    /// Handles by process and type, and whether they grow.
    pub table HANDLE_LEAK: HandleLeakRow = "handle_leak" {
        title: "Handles by process and type", version: 1,
        /// Process.
        upid: i32 [None, Process],
        /// Type of the object; null if the trace does not name the types.
        object_type: Option<Sym> [None, Kind],
        /// Number of the type.
        type_number: i32 [None, Other],
        /// Handles that were open when the trace or the process began, as far as rundowns and closes tell.
        open_at_start: i64 [Count, Count],
        /// Handles opened, duplicates into the process included.
        creates: i64 [Count, Count],
        /// Handles closed, but not those that ended with the process.
        closes: i64 [Count, Count],
        /// Handles that ended with the process.
        closed_by_exit: i64 [Count, Count],
        /// Handles opened in the trace and open at its end.
        outstanding: i64 [Count, Count],
        /// Most handles open at one moment.
        peak: i64 [Count, Count],
        /// Handles by which the open ones grow each second (least squares over time).
        leak_slope_per_second: Option<f64> [None, Other],
        /// Share of the variation that steady growth explains, 0 to 1 (coefficient of determination).
        leak_r2: Option<f64> [None, Other],
    }
}

const CREATE: u8 = Object::CreateHandle.opcode;
const CLOSE: u8 = Object::CloseHandle.opcode;
const DUPLICATE: u8 = Object::DuplicateHandle.opcode;
const TYPE: u8 = Object::TypeDCStart.opcode;
const RUNDOWN: u8 = Object::HandleDCStart.opcode;
const PROCESS_END: u8 = Process::End.opcode;
const FIELDS: &[&str] = &["Object", "Handle", "ObjectType"];

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

/// Handles with this bit are those of the kernel (`KERNEL_HANDLE_MASK`, Windows Internals part 2, "Handles").
const KERNEL_HANDLE: u32 = 0x8000_0000;
const SYSTEM_PID: u32 = 4;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&HANDLE, &HANDLE_LEAK],
    selects: &[
        Select::kernel(Object::CreateHandle, FIELDS),
        Select::kernel(Object::CloseHandle, FIELDS),
        Select::kernel(
            Object::DuplicateHandle,
            &["Object", "TargetHandle", "ObjectType", "TargetProcessId", "SourceHandle", "SourceProcessId"],
        ),
        Select::kernel(Object::TypeDCStart, &["ObjectType"]),
        Select::with(What::Kernel(Object::TypeDCEnd), TYPE, &["ObjectType"]),
        Select::kernel(Object::HandleDCStart, &["Object", "Handle", "ObjectType", "ProcessId"]),
        Select::with(
            What::Kernel(Object::HandleDCEnd),
            RUNDOWN,
            &["Object", "Handle", "ObjectType", "ProcessId"],
        ),
        Select::kernel(Process::End, &["ProcessId"]),
        Select::with(What::Manifest(KERNEL_PROCESS, 2), PROCESS_END, &["ProcessID"]),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(Handles {
            rows: TableBuilder::new(memory),
            leaks: TableBuilder::new(memory),
            open: HashMap::default(),
            ends: RowEnds::default(),
            close_tickets: Vec::new(),
            late_names: HashMap::default(),
            types: HashMap::default(),
            sums: HashMap::default(),
        })
    },
};

/// An open handle.
struct Open {
    row: u32,
    object: u64,
    ty: u16,
    /// Opened in the trace.
    ours: bool,
}

struct Handles {
    rows: TableBuilder<HandleRow>,
    leaks: TableBuilder<HandleLeakRow>,
    /// Of living processes, by handle.
    open: HashMap<u32, HashMap<u32, Open>>,
    ends: RowEnds,
    /// Ticket for the stack of each row's close.
    close_tickets: Vec<i32>,
    /// Names of rows that a rundown told later.
    late_names: HashMap<u32, Sym>,
    types: HashMap<u16, Sym>,
    sums: HashMap<(u32, u16), Leak>,
}

impl Handles {
    fn sums(&mut self, upid: u32, ty: u16, cx: &Context<'_>) -> &mut Leak {
        self.sums.entry((upid, ty)).or_insert_with(|| Leak::of_process(cx, upid))
    }

    /// An open handle is no more: `how` says why.
    fn close(&mut self, upid: u32, open: &Open, ns: i64, how: How, by: Option<u32>) {
        self.ends.end(open.row, ns, how, by);
        if let Some(sums) = self.sums.get_mut(&(upid, open.ty)) {
            sums.end(ns, how, open.ours);
        }
    }

    fn process_ends(&mut self, upid: u32, ns: i64) {
        let mut left: Vec<(u32, Open)> = self.open.remove(&upid).unwrap_or_default().into_iter().collect();
        left.sort_unstable_by_key(|(_, open)| open.row);
        for (_, open) in left {
            self.close(upid, &open, ns, How::Exit, None);
        }
    }

    fn rundown(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(object), Some(handle), Some(ty), Some(pid)) =
            (event.u64(0), event.u64(1), event.u64(2), event.u64(3))
        else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let (handle, ty) = (handle as u32, ty as u16);
        let upid = cx.model.processes.at(pid as u32, event.ns);
        let name = cx.sym_or_none(event.fields().text("ObjectName"));
        let known = self.open.entry(upid).or_default().get(&handle).filter(|open| open.object == object);
        if let Some(open) = known {
            if let Some(name) = name {
                self.late_names.insert(open.row, name);
            }
            return;
        }
        let row = self.add_row(event, cx, Some(upid), None, "rundown", (handle, object, ty), name, None);
        self.put(upid, handle, Open { row, object, ty, ours: false }, event.ns, cx);
        self.sums(upid, ty, cx).was_there();
    }

    fn put(&mut self, upid: u32, handle: u32, open: Open, ns: i64, cx: &mut Context<'_>) {
        if let Some(old) = self.open.entry(upid).or_default().insert(handle, open) {
            cx.ledger.count(&FREES_UNSEEN, 1);
            self.close(upid, &old, ns, How::Unseen, None);
        }
    }

    #[allow(clippy::too_many_arguments)] // the row has that many sources
    fn add_row(
        &mut self,
        event: &Event<'_>,
        cx: &mut Context<'_>,
        upid: Option<u32>,
        actor: Option<Actor>,
        opened_by: &str,
        what: (u32, u64, u16),
        name: Option<Sym>,
        from: Option<(Option<u32>, u32)>,
    ) -> u32 {
        let (handle, object, ty) = what;
        let ticket = if opened_by == "rundown" { NO_STACK } else { cx.actor_stack(event, actor) };
        self.rows.push(HandleRow {
            ts_ns: event.ns,
            close_ns: None,
            dur_ns: Some(event.ns),
            opened_by: cx.sym(opened_by),
            closed_by: None,
            upid: upid.map(|u| u as i32),
            utid: actor.map(|a| a.utid as i32),
            closed_by_utid: None,
            handle: handle as i32,
            object: object as i64,
            object_type: Some(Sym::provisional(u32::from(ty))),
            type_number: i32::from(ty),
            name,
            from_upid: from.and_then(|f| f.0).map(|u| u as i32),
            from_handle: from.map(|f| f.1 as i32),
            stack_id: Some(ticket),
            close_stack_id: None,
        });
        self.close_tickets.push(NO_STACK);
        self.ends.add()
    }
}

impl Analysis for Handles {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let ns = event.ns;
        match event.tag {
            PROCESS_END => {
                if let Some(pid) = event.u64(0) {
                    let upid = cx.model.processes.at(pid as u32, ns);
                    self.process_ends(upid, ns);
                }
                return;
            }
            TYPE => {
                let name = cx.sym_or_none(event.fields().text("TypeName"));
                if let (Some(ty), Some(name)) = (event.u64(0), name) {
                    self.types.insert(ty as u16, name);
                }
                return;
            }
            RUNDOWN => return self.rundown(event, cx),
            _ => {}
        }
        let (Some(object), Some(handle), Some(ty)) = (event.u64(0), event.u64(1), event.u64(2)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let (handle, ty) = (handle as u32, ty as u16);
        let actor = cx.actor(event);
        let own = match event.pid() {
            Some(pid) => Some(cx.model.processes.at(pid, ns)),
            None => actor.and_then(|a| cx.model.upid_of(a.utid)),
        };
        let pid = match event.tag {
            DUPLICATE => event.u64(3).map(|pid| pid as u32),
            _ if handle & KERNEL_HANDLE != 0 => Some(SYSTEM_PID),
            _ => None,
        };
        let upid = pid.map(|pid| cx.model.processes.at(pid, ns)).or(own);
        if event.tag == CLOSE {
            let Some(upid) = upid else {
                cx.ledger.count(&FREES_OF_UNKNOWN, 1);
                return;
            };
            // What an ended process had is closed already.
            if cx.model.processes.get(upid).is_some_and(|p| p.end_ns.is_some()) {
                return;
            }
            let by = actor.map(|a| a.utid);
            let open = self.open.get_mut(&upid).and_then(|of_process| of_process.remove(&handle));
            // Another object: the open of the one that is closed now was not seen.
            let open = match open {
                Some(open) if open.object != object && object != 0 => {
                    cx.ledger.count(&FREES_UNSEEN, 1);
                    self.close(upid, &open, ns, How::Unseen, None);
                    None
                }
                open => open,
            };
            if let Some(open) = open {
                if let Some(ticket) = self.close_tickets.get_mut(open.row as usize) {
                    *ticket = cx.actor_stack(event, actor);
                }
                self.close(upid, &open, ns, How::Call, by);
            } else {
                cx.ledger.count(&FREES_OF_UNKNOWN, 1);
                let sums = self.sums(upid, ty, cx);
                sums.was_there();
                sums.end(ns, How::Call, false);
            }
            return;
        }
        let (opened_by, from) = if event.tag == DUPLICATE {
            let source = event.u64(5).map(|pid| cx.model.processes.at(pid as u32, ns));
            ("duplicate", Some((source, event.u64(4).unwrap_or(0) as u32)))
        } else {
            ("create", None)
        };
        // Most records end before the name.
        let name = if event.tag == CREATE { event.fields().non_empty("ObjectName") } else { None };
        let name = name.map(|name| cx.sym(name));
        let row = self.add_row(event, cx, upid, actor, opened_by, (handle, object, ty), name, from);
        let Some(upid) = upid else {
            // Nobody can tell which close is its.
            self.ends.end(row, ns, How::Unseen, None);
            return;
        };
        // What had the value before goes first: it was not open at the same time.
        self.put(upid, handle, Open { row, object, ty, ours: true }, ns, cx);
        self.sums(upid, ty, cx).begin(ns);
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let (ends, types, names) = (&self.ends, &self.types, &self.late_names);
        let columns = ["close_ns", "dur_ns", "closed_by"];
        let doubts = end.fill_ends(&mut self.rows, ends, columns, ["close", "exit", "unseen", ""])?;
        end.stacks_of(&mut self.rows, "stack_id")?;
        let mut row = Counter::default();
        self.rows.remap_i32("closed_by_utid", |_| {
            let row = row.next();
            ends.utid(row).filter(|_| !doubts.in_doubt(row)).map(|u| u as i32)
        })?;
        let mut tickets = self.close_tickets.iter().enumerate();
        self.rows.remap_i32("close_stack_id", |_| {
            let (_, &ticket) = tickets.next().filter(|(row, _)| !doubts.in_doubt(*row))?;
            end.resolved.stack_of_ticket(ticket)
        })?;
        self.rows.remap_text("object_type", |ty| types.get(&u16::try_from(ty?).ok()?).copied())?;
        let mut row = Counter::default();
        self.rows.remap_text("name", |name| {
            let late = u32::try_from(row.next()).ok().and_then(|row| names.get(&row).copied());
            name.map(Sym::provisional).or(late)
        })?;

        let mut sums: Vec<(&(u32, u16), &Leak)> = self.sums.iter().collect();
        sums.sort_unstable_by_key(|(key, _)| **key);
        for (&(upid, ty), s) in sums {
            let line = s.line(end, upid);
            self.leaks.push(HandleLeakRow {
                upid: upid as i32,
                object_type: types.get(&ty).copied(),
                type_number: i32::from(ty),
                open_at_start: s.open_at_start,
                creates: s.creates,
                closes: s.closes,
                closed_by_exit: s.closed_by_exit,
                outstanding: s.outstanding,
                peak: s.trend.peak,
                leak_slope_per_second: line.map(|l| l.slope),
                leak_r2: line.map(|l| l.r2),
            });
        }
        Ok(vec![self.rows.into(), self.leaks.into()])
    }
}
