//! Finds the buffers of a file, also where headers are damaged.

use super::anomalies::*;
use super::resync::{resync, size_of};
use super::source::Source;
use super::tokens::first_ticks;
use crate::Ledger;
use crate::abi::buffer::*;
use crate::decompress::{Format, SLACK};
use etwhy_base::Bytes;
use std::collections::HashSet;
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

    fn is_compressed(&self) -> bool {
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
    fn data_end(&self, limit: u32) -> Option<u32> {
        let end = if self.end == 0 { self.saved } else { self.end };
        let late_records = self.kind == TYPE_HEADER && self.saved < end;
        let agree = self.saved == end || self.saved == 0 || late_records;
        Some(end).filter(|&end| agree && end >= LEN as u32 && end <= limit)
    }

    /// As many bytes as this buffer may hold, unpacked.
    fn most(&self, nominal: &Nominal<'_>) -> u32 {
        [self.end, self.saved].into_iter().filter(|&end| end <= MAX_SIZE).fold(nominal.step(), u32::max)
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
    drop_repeated(&mut buffers, nominal, ledger);
    Index { buffers }
}

/// Leaves out buffers that stand in the file before: a copy that went wrong would count events twice, and a copied
/// session header would begin another session.
fn drop_repeated(buffers: &mut Vec<BufferEntry>, nominal: &Nominal<'_>, ledger: &mut Ledger) {
    let mut seen = HashSet::new();
    buffers.retain(|b| {
        let Some(first) = b.first_ticks else { return true };
        let new = seen.insert((b.sequence, first, b.cpu, b.logger_id, b.end));
        ledger.note(&BUFFERS_REPEATED, u64::from(!new), || nominal.place("buffer", b.offset));
        new
    });
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
    let data = bytes.get(LEN..).unwrap_or(&[]);
    let content = content(data, header, on_disk, size, pos, nominal);
    let odd = content.compressed != header.is_compressed() || content.said.is_none();
    ledger.note(&BUFFER_END_ODD, u64::from(odd), || nominal.place("buffer", pos));
    ledger.note(&RECORDS_BEHIND_END, u64::from(content.behind_end), || nominal.place("buffer", pos));
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
    BufferEntry {
        offset: pos,
        size: on_disk,
        end: content.end,
        cpu,
        logger_id: bytes.u16_at(LOGGER_ID).unwrap_or(0),
        segment: 0,
        flags: header.flags & !FLAG_COMPRESSED | if content.compressed { FLAG_COMPRESSED } else { 0 },
        kind: header.kind,
        sequence: bytes.i64_at(SEQUENCE_NUMBER).unwrap_or(0),
        flush_ticks: bytes.i64_at(TIME_STAMP).unwrap_or(0),
        first_ticks: content.first_ticks,
        end_known: content.said.is_some(),
    }
}

/// What is in a buffer, where its header is believed only as far as it fits.
struct Content {
    compressed: bool,
    /// End of valid data as the header gives it.
    said: Option<u32>,
    end: u32,
    first_ticks: Option<i64>,
    /// The header says that the buffer is empty, and a record stands in it.
    behind_end: bool,
}

fn content(
    data: &[u8],
    header: &Header,
    on_disk: u32,
    size: u32,
    pos: u64,
    nominal: &Nominal<'_>,
) -> Content {
    let unpack = |format: Format| {
        let mut out = [0u8; 64 + SLACK];
        let n = format.decompress(data, &mut out, 64);
        first_ticks(out.get(..n)?)
    };
    let plain = first_ticks(data);
    let unpacked = || nominal.format.filter(|_| nominal.packed).and_then(unpack);
    // Sessions pack all buffers behind the first or none.
    let compressed = if header.is_compressed() {
        nominal.packed || plain.is_none()
    } else {
        nominal.packed && pos > 0 && plain.is_none() && unpacked().is_some()
    };
    let first = if compressed { unpacked() } else { plain };
    let limit = if compressed { header.most(nominal) } else { on_disk };
    let mut said = header.data_end(if compressed { MAX_SIZE } else { size });
    let empty = said == Some(LEN as u32);
    if compressed && empty && first.is_some() {
        // Empty buffers are packed to nothing.
        said = None;
    }
    let end = said.unwrap_or(limit).min(limit);
    let inside = end > LEN as u32;
    // The record's time may stand behind the end where that is damaged: then it is no record.
    let until = (end as usize).saturating_sub(LEN);
    let whole = compressed || first_ticks(data.get(..until).unwrap_or(data)).is_some();
    Content {
        compressed,
        said,
        end,
        first_ticks: first.filter(|_| inside && whole),
        behind_end: empty && !inside && first.is_some(),
    }
}
