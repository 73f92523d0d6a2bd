//! Folders walked for tests' input.

use std::path::{Path, PathBuf};

/// All files below a folder whose names end so, sorted.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// All traces below a folder, sorted.
pub fn traces(folder: &Path) -> Vec<PathBuf> {
    files(folder, "etl")
}

/// The shipped scenarios of these folders (`scenarios`, `scenarios/tables`, ...), without those below, sorted.
pub fn scenarios(folders: &[&str]) -> Vec<PathBuf> {
    let folders = folders.iter().map(|folder| crate::root().join(folder));
    let mut all: Vec<PathBuf> = folders
        .flat_map(|folder| files(&folder, "toml").into_iter().filter(move |f| f.parent() == Some(&folder)))
        .collect();
    all.sort();
    all
}
