//! Removes folders of processes that are gone.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::mark::{MARK, PREFIX, RANDOM, SUFFIX, TEXT, remove};

/// Looks at each folder once in a run. `own` is a folder of this user in it.
pub(crate) fn once(parent: &Path, own: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(parent.to_owned()) {
        sweep(parent, own);
    }
}

/// Removes folders of ours whose process is gone.
pub(crate) fn sweep(parent: &Path, own: &Path) {
    let Ok(own) = own.symlink_metadata() else { return };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let named = entry.file_name().to_str().is_some_and(is_ours);
        // `file_type` does not follow links: what a link points to is never removed.
        if !named || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if path.symlink_metadata().is_ok_and(|facts| same_user(&facts, &own))
            && let Some(lock) = abandoned(&path)
        {
            // Windows removes no file that is open; until it is gone, nobody else can have made it.
            if cfg!(windows) {
                drop(lock);
                let _ = remove(&path);
            } else {
                let _ = remove(&path);
                drop(lock);
            }
        }
    }
}

/// The lock of a folder's mark, if the mark is ours and nobody holds it.
fn abandoned(folder: &Path) -> Option<File> {
    let mark = folder.join(MARK);
    if !mark.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.len() == TEXT.len() as u64) {
        return None;
    }
    let mut file = File::options().read(true).write(true).open(&mark).ok()?;
    file.try_lock().ok()?;
    let mut text = String::new();
    (&mut file).take(TEXT.len() as u64 + 1).read_to_string(&mut text).ok()?;
    (text == TEXT).then_some(file)
}

/// Whether a name is one that we give.
fn is_ours(name: &str) -> bool {
    let name = name.strip_prefix('.').unwrap_or(name);
    let random = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    random.is_some_and(|random| random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[cfg(unix)]
fn same_user(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.uid() == other.uid()
}

/// Who has no right to a folder cannot remove it: Windows says so.
#[cfg(not(unix))]
fn same_user(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Scratch;

    /// A folder as a killed process leaves it.
    fn left(parent: &Path, name: &str) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(MARK), TEXT).unwrap();
        fs::write(folder.join("00001.etl"), "x").unwrap();
        folder
    }

    #[test]
    fn what_processes_left_goes_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let gone = [left(parent, "etwhy-AbC123.tmp"), left(parent, ".etwhy-000000.tmp")];
        let other = tempfile::tempdir().unwrap();
        let linked = left(other.path(), "etwhy-linked.tmp");
        let mut kept = Vec::new();
        for name in
            ["etwhy-AbC12.tmp", "etwhy-AbC1234.tmp", "etwhy-Ab-123.tmp", "etwhy-AbC123", "x-etwhy-AbC123.tmp"]
        {
            kept.push(left(parent, name));
        }
        let unmarked = left(parent, "etwhy-unmark.tmp");
        fs::remove_file(unmarked.join(MARK)).unwrap();
        let foreign = left(parent, "etwhy-foreig.tmp");
        fs::write(foreign.join(MARK), TEXT.replace("etwhy", "other")).unwrap();
        let living = left(parent, "etwhy-living.tmp");
        let lock = File::options().write(true).open(living.join(MARK)).unwrap();
        lock.lock().unwrap();
        kept.extend([unmarked, foreign, living]);
        #[cfg(unix)]
        {
            let link = parent.join("etwhy-links1.tmp");
            std::os::unix::fs::symlink(&linked, &link).unwrap();
            kept.push(link);
            let marked = left(parent, "etwhy-links2.tmp");
            fs::remove_file(marked.join(MARK)).unwrap();
            std::os::unix::fs::symlink(linked.join(MARK), marked.join(MARK)).unwrap();
            kept.push(marked);
        }
        kept.push(linked);
        let ours = Scratch::new(Some(parent)).unwrap();
        let second = Scratch::beside(&parent.join("target")).unwrap();
        sweep(parent, ours.path());
        assert!(gone.iter().all(|path| !path.exists()));
        for path in &kept {
            assert!(path.join("00001.etl").exists(), "{}", path.display());
        }
        assert!(ours.path().join(MARK).exists() && second.path().join(MARK).exists());
        let places = [ours.path().to_owned(), second.path().to_owned()];
        drop((ours, second));
        assert!(places.iter().all(|path| !path.exists()));
        drop(lock);
    }

    #[test]
    fn what_is_kept_is_nobodys() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(parent.path())).unwrap();
        fs::write(scratch.path().join("mine"), "x").unwrap();
        let path = scratch.keep().unwrap();
        sweep(parent.path(), &path);
        assert!(path.join("mine").exists() && !path.join(MARK).exists());
    }
}
