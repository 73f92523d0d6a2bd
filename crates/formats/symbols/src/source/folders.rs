//! Folders that are used where none is named.

use std::path::PathBuf;

/// The default downstream store: `store` beside the compact cache. (The debuggers' is `sym` in their own folder.)
pub fn default_store() -> PathBuf {
    let beside = crate::cache_folder().and_then(|folder| Some(folder.parent()?.join("store")));
    beside.unwrap_or_else(|| std::env::temp_dir().join("etwhy").join("store"))
}
