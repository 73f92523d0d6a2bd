//! Putting files into caches: under their final name they are always whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A new file for bytes that come from elsewhere, in the cache, so that moving it into place is one step.
pub fn scratch(cache: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let folder = cache.join(".etwhy");
    fs::create_dir_all(&folder)?;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("new-{}-{number}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            // What a process with the same number left behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Moves a file to where it belongs.
pub fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::rename(from, to)
}

/// Copies a file to where it belongs in a cache.
pub fn copy_to(from: &Path, cache: &Path, to: &Path) -> io::Result<()> {
    let (path, mut file) = scratch(cache)?;
    let done = File::open(from)
        .and_then(|mut source| io::copy(&mut source, &mut file))
        .and_then(|_| move_to(&path, to));
    if done.is_err() {
        let _ = fs::remove_file(&path);
    }
    done
}
