//! Which traces the page may open: regular files in folders that were named when the server began.

use crate::fault::Fault;
use std::path::{Path, PathBuf};

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
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("closed/d.etl"), at("open/link.etl")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", at("open/zero.etl")).unwrap();
            assert!(!found("link.etl".into()) && !found("zero.etl".into()));
            assert!(!found(at("open")), "a folder with links is not opened");
        }
    }
}
