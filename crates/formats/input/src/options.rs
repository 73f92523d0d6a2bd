//! What a caller may choose, and how it hears about progress.

use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;

/// What is looked for in folders and archives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantedFiles {
    /// Traces (`.etl`).
    #[default]
    Traces,
    /// Event logs (`.evtx`).
    Logs,
}

impl WantedFiles {
    /// True if a file of this kind is one.
    pub fn is(self, kind: crate::Kind) -> bool {
        match self {
            WantedFiles::Traces => kind == crate::Kind::Etl,
            WantedFiles::Logs => kind == crate::Kind::Foreign(crate::kind::Foreign::Evtx),
        }
    }

    /// One of them, with its article.
    pub fn name(self) -> &'static str {
        match self {
            WantedFiles::Traces => "an event trace",
            WantedFiles::Logs => "an event log",
        }
    }

    /// The same in short.
    pub fn noun(self) -> &'static str {
        match self {
            WantedFiles::Traces => "trace",
            WantedFiles::Logs => "event log",
        }
    }

    /// How names of such files end.
    pub fn ending(self) -> &'static str {
        match self {
            WantedFiles::Traces => ".etl",
            WantedFiles::Logs => ".evtx",
        }
    }

    /// True if a file of this name should be one.
    pub fn is_named(self, name: &str) -> bool {
        let ending = self.ending();
        name.len() >= ending.len()
            && name.get(name.len() - ending.len()..).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    }
}

/// Limits and places for [`open`](crate::open).
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// Where unpacked files go; `None` is the system's temporary folder.
    pub temp_dir: Option<PathBuf>,
    /// Bytes that all inputs together may unpack to.
    pub max_unpacked_bytes: u64,
    /// How many times larger than its archive the unpacked data may be. Watched only above
    /// [`InputOptions::RATIO_FREE_BYTES`], because small traces of empty buffers pack extremely well.
    pub max_ratio: u64,
    /// Take the `.etl` files of folders inside a folder too (links to folders are not followed).
    pub recursive: bool,
    /// What is looked for.
    pub wanted: WantedFiles,
}

impl InputOptions {
    /// Unpacked bytes per archive up to which its ratio does not matter.
    pub const RATIO_FREE_BYTES: u64 = GIB;
    /// Default of [`max_unpacked_bytes`](InputOptions::max_unpacked_bytes): larger than any trace that
    /// Windows Performance Analyzer opens in practice, small enough for a disk to survive.
    pub const DEFAULT_MAX_UNPACKED: u64 = 64 * GIB;
    /// Default of [`max_ratio`](InputOptions::max_ratio): just under the 1032:1 that deflate can reach
    /// (zlib's technical notes), far above what real traces do (10:1 to 30:1).
    pub const DEFAULT_MAX_RATIO: u64 = 1000;
    /// The command-line option that error messages name for the byte limit.
    pub const MAX_UNPACKED_OPTION: &'static str = "--max-unpacked";
    /// The command-line option that error messages name for the ratio.
    pub const MAX_RATIO_OPTION: &'static str = "--max-unpack-ratio";
}

impl Default for InputOptions {
    fn default() -> InputOptions {
        InputOptions {
            temp_dir: None,
            max_unpacked_bytes: InputOptions::DEFAULT_MAX_UNPACKED,
            max_ratio: InputOptions::DEFAULT_MAX_RATIO,
            recursive: false,
            wanted: WantedFiles::Traces,
        }
    }
}

/// Told every few megabytes while something is unpacked.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The file being written, as shown to the user.
    pub shown: &'a Path,
    /// Bytes of it unpacked so far.
    pub unpacked: u64,
    /// Bytes it will have, if the archive says so (a claim, not a fact).
    pub claimed: Option<u64>,
}
