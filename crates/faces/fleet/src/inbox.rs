//! What was given: folders, patterns, archives, lists.

use crate::error::{Result, io};
use etwhy_input::{Kind, SNIFF_LEN, sniff};
use etwhy_table::Pattern;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
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
    /// Its path, from the root.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was changed last, nanoseconds since 1970 UTC.
    pub modified_ns: i64,
}

impl Found {
    /// True if the file is still as it was found.
    pub fn is_unchanged(&self) -> bool {
        let now = fs::metadata(&self.path).ok().and_then(|what| found(&self.path, &what));
        now.as_ref() == Some(self)
    }
}

/// What was found in what was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inbox {
    /// Files, each once, in the order of their names.
    pub files: Vec<Found>,
    /// Folders that could not be looked through, each with the reason.
    pub shut: Vec<(PathBuf, String)>,
}

/// All files of what was given, by their whole paths. Folders are looked through with all in them; pipes, devices and links to folders are left
/// out, and folders that do not let us in are named. What does not exist is a pattern (`traces/*.etl`) for those whose shell knows none.
///
/// # Errors
/// If something that was given does not exist, cannot be read, or is neither a file nor a folder.
pub fn list(given: &[PathBuf]) -> Result<Inbox> {
    let mut files = BTreeSet::new();
    let mut shut = Vec::new();
    for given in given {
        // A store is asked from other folders than it was filled from.
        let path = &std::path::absolute(given).map_err(io(given))?;
        match fs::metadata(path) {
            Ok(what) if what.is_dir() => {
                let entries = fs::read_dir(path).map_err(io(given))?;
                walk(path, entries, MAX_DEPTH, &mut files, &mut shut);
            }
            Ok(what) => match found(path, &what) {
                Some(found) => drop(files.insert(found)),
                // A pipe or a device: whoever opens it may wait for ever.
                None => {
                    let why = std::io::Error::new(ErrorKind::InvalidInput, "neither a file nor a folder");
                    return Err(io(given)(why));
                }
            },
            Err(error) => match matching(path) {
                Some(list) => {
                    for path in list {
                        match fs::metadata(&path) {
                            Ok(what) if what.is_dir() => enter(&path, MAX_DEPTH, &mut files, &mut shut),
                            Ok(what) => files.extend(found(&path, &what)),
                            // A link to nothing, or gone meanwhile.
                            Err(_) => {}
                        }
                    }
                }
                None => return Err(io(given)(error)),
            },
        }
    }
    Ok(Inbox { files: files.into_iter().collect(), shut })
}

/// A path as the store has it. What is no text in it is escaped, so that two names stay two.
pub fn text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => path.as_os_str().as_encoded_bytes().escape_ascii().to_string(),
    }
}

fn found(path: &Path, what: &fs::Metadata) -> Option<Found> {
    let since = what.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified_ns = since.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0);
    what.is_file().then(|| Found { path: path.to_path_buf(), bytes: what.len(), modified_ns })
}

/// Looks through a folder in another one: that it is closed to us costs what is in it and nothing else.
fn enter(folder: &Path, depth: usize, files: &mut BTreeSet<Found>, shut: &mut Vec<(PathBuf, String)>) {
    match fs::read_dir(folder) {
        Ok(entries) => walk(folder, entries, depth, files, shut),
        // Gone meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => shut.push((folder.to_path_buf(), error.to_string())),
    }
}

fn walk(
    folder: &Path,
    entries: fs::ReadDir,
    depth: usize,
    files: &mut BTreeSet<Found>,
    shut: &mut Vec<(PathBuf, String)>,
) {
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => {
                shut.push((folder.to_path_buf(), error.to_string()));
                return;
            }
        };
        // Links to folders could make a loop; links to files are files.
        let Ok(link) = fs::symlink_metadata(&path) else { continue };
        if link.is_dir() {
            match depth.checked_sub(1) {
                _ if is_ours(&path) => {}
                Some(depth) => enter(&path, depth, files, shut),
                None => shut.push((path, format!("below {MAX_DEPTH} other folders"))),
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
}

/// A store, or a folder for temporary files of ours: what is in there was not given.
fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.join(etwhy_scratch::MARK).exists() || name == crate::batch::BATCHES
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
            list(given).unwrap().files.into_iter().map(strip).collect()
        };
        let all = [folder.path().to_path_buf(), at("pc1/a.etl")];
        assert_eq!(names(&all), ["c.etl.zst", "pc1/a.etl", "pc1/old/b.ETL"]);
        assert_eq!(names(&[at("pc1/*.txt")]), ["pc1/readme.txt"]);
        assert!(list(&[at("nothing*.etl")]).is_err() && list(&[at("nothing")]).is_err());
        assert!(!is_archive(&at("c.etl.zst")).unwrap());
        assert!(list(&[PathBuf::from(".")]).unwrap().files.iter().all(|found| found.path.is_absolute()));
    }

    #[test]
    fn a_folder_that_lets_nobody_in_costs_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let deep = at(&"d/".repeat(MAX_DEPTH + 3));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("deep.etl"), b"x").unwrap();
        fs::write(at("a.etl"), b"x").unwrap();
        let inbox = list(&[folder.path().to_path_buf()]).unwrap();
        assert_eq!((inbox.files.len(), inbox.shut.len()), (1, 1), "{inbox:?}");
        assert!(inbox.shut[0].1.contains("below 32"), "{inbox:?}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt as _, symlink};
            fs::create_dir(at("shut")).unwrap();
            fs::write(at("shut/b.etl"), b"x").unwrap();
            symlink(".", at("loop")).unwrap();
            symlink("nothing.etl", at("dangling.etl")).unwrap();
            fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o000)).unwrap();
            let is_open = fs::read_dir(at("shut")).is_ok();
            let inbox = list(&[folder.path().to_path_buf(), at("*.etl")]).unwrap();
            fs::set_permissions(at("shut"), fs::Permissions::from_mode(0o755)).unwrap();
            // The administrator is let in everywhere.
            let expected = if is_open { (2, 1) } else { (1, 2) };
            assert_eq!((inbox.files.len(), inbox.shut.len()), expected, "{inbox:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_text_stay_apart() {
        use std::os::unix::ffi::OsStrExt as _;
        let name = |bytes: &[u8]| text(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(name(b"x\xff.etl"), "x\\xff.etl");
        assert_ne!(name(b"x\xff.etl"), name(b"x\xfe.etl"));
        assert_eq!(name("\u{e4} b.etl".as_bytes()), "\u{e4} b.etl");
    }
}
