//! The entry point: arguments in, plain files out.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use etwhy_etl::Ledger;

use crate::collect::Collector;
use crate::etl_magic::may_be_etl;
use crate::file::InputFile;
use crate::kind::Foreign;
use crate::spool;
use crate::{InputError, InputOptions, Kind, Progress, WantedFiles, anomaly, folder, sniff};

/// Opens everything that `args` name, in their order; `-` is standard input.
///
/// A folder stands for its `.etl` files in natural order. Archives are unpacked to a temporary folder.
/// Damage that leaves something of use is counted in `ledger`.
///
/// # Errors
/// The first argument that cannot be used at all; see [`InputError`].
pub fn open(
    args: &[PathBuf],
    options: &InputOptions,
    progress: &mut dyn FnMut(Progress<'_>),
    ledger: &mut Ledger,
) -> Result<Vec<InputFile>, InputError> {
    open_with_stdin(args, &mut std::io::stdin(), options, progress, ledger)
}

/// Like [`open`], with something else in the place of standard input.
///
/// # Errors
/// As [`open`].
pub fn open_with_stdin(
    args: &[PathBuf],
    stdin: &mut dyn Read,
    options: &InputOptions,
    progress: &mut dyn FnMut(Progress<'_>),
    ledger: &mut Ledger,
) -> Result<Vec<InputFile>, InputError> {
    if args.is_empty() {
        return Err(InputError::NothingNamed);
    }
    let mut collector = Collector::new(options, progress, ledger);
    for arg in args {
        if arg.as_os_str() == "-" {
            one_stream(&mut collector, Path::new("stdin"), stdin)?;
        } else {
            one_path(&mut collector, arg)?;
        }
    }
    Ok(collector.files)
}

fn one_path(collector: &mut Collector<'_>, path: &Path) -> Result<(), InputError> {
    let io = |what, source| InputError::Io { file: path.to_path_buf(), what, source };
    let metadata = fs::metadata(path).map_err(|e| io("open", e))?;
    if metadata.is_dir() {
        return one_folder(collector, path);
    }
    let mut file = File::open(path).map_err(|e| io("open", e))?;
    if !metadata.is_file() {
        // A named pipe or `<(command)`: the reader needs a file it can map.
        return one_stream(collector, path, &mut file);
    }
    let head = spool::read_head(&mut file);
    if let Some(problem) = head.problem {
        return Err(io("read", std::io::Error::other(problem)));
    }
    let wanted = collector.options.wanted;
    match kind_of(&head.bytes, path) {
        Kind::Unknown => collector.push(plain(path, path.to_path_buf())),
        kind if wanted.is(kind) => collector.push(plain(path, path.to_path_buf())),
        kind if kind.is_archive() => {
            collector.budget.begin(path, metadata.len());
            let first = collector.files.len();
            collector.archive(path, path, kind, 0)?;
            let beside = symbols_beside(path);
            for file in collector.files.get_mut(first..).unwrap_or_default() {
                if file.symbols_dir.is_none() {
                    file.symbols_dir.clone_from(&beside);
                }
            }
            Ok(())
        }
        kind => {
            Err(InputError::NotATrace { file: path.to_path_buf(), kind, wanted: collector.options.wanted })
        }
    }
}

/// The content decides; only performance-counter logs, whose layout is not public, go by their name.
fn kind_of(head: &[u8], path: &Path) -> Kind {
    match sniff(head) {
        Kind::Unknown if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("blg")) => {
            Kind::Foreign(Foreign::PerformanceCounters)
        }
        kind => kind,
    }
}

fn one_folder(collector: &mut Collector<'_>, folder: &Path) -> Result<(), InputError> {
    let io = |what, source| InputError::Io { file: folder.to_path_buf(), what, source };
    let listing = folder::list(folder, collector.options.recursive, collector.options.wanted)
        .map_err(|e| io("list", e))?;
    let first = collector.files.len();
    let mut refused = None;
    for path in listing.traces {
        let head = match File::open(&path) {
            Ok(mut file) => spool::read_head(&mut file),
            Err(source) => return Err(InputError::Io { file: path, what: "open", source }),
        };
        match sniff(&head.bytes) {
            Kind::Unknown => collector.push(plain(&path, path.clone()))?,
            kind if collector.options.wanted.is(kind) => collector.push(plain(&path, path.clone()))?,
            kind => {
                collector.ledger.note(&anomaly::SEGMENT_SKIPPED, 1, || path.display().to_string());
                refused.get_or_insert(InputError::NotATrace {
                    file: path,
                    kind,
                    wanted: collector.options.wanted,
                });
            }
        }
    }
    if collector.files.len() > first {
        return Ok(());
    }
    Err(refused.unwrap_or(InputError::NoTraceInFolder {
        folder: folder.to_path_buf(),
        others: listing.others,
        deeper: listing.deeper,
        wanted: collector.options.wanted,
    }))
}

/// Standard input or a pipe: written to a file first, because the reader needs to seek.
fn one_stream(collector: &mut Collector<'_>, shown: &Path, source: &mut dyn Read) -> Result<(), InputError> {
    collector.budget.begin(shown, u64::MAX);
    let head = spool::read_head(source);
    let kind = sniff(&head.bytes);
    // It may have no end: what does not begin like what is wanted is not unpacked.
    let begins =
        kind == Kind::Unknown && collector.options.wanted == WantedFiles::Traces && may_be_etl(&head.bytes);
    if !(kind.is_archive() || begins || collector.options.wanted.is(kind)) {
        return Err(InputError::NotATrace {
            file: shown.to_path_buf(),
            kind,
            wanted: collector.options.wanted,
        });
    }
    let (path, spooled, guard) = collector.unpack_to_temp(shown, None, head, source)?;
    let complete = spooled.problem.is_none();
    if let Some(problem) = spooled.problem {
        collector.ledger.note(&anomaly::ARCHIVE_DAMAGED, 1, || format!("{}: {problem}", shown.display()));
    }
    if !kind.is_archive() {
        let shown = shown.to_path_buf();
        return collector.push(InputFile { shown, path, symbols_dir: None, complete, temp: Some(guard) });
    }
    collector.budget.begin(shown, spooled.bytes);
    let result = collector.archive(&path, shown, kind, 0);
    // Free the space now; if it cannot be removed, it goes with the folder.
    let _ = fs::remove_file(&path);
    result
}

fn plain(path: &Path, shown: PathBuf) -> InputFile {
    InputFile {
        shown,
        path: path.to_path_buf(),
        symbols_dir: symbols_beside(path),
        complete: true,
        temp: None,
    }
}

/// `symbols` in the folder of the trace, the place PerfView and Breakpad's tools use.
fn symbols_beside(path: &Path) -> Option<PathBuf> {
    let dir = path.parent()?.join("symbols");
    dir.is_dir().then_some(dir)
}
