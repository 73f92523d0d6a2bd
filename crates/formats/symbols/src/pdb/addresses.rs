//! Sections and offsets to addresses relative to the image.
//!
//! Some of Windows' own images were rearranged after linking (Vulcan, BBT). Their PDBs have the sections of the linker
//! and a map (OMAP) from these addresses to those of the image: each row holds up to the next one, and a target of 0 is
//! code that was left out. Layout: `OMAP` in `cvexefmt.h` and "OMAP" in microsoft-pdb.

use std::cell::Cell;

use etwhy_base::Bytes as _;

/// Sections of an image, and the map of a rearranged one.
#[derive(Debug, Default)]
pub struct Addresses {
    /// Address and size.
    sections: Vec<(u32, u32)>,
    /// From and to, ascending.
    map: Option<Vec<(u32, u32)>>,
    /// Address and size in the image, where that is another one.
    image: Option<Vec<(u32, u32)>>,
    /// Pieces that ranges may still be cut into: each range of a hostile file is all that there is, and its map has a million rows.
    left: Cell<usize>,
}

/// Address and size of each section header (`IMAGE_SECTION_HEADER`).
pub fn section_headers(bytes: &[u8]) -> Vec<(u32, u32)> {
    let header = |h: &[u8]| Some((h.u32_at(12)?, h.u32_at(8)?));
    bytes.chunks_exact(40).filter_map(header).collect()
}

impl Addresses {
    /// An image as it was linked.
    pub fn plain(sections: Vec<(u32, u32)>) -> Addresses {
        Addresses { sections, ..Addresses::default() }
    }

    /// A rearranged image: `original` sections of the linker, `omap` with the rows of `omap_from_src`, in a file of `size` bytes.
    pub fn rearranged(
        original: Vec<(u32, u32)>,
        omap: &[u8],
        image: Vec<(u32, u32)>,
        size: usize,
    ) -> Addresses {
        let row = |r: &[u8]| Some((r.u32_at(0)?, r.u32_at(4)?));
        let mut map: Vec<(u32, u32)> = omap.chunks_exact(8).filter_map(row).collect();
        if !map.is_sorted() {
            map.sort_unstable();
        }
        Addresses { sections: original, map: Some(map), image: Some(image), left: Cell::new(size) }
    }

    /// Where sections of the image begin and end.
    pub fn bounds(&self) -> impl Iterator<Item = u32> {
        let sections = self.image.as_ref().unwrap_or(&self.sections);
        sections.iter().flat_map(|&(start, size)| [start, start.saturating_add(size)])
    }

    /// The address of a place; `None` if it is outside of the image.
    #[inline]
    pub fn rva(&self, section: u16, offset: u32) -> Option<u32> {
        let linked = self.linked(section, offset)?;
        let Some(map) = &self.map else { return Some(linked) };
        let (from, to) = *map.get(map.partition_point(|row| row.0 <= linked).checked_sub(1)?)?;
        (to != 0).then(|| to.checked_add(linked - from))?
    }

    /// The pieces in which a range ends up: more than one only in a rearranged image.
    pub fn pieces(&self, section: u16, offset: u32, size: u32, mut piece: impl FnMut(u32, u32)) {
        let Some(start) = self.linked(section, offset) else { return };
        let Some(map) = &self.map else { return piece(start, size) };
        let end = start.saturating_add(size);
        let first = map.partition_point(|row| row.0 <= start).saturating_sub(1);
        let rows = map.get(first..).unwrap_or(&[]);
        let nexts = rows.iter().skip(1).map(|row| row.0).chain(std::iter::once(u32::MAX));
        for (&(from, to), next) in rows.iter().zip(nexts) {
            let Some(left) = self.left.get().checked_sub(1).filter(|_| from < end) else { return };
            self.left.set(left);
            let (begin, stop) = (start.max(from), end.min(next));
            if to != 0 && begin < stop {
                piece(to.saturating_add(begin - from), stop - begin);
            }
        }
    }

    /// The address at which the linker put a place.
    #[inline]
    fn linked(&self, section: u16, offset: u32) -> Option<u32> {
        let (start, size) = *self.sections.get(usize::from(section.checked_sub(1)?))?;
        (offset < size).then(|| start.checked_add(offset))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_moves_cuts_and_leaves_out() {
        let rows: [u32; 8] = [0x1000, 0x5000, 0x1010, 0x4000, 0x1018, 0, 0x1020, 0x6000];
        let omap: Vec<u8> = rows.iter().flat_map(|n| n.to_le_bytes()).collect();
        let addresses = Addresses::rearranged(vec![(0x1000, 0x100)], &omap, vec![(0x4000, 0x3000)], 100);
        assert_eq!(addresses.rva(1, 0), Some(0x5000));
        assert_eq!(addresses.rva(1, 0x11), Some(0x4001));
        assert_eq!(addresses.rva(1, 0x18), None, "left out");
        assert_eq!(addresses.rva(1, 0x100), None);
        assert_eq!((addresses.rva(0, 0), addresses.rva(2, 0)), (None, None));
        let mut pieces = Vec::new();
        addresses.pieces(1, 0x8, 0x28, |start, size| pieces.push((start, size)));
        assert_eq!(pieces, [(0x5008, 8), (0x4000, 8), (0x6000, 0x10)]);
        assert_eq!(addresses.bounds().collect::<Vec<_>>(), [0x4000, 0x7000]);
    }

    #[test]
    fn sections_of_headers() {
        let mut header = [0u8; 80];
        header[8..16].copy_from_slice(&[0x34, 0x12, 0, 0, 0, 0x10, 0, 0]);
        assert_eq!(section_headers(&header[..79]), [(0x1000, 0x1234)]);
        let addresses = Addresses::plain(section_headers(&header[..40]));
        assert_eq!(addresses.rva(1, 0x1233), Some(0x2233));
        assert_eq!(addresses.rva(1, 0x1234), None);
    }
}
