//! Which build a symbol file is for, from some hundred bytes of it.
//!
//! Sources: MSF and the streams of a PDB, microsoft/microsoft-pdb (`msf.cpp`, `pdb.h`, `dbi.h`); portable PDB, ECMA-335 II.24.2
//! and "Portable PDB v1.0: Format Specification"; PE, "PE Format" and its `IMAGE_DEBUG_TYPE_CODEVIEW`.

mod msf;
mod pe;
mod portable;

use etwhy_base::Guid;

use crate::key::{parse_store_id, store_id};
use crate::{ImageKey, ModuleKey, Wanted};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What a file is and which build it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A native PDB.
    Pdb {
        /// GUID in on-disk byte order.
        guid: Guid,
        /// Age of the DBI stream: that of the image. `None` if there is no such stream.
        age: Option<u32>,
        /// Age of the PDB itself: how often it was written.
        pdb_age: u32,
    },
    /// A portable PDB of .NET. It has no age.
    PortablePdb {
        /// GUID in on-disk byte order.
        guid: Guid,
    },
    /// A Breakpad symbol file.
    Breakpad {
        /// GUID in on-disk byte order.
        guid: Guid,
        /// The age.
        age: u32,
        /// Name of the PDB or image as it says.
        name: String,
    },
    /// An image.
    Image {
        /// `TimeDateStamp`.
        time_date_stamp: u32,
        /// `SizeOfImage` in bytes.
        size_of_image: u32,
        /// The PDB that it names, if any.
        pdb: Option<ModuleKey>,
    },
}

/// Why a file cannot be identified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The operating system refused.
    #[error("{}: cannot read: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is none of the known formats.
    #[error("{}: not a PDB, portable PDB, Breakpad symbol file or image: {looks}", file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
        /// What it may be instead. Never its bytes: an answer of a server may hold what is not for the reader of a message.
        looks: &'static str,
    },
    /// It is damaged.
    #[error("{}: damaged {what} at offset {offset}: needs {needed} bytes, has {had}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Which structure.
        what: &'static str,
        /// Where.
        offset: u64,
        /// Bytes needed.
        needed: u64,
        /// Bytes that there are.
        had: u64,
    },
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Pdb { guid, age, pdb_age } => {
                write!(f, "PDB {}", store_id(*guid, age.unwrap_or(*pdb_age)))
            }
            Identity::PortablePdb { guid } => write!(f, "portable PDB {}", store_id(*guid, u32::MAX)),
            Identity::Breakpad { guid, age, .. } => write!(f, "Breakpad symbols {}", store_id(*guid, *age)),
            Identity::Image { time_date_stamp, size_of_image, .. } => {
                write!(f, "image {time_date_stamp:08X}{size_of_image:x}")
            }
        }
    }
}

impl Identity {
    /// True if it belongs to exactly this module.
    pub fn fits(&self, wanted: &Wanted) -> bool {
        match self {
            Identity::Image { time_date_stamp, size_of_image, .. } => {
                wanted.image.as_ref().is_some_and(|image| fits_image(image, *time_date_stamp, *size_of_image))
            }
            _ => wanted.pdb.as_ref().is_some_and(|key| self.fits_pdb(key)),
        }
    }

    /// True for an image.
    pub fn is_image(&self) -> bool {
        matches!(self, Identity::Image { .. })
    }

    /// True if it holds the symbols of exactly this PDB.
    pub fn fits_pdb(&self, key: &ModuleKey) -> bool {
        match self {
            // Stores file by the age of the DBI stream; symstore takes the PDB's own if there is none.
            Identity::Pdb { guid, age, pdb_age } => *guid == key.guid && age.unwrap_or(*pdb_age) == key.age,
            Identity::PortablePdb { guid } => *guid == key.guid,
            Identity::Breakpad { guid, age, .. } => *guid == key.guid && *age == key.age,
            Identity::Image { .. } => false,
        }
    }
}

fn fits_image(image: &ImageKey, time_date_stamp: u32, size_of_image: u32) -> bool {
    image.time_date_stamp == time_date_stamp && image.size_of_image == size_of_image
}

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

/// Reads pieces of a file.
struct Reader<'a> {
    file: File,
    path: &'a Path,
}

impl Reader<'_> {
    fn at<const N: usize>(&mut self, offset: u64, what: &'static str) -> Result<[u8; N], VerifyError> {
        let mut bytes = [0; N];
        self.read(offset, &mut bytes, what)?;
        Ok(bytes)
    }

    fn u32(&mut self, offset: u64, what: &'static str) -> Result<u32, VerifyError> {
        Ok(u32::from_le_bytes(self.at(offset, what)?))
    }

    fn u16(&mut self, offset: u64, what: &'static str) -> Result<u16, VerifyError> {
        Ok(u16::from_le_bytes(self.at(offset, what)?))
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8], what: &'static str) -> Result<(), VerifyError> {
        let io = |source: io::Error| VerifyError::Io { file: self.path.to_path_buf(), source };
        self.file.seek(SeekFrom::Start(offset)).map_err(io)?;
        let mut had = 0;
        while had < bytes.len() {
            let rest = bytes.get_mut(had..).unwrap_or_default();
            match self.file.read(rest) {
                Ok(0) => return Err(self.damaged(what, offset, bytes.len() as u64, had as u64)),
                Ok(n) => had = had.saturating_add(n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(VerifyError::Io { file: self.path.to_path_buf(), source }),
            }
        }
        Ok(())
    }

    fn damaged(&self, what: &'static str, offset: u64, needed: u64, had: u64) -> VerifyError {
        VerifyError::Damaged { file: self.path.to_path_buf(), what, offset, needed, had }
    }
}

#[cfg(test)]
mod tests;
