//! A file that is ready to be read, and the folder that it may have been unpacked to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use etwhy_scratch::Scratch;

/// A trace as a plain file.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// The name for the user, e.g. `x.zip!trace.etl`. Not a path to open.
    pub shown: PathBuf,
    /// The file to open.
    pub path: PathBuf,
    /// A `symbols` folder beside the trace or inside its package, laid out as a symbol store.
    pub symbols_dir: Option<PathBuf>,
    /// False if the archive was damaged and only the part in front of the damage was unpacked.
    pub complete: bool,
    /// Keeps an unpacked file alive; `None` if `path` is the user's own file.
    pub temp: Option<TempGuard>,
}

/// Keeps the temporary folder of unpacked files; the last one removes it.
#[derive(Clone, Debug)]
pub struct TempGuard(Arc<Scratch>);

impl TempGuard {
    pub(crate) fn new(dir: Arc<Scratch>) -> TempGuard {
        TempGuard(dir)
    }

    /// The folder that is kept.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }
}
