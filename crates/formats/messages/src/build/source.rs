//! Where files come from.

use crate::error::Error;
use crate::pe::{self, Image};

/// The largest file that is read as a whole: hives and members of archives.
pub(crate) const WHOLE_MAX: u64 = 1 << 30;

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its path in the source, with `/` between folders.
    pub(crate) path: String,
    /// What the source finds it by.
    pub(crate) index: usize,
}

/// A folder or an archive.
pub(crate) trait Source {
    /// What it has that may be wanted.
    fn entries(&mut self) -> Vec<Entry>;

    /// A file as a whole, if it has at most [`WHOLE_MAX`] bytes.
    fn bytes(&mut self, entry: &Entry) -> Result<Vec<u8>, Error>;

    /// Resources of a file.
    fn image(&mut self, entry: &Entry) -> Result<Image, Error> {
        let bytes = self.bytes(entry)?;
        pe::read(bytes.as_slice())
    }
}

/// What a file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Resources.
    Image,
    /// Which file belongs to which provider.
    Registry,
}

/// Whether a file may hold something, by its name.
pub(crate) fn wanted(path: &str) -> Option<Wants> {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((
            _,
            "dll" | "exe" | "sys" | "mui" | "mun" | "ocx" | "cpl" | "drv" | "efi" | "tsp" | "ax" | "scr"
            | "com",
        )) => Some(Wants::Image),
        Some((_, "reg")) => Some(Wants::Registry),
        Some(("providers", "csv")) => Some(Wants::Registry),
        None if matches!(name, "software" | "system") => Some(Wants::Registry),
        _ => None,
    }
}

/// Files of 32-bit programs and old builds go behind those that Windows itself uses.
pub(crate) fn penalty(path: &str) -> usize {
    let path = path.to_ascii_lowercase();
    if path.contains("winsxs/") { 2 } else { usize::from(path.contains("syswow64/")) }
}
