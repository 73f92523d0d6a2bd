//! Opening and reading files that nobody has looked at.

use crate::content::Header;
use crate::error::ProbeError;
use crate::fresh_files::{self, Drop, Kind};
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Laps};
use crate::scanned_files::{self, Operation};
use std::path::{Path, PathBuf};

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "file-open",
    about: "Open and read fresh files, once and again: what scanning on access costs, and what is left of it the second time",
    manual: "Makes files of random content and does one thing with each of them: list (the folder is listed, no file is opened), open \
             (and close), read 4 KB, read 64 KB. Then it does the same again. Each operation has files of its own, made just before, so \
             that the first run is the first time that anybody opens them; what was made for one operation would already be known to a \
             scanner when the next one comes, and all but the first operation would look cheap. Columns are the first and the second run, rows \
             the operations; \"create\" is what making and closing a file of that size took.\n\n\
             What it shows: without a scanner an open takes some microseconds and reading takes what the disk takes. A scanner that must \
             allow each open reads the file in the meantime: first opens then take as long as reads, and mostly waiting (blocked), hardly CPU \
             time. What the second run still costs is the price of asking at all: the verdict is remembered. With --set other-folder=DIR \
             everything is done there too; if one of the folders is excluded from scanning, the difference is the scanner's.\n\n\
             What fools it: scanners that look when a file is closed after writing have their work behind them when it is opened; then \
             \"create\" is slow instead, or the first run is hardly slower than the second. Pages of the files are dropped from memory where \
             the system lets us (Linux: written out, then POSIX_FADV_DONTNEED through the handle that wrote them, so nothing is opened for it; \
             cache=all drops the caches of the whole machine, which needs root and slows everybody down). Windows and macOS keep them: \
             what is measured there is scanning without the disk. Folder entries stay in memory, except with cache=all. Scanners may treat \
             random content better than real programs: extensions, header and source=DIR (copies of real, signed files; their content may \
             be known to a scanner) change it. An open that is denied counts as a failure, and is part of the figures.\n\n\
             Compared with: 10,000 files of 70 KB on a Windows machine with an antivirus product took 72.8 s to open for the first time, \
             0.3 s for the second, 1.1 s with the folder excluded; listing took 16 ms. On Linux with ClamAV on access a first open took \
             1.8 ms (half of them at most), a second one 0.6 ms, without it 2 us.",
    systems: EVERYWHERE,
    parameters: &[
        Parameter::number("files", "Files for each operation", "files", (10_000, 500), (10, 200_000)),
        Parameter::number("bytes", "Size of each file", "bytes", (71_680, 71_680), (1, 64 << 20)),
        Parameter::choice("operations", "What is done", "list,open,read-4k,read-64k", Operation::WORDS),
        Parameter::text(
            "extensions",
            "Endings of names, with commas between them (each makes a set of files)",
            "dat",
        ),
        Parameter::choice(
            "header",
            "What the files begin with: like a program, an archive, a document",
            "none",
            Header::WORDS,
        ),
        Parameter::choice(
            "names",
            "Names: file000001 or setup000001, as installers are called",
            "file",
            &["file", "setup"],
        ),
        Parameter::text("source", "Folder whose files are copied instead of making random ones", ""),
        Parameter::text(
            "other-folder",
            "A second folder, for instance one that is excluded from scanning",
            "",
        ),
        Parameter::choice(
            "cache",
            "What is dropped from memory before the first run",
            "own",
            &["own", "all", "keep"],
        ),
    ],
    grows: Grows::No,
    n_is: "",
    contrasts: &[
        Contrast {
            title: "first run against second",
            dear: ("", "first run"),
            cheap: ("", "second run"),
            meaning: "What the first access to a file costs more than the next one.",
        },
        Contrast {
            title: "folder against other folder, first run",
            dear: ("", "first run"),
            cheap: ("", "first run, other folder"),
            meaning: "What files in this folder cost more than in the other folder, the first time.",
        },
        Contrast {
            title: "folder against other folder, second run",
            dear: ("", "second run"),
            cheap: ("", "second run, other folder"),
            meaning: "What files in this folder cost more than in the other folder, when they are known.",
        },
    ],
    run,
    child: None,
    conclude: scanned_files::conclude,
};

/// Sets of files of one operation: more would be a typing error.
const MOST_KINDS: usize = 24;

/// All that one set may take.
const MOST_BYTES: u64 = 64 << 30;

/// Largest file that is copied from `source`.
const LARGEST_COPY: u64 = 8 << 20;

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let (files, bytes) = (run.number("files"), run.number("bytes"));
    let kinds = kinds(run)?;
    let drop = match run.text("cache") {
        "keep" => Drop::Keep,
        "all" => Drop::All,
        _ => Drop::Own,
    };
    let mut operations: Vec<Operation> =
        run.words("operations").iter().filter_map(|w| Operation::from_word(w)).collect();
    let mut folders = vec![(run.options.folder.clone(), "")];
    if !run.text("other-folder").is_empty() {
        folders.push((PathBuf::from(run.text("other-folder")), ", other folder"));
    }
    // What is done first finds an idler machine and an emptier disk.
    if run.round() % 2 == 1 {
        operations.reverse();
        folders.reverse();
    }
    for operation in operations {
        for kind in &kinds {
            for (folder, where_) in &folders {
                one(run, operation, kind, (kinds.len() > 1, where_), folder, (files, bytes), drop)?;
            }
        }
    }
    Ok(())
}

/// All mixtures of endings, headers and names.
fn kinds(run: &Run<'_>) -> Result<Vec<Kind>, ProbeError> {
    let mut kinds = Vec::new();
    for extension in run.text("extensions").split(',') {
        let extension = extension.trim().trim_start_matches('.');
        if extension.len() > 32 || !extension.chars().all(|c| c.is_ascii_alphanumeric() || "-_+~".contains(c))
        {
            return Err(ProbeError::Impossible(format!(
                "extensions={extension}: letters and digits only, at most 32"
            )));
        }
        for header in run.words("header") {
            for stem in run.words("names") {
                let stem = if stem == "setup" { "setup" } else { "file" };
                kinds.push(Kind {
                    stem,
                    extension: extension.to_owned(),
                    header: Header::from_word(&header),
                });
            }
        }
    }
    if !run.text("source").is_empty() {
        kinds.truncate(1);
    }
    if kinds.len() > MOST_KINDS {
        return Err(ProbeError::Impossible(format!(
            "extensions, header and names make {} sets of files for each operation; {MOST_KINDS} are the limit",
            kinds.len()
        )));
    }
    Ok(kinds)
}

/// One operation on fresh files of one kind in one folder, twice.
fn one(
    run: &mut Run<'_>,
    operation: Operation,
    kind: &Kind,
    (several, where_): (bool, &str),
    folder: &Path,
    (files, bytes): (u64, u64),
    drop: Drop,
) -> Result<(), ProbeError> {
    let source = PathBuf::from(run.text("source"));
    let copies = !source.as_os_str().is_empty();
    let each = if copies { LARGEST_COPY.min(bytes.max(1 << 20)) } else { bytes };
    let needed = files.saturating_mul(each.div_ceil(4096).saturating_mul(4096));
    if needed > MOST_BYTES {
        return Err(ProbeError::Impossible(format!(
            "{files} files of up to {each} bytes are {needed} bytes; {MOST_BYTES} are the limit"
        )));
    }
    let scratch = run.scratch_in(folder, needed)?;
    let place = scratch.folder("files")?;
    let named = |what: &str| if several { format!("{what}, {}", kind.words()) } else { what.to_owned() };
    let paths = if copies {
        fresh_files::copy(run, &source, &place, (files, each), drop)?
    } else {
        let mut laps = Laps::default();
        let start = run.since_start();
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let paths = fresh_files::make(run, &place, kind, (files, size), drop, &mut laps)?;
        let case = Case::new(named("create")).when(where_.trim_start_matches(", "));
        run.push(scanned_files::created(run, case, start, &laps));
        paths
    };
    for (variant, expects_disk) in [("first run", drop != Drop::Keep), ("second run", false)] {
        let case = Case::new(named(operation.name())).when(format!("{variant}{where_}"));
        let before = fresh_files::read_from_disk();
        run.measure(case, |run, laps| operation.on(run, &place, &paths, laps))?;
        let read = before.and_then(|before| Some(fresh_files::read_from_disk()?.saturating_sub(before)));
        if expects_disk && operation == Operation::Read64k && read.is_some_and(|read| read < needed / 4) {
            run.note(format!(
                "{}: first reads came from memory although the pages were dropped (a file system in memory, or a scanner that had \
                 read the files before)",
                folder.display()
            ));
        }
    }
    run.progress("removing", files, files);
    scratch.remove()
}

#[cfg(test)]
#[path = "../file_open_tests.rs"]
mod tests;
