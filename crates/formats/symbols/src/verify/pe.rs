//! Images: time stamp, size, and the PDB that the debug directory names.

use etwhy_base::Guid;

use super::identity::{Identity, Reader, VerifyError};
use crate::ModuleKey;

/// Sections and entries of the debug directory that are looked at.
const MAX_SECTIONS: u16 = 96;
const MAX_ENTRIES: u64 = 32;
const TYPE_CODEVIEW: u32 = 2;

pub fn identify(reader: &mut Reader<'_>) -> Result<Identity, VerifyError> {
    let pe = u64::from(reader.u32(0x3c, "DOS header")?);
    let signature: [u8; 4] = reader.at(pe, "PE signature")?;
    if &signature != b"PE\0\0" {
        return Err(reader.damaged("PE signature", pe, 4, 0));
    }
    let time_date_stamp = reader.u32(pe + 8, "file header")?;
    let optional = pe + 24;
    let wide = reader.u16(optional, "optional header")? == 0x20b;
    let size_of_image = reader.u32(optional + 56, "optional header")?;
    let pdb = debug(reader, pe, if wide { 112 } else { 96 }).unwrap_or(None);
    Ok(Identity::Image { time_date_stamp, size_of_image, pdb })
}

/// The RSDS record. What cannot be read is not there: it is not needed to identify the image.
fn debug(reader: &mut Reader<'_>, pe: u64, directories: u64) -> Result<Option<ModuleKey>, VerifyError> {
    let sections = reader.u16(pe + 6, "file header")?;
    let optional = pe + 24;
    let table = optional + u64::from(reader.u16(pe + 20, "file header")?);
    // Directory 6 is IMAGE_DIRECTORY_ENTRY_DEBUG.
    let entry = optional + directories + 6 * 8;
    if entry + 8 > table {
        return Ok(None);
    }
    let (rva, size) = (reader.u32(entry, "data directory")?, reader.u32(entry + 4, "data directory")?);
    let mut start = None;
    for n in 0..sections.min(MAX_SECTIONS) {
        let at = table + 40 * u64::from(n);
        let (length, begin) = (reader.u32(at + 16, "section")?, reader.u32(at + 12, "section")?);
        if rva >= begin && rva - begin < length {
            start = Some(u64::from(reader.u32(at + 20, "section")?) + u64::from(rva - begin));
        }
    }
    let Some(start) = start else { return Ok(None) };
    for n in 0..(u64::from(size) / 28).min(MAX_ENTRIES) {
        let at = start + 28 * n;
        if reader.u32(at + 12, "debug directory")? != TYPE_CODEVIEW {
            continue;
        }
        let length = u64::from(reader.u32(at + 16, "debug directory")?);
        let record = u64::from(reader.u32(at + 24, "debug directory")?);
        let signature: [u8; 4] = reader.at(record, "CodeView record")?;
        if &signature != b"RSDS" || length < 25 {
            continue;
        }
        let mut name = vec![0; usize::try_from(length - 24).unwrap_or(0).min(1024)];
        reader.read(record + 24, &mut name, "CodeView record")?;
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        return Ok(Some(ModuleKey {
            pdb_name: String::from_utf8_lossy(name).into_owned(),
            guid: Guid(reader.at(record + 4, "CodeView record")?),
            age: reader.u32(record + 20, "CodeView record")?,
        }));
    }
    Ok(None)
}
