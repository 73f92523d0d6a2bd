//! Archives without compression, so that the damage reaches what is inside.

/// CRC-32 of IEEE 802.3, as zip and gzip have it.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0xEDB8_8320 } else { 0 })
    })
}

/// A zip archive with stored members (APPNOTE.TXT 4.3).
pub fn stored_zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for (name, data) in members {
        let at = out.len() as u32;
        let mut common = Vec::new();
        for word in [20u16, 0, 0, 0, 0x21] {
            common.extend(word.to_le_bytes());
        }
        for word in [crc32(data), data.len() as u32, data.len() as u32] {
            common.extend(word.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(0u16.to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(*data);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0u8; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let at = out.len() as u32;
    let n = (members.len() as u16).to_le_bytes();
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(n);
    out.extend(n);
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// A gzip file of stored blocks (RFC 1951, 1952).
pub fn stored_gzip(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF];
    for block in data.chunks(0xFFFF) {
        let len = block.len() as u16;
        out.push(0);
        out.extend(len.to_le_bytes());
        out.extend((!len).to_le_bytes());
        out.extend(block);
    }
    out.extend([1, 0, 0, 0xFF, 0xFF]);
    out.extend(crc32(data).to_le_bytes());
    out.extend((data.len() as u32).to_le_bytes());
    out
}

/// A Zstandard frame of raw blocks (RFC 8878).
pub fn stored_zstd(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    let blocks: Vec<&[u8]> = data.chunks(60_000).collect();
    for (number, block) in blocks.iter().enumerate() {
        let last = u32::from(number + 1 == blocks.len());
        let head = (block.len() as u32) << 3 | last;
        out.extend(head.to_le_bytes().iter().take(3));
        out.extend(*block);
    }
    out
}

/// A 7z archive of packed bytes and a list of contents (`7zFormat.txt` of the LZMA SDK), whose checksums are
/// right whatever the list says.
pub fn seven_zip(packed: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut start = (packed.len() as u64).to_le_bytes().to_vec();
    start.extend((contents.len() as u64).to_le_bytes());
    start.extend(crc32(contents).to_le_bytes());
    let mut out = b"7z\xBC\xAF\x27\x1C\x00\x04".to_vec();
    out.extend(crc32(&start).to_le_bytes());
    out.extend(start);
    out.extend(packed);
    out.extend(contents);
    out
}

/// The list of contents of a 7z archive with one stored member of `size` bytes (below 128), `a.etl`.
pub fn seven_zip_contents(size: u8) -> Vec<u8> {
    // Header; streams: one pack of that size; one folder with the coder "copy" and that size; files: one, named.
    let mut out =
        vec![1, 4, 6, 0, 1, 9, size, 0, 7, 11, 1, 0, 1, 1, 0, 12, size, 0, 8, 0, 0, 5, 1, 17, 13, 0];
    out.extend("a.etl\0".encode_utf16().flat_map(u16::to_le_bytes));
    out.extend([0, 0]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_member_of_a_7z_archive() {
        // Nothing is unpacked that does not begin like a trace.
        let trace = &crate::seeds::written()[0].data[..100];
        let path = crate::scratch::file("a.7z", &seven_zip(trace, &seven_zip_contents(100))).unwrap();
        let options = etwhy_input::InputOptions::default();
        let files = etwhy_input::open(&[path], &options, &mut |_| {}, &mut etwhy_etl::Ledger::new()).unwrap();
        assert_eq!(std::fs::read(&files[0].path).unwrap(), trace);
    }

    #[test]
    fn others_can_read_them() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let trace = &crate::seeds::written()[0].data;
        for (name, data) in [
            ("a.zip", stored_zip(&[("x/a.etl", trace)])),
            ("a.etl.gz", stored_gzip(trace)),
            ("a.etl.zst", stored_zstd(trace)),
        ] {
            let path = crate::scratch::file(name, &data).unwrap();
            let options = etwhy_input::InputOptions::default();
            let files =
                etwhy_input::open(&[path], &options, &mut |_| {}, &mut etwhy_etl::Ledger::new()).unwrap();
            assert_eq!(std::fs::read(&files[0].path).unwrap(), *trace, "{name}");
        }
    }
}
