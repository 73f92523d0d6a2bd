//! Kernel pool: what drivers and the kernel allocate, who frees it, and what is left.
//!
//! # How it is computed
//! A row is one allocation (`PoolAllocation`, `SessionPoolAllocation`). Its end is the first free of the same address.
//! Bit 0 of the pool type says paged (`POOL_TYPE` of wdm.h: all paged types are odd, all non-paged ones even). The
//! thread is that of the header or, where the header names none, the one that the context switches put on the
//! processor, and the process that of the thread, or else of the stack.
//!
//! # What fools it
//! In a DPC or ISR the thread is the one that was interrupted. Allocations from before the trace are not known; their
//! frees are counted by tag (`frees_unmatched`). An address that is allocated again without a free lacks a record: the
//! earlier allocation ends `unseen`. Where buffers are missing, frees may be: see the anomalies `outstanding_doubtful` and `ends_doubtful`.
//! The size is the one asked for, not what the pool took from the page.
//!
//! The layouts rest on documentation (wmicore.mof, ntwmi.h); no real trace with these events was at hand.

use crate::analysis::{Analysis, AnalysisSpec, Filled, Finish};
use crate::anomalies::{FREES_OF_UNKNOWN, FREES_UNSEEN, PAYLOAD_TOO_SHORT};
use crate::event::{Context, Event, Select, What};
use crate::finish::process_later;
use crate::row_ends::{Counter, How, RowEnds};
use etwhy_decode::kernel::events;
use etwhy_table::{Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::fmt::Write;

define_table! {
    /// Allocations of kernel pool.
    pub table POOL: PoolRow = "pool" {
        title: "Pool allocations", sorted_by: "ts_ns", version: 1,
        /// When it was allocated.
        ts_ns: i64 [Ns, Time],
        /// When it was freed; null if that is not in the trace.
        freed_ns: Option<i64> [Ns, Time],
        /// How long it lived.
        dur_ns: Option<i64> [Ns, Duration],
        /// How it ended: free, unseen (the address was given out again), doubtful (it was freed, but buffers may be
        /// missing in between); null if it is there at the end of the trace.
        freed_by: Option<Sym> [None, Kind],
        /// Four characters that its allocator chose; bytes that cannot be shown are `\xHH`.
        tag: Sym [None, Name],
        /// paged or nonpaged.
        pool: Sym [None, Kind],
        /// `POOL_TYPE`.
        pool_type: i32 [Hex32, Flag],
        /// Bytes asked for.
        size_bytes: i64 [Bytes, Bytes],
        /// Address.
        address: i64 [Address, Address],
        /// Process of the thread that allocated it.
        upid: Option<i32> [None, Process],
        /// Thread that allocated it.
        utid: Option<i32> [None, Thread],
        /// Process of the thread that freed it.
        freed_by_upid: Option<i32> [None, Process],
        /// Thread that freed it.
        freed_by_utid: Option<i32> [None, Thread],
        /// Stack of the allocation (table `stack`), if one was recorded.
        stack_id: Option<i32> [None, Stack],
        /// Session, for session pool.
        session_id: Option<i32> [None, Other],
    }
}

define_table! {
    /// Kernel pool by tag.
    pub table POOL_TAG: PoolTagRow = "pool_tag" {
        title: "Pool tags", version: 1,
        /// Tag.
        tag: Sym [None, Name],
        /// paged or nonpaged.
        pool: Sym [None, Kind],
        /// Allocations.
        allocs: i64 [Count, Count],
        /// Frees of allocations of the trace.
        frees: i64 [Count, Count],
        /// Frees of allocations that were not seen, mostly from before the trace.
        frees_unmatched: i64 [Count, Count],
        /// Bytes allocated in all.
        total_bytes: i64 [Bytes, Bytes],
        /// Bytes freed by the frees without an allocation.
        frees_unmatched_bytes: i64 [Bytes, Bytes],
        /// Allocations of the trace that are there at its end.
        outstanding_count: i64 [Count, Count],
        /// Their bytes.
        outstanding_bytes: i64 [Bytes, Bytes],
        /// Most bytes of allocations of the trace that were there at one moment.
        peak_bytes: i64 [Bytes, Bytes],
    }
}

const ALLOC: u8 = events::Pool::PoolAllocation.opcode;
const FREE: u8 = events::Pool::PoolFree.opcode;
const FIELDS: &[&str] = &["Type", "Tag", "NumberOfBytes", "Entry", "SessionId"];

/// Declaration.
pub static SPEC: AnalysisSpec = AnalysisSpec {
    tables: &[&POOL, &POOL_TAG],
    selects: &[
        Select::kernel(events::Pool::PoolAllocation, FIELDS),
        Select::with(What::Kernel(events::Pool::SessionPoolAllocation), ALLOC, FIELDS),
        Select::kernel(events::Pool::PoolFree, FIELDS),
        Select::with(What::Kernel(events::Pool::SessionPoolFree), FREE, FIELDS),
    ],
    stacks: true,
    on_demand: false,
    new: |memory| {
        Box::new(Pool {
            rows: TableBuilder::new(memory),
            tags: TableBuilder::new(memory),
            open: HashMap::default(),
            ends: RowEnds::default(),
            sums: HashMap::default(),
            names: HashMap::default(),
        })
    },
};

/// A tag and whether its pool is paged.
type Key = (u32, bool);

/// An allocation that was not freed yet.
struct Open {
    row: u32,
    tag: u32,
    paged: bool,
    bytes: u64,
}

#[derive(Default)]
struct Sums {
    allocs: i64,
    frees: i64,
    frees_unmatched: i64,
    frees_unmatched_bytes: u64,
    total: u64,
    now: u64,
    now_count: i64,
    peak: u64,
}

struct Pool {
    rows: TableBuilder<PoolRow>,
    tags: TableBuilder<PoolTagRow>,
    /// By address.
    open: HashMap<u64, Open>,
    ends: RowEnds,
    sums: HashMap<Key, Sums>,
    names: HashMap<u32, Sym>,
}

/// The tag as text: four characters, the first in the lowest byte, as `ExAllocatePoolWithTag` takes them.
fn tag_text(tag: u32) -> String {
    let mut text = String::with_capacity(4);
    // The top bit marks protected pool (PROTECTED_POOL of wdm.h) and is no part of the name.
    for byte in (tag & 0x7FFF_FFFF).to_le_bytes() {
        if matches!(byte, 0x20..=0x7E) && byte != b'\\' {
            text.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

fn pool_name(paged: bool) -> &'static str {
    if paged { "paged" } else { "nonpaged" }
}

impl Pool {
    fn left(&mut self, open: &Open) {
        if let Some(sums) = self.sums.get_mut(&(open.tag, open.paged)) {
            sums.now = sums.now.saturating_sub(open.bytes);
            sums.now_count -= 1;
        }
    }
}

impl Analysis for Pool {
    fn event(&mut self, event: &Event<'_>, cx: &mut Context<'_>) {
        let (Some(kind), Some(tag), Some(bytes), Some(entry)) =
            (event.u64(0), event.u64(1), event.u64(2), event.u64(3))
        else {
            cx.ledger.count(&PAYLOAD_TOO_SHORT, 1);
            return;
        };
        let (tag, paged, ns) = (tag as u32, kind & 1 != 0, event.ns);
        let actor = cx.actor(event);
        if event.tag == FREE {
            if let Some(open) = self.open.remove(&entry) {
                self.ends.end(open.row, ns, How::Call, actor.map(|a| a.utid));
                self.left(&open);
                if let Some(sums) = self.sums.get_mut(&(open.tag, open.paged)) {
                    sums.frees += 1;
                }
            } else {
                cx.ledger.count(&FREES_OF_UNKNOWN, 1);
                let sums = self.sums.entry((tag, paged)).or_default();
                sums.frees_unmatched += 1;
                sums.frees_unmatched_bytes = sums.frees_unmatched_bytes.saturating_add(bytes);
            }
            return;
        }
        let row = self.ends.add();
        if let Some(old) = self.open.insert(entry, Open { row, tag, paged, bytes }) {
            self.ends.end(old.row, ns, How::Unseen, None);
            self.left(&old);
            cx.ledger.count(&FREES_UNSEEN, 1);
        }
        let sums = self.sums.entry((tag, paged)).or_default();
        sums.allocs += 1;
        sums.total = sums.total.saturating_add(bytes);
        sums.now = sums.now.saturating_add(bytes);
        sums.now_count += 1;
        sums.peak = sums.peak.max(sums.now);
        let name = *self.names.entry(tag).or_insert_with(|| cx.strings.intern(&tag_text(tag)));
        self.rows.push(PoolRow {
            ts_ns: ns,
            freed_ns: None,
            dur_ns: Some(ns),
            freed_by: None,
            tag: name,
            pool: cx.sym(pool_name(paged)),
            pool_type: kind as i32,
            size_bytes: bytes as i64,
            address: entry as i64,
            upid: actor.map(|a| process_later(a.utid)),
            utid: actor.map(|a| a.utid as i32),
            freed_by_upid: None,
            freed_by_utid: None,
            stack_id: Some(cx.actor_stack(event, actor)),
            session_id: event.u64(4).map(|s| s as i32),
        });
    }

    fn finish(mut self: Box<Self>, end: &mut Finish<'_>) -> etwhy_table::Result<Vec<Filled>> {
        end.stacks_and_processes_of(&mut self.rows, "stack_id", "upid")?;
        let columns = ["freed_ns", "dur_ns", "freed_by"];
        let doubts = end.fill_ends(&mut self.rows, &self.ends, columns, ["free", "", "unseen", ""])?;
        let ends = &self.ends;
        for column in ["freed_by_utid", "freed_by_upid"] {
            let mut row = Counter::default();
            self.rows.remap_i32(column, |_| {
                let row = row.next();
                ends.utid(row).filter(|_| !doubts.in_doubt(row)).map(|u| u as i32)
            })?;
        }
        end.processes_of(&mut self.rows, "freed_by_upid")?;

        let mut sums: Vec<(Sym, Key, Sums)> = Vec::new();
        for (key, sum) in self.sums {
            sums.push((end.strings.intern(&tag_text(key.0)), key, sum));
        }
        sums.sort_unstable_by_key(|(_, key, s)| (Reverse(s.now), Reverse(s.total), *key));
        for (tag, (_, paged), s) in sums {
            self.tags.push(PoolTagRow {
                tag,
                pool: end.strings.intern(pool_name(paged)),
                allocs: s.allocs,
                frees: s.frees,
                frees_unmatched: s.frees_unmatched,
                total_bytes: s.total as i64,
                frees_unmatched_bytes: s.frees_unmatched_bytes as i64,
                outstanding_count: s.now_count,
                outstanding_bytes: s.now as i64,
                peak_bytes: s.peak as i64,
            });
        }
        Ok(vec![self.rows.into(), self.tags.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_text() {
        assert_eq!(tag_text(u32::from_le_bytes(*b"FMfn")), "FMfn");
        assert_eq!(tag_text(u32::from_le_bytes(*b"Ntf ")), "Ntf ");
        assert_eq!(tag_text(u32::from_le_bytes([b'A', 0, 0x1F, 0xFF])), "A\\x00\\x1f\\x7f");
        assert_eq!(tag_text(u32::from_le_bytes([b'A', b'b', b'c', b'd' | 0x80])), "Abcd");
    }
}
