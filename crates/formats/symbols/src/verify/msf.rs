//! Native PDBs: the streams "PDB" (1) and "DBI" (3) of an MSF file.

use etwhy_base::Guid;

use super::identity::{Identity, Reader, VerifyError};

/// Starts the format since Visual C++ 7.
pub const MAGIC: &[u8] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";

/// Streams of the directory that are looked at: 0 is the old directory, 1 PDB, 2 TPI, 3 DBI.
const STREAMS: u32 = 4;
const STREAM_PDB: usize = 1;
const STREAM_DBI: usize = 3;
/// Size of a stream that is not there.
const ABSENT: u32 = u32::MAX;

/// Page size and the pages of the directory.
struct Directory {
    page: u64,
    pages: u64,
    bytes: u64,
}

impl Directory {
    /// Offset in the file of a byte of the directory.
    fn offset(&self, reader: &mut Reader<'_>, at: u64) -> Result<u64, VerifyError> {
        if at.saturating_add(4) > self.bytes {
            return Err(reader.damaged("MSF stream directory", at, 4, self.bytes.saturating_sub(at)));
        }
        let index = at / self.page;
        // The header lists the pages of the list of the directory's pages.
        let entry = index.saturating_mul(4);
        let map = reader.u32(52 + entry / self.page * 4, "MSF header")?;
        let map = self.in_file(reader, map, entry % self.page)?;
        let page = reader.u32(map, "MSF directory map")?;
        self.in_file(reader, page, at % self.page)
    }

    fn in_file(&self, reader: &Reader<'_>, page: u32, within: u64) -> Result<u64, VerifyError> {
        if u64::from(page) >= self.pages {
            return Err(reader.damaged("MSF page number", page.into(), page.into(), self.pages));
        }
        Ok(u64::from(page).saturating_mul(self.page).saturating_add(within))
    }

    fn u32(&self, reader: &mut Reader<'_>, at: u64) -> Result<u32, VerifyError> {
        let offset = self.offset(reader, at)?;
        reader.u32(offset, "MSF stream directory")
    }
}

pub fn identify(reader: &mut Reader<'_>) -> Result<Identity, VerifyError> {
    // BIGMSF_HDR: magic, page size, free page map, pages, size of the directory, reserved, pages of its map.
    let page = u64::from(reader.u32(32, "MSF header")?);
    let pages = u64::from(reader.u32(40, "MSF header")?);
    let bytes = u64::from(reader.u32(44, "MSF header")?);
    if !(512..=65_536).contains(&page) || !page.is_power_of_two() {
        return Err(reader.damaged("MSF page size", 32, 512, page));
    }
    let directory = Directory { page, pages, bytes };
    let streams = directory.u32(reader, 0)?;
    let mut sizes = [0u32; STREAMS as usize];
    for (n, size) in (0..streams.min(STREAMS)).zip(sizes.iter_mut()) {
        *size = directory.u32(reader, 4 + 4 * u64::from(n))?;
    }
    let pages_of = |size: u32| if size == ABSENT { 0 } else { u64::from(size).div_ceil(page) };
    // First page of a stream: behind the sizes of all, and the pages of those before it.
    let first_page = |reader: &mut Reader<'_>, stream: usize| -> Result<u32, VerifyError> {
        let before: u64 = sizes.iter().take(stream).map(|size| pages_of(*size)).sum();
        directory.u32(reader, (1 + u64::from(streams) + before).saturating_mul(4))
    };
    let size = |stream: usize| sizes.get(stream).copied().filter(|size| *size != ABSENT).unwrap_or(0);
    if size(STREAM_PDB) < 28 {
        return Err(reader.damaged("PDB stream", 0, 28, size(STREAM_PDB).into()));
    }
    // Version, signature, age, GUID. All of it is on the first page.
    let first = first_page(reader, STREAM_PDB)?;
    let start = directory.in_file(reader, first, 0)?;
    let pdb_age = reader.u32(start.saturating_add(8), "PDB stream")?;
    let guid = Guid(reader.at(start.saturating_add(12), "PDB stream")?);
    let mut age = None;
    if size(STREAM_DBI) >= 12 {
        // NewDBIHdr: signature, version, age.
        let first = first_page(reader, STREAM_DBI)?;
        let start = directory.in_file(reader, first, 0)?;
        age = Some(reader.u32(start.saturating_add(8), "DBI stream")?);
    }
    Ok(Identity::Pdb { guid, age, pdb_age })
}
