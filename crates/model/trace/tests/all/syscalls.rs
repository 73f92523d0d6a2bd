//! System calls of traces that are written event by event: every expected number is worked out by hand.

use crate::support::{Are, assert_ledger, ledger_count, number, pass, rows, table, text};
use etwhy_etl::write::{RecordBuf, TraceSetup, TraceWriter};
use etwhy_trace::Output;

/// Ticks of the writer's clock are 100 ns; times below are microseconds since the start.
const START: i64 = 1_000_000;
const PID: u32 = 40;

struct Script {
    writer: TraceWriter<std::io::BufWriter<std::fs::File>>,
    record: RecordBuf,
    path: std::path::PathBuf,
}

impl Script {
    fn new(name: &str) -> Script {
        Script::on(4, name)
    }

    fn on(processors: u32, name: &str) -> Script {
        let path = std::env::temp_dir().join(format!("etwhy-syscalls-{name}-{}.etl", std::process::id()));
        let setup = TraceSetup { processors, start_ticks: START, ..TraceSetup::default() };
        let writer = TraceWriter::<std::io::BufWriter<std::fs::File>>::create(&path, setup).unwrap();
        Script { writer, record: RecordBuf::new(), path }
    }

    fn perf(
        &mut self,
        cpu: u16,
        us: i64,
        hook: u16,
        version: u8,
        build: impl FnOnce(&mut RecordBuf) -> &mut RecordBuf,
    ) {
        let record = self.record.perfinfo(8, hook, version, START + us * 10);
        build(record);
        self.writer.write(cpu, &mut self.record).unwrap();
    }

    fn switch(&mut self, cpu: u16, us: i64, old: u32, new: u32) {
        self.perf(cpu, us, 0x0524, 4, |r| {
            r.u32(new).u32(old).u8(8).u8(8).u8(0).u8(0).u8(6).u8(1).u8(5).u8(0).u32(1).u32(0)
        });
    }

    /// Who runs on the processor wakes a thread.
    fn ready(&mut self, cpu: u16, us: i64, tid: u32) {
        self.perf(cpu, us, 0x0532, 2, |r| r.u32(tid).u8(0).u8(0).u8(0).u8(0));
    }

    fn enter(&mut self, cpu: u16, us: i64, address: u64) {
        self.perf(cpu, us, 0x0F33, 2, |r| r.ptr(0xFFFF_F800_0000_0000 + address));
    }

    fn exit(&mut self, cpu: u16, us: i64, status: u32) {
        self.perf(cpu, us, 0x0F34, 2, |r| r.u32(status));
    }

    fn dpc(&mut self, cpu: u16, from: i64, to: i64) {
        self.perf(cpu, to, 0x0F44, 2, |r| r.i64(START + from * 10).ptr(0xFFFF_F800_1234_0000));
    }

    /// The stack record of the event at `of`, written at `us`.
    fn stack(&mut self, cpu: u16, us: i64, of: i64, tid: u32) {
        self.perf(cpu, us, 0x1820, 2, |r| {
            r.i64(START + of * 10).u32(PID).u32(tid).ptr(0xFFFF_F800_0000_0001).ptr(0x7FF0_0000_1000)
        });
    }

    fn thread(&mut self, cpu: u16, us: i64, op: u16, tid: u32) {
        let record = self.record.system(8, 0x0500 | op, 3, START + us * 10, PID, tid, (0, 0));
        record.u32(PID).u32(tid).zeros(8 * 7).u32(0).u8(8).u8(5).u8(5).u8(0);
        self.writer.write(cpu, &mut self.record).unwrap();
    }

    fn analyse(self) -> Output {
        self.writer.finish().unwrap();
        let output = pass(&self.path, "syscall thread process ledger stack");
        std::fs::remove_file(&self.path).unwrap();
        output
    }
}

/// (tid, address, start, end, on-CPU, off-CPU, depth, outcome), times in microseconds, -1 for null.
type Call<'o> = (i64, i64, i64, i64, i64, i64, i64, &'o str);

fn calls(output: &Output) -> Vec<Call<'_>> {
    let (table, threads) = (table(output, "syscall"), table(output, "thread"));
    let call = |row| {
        let us = |column| number(table, row, column).map_or(-1, |n| n / 1000);
        let tid = number(table, row, "utid").map_or(-1, |u| number(threads, u as u32, "tid").unwrap());
        let address = number(table, row, "address").map_or(-1, |a| a & 0xFFFF);
        let (depth, outcome) = (number(table, row, "depth").unwrap_or(-1), text(table, row, "outcome"));
        (tid, address, us("start_ns"), us("ts_ns"), us("on_cpu_ns"), us("off_cpu_ns"), depth, outcome)
    };
    rows(table).map(call).collect()
}

#[test]
fn calls_follow_their_thread_over_processors() {
    let mut s = Script::new("follow");
    s.switch(0, 10, 0, 100);
    s.switch(1, 11, 0, 200);
    s.exit(1, 15, 0x103); // of a call that began before the trace
    s.enter(0, 20, 0xA); // 100: blocks from 30 to 60, ends on processor 1
    s.enter(1, 22, 0xB);
    s.dpc(0, 24, 27);
    s.exit(1, 25, 0xC000_0034);
    s.switch(0, 30, 100, 300);
    s.enter(0, 35, 0xC); // 300
    s.enter(0, 36, 0xD); // inside 0xC
    s.exit(0, 38, 0x8000_0005); // a warning
    s.exit(0, 40, 0);
    s.enter(1, 45, 0xE); // 200: preempted from 60 to 90
    s.switch(1, 60, 200, 100);
    s.exit(1, 64, 0);
    s.enter(1, 65, 0xF); // 100 never comes back
    s.switch(1, 70, 100, 0);
    s.switch(1, 90, 0, 200);
    s.exit(1, 95, 0);
    let output = s.analyse();
    calls(&output).are(&[
        (200, -1, -1, 15, -1, -1, -1, "no_enter"),
        (200, 0xB, 22, 25, 3, 0, 0, "returned"),
        (300, 0xD, 36, 38, 2, 0, 1, "returned"),
        (300, 0xC, 35, 40, 5, 0, 0, "returned"),
        // 44 in all, 30 switched out; of the 14 on processors 3 are a DPC's.
        (100, 0xA, 20, 64, 11, 30, 0, "returned"),
        (200, 0xE, 45, 95, 20, 30, 0, "returned"),
        (100, 0xF, 65, -1, -1, -1, -1, "unfinished"),
    ]);
    let table = table(&output, "syscall");
    let failed: Vec<_> = rows(table).map(|row| number(table, row, "failed")).collect();
    assert_eq!(failed, [Some(0), Some(1), Some(0), Some(0), Some(0), Some(0), None]);
    assert_eq!(text(table, 0, "status_name"), "STATUS_PENDING");
    assert_eq!(text(table, 1, "status_name"), "STATUS_OBJECT_NAME_NOT_FOUND");
    assert_eq!(number(table, 6, "unfinished"), Some(1));
    assert_ledger(&output, &[("syscalls_unattributed", 0), ("syscalls_unpaired", 0)]);
}

#[test]
fn threads_that_end_and_ids_that_come_back() {
    let mut s = Script::new("ends");
    s.thread(1, 5, 1, 100);
    s.switch(0, 10, 0, 100);
    s.enter(0, 20, 0xA);
    s.enter(0, 21, 0xB);
    s.thread(0, 25, 2, 100);
    s.switch(0, 26, 100, 0);
    // Another thread of that id; the exit is that of its own call.
    s.thread(1, 200_000, 1, 100);
    s.switch(0, 200_010, 0, 100);
    s.enter(0, 200_020, 0xC);
    s.exit(0, 200_030, 0);
    let output = s.analyse();
    calls(&output).are(&[
        (100, 0xA, 20, -1, -1, -1, -1, "thread_ended"),
        (100, 0xB, 21, -1, -1, -1, -1, "thread_ended"),
        (100, 0xC, 200_020, 200_030, 10, 0, 0, "returned"),
    ]);
    let table = table(&output, "syscall");
    assert_ne!(number(table, 0, "utid"), number(table, 2, "utid"));
    assert_eq!(number(table, 0, "unfinished"), Some(1));
}

#[test]
fn without_context_switches_nothing_is_paired() {
    let mut s = Script::new("noswitch");
    s.enter(0, 20, 0xA);
    s.exit(0, 30, 0);
    s.enter(0, 40, 0xB);
    s.stack(0, 41, 40, 100);
    s.exit(0, 50, 0);
    s.enter(0, 60, 0xC);
    s.stack(0, 61, 60, 200);
    let output = s.analyse();
    // The stack names who called; nothing says that the exit is theirs.
    calls(&output).are(&[
        (100, 0xB, 40, -1, -1, -1, -1, "unknown"),
        (-1, 0xA, 20, -1, -1, -1, -1, "unknown"),
        (200, 0xC, 60, -1, -1, -1, -1, "unknown"),
    ]);
    let table = table(&output, "syscall");
    assert!(number(table, 1, "stack_id").is_none() && number(table, 0, "stack_id").is_some());
    assert_eq!(number(table, 0, "upid").map(|u| u >= 0), Some(true));
    assert_ledger(&output, &[("syscalls_unattributed", 3), ("syscalls_without_context_switches", 1)]);
}

#[test]
fn stacks_tell_the_thread_before_the_first_switch_of_a_processor() {
    let mut s = Script::new("stacks");
    s.switch(1, 10, 0, 300);
    s.enter(0, 20, 0xA);
    s.stack(0, 21, 20, 100);
    s.exit(0, 30, 0);
    s.enter(0, 40, 0xB);
    s.stack(0, 41, 40, 100);
    s.switch(0, 50, 100, 0);
    s.switch(1, 60, 300, 100);
    s.exit(1, 65, 0);
    let output = s.analyse();
    calls(&output)
        .are(&[(100, 0xA, 20, 30, 10, 0, 0, "returned"), (100, 0xB, 40, 65, 15, 10, 0, "returned")]);
    assert_eq!(ledger_count(&output, "syscalls_unattributed"), 0);
}

#[test]
fn missing_buffers_break_pairs_unless_the_thread_stayed() {
    let mut s = Script::new("gaps");
    s.switch(0, 10, 0, 100);
    s.switch(1, 11, 0, 200);
    s.switch(2, 12, 0, 300);
    s.enter(0, 20, 0xA);
    s.enter(1, 21, 0xB); // 200 will move to processor 0 after the gap
    s.enter(2, 22, 0xC);
    s.switch(2, 30, 300, 0);
    // Processor 2 loses a buffer between 12 and 100.
    s.writer.flush_cpu(2).unwrap();
    s.enter(2, 100, 0xE); // nobody knows whose
    s.writer.mark_lost(2, false, true);
    s.exit(0, 101, 0); // 100 has been on processor 0 all the time
    s.switch(0, 105, 100, 0);
    s.switch(1, 106, 200, 0);
    s.switch(0, 110, 0, 200);
    s.exit(0, 120, 0); // of 200, which was on processor 1 as long as the gap lasted
    s.enter(0, 125, 0xD);
    s.exit(0, 130, 0);
    s.switch(2, 140, 0, 300);
    s.exit(2, 150, 0);
    let output = s.analyse();
    calls(&output).are(&[
        (100, 0xA, 20, 101, 81, 0, 0, "returned"),
        (200, 0xB, 21, 120, 95, 4, 0, "returned"),
        (200, 0xD, 125, 130, 5, 0, 0, "returned"),
        (300, 0xC, 22, -1, -1, -1, -1, "unknown"),
        (-1, 0xE, 100, -1, -1, -1, -1, "unknown"),
    ]);
    assert_ledger(&output, &[("syscalls_unpaired", 1), ("syscalls_unattributed", 1)]);
}

/// Five threads are in a call, wait, and come back while processor 3 has a gap.
fn waits_beside_a_gap(processors: u32) -> Output {
    let mut s = Script::on(processors, &format!("beside{processors}"));
    s.switch(3, 10, 300, 0);
    s.switch(0, 11, 0, 900); // wakes the others
    for (cpu, tid) in [(1, 100), (2, 200), (4, 400), (5, 500)] {
        s.switch(cpu, 12, 0, tid);
        s.enter(cpu, 20, u64::from(tid));
        s.switch(cpu, 30, tid, 0);
    }
    s.ready(0, 40, 100);
    s.ready(0, 41, 200);
    s.ready(0, 42, 400);
    s.ready(0, 48, 400); // 400 ran in between
    s.switch(1, 50, 0, 100); // back where it was, woken once
    s.switch(6, 51, 0, 200); // comes from elsewhere
    s.switch(4, 52, 0, 400);
    s.switch(5, 53, 0, 500); // nobody was seen to wake it
    for (cpu, _) in [(1, 100), (6, 200), (4, 400), (5, 500)] {
        s.exit(cpu, 60, 0);
    }
    s.writer.flush_cpu(3).unwrap();
    s.switch(3, 100, 0, 300);
    s.writer.mark_lost(3, false, true);
    s.analyse()
}

#[test]
fn a_gap_of_another_processor_breaks_only_what_may_have_been_there() {
    let output = waits_beside_a_gap(16);
    calls(&output).are(&[
        (100, 100, 20, 60, 20, 20, 0, "returned"),
        (400, 400, 20, -1, -1, -1, -1, "unknown"),
        (500, 500, 20, -1, -1, -1, -1, "unknown"),
        (200, 200, 20, -1, -1, -1, -1, "unknown"),
    ]);
    // 300 has one, too.
    assert_ledger(&output, &[("syscalls_unpaired", 3), ("waits_across_loss", 4)]);
    // On four processors a way over the one with the gap is likely.
    let output = waits_beside_a_gap(7);
    assert_ledger(&output, &[("syscalls_unpaired", 4), ("waits_across_loss", 5)]);
}

#[test]
fn calls_that_never_return_hold_nothing() {
    let mut s = Script::new("never");
    s.switch(0, 10, 0, 100);
    for n in 0..3 {
        let at = 20 + 100 * n;
        s.enter(0, at, 0xA); // does not come back
        s.enter(0, at + 10, 0xB);
        s.enter(0, at + 20, 0xC);
        s.exit(0, at + 30, 0);
        s.exit(0, at + 40, 0);
    }
    let output = s.analyse();
    let depths: Vec<_> = calls(&output).iter().map(|c| (c.1, c.6, c.7)).collect();
    let round = [(0xC, 1, "returned"), (0xB, 0, "returned")];
    assert_eq!(depths[..6], [round, round, round].concat());
    assert_eq!(depths[6..], [(0xA, -1, "unfinished"); 3]);
}
