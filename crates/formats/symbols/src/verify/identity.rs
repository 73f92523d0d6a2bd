//! What a file is, as far as its first bytes say, and why that cannot be read.

use crate::key::store_id;
use crate::{ImageKey, ModuleKey, WantedModule};
use etwhy_base::Guid;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
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
    pub fn fits(&self, wanted: &WantedModule) -> bool {
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

/// Reads pieces of a file.
pub(super) struct Reader<'a> {
    pub(super) file: File,
    pub(super) path: &'a Path,
}

impl Reader<'_> {
    pub(super) fn at<const N: usize>(
        &mut self,
        offset: u64,
        what: &'static str,
    ) -> Result<[u8; N], VerifyError> {
        let mut bytes = [0; N];
        self.read(offset, &mut bytes, what)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, offset: u64, what: &'static str) -> Result<u32, VerifyError> {
        Ok(u32::from_le_bytes(self.at(offset, what)?))
    }

    pub(super) fn u16(&mut self, offset: u64, what: &'static str) -> Result<u16, VerifyError> {
        Ok(u16::from_le_bytes(self.at(offset, what)?))
    }

    pub(super) fn read(
        &mut self,
        offset: u64,
        bytes: &mut [u8],
        what: &'static str,
    ) -> Result<(), VerifyError> {
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

    pub(super) fn damaged(&self, what: &'static str, offset: u64, needed: u64, had: u64) -> VerifyError {
        VerifyError::Damaged { file: self.path.to_path_buf(), what, offset, needed, had }
    }
}
