//! Does this start like the first buffer of a trace?

use etwhy_base::Bytes;
use etwhy_etl::abi::buffer;

/// Smallest buffer that Windows writes is 1 KiB, but merged and compressed files cut the first buffer
/// down to what it holds: header, record header, `TRACE_LOGFILE_HEADER`.
const SMALLEST_FIRST_BUFFER: u32 = 0x200;

/// Marker bytes of a `SYSTEM_TRACE_HEADER`: header type 1 (32-bit) or 2 (64-bit), flags 0xC0.
const MARKER_FLAGS: u8 = 0xC0;

/// True if `bytes` (the first 512 or more) look like the first buffer of a trace. There is no magic
/// number, so this asks for a plausible size and the log-file header record that must come first.
pub fn looks_like_etl(bytes: &[u8]) -> bool {
    check(bytes).unwrap_or(false)
}

/// True if the reader could take `bytes` for the first buffer of a trace, which it believes more easily: whatever else is
/// wrong with it, the first record has to be the session's header.
pub fn may_be_etl(bytes: &[u8]) -> bool {
    let size = bytes.u32_at(buffer::BUFFER_SIZE).unwrap_or(0);
    let record_type = bytes.u8_at(buffer::LEN + 2).unwrap_or(0);
    (buffer::LEN as u32..=buffer::MAX_SIZE).contains(&size)
        && matches!(record_type, 1..=4)
        && bytes.u8_at(buffer::LEN + 3) == Some(MARKER_FLAGS)
        && bytes.u16_at(buffer::LEN + 6) == Some(0)
}

fn check(bytes: &[u8]) -> Option<bool> {
    let size = bytes.u32_at(buffer::BUFFER_SIZE)?;
    let saved = bytes.u32_at(buffer::SAVED_OFFSET)?;
    let end = bytes.u32_at(buffer::OFFSET)?;
    let record_type = bytes.u8_at(buffer::LEN + 2)?;
    let record_flags = bytes.u8_at(buffer::LEN + 3)?;
    let record_len = bytes.u16_at(buffer::LEN + 4)?;
    let hook = bytes.u16_at(buffer::LEN + 6)?;
    Some(
        (SMALLEST_FIRST_BUFFER..=buffer::MAX_SIZE).contains(&size)
            && saved <= size
            && end <= size
            && matches!(record_type, 1 | 2)
            && record_flags == MARKER_FLAGS
            && u32::from(record_len) <= size
            && hook == 0,
    )
}
