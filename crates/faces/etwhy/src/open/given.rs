//! Files and folders that options name: what is missing or broken is counted, so that nobody takes the result for complete.

use super::TraceArgs;
use etwhy_decode::anomalies::{MANIFEST_BROKEN, MANIFEST_TOO_LARGE, SOURCE_UNREADABLE, TMF_BROKEN};
use etwhy_etl::Ledger;
use etwhy_input::anomaly::GIVEN_UNUSABLE;
use etwhy_symbols::path::Element;
use std::path::Path;

/// Counts what `--symbols` and `--images` name and is no folder.
///
/// # Errors
/// `--symbols` makes no sense.
pub fn symbols(args: &TraceArgs, ledger: &mut Ledger) -> anyhow::Result<()> {
    let mut missing = |option: &str, path: &Path| {
        let what = if path.exists() { "not a folder" } else { "no such folder" };
        ledger.note(&GIVEN_UNUSABLE, 1, || format!("{option} {}: {what}", path.display()));
    };
    for part in args.symbols.parts()?.iter().filter(|part| part.origin == "--symbols") {
        for element in &part.path.elements {
            if let Element::Folder(folder) = element
                && !folder.starts_with('~')
                && !Path::new(folder).is_dir()
            {
                missing("--symbols", Path::new(folder));
            }
        }
    }
    args.symbols.images.iter().filter(|path| !path.is_dir()).for_each(|path| missing("--images", path));
    Ok(())
}

/// Counts what `--manifests` and `--tmf` name and could not be read. Nothing else was decoded yet.
pub fn descriptions(ledger: &mut Ledger) {
    let kinds = [&SOURCE_UNREADABLE, &MANIFEST_BROKEN, &MANIFEST_TOO_LARGE, &TMF_BROKEN];
    let broken: Vec<String> = ledger
        .entries()
        .filter(|entry| kinds.iter().any(|kind| kind.name == entry.anomaly.name))
        .map(|entry| entry.first.clone())
        .collect();
    for first in broken {
        ledger.note(&GIVEN_UNUSABLE, 1, || first);
    }
}
