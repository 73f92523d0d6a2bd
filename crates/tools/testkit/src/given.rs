//! What a machine may lack. A test that needs it is skipped with one line, or fails where `ETWHY_CORPUS_REQUIRED=1` is set.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Once;

/// Says why something is not tested, also where the output of tests that pass is hidden.
pub fn skipped(why: &str) {
    let _ = std::io::stderr().write_all(format!("skipped: {why}\n").as_bytes());
}

/// Says why something is not tested; fails where it must be.
pub fn missing(what: &str) {
    assert_present(what);
    skipped(what);
}

fn assert_present(what: &str) {
    assert!(std::env::var_os("ETWHY_CORPUS_REQUIRED").is_none_or(|value| value != "1"), "{what}");
}

/// The folder of real traces and logs: `ETWHY_CORPUS`, else `../shared/corpus` beside the repository. Tests without it say so
/// once together.
pub fn corpus() -> Option<PathBuf> {
    static SAID: Once = Once::new();
    let given = std::env::var_os("ETWHY_CORPUS").map(PathBuf::from);
    let folder = given.unwrap_or_else(|| crate::root().join("../shared/corpus"));
    if folder.is_dir() {
        return Some(folder);
    }
    let what = format!("no corpus at {} (set ETWHY_CORPUS to a folder of traces)", folder.display());
    assert_present(&what);
    SAID.call_once(|| skipped(&what));
    None
}

/// A file or folder of the corpus.
pub fn corpus_file(path: &str) -> Option<PathBuf> {
    let file = corpus()?.join(path);
    if file.exists() {
        return Some(file);
    }
    missing(&format!("the corpus has no {path}"));
    None
}

/// The Python that has the readers of other authors (`scripts/test` makes it).
pub fn python() -> Option<OsString> {
    let python = std::env::var_os("ETWHY_PYTHON").filter(|name| !name.is_empty());
    if python.is_none() {
        missing("ETWHY_PYTHON is not set");
    }
    python
}

/// A script of `tests/python`, ready for its arguments.
pub fn script(name: &str) -> Option<Command> {
    let mut command = Command::new(python()?);
    command.arg("-B").arg(crate::root().join("tests/python").join(name));
    Some(command)
}

/// A file or folder of a package in cargo's cache, such as `evtx-0.15.1/samples`.
pub fn packaged(path: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    registries.flatten().map(|registry| registry.path().join(path)).find(|path| path.exists())
}
