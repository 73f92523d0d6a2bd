//! 7z archives.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};

use etwhy_base::Bytes;
use flate2::Crc;
use sevenz_rust2::{Archive, ArchiveEntry, Block, BlockDecoder, Coder, EncoderMethod, Error, Password};

use crate::collect::{Collector, Package, is_named_archive, is_symbol_file};
use crate::spool::{self, Fused};
use crate::{InputError, WantedFiles};

const BUFFER: usize = 1 << 18;
/// One thread: the parallel decoder of LZMA2 holds whole independent chunks in memory, and how large they
/// are is up to the archive.
const THREADS: u32 = 1;
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

pub fn unpack(collector: &mut Collector<'_>, package: &mut Package, file: File) -> Result<(), InputError> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    let password = Password::empty();
    let archive = match check_contents(&mut file).and_then(|()| Archive::read(&mut file, &password)) {
        Ok(archive) => archive,
        Err(error) => {
            failed(collector, package, "the archive", error);
            return Ok(());
        }
    };
    // Names decide if any is a trace's; only an archive without such a name is unpacked to look inside.
    let wanted = collector.options.wanted;
    let by_name = archive.files.iter().any(|f| wanted.is_named(&f.name));
    for (index, block) in archive.blocks.iter().enumerate() {
        let decoder = BlockDecoder::new(THREADS, index, &archive, &password, &mut file);
        // The names of the wanted members, at their places in the block.
        let block_names: Vec<Option<String>> =
            decoder.entries().iter().map(|e| is_wanted(e, by_name, wanted).then(|| e.name.clone())).collect();
        let Some(last) = block_names.iter().rposition(Option::is_some) else { continue };
        let label = block_names.iter().flatten().next().cloned().unwrap_or_default();
        if let Err(error) = check_dictionary(block, MAX_DICTIONARY) {
            failed(collector, package, &label, error);
            continue;
        }
        let mut stopped = None;
        let mut position = 0;
        let mut broken_at = None;
        let result = decoder.for_each_entries(&mut |entry: &ArchiveEntry, source: &mut dyn Read| {
            let at = position;
            position += 1;
            let mut source = Fused::new(source);
            let mut step = Ok(());
            if block_names.get(at).is_some_and(Option::is_some) {
                step = collector.member(package, &entry.name, Some(entry.size), &mut source);
            }
            if step.is_ok() && at < last && !source.is_broken() {
                step = spool::drain(&mut source, &mut collector.budget);
            }
            if source.is_broken() {
                broken_at = Some(at);
            }
            let go_on = at < last && !source.is_broken();
            match step {
                Ok(()) => Ok(go_on),
                Err(error) => {
                    stopped = Some(error);
                    Ok(false)
                }
            }
        });
        if let Some(error) = stopped {
            return Err(error);
        }
        let lost = broken_at.map_or(&[][..], |at| block_names.get(at.saturating_add(1)..).unwrap_or(&[]));
        for name in lost.iter().flatten() {
            collector.damaged(package, name, "it stands behind damage in the same block".to_owned());
        }
        if let Err(error) = result {
            failed(collector, package, &label, error);
        }
    }
    Ok(())
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

fn is_wanted(entry: &ArchiveEntry, by_name: bool, wanted: WantedFiles) -> bool {
    let name = &entry.name;
    !entry.is_directory
        && (!by_name || wanted.is_named(name) || is_symbol_file(name) || is_named_archive(name))
}

fn failed(collector: &mut Collector<'_>, package: &mut Package, name: &str, error: Error) {
    match error {
        Error::PasswordRequired | Error::MaybeBadPassword(_) => collector.encrypted(package, name),
        Error::UnsupportedCompressionMethod(method) if method.contains("AES") => {
            collector.encrypted(package, name)
        }
        Error::UnsupportedCompressionMethod(method) => collector.unsupported(package, name, method),
        Error::Unsupported(what) => collector.unsupported(package, name, what.into_owned()),
        Error::Io(error, _) => collector.damaged(package, name, error.to_string()),
        Error::NextHeaderCrcMismatch | Error::BadTerminatedHeader(_) => {
            collector.damaged(
                package,
                name,
                "its list of contents (at the end) is damaged or missing".to_owned(),
            );
        }
        Error::ChecksumVerificationFailed => {
            collector.damaged(package, name, "wrong checksum".to_owned());
        }
        Error::Other(what) => collector.damaged(package, name, what.into_owned()),
        other => collector.damaged(package, name, other.to_string()),
    }
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
