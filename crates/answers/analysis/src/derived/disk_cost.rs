//! How disks are used: response times, load, who loads them, and with what.
//!
//! # How it is computed
//!
//! Rows of `disk_io`, summed by disk (`level` disk) and by disk and process (`level` process). Busy is the time in which at
//! least one transfer was under way. A transfer is small up to 16 KiB and sequential if it begins where the
//! one before it, of the same disk, process and direction, ended. Windows lets transfers of priority Low and VeryLow (prefetching, indexing,
//! scrubbing) wait for others: what they do is shown apart, and *urgent* is all that they are not, flushes included. Flushes that
//! were under way when the first of them ended have equal parts of their service time: the disk wrote its cache for all of them, and by the
//! order of their ends alone one would have all of it. The time in which the machine stood still (`machine`) is in no figure: a transfer that
//! was under way meanwhile had filled "101 % of the trace".
//!
//! # What fools it
//!
//! Response times have the waiting behind other transfers in them; `service_ns` has not. Lazily written data is the
//! System process's. Several physical disks may stand behind one number (RAID, storage pools, virtual machines).

use super::machine::StandstillRows;
use crate::derive::DerivedSpec;
use crate::fold::{freeze, id};
use crate::operators::{ProcessRow, add};
use crate::quarters::Dark;
use etwhy_table::{Database, Memory, Strings, Sym, Table, TableBuilder, define_table, reads};
use etwhy_trace::catalog::disk_io::DiskIoRow;
use std::collections::BTreeMap;

define_table! {
    /// How disks are used, by disk and by process.
    ///
    /// `level` says what a row sums over: `disk` or `process`. Take rows of one level only.
    pub table DISK_COST: DiskCostRow = "disk_cost" {
        version: 1,
        /// What the row sums over: disk, process.
        level: Sym [None, Kind],
        /// Physical disk.
        disk: i32 [None, Other],
        /// Process, at level process.
        upid: Option<i32> [None, Process],
        /// Transfers and flushes.
        count: i64 [Count, Count],
        /// Reads.
        reads: i64 [Count, Count],
        /// Writes.
        writes: i64 [Count, Count],
        /// Flushes.
        flushes: i64 [Count, Count],
        /// Bytes read.
        read_bytes: i64 [Bytes, Bytes],
        /// Bytes written.
        written_bytes: i64 [Bytes, Bytes],
        /// Time in which the disk worked on nothing else.
        service_ns: i64 [Ns, Duration],
        /// Part of it of flushes.
        flush_service_ns: i64 [Ns, Duration],
        /// Response times, summed.
        total_ns: i64 [Ns, Duration],
        /// Part of it of flushes.
        flush_ns: i64 [Ns, Duration],
        /// Time in which at least one was under way.
        busy_ns: i64 [Ns, Duration],
        /// Mean number under way while busy.
        queue_mean: f64 [None, Other],
        /// Half of the reads and writes had a response time no longer.
        p50_ns: Option<i64> [Ns, Duration],
        /// 95 % of them.
        p95_ns: Option<i64> [Ns, Duration],
        /// 99 % of them.
        p99_ns: Option<i64> [Ns, Duration],
        /// The longest response time of a read or write.
        max_ns: Option<i64> [Ns, Duration],
        /// 95 % of the reads and writes kept the disk to themselves no longer.
        service_p95_ns: Option<i64> [Ns, Duration],
        /// Reads and writes of at most 16 KiB.
        small: i64 [Count, Count],
        /// Reads and writes that begin where the one before ended.
        sequential: i64 [Count, Count],
        /// Half of the reads and writes were no larger.
        p50_bytes: Option<i64> [Bytes, Bytes],
        /// Reads and writes that took more than a second.
        over_second: i64 [Count, Count],
        /// Reads and writes of priority Low or VeryLow; null, like what follows, in extracts and stores of before it was known.
        low: Option<i64> [Count, Count],
        /// Part of `service_ns` of these.
        low_service_ns: Option<i64> [Ns, Duration],
        /// Part of `total_ns` of these.
        low_total_ns: Option<i64> [Ns, Duration],
        /// Time in which at least one other transfer was under way.
        urgent_busy_ns: Option<i64> [Ns, Duration],
        /// 95 % of the other reads and writes had a response time no longer.
        urgent_p95_ns: Option<i64> [Ns, Duration],
    }
}

/// Declaration.
pub static DERIVED: DerivedSpec = DerivedSpec {
    tables: &[&DISK_COST],
    reads: reads::<(ProcessRow, DiskIoRow, StandstillRows)>,
    on_demand: false,
    make,
};

/// Up to here a transfer is small.
const SMALL_BYTES: i64 = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Read,
    Write,
    Flush,
}

#[derive(Clone, Copy)]
struct Transfer {
    start: i64,
    end: i64,
    service: i64,
    op: Op,
    size: i64,
    offset: i64,
    /// A read or write that Windows lets wait for others.
    low: bool,
}

/// Whether Windows lets a transfer of this priority hint wait for others.
pub(crate) fn is_low(priority: Option<&str>) -> bool {
    matches!(priority, Some("VeryLow" | "Low"))
}

fn make(db: &Database, memory: &Memory) -> etwhy_table::Result<Vec<Table>> {
    let mut rows = TableBuilder::<DiskCostRow>::new(memory);
    let mut strings = Strings::new();
    let mut by: BTreeMap<(i32, i64), Vec<Transfer>> = BTreeMap::new();
    let still = Dark::standstill(db);
    for row in &db.read_or_empty::<DiskIoRow>() {
        let op = match row.op() {
            "read" => Op::Read,
            "write" => Op::Write,
            _ => Op::Flush,
        };
        let end = still.without(row.ts_ns());
        let served = still.without(row.ts_ns().saturating_sub(row.service_ns()));
        let transfer = Transfer {
            start: still.without(row.start_ns()),
            end,
            service: end.saturating_sub(served),
            op,
            size: row.size_bytes(),
            offset: row.offset_bytes(),
            low: op != Op::Flush && is_low(row.priority()),
        };
        let disk = i32::try_from(row.disk()).unwrap_or(-1);
        by.entry((disk, row.upid().unwrap_or(-1))).or_default().push(transfer);
    }
    share_flushes(&mut by);
    let mut disks: BTreeMap<i32, Vec<Transfer>> = BTreeMap::new();
    let (all, one) = (strings.intern("disk"), strings.intern("process"));
    let mut out = Vec::new();
    // What is sequential for its process is so for the disk: others come in between by chance.
    let mut sequential_of: BTreeMap<i32, i64> = BTreeMap::new();
    for ((disk, upid), mut transfers) in by {
        transfers.sort_by_key(|t| t.start);
        let mut row = row(one, disk, id(upid), &transfers);
        row.sequential = sequential(&transfers);
        add(sequential_of.entry(disk).or_default(), row.sequential);
        out.push(row);
        disks.entry(disk).or_default().extend(transfers);
    }
    for (disk, mut transfers) in disks {
        transfers.sort_by_key(|t| t.start);
        let mut row = row(all, disk, None, &transfers);
        row.sequential = sequential_of.get(&disk).copied().unwrap_or(0);
        out.push(row);
    }
    out.sort_by_key(|row| (row.level != all, std::cmp::Reverse(row.service_ns), row.disk, row.upid));
    for row in out {
        rows.push(row);
    }
    Ok(vec![rows.finish(&freeze(strings, db)?)?])
}

/// Divides the service time of flushes that were under way when the first of them ended, of each disk, equally among them.
fn share_flushes(by: &mut BTreeMap<(i32, i64), Vec<Transfer>>) {
    let mut flushes: BTreeMap<i32, Vec<&mut Transfer>> = BTreeMap::new();
    for ((disk, _), transfers) in by.iter_mut() {
        let of_disk = flushes.entry(*disk).or_default();
        of_disk.extend(transfers.iter_mut().filter(|t| t.op == Op::Flush));
    }
    for mut of_disk in flushes.into_values() {
        of_disk.sort_by_key(|t| (t.end, t.start));
        let mut rest = of_disk.as_mut_slice();
        while let Some(first) = rest.first() {
            let ended = first.end;
            let together = 1 + rest.iter().skip(1).take_while(|t| t.start < ended).count();
            let (group, others) = std::mem::take(&mut rest).split_at_mut(together);
            let sum = group.iter().fold(0i64, |sum, t| sum.saturating_add(t.service));
            // What is left over by the division goes to the first ones, so that sums stay what they were.
            let (part, left) = (sum / together as i64, sum % together as i64);
            for (place, flush) in group.iter_mut().enumerate() {
                flush.service = part + i64::from((place as i64) < left);
            }
            rest = others;
        }
    }
}

/// Reads and writes that begin where the one before of the same direction ended, of transfers in order of their beginning.
fn sequential(transfers: &[Transfer]) -> i64 {
    let mut count = 0;
    let mut ends: [Option<i64>; 2] = [None; 2];
    for t in transfers.iter().filter(|t| t.op != Op::Flush) {
        let [reads, writes] = &mut ends;
        let end = if t.op == Op::Read { reads } else { writes };
        count += i64::from(*end == Some(t.offset));
        *end = t.offset.checked_add(t.size);
    }
    count
}

/// The values that so many percent of a list do not exceed, by nearest rank; the percentages have to descend.
fn percentiles<const N: usize>(mut values: &mut [i64], percents: [usize; N]) -> [Option<i64>; N] {
    let count = values.len();
    percents.map(|percent| {
        let rank = (count * percent).div_ceil(100).max(1);
        if rank > values.len() {
            return None;
        }
        // What is behind the rank is larger, and what is asked next stands before it or is it.
        let all = std::mem::take(&mut values);
        let found = *all.select_nth_unstable(rank - 1).1;
        values = all.get_mut(..rank).unwrap_or_default();
        Some(found)
    })
}

/// Length of all spans together, in order of their beginning, where each moment counts once.
fn union(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
    let (mut sum, mut until) = (0i64, i64::MIN);
    for (start, end) in spans {
        let from = start.max(until);
        if end > from {
            add(&mut sum, end.saturating_sub(from));
            until = end;
        }
    }
    sum
}

/// The sums of transfers in order of their beginning.
fn row(level: Sym, disk: i32, upid: Option<i32>, transfers: &[Transfer]) -> DiskCostRow {
    let dur = |t: &Transfer| t.end.saturating_sub(t.start).max(0);
    let of = |op: Op| transfers.iter().filter(move |t| t.op == op);
    let sum = |values: &mut dyn Iterator<Item = i64>| values.fold(0i64, i64::saturating_add);
    let moving = || transfers.iter().filter(|t| t.op != Op::Flush);
    let mut times: Vec<i64> = moving().map(dur).collect();
    let (max_ns, over_second) =
        (times.iter().max().copied(), times.iter().filter(|&&t| t > 1_000_000_000).count());
    let [p99_ns, p95_ns, p50_ns] = percentiles(&mut times, [99, 95, 50]);
    let mut services: Vec<i64> = moving().map(|t| t.service).collect();
    let [service_p95_ns] = percentiles(&mut services, [95]);
    let mut sizes: Vec<i64> = moving().map(|t| t.size).collect();
    let [p50_bytes] = percentiles(&mut sizes, [50]);
    let low = || transfers.iter().filter(|t| t.low);
    let urgent = || transfers.iter().filter(|t| !t.low);
    let mut urgent_times: Vec<i64> = urgent().filter(|t| t.op != Op::Flush).map(dur).collect();
    let [urgent_p95_ns] = percentiles(&mut urgent_times, [95]);
    let busy_ns = union(transfers.iter().map(|t| (t.start, t.end)));
    let total_ns = sum(&mut transfers.iter().map(dur));
    DiskCostRow {
        level,
        disk,
        upid,
        count: transfers.len() as i64,
        reads: of(Op::Read).count() as i64,
        writes: of(Op::Write).count() as i64,
        flushes: of(Op::Flush).count() as i64,
        read_bytes: sum(&mut of(Op::Read).map(|t| t.size)),
        written_bytes: sum(&mut of(Op::Write).map(|t| t.size)),
        service_ns: sum(&mut transfers.iter().map(|t| t.service)),
        flush_service_ns: sum(&mut of(Op::Flush).map(|t| t.service)),
        total_ns,
        flush_ns: sum(&mut of(Op::Flush).map(dur)),
        busy_ns,
        queue_mean: if busy_ns > 0 { total_ns as f64 / busy_ns as f64 } else { 0.0 },
        p50_ns,
        p95_ns,
        p99_ns,
        max_ns,
        service_p95_ns,
        small: moving().filter(|t| t.size <= SMALL_BYTES).count() as i64,
        sequential: 0,
        p50_bytes,
        over_second: over_second as i64,
        low: Some(low().count() as i64),
        low_service_ns: Some(sum(&mut low().map(|t| t.service))),
        low_total_ns: Some(sum(&mut low().map(dur))),
        urgent_busy_ns: Some(union(urgent().map(|t| (t.start, t.end)))),
        urgent_p95_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_transfers_keep_the_disk_busy_once() {
        assert_eq!(union([(0, 10), (5, 8), (9, 20), (30, 40)].into_iter()), 30);
        assert_eq!(union(std::iter::empty()), 0);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut values: Vec<i64> = (1..=200).rev().collect();
        assert_eq!(percentiles(&mut values, [99, 95, 50]), [198, 190, 100].map(Some));
        assert_eq!(percentiles(&mut [7], [99, 50]), [Some(7); 2]);
        assert_eq!(percentiles(&mut [], [99, 50]), [None; 2]);
    }

    #[test]
    fn figures_of_a_disk() {
        let t = |start, end, op, size, offset| Transfer {
            start,
            end,
            service: end - start,
            op,
            size,
            offset,
            low: false,
        };
        let transfers = [
            t(0, 10, Op::Read, 4096, 0),
            t(10, 40, Op::Read, 4096, 4096),
            t(35, 40, Op::Write, 65536, 0),
            t(50, 100, Op::Flush, 0, 0),
        ];
        let mut strings = Strings::new();
        let row = row(strings.intern("disk"), 0, None, &transfers);
        assert_eq!((row.count, row.reads, row.writes, row.flushes), (4, 2, 1, 1));
        assert_eq!((row.read_bytes, row.written_bytes), (8192, 65536));
        assert_eq!((row.total_ns, row.busy_ns, row.flush_ns), (95, 90, 50));
        assert_eq!((row.p50_ns, row.p95_ns, row.max_ns), (Some(10), Some(30), Some(30)));
        assert_eq!((row.small, row.p50_bytes), (2, Some(4096)));
        assert_eq!(sequential(&transfers), 1);
        assert!((row.queue_mean - 95.0 / 90.0).abs() < 1e-9);
        assert_eq!((row.low, row.urgent_busy_ns, row.urgent_p95_ns), (Some(0), Some(90), Some(30)));
    }

    #[test]
    fn flushes_that_one_write_of_the_cache_serves_have_equal_parts_of_it() {
        let t =
            |start, end, service, op| Transfer { start, end, service, op, size: 0, offset: 0, low: false };
        let services = |transfers: [&[Transfer]; 2]| {
            let [one, two] = transfers.map(<[Transfer]>::to_vec);
            let mut by = BTreeMap::from([((0, 1), one), ((0, 2), two)]);
            share_flushes(&mut by);
            by.into_values().map(|of| of.iter().map(|t| t.service).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        // In step: the second begins shortly after the first, and ends shortly after it.
        let (first, second) =
            ([t(0, 48, 45, Op::Flush), t(60, 108, 45, Op::Flush)], [t(3, 51, 4, Op::Flush)]);
        assert_eq!(services([&first, &second]), [vec![25, 45], vec![24]]);
        // One after the other, and reads: each keeps its own.
        let (first, second) = ([t(0, 10, 10, Op::Flush)], [t(10, 12, 2, Op::Flush), t(5, 11, 1, Op::Read)]);
        assert_eq!(services([&first, &second]), [vec![10], vec![2, 1]]);
    }

    #[test]
    fn transfers_of_low_priority_stand_apart() {
        assert_eq!(["VeryLow", "Low", "Normal"].map(|name| is_low(Some(name))), [true, true, false]);
        assert!(!is_low(None));
        let t = |start, end, op, low| Transfer { start, end, service: 10, op, size: 4096, offset: 0, low };
        let transfers = [
            t(0, 100, Op::Read, true),
            t(20, 30, Op::Read, false),
            t(40, 60, Op::Flush, false),
            t(90, 190, Op::Write, true),
        ];
        let mut strings = Strings::new();
        let row = row(strings.intern("disk"), 0, None, &transfers);
        assert_eq!((row.low, row.low_service_ns, row.low_total_ns), (Some(2), Some(20), Some(200)));
        assert_eq!((row.busy_ns, row.urgent_busy_ns), (190, Some(30)));
        assert_eq!((row.p95_ns, row.urgent_p95_ns), (Some(100), Some(10)));
    }
}
