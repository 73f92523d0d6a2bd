//! What a server did not have, remembered in the cache folder.

use super::partial::{hidden, note};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Remembers it. What cannot be written is asked again next time.
pub fn remember(folder: &Path, url: &str) {
    let _ = note(&hidden(folder, "missing", url), &[url, &now().to_string()]);
}

/// Seconds since it was remembered.
pub fn since(folder: &Path, url: &str) -> Option<u64> {
    let mut text = String::new();
    fs::File::open(hidden(folder, "missing", url)).ok()?.take(1 << 16).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    if lines.next() != Some(url) {
        return None;
    }
    // A clock that was set back must not keep it missing for ever.
    now().checked_sub(lines.next()?.parse().ok()?)
}

/// Forgets it: it was found.
pub fn forget(folder: &Path, url: &str) {
    let _ = fs::remove_file(hidden(folder, "missing", url));
}
