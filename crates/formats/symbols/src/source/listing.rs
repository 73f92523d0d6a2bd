//! Finding files whatever the case of their names: stores are written on Windows, which has none, and read on systems that have.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Entries of a folder that are looked at. Microsoft's own store has some 100,000 names.
const MAX_ENTRIES: usize = 2_000_000;
/// Folders whose entries are remembered.
const MAX_FOLDERS: usize = 512;

type Names = HashMap<String, OsString>;

/// Lists folders, and remembers those that are asked often.
#[derive(Debug, Default)]
pub struct Listings {
    known: Mutex<HashMap<PathBuf, Arc<Names>>>,
}

impl Listings {
    /// The file below `root`, by components that the caller has validated. `None` if there is none.
    pub fn find(&self, root: &Path, components: &[&str]) -> Option<PathBuf> {
        let path = self.entry(root, components)?;
        path.is_file().then_some(path)
    }

    /// The file or folder below `root`.
    pub fn entry(&self, root: &Path, components: &[&str]) -> Option<PathBuf> {
        let exact: PathBuf = std::iter::once(root).chain(components.iter().map(Path::new)).collect();
        if exact.exists() {
            return Some(exact);
        }
        let mut path = root.to_path_buf();
        for (level, component) in components.iter().enumerate() {
            let next = path.join(component);
            if next.exists() {
                path = next;
                continue;
            }
            let lower = component.to_lowercase();
            // The root is asked for every module, the folders below for one each.
            let real =
                if level == 0 { self.names(&path).get(&lower).cloned() } else { list(&path).remove(&lower) };
            path.push(real?);
        }
        path.exists().then_some(path)
    }

    fn names(&self, folder: &Path) -> Arc<Names> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = known.get(folder) {
            return Arc::clone(names);
        }
        let names = Arc::new(list(folder));
        if known.len() < MAX_FOLDERS {
            known.insert(folder.to_path_buf(), Arc::clone(&names));
        }
        names
    }
}

/// A folder that cannot be listed holds nothing.
fn list(folder: &Path) -> Names {
    let Ok(entries) = fs::read_dir(folder) else { return Names::new() };
    entries
        .flatten()
        .take(MAX_ENTRIES)
        .map(|entry| entry.file_name())
        .map(|name| (name.to_string_lossy().to_lowercase(), name))
        .collect()
}
