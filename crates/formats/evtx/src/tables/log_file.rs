//! `log_file`: one row per event log.

use etwhy_table::{Sym, define_table};

define_table! {
    /// One row per event log: how large it is, what it holds, in which state it is. It describes the whole file, whatever the filter.
    pub table LOG_FILE: LogFileRow = "log_file" {
        version: 1,
        /// Number of the log in this analysis; other tables refer to it.
        log: i32 [None, Other],
        /// File as it was named.
        file: Sym [None, Path],
        /// Channel that most records name.
        channel: Option<Sym> [None, Name],
        /// Computer that most records name.
        computer: Option<Sym> [None, Name],
        /// Size of the file.
        size_bytes: i64 [Bytes, Bytes],
        /// Size of the live records.
        record_bytes: i64 [Bytes, Bytes],
        /// Live records.
        records: i64 [Count, Count],
        /// Chunks (64 KiB each) with live records.
        chunks: i64 [Count, Count],
        /// Chunks that the header counts.
        header_chunks: i64 [Count, Count],
        /// Chunks that are damaged: a wrong checksum or magic, or cut off.
        damaged_chunks: i64 [Count, Count],
        /// Smallest record id.
        first_record_id: Option<i64> [None, Other],
        /// Largest record id.
        last_record_id: Option<i64> [None, Other],
        /// Earliest record, since 1970 (UTC).
        first_utc_ns: Option<i64> [Ns, Other],
        /// Latest record, since 1970 (UTC).
        last_utc_ns: Option<i64> [Ns, Other],
        /// Zero of `ts_ns`, since 1970 (UTC).
        zero_utc_ns: Option<i64> [Ns, Other],
        /// The header says that the log was not closed.
        dirty: bool [None, Other],
        /// The header says that the log is full.
        full: bool [None, Other],
        /// Oldest records were overwritten: record ids do not begin at 1, or the oldest chunk is not the first.
        wrapped: bool [None, Other],
        /// Version of the format, `3.1`.
        format: Sym [None, Name],
    }
}
