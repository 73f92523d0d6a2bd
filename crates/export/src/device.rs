//! Names that are no files.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// True if what stands at `path` is a device or a pipe, as `/dev/null` and, on Windows, `NUL` and `COM1` in any folder. What is
/// written goes into it, and nothing may take its place.
pub fn is_device(path: &Path) -> bool {
    if cfg!(windows) {
        path.file_name().and_then(|name| name.to_str()).is_some_and(is_reserved)
    } else {
        path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
    }
}

/// Opens a file for output: an empty new one, or the device of that name. Devices cannot be made or cut, and some systems
/// refuse to try.
///
/// # Errors
/// The system's.
pub fn create(path: &Path) -> io::Result<File> {
    if is_device(path) { OpenOptions::new().write(true).open(path) } else { File::create(path) }
}

/// Names that Windows reserves, with and without an extension (Microsoft: "Naming Files, Paths, and Namespaces").
fn is_reserved(name: &str) -> bool {
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |kind: &str| {
        let number = stem.strip_prefix(kind).map(|rest| rest.chars().collect::<Vec<char>>());
        matches!(number.as_deref(), Some(['0'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}']))
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || numbered("COM")
        || numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_known_in_all_forms() {
        for name in
            ["NUL", "nul", "con", "Aux.txt", "COM1", "lpt9.csv", "NUL.tar.gz", "COM\u{b2}", "nul ", "CON:"]
        {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["null", "console", "COM", "COM10", "LPTx", "a.nul", "", "process.csv"] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn files_and_what_is_missing_are_no_devices() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert!(!is_device(&file));
        std::fs::write(&file, "x").unwrap();
        assert!(!is_device(&file) && !is_device(folder.path()));
        assert!(is_device(Path::new(if cfg!(windows) { "C:\\x\\NUL" } else { "/dev/null" })));
    }
}
