//! What stops the opening of inputs.

use std::io;
use std::path::PathBuf;

use crate::{InputOptions, Kind, WantedFiles};
use etwhy_base::units::counted;

/// A reason why an input cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The operating system refused.
    #[error("{}: cannot {what}: {source}", file.display())]
    Io {
        /// The file as the user named it.
        file: PathBuf,
        /// What was tried ("open", "read", "unpack").
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk that holds the temporary folder is full.
    #[error(
        "{}: the disk is full after unpacking {unpacked} bytes to {}. Choose another place with --temp-dir",
        file.display(), temp_dir.display()
    )]
    DiskFull {
        /// The file as the user named it.
        file: PathBuf,
        /// Where it was unpacked to.
        temp_dir: PathBuf,
        /// Bytes written before the disk was full.
        unpacked: u64,
    },
    /// The bytes are something else that people mistake for a trace.
    #[error("{}: not {} but {}. {}", file.display(), wanted.name(), kind.name(), advice(*kind, *wanted))]
    NotATrace {
        /// The file as the user named it.
        file: PathBuf,
        /// What it is instead.
        kind: Kind,
        /// What was asked for.
        wanted: WantedFiles,
    },
    /// A folder without traces.
    #[error(
        "{}: no {} files in this folder ({}). Name an archive or a file instead{}",
        folder.display(), wanted.ending(), others_text(*others), if *deeper { ", or use --recursive to look into the folders inside" } else { "" }
    )]
    NoTraceInFolder {
        /// The folder as the user named it.
        folder: PathBuf,
        /// How many other files it holds.
        others: usize,
        /// There are folders inside that were not looked into.
        deeper: bool,
        /// What was asked for.
        wanted: WantedFiles,
    },
    /// An archive without traces.
    #[error("{}: no {} in this archive ({})", file.display(), wanted.noun(), members_text(*members, examples))]
    NoTraceInArchive {
        /// The archive as the user named it.
        file: PathBuf,
        /// How many members it has.
        members: usize,
        /// Names of the first few, cleaned for display.
        examples: Vec<String>,
        /// What was asked for.
        wanted: WantedFiles,
    },
    /// The archive's traces are encrypted.
    #[error("{}: {member} is encrypted. Unpack it with its password and name the file inside", file.display())]
    Encrypted {
        /// The archive as the user named it.
        file: PathBuf,
        /// The member, cleaned for display, or "the archive".
        member: String,
    },
    /// The archive's traces are packed with a method that this program does not have.
    #[error("{}: {member} is packed with an unsupported method ({method}). Unpack it with 7-Zip and name the file inside", file.display())]
    UnsupportedMethod {
        /// The archive as the user named it.
        file: PathBuf,
        /// The member, cleaned for display, or "the archive".
        member: String,
        /// The method as the archive calls it.
        method: String,
    },
    /// Nothing could be unpacked before the damage.
    #[error("{}: damaged {}: {problem}. Copy or download it again", file.display(), kind.name())]
    Damaged {
        /// The archive as the user named it.
        file: PathBuf,
        /// What kind of archive it is.
        kind: Kind,
        /// What the decoder said.
        problem: String,
    },
    /// More bytes than allowed.
    #[error(
        "{}: unpacks to more than the limit of {limit} bytes{}. If you trust it, raise the limit with {}",
        file.display(),
        claimed.map(|c| format!(" (it claims {c})")).unwrap_or_default(),
        InputOptions::MAX_UNPACKED_OPTION
    )]
    TooLarge {
        /// The archive as the user named it.
        file: PathBuf,
        /// The limit in force, in bytes over all inputs.
        limit: u64,
        /// What the archive claims, if that was the reason.
        claimed: Option<u64>,
    },
    /// A ratio that only archives made to do harm have.
    #[error(
        "{}: {packed} bytes unpack to more than {unpacked}, above the limit of {limit}:1 (a \"zip bomb\"?). \
         If you trust it, raise the limit with {}",
        file.display(), InputOptions::MAX_RATIO_OPTION
    )]
    TooDense {
        /// The archive as the user named it.
        file: PathBuf,
        /// Bytes of the archive.
        packed: u64,
        /// Bytes unpacked when it was stopped.
        unpacked: u64,
        /// The ratio in force.
        limit: u64,
    },
    /// More traces than the reader can number.
    #[error("more than {limit} traces in one go: name fewer")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// Nothing was named.
    #[error("no input: name an .etl file, an archive, a folder, or - for standard input")]
    NothingNamed,
}

fn others_text(others: usize) -> String {
    match others {
        0 => "no other files".to_owned(),
        _ => counted(others as i128, "other file", "other files"),
    }
}

fn members_text(members: usize, examples: &[String]) -> String {
    let named = if examples.is_empty() { String::new() } else { format!(": {}", examples.join(", ")) };
    let more = if !examples.is_empty() && members > examples.len() { ", …" } else { "" };
    format!("{}{named}{more}", counted(members as i128, "member", "members"))
}

/// What to do with something else than what was asked for.
fn advice(kind: Kind, wanted: WantedFiles) -> &'static str {
    match (wanted, kind) {
        (WantedFiles::Logs, Kind::Etl) => "Use `etwhy why`, or `etwhy info`",
        (WantedFiles::Logs, Kind::Empty) => "Was it copied to its end?",
        (WantedFiles::Logs, _) => {
            "etwhy reads .evtx files here, archives that hold them, and folders of them"
        }
        (WantedFiles::Traces, kind) => kind.advice(),
    }
}
