//! The functions under test, by name.

mod audit;
mod counters;
mod decode;
mod logs;
mod probe;
mod symbols;
mod text;
mod trace;

use crate::rng::Rng;
use crate::seeds::{self, Seed};
use crate::{damage, etl_mutate, mutate};
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
    Target {
        name: "walk",
        about: "buffers and records of a trace, mapped, in pieces, and cut into ranges of time: all the same",
        run: trace::walk,
        seeds: seeds::traces,
        mutate: etl_mutate::several,
        short: 80,
    },
    Target {
        name: "damage",
        about: "a trace cut short, or damaged in one buffer: everything else is still there and the ledger says so",
        run: damage::check,
        seeds: damage::seeds,
        mutate: damage::choose,
        short: 300,
    },
    Target {
        name: "analyse",
        about: "the whole pass with all tables, operators and exports",
        run: trace::analyse,
        seeds: seeds::traces,
        mutate: etl_mutate::several,
        short: 200,
    },
    Target {
        name: "decompress",
        about: "XPRESS, LZNT1 and XPRESS-Huffman with any wanted length",
        run: trace::decompress,
        seeds: trace::packed,
        mutate: mutate::several,
        short: 3000,
    },
    Target {
        name: "record",
        about: "all accessors of one record with any bytes",
        run: trace::record,
        seeds: trace::single_records,
        mutate: mutate::several,
        short: 60,
    },
    Target {
        name: "metadata",
        about: "TRACE_EVENT_INFO and EVENT_MAP_INFO",
        run: decode::metadata,
        seeds: decode::metadata_seeds,
        mutate: mutate::several,
        short: 5000,
    },
    Target {
        name: "tracelogging",
        about: "TraceLogging items",
        run: decode::tracelogging,
        seeds: decode::tracelogging_seeds,
        mutate: mutate::several,
        short: 5000,
    },
    Target {
        name: "manifest",
        about: "manifest XML",
        run: decode::manifest,
        seeds: decode::manifest_seeds,
        mutate: mutate::several,
        short: 4000,
    },
    Target {
        name: "chunks",
        about: "EventSource manifests in pieces, in order and out of it",
        run: decode::chunks,
        seeds: decode::chunk_seeds,
        mutate: mutate::several,
        short: 4000,
    },
    Target {
        name: "tmf",
        about: "TMF files and messages that they describe",
        run: decode::tmf,
        seeds: decode::tmf_seeds,
        mutate: mutate::several,
        short: 400,
    },
    Target {
        name: "kernel",
        about: "kernel payloads against their layouts with both pointer sizes",
        run: decode::kernel,
        seeds: decode::kernel_seeds,
        mutate: mutate::several,
        short: 20,
    },
    Target {
        name: "breakpad",
        about: "Breakpad symbol files",
        run: text::breakpad,
        seeds: text::breakpad_seeds,
        mutate: mutate::several,
        short: 20000,
    },
    Target {
        name: "pdb",
        about: "program databases",
        run: symbols::program_database,
        seeds: symbols::program_database_seeds,
        mutate: mutate::several,
        short: 20000,
    },
    Target {
        name: "symbol-cache",
        about: "files of the compact cache of symbols",
        run: symbols::symbol_cache,
        seeds: symbols::symbol_cache_seeds,
        mutate: mutate::several,
        short: 10000,
    },
    Target {
        name: "image",
        about: "export tables of images",
        run: symbols::image,
        seeds: symbols::image_seeds,
        mutate: mutate::several,
        short: 10000,
    },
    Target {
        name: "loggers",
        about: "lists of sessions by xperf, tracelog, logman and wpr",
        run: text::loggers,
        seeds: text::loggers_seeds,
        mutate: mutate::several,
        short: 20000,
    },
    Target {
        name: "counters",
        about: "performance counter logs: CSV and TSV in several languages, binary ones",
        run: counters::logs,
        seeds: counters::logs_seeds,
        mutate: mutate::several,
        short: 2000,
    },
    Target {
        name: "scenario",
        about: "scenarios",
        run: text::scenario,
        seeds: text::scenario_seeds,
        mutate: mutate::several,
        short: 1500,
    },
    Target {
        name: "filter",
        about: "conditions, sort orders and lists of columns",
        run: text::filter,
        seeds: text::filter_seeds,
        mutate: mutate::several,
        short: 1000,
    },
    Target {
        name: "archive",
        about: "zip, 7z, gzip and zstd archives, and whatever else a user may name",
        run: text::archive,
        seeds: text::archive_seeds,
        mutate: mutate::several,
        short: 1000,
    },
    Target {
        name: "probe-results",
        about: "results of probes: text, page, comparison, tables",
        run: probe::results,
        seeds: probe::results_seeds,
        mutate: mutate::several,
        short: 1000,
    },
    Target {
        name: "audit-policy",
        about: "audit policies of auditpol and Group Policy",
        run: audit::policy,
        seeds: audit::policy_seeds,
        mutate: mutate::several,
        short: 4000,
    },
    Target {
        name: "event-log",
        about: "event logs: chunks, templates, fields, XML, messages, columns, with one and two threads",
        run: logs::log,
        seeds: logs::log_seeds,
        mutate: mutate::several,
        short: 200,
    },
    Target {
        name: "message-file",
        about: "resources of message files: message tables and event templates",
        run: logs::message_file,
        seeds: logs::message_file_seeds,
        mutate: mutate::several,
        short: 60,
    },
    Target {
        name: "seven-zip",
        about: "lists of contents of 7z archives, with right checksums",
        run: text::seven_zip,
        seeds: text::seven_zip_seeds,
        mutate: mutate::several,
        short: 3000,
    },
];

/// The target of that name.
pub fn by_name(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|t| t.name == name)
}

impl Target {
    /// Mutant number `index` of a campaign. The first ones are the seeds themselves.
    pub fn mutant(&self, seeds: &[Seed], campaign: u64, index: u64) -> Vec<u8> {
        let plain = usize::try_from(index).ok().and_then(|i| seeds.get(i));
        let mut rng = Rng::new(campaign ^ index.wrapping_mul(0xD134_2543_DE82_EF95));
        rng.next();
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
