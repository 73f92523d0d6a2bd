//! Loading programs and libraries that nobody has seen.

use super::process_create::start_quietly;
use crate::clock::nanos;
use crate::content::Random;
use crate::error::ProbeError;
use crate::probe::{Contrast, EVERYWHERE, Grows, Parameter, Probe};
use crate::run::Run;
use crate::sample::{Case, Sample};
use crate::summary::Figures;
use crate::words::time;
use etwhy_os::library::Library;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Declaration.
pub static PROBE: Probe = Probe {
    name: "image-load",
    about: "Load fresh copies of a small library, and start fresh copies of a small program, once and again",
    manual: "Copies a small library of the system under new names, loads each copy (dlopen, LoadLibrary), unloads it, and does the same \
             again. Then it starts copies of a small program once and again. Some random bytes are appended to each copy, so that its \
             content is new too (which makes a signed one unsigned; content=same leaves them out).\n\n\
             What it shows: what checking of code before it runs costs: scanners, application control, signature checks. The second time \
             the verdict is known, as a rule.\n\n\
             What fools it: copies of system files are what malware makes too, so a product may deny or remove them: that counts as a \
             failure. A library that cannot be unloaded is only found again the second time.",
    systems: EVERYWHERE,
    parameters: &[
        Parameter::number("copies", "Copies of each", "copies", (200, 40), (2, 10_000)),
        Parameter::choice("content", "Content of copies: new, or as the original's", "new", &["new", "same"]),
        Parameter::text("library", "Library to copy; a small one of the system if empty", ""),
        Parameter::text(
            "program",
            "Program to copy, which must end at once; a small one of the system if empty",
            "",
        ),
    ],
    grows: Grows::No,
    n_is: "",
    contrasts: &[Contrast {
        title: "first run against second",
        dear: ("", "first run"),
        cheap: ("", "second run"),
        meaning: "What code that nobody has seen costs more than code that is known.",
    }],
    run,
    child: None,
    conclude,
};

const LOAD: &str = "load a library";
const START: &str = "start a program";

/// Larger originals would fill the disk.
const LARGEST: u64 = 8 << 20;

/// The first of some files that is there and small.
fn small(paths: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    paths
        .into_iter()
        .find(|path| fs::metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() <= LARGEST))
}

#[cfg(not(windows))]
fn library() -> Option<PathBuf> {
    // Beside the C library, wherever this distribution has it: what this process has loaded itself would only be found.
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let c = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.contains("/libc.so") || path.contains("/libc-2.") || path.contains("/ld-musl"))?;
    let folder = Path::new(c).parent()?;
    let names = ["libutil.so.1", "libanl.so.1", "libBrokenLocale.so.1", "libz.so.1", "libgcc_s.so.1"];
    small(names.iter().map(|name| folder.join(name)))
}

#[cfg(not(windows))]
fn program() -> Option<PathBuf> {
    small(["/bin/true", "/usr/bin/true"].map(PathBuf::from))
}

#[cfg(windows)]
fn system_file(name: &str) -> PathBuf {
    let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    Path::new(&root).join("System32").join(name)
}

#[cfg(windows)]
fn library() -> Option<PathBuf> {
    small(["lz32.dll", "version.dll"].map(system_file))
}

#[cfg(windows)]
fn program() -> Option<PathBuf> {
    small(["hostname.exe", "where.exe"].map(system_file))
}

fn run(run: &mut Run<'_>) -> Result<(), ProbeError> {
    let given =
        |run: &Run<'_>, name: &str| Some(run.text(name)).filter(|text| !text.is_empty()).map(PathBuf::from);
    let library = given(run, "library").or_else(library);
    let program = given(run, "program").or_else(program);
    if library.is_none() && program.is_none() {
        return Err(ProbeError::Impossible(
            "no small library or program of the system was found; --set library= and program= name some"
                .to_owned(),
        ));
    }
    let mut kinds = vec![(LOAD, library), (START, program)];
    if run.round() % 2 == 1 {
        kinds.reverse();
    }
    for (measure, original) in kinds {
        match original {
            Some(original) => one(run, measure, &original)?,
            None => run.note(format!("{measure}: no small one was found on this system; --set names one")),
        }
    }
    Ok(())
}

fn one(run: &mut Run<'_>, measure: &'static str, original: &Path) -> Result<(), ProbeError> {
    let copies = run.number("copies");
    let size = fs::metadata(original).map_err(ProbeError::file(original, "open"))?.len();
    if size > LARGEST {
        return Err(ProbeError::Impossible(format!(
            "{}: {size} bytes; at most {LARGEST} are copied",
            original.display()
        )));
    }
    let bytes = fs::read(original).map_err(ProbeError::file(original, "read"))?;
    let scratch = run.scratch(copies.saturating_mul(size.saturating_add(8192)))?;
    let folder = scratch.folder("copies")?;
    let mut random = Random::new()?;
    let mut paths = Vec::new();
    let ending = original.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    for number in 0..copies {
        run.goes_on()?;
        run.progress("copying", number, copies);
        let path = folder.join(format!("copy{number}{ending}"));
        copy(original, &path, &bytes, (run.text("content") == "new").then(|| random.bits()))
            .map_err(ProbeError::file(&path, "write"))?;
        paths.push(path);
    }
    for variant in ["first run", "second run"] {
        run.measure(Case::new(measure).when(variant), |run, laps| {
            let mut failed = 0;
            for (number, path) in paths.iter().enumerate() {
                run.goes_on()?;
                run.progress(measure, number as u64, copies);
                let start = Instant::now();
                let done = if measure == LOAD { load(path) } else { start_copy(path) };
                laps.push(nanos(start));
                match done {
                    Ok(true) => {}
                    Ok(false) => failed += 1,
                    Err(error)
                        if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) =>
                    {
                        failed += 1
                    }
                    Err(error) => return Err(ProbeError::file(path, "load")(error)),
                }
            }
            Ok((paths.len() as u64, failed))
        })?;
    }
    scratch.remove()
}

/// Writes a copy with the original's permissions, and `more` behind it: loaders look at what headers name only.
fn copy(original: &Path, path: &Path, bytes: &[u8], more: Option<u64>) -> io::Result<()> {
    let mut all = bytes.to_vec();
    if let Some(more) = more {
        all.extend_from_slice(&more.to_le_bytes());
    }
    fs::write(path, all)?;
    fs::set_permissions(path, fs::metadata(original)?.permissions())
}

fn load(path: &Path) -> io::Result<bool> {
    Library::open(path)?.close().map(|()| true)
}

fn start_copy(path: &Path) -> io::Result<bool> {
    let mut tries = 0;
    loop {
        match start_quietly(&mut Command::new(path)) {
            // Another thread of this process started something while the copy was written and handed the open file down.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < 50 => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            result => return result,
        }
    }
}

fn conclude(samples: &[Sample]) -> Vec<String> {
    let mut said = Vec::new();
    let figures = Figures::from_samples(samples);
    for (measure, what) in
        [(LOAD, "Loading and unloading a fresh library"), (START, "Starting a fresh program")]
    {
        let (Some(first), Some(second)) =
            (figures.typical(measure, "first run"), figures.typical(measure, "second run"))
        else {
            continue;
        };
        said.push(format!(
            "{what} took {} the first time and {} the second (half of them at most).",
            time(first),
            time(second)
        ));
    }
    let failed: u64 = samples.iter().map(|s| s.failures).sum();
    if failed > 0 {
        said.push(format!("{failed} copies were denied, removed or failed: somebody forbids unknown code."));
    }
    said
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::support::{made, options, tried};

    #[test]
    fn copies_load_and_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path(), &[("copies", "4")]);
        let made = made(&PROBE, &options);
        assert!(made.samples.iter().any(|s| s.case.measure == START), "{:?}", made.notes);
        assert!(made.samples.iter().all(|s| s.operations == 4 && s.failures == 0), "{:?}", made.samples);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        options.set.push(("program".into(), "/bin/false".into()));
        let made = tried(&PROBE, &options);
        let failed: u64 = made.samples.iter().filter(|s| s.case.measure == START).map(|s| s.failures).sum();
        assert_eq!(failed, 8, "a program that says no is counted");
    }
}
