//! Traces and manifests made to do harm: each is read in a process of its own, whose time and memory are watched.
//!
//! A process of its own: time is measured.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use etwhy_fuzz::hostile;
use std::process::Command;

/// Input by which memory is reckoned: what is small on purpose may take what an ordinary trace may.
const SMALL: usize = 4 << 20;

#[test]
fn hostile_input_costs_little() {
    let folder = tempfile::tempdir().unwrap();
    let mut bad = Vec::new();
    let traces = hostile::TRACES.iter().chain(hostile::MACHINES).map(|bomb| ("analyse", bomb));
    let documents = hostile::MANIFESTS.iter().map(|bomb| ("manifest", bomb));
    let documents = documents.chain(hostile::LOGGERS.iter().map(|bomb| ("loggers", bomb)));
    for (target, bomb) in traces.chain(documents) {
        let data = (bomb.make)().unwrap();
        let path = folder.path().join(format!("{}.etl", bomb.name));
        std::fs::write(&path, &data).unwrap();
        let size = data.len().max(SMALL);
        let output = Command::new(env!("CARGO_BIN_EXE_etwhy-fuzz"))
            .args(["--target", target, "--patience", "20", "--size", &size.to_string(), "--file"])
            .arg(&path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        println!("{:<26} {:>9} bytes: {}", bomb.name, data.len(), said.trim());
        if !output.status.success() {
            bad.push(format!("{} ({}): {}", bomb.name, bomb.about, said.trim()));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
