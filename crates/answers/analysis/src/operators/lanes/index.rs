//! Rows of a table in order of time, and their sums in bins, by group (a processor, a disk).
//!
//! # How it is computed
//!
//! A bin's length is a power of two, so a bucket as long as several bins is their sum. Shorter buckets span a small part of the trace, whose
//! rows are found by binary search: those that begin in it, and of those that begin before it, by blocks, the ones that reach into it.

use super::{Extent, Grid};
use foldhash::HashMap;

/// Bins of a trace.
pub const MOST_BINS: i64 = 1 << 16;
/// Bins that are one bin of the next level: who sees the whole trace reads few of them.
const STEP: i64 = 16;
/// Fewer rows are read each time.
const FEW: usize = 20_000;
/// Rows whose latest end is kept together.
const BLOCK: usize = 256;

/// What an index keeps of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Begin.
    pub from_ns: i64,
    /// End. At the begin: the item is a moment, and counts its amount there.
    pub to_ns: i64,
    /// Band.
    pub key: i32,
    /// What a moment counts; things that take time count that.
    pub amount: i64,
}

/// What is in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Number of the bucket.
    pub bucket: u32,
    /// Band.
    pub key: i32,
    /// Sum.
    pub amount: i64,
}

/// One group's rows.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Which one: number of a processor, a disk.
    pub id: i64,
    order: Vec<u32>,
    latest: Vec<i64>,
    /// The finest first; none if the rows are few.
    levels: Vec<Level>,
}

/// Sums of equal bins.
#[derive(Clone, Debug, Default)]
struct Level {
    bin_ns: i64,
    offsets: Vec<u32>,
    sums: Vec<(i32, i64)>,
}

impl Level {
    fn of(bin_ns: i64, bins: Sums) -> Level {
        let mut level = Level { bin_ns, offsets: vec![0], sums: Vec::new() };
        for list in bins.0 {
            level.sums.extend(list);
            level.offsets.push(u32::try_from(level.sums.len()).unwrap_or(u32::MAX));
        }
        level
    }

    /// Sums of the bins from one to another, which is left out.
    fn between(&self, from: usize, to: usize) -> &[(i32, i64)] {
        let last = self.offsets.len().saturating_sub(1);
        let border = |bin: usize| self.offsets.get(bin.min(last)).map_or(0, |at| *at as usize);
        self.sums.get(border(from)..border(to)).unwrap_or(&[])
    }

    /// The next level.
    fn coarser(&self) -> Level {
        let step = usize::try_from(STEP).unwrap_or(1);
        let count = self.offsets.len().saturating_sub(1).div_ceil(step);
        let mut sums = Sums::new(count);
        for bin in 0..count {
            for (key, amount) in self.between(bin * step, (bin + 1) * step) {
                sums.add(bin, *key, *amount);
            }
        }
        Level::of(self.bin_ns.saturating_mul(STEP), sums)
    }
}

/// The index of a table.
#[derive(Clone, Debug, Default)]
pub struct Index {
    first_ns: i64,
    /// In order of their ids.
    pub groups: Vec<Group>,
}

impl Group {
    /// Row numbers, by begin.
    pub fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().copied()
    }
}

fn spread(grid: &Grid, item: &Item, mut each: impl FnMut(usize, i64)) {
    if item.to_ns > item.from_ns {
        grid.cut(item.from_ns, item.to_ns, each);
    } else if let Some(bucket) = grid.bucket(item.from_ns) {
        each(bucket, item.amount);
    }
}

/// Buckets while they are filled: each has few bands.
struct Sums(Vec<Vec<(i32, i64)>>);

impl Sums {
    fn new(count: usize) -> Sums {
        Sums(vec![Vec::new(); count])
    }

    #[inline]
    fn add(&mut self, bucket: usize, key: i32, amount: i64) {
        let Some(list) = self.0.get_mut(bucket) else { return };
        match list.iter_mut().find(|(known, _)| *known == key) {
            Some((_, sum)) => *sum = sum.saturating_add(amount),
            None => list.push((key, amount)),
        }
    }
}

impl Index {
    /// Reads a table. `group` and `read` say what rows are; those without either are left out.
    pub fn build(
        rows: u32,
        extent: Extent,
        group: impl Fn(u32) -> Option<i64>,
        read: impl Fn(u32) -> Option<Item>,
    ) -> Index {
        let mut found: HashMap<i64, Vec<(i64, u32)>> = HashMap::default();
        for row in 0..rows {
            if let Some(id) = group(row)
                && let Some(item) = read(row)
            {
                found.entry(id).or_default().push((item.from_ns, row));
            }
        }
        let span = extent.end_ns.saturating_sub(extent.first_ns).max(1);
        let mut bin_ns = 1i64;
        while span / bin_ns >= MOST_BINS {
            bin_ns *= 2;
        }
        let bins = Grid::plain(extent.first_ns, bin_ns, usize::try_from(span / bin_ns + 1).unwrap_or(1));
        let bins = Grid { end_ns: extent.end_ns, ..bins };
        let mut groups: Vec<Group> = Vec::new();
        for (id, mut rows) in found {
            // Nearly sorted most often, for which this sort is made.
            rows.sort();
            let order: Vec<u32> = rows.into_iter().map(|(_, row)| row).collect();
            let mut group = Group { id, order, ..Group::default() };
            let blocks = group.order.chunks(BLOCK);
            let latest = |rows: &[u32]| {
                rows.iter().filter_map(|row| read(*row)).map(|item| item.to_ns.max(item.from_ns)).max()
            };
            group.latest = blocks.map(|rows| latest(rows).unwrap_or(i64::MIN)).collect();
            if group.order.len() > FEW {
                let mut sums = Sums::new(bins.count);
                for item in group.order.iter().filter_map(|row| read(*row)) {
                    spread(&bins, &item, |bin, amount| sums.add(bin, item.key, amount));
                }
                let finest = Level::of(bin_ns, sums);
                let coarser = finest.coarser();
                group.levels = vec![finest, coarser];
            }
            groups.push(group);
        }
        groups.sort_by_key(|group| group.id);
        Index { first_ns: extent.first_ns, groups }
    }

    /// Sums of a group in the buckets of a grid, by bucket and band. With `every_row` bins are not used: `read` leaves some rows out.
    pub fn sum(
        &self,
        group: &Group,
        grid: &Grid,
        every_row: bool,
        read: impl Fn(u32) -> Option<Item>,
        given_up: &dyn Fn() -> bool,
    ) -> Vec<Entry> {
        let mut sums = Sums::new(grid.count);
        let behind = grid.start_ns.saturating_sub(self.first_ns);
        let fits =
            |level: &&Level| behind >= 0 && grid.bucket_ns % level.bin_ns == 0 && behind % level.bin_ns == 0;
        let level = group.levels.iter().rev().find(fits).filter(|_| !every_row);
        if let Some(level) = level {
            let first = usize::try_from(behind / level.bin_ns).unwrap_or(usize::MAX);
            let per = usize::try_from(grid.bucket_ns / level.bin_ns).unwrap_or(usize::MAX);
            for bucket in 0..grid.count {
                let bin = first.saturating_add(bucket.saturating_mul(per));
                for (key, amount) in level.between(bin, bin.saturating_add(per)) {
                    sums.add(bucket, *key, *amount);
                }
            }
        } else {
            self.rows(group, grid, &read, given_up, |item| {
                spread(grid, &item, |bucket, amount| sums.add(bucket, item.key, amount));
            });
        }
        let mut out = Vec::new();
        for (bucket, list) in sums.0.into_iter().enumerate() {
            let bucket = u32::try_from(bucket).unwrap_or(u32::MAX);
            out.extend(list.into_iter().map(|(key, amount)| Entry { bucket, key, amount }));
        }
        out
    }

    /// The rows of a group that are in a grid's time.
    fn rows(
        &self,
        group: &Group,
        grid: &Grid,
        read: &impl Fn(u32) -> Option<Item>,
        given_up: &dyn Fn() -> bool,
        mut each: impl FnMut(Item),
    ) {
        let (from, to) = (grid.start_ns, grid.end_ns);
        // Which rows are read never depends on what the question leaves out, but a row that is left out has no begin.
        let blocks = group.order.chunks(BLOCK).zip(&group.latest);
        for (number, (rows, latest)) in blocks.enumerate() {
            if *latest < from {
                continue;
            }
            if number % 64 == 0 && given_up() {
                return;
            }
            let mut before = false;
            for item in rows.iter().filter_map(|row| read(*row)) {
                before = item.from_ns >= to;
                if before {
                    break;
                }
                if item.from_ns >= from || item.to_ns > from {
                    each(item);
                }
            }
            if before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    /// Bins and rows give the same sums, whatever the grid.
    #[test]
    fn bins_and_rows_agree() {
        let extent = Extent { first_ns: 0, end_ns: 40_000_000 };
        let mut rng = Rng::new(7);
        let items: Vec<Item> = (0..30_000)
            .map(|_| {
                let from_ns = rng.below(40_000_000) as i64;
                let long = [0, 50, 900, 300_000][rng.index(4)] as i64;
                Item { from_ns, to_ns: from_ns + long, key: rng.below(3) as i32, amount: 5 }
            })
            .collect();
        let read = |row: u32| items.get(row as usize).copied();
        let index = Index::build(items.len() as u32, extent, |_| Some(1), read);
        let group = &index.groups[0];
        assert_eq!(group.levels.len(), 2);
        for (range, most) in
            [([0, 40_000_000], 100), ([5_000, 39_000_000], 900), ([7_000_000, 7_100_000], 333), ([9, 11], 5)]
        {
            let grid = Grid::covering(range, extent, most);
            let sort = |mut list: Vec<Entry>| {
                list.sort_by_key(|entry| (entry.bucket, entry.key));
                list
            };
            let quick = sort(index.sum(group, &grid, false, read, &|| false));
            let slow = sort(index.sum(group, &grid, true, read, &|| false));
            let mut plain: HashMap<(u32, i32), i64> = HashMap::default();
            for item in &items {
                spread(&grid, item, |bucket, amount| {
                    *plain.entry((bucket as u32, item.key)).or_default() += amount
                });
            }
            let plain = plain.into_iter().map(|((bucket, key), amount)| Entry { bucket, key, amount });
            let plain = sort(plain.collect());
            assert_eq!(quick, plain, "{range:?}");
            assert_eq!(slow, plain, "{range:?}");
        }
    }
}
