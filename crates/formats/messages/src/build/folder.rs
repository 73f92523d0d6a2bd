//! Folders and single files.

use super::Report;
use super::source::{Entry, Source, WHOLE_MAX, wanted};
use crate::error::Error;
use crate::pe::{self, Image};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// How deep folders are followed. `C:\Windows\System32\DriverStore\FileRepository\x\y` has five.
const DEPTH_MAX: usize = 24;
/// How many files are looked at; a whole Windows has some hundred thousand.
const FILES_MAX: usize = 4_000_000;
/// Folders with copies of what stands elsewhere, or with nothing that is installed.
const SKIPPED: [&str; 5] = ["winsxs", "servicing", "softwaredistribution", "$recycle.bin", "windows.old"];

/// A folder with all that is in it.
pub(crate) struct Folder {
    files: Vec<PathBuf>,
    root: PathBuf,
}

impl Folder {
    /// Lists a folder; links are not followed.
    pub(crate) fn open(root: &Path, report: &mut Report) -> Self {
        let mut files = Vec::new();
        let mut left = FILES_MAX;
        let mut folders = vec![(root.to_owned(), 0usize)];
        while let Some((folder, depth)) = folders.pop() {
            let listing = match std::fs::read_dir(&folder) {
                Ok(listing) => listing,
                Err(e) => {
                    report.fail(&folder.display().to_string(), e);
                    continue;
                }
            };
            for entry in listing.flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                if kind.is_dir() {
                    let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
                    if SKIPPED.contains(&name.as_str()) {
                        continue;
                    }
                    match depth < DEPTH_MAX {
                        true => folders.push((path, depth + 1)),
                        false => report.fail(&path.display().to_string(), "is too deep in its folder"),
                    }
                } else if wanted(&path.to_string_lossy()).is_some()
                    && (kind.is_file() || std::fs::metadata(&path).is_ok_and(|m| m.is_file()))
                {
                    left -= 1;
                    files.push(path);
                }
                if left == 0 {
                    report.fail(&root.display().to_string(), format!("has more than {FILES_MAX} files"));
                    folders.clear();
                    break;
                }
            }
        }
        files.sort();
        Self { files, root: root.to_owned() }
    }

    /// One file, whatever its name.
    pub(crate) fn single(path: &Path) -> Result<Self, Error> {
        // Its translations beside it, as Windows has them: en-US/x.dll.mui.
        let mut files = vec![path.to_owned()];
        let root = path.parent().map(Path::to_owned).unwrap_or_default();
        if let Some(name) = path.file_name() {
            let mut mui = name.to_owned();
            mui.push(".mui");
            let folder = if root.as_os_str().is_empty() { Path::new(".") } else { root.as_path() };
            if let Ok(listing) = std::fs::read_dir(folder) {
                for entry in listing.flatten().take(10_000) {
                    let candidate = entry.path().join(&mui);
                    let is_language = entry.file_name().to_str().and_then(crate::lang::parse).is_some();
                    if is_language && candidate.is_file() {
                        files.push(candidate);
                    }
                }
            }
        }
        files.get_mut(1..).unwrap_or_default().sort();
        Ok(Self { files, root })
    }

    fn path(&self, entry: &Entry) -> Result<&Path, Error> {
        self.files.get(entry.index).map(PathBuf::as_path).ok_or_else(|| Error::NotUsable {
            path: PathBuf::from(&entry.path),
            what: "is not in the folder".to_owned(),
        })
    }
}

impl Source for Folder {
    fn entries(&mut self) -> Vec<Entry> {
        self.files
            .iter()
            .enumerate()
            .map(|(index, path)| Entry {
                path: path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().replace('\\', "/"),
                index,
            })
            .collect()
    }

    fn bytes(&mut self, entry: &Entry) -> Result<Vec<u8>, Error> {
        let path = self.path(entry)?;
        let file = File::open(path).map_err(Error::io(path))?;
        let size = file.metadata().map_err(Error::io(path))?.len();
        if size > WHOLE_MAX {
            return Err(Error::NotUsable {
                path: path.to_owned(),
                what: format!("has {size} bytes, at most {WHOLE_MAX} are read"),
            });
        }
        let mut bytes = Vec::new();
        file.take(WHOLE_MAX).read_to_end(&mut bytes).map_err(Error::io(path))?;
        Ok(bytes)
    }

    fn image(&mut self, entry: &Entry) -> Result<Image, Error> {
        let path = self.path(entry)?;
        let file = File::open(path).map_err(Error::io(path))?;
        // Headers and resources are read, and not the code between them.
        pe::read(&object::ReadCache::new(file))
    }
}
