//! The functions under test, by name.

mod audit;
mod counters;
mod decode;
mod logs;
mod probe;
mod symbols;
mod text;
mod trace;

use crate::seeds::{self, Seed};
use crate::{damage, etl_mutate, mutate};
use etwhy_base::rng::Rng;
use std::cell::Cell;
use std::path::Path;

pub use trace::{analyse, analyse_file, open as open_trace};

/// A mutation: numbers, what to change, and something else to take pieces from.
pub type Mutation = fn(&mut Rng, &mut Vec<u8>, &[u8]);

/// A function under test and what it is fed with.
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// What it reads.
    pub about: &'static str,
    /// Runs it. Panics if something that must hold does not.
    pub run: fn(&[u8]),
    /// Its seeds; the folder is the corpus, the number the size to which large files are cut.
    pub seeds: fn(&Path, usize) -> Vec<Seed>,
    /// How mutants are made.
    pub mutate: Mutation,
    /// Mutants of one seed in the short campaign.
    pub short: usize,
}

thread_local! {
    static ACCEPTED: Cell<bool> = const { Cell::new(false) };
}

/// Called by targets when input got past what refuses input: behind that the work begins.
pub fn accepted() {
    ACCEPTED.set(true);
}

/// Whether a target does its work with this input. A seed that is refused tests nothing but the refusal.
pub fn accepts(target: &Target, data: &[u8]) -> bool {
    ACCEPTED.set(false);
    (target.run)(data);
    ACCEPTED.get()
}

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

impl Target {
    const fn new(name: &'static str, about: &'static str) -> Target {
        Target { name, about, run: |_| (), seeds: |_, _| Vec::new(), mutate: mutate::several, short: 0 }
    }

    /// What it runs, and with how many mutants of one seed in the short campaign.
    const fn runs(self, run: fn(&[u8]), short: usize) -> Target {
        Target { run, short, ..self }
    }

    const fn on(self, seeds: fn(&Path, usize) -> Vec<Seed>) -> Target {
        Target { seeds, ..self }
    }

    const fn mutated(self, mutate: Mutation) -> Target {
        Target { mutate, ..self }
    }

    /// Mutant number `index` of a campaign. The first ones are the seeds themselves.
    pub fn mutant(&self, seeds: &[Seed], campaign: u64, index: u64) -> Vec<u8> {
        let plain = usize::try_from(index).ok().and_then(|i| seeds.get(i));
        let mut rng = Rng::new(campaign ^ index.wrapping_mul(0xD134_2543_DE82_EF95));
        rng.bits();
        if let Some(seed) = plain
            && self.name != "damage"
        {
            return seed.data.clone();
        }
        // Every seed gets its turn, so that a short campaign reaches all of them.
        let turn = index as usize % seeds.len().max(1);
        let mut data = seeds.get(turn).map(|s| s.data.clone()).unwrap_or_default();
        let other = rng.pick(seeds).map_or(&[][..], |s| &s.data);
        (self.mutate)(&mut rng, &mut data, other);
        data
    }
}
