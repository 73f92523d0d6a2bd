//! Files of a folder that the user gave.

use crate::anomalies::SOURCE_UNREADABLE;
use etwhy_etl::Ledger;
use std::path::{Path, PathBuf};

/// Deepest folder that is entered: links may form circles.
const MAX_DEPTH: usize = 8;

/// Files with one of the extensions below `path` in a stable order, or `path` itself if it is a file.
pub(crate) fn find(path: &Path, extensions: &[&str], limit: usize, ledger: &mut Ledger) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let mut found = Vec::new();
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) => {
                ledger.note(&SOURCE_UNREADABLE, 1, || format!("{}: {e}", folder.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                if depth < MAX_DEPTH {
                    folders.push((path, depth + 1));
                }
            } else if path
                .extension()
                .and_then(|e| e.to_str())
                .is_some_and(|e| extensions.iter().any(|wanted| e.eq_ignore_ascii_case(wanted)))
                && found.len() < limit
                // Nobody writes into a pipe that came with others' files.
                && path.is_file()
            {
                found.push(path);
            }
        }
    }
    found.sort();
    // One that could not be opened is counted already.
    if found.is_empty() && path.is_dir() {
        let wanted = extensions.join(", .");
        ledger.note(&SOURCE_UNREADABLE, 1, || format!("{}: holds no file .{wanted}", path.display()));
    }
    found
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_left_out() {
        let folder = std::env::temp_dir().join(format!("etwhy-found-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("endless.man")).unwrap();
        std::fs::write(folder.join("a.man"), "x").unwrap();
        let found = find(&folder, &["man"], 10, &mut Ledger::new());
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [folder.join("a.man")]);
    }
}
