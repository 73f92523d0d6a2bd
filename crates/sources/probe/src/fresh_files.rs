//! Sets of files that nobody has looked at: random content, written, and dropped from the page cache where the system lets us.

use crate::content::{Header, Random};
use crate::error::ProbeError;
use crate::run::Run;
use crate::sample::Laps;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What files are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What the name begins with, before the number.
    pub stem: &'static str,
    /// Ending without the dot; may be empty.
    pub extension: String,
    /// First bytes.
    pub header: Header,
}

impl Kind {
    /// The name of file `number`.
    pub fn name(&self, number: u64) -> String {
        let dot = if self.extension.is_empty() { "" } else { "." };
        format!("{}{number:06}{dot}{}", self.stem, self.extension)
    }

    /// As users see it: `setup*.exe, pe`.
    pub fn words(&self) -> String {
        let mut words =
            if self.extension.is_empty() { "no extension".into() } else { format!(".{}", self.extension) };
        if self.stem == "setup" {
            words = format!("setup*{words}");
        }
        if self.header != Header::None {
            words.push_str(", ");
            words.push_str(self.header.word());
        }
        words
    }
}

/// What is to be dropped from memory before files are read for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// Nothing.
    Keep,
    /// The files' own pages.
    Own,
    /// All clean pages, inodes and directory entries of the machine: needs root, and costs everybody.
    All,
}

/// Files that are held open until their pages are dropped; below the 256 that macOS grants a process.
const HELD: usize = 128;

/// Makes `count` files in `folder`. What creating, writing and closing each of them took goes into `laps`.
///
/// The files' pages are dropped through the handles that wrote them: opening a file once more would have it scanned before
/// anything is measured.
///
/// # Errors
/// The system's; interrupted.
pub fn make(
    run: &mut Run<'_>,
    folder: &Path,
    kind: &Kind,
    (count, size): (u64, usize),
    drop: Drop,
    laps: &mut Laps,
) -> Result<Vec<PathBuf>, ProbeError> {
    let mut random = Random::new()?;
    let mut bytes = vec![0_u8; size];
    let mut paths = Vec::new();
    let mut held = Vec::new();
    for number in 0..count {
        run.goes_on()?;
        if number % 64 == 0 {
            run.progress("making fresh files", number, count);
        }
        random.file(&mut bytes, kind.header);
        let path = folder.join(kind.name(number));
        let start = Instant::now();
        let mut file = File::create_new(&path).map_err(ProbeError::file(&path, "create"))?;
        file.write_all(&bytes).map_err(ProbeError::file(&path, "write"))?;
        held.push((file, crate::clock::nanos(start)));
        paths.push(path);
        if held.len() == HELD {
            release(run, &mut held, drop, laps)?;
        }
    }
    release(run, &mut held, drop, laps)?;
    if drop == Drop::All {
        drop_all(run);
    }
    Ok(paths)
}

/// Makes copies of the files below `source` (its own level only), over and over until there are `count`.
///
/// # Errors
/// The system's; interrupted; if the folder has no file of at most `largest` bytes.
pub fn copy(
    run: &mut Run<'_>,
    source: &Path,
    folder: &Path,
    (count, largest): (u64, u64),
    drop: Drop,
) -> Result<Vec<PathBuf>, ProbeError> {
    let originals = originals(source, largest)?;
    let mut paths = Vec::new();
    let mut held = Vec::new();
    for (number, original) in (0..count).zip(originals.iter().cycle()) {
        run.goes_on()?;
        if number % 64 == 0 {
            run.progress("copying files", number, count);
        }
        let name = original.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = folder.join(format!("{number:06}-{name}"));
        let mut bytes = Vec::new();
        File::open(original)
            .and_then(|file| file.take(largest).read_to_end(&mut bytes))
            .map_err(ProbeError::file(original, "read"))?;
        let mut file = File::create_new(&path).map_err(ProbeError::file(&path, "create"))?;
        file.write_all(&bytes).map_err(ProbeError::file(&path, "write"))?;
        held.push((file, 0));
        paths.push(path);
        if held.len() == HELD {
            release(run, &mut held, drop, &mut Laps::default())?;
        }
    }
    release(run, &mut held, drop, &mut Laps::default())?;
    if drop == Drop::All {
        drop_all(run);
    }
    Ok(paths)
}

/// Files that are copied, in the order of their names; those that are too large are left out.
fn originals(source: &Path, largest: u64) -> Result<Vec<PathBuf>, ProbeError> {
    /// More files than that only make the first round longer.
    const MOST: usize = 10_000;
    let mut found: Vec<PathBuf> = fs::read_dir(source)
        .map_err(ProbeError::file(source, "list"))?
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|m| m.is_file() && m.len() > 0 && m.len() <= largest))
        .map(|entry| entry.path())
        .take(MOST)
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(ProbeError::Impossible(format!(
            "{}: no file of 1 to {largest} bytes in it; --set source= names a folder with such files",
            source.display()
        )));
    }
    Ok(found)
}

/// Writes files to the disk, drops their pages and closes them.
fn release(
    run: &mut Run<'_>,
    held: &mut Vec<(File, u64)>,
    drop: Drop,
    laps: &mut Laps,
) -> Result<(), ProbeError> {
    if drop != Drop::Keep
        && let Err(why) = system::forget(held.iter().map(|(file, _)| file))
    {
        run.note(why);
    }
    for (file, ns) in held.drain(..) {
        let start = Instant::now();
        std::mem::drop(file);
        laps.push(ns.saturating_add(crate::clock::nanos(start)));
    }
    run.goes_on()
}

/// Drops what the whole machine has in memory, as far as it is clean.
fn drop_all(run: &mut Run<'_>) {
    match fs::write("/proc/sys/vm/drop_caches", "3") {
        Ok(()) => run.note("before each first run the page cache of the whole machine was dropped"),
        Err(error) => run.note(format!(
            "the page cache of the whole machine could not be dropped ({error}); only the files' own pages were: that needs root \
             on Linux"
        )),
    }
}

#[cfg(all(unix, not(target_vendor = "apple")))]
mod system {
    use rustix::fs::{Advice, fadvise};
    use std::fs::File;

    /// Writes the files' pages to the disk and drops them; or says why they stay in memory.
    pub fn forget<'a>(files: impl Iterator<Item = &'a File>) -> Result<(), String> {
        let files: Vec<&File> = files.collect();
        let said = |error: rustix::io::Errno| {
            format!(
                "the files' pages could not be dropped from memory ({error}): first reads came from there, not from the disk"
            )
        };
        // One request for all of them: 128 single ones would each wait for the journal.
        #[cfg(target_os = "linux")]
        if let Some(file) = files.first() {
            rustix::fs::syncfs(file).map_err(said)?;
        }
        for file in files {
            #[cfg(not(target_os = "linux"))]
            rustix::fs::fsync(file).map_err(said)?;
            fadvise(file, 0, None, Advice::DontNeed).map_err(said)?;
        }
        Ok(())
    }
}

#[cfg(not(all(unix, not(target_vendor = "apple"))))]
mod system {
    use std::fs::File;

    pub fn forget<'a>(_: impl Iterator<Item = &'a File>) -> Result<(), String> {
        Err(format!(
            "the files' pages stay in memory, since {} has no request that drops them: first reads came from there, not from the disk",
            if cfg!(windows) { "Windows" } else { "this system" }
        ))
    }
}

/// Bytes that this process had read from disks (Linux), to see whether dropping helped.
pub fn read_from_disk() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}
