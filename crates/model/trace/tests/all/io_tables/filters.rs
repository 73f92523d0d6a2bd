//! Callbacks of file system filters.

use super::{OK, TID, Writer, lines};
use crate::support::{Are, number, table, text};

/// Callback of a filter: begin, return with the time of the begin, failure.
fn filter(w: &mut Writer, hook: u16, at: i64, began: Option<i64>, seen: [u64; 3], status: Option<u32>) {
    callback(w, hook, at, began, DRIVER + 0x10, seen, status);
}

/// Where the first driver is loaded.
const DRIVER: u64 = 0xFFFF_F800_0001_0000;

/// Image DCStart of a driver, version 3.
fn driver(w: &mut Writer, base: u64, name: &str) {
    w.system(0, 0x1403, 3, 10, |r| {
        r.ptr(base).ptr(0x10000).u32(0).u32(0).u32(0).u8(0).u8(0).u16(0);
        r.ptr(0).u32(0).u32(0).u32(0).u32(0).utf16z(&format!("\\Windows\\System32\\drivers\\{name}"))
    });
}

/// CSwitch, version 3: the thread comes to processor 0.
fn switch_in(w: &mut Writer) {
    w.perf(0, 0x0524, 3, 95, |r| {
        r.u32(TID).u32(0).u8(8).u8(0).u8(0).u8(0).u8(0).u8(0).u8(2).u8(0).u32(0).u32(0)
    });
}

fn callback(
    w: &mut Writer,
    hook: u16,
    at: i64,
    began: Option<i64>,
    routine: u64,
    seen: [u64; 3],
    status: Option<u32>,
) {
    let [object, key, irp] = seen;
    let began = began.map(|began| w.start + began);
    w.perf(0, hook, 3, at, |r| {
        if let Some(began) = began {
            r.i64(began);
        }
        r.ptr(routine).ptr(object).ptr(key).ptr(irp).ptr(irp + 0x80).u32(0);
        if let Some(status) = status {
            r.u32(status);
        }
        r
    });
}

#[test]
fn filter_callbacks_have_driver_file_and_thread() {
    let mut w = Writer::new("filter", 8);
    driver(&mut w, DRIVER, "WdFilter.sys");
    // Before any context switch nobody knows who runs.
    filter(&mut w, 0x0462, 90, Some(80), [0x99, 0xF0, 0x40], None);
    switch_in(&mut w);
    // The filter sees the open before the file system does.
    filter(&mut w, 0x0460, 100, None, [0x10, 0, 1], None);
    filter(&mut w, 0x0462, 300, Some(100), [0x10, 0, 1], None);
    w.create(310, 1, 0x10, "\\opened");
    w.end(320, 1, 1, OK);
    filter(&mut w, 0x0463, 400, Some(330), [0x10, 0xA0, 1], None);
    // It refuses another one; its begin comes from the Init event.
    filter(&mut w, 0x0460, 500, None, [0x20, 0, 2], None);
    filter(&mut w, 0x0464, 540, None, [0x20, 0, 2], Some(0xC000_0022));
    // A failure whose begin was not recorded.
    filter(&mut w, 0x0465, 600, None, [0x30, 0xA0, 3], Some(0xC000_0022));
    let output = w.tables("minifilter minifilter_cost");
    let columns =
        "start_ns ts_ns dur_ns phase major module altitude vendor category failed status_name file_id path";
    let who = "WdFilter.sys 328010 Microsoft antivirus";
    lines(&output, "minifilter", columns).are(&[
        format!("8000 9000 1000 pre CREATE {who} 0 - 0 -"),
        format!("10000 30000 20000 pre CREATE {who} 0 - 1 \\opened"),
        format!("33000 40000 7000 post CREATE {who} 0 - 1 \\opened"),
        format!("50000 54000 4000 pre CREATE {who} 1 STATUS_ACCESS_DENIED - -"),
        format!("- 60000 - post CREATE {who} 1 STATUS_ACCESS_DENIED 1 \\opened"),
    ]);
    let of = table(&output, "minifilter");
    assert_eq!(number(of, 0, "utid"), None);
    let threads = table(&output, "thread");
    for row in 1..5 {
        assert_eq!(number(threads, number(of, row, "utid").unwrap() as u32, "tid"), Some(i64::from(TID)));
        assert_eq!(text(of, row, "routine"), "WdFilter.sys!+0x10");
    }
    let columns = "module major phase count failures files total_ns avg_ns p50_ns max_ns";
    lines(&output, "minifilter_cost", columns).are(&[
        "WdFilter.sys CREATE pre 3 1 2 25000 8333 4007 20000",
        "WdFilter.sys CREATE post 2 1 1 7000 7000 7000 7000",
    ]);
}

#[test]
fn callbacks_inside_another_one_are_not_its_own_time() {
    let mut w = Writer::new("nested", 8);
    let (outer, inner) = (DRIVER, DRIVER + 0x10000);
    driver(&mut w, outer, "outer.sys");
    driver(&mut w, inner, "inner.sys");
    // Nobody knows which thread runs: nothing is known to lie inside.
    callback(&mut w, 0x0462, 80, Some(60), inner + 0x10, [0x10, 0, 1], None);
    callback(&mut w, 0x0462, 90, Some(50), outer + 0x10, [0x10, 0, 1], None);
    switch_in(&mut w);
    // The outer filter opens the file itself, and waits for the inner one.
    callback(&mut w, 0x0462, 900, Some(200), inner + 0x10, [0x20, 0, 2], None);
    callback(&mut w, 0x0462, 1000, Some(100), outer + 0x10, [0x30, 0, 3], None);
    callback(&mut w, 0x0462, 1200, Some(1100), inner + 0x10, [0x40, 0, 4], None);
    let output = w.tables("minifilter minifilter_cost");
    lines(&output, "minifilter", "module dur_ns exclusive_ns").are(&[
        "inner.sys 2000 2000",
        "outer.sys 4000 4000",
        "inner.sys 70000 70000",
        "outer.sys 90000 20000",
        "inner.sys 10000 10000",
    ]);
    lines(&output, "minifilter_cost", "module count total_ns exclusive_ns max_ns max_exclusive_ns")
        .are(&["inner.sys 3 82000 82000 70000 70000", "outer.sys 2 94000 24000 90000 20000"]);
}
