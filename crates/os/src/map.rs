//! Maps files into memory.
//!
//! # Contract
//!
//! A [`Mapped`] is a read-only view of a file. It is sound as long as nobody shortens or overwrites the
//! file while it is mapped; neither Linux, macOS nor Windows let a reader rule that out. We accept it
//! because (1) a trace that is being analysed is a finished file, (2) files that may still grow or that
//! come from a pipe are read through `pread` or copied to a temporary file first, and (3) nothing here
//! interprets the bytes as anything but `u8`, for which every bit pattern is valid. If the file is
//! shortened all the same, the operating system ends the process (SIGBUS); it never reads foreign memory.

use std::fs::File;
use std::io;
use std::ops::Deref;

/// A read-only memory map of a whole file.
#[derive(Debug)]
pub struct Mapped(Option<memmap2::Mmap>);

impl Mapped {
    /// Maps the whole of `file`. An empty file gives an empty slice.
    ///
    /// # Errors
    /// The operating system's, e.g. for pipes and directories.
    pub fn of(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: see the contract in the module's documentation.
        let map = unsafe { memmap2::Mmap::map(file) }?;
        Ok(Mapped(Some(map)))
    }

    /// Maps `len` bytes of `file` from `offset` on, which the file must have.
    ///
    /// # Errors
    /// The operating system's; [`io::ErrorKind::UnexpectedEof`] if the file ends before.
    pub fn window(file: &File, offset: u64, len: usize) -> io::Result<Mapped> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| file.metadata().map_or(true, |m| m.len() < end)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if len == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: see the contract in the module's documentation.
        let map = unsafe { memmap2::MmapOptions::new().offset(offset).len(len).populate().map(file) }?;
        Ok(Mapped(Some(map)))
    }

    /// The map as shared bytes, which Arrow buffers can be made of without a copy.
    pub fn into_bytes(self) -> bytes::Bytes {
        match self.0 {
            Some(map) => bytes::Bytes::from_owner(map),
            None => bytes::Bytes::new(),
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or(&[])
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
