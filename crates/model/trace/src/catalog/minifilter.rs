//! Minifilters: what each file system filter driver adds to file operations.
//!
//! # How it is computed
//! The filter manager logs the callbacks of filters: begin (`PreOpInit`, `PostOpInit`), return
//! (`PreOpCompletion`, `PostOpCompletion`, which name the time of the begin) and failure (`PreOpFailure`,
//! `PostOpFailure`: the filter failed the operation). A row is a return or a failure. The duration is that of the
//! callback, `InitialTime` to the timestamp; a failure takes its begin from the Init event of the same callback
//! data and routine, if that was recorded. The driver is the module that holds the routine; altitude, vendor and
//! category come from the list of registered filters by file name.
//!
//! The events carry no thread. Where the header does not name one either, it is the thread that context switches
//! show on the processor; without those, or where they are missing, it stays unknown. The file is that of the file
//! object, else that of the key (`FileContext`). What a filter does before the file system has seen a create gets
//! the path from the Create event of the same object and IRP.
//!
//! # What fools it
//! The duration is that of the callback alone. A filter that returns *pending* and completes later, or hands
//! the file to a service and waits for it in the callback, costs in the first case more than is seen here, and in
//! the second the service's time is in it. Callbacks after an operation may run in any thread, also in a DPC: `upid`
//! is then a bystander's, and unknown where the processor was idle. Filters call each other: opening a file in a
//! callback runs the filters below, whose callbacks are then inside, so durations of different drivers may overlap. `exclusive_ns` is
//! without them, so far as the thread of each is known; where it is not, it is the whole duration. A service that the filter waits for
//! opens files in threads of its own: callbacks of other filters there are not inside.
//! Altitudes are those that Microsoft assigned; a machine may load a filter at another one.
//!
//! No real trace with these events was at hand: layouts follow Microsoft's class definitions.

mod cost;
mod nested;

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{FILTER_STARTS_FORGOTTEN, PAYLOAD_TOO_SHORT};
use crate::event::{Context, Event, OPERATION_BEFORE_NS, Select, What};
use crate::finish::process_later;
use crate::model::file_name::FileRef;
use crate::model::place::PlaceId;
pub use cost::MinifilterCostRow;
use cost::{Costs, MINIFILTER_COST};
use etwhy_decode::kernel::events::FileIo;
use etwhy_decode::kernel::names::value_name;
use etwhy_knowledge::{driver, ntstatus_name};
use etwhy_table::{Strings, Sym, TableBuilder, define_table};
use foldhash::HashMap;
use nested::Nested;

define_table! {
    /// Callbacks of file system filters (minifilters).
    ///
    /// One row per callback that returned or failed an operation. `minifilter_cost` has the sums.
    pub table MINIFILTER: MinifilterRow = "minifilter" {
        sorted_by: "ts_ns", version: 1,
        /// When the callback began; none for failures whose begin was not recorded.
        start_ns: Option<i64> [Ns, Time],
        /// When it returned or failed.
        ts_ns: i64 [Ns, Time],
        /// How long the callback ran.
        dur_ns: Option<i64> [Ns, Duration],
        /// Part of it without the callbacks that ran inside it, in the same thread; null in extracts of before it was known.
        exclusive_ns: Option<i64> [Ns, Duration],
        /// pre (before the file system) or post (after it).
        phase: Sym [None, Kind],
        /// Operation: the IRP's major function, CREATE for opens.
        major: Option<Sym> [None, Kind],
        /// Callback routine, `module!function`.
        routine: Option<Sym> [None, Name],
        /// Driver.
        module: Option<Sym> [None, Name],
        /// Altitudes that the driver is registered at, higher ones see an operation first.
        altitude: Option<Sym> [None, Other],
        /// Who makes the driver, if known.
        vendor: Option<Sym> [None, Name],
        /// What it is for (antivirus, backup, …), if known.
        category: Option<Sym> [None, Kind],
        /// The callback failed the operation.
        failed: bool [None, Flag],
        /// NTSTATUS of a failure.
        status: Option<i32> [Hex32, Status],
        /// Name of the status.
        status_name: Option<Sym> [None, Name],
        /// File (table `file`).
        file_id: Option<i32> [None, Id],
        /// Path, with drive letters where the trace maps them.
        path: Option<Sym> [None, Path],
        /// Process of the thread.
        upid: Option<i32> [None, Process],
        /// Thread that the callback ran in.
        utid: Option<i32> [None, Thread],
        /// Stack (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// Address of the IRP.
        irp: i64 [Address, Address],
        /// Address of the callback data: the same for all filters of an operation.
        callback_data: i64 [Address, Address],
        /// Processor.
        cpu: i32 [None, Cpu],
    }
}

const INIT: u8 = FileIo::PreOpInit.opcode;
const COMPLETION: u8 = FileIo::PreOpCompletion.opcode;
const FAILURE: u8 = FileIo::PreOpFailure.opcode;
/// Set in the tags of what happens after the file system.
const POST: u8 = 1;

const FIELDS: &[&str] =
    &["RoutineAddr", "CallbackDataPtr", "IrpPtr", "MajorFunction", "InitialTime", "Status"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&MINIFILTER, &MINIFILTER_COST],
    selects: &[
        Select::kernel(FileIo::PreOpInit, FIELDS),
        Select::with(What::Kernel(FileIo::PostOpInit), INIT | POST, FIELDS),
        Select::kernel(FileIo::PreOpCompletion, FIELDS),
        Select::with(What::Kernel(FileIo::PostOpCompletion), COMPLETION | POST, FIELDS),
        Select::kernel(FileIo::PreOpFailure, FIELDS),
        Select::with(What::Kernel(FileIo::PostOpFailure), FAILURE | POST, FIELDS),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Minifilters {
            rows: TableBuilder::if_wanted(memory),
            costs: Costs::new(memory),
            begun: HashMap::default(),
            nested: Nested::default(),
        })
    },
};

/// Callbacks that may be under way at once: one per thread and filter, nested ones included.
const MOST_BEGUN: usize = 1 << 17;

struct Minifilters {
    rows: TableBuilder<MinifilterRow>,
    costs: Costs,
    /// Processor and begin of callbacks that have not returned, by callback data, routine and phase.
    begun: HashMap<(u64, u64, bool), (u16, i64)>,
    nested: Nested,
}

impl Analysis for Minifilters {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(routine), Some(data)) = (event.u64(0), event.u64(1)) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let post = event.tag & POST != 0;
        let kind = event.tag & !POST;
        let key = (data, routine, post);
        if kind == INIT {
            if self.begun.len() >= MOST_BEGUN {
                cx.ledger.count(&FILTER_STARTS_FORGOTTEN, self.begun.len() as u64);
                self.begun.clear();
            }
            self.begun.insert(key, (event.record.cpu, event.ns));
            return;
        }
        let begun = self.begun.remove(&key);
        let major = event.u64(3);
        let (start_ns, status) = if kind == COMPLETION {
            let Some(initial) = event.i64(4).filter(|_| major.is_some()) else {
                cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
                return;
            };
            let span = cx.span_since(event, initial, OPERATION_BEFORE_NS);
            (span.map(|span| event.ns.saturating_sub(span)), None)
        } else {
            let Some(status) = event.u64(5) else {
                cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
                return;
            };
            // The begin may be that of an earlier callback if records are missing in between.
            let now = (event.record.cpu, event.ns);
            let sure = |&start: &(u16, i64)| !cx.model.cpus.parted(start, now);
            (begun.filter(sure).map(|(_, start)| start), Some(status as u32))
        };
        let header = event.tid_pid();
        // A DPC that interrupts the idle thread completes somebody else's operation.
        let running = cx.model.cpus.running(event.record.cpu, event.ns).filter(|running| running.tid != 0);
        let (tid, utid) = match (header, running) {
            (Some((tid, pid)), _) => (Some(tid), Some(cx.model.thread(tid, Some(pid), event.ns))),
            (None, running) => (running.map(|r| r.tid), running.map(|r| r.utid)),
        };
        let stack = cx.stack_ticket(event, tid, utid);
        let place = cx.place(None, routine);
        let times = start_ns.map(|start| {
            let ns = event.ns.saturating_sub(start);
            (ns, utid.map_or(ns, |utid| self.nested.exclusive_ns(utid, start, ns)))
        });
        let file = cx.model.files.current();
        let major = major.map_or(u32::MAX, |major| major as u32);
        self.costs.add((place, major, post), times, status.is_some(), file, &cx.model.files);
        self.rows.push(MinifilterRow {
            start_ns,
            ts_ns: event.ns,
            dur_ns: times.map(|(ns, _)| ns),
            exclusive_ns: times.map(|(_, exclusive)| exclusive),
            phase: cx.sym(phase(post)),
            major: major_name(major, cx.strings),
            routine: Some(place.name_later()),
            module: Some(place.name_later()),
            altitude: Some(place.name_later()),
            vendor: Some(place.name_later()),
            category: Some(place.name_later()),
            failed: status.is_some(),
            status: status.map(|s| s as i32),
            status_name: status.and_then(ntstatus_name).map(|name| cx.sym(name)),
            file_id: file.map(FileRef::provisional),
            path: file.map(FileRef::sym),
            upid: utid.map(process_later),
            utid: utid.map(|u| u as i32),
            stack_id: Some(stack),
            irp: event.u64(2).unwrap_or(0) as i64,
            callback_data: data as i64,
            cpu: i32::from(event.record.cpu),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_of(&mut self.rows, "stack_id")?;
        end.processes_of(&mut self.rows, "upid")?;
        end.files_of(&mut self.rows, "file_id")?;
        end.paths_of(&mut self.rows, "path")?;
        end.routines_of(&mut self.rows, "routine")?;
        end.modules_of(&mut self.rows, "module")?;
        let mut known: HashMap<PlaceId, Facts> = HashMap::default();
        let (resolved, strings) = (end.resolved, &mut *end.strings);
        let mut facts = |place: Option<u32>| {
            let place = PlaceId::of_cell(place?);
            Some(*known.entry(place).or_insert_with(|| {
                let module = resolved.frame_of_place(place).map(|(_, frame)| frame.module);
                module.map_or_else(Facts::default, |module| Facts::of(module, strings))
            }))
        };
        self.rows.remap_text("altitude", |place| facts(place)?.altitude)?;
        self.rows.remap_text("vendor", |place| facts(place)?.vendor)?;
        self.rows.remap_text("category", |place| facts(place)?.category)?;
        let costs = self.costs.finish(end);
        Ok(vec![self.rows.into(), costs])
    }
}

/// What is known of a driver by its file name.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    altitude: Option<Sym>,
    vendor: Option<Sym>,
    category: Option<Sym>,
}

impl Facts {
    fn of(module: Sym, strings: &mut Strings) -> Facts {
        let Some(fact) = driver(strings.get(module)) else { return Facts::default() };
        let altitudes = fact.altitudes().collect::<Vec<_>>().join(";");
        let mut text = |text: &str| if text.is_empty() { None } else { Some(strings.intern(text)) };
        Facts { altitude: text(&altitudes), vendor: text(fact.vendor), category: text(fact.category) }
    }
}

fn phase(post: bool) -> &'static str {
    if post { "post" } else { "pre" }
}

/// The name of a major function. The filter manager has numbers of its own for what is no IRP
/// (`FLT_PARAMETERS` in fltkernel.h): they are 8-bit negative numbers there.
fn major_name(major: u32, strings: &mut Strings) -> Option<Sym> {
    let name = match major {
        u32::MAX => return None,
        _ => value_name("IrpMajorFunction", major),
    };
    let special = || match major {
        0xFF => "ACQUIRE_FOR_SECTION_SYNCHRONIZATION",
        0xFE => "RELEASE_FOR_SECTION_SYNCHRONIZATION",
        0xFD => "ACQUIRE_FOR_MOD_WRITE",
        0xFC => "RELEASE_FOR_MOD_WRITE",
        0xFB => "ACQUIRE_FOR_CC_FLUSH",
        0xFA => "RELEASE_FOR_CC_FLUSH",
        0xF9 => "QUERY_OPEN",
        0xF3 => "FAST_IO_CHECK_IF_POSSIBLE",
        0xF2 => "NETWORK_QUERY_OPEN",
        0xF1 => "MDL_READ",
        0xF0 => "MDL_READ_COMPLETE",
        0xEF => "PREPARE_MDL_WRITE",
        0xEE => "MDL_WRITE_COMPLETE",
        0xED => "VOLUME_MOUNT",
        0xEC => "VOLUME_DISMOUNT",
        _ => "",
    };
    let name = name.unwrap_or_else(special);
    if name.is_empty() { Some(strings.intern(&major.to_string())) } else { Some(strings.intern(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_known_by_their_file_name() {
        let mut strings = Strings::new();
        let module = strings.intern("WdFilter.sys");
        let facts = Facts::of(module, &mut strings);
        assert_eq!(facts.vendor.map(|s| strings.get(s)), Some("Microsoft"));
        assert_eq!(facts.category.map(|s| strings.get(s)), Some("antivirus"));
        assert_eq!(facts.altitude.map(|s| strings.get(s)), Some("328010"));
        let module = strings.intern("nobody.sys");
        assert!(Facts::of(module, &mut strings).vendor.is_none());
    }

    #[test]
    fn functions_have_names() {
        let mut strings = Strings::new();
        let mut name = |major| major_name(major, &mut strings).map(|s| strings.get(s).to_owned());
        assert_eq!(name(0).as_deref(), Some("CREATE"));
        assert_eq!(name(12).as_deref(), Some("DIRECTORY_CONTROL"));
        assert_eq!(name(0xF2).as_deref(), Some("NETWORK_QUERY_OPEN"));
        assert_eq!(name(99).as_deref(), Some("99"));
        assert_eq!(name(u32::MAX), None);
    }
}
