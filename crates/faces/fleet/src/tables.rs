//! Tables that only a store has. The others are tables of traces, with the ids of their trace in front (`contract.rs`).

use etwhy_table::{Sym, define_table};

define_table! {
    /// The ledger: what became of each trace that was given, one row for each and each time that it was read.
    ///
    /// A trace has rows in the other tables if `outcome` is read or in_part.
    pub table RUN: RunRow = "run" {
        version: 1,
        /// Name of the content of the trace.
        trace_id: Sym [None, Id],
        /// Its machine, if it could be read.
        machine_id: Option<Sym> [None, Id],
        /// Name of this reading: trace, program, contract, symbols and knowledge.
        extract_id: Sym [None, Id],
        /// Number of the batch that holds it: later ones win.
        batch: i64 [None, Id],
        /// read, in_part (something was missing or damaged), copy (its content is known under another name, or it is the beginning of another
        /// file), not_a_trace, too_new, timeout, memory (over the limit), crashed, failed.
        outcome: Sym [None, Kind],
        /// Exit code of the process that read it; null if it was ended.
        exit_code: Option<i32> [None, Status],
        /// Why it was not read, or not wholly.
        reason: Option<Sym> [None, Message],
        /// Its first file, as given.
        path: Sym [None, Path],
        /// Its files.
        files: i32 [Count, Count],
        /// Bytes of its files.
        size_bytes: i64 [Bytes, Bytes],
        /// CPU time of the process that read it.
        cpu_ns: Option<i64> [Ns, Duration],
        /// Time that it took.
        wall_ns: Option<i64> [Ns, Duration],
        /// Most memory that the process had, mapped files not counted; null where the system does not tell.
        peak_memory_bytes: Option<i64> [Bytes, Bytes],
        /// Version of the program.
        program: Sym [None, Other],
        /// Name of everything else that decides what is found: contract, symbols, knowledge, findings.
        settings_id: Sym [None, Id],
        /// SHA-256 of the trace, unpacked; of several files a name made from theirs. Null where it was not read, and in rows of before it was
        /// kept.
        sha256: Option<Sym> [None, Id],
    }
}

define_table! {
    /// Files that were given, with what is known of each, so that no file is looked at twice.
    pub table INPUT: InputRow = "input" {
        version: 1,
        /// Name of the content of the trace that it was read as.
        trace_id: Sym [None, Id],
        /// Its machine, if it could be read.
        machine_id: Option<Sym> [None, Id],
        /// Name of that reading.
        extract_id: Sym [None, Id],
        /// The file, as given.
        path: Sym [None, Path],
        /// Its size.
        size_bytes: i64 [Bytes, Bytes],
        /// When it was changed last, nanoseconds since 1970 UTC.
        modified_unix_ns: i64 [Ns, Other],
        /// Name of its content.
        content_id: Sym [None, Id],
        /// What it says of its machine and its recording, as JSON; null of archives and of what is no trace.
        identity: Option<Sym> [None, Other],
        /// As in `run`.
        settings_id: Sym [None, Id],
        /// SHA-256 of the file as it is: an archive is not unpacked. Null where it was not read, and in rows of before it was kept.
        sha256: Option<Sym> [None, Id],
    }
}

define_table! {
    /// Traces: one row for each, whatever number of files it has.
    pub table RECORDING: RecordingRow = "recording" {
        version: 1,
        /// First file, as given.
        path: Sym [None, Path],
        /// Files that were read as one.
        files: i32 [Count, Count],
        /// Bytes of its files.
        size_bytes: i64 [Bytes, Bytes],
        /// Start, UTC.
        captured_utc: Sym [None, Other],
        /// Start, nanoseconds since 1970 UTC.
        captured_unix_ns: i64 [Ns, Other],
        /// Day of the start, UTC: 2026-11-24.
        captured_day: Sym [None, Other],
        /// From the first to the last event.
        duration_ns: i64 [Ns, Duration],
        /// What `machine_id` rests on: given, computer (its name), or boot (one boot, if no name is recorded).
        machine_basis: Sym [None, Kind],
        /// Name of the machine in this boot.
        boot_id: Sym [None, Id],
        /// Computer name, where recorded.
        computer: Option<Sym> [None, Name],
        /// Manufacturer and model, where recorded.
        model: Option<Sym> [None, Name],
        /// Processor model, where recorded.
        processor: Option<Sym> [None, Name],
        /// Windows version and build.
        os: Sym [None, Name],
        /// Windows build number.
        os_build: i32 [None, Other],
        /// Events lost, as the headers say.
        events_lost: i64 [Count, Count],
        /// Buffers lost, as the headers say.
        buffers_lost: i64 [Count, Count],
        /// All files were stopped properly.
        finalised: bool [None, Flag],
        /// The verdict in one sentence.
        sentence: Sym [None, Message],
        /// Some of its times are impossible, so how long it observed is unknown, and shares of time leave it out. Null in rows from before this
        /// was known.
        clock_broken: Option<bool> [None, Flag],
    }
}

define_table! {
    /// Answers: one row for each finding and trace, also of what was not found and what cannot be determined.
    ///
    /// A rate over traces is `found` by `found` and `not_found`: traces that could not tell count for nothing.
    pub table FINDING: FindingRow = "finding" {
        version: 1,
        /// The finding.
        finding_id: Sym [None, Id],
        /// Its title.
        title: Sym [None, Name],
        /// What it is about.
        topic: Sym [None, Kind],
        /// found, not_found or cannot_tell.
        answer: Sym [None, Kind],
        /// critical, warning, notice or info, of the worst culprit; null where nothing was found.
        severity: Option<Sym> [None, Kind],
        /// Why it cannot be determined.
        reason: Option<Sym> [None, Message],
        /// The command that prints the recording that would tell.
        record: Option<Sym> [None, Message],
        /// What makes the numbers uncertain.
        caveats: Option<Sym> [None, Message],
        /// Culprits.
        hits: i32 [Count, Count],
        /// Cost of the costliest culprit, if the finding has costs.
        cost_ns: Option<i64> [Ns, Duration],
    }
}

define_table! {
    /// Culprits of findings.
    pub table FINDING_HIT: FindingHitRow = "finding_hit" {
        version: 1,
        /// The finding.
        finding_id: Sym [None, Id],
        /// Number among the culprits of the finding, the worst first, from 0.
        number: i32 [None, Id],
        /// Who: the name of a process, a driver, a file, a processor.
        culprit: Sym [None, Name],
        /// What that is: process, driver, session, file, …
        culprit_kind: Sym [None, Kind],
        /// Vendor of its file, as the trace and the knowledge of the reading tell.
        vendor: Option<Sym> [None, Name],
        /// Version of its file, where recorded.
        file_version: Option<Sym> [None, Other],
        /// critical, warning, notice or info.
        severity: Sym [None, Kind],
        /// One sentence with numbers.
        headline: Sym [None, Message],
        /// Time that it cost, if the finding says.
        cost_ns: Option<i64> [Ns, Duration],
        /// Part of the whole that it is, 0 to 1, if the finding says.
        share: Option<f64> [None, Other],
        /// Energy of the culprit in this trace, in joules, as the bill has it.
        energy_j: Option<f64> [None, Other],
        /// high, medium or low, if the finding says.
        confidence: Option<Sym> [None, Kind],
        /// All figures of the finding, as JSON.
        figures: Sym [None, Other],
    }
}

define_table! {
    /// What is known of drivers and programs by their names: joined when a question is asked, so that new knowledge needs no new reading.
    pub table KNOWLEDGE: KnowledgeRow = "knowledge" {
        version: 1,
        /// driver or process.
        kind: Sym [None, Kind],
        /// File name in lower case.
        name: Sym [None, Name],
        /// Who makes it.
        vendor: Option<Sym> [None, Name],
        /// What it belongs to.
        product: Option<Sym> [None, Name],
        /// What it is for.
        category: Option<Sym> [None, Kind],
    }
}
