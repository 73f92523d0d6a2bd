//! Copies a stream into a file, telling apart what the stream and what the disk did wrong.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use crate::budget::Budget;
use crate::{InputError, Progress, SNIFF_LEN};

/// Bytes copied at a time.
const CHUNK: usize = 1 << 18;
/// Bytes between two reports of progress.
const REPORT_EVERY: u64 = 4 << 20;

/// The first bytes of a stream, and whether it broke while they were read.
pub struct Head {
    pub bytes: Vec<u8>,
    pub problem: Option<String>,
}

/// Reads up to [`SNIFF_LEN`] bytes.
pub fn read_head(source: &mut dyn Read) -> Head {
    let mut bytes = vec![0; SNIFF_LEN];
    let mut filled = 0;
    let mut problem = None;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(n) => filled = filled.saturating_add(n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => {
                problem = Some(e.to_string());
                break;
            }
        }
    }
    bytes.truncate(filled);
    Head { bytes, problem }
}

/// What became of a stream.
pub struct Spooled {
    pub bytes: u64,
    /// Why it ended early, if it did.
    pub problem: Option<String>,
}

/// Writes `head` and the rest of `source` into a new file at `path`.
pub fn spool(
    head: Head,
    source: &mut dyn Read,
    path: &Path,
    shown: &Path,
    claimed: Option<u64>,
    budget: &mut Budget,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Spooled, InputError> {
    let failed = |what, source| InputError::Io { file: shown.to_path_buf(), what, source };
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| failed("unpack", e))?;
    let mut done = Spooled { bytes: 0, problem: head.problem };
    let mut write = |chunk: &[u8], done: &mut Spooled, budget: &mut Budget| {
        budget.add(chunk.len() as u64)?;
        file.write_all(chunk).map_err(|e| disk_error(e, shown, path, done.bytes))?;
        done.bytes = done.bytes.saturating_add(chunk.len() as u64);
        Ok::<(), InputError>(())
    };
    write(&head.bytes, &mut done, budget)?;
    let mut chunk = vec![0; CHUNK];
    let mut reported = 0;
    while done.problem.is_none() {
        match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => write(chunk.get(..n).unwrap_or(&[]), &mut done, budget)?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => done.problem = Some(e.to_string()),
        }
        if done.bytes.saturating_sub(reported) >= REPORT_EVERY {
            reported = done.bytes;
            progress(Progress { shown, unpacked: done.bytes, claimed });
        }
    }
    progress(Progress { shown, unpacked: done.bytes, claimed });
    Ok(done)
}

/// A stream that is not touched again after an error. Decoders may be left in a state in which they make
/// no progress for ever (seen with LZMA2 after a bad properties byte).
pub struct Fused<'a> {
    inner: &'a mut dyn Read,
    broken: bool,
}

impl<'a> Fused<'a> {
    pub fn new(inner: &'a mut dyn Read) -> Fused<'a> {
        Fused { inner, broken: false }
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

impl Read for Fused<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.broken {
            return Err(io::Error::other("damaged data"));
        }
        let result = self.inner.read(buffer);
        self.broken = result.as_ref().is_err_and(|e| e.kind() != ErrorKind::Interrupted);
        result
    }
}

/// Reads `source` to its end without keeping it, for solid archives. Errors of the stream end it.
pub fn drain(source: &mut dyn Read, budget: &mut Budget) -> Result<(), InputError> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match source.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(n) => budget.add(n as u64)?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(()),
        }
    }
}

fn disk_error(source: io::Error, shown: &Path, path: &Path, unpacked: u64) -> InputError {
    let file = shown.to_path_buf();
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            InputError::DiskFull { file, temp_dir: path.parent().unwrap_or(path).to_path_buf(), unpacked }
        }
        _ => InputError::Io { file, what: "unpack", source },
    }
}
