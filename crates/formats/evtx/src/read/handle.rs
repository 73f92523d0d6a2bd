//! The file of a log, which need not stay open: systems limit how many files a process has open, and a folder may have thousands of logs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Logs that stay open at a time; others are opened for each look.
const MOST_OPEN: usize = 128;

/// How many stay open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The file of a log.
#[derive(Debug)]
pub(super) struct Handle {
    path: PathBuf,
    kept: Option<File>,
    /// It is one of [`OPEN`].
    counted: bool,
}

impl Handle {
    /// Opens it; it stays open until [`Handle::settle`].
    pub fn open(path: &Path) -> io::Result<Handle> {
        Ok(Handle { path: path.to_path_buf(), kept: Some(File::open(path)?), counted: false })
    }

    /// Closes it if many others are open.
    pub fn settle(&mut self) {
        let one_more = |open: usize| (open < MOST_OPEN).then_some(open + 1);
        self.counted = OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        if !self.counted {
            self.kept = None;
        }
    }

    /// Looks into the file.
    pub fn look<R>(&self, look: impl FnOnce(&File) -> io::Result<R>) -> io::Result<R> {
        match &self.kept {
            Some(file) => look(file),
            None => look(&File::open(&self.path)?),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.counted {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn of_many_logs_few_stay_open_and_all_are_read() {
        let path = std::env::current_exe().unwrap();
        let mut handles: Vec<Handle> =
            (0..2 * MOST_OPEN).map(|_| Handle::open(&path).unwrap()).map(settled).collect();
        assert!(handles.iter().filter(|handle| handle.kept.is_some()).count() <= MOST_OPEN);
        let first = |handle: &Handle| handle.look(|mut file| file.read(&mut [0])).unwrap();
        assert!(handles.iter().all(|handle| first(handle) == 1));
        handles.clear();
        assert!(settled(Handle::open(&path).unwrap()).kept.is_some());
    }

    fn settled(mut handle: Handle) -> Handle {
        handle.settle();
        handle
    }
}
