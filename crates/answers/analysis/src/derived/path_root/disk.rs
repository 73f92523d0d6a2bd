//! Who had the disk while somebody waited for it: a transfer that stands in a queue waits for those that were asked for before it. What
//! was asked for later and done earlier overtook it (drives serve several at once); it says nothing about why this one took long. An urgent
//! transfer waits for one of low priority only if that is under way already: Windows holds the others back for it. What System writes for the
//! cache is the program's that wrote the file, and what it reads ahead the program's that reads it; where that one is not known, nobody's.

use crate::derived::disk_cost::is_low;
use crate::operators::add;
use etwhy_table::Database;
use etwhy_trace::catalog::{disk_io::DiskIoRow, file::FileRow, file_io::FileUsageRow};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;

/// Whose transfers System's are, where nothing tells for whom it makes them.
pub(super) const NOBODY_KNOWN: i64 = -3;

/// A part of a wait, and the process and thread whose transfer was served then, if it was another's.
pub(super) type Part = (i64, i64, Option<(i64, i64)>);

/// A transfer: start of service, completion, when it was asked for, its process and thread, and whether it has low priority.
type Served = (i64, i64, i64, i64, i64, bool);

/// What a thread asked for: start and completion, when its own service began, disk, and whether it has low priority.
type Asked = (i64, i64, i64, i64, bool);

/// Transfers that are looked at for one wait; what the disk served later stays the wait's own.
const MOST_LOOKED: usize = 1 << 16;

/// All transfers, as far as waits need them.
#[derive(Default)]
pub(super) struct Disks {
    /// Of each disk, one after the other.
    served: HashMap<i64, Vec<Served>>,
    /// Of each thread.
    asked: HashMap<i64, Vec<Asked>>,
}

impl Disks {
    pub fn read(db: &Database, systems: &HashSet<i64>) -> Disks {
        let mut disks = Disks::default();
        let files = db.read_or_empty::<FileRow>();
        let mut cached: HashSet<String> = HashSet::default();
        for row in &db.read_or_empty::<DiskIoRow>() {
            if row.upid().is_some_and(|upid| systems.contains(&upid))
                && let Some(file) = row.file_id().and_then(|file| files.get(file))
                && let Some(path) = file.path()
                && !cached.contains(path)
            {
                cached.insert(path.to_owned());
            }
        }
        let (readers, writers) = cached_users(db, systems, &cached);
        let user =
            |users: &HashMap<String, i64>, file: Option<i64>| users.get(files.get(file?)?.path()?).copied();
        for row in &db.read_or_empty::<DiskIoRow>() {
            let disk = row.disk();
            let (begun, done) = (row.ts_ns().saturating_sub(row.service_ns()), row.ts_ns());
            let (mut upid, utid) = (row.upid().unwrap_or(-1), row.utid().unwrap_or(-1));
            if systems.contains(&upid) {
                let users = match row.op() {
                    "read" => Some(&readers),
                    "write" => Some(&writers),
                    _ => None,
                };
                upid = users.and_then(|users| user(users, row.file_id())).unwrap_or(NOBODY_KNOWN);
            }
            let low = is_low(row.priority());
            if begun < done {
                disks.served.entry(disk).or_default().push((begun, done, row.start_ns(), upid, utid, low));
            }
            if row.start_ns() < begun && utid >= 0 {
                disks.asked.entry(utid).or_default().push((row.start_ns(), done, begun, disk, low));
            }
        }
        disks.served.values_mut().for_each(|list| list.sort_unstable());
        disks.asked.values_mut().for_each(|list| list.sort_unstable());
        disks
    }

    /// The parts of a wait of a thread for a transfer, in time order: in those with a name the disk served that other process.
    pub fn parts(&self, utid: i64, upid: i64, from: i64, to: i64) -> Vec<Part> {
        let mut parts = Vec::new();
        let (mut at, mut left) = (from, MOST_LOOKED);
        let mine = self.asked.get(&utid).map_or(&[][..], Vec::as_slice);
        // Waits for a transfer begin with it, or soon after: those that began long before are others'.
        let first = mine.partition_point(|asked| asked.0 < from.saturating_sub(to.saturating_sub(from)));
        for &(start, done, begun, disk, low) in mine.iter().skip(first).take_while(|asked| asked.0 < to) {
            if done <= from {
                continue;
            }
            let Some(served) = self.served.get(&disk) else { continue };
            let next = served.partition_point(|s| s.1 <= start.max(at));
            let meanwhile = served.iter().skip(next).take(left).take_while(|s| s.0 < begun);
            for &(since, until, asked, other, thread, patient) in meanwhile {
                left -= 1;
                if patient && !low && since >= start {
                    continue;
                }
                let (since, until) = (since.max(at), until.min(begun).min(to));
                if other == -1 || other == upid || asked > start || since >= until {
                    continue;
                }
                if at < since {
                    parts.push((at, since, None));
                }
                parts.push((since, until, Some((other, thread))));
                at = until;
            }
        }
        if at < to {
            parts.push((at, to, None));
        }
        parts
    }
}

/// For whom System transfers these files, which are cached: who read more than half of what programs read there, and
/// who wrote more than half of what they wrote.
fn cached_users(
    db: &Database,
    systems: &HashSet<i64>,
    cached: &HashSet<String>,
) -> (HashMap<String, i64>, HashMap<String, i64>) {
    let mut read: HashMap<String, BTreeMap<i64, i64>> = HashMap::default();
    let mut written: HashMap<String, BTreeMap<i64, i64>> = HashMap::default();
    for row in &db.read_or_empty::<FileUsageRow>() {
        let (Some(path), Some(upid)) = (row.path(), row.upid()) else { continue };
        if systems.contains(&upid) || !cached.contains(path) {
            continue;
        }
        for (sums, bytes) in [(&mut read, row.read_bytes()), (&mut written, row.written_bytes())] {
            if bytes > 0 {
                add(sums.entry(path.to_owned()).or_default().entry(upid).or_default(), bytes);
            }
        }
    }
    let most = |by: BTreeMap<i64, i64>| {
        let all = by.values().fold(0i64, |all, bytes| all.saturating_add(*bytes));
        by.into_iter().find(|(_, bytes)| bytes.saturating_mul(2) > all).map(|(upid, _)| upid)
    };
    let users = |sums: HashMap<String, BTreeMap<i64, i64>>| {
        sums.into_iter().filter_map(|(path, by)| Some((path, most(by)?))).collect()
    };
    (users(read), users(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_shared_out_by_whom_the_disk_served() {
        let mut disks = Disks::default();
        // Process 1 had the disk from 0 to 30, process 2 (thread 20) asked at 5 and was served from 30 to 40.
        disks
            .served
            .insert(0, vec![(0, 10, 0, 1, 10, false), (10, 30, 1, 1, 10, false), (30, 40, 5, 2, 20, false)]);
        disks.asked.insert(20, vec![(5, 40, 30, 0, false)]);
        assert_eq!(
            disks.parts(20, 2, 6, 40),
            [(6, 10, Some((1, 10))), (10, 30, Some((1, 10))), (30, 40, None)]
        );
        assert_eq!(disks.parts(20, 1, 6, 40), [(6, 40, None)], "its own transfers are its own");
        let system = |other| (0, 30, 0, other, 10, false);
        for (other, expected) in [
            (-1, vec![(6, 40, None)]),
            (NOBODY_KNOWN, vec![(6, 30, Some((NOBODY_KNOWN, 10))), (30, 40, None)]),
        ] {
            let mut disks =
                Disks { served: HashMap::from_iter([(0, vec![system(other)])]), ..Disks::default() };
            disks.asked.insert(20, vec![(5, 40, 30, 0, false)]);
            assert_eq!(disks.parts(20, 2, 6, 40), expected);
        }
        assert_eq!(disks.parts(21, 3, 6, 40), [(6, 40, None)], "it asked for nothing");
        assert_eq!(disks.parts(20, 2, 40, 50), [(40, 50, None)], "behind it");
        // A drive that serves several at once: what was asked for at 6 is done at 30, before what was asked for at 5.
        disks
            .served
            .insert(0, vec![(0, 10, 0, 1, 10, false), (10, 30, 6, 1, 10, false), (30, 40, 5, 2, 20, false)]);
        assert_eq!(disks.parts(20, 2, 6, 40), [(6, 10, Some((1, 10))), (10, 40, None)]);
    }

    #[test]
    fn low_priority_is_held_back_for_what_is_urgent() {
        let mut disks = Disks::default();
        // A scrub (process 1) has two transfers in the queue when thread 20 asks at 5; the first one is under way.
        disks
            .served
            .insert(0, vec![(0, 10, 0, 1, 10, true), (10, 30, 1, 1, 10, true), (30, 40, 5, 2, 20, false)]);
        disks.asked.insert(20, vec![(5, 40, 30, 0, false)]);
        assert_eq!(disks.parts(20, 2, 6, 40), [(6, 10, Some((1, 10))), (10, 40, None)]);
        // Transfers of low priority wait for each other.
        disks.asked.insert(20, vec![(5, 40, 30, 0, true)]);
        let parts = [(6, 10, Some((1, 10))), (10, 30, Some((1, 10))), (30, 40, None)];
        assert_eq!(disks.parts(20, 2, 6, 40), parts);
    }
}
