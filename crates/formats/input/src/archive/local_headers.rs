//! Zip archives without their list of contents: members are found by their local headers.
//!
//! Layout: APPNOTE.TXT 4.3.7 (local file header) and 4.5.3 (Zip64 extra field).

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use etwhy_base::Bytes;

use crate::InputError;
use crate::collect::{Collector, Package};

const SIGNATURE: &[u8] = b"PK\x03\x04";
const HEADER_LEN: usize = 30;
const FLAG_ENCRYPTED: u16 = 1;
const FLAG_DATA_DESCRIPTOR: u16 = 1 << 3;
const METHOD_STORED: u16 = 0;
const METHOD_DEFLATE: u16 = 8;
const METHOD_DEFLATE64: u16 = 9;
const ZIP64_EXTRA: u16 = 1;
/// Names are at most 64 KiB; real ones are short, and a long one is a false hit in packed data.
const MAX_NAME: usize = 4096;
/// Members after which the search ends.
const MAX_MEMBERS: usize = 65_535;

struct LocalHeader {
    name: String,
    flags: u16,
    method: u16,
    /// `None` if a data descriptor behind the data says it.
    packed: Option<u64>,
    claimed: Option<u64>,
}

/// The name of a compression method (APPNOTE.TXT 4.4.5).
pub fn method_name(method: u16) -> String {
    let name = match method {
        1 => "shrink",
        6 => "implode",
        12 => "bzip2",
        14 => "LZMA",
        93 => "Zstandard",
        95 => "xz",
        98 => "PPMd",
        99 => "AES encryption",
        _ => return format!("method {method}"),
    };
    name.to_owned()
}

/// Unpacks every member found from the current position on.
pub fn unpack<R: Read + Seek>(
    collector: &mut Collector<'_>,
    package: &mut Package,
    file: &mut BufReader<R>,
) -> Result<(), InputError> {
    for _ in 0..MAX_MEMBERS {
        // A reading error here is the end of what can be found.
        let Ok(true) = seek_to_signature(file) else { break };
        let Ok(after_signature) = file.stream_position() else { break };
        let header = read_header(file);
        let Ok(data_start) = file.stream_position() else { break };
        let mut next = after_signature;
        if let Ok(Some(header)) = header {
            next = data_start;
            one_member(collector, package, &header, file)?;
            match header.packed {
                Some(packed) => next = data_start.saturating_add(packed),
                // The decoder stops where the data ends, give or take its look-ahead.
                None => {
                    let end = file.stream_position().unwrap_or(data_start);
                    next = next.max(end.saturating_sub(LOOK_AHEAD));
                }
            }
        }
        if file.seek(SeekFrom::Start(next)).is_err() {
            break;
        }
    }
    Ok(())
}

/// Bytes that a decoder may have read beyond the end of its data.
const LOOK_AHEAD: u64 = 16;

fn one_member<R: Read + Seek>(
    collector: &mut Collector<'_>,
    package: &mut Package,
    header: &LocalHeader,
    file: &mut BufReader<R>,
) -> Result<(), InputError> {
    let name = &header.name;
    if name.ends_with('/') {
        return Ok(());
    }
    if header.flags & FLAG_ENCRYPTED != 0 {
        collector.encrypted(package, name);
        return Ok(());
    }
    let limit = header.packed.unwrap_or(u64::MAX);
    let mut packed = Read::take(&mut *file, limit);
    match header.method {
        METHOD_STORED => {
            let mut stored = ExactReader { inner: packed, left: header.packed.unwrap_or(0) };
            collector.member(package, name, header.claimed, &mut stored)
        }
        METHOD_DEFLATE => {
            let mut decoder = flate2::bufread::DeflateDecoder::new(&mut packed);
            collector.member(package, name, header.claimed, &mut decoder)
        }
        METHOD_DEFLATE64 => {
            let mut decoder = deflate64::Deflate64Decoder::with_buffer(&mut packed);
            collector.member(package, name, header.claimed, &mut decoder)
        }
        method => {
            collector.unsupported(package, name, method_name(method));
            Ok(())
        }
    }
}

/// Stored data that ends early is damage, which a plain `take` would not notice.
struct ExactReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for ExactReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        if n == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive ends inside this member"));
        }
        self.left = self.left.saturating_sub(n as u64);
        Ok(n)
    }
}

fn read_header(file: &mut impl Read) -> io::Result<Option<LocalHeader>> {
    let mut fixed = [0; HEADER_LEN - SIGNATURE.len()];
    file.read_exact(&mut fixed)?;
    // Offsets are those of APPNOTE less the four bytes of the signature.
    let field = |at: usize| fixed.u16_at(at).unwrap_or(0);
    let size = |at: usize| fixed.u32_at(at).unwrap_or(0);
    let (version, flags, method) = (field(0), field(2), field(4));
    let (name_len, extra_len) = (usize::from(field(22)), usize::from(field(24)));
    // Version 6.3 is the highest that APPNOTE knows.
    if version & 0xFF > 63 || name_len == 0 || name_len > MAX_NAME {
        return Ok(None);
    }
    let mut name = vec![0; name_len];
    file.read_exact(&mut name)?;
    let mut extra = vec![0; extra_len];
    file.read_exact(&mut extra)?;
    let (packed, claimed) = sizes(size(14), size(18), &extra);
    let unknown = flags & FLAG_DATA_DESCRIPTOR != 0;
    Ok(Some(LocalHeader {
        name: String::from_utf8_lossy(&name).into_owned(),
        flags,
        method,
        packed: if unknown { None } else { Some(packed) },
        claimed: if unknown { None } else { Some(claimed) },
    }))
}

/// Packed and unpacked size, from the Zip64 extra field where the 32-bit fields are all ones.
fn sizes(packed: u32, unpacked: u32, mut extra: &[u8]) -> (u64, u64) {
    if packed != u32::MAX && unpacked != u32::MAX {
        return (packed.into(), unpacked.into());
    }
    while let (Some(id), Some(len)) = (extra.u16_at(0), extra.u16_at(2)) {
        let end = usize::from(len).saturating_add(4);
        if id == ZIP64_EXTRA {
            // A local header must hold both, the unpacked size first.
            if let (Some(real), Some(real_packed)) = (extra.u64_at(4), extra.u64_at(12)) {
                return (real_packed, real);
            }
        }
        extra = extra.get(end..).unwrap_or(&[]);
    }
    (packed.into(), unpacked.into())
}

/// Moves behind the next signature; `false` at the end of the file.
fn seek_to_signature(file: &mut impl BufRead) -> io::Result<bool> {
    let mut matched = 0;
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            return Ok(false);
        }
        let mut used = 0;
        for byte in chunk {
            used += 1;
            matched = match SIGNATURE.get(matched) {
                Some(expected) if expected == byte => matched + 1,
                _ => usize::from(*byte == b'P'),
            };
            if matched == SIGNATURE.len() {
                file.consume(used);
                return Ok(true);
            }
        }
        file.consume(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_found_across_repeats() {
        let mut file = BufReader::with_capacity(3, &b"PPKPK\x03PK\x03\x04rest"[..]);
        assert!(seek_to_signature(&mut file).unwrap());
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "rest");
        assert!(!seek_to_signature(&mut file).unwrap());
    }

    #[test]
    fn zip64_sizes() {
        let mut extra = vec![0x55, 0x54, 1, 0, 9, 1, 0, 16, 0];
        extra.extend_from_slice(&5_000_000_000u64.to_le_bytes());
        extra.extend_from_slice(&4_900_000_000u64.to_le_bytes());
        assert_eq!(sizes(u32::MAX, u32::MAX, &extra), (4_900_000_000, 5_000_000_000));
        assert_eq!(sizes(7, 9, &extra), (7, 9));
        assert_eq!(sizes(u32::MAX, 1, &[1, 0, 0xFF, 0xFF]), (u32::MAX.into(), 1));
    }
}
