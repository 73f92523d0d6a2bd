//! Temporary files that are gone afterwards, whatever ends the program.
//!
//! A [`Scratch`] is a folder of ours. It goes
//!
//! * with its owner: at the end, with an error, with a panic that unwinds;
//! * with the program, when Ctrl-C, `SIGTERM`, `SIGHUP`, a closed terminal or window end it: all folders that live are
//!   removed first (on a thread of its own, so that work in progress cannot hold it up);
//! * with a later run, if the program was killed or the machine went down: [`Scratch::new`] looks for folders of
//!   processes that are gone, beside the one that it makes.
//!
//! # What is removed
//!
//! Never anything but our own: a folder (no link) of the names that we give, of the same user, with [`MARK`] inside, a
//! file with our text, which nobody has locked. The lock is the system's, so that it ends with its process and does not
//! depend on numbers of processes, which are used again and mean nothing in another container. It is taken before the
//! mark gets its name: a mark that is not locked is one whose owner is gone.
//!
//! What takes its name only when it is whole is written into a `Scratch` [beside](Scratch::beside) its place, from
//! where it can be renamed.
#![forbid(unsafe_code)]

mod live;
mod mark;
mod sweep;

use mark::{PREFIX, RANDOM, SUFFIX, mark, remove};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use live::{exit, leave_interrupts, uninterrupted};
pub use mark::MARK;

/// A folder for temporary files, which is removed when its owner goes or the program ends.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    number: u64,
    /// Locked as long as it is open.
    mark: Option<File>,
}

/// The error without the name of a temporary folder, which says nothing to who named the target.
fn without_path(error: io::Error) -> io::Error {
    let said = error.to_string();
    match said.split_once(" at path ") {
        Some((said, _)) => io::Error::new(error.kind(), said),
        None => error,
    }
}

impl Scratch {
    /// A folder in `parent`, or in the system's folder for temporary files. Nobody else may look into it.
    ///
    /// # Errors
    /// The system's.
    pub fn new(parent: Option<&Path>) -> io::Result<Scratch> {
        match parent {
            Some(parent) => Scratch::named(PREFIX, parent, true),
            None => Scratch::named(PREFIX, &std::env::temp_dir(), true),
        }
    }

    /// A folder (hidden, where names with a dot are) in that of `target`, so that a file or folder of it can be renamed
    /// to `target`.
    ///
    /// # Errors
    /// The system's.
    pub fn beside(target: &Path) -> io::Result<Scratch> {
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Scratch::named(&format!(".{PREFIX}"), parent, false).map_err(without_path)
    }

    /// `own`: nobody else may look into it. What becomes an ordinary folder has the rights of one.
    fn named(prefix: &str, parent: &Path, own: bool) -> io::Result<Scratch> {
        live::watch();
        // A path that is relative means another place when the program changes its folder.
        let parent = std::path::absolute(parent)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix).suffix(SUFFIX).rand_bytes(RANDOM);
        #[cfg(unix)]
        if own {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(std::fs::Permissions::from_mode(0o700));
        }
        #[cfg(not(unix))]
        let _ = own;
        let (folder, number) = live::register(|| builder.tempdir_in(&parent).map(tempfile::TempDir::keep))?;
        let mut scratch = Scratch { path: folder, number, mark: None };
        scratch.mark = Some(mark(&scratch.path)?);
        sweep::once(&parent, &scratch.path);
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it an ordinary folder, which nobody removes.
    ///
    /// # Errors
    /// If the mark cannot be removed.
    pub fn keep(mut self) -> io::Result<PathBuf> {
        self.unmark()?;
        live::forget(self.number);
        let path = std::mem::take(&mut self.path);
        Ok(path)
    }

    /// Takes the mark away: from now on only its owner removes it, and a run that is killed leaves it where it is. For the
    /// moment in which it holds something that is not ours.
    ///
    /// # Errors
    /// If the mark cannot be removed.
    pub fn unmark(&mut self) -> io::Result<()> {
        self.mark = None;
        match std::fs::remove_file(self.path.join(MARK)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        // Windows removes no file that is open.
        self.mark = None;
        if let Err(error) = remove(&self.path) {
            // Nobody waits for an answer of a destructor, and the next run tries again.
            let _ = writeln!(io::stderr(), "etwhy: {}: could not be removed: {error}", self.path.display());
        }
        live::forget(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_no_temporary_folder() {
        let folder = tempfile::tempdir().unwrap();
        let error = Scratch::beside(&folder.path().join("missing/file.csv")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains("tmp"), "{error}");
    }
}
