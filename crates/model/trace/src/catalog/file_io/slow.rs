//! File operations that took long: few, so they are at hand where a wait is explained.

use super::{DIR_NOTIFY, FileIoRow};
use crate::analysis::{Filled, Finish};
use etwhy_table::{Memory, Sym, TableBuilder, define_table};

define_table! {
    /// File operations of 5 ms or more, without those that wait for a change of a directory.
    pub table SLOW_FILE_IO: SlowFileIoRow = "slow_file_io" {
        version: 1,
        /// When the file system got the operation.
        start_ns: i64 [Ns, Time],
        /// From start to end, or to the end of the trace if it had not ended.
        dur_ns: i64 [Ns, Duration],
        /// It had ended.
        ended: bool [None, Flag],
        /// As in `file_io`.
        op: Sym [None, Kind],
        /// Path, with drive letters where the trace maps them.
        path: Option<Sym> [None, Path],
        /// Name of the NTSTATUS of the end.
        status_name: Option<Sym> [None, Name],
        /// Process of the thread.
        upid: Option<i32> [None, Process],
        /// Thread that asked.
        utid: Option<i32> [None, Thread],
    }
}

/// A trip to a server that is not next door, or a slow transfer of a disk. Nobody notices a single one; a hundred of them, one after the other, everybody
/// does. A thread has two hundred a second at most, so the table stays small.
const SLOW_NS: i64 = 5_000_000;

pub(super) struct Slow(TableBuilder<SlowFileIoRow>);

impl Slow {
    pub fn new(memory: &Memory) -> Slow {
        Slow(TableBuilder::new(memory))
    }

    /// An operation that is over, or that has not ended by `until_ns`.
    pub fn add(&mut self, row: &FileIoRow, op: u8, until_ns: Option<i64>) {
        let waited = until_ns.map(|until| until.saturating_sub(row.start_ns));
        let Some(dur_ns) = row.dur_ns.or(waited).filter(|dur| *dur >= SLOW_NS && op != DIR_NOTIFY) else {
            return;
        };
        self.0.push(SlowFileIoRow {
            start_ns: row.start_ns,
            dur_ns,
            ended: row.dur_ns.is_some(),
            op: row.op,
            path: row.path,
            status_name: row.status_name,
            upid: row.upid,
            utid: row.utid,
        });
    }

    pub fn finish(mut self, end: &mut Finish<'_>) -> etwhy_table::Result<Filled> {
        end.processes_of(&mut self.0, "upid")?;
        end.paths_of(&mut self.0, "path")?;
        Ok(self.0.into())
    }
}
