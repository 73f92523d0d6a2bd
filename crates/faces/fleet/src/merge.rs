//! Merging: many small batches become one, so that a store that is added to for months stays a few files for each table.
//!
//! A merged batch is called after the first and the last of those that it has, `00000001-00000064`. It is written whole, gets its name in
//! `merging`, and only then the others leave `batches` and it comes in. Whoever lists the batches of the store ([`crate::store::Store::batches`]) looks into `merging`
//! as well and leaves out what a merged one has: at any moment each row is seen once. A program that is killed leaves what the next one
//! finishes.
//!
//! What is removed is what merging leaves: files of tables in folders of batches. Anything else in these places was put there by somebody
//! else, and stays.

use crate::batch::{Batch, Lock, MERGING, finish, name_of, sync_folder};
use crate::contract::{self, schema};
use crate::error::{FleetError, Result, io};
use crate::parquet_files::{self, Writer};
use crate::store::{Store, file_name};
use etwhy_scratch::Scratch;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Batches of this size are left as they are.
const LARGE: u64 = 64 << 20;
/// Small batches that are worth a merged one.
const MANY: usize = 16;

/// Merges small batches if there are many, with the leave to write. True if it did. What a newer program wrote is left alone: this one does not
/// know all of it.
///
/// # Errors
/// If something cannot be read or written; no row is lost.
pub fn merge(store: &Store, lock: &Lock) -> Result<bool> {
    finish(store.path(), &store.files_of_tables()?, lock)?;
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
    let target = merging.join(name_of(first.first, last.last));
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
                Err(FleetError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                other => other?,
            }
        }
        if let Some(writer) = writer {
            writer.finish()?;
        }
    }
    fs::rename(&new, &target).map_err(io(&target))?;
    sync_folder(&merging);
    finish(store.path(), &store.files_of_tables()?, lock)?;
    Ok(true)
}

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0u64;
    for entry in fs::read_dir(folder).map_err(io(folder))? {
        sum = sum.saturating_add(entry.and_then(|entry| entry.metadata()).map_err(io(folder))?.len());
    }
    Ok(sum)
}
