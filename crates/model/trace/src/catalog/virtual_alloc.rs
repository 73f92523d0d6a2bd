//! Address space: what programs reserve, commit, decommit and release (`VirtualAlloc`, `VirtualFree`).
//!
//! # How it is computed
//! Every call changes a map of intervals of its process (`crates/model/trace/src/model/address_space.rs`), and the row says
//! what changed: pages that were committed already are not committed again, a decommit of a part splits, a release
//! gives back all that is committed in its reservation, and the end of a process gives back everything. A committed
//! page belongs to the call that committed it, whoever reserved the space; `freed_ns` is the moment at which the last
//! page of a call was gone (for a call that only reserves, the last piece of address space).
//!
//! The process is the payload's: with `VirtualAllocEx` it is not that of the thread. The thread is that of the header
//! or, where the header names none, the one that the context switches put on the processor; without either the row
//! has none.
//!
//! # What fools it
//! What was allocated before the trace began is known from a rundown only (`VirtualAllocDCStart`), which says how much
//! of a reservation is committed but not which pages. What a decommit takes of that is null, and a commit inside
//! counts in full. A free of something unknown has null for `freed_bytes`. Where buffers are missing, frees may be:
//! see the anomalies `outstanding_doubtful` and `ends_doubtful`. Pages are 4 KiB. Address space of mapped files and images is not here, and
//! memory that is committed need not be in use.
//!
//! The layouts rest on documentation (wmicore.mof, ntwmi.h); no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{FREES_OF_UNKNOWN, FREES_UNSEEN, PAYLOAD_TOO_SHORT};
use crate::event::{Context, Event, Select, What};
use crate::model::address_space::{AddressSpace, FreedPart, NOBODY, page_bytes};
use crate::row_ends::{Counter, How, RowEnds};
use etwhy_base::Guid;
use etwhy_decode::kernel::events::{PageFault, Process};
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::cmp::Reverse;

define_table! {
    /// Calls of `VirtualAlloc` and `VirtualFree`, with what each changed.
    pub table VIRTUAL_ALLOC: VirtualAllocRow = "virtual_alloc" {
        sorted_by: "ts_ns", version: 1,
        /// When the call was recorded.
        ts_ns: i64 [Ns, Time],
        /// commit, reserve, commit+reserve, reset, other; decommit, release.
        op: Sym [None, Kind],
        /// Address of the range.
        address: i64 [Address, Address],
        /// Size of the range, as recorded.
        size_bytes: i64 [Bytes, Other],
        /// Bytes that the call committed and that were not committed before; null for a free.
        committed_bytes: Option<i64> [Bytes, Bytes],
        /// Committed bytes that the call freed; null for an allocation, and where it is not known what was committed.
        freed_bytes: Option<i64> [Bytes, Bytes],
        /// `MEM_*` flags.
        flags: i32 [Hex32, Flag],
        /// Allocated from the top of the address space down (`MEM_TOP_DOWN`).
        top_down: bool [None, Flag],
        /// With large pages (`MEM_LARGE_PAGES`).
        large_pages: bool [None, Flag],
        /// Process whose address space it is.
        upid: i32 [None, Process],
        /// Thread that made the call.
        utid: Option<i32> [None, Thread],
        /// Stack of the call (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// When all that the call allocated was freed again; null while some of it is there, and for a free.
        freed_ns: Option<i64> [Ns, Time],
        /// How long all or some of it was there.
        dur_ns: Option<i64> [Ns, Duration],
        /// How the last of it went: decommit, release, exit (with the process), unseen (the address was given out
        /// again, the free itself is not in the trace), doubtful (buffers may be missing in between).
        freed_by: Option<Sym> [None, Kind],
        /// Bytes that the call committed and that are committed at the end of the trace; null for a free.
        outstanding_bytes: Option<i64> [Bytes, Bytes],
    }
}

define_table! {
    /// Memory committed by process and stack: how much, how much was freed, how much is left at the end.
    pub table MEMORY_OUTSTANDING: MemoryOutstandingRow = "memory_outstanding" {
        title: "Outstanding commit", version: 1,
        /// Process whose address space it is.
        upid: i32 [None, Process],
        /// Stack of the calls (table `stack`); null for those without.
        stack_id: Option<i32> [None, Stack],
        /// Calls that committed memory.
        count: i64 [Count, Count],
        /// Bytes that they committed.
        committed_bytes: i64 [Bytes, Bytes],
        /// Bytes of these that were freed within the trace.
        freed_bytes: i64 [Bytes, Bytes],
        /// Bytes of these that are committed at the end of the trace.
        outstanding_bytes: i64 [Bytes, Bytes],
        /// Calls of which something is committed at the end of the trace.
        outstanding_count: i64 [Count, Count],
    }
}

const ALLOC: u8 = PageFault::VirtualAlloc.opcode;
const RUNDOWN: u8 = PageFault::VirtualAllocDCStart.opcode;
const PROCESS_END: u8 = Process::End.opcode;
const FIELDS: &[&str] = &["BaseAddress", "RegionSize", "ProcessId", "Flags", "CommitSizeInBytes"];

/// `Microsoft-Windows-Kernel-Process`.
const KERNEL_PROCESS: Guid = Guid::from_text("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716");

// winnt.h.
const MEM_COMMIT: u32 = 0x1000;
const MEM_RESERVE: u32 = 0x2000;
const MEM_DECOMMIT: u32 = 0x4000;
const MEM_RESET: u32 = 0x8_0000;
const MEM_TOP_DOWN: u32 = 0x10_0000;
const MEM_LARGE_PAGES: u32 = 0x2000_0000;

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&VIRTUAL_ALLOC, &MEMORY_OUTSTANDING],
    selects: &[
        Select::kernel(PageFault::VirtualAlloc, FIELDS),
        Select::kernel(PageFault::VirtualFree, FIELDS),
        Select::kernel(PageFault::VirtualAllocDCStart, FIELDS),
        Select::kernel(Process::End, &["ProcessId"]),
        Select::with(What::Manifest(KERNEL_PROCESS, 2), PROCESS_END, &["ProcessID"]),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(VirtualAllocs {
            rows: TableBuilder::new(memory),
            totals: TableBuilder::new(memory),
            spaces: HashMap::default(),
            calls: Calls::default(),
        })
    },
};

/// What each row's call committed, and what is left of it.
#[derive(Default)]
struct Calls {
    ends: RowEnds,
    /// Bytes that the call committed.
    committed: Vec<u64>,
    /// Bytes left: committed ones or, if it only reserved, reserved ones.
    left: Vec<u64>,
    /// The call only reserved.
    reserve_only: Vec<bool>,
}

impl Calls {
    fn add(&mut self, committed: u64, left: u64, reserve_only: bool) {
        self.ends.add();
        self.committed.push(committed);
        self.left.push(left);
        self.reserve_only.push(reserve_only);
    }

    fn gone(&mut self, owner: u32, part: FreedPart, ns: i64, how: How) {
        let row = owner as usize;
        let (Some(left), Some(&reserve_only)) = (self.left.get_mut(row), self.reserve_only.get(row)) else {
            return;
        };
        let bytes = match (part, reserve_only) {
            (FreedPart::Commit(bytes), false) | (FreedPart::Reserve(bytes), true) => bytes,
            _ => return,
        };
        *left = left.saturating_sub(bytes);
        if *left == 0 {
            self.ends.end(owner, ns, how, None);
        }
    }

    /// Committed and outstanding bytes of a row.
    fn bytes(&self, row: usize) -> (u64, u64) {
        let reserve_only = self.reserve_only.get(row).copied().unwrap_or(true);
        let left = self.left.get(row).copied().filter(|_| !reserve_only).unwrap_or(0);
        (self.committed.get(row).copied().unwrap_or(0), left)
    }
}

struct VirtualAllocs {
    rows: TableBuilder<VirtualAllocRow>,
    totals: TableBuilder<MemoryOutstandingRow>,
    /// Of living processes.
    spaces: HashMap<u32, AddressSpace>,
    calls: Calls,
}

impl VirtualAllocs {
    fn process_ends(&mut self, upid: u32, ns: i64) {
        if let Some(mut space) = self.spaces.remove(&upid) {
            let calls = &mut self.calls;
            space.clear(&mut |owner, part| calls.gone(owner, part, ns, How::Exit));
        }
    }
}

impl Analysis for VirtualAllocs {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        if event.tag == PROCESS_END {
            if let Some(pid) = event.u64(0) {
                let upid = cx.model.processes.at(pid as u32, event.ns);
                self.process_ends(upid, event.ns);
            }
            return;
        }
        let (Some(base), Some(size), Some(pid), Some(flags)) =
            (event.u64(0), event.u64(1), event.u64(2), event.u64(3))
        else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let (ns, flags) = (event.ns, flags as u32);
        let upid = cx.model.processes.at(pid as u32, ns);
        let space = self.spaces.entry(upid).or_default();
        if event.tag == RUNDOWN {
            match event.u64(4) {
                Some(commit) => space.existing(base, size, commit),
                None => cx.ledger.count(&PAYLOAD_TOO_SHORT, 1),
            }
            return;
        }
        let calls = &mut self.calls;
        let row = u32::try_from(calls.left.len()).unwrap_or(NOBODY);
        let (op, committed, freed);
        if event.tag == ALLOC {
            let (reserve, commit) = (flags & MEM_RESERVE != 0, flags & MEM_COMMIT != 0);
            op = match (reserve, commit, flags & MEM_RESET != 0) {
                (true, true, _) => "commit+reserve",
                (true, false, _) => "reserve",
                (false, true, _) => "commit",
                (false, false, true) => "reset",
                (false, false, false) => "other",
            };
            let mut unseen = false;
            if reserve {
                let mut gone = |owner, part| calls.gone(owner, part, ns, How::Unseen);
                unseen = space.reserve(base, size, row, &mut gone);
            }
            cx.ledger.count(&FREES_UNSEEN, u64::from(unseen));
            let new = if commit { space.commit(base, size, row) } else { 0 };
            let reserve_only = reserve && !commit;
            calls.add(new, if reserve_only { page_bytes(base, size) } else { new }, reserve_only);
            (committed, freed) = (Some(new as i64), None);
        } else {
            // Without a flag that says otherwise a free is a release.
            let (how, result);
            (op, how) = match flags & MEM_DECOMMIT != 0 {
                true => ("decommit", How::Call),
                false => ("release", How::OtherCall),
            };
            let mut gone = |owner, part| calls.gone(owner, part, ns, how);
            result = match how {
                How::Call => space.decommit(base, size, &mut gone),
                _ => space.release(base, size, &mut gone),
            };
            calls.add(0, 0, false);
            cx.ledger.count(&FREES_OF_UNKNOWN, u64::from(!result.known));
            (committed, freed) = (None, result.known.then_some(result.bytes as i64));
        }
        let actor = cx.actor(event);
        self.rows.push(VirtualAllocRow {
            ts_ns: ns,
            op: cx.sym(op),
            address: base as i64,
            size_bytes: size as i64,
            committed_bytes: committed,
            freed_bytes: freed,
            flags: flags as i32,
            top_down: flags & MEM_TOP_DOWN != 0,
            large_pages: flags & MEM_LARGE_PAGES != 0,
            upid: upid as i32,
            utid: actor.map(|a| a.utid as i32),
            stack_id: Some(cx.actor_stack(event, actor)),
            freed_ns: None,
            // Only what the call took can end.
            dur_ns: calls.left.last().is_some_and(|&left| left > 0).then_some(ns),
            freed_by: None,
            outstanding_bytes: committed,
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        let calls = &self.calls;
        end.stacks_of(&mut self.rows, "stack_id")?;
        let columns = ["freed_ns", "dur_ns", "freed_by"];
        end.fill_ends(&mut self.rows, &calls.ends, columns, ["decommit", "exit", "unseen", "release"])?;
        let mut row = Counter::default();
        self.rows.remap_i64("outstanding_bytes", |is_allocation| {
            let (_, left) = calls.bytes(row.next());
            is_allocation.map(|_| left as i64)
        })?;

        let mut upids: Vec<i32> = Vec::new();
        self.rows.remap_i32("upid", |upid| {
            upids.push(upid.unwrap_or(-1));
            upid
        })?;
        let mut totals: HashMap<(i32, Option<i32>), MemoryOutstandingRow> = HashMap::default();
        let (mut row, mut upids) = (Counter::default(), upids.into_iter());
        self.rows.remap_i32("stack_id", |stack| {
            let (upid, (committed, left)) = (upids.next().unwrap_or(-1), calls.bytes(row.next()));
            if committed > 0 {
                let total = totals.entry((upid, stack)).or_insert(MemoryOutstandingRow {
                    upid,
                    stack_id: stack,
                    count: 0,
                    committed_bytes: 0,
                    freed_bytes: 0,
                    outstanding_bytes: 0,
                    outstanding_count: 0,
                });
                total.count += 1;
                total.committed_bytes = total.committed_bytes.saturating_add_unsigned(committed);
                total.freed_bytes = total.freed_bytes.saturating_add_unsigned(committed.saturating_sub(left));
                total.outstanding_bytes = total.outstanding_bytes.saturating_add_unsigned(left);
                total.outstanding_count += i64::from(left > 0);
            }
            stack
        })?;
        let mut totals: Vec<MemoryOutstandingRow> = totals.into_values().collect();
        totals.sort_unstable_by_key(|t| {
            (Reverse(t.outstanding_bytes), Reverse(t.committed_bytes), t.upid, t.stack_id)
        });
        for total in totals {
            self.totals.push(total);
        }
        Ok(vec![self.rows.into(), self.totals.into()])
    }
}
