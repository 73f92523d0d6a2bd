//! Rows that tell who ran on a processor, as items of an index with the processor as group.

use super::cells::Cells;
use super::index::Item;
use etwhy_table::Database;

/// Nothing tells which process ran.
pub const NOBODY: i32 = -1;
/// The idle thread.
pub const IDLE: i32 = -2;
/// A sample in a DPC.
pub const IN_DPC: i32 = -3;
/// A sample in an ISR.
pub const IN_ISR: i32 = -4;
/// Reads a row: its processor, and the item.
pub trait Read: Fn(u32) -> Option<(i64, Item)> {}

impl<F: Fn(u32) -> Option<(i64, Item)>> Read for F {}

/// Rows and reader of runs of threads. Keys are numbers of processes, or the constants above.
pub fn run<'a>(db: &'a Database, names: &'a [(String, i64)]) -> Option<(u32, impl Read + 'a)> {
    let cells = Cells::of(db, "cswitch", ["ts_ns", "run_ns", "cpu", "new_upid"])?;
    let rows = cells.rows();
    let read = move |row: u32| {
        let ([ts, run, cpu, upid], row) = cells.row(row)?;
        let (from_ns, run) = (ts.i64(row)?, run.i64(row).unwrap_or(0).max(0));
        let item =
            Item { from_ns, to_ns: from_ns.saturating_add(run), key: owner(names, upid.i32(row)), amount: 0 };
        Some((cpu.i64(row)?, item))
    };
    Some((rows, read))
}

fn owner(names: &[(String, i64)], upid: Option<i32>) -> i32 {
    let known = upid.and_then(|upid| Some((upid, names.get(usize::try_from(upid).ok()?)?)));
    match known {
        Some((_, (_, 0))) => IDLE,
        Some((upid, _)) => upid,
        None => NOBODY,
    }
}

/// Rows and reader of interrupts that are not threads' own.
pub fn interrupt<'a>(db: &'a Database, table: &str) -> Option<(u32, impl Read + 'a)> {
    let cells = Cells::of(db, table, ["start_ns", "ts_ns", "cpu", "kind"])?;
    let rows = cells.rows();
    let read = move |row: u32| {
        let ([start, end, cpu, kind], row) = cells.row(row)?;
        if matches!(kind.text(row), Some("ThreadedDPC" | "ISR-PASS")) {
            return None;
        }
        let item = Item { from_ns: start.i64(row)?, to_ns: end.i64(row)?, key: 0, amount: 0 };
        Some((cpu.i64(row)?, item))
    };
    Some((rows, read))
}

/// Rows and reader of samples. The lowest bit of a key tells that the kernel ran.
pub fn sample<'a>(
    db: &'a Database,
    names: &'a [(String, i64)],
    pointer_size: i64,
) -> Option<(u32, impl Read + 'a)> {
    let cells = Cells::of(db, "sample", ["ts_ns", "weight_ns", "cpu", "upid", "ip", "in_dpc", "in_isr"])?;
    let rows = cells.rows();
    let read = move |row: u32| {
        let ([ts, weight, cpu, upid, ip, dpc, isr], row) = cells.row(row)?;
        let whose = match (dpc.bool(row), isr.bool(row)) {
            (_, Some(true)) => IN_ISR,
            (Some(true), _) => IN_DPC,
            _ => owner(names, upid.i32(row)),
        };
        let ip = ip.i64(row).unwrap_or(0);
        let kernel = ip < 0 || (pointer_size == 4 && ip >= 0x8000_0000);
        let ts = ts.i64(row)?;
        let key = whose.checked_mul(2)? + i32::from(kernel);
        Some((cpu.i64(row)?, Item { from_ns: ts, to_ns: ts, key, amount: weight.i64(row).unwrap_or(0) }))
    };
    Some((rows, read))
}
