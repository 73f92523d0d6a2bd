//! The header of a buffer, and what a sound one may say.

use crate::abi::buffer::*;
use crate::decompress::Format;
use etwhy_base::Bytes;
use std::path::Path;

/// The fields of a buffer header that reading needs.
pub(crate) struct Header {
    pub(crate) size: u32,
    pub(crate) saved: u32,
    pub(crate) end: u32,
    pub(crate) flags: u16,
    pub(crate) kind: u16,
}

impl Header {
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        Some(Header {
            size: bytes.u32_at(BUFFER_SIZE)?,
            saved: bytes.u32_at(SAVED_OFFSET)?,
            end: bytes.u32_at(OFFSET)?,
            flags: bytes.u16_at(BUFFER_FLAG)?,
            kind: bytes.u16_at(BUFFER_TYPE)?,
        })
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.flags & FLAG_COMPRESSED != 0
    }

    /// Sound enough to walk on from.
    pub(crate) fn plausible(&self) -> bool {
        let len = LEN as u32;
        self.size >= len && self.size <= MAX_SIZE && self.flags < 0x100 && self.kind <= TYPE_DBG_INFO && {
            let limit = if self.flags & FLAG_COMPRESSED != 0 { MAX_SIZE } else { self.size };
            let ok = |end: u32| end >= len && end <= limit;
            // Two fields that agree and are too large for what is on the disk: a compressed buffer without its flag.
            let agree = self.end == self.saved && (len..=MAX_SIZE).contains(&self.end);
            ok(self.end) || ok(self.saved) || agree || (self.end == 0 && self.saved == 0)
        }
    }

    /// End of valid data. The two fields that give it are equal in sound files; `SavedOffset` is 0 in the first
    /// buffer of Windows 7 files, and smaller where late header records follow. `None` if they contradict each
    /// other or make no sense.
    pub(crate) fn data_end(&self, limit: u32) -> Option<u32> {
        let end = if self.end == 0 { self.saved } else { self.end };
        let late_records = self.kind == TYPE_HEADER && self.saved < end;
        let agree = self.saved == end || self.saved == 0 || late_records;
        Some(end).filter(|&end| agree && end >= LEN as u32 && end <= limit)
    }

    /// As many bytes as this buffer may hold, unpacked.
    pub(crate) fn most(&self, nominal: &Nominal<'_>) -> u32 {
        [self.end, self.saved].into_iter().filter(|&end| end <= MAX_SIZE).fold(nominal.step(), u32::max)
    }
}

/// What indexing must know of the session.
pub(crate) struct Nominal<'f> {
    /// The file's name for messages.
    pub(crate) shown: &'f Path,
    /// Buffer size that the session's header names.
    pub(crate) size: u32,
    /// The session's header says that the buffers behind the first are compressed.
    pub(crate) packed: bool,
    /// Compression of the buffers behind the first; `None` if unknown.
    pub(crate) format: Option<Format>,
}

impl Nominal<'_> {
    /// A place in the file for the ledger.
    pub(crate) fn place(&self, what: &str, pos: u64) -> String {
        format!("{}: {what} at {pos:#x}", self.shown.display())
    }

    /// The size of buffers, as far as it makes sense.
    pub(crate) fn step(&self) -> u32 {
        self.size.clamp(LEN as u32, MAX_SIZE)
    }
}
