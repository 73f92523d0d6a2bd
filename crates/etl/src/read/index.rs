//! Finds the buffers of a file, also where headers are damaged.

use super::anomalies::*;
use super::resync::{resync, size_of};
use super::source::Source;
use super::tokens::first_ticks;
use crate::abi::buffer::*;
use crate::decompress::{Format, SLACK};
use crate::{Bytes, Ledger};
use std::path::Path;

/// Where a buffer stands and what its header says.
#[derive(Clone, Debug)]
pub struct BufferEntry {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes on disk, header included, never beyond the end of the file.
    pub size: u32,
    /// End of valid data, header included (after unpacking, if it is compressed).
    pub end: u32,
    /// System-wide processor index.
    pub cpu: u16,
    /// Session id.
    pub logger_id: u16,
    /// Appended session that it belongs to, from 0.
    pub segment: u16,
    /// `FLAG_*` of the buffer header.
    pub flags: u16,
    /// `TYPE_*` of the buffer header.
    pub kind: u16,
    /// Sequence number within its session.
    pub sequence: i64,
    /// Flush time in ticks (raw files).
    pub flush_ticks: i64,
    /// Timestamp of the first record; `None` if the buffer holds no record.
    pub first_ticks: Option<i64>,
    /// `end` is what the header says, not a guess.
    pub(crate) end_known: bool,
}

impl BufferEntry {
    /// True when everything behind the header is compressed.
    pub fn is_compressed(&self) -> bool {
        self.flags & FLAG_COMPRESSED != 0
    }
}

/// The fields of a buffer header that reading needs.
pub(crate) struct Header {
    pub(crate) size: u32,
    pub(crate) saved: u32,
    pub(crate) end: u32,
    pub(crate) flags: u16,
    kind: u16,
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

    /// Sound enough to walk on from.
    pub(crate) fn plausible(&self) -> bool {
        let len = LEN as u32;
        self.size >= len && self.size <= MAX_SIZE && self.flags < 0x100 && self.kind <= TYPE_DBG_INFO && {
            let limit = if self.flags & FLAG_COMPRESSED != 0 { MAX_SIZE } else { self.size };
            let ok = |end: u32| end >= len && end <= limit;
            ok(self.end) || ok(self.saved) || (self.end == 0 && self.saved == 0)
        }
    }

    /// End of valid data: the larger of the two fields that make sense. `Offset` alone would do on sound
    /// files; `SavedOffset` is 0 in the first buffer of Windows 7 files, and smaller where late header
    /// records follow.
    fn data_end(&self, limit: u32) -> Option<u32> {
        [self.end, self.saved].into_iter().filter(|&end| end >= LEN as u32 && end <= limit).max()
    }
}

/// Bytes read at each buffer: header and enough of the data for its first timestamp.
const PROBE: usize = 1024;

/// Result of the indexing of a file.
pub(crate) struct Index {
    pub(crate) buffers: Vec<BufferEntry>,
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

/// Hops over all buffers of the file.
pub(crate) fn index(source: &Source, nominal: &Nominal<'_>, ledger: &mut Ledger) -> Index {
    let total = source.len();
    let mut buffers: Vec<BufferEntry> = Vec::new();
    let mut probe = Vec::with_capacity(PROBE);
    let mut pos = 0u64;
    while pos < total {
        let Some(bytes) = source.bytes(pos, PROBE, &mut probe) else {
            ledger.note(&READ_FAILED, 1, || nominal.place("bytes", pos));
            break;
        };
        let header = Header::read(bytes);
        if header.is_none() {
            // Less than a header is left.
            if bytes.iter().all(|&b| b == 0) {
                ledger.count(&TAIL_OF_ZEROS, total - pos);
            } else {
                ledger.note(&FILE_TRUNCATED, (LEN as u64).saturating_sub(total - pos), || {
                    nominal.place("bytes", pos)
                });
            }
            break;
        }
        let Some(header) = header.filter(Header::plausible) else {
            let Some(next) = resync(source, pos, nominal, ledger) else { break };
            pos = next;
            continue;
        };
        let size = size_of(source, pos, &header, nominal, ledger);
        let left = total - pos;
        if u64::from(size) > left {
            ledger.note(&FILE_TRUNCATED, u64::from(size) - left, || nominal.place("buffer", pos));
        }
        buffers.push(entry(bytes, &header, pos, size, left, nominal, ledger));
        pos += u64::from(size);
    }
    number_segments(&mut buffers);
    Index { buffers }
}

fn entry(
    bytes: &[u8],
    header: &Header,
    pos: u64,
    size: u32,
    left: u64,
    nominal: &Nominal<'_>,
    ledger: &mut Ledger,
) -> BufferEntry {
    let on_disk = size.min(u32::try_from(left).unwrap_or(u32::MAX));
    let compressed = header.flags & FLAG_COMPRESSED != 0;
    let limit = if compressed { MAX_SIZE } else { on_disk };
    let said = header.data_end(if compressed { MAX_SIZE } else { size });
    let end = said.unwrap_or_else(|| {
        ledger.note(&BUFFER_END_ODD, 1, || nominal.place("buffer", pos));
        limit
    });
    let end = end.min(limit);
    let cpu = bytes.u16_at(PROCESSOR_INDEX).unwrap_or(0);
    let cpu = if header.flags & FLAG_PROCESSOR_INDEX != 0 { cpu & PROCESSOR_INDEX_MASK } else { cpu & 0xFF };
    if header.flags & FLAG_EVENTS_LOST != 0 {
        ledger.note(&EVENTS_LOST_FLAG, 1, || nominal.place("buffer", pos));
    }
    if header.flags & FLAG_BUFFER_LOST != 0 {
        ledger.note(&BUFFER_LOST_FLAG, 1, || nominal.place("buffer", pos));
    }
    if header.kind == TYPE_CTX_SWAP {
        ledger.note(&COMPACT_CSWITCH, 1, || nominal.place("buffer", pos));
    }
    let data = bytes.get(LEN..).unwrap_or(&[]);
    let first = if end <= LEN as u32 {
        None
    } else if compressed {
        nominal.format.and_then(|format| {
            let mut out = [0u8; 64 + SLACK];
            let n = format.decompress(data, &mut out, 64);
            first_ticks(out.get(..n)?)
        })
    } else {
        first_ticks(data.get(..(end as usize - LEN).min(data.len())).unwrap_or(data))
    };
    BufferEntry {
        offset: pos,
        size: on_disk,
        end,
        cpu,
        logger_id: bytes.u16_at(LOGGER_ID).unwrap_or(0),
        segment: 0,
        flags: header.flags,
        kind: header.kind,
        sequence: bytes.i64_at(SEQUENCE_NUMBER).unwrap_or(0),
        flush_ticks: bytes.i64_at(TIME_STAMP).unwrap_or(0),
        first_ticks: first,
        end_known: said.is_some(),
    }
}

/// Most sessions in one file; what is appended to it later counts as part of the last one.
const MAX_SEGMENTS: u16 = 1024;

/// A header buffer behind the first starts an appended session.
fn number_segments(buffers: &mut [BufferEntry]) {
    let mut segment = 0u16;
    for (i, buffer) in buffers.iter_mut().enumerate() {
        if i > 0 && buffer.kind == TYPE_HEADER && buffer.sequence == 0 {
            segment = (segment + 1).min(MAX_SEGMENTS - 1);
        }
        buffer.segment = segment;
    }
}
