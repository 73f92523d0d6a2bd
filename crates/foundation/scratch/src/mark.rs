//! What our folders are called, the mark in each, and how they are removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// The file in each of our folders that says whose it is, and is locked while its process lives.
pub const MARK: &str = ".etwhy-scratch";

/// What the mark holds.
pub(crate) const TEXT: &str = "Temporary files of etwhy. They may be removed when no etwhy is running.\n";

/// What names of our folders begin and end with; six letters and digits stand between.
pub(crate) const PREFIX: &str = "etwhy-";
pub(crate) const SUFFIX: &str = ".tmp";
pub(crate) const RANDOM: usize = 6;

/// Writes and locks the mark of a folder. It gets its name when it is locked.
pub(crate) fn mark(folder: &Path) -> io::Result<File> {
    let unnamed = folder.join(".new");
    let mut file = OpenOptions::new().write(true).create_new(true).open(&unnamed)?;
    // Some network drives have no locks; nobody can tell there whether we live, and folders stay when we are killed.
    let locked = file.try_lock().is_ok();
    file.write_all(TEXT.as_bytes())?;
    if locked {
        std::fs::rename(&unnamed, folder.join(MARK))?;
    }
    Ok(file)
}

/// Removes a folder. Scanners hold files open for a moment after they were closed, and threads that have not heard of the
/// end may make more of them, so it tries more than once. Without the right to remove it, waiting does not help.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if cfg!(unix) && error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) if tries < 20 => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            result => return result,
        }
    }
}
