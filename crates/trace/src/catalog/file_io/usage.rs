//! Sums of file operations: per file and process, and what opening each file costs the first time and later.

use super::{
    CLEANUP, CLOSE, CREATE, DELETE, DIR_ENUM, DIR_NOTIFY, FAILED, FLUSH, FileIoRow, QUERY_INFO, READ, RENAME,
    REPARSE, SET_INFO, WRITE,
};
use crate::engine::{Filled, Finish};
use crate::model::Model;
use crate::model::file_name::{FileRef, SameFile};
use crate::owner::Owner;
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
    /// A first open that is much dearer than later ones is work that somebody does once per file: reading its
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

#[derive(Clone, Debug, Default)]
struct Sums {
    failures: BTreeMap<u32, i64>,
    opens: Opens,
    unpriced_opens: i64,
    open_ns: i64,
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

/// Distinct statuses that are told apart per file; a hostile trace has as many as it likes.
const MOST_STATUSES: usize = 64;

impl Sums {
    fn add(&mut self, row: &FileIoRow, op: u8) {
        let dur = row.dur_ns.unwrap_or(0);
        let bytes = row.done_bytes.unwrap_or(0).max(0);
        self.unfinished += i64::from(row.dur_ns.is_none());
        if op != DIR_NOTIFY {
            self.total_ns = self.total_ns.saturating_add(dur);
        }
        match op {
            CREATE => {
                self.open_ns = self.open_ns.saturating_add(dur);
                match row.status.map(|status| status as u32) {
                    Some(status) if status >= FAILED => {
                        let full = self.failures.len() >= MOST_STATUSES;
                        let known =
                            if full && !self.failures.contains_key(&status) { FAILED } else { status };
                        *self.failures.entry(known).or_default() += 1;
                    }
                    Some(REPARSE) => self.others += 1,
                    Some(_) => self.opens.add(row.start_ns, dur),
                    None => self.unpriced_opens += 1,
                }
            }
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
            _ => self.others += i64::from(op != CLEANUP),
        }
    }

    fn merge(&mut self, other: &Sums) {
        for (status, count) in &other.failures {
            *self.failures.entry(*status).or_default() += count;
        }
        self.opens.merge(&other.opens);
        let pairs = [
            (&mut self.unpriced_opens, other.unpriced_opens),
            (&mut self.open_ns, other.open_ns),
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

    fn failed(&self) -> i64 {
        self.failures.values().sum()
    }
}

/// Sums so far.
pub(super) struct Usage {
    sums: HashMap<(SameFile, Owner), Sums>,
    usage: TableBuilder<FileUsageRow>,
    open: TableBuilder<FileOpenRow>,
}

/// A path in any case, and one way in which it was written.
type ByPath = BTreeMap<String, (Option<Sym>, BTreeMap<Option<u32>, Sums>)>;

impl Usage {
    pub(super) fn new(memory: &Memory) -> Usage {
        let (usage, open) = (TableBuilder::new(memory), TableBuilder::new(memory));
        Usage { sums: HashMap::default(), usage, open }
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
        self.sums.entry((same, Owner::of(model, utid))).or_default().add(row, op);
    }

    /// The tables `file_usage` and `file_open`.
    pub(super) fn finish(mut self, end: &mut Finish<'_>) -> [Filled; 2] {
        let mut files = ByPath::new();
        let mut all: Vec<_> = std::mem::take(&mut self.sums).into_iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        for ((same, owner), sums) in all {
            let path = end.model.files.path_of_same(same);
            let text = path.map(|path| end.model.volumes.drive_path(end.strings.get(path)));
            let path = text.as_deref().map(|text| end.strings.intern(text));
            let folded = text.unwrap_or_default().to_lowercase();
            let (_, owners) = files.entry(folded).or_insert_with(|| (path, BTreeMap::new()));
            owners.entry(owner.upid(end.model)).or_default().merge(&sums);
        }
        let mut rows = Vec::new();
        for (path, owners) in files.values() {
            if path.is_some() {
                self.open_row(*path, owners);
            }
            for (upid, sums) in owners {
                rows.push((*path, *upid, sums));
            }
        }
        rows.sort_by_key(|(.., sums)| std::cmp::Reverse(sums.total_ns));
        for (path, upid, sums) in rows {
            let failures = failures(&sums.failures).map(|text| end.strings.intern(&text));
            self.usage.push(FileUsageRow {
                path,
                upid: upid.map(|u| u as i32),
                opens: sums.opens.count + sums.unpriced_opens,
                failed_opens: sums.failed(),
                failures,
                closes: sums.closes,
                reads: sums.reads,
                read_bytes: sums.read_bytes,
                read_ns: sums.read_ns,
                writes: sums.writes,
                written_bytes: sums.written_bytes,
                write_ns: sums.write_ns,
                dir_enums: sums.dir_enums,
                queries: sums.queries,
                changes: sums.changes,
                flushes: sums.flushes,
                others: sums.others,
                unfinished: sums.unfinished,
                open_ns: sums.open_ns,
                total_ns: sums.total_ns,
            });
        }
        [self.usage.into(), self.open.into()]
    }

    fn open_row(&mut self, path: Option<Sym>, owners: &BTreeMap<Option<u32>, Sums>) {
        let mut opens = Opens::default();
        let (mut failed, mut processes) = (0, 0);
        for sums in owners.values() {
            opens.merge(&sums.opens);
            failed += sums.failed();
            processes += i64::from(sums.opens.count + sums.failed() > 0);
        }
        if processes == 0 {
            return;
        }
        let first_ns = opens.first.map(|first| first.0);
        let first_upid = owners
            .iter()
            .find(|(_, sums)| first_ns.is_some() && sums.opens.first.map(|first| first.0) == first_ns)
            .and_then(|(upid, _)| *upid);
        let first_open_ns = opens.first.map(|first| first.1);
        let later = (opens.count - 1).max(0);
        let later_ns = opens.total_ns.saturating_sub(first_open_ns.unwrap_or(0));
        let average = (later > 0).then(|| later_ns / later);
        self.open.push(FileOpenRow {
            path,
            opens: opens.count,
            failed_opens: failed,
            processes,
            first_ns,
            first_upid: first_upid.map(|u| u as i32),
            first_open_ns,
            later_opens: later,
            later_open_avg_ns: average,
            later_open_max_ns: opens.later_max_ns,
            first_to_later: first_open_ns
                .filter(|_| later_ns > 0 && later > 0)
                .map(|first| first as f64 * later as f64 / later_ns as f64),
        });
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
