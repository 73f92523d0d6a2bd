//! Portable PDBs: the stream `#Pdb` begins with the id.

use etwhy_base::Guid;

use super::identity::{Identity, Reader, VerifyError};

/// Signature of the metadata root (ECMA-335 II.24.2.1).
pub const MAGIC: &[u8] = b"BSJB";
/// Streams that are looked at; there are seven.
const MAX_STREAMS: u16 = 64;

pub fn identify(reader: &mut Reader<'_>) -> Result<Identity, VerifyError> {
    let what = "metadata root";
    let version = u64::from(reader.u32(12, what)?);
    if version > 255 {
        return Err(reader.damaged(what, 12, 255, version));
    }
    let mut at = 16 + version.next_multiple_of(4);
    let streams = reader.u16(at + 2, what)?;
    at += 4;
    for _ in 0..streams.min(MAX_STREAMS) {
        let offset = reader.u32(at, "stream header")?;
        let name: [u8; 8] = reader.at(at + 8, "stream header")?;
        if name.starts_with(b"#Pdb\0") {
            // PDB id: a GUID and a time stamp.
            return Ok(Identity::PortablePdb { guid: Guid(reader.at(offset.into(), "#Pdb stream")?) });
        }
        // The name ends with NUL and is padded to four; at most 32 characters.
        let mut length = 4;
        while length < 36 {
            let four: [u8; 4] = reader.at(at + 4 + length, "stream header")?;
            length += 4;
            if four.contains(&0) {
                break;
            }
        }
        at = at.saturating_add(4 + length);
    }
    Err(reader.damaged("#Pdb stream", at, 20, 0))
}
