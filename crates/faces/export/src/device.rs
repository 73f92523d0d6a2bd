//! Names that are no files.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// True for `-`, which means standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// True if what stands at `path` is a device or a pipe, as `/dev/null` and, on Windows, `NUL` and `COM1` in any folder. What is
/// written goes into it, and nothing may take its place.
pub fn is_device(path: &Path) -> bool {
    if is_stdout(path) {
        true
    } else if cfg!(windows) {
        path.file_name().and_then(|name| name.to_str()).is_some_and(is_reserved)
    } else {
        path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
    }
}

/// Endings of what was recorded, and of archives of it. No output has one of them.
const RECORDED: [&str; 7] = ["etl", "evtx", "blg", "zip", "cab", "7z", "diagsession"];

/// Refuses to write over a file that was recorded: it cannot be had again, and `--html *.etl` names one quickly.
///
/// # Errors
/// If such a file is there.
pub fn spare_recording(path: &Path) -> io::Result<()> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if RECORDED.iter().any(|recorded| ending.eq_ignore_ascii_case(recorded)) && path.is_file() {
        let why = "is a recording, which no output replaces; name another file";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    Ok(())
}

/// Opens a file for output: an empty new one, standard output (`-`), or the device of that name. Devices cannot be made or cut, and some systems
/// refuse to try. No [recording](spare_recording) is replaced.
///
/// # Errors
/// The system's.
pub fn create(path: &Path) -> io::Result<File> {
    if is_stdout(path) {
        #[cfg(unix)]
        let own = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned();
        #[cfg(windows)]
        let own = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned();
        return own.map(File::from);
    }
    spare_recording(path)?;
    if is_device(path) { OpenOptions::new().write(true).open(path) } else { File::create(path) }
}

/// Writes a whole file at once, as [`create`] opens it.
///
/// # Errors
/// The system's.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use io::Write as _;
    create(path)?.write_all(bytes)
}

/// The path in a form that SQLite opens. It asks Windows by itself, which takes more than 260 characters only in the form that it
/// does not interpret (`\\\\?\\`); Rust's own library does the same for files that it opens.
pub fn for_sqlite(path: &Path) -> std::path::PathBuf {
    #[cfg(windows)]
    {
        use std::os::windows::ffi::{OsStrExt as _, OsStringExt as _};
        use std::path::{Component, Prefix};

        /// Where Windows begins to refuse: 260 with the final zero, less a name of `8.3` form.
        const SHORT: usize = 260 - 13;
        let Ok(full) = std::path::absolute(path) else { return path.to_owned() };
        let units: Vec<u16> = full.as_os_str().encode_wide().collect();
        if units.len() < SHORT {
            return path.to_owned();
        }
        let Some(Component::Prefix(prefix)) = full.components().next() else { return full };
        let (before, skip) = match prefix.kind() {
            Prefix::Disk(_) => (r"\\?\", 0),
            Prefix::UNC(..) => (r"\\?\UNC", 1),
            _ => return full,
        };
        let rest = units.get(skip..).unwrap_or_default();
        let all: Vec<u16> = before.encode_utf16().chain(rest.iter().copied()).collect();
        std::ffi::OsString::from_wide(&all).into()
    }
    #[cfg(not(windows))]
    path.to_owned()
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
    #[cfg(windows)]
    fn long_paths_are_told_so() {
        let long = "long folder name\\".repeat(20);
        let of = |path: &str| for_sqlite(Path::new(path)).to_str().unwrap().to_owned();
        assert_eq!(of(&format!("C:\\{long}x")), format!(r"\\?\C:\{long}x"));
        assert_eq!(of(&format!(r"\\server\share\{long}x")), format!(r"\\?\UNC\server\share\{long}x"));
        assert_eq!(of(&format!(r"\\?\C:\{long}x")), format!(r"\\?\C:\{long}x"));
        assert_eq!(of(r"C:\short\x"), r"C:\short\x");
    }

    #[test]
    fn no_recording_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.ETL");
        // What does not exist yet is not lost.
        assert!(spare_recording(&trace).is_ok());
        std::fs::write(&trace, "x").unwrap();
        assert!(create(&trace).is_err() && write_whole(&trace, b"y").is_err());
        let error = crate::replace_file(&trace, |out| Ok(out.write_all(b"y")?)).unwrap_err();
        assert!(matches!(error, crate::ExportError::Occupied { .. }), "{error}");
        assert_eq!(std::fs::read(&trace).unwrap(), b"x");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let tables = crate::formats().flat_map(|format| format.extensions);
        let profiles = crate::profiles::ALL.iter().flat_map(|format| format.extensions);
        assert!(tables.chain(profiles).all(|ending| !RECORDED.contains(ending)));
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
