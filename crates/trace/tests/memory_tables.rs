//! Tables of what is taken and given back, on traces written record by record: every number here is counted by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use support::ledger_count;
use support::written::{Written, shown};

const COMMIT: u32 = 0x1000;
const RESERVE: u32 = 0x2000;
const DECOMMIT: u32 = 0x4000;
const RELEASE: u32 = 0x8000;

fn virtual_call(t: &mut Written, us: i64, hook: u16, base: u64, size: u64, pid: u32, flags: u32) {
    t.perf(us, 0, hook, |r| {
        r.ptr(base).ptr(size).u32(pid).u32(flags);
    });
}

#[test]
fn virtual_alloc_follows_what_is_committed() {
    let mut t = Written::new();
    let (alloc, free) = (0x0262, 0x0263);
    t.process(1, 1, 100, 101, "a.exe").process(1, 1, 200, 201, "b.exe");
    t.thread(2, 1, 100, 101).switch(3, 0, 101, 0);
    virtual_call(&mut t, 10, alloc, 0x10000, 0x10000, 100, RESERVE);
    virtual_call(&mut t, 20, alloc, 0x10000, 0x4000, 100, COMMIT);
    virtual_call(&mut t, 30, alloc, 0x12000, 0x4000, 100, COMMIT);
    virtual_call(&mut t, 40, free, 0x11000, 0x2000, 100, DECOMMIT);
    // The same addresses of another process, from the top, with large pages.
    virtual_call(&mut t, 50, alloc, 0x10000, 0x20_0000, 200, COMMIT | RESERVE | 0x10_0000 | 0x2000_0000);
    virtual_call(&mut t, 60, free, 0x10000, 0, 100, RELEASE);
    virtual_call(&mut t, 70, free, 0x7777_0000, 0x1000, 100, RELEASE);
    // The address is given out again, and never freed.
    virtual_call(&mut t, 80, alloc, 0x10000, 0x1000, 100, COMMIT | RESERVE);
    // Its payload ends in the flags.
    t.perf(85, 0, alloc, |r| {
        r.ptr(0x10000).ptr(0x1000).u32(100).u16(0);
    });
    t.process(90, 2, 200, 201, "b.exe");
    t.stack(81, 80, (100, 101), &[0xFFFF_F800_0000_1000, 0x7FF0_0000]);
    let output = t.pass("virtual_alloc memory_outstanding process thread stack");
    let columns =
        "ts_ns op upid utid committed_bytes freed_bytes freed_ns freed_by outstanding_bytes top_down";
    assert_eq!(
        shown(&output, "virtual_alloc", columns),
        [
            "10 reserve 100 101 0 - 60 release 0 0",
            "20 commit 100 101 16384 - 60 release 0 0",
            "30 commit 100 101 8192 - 60 release 0 0",
            "40 decommit 100 101 - 8192 - - - 0",
            "50 commit+reserve 200 101 2097152 - 90 exit 0 1",
            "60 release 100 101 - 16384 - - - 0",
            "70 release 100 101 - - - - - 0",
            "80 commit+reserve 100 101 4096 - - - 4096 0",
        ]
    );
    let columns = "upid count committed_bytes freed_bytes outstanding_bytes outstanding_count stack_id";
    assert_eq!(
        shown(&output, "memory_outstanding", columns),
        ["100 1 4096 0 4096 1 0", "200 1 2097152 2097152 0 0 -", "100 2 24576 24576 0 0 -"]
    );
    assert_eq!(ledger_count(&output, "frees_of_unknown"), 1);
    assert_eq!(ledger_count(&output, "payload_too_short"), 1);
    assert_eq!(ledger_count(&output, "frees_unseen"), 0);
}

#[test]
fn virtual_alloc_knows_what_a_rundown_tells() {
    let mut t = Written::new();
    let rundown = |t: &mut Written, us, base, size, commit| {
        t.perf(us, 0, 0x0280, |r| {
            r.ptr(base).ptr(size).u32(100).u32(COMMIT | RESERVE).ptr(commit);
        });
    };
    rundown(&mut t, 1, 0x10000, 0x10000, 0x10000);
    rundown(&mut t, 1, 0x40000, 0x10000, 0x3000);
    virtual_call(&mut t, 10, 0x0263, 0x10000, 0x1000, 100, DECOMMIT);
    virtual_call(&mut t, 20, 0x0263, 0x40000, 0x1000, 100, DECOMMIT);
    virtual_call(&mut t, 30, 0x0263, 0x40000, 0, 100, RELEASE);
    virtual_call(&mut t, 40, 0x0262, 0x10000, 0x2000, 100, COMMIT);
    // Reserved again without a release: a record is missing.
    virtual_call(&mut t, 50, 0x0262, 0x10000, 0x2000, 100, COMMIT | RESERVE);
    let output = t.pass("virtual_alloc process thread");
    let columns = "ts_ns op committed_bytes freed_bytes freed_ns freed_by outstanding_bytes utid";
    assert_eq!(
        shown(&output, "virtual_alloc", columns),
        [
            "10 decommit - 4096 - - - -",
            "20 decommit - - - - - -",
            "30 release - 12288 - - - -",
            "40 commit 4096 - - unseen 0 -",
            "50 commit+reserve 8192 - - - 8192 -",
        ]
    );
    assert_eq!(ledger_count(&output, "frees_of_unknown"), 1);
    assert_eq!(ledger_count(&output, "frees_unseen"), 1);
}

fn pool_call(t: &mut Written, us: i64, cpu: u16, op: u16, kind: u32, tag: &[u8; 4], bytes: u64, entry: u64) {
    t.perf(us, cpu, 0x0E00 | op, |r| {
        r.u32(kind).bytes(tag).ptr(bytes).ptr(entry);
        if op & 1 == 1 {
            r.u32(7);
        }
    });
}

#[test]
fn pool_knows_who_frees_what_others_allocate() {
    let mut t = Written::new();
    t.process(1, 1, 100, 101, "writer.exe").process(1, 1, 200, 201, "watcher.exe");
    t.thread(2, 1, 100, 101).thread(2, 1, 200, 201);
    t.switch(5, 0, 101, 0).switch(6, 1, 201, 0);
    pool_call(&mut t, 10, 0, 32, 1, b"Fsrn", 96, 0xA000);
    pool_call(&mut t, 20, 0, 32, 512, b"Fsrn", 100, 0xB000);
    pool_call(&mut t, 30, 0, 33, 33, b"Fsrn", 1000, 0xC000);
    pool_call(&mut t, 40, 1, 34, 1, b"Fsrn", 96, 0xA000);
    // From before the trace.
    pool_call(&mut t, 45, 1, 34, 0, b"Old ", 64, 0xF000);
    // The address is used again, first after a free, then after a free that nobody saw.
    pool_call(&mut t, 50, 0, 32, 1, b"Fsrn", 200, 0xA000);
    pool_call(&mut t, 60, 0, 32, 1, b"Again"[..4].try_into().unwrap(), 300, 0xA000);
    pool_call(&mut t, 70, 0, 35, 33, b"Fsrn", 1000, 0xC000);
    t.perf(80, 0, 0x0E20, |r| {
        r.u32(1).u32(2).u32(3);
    });
    // Nobody knows who runs on this processor, but the stack does.
    pool_call(&mut t, 90, 2, 32, 1, b"Stck", 8, 0xD000);
    t.stack(95, 90, (200, 201), &[0xFFFF_F800_0000_1000]);
    let output = t.pass("pool pool_tag process thread stack");
    let columns =
        "ts_ns freed_ns dur_ns freed_by tag pool size_bytes upid utid freed_by_upid freed_by_utid session_id";
    assert_eq!(
        shown(&output, "pool", columns),
        [
            "10 40 30 free Fsrn paged 96 100 101 200 201 -",
            "20 - - - Fsrn nonpaged 100 100 101 - - -",
            "30 70 40 free Fsrn paged 1000 100 101 100 101 7",
            "50 - - unseen Fsrn paged 200 100 101 - - -",
            "60 - - - Agai paged 300 100 101 - - -",
            "90 - - - Stck paged 8 200 - - - -",
        ]
    );
    let columns = "tag pool allocs frees frees_unmatched total_bytes frees_unmatched_bytes outstanding_count \
                   outstanding_bytes peak_bytes";
    assert_eq!(
        shown(&output, "pool_tag", columns),
        [
            "Agai paged 1 0 0 300 0 1 300 300",
            "Fsrn nonpaged 1 0 0 100 0 1 100 100",
            "Stck paged 1 0 0 8 0 1 8 8",
            "Fsrn paged 3 2 0 1296 0 0 0 1200",
            "Old  nonpaged 0 0 1 0 64 0 0 0",
        ]
    );
    assert_eq!(ledger_count(&output, "frees_of_unknown"), 1);
    assert_eq!(ledger_count(&output, "frees_unseen"), 1);
    assert_eq!(ledger_count(&output, "payload_too_short"), 1);
}
