//! The folders of batches: which there are, what they are called, and how a merged one takes the place of its parts.

use crate::error::{FleetError, Result, io};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Leave to write, for one process at a time.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] pub(crate) File);

/// The folder of the batches.
pub const BATCHES: &str = "batches";

/// Merged batches that are whole, on their way into `batches`.
pub(crate) const MERGING: &str = "merging";

/// Batches that a merged one has.
pub(crate) const REPLACED: &str = "replaced";

/// A batch: its numbers, and the folder of its files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Batch {
    /// The last number: that of the batch, unless it was merged.
    pub last: i64,
    /// The first number.
    pub first: i64,
    /// Its folder.
    pub folder: PathBuf,
}

impl Batch {
    fn named(path: PathBuf) -> Option<Batch> {
        let name = path.file_name()?.to_str()?;
        let (first, last) = name.split_once('-').unwrap_or((name, name));
        let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
        // A folder that somebody called `2023` is none.
        let is_named = (1..=last).contains(&first) && name == name_of(first, last);
        is_named.then_some(Batch { first, last, folder: path })
    }

    /// True if it is a part of another one.
    fn is_in(&self, other: &Batch) -> bool {
        other.first <= self.first
            && self.last <= other.last
            && (other.first, other.last) != (self.first, self.last)
    }
}

/// What a batch of these numbers is called.
pub(crate) fn name_of(first: i64, last: i64) -> String {
    if first == last { format!("{first:08}") } else { format!("{first:08}-{last:08}") }
}

/// The batches of a store, the earliest first, each row in one of them.
///
/// # Errors
/// If a folder cannot be read.
pub(crate) fn batches(store: &Path) -> Result<Vec<Batch>> {
    // Folders are listed one after the other: what is listed twice alike was so at one moment, since no name comes back.
    let look = || -> Result<Vec<Batch>> {
        let mut all = listed(&store.join(MERGING))?;
        all.extend(listed(&store.join(BATCHES))?);
        Ok(all)
    };
    let mut all = look()?;
    loop {
        let again = look()?;
        if again == all {
            break;
        }
        all = again;
    }
    all.sort();
    all.dedup_by(|a, b| (a.first, a.last) == (b.first, b.last));
    let inner = |batch: &Batch| all.iter().any(|other| batch.is_in(other));
    let parts: Vec<bool> = all.iter().map(inner).collect();
    Ok(all.into_iter().zip(parts).filter(|(_, is_part)| !is_part).map(|(batch, _)| batch).collect())
}

fn listed(folder: &Path) -> Result<Vec<Batch>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound && !folder.ends_with(BATCHES) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(io(folder)(error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io(folder))?;
        // The type of the entry does not follow links: what a link leads to is no batch of this store.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(Batch::named(entry.path()));
        }
    }
    all.sort();
    Ok(all)
}

/// Finishes what was begun: merged batches that are whole take the place of their parts.
///
/// # Errors
/// If a folder cannot be moved, or what lies there was not merged; no row is lost.
pub(crate) fn finish(store: &Path, tables: &HashSet<String>, _lock: &Lock) -> Result<()> {
    let (batches, merging, replaced) = (store.join(BATCHES), store.join(MERGING), store.join(REPLACED));
    for whole in listed(&merging)? {
        // It will cost its parts, so it is looked at first.
        if !is_whole(&whole.folder, tables)? {
            let why = "is no merged batch; move it away".to_owned();
            return Err(FleetError::NoStore { place: whole.folder, why });
        }
        fs::create_dir_all(&replaced).map_err(io(&replaced))?;
        for part in listed(&batches)?.iter().filter(|part| part.is_in(&whole)) {
            move_into(&part.folder, &replaced)?;
        }
        move_into(&whole.folder, &batches)?;
        sync_folder(&batches);
    }
    for part in listed(&replaced)? {
        for file in files(&part.folder)?.iter().filter(|file| is_table(file, tables)) {
            fs::remove_file(file).map_err(io(file))?;
        }
        remove_empty(&part.folder)?;
    }
    remove_empty(&replaced)?;
    remove_empty(&merging)
}

/// Everything in a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(io(folder))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(io(folder))).collect()
}

/// True for the file of a table, by its name and kind.
fn is_table(file: &Path, tables: &HashSet<String>) -> bool {
    let is_named = file.file_name().and_then(|name| name.to_str()).is_some_and(|name| tables.contains(name));
    is_named && file.symlink_metadata().is_ok_and(|what| what.is_file())
}

/// True for a folder with files of tables and nothing else.
fn is_whole(folder: &Path, tables: &HashSet<String>) -> Result<bool> {
    let files = files(folder)?;
    Ok(!files.is_empty() && files.iter().all(|file| is_table(file, tables)))
}

/// Removes a folder, unless something is still in it.
fn remove_empty(folder: &Path) -> Result<()> {
    match fs::remove_dir(folder) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
            Err(io(folder)(error))
        }
        _ => Ok(()),
    }
}

fn move_into(folder: &Path, to: &Path) -> Result<()> {
    let target = to.join(folder.file_name().unwrap_or_default());
    fs::rename(folder, &target).map_err(io(folder))
}

/// Sees to it that a name in a folder is on the disk; where that is not possible, the system does it in its time.
pub(crate) fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(store: &Path) -> Vec<String> {
        let name = |batch: Batch| batch.folder.file_name().unwrap().to_str().unwrap().to_owned();
        batches(store).unwrap().into_iter().map(name).collect()
    }

    #[test]
    fn each_batch_is_listed_once_at_every_step() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["batches/00000001", "batches/00000002", "batches/00000003", "batches/.half"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        assert_eq!(names(folder.path()), ["00000001", "00000002", "00000003"]);
        fs::create_dir_all(at("merging/00000001-00000002")).unwrap();
        let merged = ["00000001-00000002", "00000003"];
        assert_eq!(names(folder.path()), merged);
        fs::create_dir_all(at("replaced")).unwrap();
        for name in ["00000001", "00000002"] {
            fs::rename(at("batches").join(name), at("replaced").join(name)).unwrap();
            assert_eq!(names(folder.path()), merged);
        }
        fs::rename(at("merging/00000001-00000002"), at("batches/00000001-00000002")).unwrap();
        assert_eq!(names(folder.path()), merged);
        // A merged one is merged again.
        fs::create_dir_all(at("batches/00000001-00000003")).unwrap();
        assert_eq!(names(folder.path()), ["00000001-00000003"]);
    }
}
