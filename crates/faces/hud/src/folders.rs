//! Which traces the page may open: regular files in folders that were named when the server began.

use crate::fault::Fault;
use serde::Serialize;
use std::path::{Path, PathBuf};
use ts_rs::TS;

/// The folders, without links.
#[derive(Clone, Debug, Default)]
pub struct Folders(Vec<PathBuf>);

/// Entries of a folder that are looked at: a recording of more segments is opened at the start.
const MOST_ENTRIES: usize = 10_000;

impl Folders {
    /// Those of a list that are there.
    pub fn new(folders: &[PathBuf]) -> Folders {
        let mut real: Vec<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        real.sort();
        real.dedup();
        Folders(real)
    }

    /// Their paths, for people.
    pub fn shown(&self) -> Vec<String> {
        self.0.iter().map(|folder| folder.display().to_string()).collect()
    }

    /// The file, or folder of files, that a path means, links followed. A path that is not absolute is one in a folder of the list.
    ///
    /// # Errors
    /// It is not in these folders (what is elsewhere is not told from what is nowhere), or no regular file.
    pub fn find(&self, path: &Path) -> Result<PathBuf, Fault> {
        if self.0.is_empty() {
            return Err(Fault::Forbidden(
                "no folder was named when the server was started: `etwhy serve --folder DIR` lets the page open traces in it".to_owned(),
            ));
        }
        // An absolute path replaces the folder.
        let real = self.0.iter().filter_map(|folder| folder.join(path).canonicalize().ok());
        let Some(real) = real.into_iter().find(|real| self.0.iter().any(|folder| real.starts_with(folder)))
        else {
            return Err(Fault::Missing(format!(
                "{}: there is no such file in {}; `etwhy serve --folder DIR` adds a folder",
                path.display(),
                self.shown().join(", ")
            )));
        };
        let kind = std::fs::metadata(&real).map_err(Fault::wrong)?.file_type();
        if kind.is_file() || (kind.is_dir() && holds_files_only(&real)) {
            return Ok(real);
        }
        Err(Fault::Wrong(format!("{}: neither a regular file nor a folder of such", path.display())))
    }
}

/// What a folder holds.
#[derive(Debug, Serialize, TS)]
pub struct Listing {
    /// Its path.
    path: String,
    /// The folder that it lies in, if that may be seen.
    above: Option<String>,
    /// Folders first, then files by name.
    entries: Vec<Entry>,
    /// There are others.
    more: bool,
}

/// A file or folder.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "FolderEntry")]
pub struct Entry {
    name: String,
    path: String,
    folder: bool,
    /// Bytes.
    size: u64,
    /// Milliseconds since 1970 UTC.
    modified_ms: Option<f64>,
    /// Its name is that of a trace, an extract or an archive that may hold one.
    trace: bool,
}

/// Entries of an answer.
const MOST_SHOWN: usize = 2_000;

/// Endings of files that hold traces, or may.
const ENDINGS: &[&str] = &["etl", "zip", "7z", "gz", "zst", "lz4", "xz", "bz2", "diagsession", "cab", "vspx"];

impl Folders {
    /// What a folder holds, without links; without a path the folders themselves.
    ///
    /// # Errors
    /// It is not in these folders, or cannot be read.
    pub fn list(&self, path: Option<&Path>) -> Result<Listing, Fault> {
        let Some(path) = path else {
            let all = self.0.iter().map(|folder| Entry {
                name: folder.display().to_string(),
                path: folder.display().to_string(),
                folder: true,
                size: 0,
                modified_ms: None,
                trace: false,
            });
            return Ok(Listing { path: String::new(), above: None, entries: all.collect(), more: false });
        };
        let inside = |real: &Path| self.0.iter().any(|folder| real.starts_with(folder));
        let real = path.canonicalize().ok().filter(|real| real.is_dir() && inside(real));
        let real =
            real.ok_or_else(|| Fault::Missing(format!("{}: there is no such folder here", path.display())))?;
        let read = std::fs::read_dir(&real).map_err(Fault::wrong)?;
        let mut entries: Vec<Entry> =
            read.take(MOST_ENTRIES).filter_map(|entry| described(&entry.ok()?)).collect();
        entries.sort_by(|a, b| b.folder.cmp(&a.folder).then_with(|| a.name.cmp(&b.name)));
        let more = entries.len() > MOST_SHOWN;
        entries.truncate(MOST_SHOWN);
        let above = real.parent().filter(|above| inside(above)).map(|above| above.display().to_string());
        Ok(Listing { path: real.display().to_string(), above, entries, more })
    }
}

/// An entry, unless it is a link, a device or hidden.
fn described(entry: &std::fs::DirEntry) -> Option<Entry> {
    let name = entry.file_name().to_str()?.to_owned();
    let kind = entry.file_type().ok()?;
    if name.starts_with('.') || !(kind.is_file() || kind.is_dir()) {
        return None;
    }
    let facts = entry.metadata().ok()?;
    let since = facts.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let ending = Path::new(&name).extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    let trace = kind.is_file() && ENDINGS.contains(&ending.as_str());
    Some(Entry {
        path: entry.path().display().to_string(),
        name,
        folder: kind.is_dir(),
        size: facts.len(),
        modified_ms: since.map(|since| since.as_millis() as f64),
        trace,
    })
}

fn holds_files_only(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut entries = entries.enumerate();
    entries.all(|(n, entry)| {
        let kind = entry.and_then(|entry| entry.file_type());
        n < MOST_ENTRIES && kind.is_ok_and(|kind| kind.is_file() || kind.is_dir())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folders() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["open/in", "open2", "closed"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["open/a.etl", "open/in/b.etl", "open2/c.etl", "closed/d.etl"] {
            std::fs::write(at(name), b"x").unwrap();
        }
        let folders = Folders::new(&[at("open"), at("nowhere")]);
        let found = |path: PathBuf| folders.find(&path).is_ok();
        assert!(
            found(at("open/a.etl"))
                && found("a.etl".into())
                && found("in/b.etl".into())
                && found("in".into())
        );
        for bad in ["closed/d.etl", "open2/c.etl", "open/../closed/d.etl", "open/none.etl", "closed"] {
            assert!(!found(at(bad)), "{bad}");
        }
        for bad in
            ["../closed/d.etl", "../open2/c.etl", "/etc/passwd", "/dev/zero", "/dev/stdin", "", "a.etl\0"]
        {
            assert!(bad.is_empty() || !found(bad.into()), "{bad}");
        }
        let told = |path: &str| folders.find(&at(path)).unwrap_err().to_string().replace(path, "");
        assert_eq!(
            told("closed/d.etl"),
            told("closed/nothing.etl"),
            "it must not tell what there is elsewhere"
        );
        assert!(Folders::default().find(&at("open/a.etl")).unwrap_err().to_string().contains("--folder"));
        let listed = |path: &str| folders.list(Some(&at(path)));
        let names = |path: &str| -> Vec<String> {
            listed(path).unwrap().entries.into_iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names("open"), ["in", "a.etl"]);
        assert!(listed("open").unwrap().above.is_none() && listed("open/in").unwrap().above.is_some());
        for bad in ["closed", "open2", "open/..", "open/a.etl", "open/none", ""] {
            assert!(listed(bad).is_err(), "{bad}");
        }
        assert_eq!(folders.list(None).unwrap().entries.len(), 1);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("closed"), at("open/away")).unwrap();
            assert!(
                listed("open/away").is_err() && names("open") == ["in", "a.etl"],
                "links are not followed"
            );
            std::fs::remove_file(at("open/away")).unwrap();
            std::os::unix::fs::symlink(at("closed/d.etl"), at("open/link.etl")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", at("open/zero.etl")).unwrap();
            assert!(!found("link.etl".into()) && !found("zero.etl".into()));
            assert!(!found(at("open")), "a folder with links is not opened");
        }
    }
}
