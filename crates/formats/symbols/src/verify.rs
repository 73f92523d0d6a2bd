//! Which build a symbol file is for, from some hundred bytes of it.
//!
//! Sources: MSF and the streams of a PDB, microsoft/microsoft-pdb (`msf.cpp`, `pdb.h`, `dbi.h`); portable PDB, ECMA-335 II.24.2
//! and "Portable PDB v1.0: Format Specification"; PE, "PE Format" and its `IMAGE_DEBUG_TYPE_CODEVIEW`.

mod identity;
mod msf;
mod pe;
mod portable;

pub use identity::{Identity, VerifyError};

use crate::key::parse_store_id;
use identity::Reader;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Reads what a file is.
///
/// # Errors
/// See [`VerifyError`].
pub fn identify(file: &Path) -> Result<Identity, VerifyError> {
    let io = |source: io::Error| VerifyError::Io { file: file.to_path_buf(), source };
    let mut reader = Reader { file: File::open(file).map_err(io)?, path: file };
    let mut head = Vec::new();
    (&mut reader.file).take(64).read_to_end(&mut head).map_err(io)?;
    if head.starts_with(msf::MAGIC) {
        return msf::identify(&mut reader);
    }
    if head.starts_with(portable::MAGIC) {
        return portable::identify(&mut reader);
    }
    if head.starts_with(b"MODULE ") {
        return breakpad(&mut reader, &head);
    }
    if head.starts_with(b"MZ") {
        return pe::identify(&mut reader);
    }
    Err(VerifyError::Unknown { file: file.to_path_buf(), looks: looks(&head) })
}

/// `MODULE windows x86_64 GUIDAGE name`.
fn breakpad(reader: &mut Reader<'_>, head: &[u8]) -> Result<Identity, VerifyError> {
    let io = |source: io::Error| VerifyError::Io { file: reader.path.to_path_buf(), source };
    reader.file.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut line = Vec::new();
    // The name is the last and only long part.
    BufReader::new((&mut reader.file).take(4096)).read_until(b'\n', &mut line).map_err(io)?;
    let line = String::from_utf8_lossy(&line);
    let mut parts = line.trim_end().splitn(5, ' ').skip(3);
    let id = parts.next().and_then(parse_store_id);
    let (guid, age) =
        id.ok_or_else(|| VerifyError::Unknown { file: reader.path.to_path_buf(), looks: looks(head) })?;
    Ok(Identity::Breakpad { guid, age, name: parts.next().unwrap_or("").to_owned() })
}

/// What a file seems to be that is none of ours.
fn looks(head: &[u8]) -> &'static str {
    let start = head.trim_ascii_start();
    match head {
        [] => "it is empty",
        _ if start.starts_with(b"<") => "it looks like a web page, as a proxy or a login sends it",
        _ if head.starts_with(b"MODULE ") => "its first line is not one of Breakpad's",
        _ if head.starts_with(b"MSCF") => "it is a cabinet",
        _ if head.starts_with(b"PK") => "it is a ZIP archive",
        _ if head.starts_with(b"\x1f\x8b") => "it is compressed with gzip",
        _ if head.starts_with(b"\x7fELF") => "it is a program for Linux",
        _ if start.starts_with(b"{") => "it looks like JSON",
        _ if head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) => "it looks like text",
        _ => "its content is of an unknown kind",
    }
}

#[cfg(test)]
mod tests;
