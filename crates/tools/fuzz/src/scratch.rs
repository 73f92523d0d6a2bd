//! Files for parsers that want a path.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

thread_local! {
    static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
}

/// A folder of this thread; in memory where the system has such a place.
pub fn folder() -> PathBuf {
    FOLDER.with(|slot| {
        let mut slot = slot.borrow_mut();
        if slot.is_none() {
            let memory = Path::new("/dev/shm");
            let builder = tempfile::Builder::new();
            *slot = builder.tempdir_in(memory).or_else(|_| builder.tempdir()).ok();
        }
        slot.as_ref().map_or_else(std::env::temp_dir, |dir| dir.path().to_owned())
    })
}

/// Writes `data` to a file of that name in the folder of this thread; `None` if the disk is full.
pub fn file(name: &str, data: &[u8]) -> Option<PathBuf> {
    let path = folder().join(name);
    std::fs::write(&path, data).ok()?;
    Some(path)
}
