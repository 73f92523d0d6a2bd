//! Finds the buffers of a file, also where headers are damaged.

use super::anomalies::*;
use super::header::{Header, Nominal};
use super::resync::{resync, size_of};
use super::source::Source;
use super::tokens::first_ticks;
use crate::Ledger;
use crate::abi::buffer::*;
use crate::decompress::{Format, SLACK};
use etwhy_base::Bytes;
use std::collections::HashSet;

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

/// Bytes read at each buffer: header and enough of the data for its first timestamp.
const PROBE: usize = 1024;

/// Buffers that were found, and how far the file is read.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) buffers: Vec<BufferEntry>,
    /// Where the next buffer begins, as far as is known.
    pub(crate) end: u64,
}

/// Hops over all buffers of the file behind those in `known`. Of a file that is `growing`, what does not stand there whole is
/// left for the next time.
pub(crate) fn index(
    source: &Source,
    nominal: &Nominal<'_>,
    ledger: &mut Ledger,
    known: Index,
    growing: bool,
) -> Index {
    let total = source.len();
    let Index { mut buffers, end: mut pos } = known;
    let mut probe = Vec::with_capacity(PROBE);
    while pos < total {
        let Some(bytes) = source.bytes(pos, PROBE, &mut probe) else {
            ledger.note(&READ_FAILED, 1, || nominal.place("bytes", pos));
            break;
        };
        let header = Header::read(bytes).filter(|_| !growing || bytes.len() >= LEN);
        if header.is_none() {
            // Less than a header is left.
            if growing {
                break;
            }
            if bytes.iter().all(|&b| b == 0) {
                ledger.count(&TAIL_OF_ZEROS, total - pos);
            } else {
                ledger.note(&FILE_TRUNCATED, 1, || nominal.place("bytes", pos));
            }
            break;
        }
        let Some(header) = header.filter(Header::plausible) else {
            let mut found = Ledger::new();
            let next = resync(source, pos, nominal, &mut found);
            if growing && next.is_none() {
                break;
            }
            ledger.merge(&found);
            let Some(next) = next else { break };
            pos = next;
            continue;
        };
        let left = total - pos;
        let behind = left.saturating_sub(u64::from(header.size));
        let next_is_cut = nominal.packed && behind > 0 && behind < (LEN + 8) as u64;
        if growing && (u64::from(header.size) > left || next_is_cut) {
            break;
        }
        let size = size_of(source, pos, &header, nominal, ledger);
        if u64::from(size) > left {
            ledger.note(&FILE_TRUNCATED, 1, || nominal.place("buffer", pos));
        }
        buffers.push(entry(bytes, &header, pos, size, left, nominal, ledger));
        pos += u64::from(size);
    }
    drop_repeated(&mut buffers, nominal, ledger);
    Index { buffers, end: pos.min(total) }
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
