//! Checksums of an extract: what was written is what is read.
//!
//! A flipped bit in a page of numbers unpacks to other numbers as a rule, and neither zstd nor Parquet notices. The
//! manifest therefore has a CRC-32 of each part of a file that is read by itself (a column of a row group, the
//! metadata at the end), so that a reader pays for what it reads, and one of its own text.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};

/// Bytes read at a time.
const PIECE: usize = 1 << 18;

/// A Parquet file ends with the length of its metadata and `PAR1`.
const TAIL: u64 = 8;

/// Checksums of a file.
pub(super) struct Sums {
    /// Of the metadata and everything behind them.
    pub footer: u32,
    /// Of each column, by its place in the file: one of each row group.
    pub columns: Vec<Vec<u32>>,
}

/// The checksums of a sound file.
pub(super) fn of_file(path: &Path) -> Result<Sums, ParquetError> {
    let mut file = File::open(path)?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
    let size = file.metadata()?.len();
    let footer = of_footer(&mut file, size)?;
    let mut columns = vec![Vec::new(); metadata.file_metadata().schema_descr().num_columns()];
    for group in metadata.row_groups() {
        for (sums, chunk) in columns.iter_mut().zip(group.columns()) {
            sums.push(of_chunk(&mut file, chunk)?);
        }
    }
    Ok(Sums { footer, columns })
}

/// Names of the columns of a file, in order.
pub(super) fn column_names(path: &Path) -> Result<Vec<String>, ParquetError> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(path)?)?;
    let columns = metadata.file_metadata().schema_descr().columns();
    Ok(columns.iter().map(|column| column.name().to_owned()).collect())
}

/// The checksum of the metadata of a file of `size` bytes, and of what stands behind them.
pub(super) fn of_footer(file: &mut File, size: u64) -> io::Result<u32> {
    let mut length = [0u8; 4];
    let at = size.checked_sub(TAIL).ok_or(io::ErrorKind::UnexpectedEof)?;
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut length)?;
    let whole = u64::from(u32::from_le_bytes(length)).saturating_add(TAIL).min(size);
    of_range(file, size.saturating_sub(whole), whole)
}

/// The checksum of a column of a row group.
pub(super) fn of_chunk(file: &mut File, chunk: &ColumnChunkMetaData) -> io::Result<u32> {
    let start = chunk.dictionary_page_offset().unwrap_or(i64::MAX).min(chunk.data_page_offset());
    let place = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
    let (from, len) = place.ok_or(io::ErrorKind::InvalidData)?;
    of_range(file, from, len)
}

fn of_range(file: &mut File, from: u64, len: u64) -> io::Result<u32> {
    file.seek(SeekFrom::Start(from))?;
    let mut sum = crc32fast::Hasher::new();
    let mut left = len;
    let mut piece = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    while left > 0 {
        let want = piece.len().min(usize::try_from(left).unwrap_or(PIECE));
        let part = piece.get_mut(..want).ok_or(io::ErrorKind::InvalidData)?;
        file.read_exact(part)?;
        sum.update(part);
        left -= want as u64;
    }
    Ok(sum.finalize())
}

/// Checks the columns at `places` (name, place in the file, checksums of the manifest) of all row groups. Says what is
/// wrong with which column.
pub(super) fn check_columns(
    file: &mut File,
    metadata: &ParquetMetaData,
    places: &[(&str, usize, Vec<u32>)],
) -> Result<(), String> {
    for (name, at, expected) in places {
        if expected.len() != metadata.num_row_groups() {
            return Err(format!("column `{name}`: the manifest has no checksum for each row group"));
        }
        for (number, (group, expected)) in metadata.row_groups().iter().zip(expected).enumerate() {
            let found = group.columns().get(*at).map(|chunk| of_chunk(file, chunk));
            match found {
                Some(Ok(found)) if found == *expected => {}
                Some(Err(error)) => return Err(format!("column `{name}`, row group {number}: {error}")),
                _ => {
                    return Err(format!(
                        "column `{name}`, row group {number}: its bytes are not those that were written (checksum)"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Checksums as the manifest has them: hexadecimal, one of each row group.
pub(super) fn to_text(sums: &[u32]) -> String {
    sums.iter().map(|sum| format!("{sum:08x}")).collect::<Vec<_>>().join(" ")
}

/// The checksums that a manifest has.
pub(super) fn from_text(text: &str) -> Vec<u32> {
    text.split(' ').filter_map(|sum| u32::from_str_radix(sum, 16).ok()).collect()
}

/// The last field of a manifest: the checksum of its text, where the digits of this one are zeros.
const OWN: &str = "\"crc32\": \"";
const DIGITS: usize = 8;

/// Puts its checksum into the text of a manifest.
pub(super) fn seal(mut text: Vec<u8>) -> Vec<u8> {
    if let Some(at) = own_place(&text) {
        let sum = format!("{:08x}", crc32fast::hash(&text));
        text.splice(at..at + DIGITS, sum.into_bytes());
    }
    text
}

/// Whether the text of a manifest is the one that was written.
pub(super) fn is_sealed(text: &[u8]) -> bool {
    let Some(at) = own_place(text) else { return false };
    let mut blank = text.to_vec();
    let sum: Vec<u8> = blank.splice(at..at + DIGITS, ZEROS.bytes()).collect();
    sum == format!("{:08x}", crc32fast::hash(&blank)).into_bytes()
}

/// What stands in the place of a checksum that is not known yet.
pub(super) const ZEROS: &str = "00000000";

fn own_place(text: &[u8]) -> Option<usize> {
    let at = text.windows(OWN.len()).rposition(|part| part == OWN.as_bytes())?.checked_add(OWN.len())?;
    (text.get(at + DIGITS) == Some(&b'"')).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_changed_is_not_sealed() {
        let text = seal(b"{\n  \"rows\": 5,\n  \"crc32\": \"00000000\"\n}\n".to_vec());
        assert!(is_sealed(&text), "{}", String::from_utf8_lossy(&text));
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut other = text.clone();
                other[at] ^= 1 << bit;
                assert!(!is_sealed(&other), "{at}");
            }
        }
        assert!(!is_sealed(b"{}") && !is_sealed(b"\"crc32\": \""));
    }

    #[test]
    fn sums_are_text_and_back() {
        assert_eq!(to_text(&[1, 0xdead_beef]), "00000001 deadbeef");
        assert_eq!(from_text("00000001 deadbeef"), [1, 0xdead_beef]);
        assert_eq!(from_text(""), [0u32; 0]);
    }
}
