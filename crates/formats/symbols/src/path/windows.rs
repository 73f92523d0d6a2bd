//! Paths as Windows writes them, on every system.

use std::path::{Path, PathBuf};

/// True for `C:\…`, `\\server\share\…` and other paths that mean something on Windows only.
pub fn is_windows_path(text: &str) -> bool {
    let mut chars = text.chars();
    let drive = chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.next() == Some(':');
    drive || text.starts_with(r"\\") || text.starts_with(r"\")
}

/// The path on this machine. `None` for a path of Windows on another system: as a relative path it would be a file whose
/// name has backslashes.
pub fn local_path(text: &str) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(PathBuf::from(text));
    }
    if is_windows_path(text) {
        return None;
    }
    if let Some(rest) = text.strip_prefix("~/")
        && let Some(home) = std::env::var_os("HOME")
    {
        return Some(Path::new(&home).join(rest));
    }
    Some(PathBuf::from(text))
}
