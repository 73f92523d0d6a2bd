//! What a `.7z` may ask of memory. The crate that unpacks it believes whatever the archive says.

use etwhy_base::Bytes;
use flate2::Crc;
use sevenz_rust2::{Archive, ArchiveReader, Block, Coder, EncoderMethod, Error, Password};
use std::io::{Cursor, Read, Seek, SeekFrom};

/// One thread: the parallel decoder of LZMA2 holds whole independent chunks in memory, and how large they
/// are is up to the archive.
pub(crate) const THREADS: u32 = 1;
/// Largest dictionary that is accepted. 7-Zip's strongest preset uses 256 MiB; its dialog offers up to
/// 3840 MiB, which no trace needs.
const MAX_DICTIONARY: u64 = 1536 << 20;
/// Largest list of contents that is accepted, packed or not: that of some ten thousand members. The crate takes about 100 bytes of memory
/// for each byte that a list may claim to be a member.
const MAX_CONTENTS: u64 = 8 << 20;
/// Largest dictionary for a packed list. 7-Zip takes 1 MiB, other programs what they take for members by default.
const MAX_CONTENTS_DICTIONARY: u64 = 64 << 20;
/// Bytes in front of the packed data (7zFormat.txt, "SignatureHeader").
const SIGNATURE_HEADER: usize = 32;
/// Signature and version 0.4.
const SIGNATURE: &[u8; 8] = b"7z\xBC\xAF\x27\x1C\0\x04";
/// Starts a list of contents that is packed (7zFormat.txt, "Property IDs").
const ENCODED_HEADER: u8 = 0x17;
/// Starts a plain list, up to where its streams are described.
const HEADER_OF_STREAMS: [u8; 2] = [0x01, 0x04];
/// Ends such a list: one file without content.
const ONE_EMPTY_FILE: [u8; 7] = [0x05, 1, 0x0E, 1, 0x80, 0, 0];

/// Opens an archive none of whose parts asks for more memory than it may.
///
/// # Errors
/// Damage, and sizes above the limits.
pub fn open<R: Read + Seek>(mut source: R) -> Result<ArchiveReader<R>, Error> {
    let archive = contents(&mut source)?;
    archive.blocks.iter().try_for_each(check_block)?;
    let mut reader = ArchiveReader::from_archive(archive, source, Password::empty());
    reader.set_thread_count(THREADS);
    Ok(reader)
}

/// Its list of contents, if that asks for no more memory than it may.
pub(crate) fn contents<R: Read + Seek>(file: &mut R) -> Result<Archive, Error> {
    check_contents(file)?;
    Archive::read(file, &Password::empty())
}

/// Refuses a block whose dictionary is too large.
pub(crate) fn check_block(block: &Block) -> Result<(), Error> {
    check_dictionary(block, MAX_DICTIONARY)
}

/// Refuses a list of contents that the crate would take any memory for: it unpacks a packed one whatever its size and its dictionary.
fn check_contents<R: Read + Seek>(file: &mut R) -> Result<(), Error> {
    let mut start = [0; SIGNATURE_HEADER];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut start)?;
    let (offset, size) = (start.u64_at(12).unwrap_or(0), start.u64_at(20).unwrap_or(0));
    // An archive that was not finished. The crate would try each byte near its end that may begin a list, unchecked.
    if size == 0 {
        return Err(Error::NextHeaderCrcMismatch);
    }
    // What is damaged says nothing of its size.
    if start.get(12..).map(checksum) != start.u32_at(8) {
        return Err(Error::ChecksumVerificationFailed);
    }
    check_size(size)?;
    file.seek(SeekFrom::Start(offset.saturating_add(SIGNATURE_HEADER as u64)))?;
    let mut list = Vec::new();
    Read::take(file, size).read_to_end(&mut list)?;
    if Some(checksum(&list)) != start.u32_at(28) {
        return Err(Error::NextHeaderCrcMismatch);
    }
    let Some((&ENCODED_HEADER, streams)) = list.split_first() else { return Ok(()) };
    // The same description in a plain list: what the crate reads of it there, it would read of it here.
    let list = [&HEADER_OF_STREAMS[..], streams, &ONE_EMPTY_FILE[..]].concat();
    let described = Archive::read(&mut Cursor::new(archive_of(&list)), &Password::empty())?;
    described.blocks.iter().try_for_each(|block| {
        check_size(block.get_unpack_size())?;
        check_dictionary(block, MAX_CONTENTS_DICTIONARY)
    })
}

fn check_size(bytes: u64) -> Result<(), Error> {
    match bytes > MAX_CONTENTS {
        true => Err(Error::Unsupported(format!("a list of contents of {} MiB", bytes >> 20).into())),
        false => Ok(()),
    }
}

/// All coders of a block are at work at the same time.
fn check_dictionary(block: &Block, limit: u64) -> Result<(), Error> {
    match block.coders.iter().map(dictionary).fold(0, u64::saturating_add) {
        size if size > limit => Err(Error::Unsupported(format!("a dictionary of {} MiB", size >> 20).into())),
        _ => Ok(()),
    }
}

/// An archive with this list of contents and nothing else.
fn archive_of(list: &[u8]) -> Vec<u8> {
    let mut start = 0u64.to_le_bytes().to_vec();
    start.extend((list.len() as u64).to_le_bytes());
    start.extend(checksum(list).to_le_bytes());
    let sealed = checksum(&start).to_le_bytes();
    [&SIGNATURE[..], &sealed[..], start.as_slice(), list].concat()
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Bytes of the dictionary that a coder asks for (7-Zip's Methods.txt and lzma-specification.txt).
fn dictionary(coder: &Coder) -> u64 {
    let properties = coder.properties();
    let id = coder.encoder_method_id();
    if id == EncoderMethod::ID_LZMA {
        return properties.u32_at(1).map_or(0, u64::from);
    }
    if id == EncoderMethod::ID_LZMA2 {
        let bits = u32::from(properties.u8_at(0).unwrap_or(0));
        return u64::from(2 | (bits & 1)).checked_shl(bits / 2 + 11).unwrap_or(u64::MAX);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use sevenz_rust2::ArchiveEntry;

    /// An archive whose list of contents says that it is packed with LZMA: size and dictionary.
    fn packed(size: u64, dictionary: u32) -> Vec<u8> {
        let mut list = vec![ENCODED_HEADER];
        // One packed stream of ten bytes.
        list.extend([0x06, 0, 1, 0x09, 10, 0]);
        // One block of one coder with properties.
        list.extend([0x07, 0x0B, 1, 0, 1, 0x23, 3, 1, 1, 5, 0x5D]);
        list.extend(dictionary.to_le_bytes());
        list.extend([0x0C, 0xFF]);
        list.extend(size.to_le_bytes());
        list.extend([0, 0]);
        archive_of(&list)
    }

    fn refused(archive: Vec<u8>) -> String {
        match check_contents(&mut Cursor::new(archive)) {
            Ok(()) => String::new(),
            Err(Error::Unsupported(what)) => what.into_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_packed_list_of_contents_is_judged_before_it_is_unpacked() {
        assert_eq!(refused(packed(1000, 1 << 20)), "");
        assert_eq!(refused(packed(MAX_CONTENTS, 1 << 26)), "");
        assert_eq!(refused(packed(5 << 29, 1 << 20)), "a list of contents of 2560 MiB");
        assert_eq!(refused(packed(u64::MAX, 1 << 20)), "a list of contents of 17592186044415 MiB");
        assert_eq!(refused(packed(1000, 1 << 30)), "a dictionary of 1024 MiB");
    }

    #[test]
    fn a_list_without_a_place_is_not_searched_for() {
        let mut archive = packed(5 << 29, 1 << 20);
        archive[8..SIGNATURE_HEADER].fill(0);
        assert_eq!(refused(archive), "NextHeaderCrcMismatch");
        let mut cut = packed(1000, 1 << 20);
        cut.pop();
        assert_eq!(refused(cut), "NextHeaderCrcMismatch");
    }

    #[test]
    fn lists_of_real_archives_pass() {
        let mut writer = sevenz_rust2::ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
        for number in 0..40 {
            let entry = ArchiveEntry::new_file(&format!("a folder of some length/file {number}.etl"));
            writer.push_archive_entry(entry, Some(&b"content"[..])).unwrap();
        }
        let archive = writer.finish().unwrap().into_inner();
        let at = SIGNATURE_HEADER + usize::try_from(archive.u64_at(12).unwrap()).unwrap();
        assert_eq!(archive[at], ENCODED_HEADER, "it packs the list");
        assert_eq!(refused(archive), "");
    }
}
