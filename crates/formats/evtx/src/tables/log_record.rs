//! `log_record`: the records of event logs.

use etwhy_table::{Sym, define_table};

define_table! {
    /// One row per record of an event log. Records that cannot be read are in no row: `log_file.records` counts them, the ledger says why.
    pub table LOG_RECORD: LogRecordRow = "log_record" {
        sorted_by: "ts_ns", version: 2, evidence: Verified("the crate `evtx`, field by field"),
        /// When it was written, by the record's `TimeCreated`.
        ts_ns: i64 [Ns, Time],
        /// The same since 1970 (UTC).
        utc_ns: i64 [Ns, Other],
        /// The log, as in `log_file`.
        log: i32 [None, Other],
        /// `EventRecordID`: counts up in the log where it was written.
        record_id: i64 [None, Other],
        /// Channel.
        channel: Sym [None, Name],
        /// Provider as the record names it.
        provider: Sym [None, Name],
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
        /// Computer.
        computer: Sym [None, Name],
        /// Security identifier of the user, where the record has one.
        user_sid: Option<Sym> [None, Name],
        /// Process id that wrote it, where the record has one.
        pid: Option<i32> [None, Pid],
        /// Thread id that wrote it, where the record has one.
        tid: Option<i32> [None, Tid],
        /// Activity, where the record has one.
        activity_id: Option<Sym> [None, Name],
        /// Activity that it continues, where the record has one.
        related_activity_id: Option<Sym> [None, Name],
        /// Bytes of the record in the file.
        bytes: i64 [Bytes, Bytes],
        /// Fields by name, as JSON: numbers as numbers, all else as text. Fields without a name are called `Data1`, `Data2`, ….
        fields: Option<Box<str>> [None, Message],
    }
}
