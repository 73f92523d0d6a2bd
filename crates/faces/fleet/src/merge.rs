//! Merging: many small batches become one, so that a store that is added to for months stays a few files for each table.
//!
//! A merged batch is called after the first and the last of those that it has, `00000001-00000064`. It is written whole, gets its name in
//! `merging`, and only then the others leave `batches` and it comes in. Whoever lists the batches of the store ([`crate::store::Store::batches`]) looks into `merging`
//! as well and leaves out what a merged one has: at any moment each row is seen once. A program that is killed leaves what the next one
//! finishes.

use crate::contract::{self, schema};
use crate::error::{FleetError, Result, io};
use crate::parquet_files::{self, Writer};
use crate::store::{BATCHES, Lock, Store, file_name, sync_folder};
use etwhy_scratch::Scratch;
use std::fs;
use std::path::{Path, PathBuf};

/// Merged batches that are whole, on their way into `batches`.
const MERGING: &str = "merging";
/// Batches that a merged one has.
const REPLACED: &str = "replaced";
/// Batches of this size are left as they are.
const LARGE: u64 = 64 << 20;
/// Small batches that are worth a merged one.
const MANY: usize = 16;

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
        Some(Batch { first: first.parse().ok()?, last: last.parse().ok()?, folder: path })
    }

    /// True if it is a part of another one.
    fn is_in(&self, other: &Batch) -> bool {
        other.first <= self.first
            && self.last <= other.last
            && (other.first, other.last) != (self.first, self.last)
    }
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !folder.ends_with(BATCHES) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(io(folder)(error)),
    };
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.map_err(io(folder))?.path();
        all.extend(Batch::named(path).filter(|batch| batch.folder.is_dir()));
    }
    all.sort();
    Ok(all)
}

/// Merges small batches if there are many, with the leave to write. True if it did. What a newer program wrote is left alone: this one does not
/// know all of it.
///
/// # Errors
/// If something cannot be read or written; no row is lost.
pub fn merge(store: &Store, lock: &Lock) -> Result<bool> {
    finish(store, lock)?;
    if store.is_of_newer() {
        return Ok(false);
    }
    let mut run: Vec<Batch> = Vec::new();
    let mut merged = false;
    // Only neighbours: the name of a merged batch says all that it has.
    for batch in store.batches()? {
        match size(&batch.folder)? < LARGE {
            true => run.push(batch),
            false => merged |= merge_all(store, lock, &std::mem::take(&mut run))?,
        }
    }
    Ok(merge_all(store, lock, &run)? || merged)
}

fn merge_all(store: &Store, lock: &Lock, parts: &[Batch]) -> Result<bool> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(false) };
    if parts.len() < MANY {
        return Ok(false);
    }
    let merging = store.path().join(MERGING);
    fs::create_dir_all(&merging).map_err(io(&merging))?;
    let target = merging.join(format!("{:08}-{:08}", first.first, last.last));
    let scratch = Scratch::beside(&merging).map_err(io(&merging))?;
    let new = scratch.path().join("batch");
    fs::create_dir(&new).map_err(io(&new))?;
    for table in contract::tables() {
        let name = file_name(&table.spec.name);
        let mut writer = None;
        for part in parts {
            let read = parquet_files::read(&part.folder.join(&name), &table.spec, |rows| {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => none.insert(Writer::new(&new.join(&name), schema(&table.spec))?),
                };
                writer.write(&rows)
            });
            match read {
                Err(FleetError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        if let Some(writer) = writer {
            writer.finish()?;
        }
    }
    fs::rename(&new, &target).map_err(io(&target))?;
    sync_folder(&merging);
    finish(store, lock)?;
    Ok(true)
}

/// Finishes what was begun: merged batches that are whole take the place of their parts.
///
/// # Errors
/// If a folder cannot be moved; no row is lost.
pub(crate) fn finish(store: &Store, _lock: &Lock) -> Result<()> {
    let (batches, merging, replaced) =
        (store.path().join(BATCHES), store.path().join(MERGING), store.path().join(REPLACED));
    for whole in listed(&merging)? {
        fs::create_dir_all(&replaced).map_err(io(&replaced))?;
        for part in listed(&batches)?.iter().filter(|part| part.is_in(&whole)) {
            move_into(&part.folder, &replaced)?;
        }
        move_into(&whole.folder, &batches)?;
        sync_folder(&batches);
    }
    for folder in [&replaced, &merging] {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(folder)(error)),
            _ => {}
        }
    }
    Ok(())
}

fn move_into(folder: &Path, to: &Path) -> Result<()> {
    let target = to.join(folder.file_name().unwrap_or_default());
    fs::rename(folder, &target).map_err(io(folder))
}

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0u64;
    for entry in fs::read_dir(folder).map_err(io(folder))? {
        sum = sum.saturating_add(entry.and_then(|entry| entry.metadata()).map_err(io(folder))?.len());
    }
    Ok(sum)
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
