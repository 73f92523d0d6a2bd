//! Why symbols that were found cannot be used.

use std::io;
use std::path::PathBuf;

/// Symbols were found but are of no use.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The operating system refused.
    #[error("{}: cannot read symbols: {source}", file.display())]
    Io {
        /// The symbol file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file does not start with a `MODULE` record.
    #[error("{}: not a Breakpad symbol file: no MODULE record in the first line", file.display())]
    NotASymbolFile {
        /// The symbol file.
        file: PathBuf,
    },
    /// The file is of a kind that cannot be used here.
    #[error("{}: {reason}", file.display())]
    Unsupported {
        /// The symbol file.
        file: PathBuf,
        /// What it is and what can be done.
        reason: String,
    },
    /// The file is not what its kind must be.
    #[error("{}: damaged: {reason}", file.display())]
    Damaged {
        /// The symbol file.
        file: PathBuf,
        /// Structure, offset, what was needed and what was there.
        reason: String,
    },
    /// The file belongs to another build of the module.
    #[error("{}: symbols are for {found}, the trace has {wanted}", file.display())]
    Mismatch {
        /// The symbol file.
        file: PathBuf,
        /// GUID and age asked for, as in a store's folder name.
        wanted: String,
        /// GUID and age that the file says.
        found: String,
    },
    /// The file is larger than what is read.
    #[error("{}: {bytes} bytes of symbols are more than the limit of {limit}", file.display())]
    TooLarge {
        /// The symbol file.
        file: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
}
