//! What was given: folders, patterns, archives, lists.

use crate::error::{Result, io};
use etwhy_input::{Kind, SNIFF_LEN, sniff};
use etwhy_table::Pattern;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// How files are called that are taken from folders: traces, and what may hold some.
const ENDINGS: [&str; 10] = [
    ".etl",
    ".etl.gz",
    ".etl.zst",
    ".etl.lz4",
    ".etl.xz",
    ".etl.bz2",
    ".zip",
    ".7z",
    ".diagsession",
    ".etl.zip",
];
/// Folders in folders that are looked into.
const MAX_DEPTH: usize = 32;

/// A file that was found. Equal ones have not been changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Its path, as given.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was changed last, nanoseconds since 1970 UTC.
    pub modified_ns: i64,
}

/// All files of what was given, each once, in the order of their names. Folders are looked through with all in them, pipes and devices in them
/// left out; what does not exist is a pattern (`traces/*.etl`) for those whose shell knows none.
///
/// # Errors
/// If something does not exist or is neither a file nor a folder, or a folder cannot be read.
pub fn list(given: &[PathBuf]) -> Result<Vec<Found>> {
    let mut files = BTreeSet::new();
    for path in given {
        match fs::metadata(path) {
            Ok(what) if what.is_dir() => walk(path, MAX_DEPTH, &mut files)?,
            Ok(what) => match found(path, &what) {
                Some(found) => drop(files.insert(found)),
                // A pipe or a device: whoever opens it may wait for ever.
                None => {
                    let why =
                        std::io::Error::new(std::io::ErrorKind::InvalidInput, "neither a file nor a folder");
                    return Err(io(path)(why));
                }
            },
            Err(error) => match matching(path) {
                Some(list) => {
                    for path in list {
                        let what = fs::metadata(&path).map_err(io(&path))?;
                        match what.is_dir() {
                            true => walk(&path, MAX_DEPTH, &mut files)?,
                            false => files.extend(found(&path, &what)),
                        }
                    }
                }
                None => return Err(io(path)(error)),
            },
        }
    }
    Ok(files.into_iter().collect())
}

fn found(path: &Path, what: &fs::Metadata) -> Option<Found> {
    let since = what.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified_ns = since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
    what.is_file().then(|| Found { path: path.to_path_buf(), bytes: what.len(), modified_ns })
}

fn walk(folder: &Path, depth: usize, files: &mut BTreeSet<Found>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(io(folder))? {
        let path = entry.map_err(io(folder))?.path();
        // Links to folders could make a loop; links to files are files.
        let Ok(link) = fs::symlink_metadata(&path) else { continue };
        if link.is_dir() {
            if let Some(depth) = depth.checked_sub(1)
                && !is_ours(&path)
            {
                walk(&path, depth, files)?;
            }
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if ENDINGS.iter().any(|ending| name.ends_with(ending))
            && let Ok(what) = fs::metadata(&path)
        {
            files.extend(found(&path, &what));
        }
    }
    Ok(())
}

/// A store, or a folder for temporary files of ours: what is in there was not given.
fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.join(etwhy_scratch::MARK).exists() || name == crate::store::BATCHES
}

/// Files of a folder that fit a pattern in the last part of a path; `None` if it is no pattern or nothing fits.
fn matching(path: &Path) -> Option<Vec<PathBuf>> {
    let name = path.file_name()?.to_str().filter(|name| name.contains(['*', '?']))?;
    let pattern = Pattern::parse(name);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut list: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok())
        .filter(|entry| pattern.matches(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    list.sort();
    (!list.is_empty()).then_some(list)
}

/// Whether a file may hold several traces.
///
/// # Errors
/// If it cannot be read.
pub fn is_archive(path: &Path) -> Result<bool> {
    let mut head = Vec::with_capacity(SNIFF_LEN);
    let file = File::open(path).map_err(io(path))?;
    file.take(SNIFF_LEN as u64).read_to_end(&mut head).map_err(io(path))?;
    Ok(Kind::is_archive(sniff(&head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_patterns_are_looked_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("pc1/old")).unwrap();
        fs::create_dir_all(at("store/batches/1")).unwrap();
        for name in ["pc1/a.etl", "pc1/old/b.ETL", "pc1/readme.txt", "c.etl.zst", "store/batches/1/x.etl"] {
            fs::write(at(name), b"x").unwrap();
        }
        let names = |given: &[PathBuf]| -> Vec<String> {
            let strip = |found: Found| {
                found.path.strip_prefix(folder.path()).unwrap().to_string_lossy().replace('\\', "/")
            };
            list(given).unwrap().into_iter().map(strip).collect()
        };
        let all = [folder.path().to_path_buf(), at("pc1/a.etl")];
        assert_eq!(names(&all), ["c.etl.zst", "pc1/a.etl", "pc1/old/b.ETL"]);
        assert_eq!(names(&[at("pc1/*.txt")]), ["pc1/readme.txt"]);
        assert!(list(&[at("nothing*.etl")]).is_err() && list(&[at("nothing")]).is_err());
        assert!(!is_archive(&at("c.etl.zst")).unwrap());
    }
}
