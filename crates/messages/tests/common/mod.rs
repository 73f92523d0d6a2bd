//! What tests of files share.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;

/// Says in one line that a test is skipped, or fails if nothing may be skipped.
pub fn skip(test: &str, why: &str) {
    assert!(std::env::var_os("ETWHY_CORPUS_REQUIRED").is_none_or(|v| v != "1"), "{test}: {why}");
    eprintln!("{test}: skipped, {why}");
}

/// The folder of the package `evtx` with DLLs of Windows; none if the package cache does not have it.
pub fn samples(test: &str) -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let found = home.and_then(|home| {
        std::fs::read_dir(home.join("registry/src"))
            .ok()?
            .flatten()
            .map(|registry| registry.path().join("evtx-0.15.1/samples/dlls"))
            .find(|folder| folder.join("adtschema.dll").is_file())
    });
    if found.is_none() {
        skip(test, "the package cache has no evtx-0.15.1/samples/dlls");
    }
    found
}

/// Whether programs are there that compile resources.
pub fn mingw(test: &str) -> bool {
    let there = ["x86_64-w64-mingw32-windmc", "x86_64-w64-mingw32-windres", "x86_64-w64-mingw32-ld"]
        .iter()
        .all(|program| Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success()));
    if !there {
        skip(test, "windmc, windres and ld of mingw-w64 are not there");
    }
    there
}
