//! What tells a file, and a state of it, from others without reading it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A file as it was at one time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    file: PathBuf,
    /// Its size.
    pub bytes: u64,
    modified_ns: u128,
}

impl Stamp {
    /// That of a file now; `None` if the system does not tell.
    pub fn of(file: &Path) -> Option<Stamp> {
        let file = fs::canonicalize(file).ok()?;
        let is = fs::metadata(&file).ok()?;
        let modified_ns = is.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(Stamp { bytes: is.len(), file, modified_ns })
    }

    /// All of it.
    pub fn text(&self) -> String {
        format!("{} bytes of {} ns: {}", self.bytes, self.modified_ns, self.file.display())
    }

    /// A part of a file's name. Two may have the same: [`Stamp::text`] knows them apart.
    pub fn short(&self) -> String {
        let mut hash = DefaultHasher::new();
        self.hash(&mut hash);
        format!("{:016x}", hash.finish())
    }
}
