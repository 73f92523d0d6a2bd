//! What readers of other authors say.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Standard output of a command that succeeds.
pub fn told(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", crate::text(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Records of a trace by type as dissect.etl counts them (`--kinds`: by kind of header), or `None` without it.
pub fn dissected(trace: &Path, more: &[&str]) -> Option<BTreeMap<String, u64>> {
    let text = told(crate::script("count_records.py")?.args(more).arg(trace));
    let pair =
        |line: &str| line.rsplit_once(' ').map(|(key, n)| (key.to_owned(), n.parse().unwrap())).unwrap();
    Some(text.lines().map(pair).collect())
}

/// The traces of the corpus, each with the counts of an independent reader.
pub fn counted_traces() -> Vec<(PathBuf, Value)> {
    let Some(folder) = crate::corpus_file("etl") else { return Vec::new() };
    let counted = |file: &PathBuf| {
        let counts: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        (folder.join(counts["file"].as_str().unwrap()), counts)
    };
    let mut all: Vec<_> = crate::files(&folder.join("counts"), "json").iter().map(counted).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(all.len() >= 40, "only {} traces in the corpus", all.len());
    all
}
