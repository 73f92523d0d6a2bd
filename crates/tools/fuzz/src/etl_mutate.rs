//! Mutations that know where buffers and records of a trace stand.

use crate::mutate::{self, EXTREMES, put};
use etwhy_base::Bytes;
use etwhy_base::rng::Rng;
use etwhy_etl::abi::{buffer, header};

/// Offsets of the buffers, as far as their sizes make sense.
pub fn buffers(data: &[u8]) -> Vec<(usize, usize)> {
    let mut list = Vec::new();
    let mut at = 0usize;
    while let Some(size) = data.u32_at(at).map(|s| s as usize) {
        if size < buffer::LEN || size > data.len() - at {
            break;
        }
        list.push((at, size));
        at += size;
    }
    list
}

/// Offsets and lengths of the records of a raw buffer.
pub fn records(data: &[u8], (start, size): (usize, usize)) -> Vec<(usize, usize)> {
    let mut list = Vec::new();
    let mut at = start + buffer::LEN;
    let end = start + size;
    while at + 8 <= end {
        let marker = data.u32_at(at).unwrap_or(0);
        let system = matches!(marker >> 16, 0xC001..=0xC004 | 0xC010 | 0xC011);
        let size_at = if system { header::SYSTEM_SIZE } else { header::GUID_SIZE };
        let len = usize::from(data.u16_at(at + size_at).unwrap_or(0));
        if marker >> 24 & 0x80 == 0 || len < 8 || at + len > end {
            break;
        }
        list.push((at, len));
        at += len.next_multiple_of(8);
    }
    list
}

/// Fields of a buffer header with their widths.
const BUFFER_FIELDS: [(usize, usize); 10] = [
    (buffer::BUFFER_SIZE, 4),
    (buffer::SAVED_OFFSET, 4),
    (buffer::TIME_STAMP, 8),
    (buffer::SEQUENCE_NUMBER, 8),
    (buffer::PROCESSOR_INDEX, 2),
    (buffer::LOGGER_ID, 2),
    (buffer::STATE, 4),
    (buffer::OFFSET, 4),
    (buffer::BUFFER_FLAG, 2),
    (buffer::BUFFER_TYPE, 2),
];

/// One mutation of a trace.
pub fn once(rng: &mut Rng, data: &mut Vec<u8>, other: &[u8]) {
    let all = buffers(data);
    let Some(&place) = rng.pick(&all) else {
        mutate::once(rng, data, other);
        return;
    };
    match rng.index(12) {
        0 => {
            let (field, width) = rng.pick(&BUFFER_FIELDS).copied().unwrap_or((0, 4));
            let old = data.u32_at(place.0 + field).unwrap_or(0);
            let value = match rng.index(3) {
                0 => rng.pick(&EXTREMES).copied().unwrap_or(0),
                1 => u64::from(old).wrapping_add(rng.index(64) as u64).wrapping_sub(32),
                _ => rng.bits(),
            };
            put(data, place.0 + field, width, value);
        }
        1 => {
            // Buffers change places, or one stands there twice.
            let (from, size) = rng.pick(&all).copied().unwrap_or(place);
            let piece = data.get(from..from + size).unwrap_or(&[]).to_vec();
            let to = if rng.index(2) == 0 { place.0..place.0 + place.1 } else { place.0..place.0 };
            data.splice(to, piece);
        }
        2 => {
            data.drain(place.0..place.0 + place.1);
        }
        3..=8 => record(rng, data, place),
        9 => session_header(rng, data),
        _ => mutate::once(rng, data, other),
    }
}

fn record(rng: &mut Rng, data: &mut [u8], place: (usize, usize)) {
    let all = records(data, place);
    let Some(&(at, len)) = rng.pick(&all) else { return };
    let payload = at + len.min(header::COMPACT_LEN);
    match rng.index(8) {
        // Another kind of kernel event with this payload.
        0 | 1 => {
            let group = rng.index(0x1F) as u64;
            let types = if rng.index(2) == 0 { 48 } else { 256 };
            let hook = group << 8 | rng.index(types) as u64;
            put(data, at + header::SYSTEM_HOOK, 2, hook);
        }
        2 => put(data, at + header::SYSTEM_VERSION, 1, rng.index(6) as u64),
        3 => {
            // Another header.
            let kinds = [1, 2, 3, 4, 10, 11, 13, 16, 17, 18, 19, 20, 21, 64, 99];
            let kind = rng.pick(&kinds).copied().unwrap_or(2);
            put(data, at + 2, 1, kind);
        }
        4 => {
            let size = rng.pick(&EXTREMES).copied().unwrap_or(0);
            let at_size = if rng.index(2) == 0 { header::SYSTEM_SIZE } else { header::GUID_SIZE };
            put(data, at + at_size, 2, size);
        }
        5 => {
            let value = rng.pick(&EXTREMES).copied().unwrap_or(0);
            put(data, at + header::COMMON_TIME, 8, value);
        }
        _ => {
            for _ in 0..=rng.index(8) {
                let offset = rng.index((at + len).saturating_sub(payload));
                let width = [1, 2, 4, 8].get(rng.index(4)).copied().unwrap_or(1);
                let value =
                    if rng.index(2) == 0 { rng.pick(&EXTREMES).copied().unwrap_or(0) } else { rng.bits() };
                if offset + width <= (at + len).saturating_sub(payload) {
                    put(data, payload + offset, width, value);
                }
            }
        }
    }
}

fn session_header(rng: &mut Rng, data: &mut [u8]) {
    let start = buffer::LEN + header::SYSTEM_LEN;
    let at = start + (rng.index(0x118) & !3);
    let value = rng.pick(&EXTREMES).copied().unwrap_or(0);
    put(data, at, 4, value);
}

/// A few mutations of a trace.
pub fn several(rng: &mut Rng, data: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=rng.index(10) {
        once(rng, data, other);
    }
}
