//! Files of probes: in one folder of their own, gone afterwards whatever happens.

use crate::error::ProbeError;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What the names of our folders begin with; the number of the process follows.
const PREFIX: &str = "etwhy-probe-";

/// A file in each of our folders. Without it a folder of that name is not ours and is left alone.
const MARK: &str = ".etwhy-probe";

/// Part of the free space that probes may fill.
const MOST_OF_FREE: f64 = 0.8;

/// A folder that is removed when its owner goes.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a folder inside of `parent`, for at most `needed` bytes.
    ///
    /// # Errors
    /// If it cannot be made, or if `parent` has too little room.
    pub fn new(parent: &Path, needed: u64) -> Result<Scratch, ProbeError> {
        if let Some(free) = free_bytes(parent)
            && needed as f64 > free as f64 * MOST_OF_FREE
        {
            return Err(ProbeError::NoRoom { path: parent.to_owned(), needed, free });
        }
        let mut random = [0u8; 4];
        // A weak name is no risk: an existing folder is never used.
        let _ = getrandom::fill(&mut random);
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), u32::from_le_bytes(random));
        let path = parent.join(name);
        fs::create_dir(&path).map_err(ProbeError::file(&path, "create"))?;
        let scratch = Scratch { path };
        let mark = scratch.path.join(MARK);
        let text = "Files of etwhy probe. They may be removed at any time.\n";
        fs::File::create_new(&mark)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(ProbeError::file(&mark, "create"))?;
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it.
    ///
    /// # Errors
    /// The system's.
    pub fn folder(&self, name: &str) -> Result<PathBuf, ProbeError> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(ProbeError::file(&path, "create"))?;
        Ok(path)
    }

    /// Removes it, and says what could not be removed.
    ///
    /// # Errors
    /// The system's, with the folder that is left.
    pub fn remove(self) -> Result<(), ProbeError> {
        let result = remove_all(&self.path);
        let path = self.path.clone();
        std::mem::forget(self);
        result.map_err(ProbeError::file(path, "remove"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_all(&self.path) {
            eprintln!("etwhy: {}: could not be removed: {error}", self.path.display());
        }
    }
}

/// Removes a folder. Scanners hold files open for a moment after they were closed, so it tries more than once. Without the right to
/// remove it, waiting does not help; Windows also says so of files that somebody holds open.
fn remove_all(path: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if cfg!(unix) && error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) if tries < 20 => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            result => return result,
        }
    }
}

/// Removes folders of runs that were killed. Gives those that were removed and those that could not be.
pub fn remove_leftovers(parent: &Path) -> (Vec<PathBuf>, Vec<(PathBuf, io::Error)>) {
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(process_of) else { continue };
        let path = entry.path();
        // `file_type` does not follow links: what a link points to is never removed.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !is_own(&entry) || !path.join(MARK).is_file() || is_alive(process) {
            continue;
        }
        match remove_all(&path) {
            Ok(()) => removed.push(path),
            Err(error) => left.push((path, error)),
        }
    }
    (removed, left)
}

/// The process that a folder of ours is named after; `None` for all other names.
fn process_of(name: &str) -> Option<u32> {
    let (process, random) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let is_random = random.len() == 8 && random.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let number = process.parse::<u32>().ok()?;
    (is_random && number.to_string() == process).then_some(number)
}

/// Whether this user made it: what others leave is theirs, and root would follow them into anything.
#[cfg(unix)]
fn is_own(entry: &fs::DirEntry) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    entry.metadata().is_ok_and(|facts| facts.uid() == rustix::process::geteuid().as_raw())
}

/// Who has no right to a folder cannot remove it: Windows says so.
#[cfg(windows)]
fn is_own(_: &fs::DirEntry) -> bool {
    true
}

#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    let Some(pid) = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    // EPERM means that it is there and belongs to somebody else.
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

#[cfg(windows)]
fn is_alive(process: u32) -> bool {
    etwhy_os::windows::processes::is_alive(process)
}

/// Free bytes for this user in the file system of `path`.
#[cfg(unix)]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let facts = rustix::fs::statvfs(path).ok()?;
    facts.f_bavail.checked_mul(facts.f_frsize)
}

/// Free bytes for this user in the file system of `path`.
#[cfg(windows)]
pub fn free_bytes(path: &Path) -> Option<u64> {
    etwhy_os::windows::disk::free_bytes(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_and_nothing_else_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(parent.path(), 1000).unwrap();
        fs::write(scratch.folder("many").unwrap().join("file"), "x").unwrap();
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);

        // Process numbers of Linux end at 2^22; this one is nobody's.
        let dead = parent.path().join("etwhy-probe-4194305-00000000");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join(MARK), "").unwrap();
        let foreign = parent.path().join("etwhy-probe-4194306-00000000");
        fs::create_dir(&foreign).unwrap();
        let ours = Scratch::new(parent.path(), 0).unwrap();
        let (removed, left) = remove_leftovers(parent.path());
        assert_eq!((removed, left.len()), (vec![dead], 0));
        assert!(foreign.exists() && ours.path().exists());
    }

    #[test]
    fn names_are_exactly_ours() {
        assert_eq!(process_of("etwhy-probe-4194305-0123abcd"), Some(4_194_305));
        for name in [
            "etwhy-probe-4194305-\u{1b}]0;x\u{7}",
            "etwhy-probe-4194305-0123abcd-more",
            "etwhy-probe-4194305-0123ABCD",
            "etwhy-probe-4194305",
            "etwhy-probe-+1-0123abcd",
            "etwhy-probe-99999999999-0123abcd",
            "probe-1-0123abcd",
        ] {
            assert_eq!(process_of(name), None, "{name:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_others_left_is_theirs() {
        let parent = tempfile::tempdir().unwrap();
        let theirs = parent.path().join("etwhy-probe-4194305-00000000");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join(MARK), "").unwrap();
        if let Err(why) = std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)) {
            return println!("skipped: a folder cannot be given to another user: {why}");
        }
        let (removed, left) = remove_leftovers(parent.path());
        assert_eq!((removed.len(), left.len()), (0, 0));
        assert!(theirs.exists());
    }

    #[test]
    fn a_disk_that_is_too_small_is_told_before_anything_is_written() {
        let parent = tempfile::tempdir().unwrap();
        let error = Scratch::new(parent.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("bytes are needed and") && error.contains("--folder"), "{error}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
