//! The database of texts: SQLite, in a file or in memory. `schema.sql` describes it.
//!
//! Files and folders that are opened directly become such a database in memory, so there is one way to look things up.

mod read;
mod write;

pub(crate) use read::{EventRow, ProviderRow, Store};
pub(crate) use write::Writer;

/// The version that this program writes and reads.
pub const SCHEMA_VERSION: i64 = 1;
/// `PRAGMA application_id`: "EWYC", a catalogue of etwhy.
pub(crate) const APPLICATION_ID: i64 = 0x4557_5943;

/// What the registry says about a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// Its name.
    pub name: String,
    /// The log of a classic provider; none for those of manifests.
    pub log: Option<String>,
    /// Its GUID.
    pub guid: Option<etwhy_base::Guid>,
    /// File with its `WEVT_TEMPLATE`.
    pub resource: Vec<String>,
    /// Files with its messages.
    pub message: Vec<String>,
    /// Files with parameters (`%%1833`).
    pub parameter: Vec<String>,
    /// Files with names of categories.
    pub category: Vec<String>,
}

/// Counts of what a database holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files that were read.
    pub files: u64,
    /// Providers of manifests.
    pub manifest_providers: u64,
    /// Classic providers.
    pub classic_providers: u64,
    /// Types of events of manifests.
    pub events: u64,
    /// Texts in all languages.
    pub messages: u64,
}

/// The name of the file that a path of the registry means, in lower case: `%SystemRoot%\System32\x.dll` is `x.dll`, and so is
/// its translation `x.dll.mui`.
#[must_use]
pub fn module_name(path: &str) -> String {
    let base =
        path.trim().trim_matches('"').rsplit(['\\', '/']).next().unwrap_or_default().trim().to_lowercase();
    for ending in [".mui", ".mun"] {
        if let Some(stem) = base.strip_suffix(ending) {
            return stem.to_owned();
        }
    }
    base
}

/// A file that a database was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// Its path where it was read.
    pub path: String,
    /// Its version.
    pub version: Option<String>,
    /// The language of its `MUI` resource.
    pub language: Option<String>,
    /// Messages that were taken from it.
    pub messages: u64,
    /// Providers in it.
    pub providers: u64,
    /// What was damaged.
    pub damage: Option<String>,
}
