//! Where the bytes of a file come from: a map, or reads in chunks.

use crate::error::{Error, Result};
use etwhy_os::Mapped;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// A file that is read at offsets. Copies read the same file.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The whole file is mapped: slices of it cost nothing.
    Mapped { map: Arc<Mapped>, file: Arc<File> },
    /// Reads of at most `chunk` bytes each, for files that may change or must not be mapped.
    Chunked { file: Arc<File>, len: u64, chunk: usize },
}

impl Source {
    pub(crate) fn open(path: &Path, shown: &Path, chunk: Option<usize>) -> Result<Source> {
        let io = |what| move |source| Error::Io { file: shown.to_owned(), what, source };
        // Opening a pipe would wait for whoever writes into it.
        if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            let why = "it is neither a file nor a folder";
            return Err(io("read")(std::io::Error::new(std::io::ErrorKind::InvalidInput, why)));
        }
        let file = File::open(path).map_err(io("open"))?;
        let meta = file.metadata().map_err(io("open"))?;
        if meta.is_dir() {
            return Err(io("read")(std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a folder")));
        }
        Ok(match chunk {
            Some(chunk) => Source::Chunked { file: Arc::new(file), len: meta.len(), chunk: chunk.max(1) },
            None => {
                let map = Arc::new(Mapped::new(&file).map_err(io("map"))?);
                Source::Mapped { map, file: Arc::new(file) }
            }
        })
    }

    /// False if the file has become shorter since it was opened, or its disk could not give all of it.
    pub(crate) fn is_whole(&self) -> bool {
        let (file, readable) = match self {
            Source::Mapped { map, file } => (file, map.is_whole()),
            Source::Chunked { file, .. } => (file, true),
        };
        readable && file.metadata().is_ok_and(|now| now.len() >= self.len())
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::Mapped { map, .. } => map.len() as u64,
            Source::Chunked { len, .. } => *len,
        }
    }

    /// The bytes at `offset`, up to `len` of them (fewer at the end of the file), without a copy if
    /// the file is mapped; else in `scratch`. `None`: the system could not read.
    pub(crate) fn bytes<'a>(&'a self, offset: u64, len: usize, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        match self {
            Source::Mapped { .. } => self.mapped(offset, len),
            Source::Chunked { .. } => {
                self.read_into(offset, len, scratch)?;
                Some(scratch)
            }
        }
    }

    /// The mapped bytes at `offset`; `None` if the file is not mapped.
    pub(crate) fn mapped(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let Source::Mapped { map, .. } = self else { return None };
        let start = usize::try_from(offset).ok()?.min(map.len());
        map.get(start..start.saturating_add(len).min(map.len()))
    }

    /// Copies the bytes at `offset` into `target` (cleared first), fewer at the end of the file.
    pub(crate) fn read_into(&self, offset: u64, len: usize, target: &mut Vec<u8>) -> Option<()> {
        target.clear();
        match self {
            Source::Mapped { .. } => target.extend_from_slice(self.mapped(offset, len)?),
            Source::Chunked { file, len: total, chunk } => {
                let len = len.min(usize::try_from(total.saturating_sub(offset)).unwrap_or(usize::MAX));
                target.resize(len, 0);
                let mut done = 0;
                while done < len {
                    let end = (done + chunk).min(len);
                    let n = read_at(file, target.get_mut(done..end)?, offset + done as u64).ok()?;
                    if n == 0 {
                        break;
                    }
                    done += n;
                }
                target.truncate(done);
            }
        }
        Some(())
    }
}

#[cfg(unix)]
fn read_at(file: &File, target: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, target, offset)
}

#[cfg(windows)]
fn read_at(file: &File, target: &mut [u8], offset: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, target, offset)
}
