//! Files of `/proc`.

use std::path::Path;

/// A small file of `/proc`, as text; what it holds beyond 256 KB is left out.
pub(super) fn small(path: impl AsRef<Path>) -> Option<String> {
    up_to(256 << 10, path)
}

/// A file of `/proc` as text, at most so many bytes of it.
pub(super) fn up_to(bytes: u64, path: impl AsRef<Path>) -> Option<String> {
    use std::io::Read;
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(bytes).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}
