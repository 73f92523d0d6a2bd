//! The functions under test, by name.

mod audit;
mod counters;
mod damage;
mod decode;
mod logs;
mod probe;
mod symbols;
mod target;
mod text;
mod trace;

use crate::{etl_mutate, seeds};

pub use target::{Mutation, Target, accepts};
pub use trace::{analyse, analyse_file};

/// All targets.
pub static ALL: &[Target] = &[
    Target::new(
        "walk",
        "buffers and records of a trace, mapped, in pieces, and cut into ranges of time: all the same",
    )
    .runs(trace::walk, 80)
    .on(seeds::traces)
    .mutated(etl_mutate::several),
    Target::new(
        "damage",
        "a trace cut short, or damaged in one buffer: everything else is still there and the ledger says so",
    )
    .runs(damage::check, 300)
    .on(damage::seeds)
    .mutated(damage::choose),
    Target::new("analyse", "the whole pass with all tables, operators and exports")
        .runs(trace::analyse, 200)
        .on(seeds::traces)
        .mutated(etl_mutate::several),
    Target::new("decompress", "XPRESS, LZNT1 and XPRESS-Huffman with any wanted length")
        .runs(trace::decompress, 3000)
        .on(trace::packed),
    Target::new("record", "all accessors of one record with any bytes")
        .runs(trace::record, 60)
        .on(trace::single_records),
    Target::new("metadata", "TRACE_EVENT_INFO and EVENT_MAP_INFO")
        .runs(decode::metadata, 5000)
        .on(decode::metadata_seeds),
    Target::new("tracelogging", "TraceLogging items")
        .runs(decode::tracelogging, 5000)
        .on(decode::tracelogging_seeds),
    Target::new("manifest", "manifest XML").runs(decode::manifest, 4000).on(decode::manifest_seeds),
    Target::new("chunks", "EventSource manifests in pieces, in order and out of it")
        .runs(decode::chunks, 4000)
        .on(decode::chunk_seeds),
    Target::new("tmf", "TMF files and messages that they describe")
        .runs(decode::tmf, 400)
        .on(decode::tmf_seeds),
    Target::new("kernel", "kernel payloads against their layouts with both pointer sizes")
        .runs(decode::kernel, 20)
        .on(decode::kernel_seeds),
    Target::new("breakpad", "Breakpad symbol files").runs(text::breakpad, 20000).on(text::breakpad_seeds),
    Target::new("pdb", "program databases")
        .runs(symbols::program_database, 20000)
        .on(symbols::program_database_seeds),
    Target::new("symbol-cache", "files of the compact cache of symbols")
        .runs(symbols::symbol_cache, 10000)
        .on(symbols::symbol_cache_seeds),
    Target::new("image", "export tables of images").runs(symbols::image, 10000).on(symbols::image_seeds),
    Target::new("loggers", "lists of sessions by xperf, tracelog, logman and wpr")
        .runs(text::loggers, 20000)
        .on(text::loggers_seeds),
    Target::new("counters", "performance counter logs: CSV and TSV in several languages, binary ones")
        .runs(counters::logs, 2000)
        .on(counters::logs_seeds),
    Target::new("scenario", "scenarios").runs(text::scenario, 1500).on(text::scenario_seeds),
    Target::new("filter", "conditions, sort orders and lists of columns")
        .runs(text::filter, 1000)
        .on(text::filter_seeds),
    Target::new("archive", "zip, 7z, gzip and zstd archives, and whatever else a user may name")
        .runs(text::archive, 1000)
        .on(text::archive_seeds),
    Target::new("probe-results", "results of probes: text, page, comparison, tables")
        .runs(probe::results, 1000)
        .on(probe::results_seeds),
    Target::new("audit-policy", "audit policies of auditpol and Group Policy")
        .runs(audit::policy, 4000)
        .on(audit::policy_seeds),
    Target::new(
        "event-log",
        "event logs: chunks, templates, fields, XML, messages, columns, with one and two threads",
    )
    .runs(logs::log, 200)
    .on(logs::log_seeds),
    Target::new("message-file", "resources of message files: message tables and event templates")
        .runs(logs::message_file, 60)
        .on(logs::message_file_seeds),
    Target::new("seven-zip", "lists of contents of 7z archives, with right checksums")
        .runs(text::seven_zip, 3000)
        .on(text::seven_zip_seeds),
];

/// The target of that name.
pub fn by_name(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|t| t.name == name)
}
