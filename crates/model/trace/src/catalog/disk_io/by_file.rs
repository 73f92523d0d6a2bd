//! Disk transfers by file.

use super::{DiskIoRow, FLUSH, READ};
use crate::analysis::{Filled, Finish};
use etwhy_table::{Memory, Sym, TableBuilder, define_table};
use foldhash::HashMap;

define_table! {
    /// Disk transfers by file and disk, the most expensive first.
    ///
    /// Sums of `disk_io`. Transfers without a file (metadata of the file system, the disk's own) and flushes,
    /// which name none, are a row without a file per disk.
    pub table DISK_FILE: DiskFileRow = "disk_file" {
        version: 1,
        /// File (table `file`).
        file_id: Option<i32> [None, Id],
        /// Path, with drive letters where the trace maps them; none if no name was recorded.
        path: Option<Sym> [None, Path],
        /// Physical disk.
        disk: i32 [None, Other],
        /// Reads.
        reads: i64 [Count, Count],
        /// Bytes read.
        read_bytes: i64 [Bytes, Bytes],
        /// Writes.
        writes: i64 [Count, Count],
        /// Bytes written.
        written_bytes: i64 [Bytes, Bytes],
        /// Flushes.
        flushes: i64 [Count, Count],
        /// Time in which the disk worked on nothing else.
        service_ns: i64 [Ns, Duration],
        /// Time in which other transfers of the disk completed.
        queue_ns: i64 [Ns, Duration],
        /// Response times; transfers that overlap count in full.
        total_ns: i64 [Ns, Duration],
        /// Longest response time.
        max_ns: i64 [Ns, Duration],
        /// Start of the first transfer.
        first_ns: i64 [Ns, Time],
        /// Completion of the last transfer.
        last_ns: i64 [Ns, Time],
    }
}

/// Sums so far.
pub(super) struct ByFile {
    sums: HashMap<(Option<i32>, i32), DiskFileRow>,
    rows: TableBuilder<DiskFileRow>,
}

impl ByFile {
    pub(super) fn new(memory: &Memory) -> ByFile {
        ByFile { sums: HashMap::default(), rows: TableBuilder::new(memory) }
    }

    /// Counts a transfer.
    pub(super) fn add(&mut self, row: &DiskIoRow, op: u8) {
        let sums = self.sums.entry((row.file_id, row.disk)).or_insert_with(|| DiskFileRow {
            file_id: row.file_id,
            path: None,
            disk: row.disk,
            reads: 0,
            read_bytes: 0,
            writes: 0,
            written_bytes: 0,
            flushes: 0,
            service_ns: 0,
            queue_ns: 0,
            total_ns: 0,
            max_ns: 0,
            first_ns: row.start_ns,
            last_ns: row.ts_ns,
        });
        match op {
            FLUSH => sums.flushes += 1,
            READ => {
                sums.reads += 1;
                sums.read_bytes = sums.read_bytes.saturating_add(row.size_bytes);
            }
            _ => {
                sums.writes += 1;
                sums.written_bytes = sums.written_bytes.saturating_add(row.size_bytes);
            }
        }
        sums.service_ns = sums.service_ns.saturating_add(row.service_ns);
        sums.queue_ns = sums.queue_ns.saturating_add(row.queue_ns);
        sums.total_ns = sums.total_ns.saturating_add(row.dur_ns);
        sums.max_ns = sums.max_ns.max(row.dur_ns);
        sums.first_ns = sums.first_ns.min(row.start_ns);
        sums.last_ns = sums.last_ns.max(row.ts_ns);
    }

    /// The table.
    pub(super) fn finish(mut self, end: &mut Finish<'_>) -> Filled {
        let mut all: Vec<DiskFileRow> = std::mem::take(&mut self.sums).into_values().collect();
        all.sort_unstable_by_key(|row| (std::cmp::Reverse(row.service_ns), row.disk, row.file_id));
        for mut row in all {
            let file = row.file_id.and_then(|id| end.model.files.all().get(usize::try_from(id).ok()?));
            row.path = file.and_then(|file| file.path).map(|path| {
                let path = end.model.volumes.drive_path(end.strings.get(path));
                end.strings.intern(&path)
            });
            self.rows.push(row);
        }
        self.rows.into()
    }
}
