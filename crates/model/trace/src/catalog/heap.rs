//! User-mode heaps: allocations of `RtlAllocateHeap` and what came of them, where a session recorded heaps.
//!
//! # How it is computed
//! A row is one allocation, from `Alloc` or the new block of a `ReAlloc`, to `Free`, a `ReAlloc` that replaces it, the
//! destruction of its heap, or the end of its process. A `ReAlloc` in place (same address) ends a row and begins one,
//! because the size has changed.
//!
//! Process and thread are those of the header. Heap records come from a session of the process itself, so a header
//! without them has no second source but the context switches.
//!
//! # What fools it
//! Blocks from before the recording are known only when they go (`frees_of_unknown`). Sizes are those asked for.
//! Allocators that do not use Windows heaps (many have their own) are not here. Heap traces are large, so this table is
//! made on demand.
//!
//! The layouts rest on documentation (wmicore.mof); no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{FREES_OF_UNKNOWN, FREES_UNSEEN, PAYLOAD_TOO_SHORT};
use crate::event::{Context, Event, Select, What};
use crate::row_ends::{How, RowEnds};
use etwhy_base::Guid;
use etwhy_decode::kernel::events::{Heap, Process};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::{HashMap, HashSet};

define_table! {
    /// Allocations of user-mode heaps.
    pub table HEAP: HeapRow = "heap" {
        title: "Heap allocations", sorted_by: "ts_ns", version: 1,
        /// When it was allocated.
        ts_ns: i64 [Ns, Time],
        /// When it was freed; null if that is not in the trace.
        freed_ns: Option<i64> [Ns, Time],
        /// How long it lived.
        dur_ns: Option<i64> [Ns, Duration],
        /// free, realloc, exit (with its heap or process), unseen (the address was given out again), doubtful (it
        /// was freed, but buffers may be missing in between); null if it is there at the end of the trace.
        freed_by: Option<Sym> [None, Kind],
        /// alloc or realloc.
        op: Sym [None, Kind],
        /// Heap.
        heap: i64 [Address, Address],
        /// Address.
        address: i64 [Address, Address],
        /// Bytes asked for.
        size_bytes: i64 [Bytes, Bytes],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Thread that allocated it.
        utid: Option<i32> [None, Thread],
        /// Stack of the allocation (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// Number of the source, as recorded.
        source_id: Option<i32> [None, Other],
    }
}

const ALLOC: u8 = Heap::Alloc.opcode;
const REALLOC: u8 = Heap::ReAlloc.opcode;
const DESTROY: u8 = Heap::Destroy.opcode;
const FREE: u8 = Heap::Free.opcode;
const PROCESS_END: u8 = Process::End.opcode;

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&HEAP],
    selects: &[
        Select::kernel(Heap::Alloc, &["HeapHandle", "AllocAddress", "AllocSize", "SourceId"]),
        Select::kernel(
            Heap::ReAlloc,
            &["HeapHandle", "NewAllocAddress", "NewAllocSize", "SourceId", "OldAllocAddress"],
        ),
        Select::kernel(Heap::Destroy, &["HeapHandle"]),
        Select::kernel(Heap::Free, &["HeapHandle", "FreeAddress"]),
        Select::kernel(Process::End, &["ProcessId"]),
        Select::with(What::Manifest(KERNEL_PROCESS, 2), PROCESS_END, &["ProcessID"]),
    ],
    stacks: true,
    on_demand: true,
    new: |memory| {
        Box::new(Heaps {
            rows: TableBuilder::new(memory),
            ends: RowEnds::default(),
            open: HashMap::default(),
        })
    },
};

/// Blocks of a process that were not freed yet.
#[derive(Default)]
struct Blocks {
    /// Row and heap, by address.
    rows: HashMap<u64, (u32, u64)>,
    /// Addresses by heap.
    of_heap: HashMap<u64, HashSet<u64>>,
}

impl Blocks {
    fn put(&mut self, address: u64, row: u32, heap: u64) -> Option<u32> {
        let old = self.take(address);
        self.rows.insert(address, (row, heap));
        self.of_heap.entry(heap).or_default().insert(address);
        old
    }

    fn take(&mut self, address: u64) -> Option<u32> {
        let (row, heap) = self.rows.remove(&address)?;
        if let Some(addresses) = self.of_heap.get_mut(&heap) {
            addresses.remove(&address);
        }
        Some(row)
    }
}

struct Heaps {
    rows: TableBuilder<HeapRow>,
    ends: RowEnds,
    /// By process.
    open: HashMap<u32, Blocks>,
}

impl Analysis for Heaps {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(heap), ns) = (event.u64(0), event.ns) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        if event.tag == PROCESS_END {
            let upid = cx.model.processes.at(heap as u32, ns);
            for (_, (row, _)) in self.open.remove(&upid).unwrap_or_default().rows {
                self.ends.end(row, ns, How::Exit, None);
            }
            return;
        }
        let actor = cx.actor(event);
        let upid = match event.pid() {
            Some(pid) => Some(cx.model.processes.at(pid, ns)),
            None => actor.and_then(|a| cx.model.upid_of(a.utid)),
        };
        let by = actor.map(|a| a.utid);
        if event.tag == DESTROY {
            let Some(blocks) = upid.and_then(|u| self.open.get_mut(&u)) else { return };
            for address in blocks.of_heap.remove(&heap).unwrap_or_default() {
                if let Some(row) = blocks.take(address) {
                    self.ends.end(row, ns, How::Exit, by);
                }
            }
            return;
        }
        let Some(address) = event.u64(1) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let (gone, how) = match event.tag {
            FREE => (Some(address), How::Call),
            REALLOC => (event.u64(4), How::OtherCall),
            _ => (None, How::Open),
        };
        if let Some(gone) = gone.filter(|&a| a != 0) {
            match upid.and_then(|u| self.open.get_mut(&u)).and_then(|blocks| blocks.take(gone)) {
                Some(row) => self.ends.end(row, ns, how, by),
                None => cx.ledger.count(&FREES_OF_UNKNOWN, 1),
            }
        }
        if event.tag == FREE {
            return;
        }
        let Some(size) = event.u64(2) else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let row = self.ends.add();
        match upid {
            Some(upid) => {
                if let Some(old) = self.open.entry(upid).or_default().put(address, row, heap) {
                    self.ends.end(old, ns, How::Unseen, None);
                    cx.ledger.count(&FREES_UNSEEN, 1);
                }
            }
            // Nobody can tell which free is its.
            None => self.ends.end(row, ns, How::Unseen, None),
        }
        self.rows.push(HeapRow {
            ts_ns: ns,
            freed_ns: None,
            dur_ns: Some(ns),
            freed_by: None,
            op: cx.sym(if event.tag == ALLOC { "alloc" } else { "realloc" }),
            heap: heap as i64,
            address: address as i64,
            size_bytes: size as i64,
            upid: upid.map(|u| u as i32),
            utid: by.map(|u| u as i32),
            stack_id: Some(cx.actor_stack(event, actor)),
            source_id: event.u64(3).map(|s| s as i32),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let columns = ["freed_ns", "dur_ns", "freed_by"];
        end.fill_ends(&mut self.rows, &self.ends, columns, ["free", "exit", "unseen", "realloc"])?;
        end.stacks_of(&mut self.rows, "stack_id")?;
        Ok(vec![self.rows.into()])
    }
}
