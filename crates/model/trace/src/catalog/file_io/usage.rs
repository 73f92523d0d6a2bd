//! Sums of file operations: per file and process, and what opening each file costs the first time and later.

use super::{
    CLEANUP, CLOSE, CREATE, DELETE, DIR_ENUM, DIR_NOTIFY, FAILED, FLUSH, FileIoRow, QUERY_INFO, READ, RENAME,
    REPARSE, SET_INFO, WRITE,
};
use crate::analysis::{Filled, Finish};
use crate::model::Model;
use crate::model::file_name::{FileRef, SameFile};
use crate::owner::Owner;
use etwhy_base::aside::{Aside, Work};
use etwhy_knowledge::ntstatus_name;
use etwhy_table::{Memory, Sym, TableBuilder, define_table};
use foldhash::HashMap;
use std::collections::BTreeMap;

define_table! {
    /// What each process did with each file, the most expensive first.
    ///
    /// Sums of `file_io` by path (in any case) and process. Times are those of the file system below all
    /// filters; an open costs its caller more, see `file_io`. `total_ns` counts all operations but DirNotify,
    /// which waits for something to happen. Files without a name are one row per process.
    pub table FILE_USAGE: FileUsageRow = "file_usage" {
        version: 1,
        /// Path, with drive letters where the trace maps them; none if no name was recorded.
        path: Option<Sym> [None, Path],
        /// Process.
        upid: Option<i32> [None, Process],
        /// Creates that succeeded, or whose end is unknown.
        opens: i64 [Count, Count],
        /// Creates that failed.
        failed_opens: i64 [Count, Count],
        /// Failed creates by status, the most frequent first.
        failures: Option<Sym> [None, Message],
        /// Closes.
        closes: i64 [Count, Count],
        /// Reads.
        reads: i64 [Count, Count],
        /// Bytes that reads moved.
        read_bytes: i64 [Bytes, Bytes],
        /// Time of reads.
        read_ns: i64 [Ns, Duration],
        /// Writes.
        writes: i64 [Count, Count],
        /// Bytes that writes moved.
        written_bytes: i64 [Bytes, Bytes],
        /// Time of writes.
        write_ns: i64 [Ns, Duration],
        /// Directory enumerations.
        dir_enums: i64 [Count, Count],
        /// QueryInfo.
        queries: i64 [Count, Count],
        /// SetInfo, Rename and Delete.
        changes: i64 [Count, Count],
        /// Flushes.
        flushes: i64 [Count, Count],
        /// Other operations: FSControl, DirNotify, links, creates that met a link. Cleanups are not counted.
        others: i64 [Count, Count],
        /// Operations whose end is unknown: their time and bytes are not in the sums.
        unfinished: i64 [Count, Count],
        /// Time of creates, good and failed.
        open_ns: i64 [Ns, Duration],
        /// Time of all operations but DirNotify.
        total_ns: i64 [Ns, Duration],
    }
}

define_table! {
    /// File open cost: the first open of each file against later opens of the same file.
    ///
    /// A first open that is much slower than later ones is work that somebody does once per file: reading its
    /// metadata from the disk, or scanning it. Only creates that succeeded and whose end is known have a time;
    /// it is that of the file system below all filters, so compare it with `minifilter` before concluding.
    /// "First" is the first in the trace; the file may have been opened before.
    pub table FILE_OPEN: FileOpenRow = "file_open" {
        version: 1,
        /// Path, with drive letters where the trace maps them.
        path: Option<Sym> [None, Path],
        /// Creates of all processes that succeeded.
        opens: i64 [Count, Count],
        /// Creates of all processes that failed.
        failed_opens: i64 [Count, Count],
        /// Processes that opened it or tried to.
        processes: i64 [Count, Count],
        /// When it was first opened.
        first_ns: Option<i64> [Ns, Time],
        /// Process that opened it first.
        first_upid: Option<i32> [None, Process],
        /// Duration of that open.
        first_open_ns: Option<i64> [Ns, Duration],
        /// Later opens.
        later_opens: i64 [Count, Count],
        /// Mean duration of later opens.
        later_open_avg_ns: Option<i64> [Ns, Duration],
        /// Longest of the later opens.
        later_open_max_ns: Option<i64> [Ns, Duration],
        /// First open divided by the mean of later ones.
        first_to_later: Option<f64> [None, Other],
    }
}

/// Opens of one file by one owner that succeeded and ended.
#[derive(Clone, Copy, Debug, Default)]
struct Opens {
    count: i64,
    total_ns: i64,
    /// Start and duration of the first.
    first: Option<(i64, i64)>,
    /// The longest but for the first.
    later_max_ns: Option<i64>,
}

impl Opens {
    fn add(&mut self, start_ns: i64, dur_ns: i64) {
        let one = Opens { count: 1, total_ns: dur_ns, first: Some((start_ns, dur_ns)), later_max_ns: None };
        self.merge(&one);
    }

    fn merge(&mut self, other: &Opens) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        let (first, second) = match (self.first, other.first) {
            (Some(a), Some(b)) if b.0 < a.0 => (Some(b), Some(a)),
            (Some(a), b) => (Some(a), b),
            (None, b) => (b, None),
        };
        self.first = first;
        self.later_max_ns = self.later_max_ns.max(other.later_max_ns).max(second.map(|s| s.1));
    }
}

/// Creates of one file by one owner. They are summed apart from other operations: until an open is bound to its file
/// they stand under its path, and would double the memory for files.
#[derive(Clone, Debug, Default)]
struct Creates {
    /// Failed ones by status.
    failures: BTreeMap<u32, i64>,
    opens: Opens,
    /// Those whose end is unknown.
    unpriced: i64,
    /// Those that met a link.
    links: i64,
    total_ns: i64,
}

/// Distinct statuses that are told apart per file; a hostile trace has as many as it likes.
const MOST_STATUSES: usize = 64;

impl Creates {
    fn add(&mut self, one: &Operation) {
        let dur = one.dur_ns.unwrap_or(0);
        self.total_ns = self.total_ns.saturating_add(dur);
        match one.status.map(|status| status as u32) {
            Some(status) if status >= FAILED => {
                let full = self.failures.len() >= MOST_STATUSES;
                let known = if full && !self.failures.contains_key(&status) { FAILED } else { status };
                *self.failures.entry(known).or_default() += 1;
            }
            Some(REPARSE) => self.links += 1,
            Some(_) => self.opens.add(one.start_ns, dur),
            None => self.unpriced += 1,
        }
    }

    fn merge(&mut self, other: &Creates) {
        for (status, count) in &other.failures {
            *self.failures.entry(*status).or_default() += count;
        }
        self.opens.merge(&other.opens);
        self.unpriced += other.unpriced;
        self.links += other.links;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }

    fn failed(&self) -> i64 {
        self.failures.values().sum()
    }
}

/// Other operations on one file by one owner.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    closes: i64,
    reads: i64,
    read_bytes: i64,
    read_ns: i64,
    writes: i64,
    written_bytes: i64,
    write_ns: i64,
    dir_enums: i64,
    queries: i64,
    changes: i64,
    flushes: i64,
    others: i64,
    unfinished: i64,
    total_ns: i64,
}

impl Others {
    fn add(&mut self, one: &Operation) {
        let dur = one.dur_ns.unwrap_or(0);
        let bytes = one.done_bytes.unwrap_or(0).max(0);
        self.unfinished += i64::from(one.dur_ns.is_none());
        if one.op != DIR_NOTIFY {
            self.total_ns = self.total_ns.saturating_add(dur);
        }
        match one.op {
            CLOSE => self.closes += 1,
            READ => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(bytes);
                self.read_ns = self.read_ns.saturating_add(dur);
            }
            WRITE => {
                self.writes += 1;
                self.written_bytes = self.written_bytes.saturating_add(bytes);
                self.write_ns = self.write_ns.saturating_add(dur);
            }
            DIR_ENUM => self.dir_enums += 1,
            QUERY_INFO => self.queries += 1,
            SET_INFO | DELETE | RENAME => self.changes += 1,
            FLUSH => self.flushes += 1,
            _ => self.others += i64::from(one.op != CLEANUP),
        }
    }

    fn merge(&mut self, other: &Others) {
        let pairs = [
            (&mut self.closes, other.closes),
            (&mut self.reads, other.reads),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.read_ns, other.read_ns),
            (&mut self.writes, other.writes),
            (&mut self.written_bytes, other.written_bytes),
            (&mut self.write_ns, other.write_ns),
            (&mut self.dir_enums, other.dir_enums),
            (&mut self.queries, other.queries),
            (&mut self.changes, other.changes),
            (&mut self.flushes, other.flushes),
            (&mut self.others, other.others),
            (&mut self.unfinished, other.unfinished),
            (&mut self.total_ns, other.total_ns),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
    }
}

/// What the sums need of an operation.
struct Operation {
    of: (SameFile, Owner),
    op: u8,
    start_ns: i64,
    dur_ns: Option<i64>,
    done_bytes: Option<i64>,
    status: Option<i32>,
}

/// Sums so far.
#[derive(Default)]
struct Sums {
    creates: HashMap<(SameFile, Owner), Creates>,
    others: HashMap<(SameFile, Owner), Others>,
}

impl Work for Sums {
    type Batch = Vec<Operation>;

    fn work(&mut self, batch: &mut Vec<Operation>) {
        batch.drain(..).for_each(|one| self.add(one));
    }
}

impl Sums {
    fn add(&mut self, one: Operation) {
        match one.op {
            CREATE => self.creates.entry(one.of).or_default().add(&one),
            _ => self.others.entry(one.of).or_default().add(&one),
        }
    }
}

/// The tables of sums.
pub(super) struct Usage {
    sums: Aside<Sums>,
    usage: TableBuilder<FileUsageRow>,
    open: TableBuilder<FileOpenRow>,
}

/// A file and what its processes did.
struct ByPath {
    /// The path as it was written first.
    path: Option<Sym>,
    /// In the order of processes. Few; a map of such large things would waste most of its memory.
    owners: Vec<ByOwner>,
}

struct ByOwner {
    upid: Option<u32>,
    creates: Creates,
    others: Others,
}

impl ByPath {
    fn owner(&mut self, upid: Option<u32>) -> Option<&mut ByOwner> {
        let at = self.owners.binary_search_by_key(&upid, |owner| owner.upid);
        let at = at.unwrap_or_else(|at| {
            self.owners.reserve_exact(1);
            self.owners.insert(at, ByOwner { upid, creates: Creates::default(), others: Others::default() });
            at
        });
        self.owners.get_mut(at)
    }
}

impl Usage {
    pub(super) fn new(memory: &Memory) -> Usage {
        Usage {
            sums: Aside::new(Sums::default(), memory.is_threaded()),
            usage: TableBuilder::new(memory),
            open: TableBuilder::new(memory),
        }
    }

    /// Counts an operation whose row is complete.
    pub(super) fn add(
        &mut self,
        row: &FileIoRow,
        op: u8,
        file: Option<FileRef>,
        utid: Option<u32>,
        model: &Model,
    ) {
        let same = file.map_or(SameFile::Path(None), |file| model.files.same(file));
        let one = Operation {
            of: (same, Owner::for_thread(model, utid)),
            op,
            start_ns: row.start_ns,
            dur_ns: row.dur_ns,
            done_bytes: row.done_bytes,
            status: row.status,
        };
        self.sums.give(one, Sums::add);
    }

    /// The tables `file_usage` and `file_open`.
    pub(super) fn finish(mut self, end: &mut Finish<'_>) -> [Filled; 2] {
        let mut sums = std::mem::take(&mut self.sums).into_done();
        let mut keys: Vec<(SameFile, Owner)> =
            sums.creates.keys().chain(sums.others.keys()).copied().collect();
        keys.sort_unstable();
        keys.dedup();
        // By path in any case.
        let mut numbers: HashMap<String, usize> = HashMap::default();
        let mut files: Vec<ByPath> = Vec::new();
        let mut last: Option<(SameFile, usize)> = None;
        for key in keys {
            let number = match last {
                Some((same, number)) if same == key.0 => number,
                _ => {
                    let path = end.model.files.path_of_same(key.0);
                    let text = path.map(|path| end.model.volumes.drive_path(end.strings.get(path)));
                    let path = text.as_deref().map(|text| end.strings.intern(text));
                    *numbers.entry(text.unwrap_or_default().to_lowercase()).or_insert_with(|| {
                        files.push(ByPath { path, owners: Vec::new() });
                        files.len() - 1
                    })
                }
            };
            last = Some((key.0, number));
            let upid = key.1.upid(end.model);
            let Some(owner) = files.get_mut(number).and_then(|file| file.owner(upid)) else { continue };
            if let Some(creates) = sums.creates.remove(&key) {
                owner.creates.merge(&creates);
            }
            if let Some(others) = sums.others.remove(&key) {
                owner.others.merge(&others);
            }
        }
        let mut numbers: Vec<(String, usize)> = numbers.into_iter().collect();
        numbers.sort_unstable();
        let mut rows = Vec::new();
        for file in numbers.iter().map(|(_, number)| number).filter_map(|&number| files.get(number)) {
            if file.path.is_some() {
                self.open_row(file);
            }
            rows.extend(file.owners.iter().map(|owner| (file.path, owner)));
        }
        rows.sort_by_key(|(_, owner)| std::cmp::Reverse(owner.total_ns()));
        for (path, owner) in rows {
            let ByOwner { upid, creates, others } = owner;
            let failures = failures(&creates.failures).map(|text| end.strings.intern(&text));
            self.usage.push(FileUsageRow {
                path,
                upid: upid.map(|u| u as i32),
                opens: creates.opens.count + creates.unpriced,
                failed_opens: creates.failed(),
                failures,
                closes: others.closes,
                reads: others.reads,
                read_bytes: others.read_bytes,
                read_ns: others.read_ns,
                writes: others.writes,
                written_bytes: others.written_bytes,
                write_ns: others.write_ns,
                dir_enums: others.dir_enums,
                queries: others.queries,
                changes: others.changes,
                flushes: others.flushes,
                others: others.others + creates.links,
                unfinished: others.unfinished + creates.unpriced,
                open_ns: creates.total_ns,
                total_ns: owner.total_ns(),
            });
        }
        [self.usage.into(), self.open.into()]
    }

    fn open_row(&mut self, file: &ByPath) {
        let mut opens = Opens::default();
        let (mut failed, mut processes) = (0, 0);
        for ByOwner { creates, .. } in &file.owners {
            opens.merge(&creates.opens);
            failed += creates.failed();
            processes += i64::from(creates.opens.count + creates.failed() > 0);
        }
        if processes == 0 {
            return;
        }
        let first_ns = opens.first.map(|first| first.0);
        let is_first = |owner: &&ByOwner| owner.creates.opens.first.map(|first| first.0) == first_ns;
        let first_upid = file.owners.iter().find(is_first).and_then(|owner| owner.upid);
        let first_open_ns = opens.first.map(|first| first.1);
        let later = (opens.count - 1).max(0);
        let later_ns = opens.total_ns.saturating_sub(first_open_ns.unwrap_or(0));
        self.open.push(FileOpenRow {
            path: file.path,
            opens: opens.count,
            failed_opens: failed,
            processes,
            first_ns,
            first_upid: first_upid.filter(|_| first_ns.is_some()).map(|u| u as i32),
            first_open_ns,
            later_opens: later,
            later_open_avg_ns: (later > 0).then(|| later_ns / later),
            later_open_max_ns: opens.later_max_ns,
            first_to_later: first_open_ns
                .filter(|_| later_ns > 0 && later > 0)
                .map(|first| first as f64 * later as f64 / later_ns as f64),
        });
    }
}

impl ByOwner {
    fn total_ns(&self) -> i64 {
        self.creates.total_ns.saturating_add(self.others.total_ns)
    }
}

/// `STATUS_OBJECT_NAME_NOT_FOUND 12, STATUS_ACCESS_DENIED 1`.
fn failures(by_status: &BTreeMap<u32, i64>) -> Option<String> {
    let mut list: Vec<(u32, i64)> = by_status.iter().map(|(status, count)| (*status, *count)).collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let word = |status: u32| match status {
        FAILED => "other".to_owned(),
        _ => ntstatus_name(status).map_or_else(|| format!("{status:#010x}"), str::to_owned),
    };
    let words: Vec<String> =
        list.iter().map(|(status, count)| format!("{} {count}", word(*status))).collect();
    if words.is_empty() { None } else { Some(words.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_open_is_the_earliest_whatever_the_order() {
        let mut early = Opens::default();
        early.add(50, 7);
        early.add(60, 3);
        let mut opens = Opens::default();
        opens.add(200, 20);
        opens.add(100, 90);
        opens.merge(&early);
        assert_eq!((opens.count, opens.total_ns, opens.first), (4, 120, Some((50, 7))));
        assert_eq!(opens.later_max_ns, Some(90));
        let mut one = Opens::default();
        one.add(1, 5);
        assert_eq!((one.first, one.later_max_ns), (Some((1, 5)), None));
    }

    #[test]
    fn failures_are_named_with_the_most_frequent_first() {
        let by_status = BTreeMap::from([(0xC000_0022, 1), (0xC000_0034, 12), (0xC0FF_FF00, 2)]);
        let text = failures(&by_status).unwrap();
        assert_eq!(text, "STATUS_OBJECT_NAME_NOT_FOUND 12, 0xc0ffff00 2, STATUS_ACCESS_DENIED 1");
        assert_eq!(failures(&BTreeMap::new()), None);
    }
}
