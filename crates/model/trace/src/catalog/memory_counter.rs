//! Memory counters: of the machine (`MemInfo`) and of processes (`MemInfoWS`, `PerfCtr`).
//!
//! # How it is computed
//! Windows logs `MemInfo` and `MemInfoWS` about twice a second where the session asks for them, and the counters of a
//! process when it ends (`PerfCtr`) and at the end of the session (`PerfCtrRundown`). Counts of pages are multiplied by
//! 4 KiB. Standby memory is the sum of its eight priorities; memory that is available is zeroed, free or standby.
//! Counters that a build does not write are null. Early builds write fewer counters of a process: the size of an
//! entry tells how many.
//!
//! # What fools it
//! A working set counts shared pages in every process that uses them, so working sets cannot be added up; private
//! working sets can. Repurposed pages count from the start of the machine: look at differences.
//!
//! The layout of `PerfCtr` is verified on real traces, those of `MemInfo` and `MemInfoWS` rest on phnt's ntwmi.h.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::PAYLOAD_TOO_SHORT;
use crate::event::{Context, Event, Fields, Select};
use crate::model::address_space::PAGE;
use etwhy_base::Bytes;
use etwhy_decode::Value;
use etwhy_decode::kernel::events::{PageFault, Process};
use etwhy_decode::schema::InType;
use etwhy_table::{Sym, TableBuilder, define_table};

define_table! {
    /// Memory of the machine over time.
    pub table MEMORY_COUNTER: MemoryCounterRow = "memory_counter" {
        title: "Memory counters", sorted_by: "ts_ns", version: 1,
        /// When it was counted.
        ts_ns: i64 [Ns, Time],
        /// Zeroed, free and standby memory: what programs can get at once.
        available_bytes: i64 [Bytes, Bytes],
        /// Zeroed pages.
        zeroed_bytes: i64 [Bytes, Bytes],
        /// Free pages that are not zeroed yet.
        free_bytes: i64 [Bytes, Bytes],
        /// Standby pages of all priorities: cached, and given away when needed.
        standby_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 0.
        standby_0_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 1.
        standby_1_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 2.
        standby_2_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 3.
        standby_3_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 4.
        standby_4_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 5, that of most programs.
        standby_5_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 6.
        standby_6_bytes: i64 [Bytes, Bytes],
        /// Standby pages of priority 7.
        standby_7_bytes: i64 [Bytes, Bytes],
        /// Standby pages that were given away, of all priorities, counted up.
        repurposed_bytes: i64 [Bytes, Bytes],
        /// Modified pages, to be written before they can be used again.
        modified_bytes: i64 [Bytes, Bytes],
        /// Modified pages that must not be written yet.
        modified_no_write_bytes: i64 [Bytes, Bytes],
        /// Modified pages that go to the page file.
        modified_page_file_bytes: i64 [Bytes, Bytes],
        /// Bad pages.
        bad_bytes: i64 [Bytes, Bytes],
        /// Paged pool, committed.
        paged_pool_bytes: Option<i64> [Bytes, Bytes],
        /// Nonpaged pool.
        nonpaged_pool_bytes: Option<i64> [Bytes, Bytes],
        /// Pages locked by MDLs.
        mdl_bytes: Option<i64> [Bytes, Bytes],
        /// Commit charge of the machine.
        commit_bytes: Option<i64> [Bytes, Bytes],
    }
}

define_table! {
    /// Memory of processes over time.
    pub table PROCESS_MEMORY: ProcessMemoryRow = "process_memory" {
        title: "Memory of processes", sorted_by: "ts_ns", version: 1,
        /// When it was counted.
        ts_ns: i64 [Ns, Time],
        /// MemInfoWS (regularly), PerfCtr (at the end of the process), PerfCtrRundown (at the end of the trace).
        source: Sym [None, Kind],
        /// Process.
        upid: i32 [None, Process],
        /// Working set, shared pages included.
        working_set_bytes: Option<i64> [Bytes, Bytes],
        /// Working set that it shares with nobody.
        private_working_set_bytes: Option<i64> [Bytes, Bytes],
        /// Committed private memory.
        commit_bytes: Option<i64> [Bytes, Bytes],
        /// Address space in use.
        virtual_bytes: Option<i64> [Bytes, Bytes],
        /// Pages in the compression store, as they count uncompressed.
        stored_bytes: Option<i64> [Bytes, Bytes],
        /// Size of the store that it owns.
        store_bytes: Option<i64> [Bytes, Bytes],
        /// Committed memory that it shares.
        shared_commit_bytes: Option<i64> [Bytes, Bytes],
        /// Commit that it was promised and has not used.
        commit_debt_bytes: Option<i64> [Bytes, Bytes],
        /// Largest working set so far.
        peak_working_set_bytes: Option<i64> [Bytes, Bytes],
        /// Largest commit so far.
        peak_commit_bytes: Option<i64> [Bytes, Bytes],
        /// Most address space in use so far.
        peak_virtual_bytes: Option<i64> [Bytes, Bytes],
        /// Quota of paged pool that it is charged for.
        paged_pool_bytes: Option<i64> [Bytes, Bytes],
        /// Quota of nonpaged pool that it is charged for.
        nonpaged_pool_bytes: Option<i64> [Bytes, Bytes],
        /// Page faults so far.
        page_faults: Option<i64> [Count, Count],
        /// Open handles.
        handles: Option<i64> [Count, Count],
    }
}

const MEM_INFO: u8 = PageFault::MemInfo.opcode;
const MEM_INFO_WS: u8 = PageFault::MemInfoWS.opcode;
const PERF_CTR: u8 = Process::PerfCtr.opcode;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&MEMORY_COUNTER, &PROCESS_MEMORY],
    selects: &[
        Select::kernel(PageFault::MemInfo, &[]),
        Select::kernel(PageFault::MemInfoWS, &[]),
        Select::kernel(Process::PerfCtr, &[]),
        Select::kernel(Process::PerfCtrRundown, &[]),
    ],
    stacks: false,
    on_demand: false,
    new: |memory| {
        Box::new(Counters { machine: TableBuilder::new(memory), processes: TableBuilder::new(memory) })
    },
};

struct Counters {
    machine: TableBuilder<MemoryCounterRow>,
    processes: TableBuilder<ProcessMemoryRow>,
}

fn bytes_of_pages(pages: u64) -> i64 {
    i64::try_from(pages.saturating_mul(PAGE)).unwrap_or(i64::MAX)
}

fn pages(fields: &Fields<'_>, name: &str) -> Option<i64> {
    fields.get(name).and_then(Value::as_u64).map(bytes_of_pages)
}

/// Eight counts of pages, in bytes.
fn by_priority(fields: &Fields<'_>, name: &str) -> Option<[i64; 8]> {
    let Some(Value::Numbers(values)) = fields.get(name) else { return None };
    let mut all = [0; 8];
    for (index, slot) in all.iter_mut().enumerate() {
        *slot = bytes_of_pages(values.get(index)?.as_u64()?);
    }
    Some(all)
}

impl Counters {
    fn machine(&mut self, event: &Event<'_>) -> Option<()> {
        let fields = event.fields();
        let standby = by_priority(&fields, "PageCountByPriority")?;
        let repurposed = by_priority(&fields, "RepurposedPagesByPriority")?;
        let zeroed = pages(&fields, "ZeroPageCount")?;
        let free = pages(&fields, "FreePageCount")?;
        let sum = |values: &[i64]| values.iter().fold(0i64, |sum, v| sum.saturating_add(*v));
        let [s0, s1, s2, s3, s4, s5, s6, s7] = standby;
        self.machine.push(MemoryCounterRow {
            ts_ns: event.ns,
            available_bytes: sum(&[zeroed, free, sum(&standby)]),
            zeroed_bytes: zeroed,
            free_bytes: free,
            standby_bytes: sum(&standby),
            standby_0_bytes: s0,
            standby_1_bytes: s1,
            standby_2_bytes: s2,
            standby_3_bytes: s3,
            standby_4_bytes: s4,
            standby_5_bytes: s5,
            standby_6_bytes: s6,
            standby_7_bytes: s7,
            repurposed_bytes: sum(&repurposed),
            modified_bytes: pages(&fields, "ModifiedPageCount")?,
            modified_no_write_bytes: pages(&fields, "ModifiedNoWritePageCount")?,
            modified_page_file_bytes: pages(&fields, "ModifiedPageCountPageFile")?,
            bad_bytes: pages(&fields, "BadPageCount")?,
            paged_pool_bytes: pages(&fields, "PagedPoolCommitPageCount"),
            nonpaged_pool_bytes: pages(&fields, "NonPagedPoolPageCount"),
            mdl_bytes: pages(&fields, "MdlPageCount"),
            commit_bytes: pages(&fields, "CommitPageCount"),
        });
        Some(())
    }

    /// The entries of a `MemInfoWS`. They hold as many of the layout's counters as their size allows.
    fn working_sets(&mut self, event: &Event<'_>, cx: &mut Context<'_>) -> Option<()> {
        let payload = event.payload;
        let count = usize::try_from(payload.u32_at(0)?).ok()?;
        let entries = payload.get(4..)?;
        let size = entries.len().checked_div(count)?;
        let width = event.pointer_size;
        let members = &event.schema?.fields.iter().find(|f| &*f.name == "WsEntry")?.members;
        let source = cx.sym("MemInfoWS");
        for entry in entries.chunks_exact(size.max(1)).take(count) {
            let (mut at, mut pid, mut row) = (0, None, empty(event.ns, source));
            for member in members {
                let len = if member.in_type == InType::UInt32 { 4 } else { width };
                let Some(value) = entry.ptr_at(at, len) else { break };
                at += len;
                let bytes = Some(bytes_of_pages(value));
                match &*member.name {
                    "ProcessId" => pid = Some(value as u32),
                    "WorkingSetPageCount" => row.working_set_bytes = bytes,
                    "CommitPageCount" => row.commit_bytes = bytes,
                    "VirtualSizeInPages" => row.virtual_bytes = bytes,
                    "PrivateWorkingSetPageCount" => row.private_working_set_bytes = bytes,
                    "StoreSizeInPages" => row.store_bytes = bytes,
                    "StoredPageCount" => row.stored_bytes = bytes,
                    "CommitDebtInPages" => row.commit_debt_bytes = bytes,
                    "SharedCommitInPages" => row.shared_commit_bytes = bytes,
                    _ => {}
                }
            }
            // Without a counter there is nothing to tell.
            row.working_set_bytes?;
            row.upid = cx.model.processes.at(pid?, event.ns) as i32;
            self.processes.push(row);
        }
        Some(())
    }

    fn counters(&mut self, event: &Event<'_>, cx: &mut Context<'_>) -> Option<()> {
        let fields = event.fields();
        let upid = cx.model.processes.at(fields.u32("ProcessId")?, event.ns);
        let source = cx.sym(if event.tag == PERF_CTR { "PerfCtr" } else { "PerfCtrRundown" });
        let value =
            |name| fields.get(name).and_then(Value::as_u64).map(|v| i64::try_from(v).unwrap_or(i64::MAX));
        let private = value("PrivatePageCount")?;
        self.processes.push(ProcessMemoryRow {
            upid: upid as i32,
            working_set_bytes: value("WorkingSetSize"),
            // Bytes in spite of its name: in a real trace it is what PagefileUsage says.
            commit_bytes: Some(private),
            virtual_bytes: value("VirtualSize"),
            peak_working_set_bytes: value("PeakWorkingSetSize"),
            peak_commit_bytes: value("PeakPagefileUsage"),
            peak_virtual_bytes: value("PeakVirtualSize"),
            paged_pool_bytes: value("QuotaPagedPoolUsage"),
            nonpaged_pool_bytes: value("QuotaNonPagedPoolUsage"),
            page_faults: value("PageFaultCount"),
            handles: value("HandleCount"),
            ..empty(event.ns, source)
        });
        Some(())
    }
}

fn empty(ts_ns: i64, source: Sym) -> ProcessMemoryRow {
    ProcessMemoryRow {
        ts_ns,
        source,
        upid: 0,
        working_set_bytes: None,
        private_working_set_bytes: None,
        commit_bytes: None,
        virtual_bytes: None,
        stored_bytes: None,
        store_bytes: None,
        shared_commit_bytes: None,
        commit_debt_bytes: None,
        peak_working_set_bytes: None,
        peak_commit_bytes: None,
        peak_virtual_bytes: None,
        paged_pool_bytes: None,
        nonpaged_pool_bytes: None,
        page_faults: None,
        handles: None,
    }
}

impl Analysis for Counters {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let read = match event.tag {
            MEM_INFO => self.machine(event),
            MEM_INFO_WS => self.working_sets(event, cx),
            _ => self.counters(event, cx),
        };
        if read.is_none() {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
        }
    }

    fn finish(self: Box<Self>, _: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        Ok(vec![self.machine.into(), self.processes.into()])
    }
}
