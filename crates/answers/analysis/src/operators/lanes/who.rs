//! Rows that tell who ran on a processor, as items of an index with the processor as group.

use super::index::Item;
use crate::fold::Class;
use etwhy_table::{Database, Row, Rows};
use etwhy_trace::catalog::{cswitch::CSwitchRow, dpc::DpcRow, isr::IsrRow, sample::SampleRow};

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
pub fn run<'a>(db: &'a Database, names: &'a [(String, i64)]) -> (u32, impl Read + 'a) {
    let rows = db.read_or_empty::<CSwitchRow>();
    (count(&rows), move |row: u32| {
        let row = rows.get(row)?;
        let (from_ns, run) = (row.ts_ns(), row.run_ns().unwrap_or(0).max(0));
        let key = owner(names, row.new_upid());
        Some((row.cpu(), Item { from_ns, to_ns: from_ns.saturating_add(run), key, amount: 0 }))
    })
}

fn count<R: Row>(rows: &Rows<'_, R>) -> u32 {
    u32::try_from(rows.len()).unwrap_or(u32::MAX)
}

fn owner(names: &[(String, i64)], upid: Option<i64>) -> i32 {
    let known =
        upid.and_then(|upid| Some((i32::try_from(upid).ok()?, names.get(usize::try_from(upid).ok()?)?)));
    match known {
        Some((_, (_, 0))) => IDLE,
        Some((upid, _)) => upid,
        None => NOBODY,
    }
}

/// Rows and reader of DPCs that are not threads' own.
pub fn dpc(db: &Database) -> (u32, impl Read + '_) {
    let rows = db.read_or_empty::<DpcRow>();
    (count(&rows), move |row: u32| {
        let row = rows.get(row).filter(|row| row.kind() != "ThreadedDPC")?;
        Some((row.cpu(), Item { from_ns: row.start_ns(), to_ns: row.ts_ns(), key: 0, amount: 0 }))
    })
}

/// Rows and reader of ISRs that did something.
pub fn isr(db: &Database) -> (u32, impl Read + '_) {
    let rows = db.read_or_empty::<IsrRow>();
    (count(&rows), move |row: u32| {
        let row = rows.get(row).filter(|row| row.kind() != "ISR-PASS")?;
        Some((row.cpu(), Item { from_ns: row.start_ns(), to_ns: row.ts_ns(), key: 0, amount: 0 }))
    })
}

/// Rows and reader of samples. The lowest bit of a key tells that the kernel ran.
pub fn sample<'a>(db: &'a Database, names: &'a [(String, i64)], pointer_size: i64) -> (u32, impl Read + 'a) {
    let rows = db.read_or_empty::<SampleRow>();
    (count(&rows), move |row: u32| {
        let row = rows.get(row)?;
        let whose = match Class::of_sample(row.in_dpc(), row.in_isr()) {
            Class::Isr => IN_ISR,
            Class::Dpc => IN_DPC,
            Class::Thread => owner(names, row.upid()),
        };
        let kernel = row.ip() < 0 || (pointer_size == 4 && row.ip() >= 0x8000_0000);
        let key = whose.checked_mul(2)? + i32::from(kernel);
        let (from_ns, to_ns) = (row.ts_ns(), row.ts_ns());
        Some((row.cpu(), Item { from_ns, to_ns, key, amount: row.weight_ns() }))
    })
}
