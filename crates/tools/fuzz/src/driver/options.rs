//! The command line.

use std::path::PathBuf;

/// Damaged and hostile input for every parser of etwhy: mutants of traces and texts, run in children whose
/// time and memory are watched. Findings are written to a folder and can be run again with --file
#[derive(clap::Parser, Clone, Debug)]
pub struct Options {
    /// Seconds for all targets together
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u64,
    /// Mutants of each seed instead of a time
    #[arg(long, value_name = "N")]
    pub mutants: Option<u64>,
    /// The short campaign: as many mutants of each seed as the target says
    #[arg(long)]
    pub short: bool,
    /// Only these targets (default: all)
    #[arg(long, value_name = "NAME")]
    pub target: Vec<String>,
    /// Folder with traces (default: ETWHY_CORPUS, or the one beside the repository)
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Number of the campaign: other mutants
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Cut traces to about this many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub limit: usize,
    /// Seconds that one mutant may take
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub patience: u64,
    /// Where findings go
    #[arg(long, value_name = "DIR", default_value = "target/fuzz-findings")]
    pub findings: PathBuf,
    /// Run a target on this file and nothing else; needs one --target
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Bytes of input by which the memory limit of --file is reckoned (default: the file's size)
    #[arg(long, value_name = "BYTES")]
    pub size: Option<usize>,
    /// Write this hostile input to --file (`all`: each to a file of its name in that folder)
    #[arg(long, value_name = "NAME", requires = "file")]
    pub bomb: Option<String>,
    /// List the targets
    #[arg(long)]
    pub list: bool,
    /// Run as a child
    #[arg(long, hide = true)]
    pub child: bool,
    /// First mutant of a child
    #[arg(long, hide = true, default_value_t = 0)]
    pub from: u64,
    /// Mutants of a child
    #[arg(long, hide = true, default_value_t = u64::MAX)]
    pub count: u64,
}

impl Options {
    /// The folder of traces.
    pub fn corpus(&self) -> PathBuf {
        self.corpus.clone().unwrap_or_else(crate::seeds::corpus_folder)
    }
}
