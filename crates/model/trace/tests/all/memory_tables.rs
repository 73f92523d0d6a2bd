//! Tables of what is taken and given back, on traces written record by record: every number here is counted by hand.

use crate::support::written::{Written, shown};
use crate::support::{Are, assert_ledger, ledger_count};

const COMMIT: u32 = 0x1000;
const RESERVE: u32 = 0x2000;
const DECOMMIT: u32 = 0x4000;
const RELEASE: u32 = 0x8000;

fn virtual_call(t: &mut Written, us: i64, hook: u16, base: u64, size: u64, pid: u32, flags: u32) {
    t.perf(us, 0, hook, |r| r.ptr(base).ptr(size).u32(pid).u32(flags));
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
    t.perf(85, 0, alloc, |r| r.ptr(0x10000).ptr(0x1000).u32(100).u16(0));
    t.process(90, 2, 200, 201, "b.exe");
    t.stack(81, 80, (100, 101), &[0xFFFF_F800_0000_1000, 0x7FF0_0000]);
    let output = t.pass("virtual_alloc memory_outstanding process thread stack");
    let columns =
        "ts_ns op upid utid committed_bytes freed_bytes freed_ns freed_by outstanding_bytes top_down";
    shown(&output, "virtual_alloc", columns).are(&[
        "10 reserve 100 101 0 - 60 release 0 0",
        "20 commit 100 101 16384 - 60 release 0 0",
        "30 commit 100 101 8192 - 60 release 0 0",
        "40 decommit 100 101 - 8192 - - - 0",
        "50 commit+reserve 200 101 2097152 - 90 exit 0 1",
        "60 release 100 101 - 16384 - - - 0",
        "70 release 100 101 - - - - - 0",
        "80 commit+reserve 100 101 4096 - - - 4096 0",
    ]);
    let columns = "upid count committed_bytes freed_bytes outstanding_bytes outstanding_count stack_id";
    shown(&output, "memory_outstanding", columns).are(&[
        "100 1 4096 0 4096 1 0",
        "200 1 2097152 2097152 0 0 -",
        "100 2 24576 24576 0 0 -",
    ]);
    assert_ledger(&output, &[("frees_of_unknown", 1), ("payload_too_short", 1), ("frees_unseen", 0)]);
}

#[test]
fn virtual_alloc_knows_what_a_rundown_tells() {
    let mut t = Written::new();
    let rundown = |t: &mut Written, us, base, size, commit| {
        t.perf(us, 0, 0x0280, |r| r.ptr(base).ptr(size).u32(100).u32(COMMIT | RESERVE).ptr(commit));
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
    shown(&output, "virtual_alloc", columns).are(&[
        "10 decommit - 4096 - - - -",
        "20 decommit - - - - - -",
        "30 release - 12288 - - - -",
        "40 commit 4096 - - unseen 0 -",
        "50 commit+reserve 8192 - - - 8192 -",
    ]);
    assert_ledger(&output, &[("frees_of_unknown", 1), ("frees_unseen", 1)]);
}

#[allow(clippy::too_many_arguments)] // a record has that many fields
fn pool_call(t: &mut Written, us: i64, cpu: u16, op: u16, kind: u32, tag: &[u8; 4], bytes: u64, entry: u64) {
    t.perf(us, cpu, 0x0E00 | op, |r| {
        r.u32(kind).bytes(tag).ptr(bytes).ptr(entry);
        if op & 1 == 1 {
            r.u32(7);
        }
        r
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
    t.perf(80, 0, 0x0E20, |r| r.u32(1).u32(2).u32(3));
    // Nobody knows who runs on this processor, but the stack does.
    pool_call(&mut t, 90, 2, 32, 1, b"Stck", 8, 0xD000);
    t.stack(95, 90, (200, 201), &[0xFFFF_F800_0000_1000]);
    let output = t.pass("pool pool_tag process thread stack");
    let columns =
        "ts_ns freed_ns dur_ns freed_by tag pool size_bytes upid utid freed_by_upid freed_by_utid session_id";
    shown(&output, "pool", columns).are(&[
        "10 40 30 free Fsrn paged 96 100 101 200 201 -",
        "20 - - - Fsrn nonpaged 100 100 101 - - -",
        "30 70 40 free Fsrn paged 1000 100 101 100 101 7",
        "50 - - unseen Fsrn paged 200 100 101 - - -",
        "60 - - - Agai paged 300 100 101 - - -",
        "90 - - - Stck paged 8 200 - - - -",
    ]);
    let columns = "tag pool allocs frees frees_unmatched total_bytes frees_unmatched_bytes outstanding_count \
                   outstanding_bytes peak_bytes";
    shown(&output, "pool_tag", columns).are(&[
        "Agai paged 1 0 0 300 0 1 300 300",
        "Fsrn nonpaged 1 0 0 100 0 1 100 100",
        "Stck paged 1 0 0 8 0 1 8 8",
        "Fsrn paged 3 2 0 1296 0 0 0 1200",
        "Old  nonpaged 0 0 1 0 64 0 0 0",
    ]);
    assert_ledger(&output, &[("frees_of_unknown", 1), ("frees_unseen", 1), ("payload_too_short", 1)]);
}

#[test]
fn page_faults_belong_to_whom_runs() {
    let mut t = Written::new();
    t.process(1, 1, 100, 101, "a.exe").process(1, 1, 200, 201, "b.exe");
    t.thread(2, 1, 100, 101).thread(2, 1, 200, 201);
    let fault = |t: &mut Written, us, cpu, op: u16| {
        t.perf(us, cpu, 0x0200 | op, |r| r.ptr(0x7000_0000).ptr(0xFFFF_F800_0000_1234));
    };
    // Nobody has been switched in yet.
    fault(&mut t, 3, 0, 11);
    t.switch(5, 0, 101, 0).switch(5, 1, 201, 0);
    fault(&mut t, 10, 0, 10);
    fault(&mut t, 11, 1, 11);
    fault(&mut t, 12, 1, 11);
    fault(&mut t, 13, 1, 12);
    t.switch(14, 1, 101, 201);
    fault(&mut t, 15, 1, 11);
    t.stack(16, 15, (100, 101), &[0xFFFF_F800_0000_2000, 0x1_0000]);
    // A header that names the thread is believed.
    t.system(17, (200, 201), 0x020F, |r| r.ptr(8).ptr(0x40_1000));
    t.perf(18, 0, 0x020B, |r| r.ptr(0x7000_0000));
    // Nobody runs here as far as the trace tells, but the stack says who it was.
    fault(&mut t, 19, 3, 13);
    t.stack(20, 19, (200, 201), &[0xFFFF_F800_0000_2000]);
    let output = t.pass("page_fault page_fault_cost process thread stack frame");
    shown(&output, "page_fault", "ts_ns kind upid utid size_bytes cpu stack_id routine").are(&[
        "3 DemandZeroFault - - 4096 0 - [unknown]!0xfffff80000001234",
        "10 TransitionFault 100 101 4096 0 - [unknown]!0xfffff80000001234",
        "11 DemandZeroFault 200 201 4096 1 - [unknown]!0xfffff80000001234",
        "12 DemandZeroFault 200 201 4096 1 - [unknown]!0xfffff80000001234",
        "13 CopyOnWrite 200 201 4096 1 - [unknown]!0xfffff80000001234",
        "15 DemandZeroFault 100 101 4096 1 0 [unknown]!0xfffff80000001234",
        "17 AccessViolation 200 201 0 0 - [unknown]!0x401000",
        "19 GuardPageFault 200 - 0 3 1 [unknown]!0xfffff80000001234",
    ]);
    let mut cost = shown(&output, "page_fault_cost", "upid kind stack_id count size_bytes");
    assert_eq!(cost[0], "200 DemandZeroFault - 2 8192");
    cost.sort();
    cost.are(&[
        "- DemandZeroFault - 1 4096",
        "100 DemandZeroFault 0 1 4096",
        "100 TransitionFault - 1 4096",
        "200 AccessViolation - 1 0",
        "200 CopyOnWrite - 1 4096",
        "200 DemandZeroFault - 2 8192",
        "200 GuardPageFault 1 1 0",
    ]);
    // Both analyses met it.
    assert_eq!(ledger_count(&output, "payload_too_short"), 2);
}

#[test]
fn memory_counters_are_bytes() {
    let mut t = Written::new();
    t.process(0, 3, 100, 101, "a.exe");
    let info = |t: &mut Written, us, more: &[u64]| {
        t.perf(us, 0, 0x0270, |r| {
            r.ptr(10).ptr(20).ptr(3).ptr(4).ptr(0);
            for n in 1..=8 {
                r.ptr(n);
            }
            for n in 1..=8 {
                r.ptr(10 * n);
            }
            r.ptr(2);
            for &n in more {
                r.ptr(n);
            }
            r
        });
    };
    info(&mut t, 10, &[]);
    info(&mut t, 20, &[5, 6, 7, 8]);
    // Two processes with all counters, then with those of an early build.
    let sets = |t: &mut Written, us, counters: u64| {
        t.perf(us, 0, 0x027D, |r| {
            r.u32(2);
            for pid in [100u32, 200] {
                r.u32(pid);
                for n in 1..=counters {
                    r.ptr(u64::from(pid) + n);
                }
            }
            r
        });
    };
    sets(&mut t, 30, 8);
    sets(&mut t, 40, 3);
    t.perf(50, 0, 0x0320, |r| {
        r.u32(100).u32(77).u32(55).u32(0);
        for n in 1..=11 {
            r.ptr(n * 1000);
        }
        r
    });
    // Cut short: in the priorities, and a count without entries.
    t.perf(60, 0, 0x0270, |r| r.ptr(10).ptr(20));
    t.perf(61, 0, 0x027D, |r| r.u32(1000).u32(5));
    t.perf(62, 0, 0x0321, |r| r.u32(100).u32(1));
    let output = t.pass("memory_counter process_memory process");
    let columns = "ts_ns available_bytes zeroed_bytes standby_bytes standby_7_bytes repurposed_bytes \
                   modified_page_file_bytes paged_pool_bytes commit_bytes";
    // 10 + 20 + 36 pages; 36 is the sum of 1 to 8, 360 that of 10 to 80.
    shown(&output, "memory_counter", columns).are(&[
        "10 270336 40960 147456 32768 1474560 8192 - -",
        "20 270336 40960 147456 32768 1474560 8192 20480 32768",
    ]);
    let columns = "ts_ns source upid working_set_bytes commit_bytes virtual_bytes private_working_set_bytes \
                   shared_commit_bytes peak_working_set_bytes handles";
    shown(&output, "process_memory", columns).are(&[
        "30 MemInfoWS 100 413696 417792 421888 425984 442368 - -",
        "30 MemInfoWS 200 823296 827392 831488 835584 851968 - -",
        "40 MemInfoWS 100 413696 417792 421888 - - - -",
        "40 MemInfoWS 200 823296 827392 831488 - - - -",
        "50 PerfCtr 100 7000 11000 6000 - - 2000 55",
    ]);
    assert_eq!(ledger_count(&output, "payload_too_short"), 3);
}

#[test]
fn heap_blocks_live_until_they_are_freed() {
    let mut t = Written::new();
    let (a, b) = ((100, 101), (200, 201));
    t.process(0, 3, 100, 101, "a.exe").process(0, 3, 200, 201, "b.exe");
    let alloc = |t: &mut Written, us, who, heap: u64, size: u64, address: u64| {
        t.system(us, who, 0x1021, |r| r.ptr(heap).ptr(size).ptr(address).u32(2));
    };
    let free = |t: &mut Written, us, who, heap: u64, address: u64| {
        t.system(us, who, 0x1024, |r| r.ptr(heap).ptr(address).u32(2));
    };
    alloc(&mut t, 10, a, 0x1000, 64, 0x5000);
    alloc(&mut t, 11, b, 0x1000, 32, 0x5000);
    free(&mut t, 12, a, 0x1000, 0x5000);
    // It grows in place, then moves.
    alloc(&mut t, 13, a, 0x1000, 16, 0x6000);
    let realloc = |t: &mut Written, us, new: u64, old: u64, size: u64| {
        t.system(us, (100, 101), 0x1022, |r| r.ptr(0x1000).ptr(new).ptr(old).ptr(size).ptr(1).u32(2));
    };
    realloc(&mut t, 14, 0x6000, 0x6000, 48);
    realloc(&mut t, 15, 0x7000, 0x6000, 96);
    // Its heap goes; another heap stays. Used again unseen; freed unknown; cut short.
    alloc(&mut t, 16, a, 0x2000, 8, 0x8000);
    t.system(20, a, 0x1023, |r| r.ptr(0x1000));
    alloc(&mut t, 21, a, 0x2000, 8, 0x8000);
    free(&mut t, 22, a, 0x2000, 0x9999);
    t.system(23, a, 0x1021, |r| r.ptr(0x1000));
    t.process(30, 2, 200, 201, "b.exe");
    let output = t.pass("heap process thread stack");
    let columns = "ts_ns freed_ns freed_by op size_bytes upid utid source_id";
    shown(&output, "heap", columns).are(&[
        "10 12 free alloc 64 100 101 2",
        "11 30 exit alloc 32 200 201 2",
        "13 14 realloc alloc 16 100 101 2",
        "14 15 realloc realloc 48 100 101 2",
        "15 20 exit realloc 96 100 101 2",
        "16 - unseen alloc 8 100 101 2",
        "21 - - alloc 8 100 101 2",
    ]);
    assert_ledger(&output, &[("frees_of_unknown", 1), ("frees_unseen", 1), ("payload_too_short", 1)]);
}

/// Two buffers with a loss between them: what spans it is in doubt, what does not is not.
#[test]
fn nothing_is_told_across_lost_buffers() {
    let mut t = Written::new();
    t.process(1, 3, 100, 101, "a.exe").thread(1, 3, 100, 101).switch(2, 0, 101, 0);
    // Kept, freed behind the loss.
    pool_call(&mut t, 10, 0, 32, 1, b"Keep", 8, 0xA000);
    pool_call(&mut t, 11, 0, 32, 1, b"Free", 8, 0xB000);
    virtual_call(&mut t, 12, 0x0262, 0x10000, 0x1000, 100, COMMIT | RESERVE);
    virtual_call(&mut t, 13, 0x0262, 0x20000, 0x1000, 100, COMMIT | RESERVE);
    t.lost(20);
    pool_call(&mut t, 30, 0, 34, 1, b"Free", 8, 0xB000);
    virtual_call(&mut t, 31, 0x0263, 0x10000, 0, 100, RELEASE);
    // Nobody knows who runs until somebody is switched in.
    t.switch(40, 0, 101, 0);
    pool_call(&mut t, 50, 0, 32, 1, b"Late", 8, 0xC000);
    pool_call(&mut t, 51, 0, 32, 1, b"Late", 8, 0xD000);
    pool_call(&mut t, 52, 0, 34, 1, b"Late", 8, 0xD000);
    t.process(60, 2, 100, 101, "a.exe");
    let output = t.pass("pool virtual_alloc process thread");
    let columns = "tag freed_ns dur_ns freed_by utid freed_by_utid";
    shown(&output, "pool", columns).are(&[
        "Keep - - - 101 -",
        "Free - - doubtful 101 -",
        "Late - - - 101 -",
        "Late 52 1 free 101 101",
    ]);
    let columns = "ts_ns op freed_ns dur_ns freed_by utid";
    shown(&output, "virtual_alloc", columns).are(&[
        "12 commit+reserve - - doubtful 101",
        // The end of the process is certain.
        "13 commit+reserve 60 47 exit 101",
        "31 release - - - -",
    ]);
    assert_ledger(&output, &[("outstanding_doubtful", 1), ("ends_doubtful", 2)]);
}
