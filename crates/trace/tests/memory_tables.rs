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
