//! Files that symstore has compressed: cabinets with one member, named `name.pd_`.

use cab::Cabinet;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// Files in a cabinet that are looked at; symstore puts one in.
const MAX_MEMBERS: usize = 16;
/// Starts a cabinet (MS-CAB, CFHEADER).
const MAGIC: &[u8; 4] = b"MSCF";

/// Why a cabinet is of no use.
#[derive(Debug, thiserror::Error)]
pub enum CabinetError {
    /// It cannot be read.
    #[error("cannot unpack: {0}")]
    Io(#[from] io::Error),
    /// It starts otherwise.
    #[error("not a cabinet: it does not begin with MSCF")]
    NotACabinet,
    /// It holds something else.
    #[error("the cabinet holds {found} instead of {wanted}")]
    Foreign {
        /// What is in it.
        found: String,
        /// What should be in it.
        wanted: String,
    },
    /// It unpacks to more than is allowed.
    #[error("the cabinet unpacks to {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Bytes that it claims or gave.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// It ends before it should.
    #[error("the cabinet gave {had} of {needed} bytes")]
    Short {
        /// Bytes that came out.
        had: u64,
        /// Bytes that it claims.
        needed: u64,
    },
}

/// True if the file begins as a cabinet does.
pub fn is_cabinet(file: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(file).and_then(|mut f| f.read_exact(&mut magic)).is_ok() && &magic == MAGIC
}

/// Unpacks the member `name`, the only one that there may be, into `out`. Nothing in the cabinet says where to.
///
/// # Errors
/// See [`CabinetError`].
pub fn unpack(cabinet: &Path, name: &str, limit: u64, out: &mut impl Write) -> Result<u64, CabinetError> {
    if !is_cabinet(cabinet) {
        return Err(CabinetError::NotACabinet);
    }
    let mut cabinet = Cabinet::new(BufReader::new(File::open(cabinet)?))?;
    let members: Vec<(String, u64)> = cabinet
        .folder_entries()
        .flat_map(|folder| folder.file_entries())
        .take(MAX_MEMBERS)
        .map(|entry| (entry.name().to_owned(), entry.uncompressed_size().into()))
        .collect();
    let [(member, size)] = members.as_slice() else {
        let found: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
        return Err(CabinetError::Foreign { found, wanted: name.to_owned() });
    };
    // Old versions of makecab keep the folder that the file came from.
    let last = member.rsplit(['/', '\\']).next().unwrap_or(member);
    if !last.eq_ignore_ascii_case(name) {
        return Err(CabinetError::Foreign { found: member.clone(), wanted: name.to_owned() });
    }
    if *size > limit {
        return Err(CabinetError::TooLarge { bytes: *size, limit });
    }
    let mut reader = cabinet.read_file(member)?.take(limit.saturating_add(1));
    let had = io::copy(&mut reader, out)?;
    if had > limit {
        return Err(CabinetError::TooLarge { bytes: had, limit });
    }
    if had != *size {
        return Err(CabinetError::Short { had, needed: *size });
    }
    Ok(had)
}
