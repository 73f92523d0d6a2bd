//! What tests of files share.

use std::path::PathBuf;
use std::process::Command;

/// The folder of the package `evtx` with DLLs of Windows; none if the package cache does not have it.
pub fn samples() -> Option<PathBuf> {
    let folder = etwhy_testkit::packaged("evtx-0.15.1/samples/dlls");
    if folder.is_none() {
        etwhy_testkit::missing("the package cache has no evtx-0.15.1/samples/dlls");
    }
    folder
}

/// Whether programs are there that compile resources.
pub fn mingw() -> bool {
    let there = ["x86_64-w64-mingw32-windmc", "x86_64-w64-mingw32-windres", "x86_64-w64-mingw32-ld"]
        .iter()
        .all(|program| Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success()));
    if !there {
        etwhy_testkit::missing("windmc, windres and ld of mingw-w64 are not there");
    }
    there
}
