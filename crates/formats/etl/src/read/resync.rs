//! Finds the way back to sound buffers behind damage.
//!
//! Everything here moves forward only and reads large pieces, so that a hostile file costs a few passes over
//! its bytes and no more.

use super::anomalies::*;
use super::header::{Header, Nominal};
use super::source::Source;
use crate::Ledger;
use crate::abi::buffer::*;
use etwhy_base::Bytes;

/// Bytes looked at together in a search.
const WINDOW: usize = 1 << 20;

/// True if a buffer may begin at `pos`: its header is sound, and behind it stands a record, padding, nothing,
/// or compressed bytes. The end of the file will do.
fn plausible_at(source: &Source, pos: u64, nominal: &Nominal<'_>) -> bool {
    if pos == source.len() {
        return true;
    }
    let mut scratch = Vec::new();
    let Some(bytes) = source.bytes(pos, LEN + 8, &mut scratch) else { return false };
    let record = bytes.u32_at(LEN).map_or(0xC0, |m| m >> 24);
    Header::read(bytes).is_some_and(|h| {
        let sound = h.plausible() && (h.end != 0 || h.saved != 0);
        let compressed = h.flags & FLAG_COMPRESSED != 0;
        sound
            && if compressed {
                nominal.packed
            } else {
                h.end == LEN as u32 || matches!(record, 0xC0 | 0x90 | 0xFF)
            }
    })
}

fn is_zero(source: &Source, pos: u64) -> bool {
    let mut scratch = Vec::new();
    source.bytes(pos, LEN, &mut scratch).is_some_and(|b| b.iter().all(|&b| b == 0))
}

/// Size of a buffer on disk, which is its header's word unless that leads nowhere and another one leads on.
pub(crate) fn size_of(
    source: &Source,
    pos: u64,
    header: &Header,
    nominal: &Nominal<'_>,
    ledger: &mut Ledger,
) -> u32 {
    let said = header.size;
    let next = pos + u64::from(said);
    let total = source.len();
    let repaired = if !nominal.packed {
        let sane = nominal.size >= LEN as u32 && nominal.size <= MAX_SIZE;
        if !sane || said == nominal.size {
            return said;
        }
        // Buffers of a raw file have one size.
        let other = pos + u64::from(nominal.size);
        (other <= total && plausible_at(source, other, nominal)).then_some(nominal.size)
    } else {
        // Compressed buffers have any size: the next sound one tells, if the header's word leads nowhere.
        if pos == 0 || (next <= total && plausible_at(source, next, nominal)) {
            return said;
        }
        let far = pos.saturating_add(4 * u64::from(nominal.step()));
        let found = next_compressed(source, pos + LEN as u64, far.min(total), nominal);
        found.and_then(|found| u32::try_from(found - pos).ok()).filter(|&size| size <= 4 * MAX_SIZE)
    };
    match repaired {
        Some(size) => {
            ledger.note(&BUFFER_HEADER_BAD, 1, || nominal.place("size of buffer", pos));
            size
        }
        None => said,
    }
}

/// Finds the next sound buffer behind a bad header. `None`: there is none, the file is read.
pub(crate) fn resync(source: &Source, pos: u64, nominal: &Nominal<'_>, ledger: &mut Ledger) -> Option<u64> {
    let total = source.len();
    let zeros = is_zero(source, pos);
    let found = if nominal.packed {
        next_compressed(source, pos + 1, total, nominal)
    } else {
        // Buffers of raw files stand at multiples of their size.
        let step = u64::from(nominal.step());
        let mut at = (pos / step + 1) * step;
        while at < total && !plausible_at(source, at, nominal) {
            at += step;
        }
        Some(at).filter(|&at| at < total)
    };
    if !zeros || found.is_some() {
        ledger.note(&BUFFER_HEADER_BAD, 1, || nominal.place("bytes", pos));
    }
    let anomaly = if zeros && found.is_none() { &TAIL_OF_ZEROS } else { &BYTES_SKIPPED };
    ledger.note(anomaly, found.unwrap_or(total) - pos, || nominal.place("bytes", pos));
    found
}

/// The first place in a range at which a compressed buffer stands. Two sound headers in a row are taken as
/// proof.
fn next_compressed(source: &Source, from: u64, to: u64, nominal: &Nominal<'_>) -> Option<u64> {
    let mut window = Vec::new();
    let mut start = from;
    while start + (LEN as u64) < to {
        let bytes = source.bytes(start, WINDOW, &mut window)?;
        if bytes.len() < LEN {
            return None;
        }
        let mut at = 0usize;
        while at + LEN <= bytes.len() && start + (at as u64) < to {
            // No header begins in the middle of zeros: preallocated files end in gigabytes of them.
            if bytes.u64_at(at) == Some(0) {
                at += 1;
                while bytes.u64_at(at + 7) == Some(0) {
                    at += 8;
                }
                continue;
            }
            let pos = start + at as u64;
            let head = bytes.get(at..).and_then(Header::read).filter(|h| {
                h.plausible() && h.flags & FLAG_COMPRESSED != 0 && h.saved == h.end && h.end <= nominal.step()
            });
            if head.is_some_and(|h| plausible_at(source, pos + u64::from(h.size), nominal)) {
                return Some(pos);
            }
            at += 1;
        }
        start += at.max(1) as u64;
    }
    None
}
