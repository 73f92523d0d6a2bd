//! `log_type`: what a log holds, counted by kind of event.

use etwhy_table::{Sym, define_table};

define_table! {
    /// One row per kind of event in a log: how many records and bytes.
    ///
    /// Counted without reading fields, so it costs little more than reading the file. Filters hold for it as for `log_record`. Records that
    /// cannot be read are in no row: `log_file.records` counts them, the ledger says why.
    pub table LOG_TYPE: LogTypeRow = "log_type" {
        version: 1,
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// Channel.
        channel: Sym [None, Name],
        /// Provider as records name it.
        provider: Sym [None, Name],
        /// Provider's GUID, where records have it.
        provider_guid: Option<Sym> [None, Name],
        /// Event id, without qualifiers.
        event_id: i32 [None, Other],
        /// Upper half of a classic provider's event id; null for providers with manifests.
        qualifiers: Option<i32> [None, Other],
        /// Version of the event.
        version: i32 [None, Other],
        /// Level: 0 always, 1 critical, 2 error, 3 warning, 4 information, 5 verbose.
        level: i32 [None, Other],
        /// Task; in the Security log the audit subcategory.
        task: i32 [None, Other],
        /// Opcode.
        opcode: i32 [None, Other],
        /// Keywords, as a bit mask.
        keywords: i64 [Hex64, Flag],
        /// `success` or `failure` for audit records, by their keywords.
        audit: Option<Sym> [None, Name],
        /// Records.
        records: i64 [Count, Count],
        /// Bytes of the records in the file.
        bytes: i64 [Bytes, Bytes],
        /// Earliest, since 1970 (UTC).
        first_utc_ns: i64 [Ns, Other],
        /// Latest, since 1970 (UTC).
        last_utc_ns: i64 [Ns, Other],
    }
}
