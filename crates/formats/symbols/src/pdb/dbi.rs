//! The stream of debug information: modules, who contributes which code, and where the other streams are.
//!
//! Layout: "The PDB DBI (Debug Info) Stream", LLVM documentation.

use etwhy_base::Bytes as _;

const HEADER: usize = 64;
const NO_STREAM: u16 = u16::MAX;

/// One compiland.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Its stream, if it has one.
    pub stream: Option<u16>,
    /// Bytes of symbols at the beginning of the stream.
    pub symbols: u32,
    /// Bytes of old line tables behind these.
    pub c11_lines: u32,
    /// Bytes of C13 subsections behind these.
    pub c13: u32,
}

/// What is used of the stream.
#[derive(Debug, Default)]
pub struct Dbi {
    /// Age that images refer to; 0 in old files.
    pub age: u32,
    /// `IMAGE_FILE_MACHINE_*`
    pub machine: u16,
    /// Stream of public and global symbols.
    pub symbol_records: Option<u16>,
    /// All compilands.
    pub modules: Vec<Module>,
    /// Stream of section headers of the image.
    pub section_headers: Option<u16>,
    /// Stream of the linker's section headers, if the image was rearranged after linking.
    pub original_headers: Option<u16>,
    /// Stream of the map from the linker's addresses to those of the image.
    pub omap_from_source: Option<u16>,
    /// Address and size of each section as the section map tells them, where there are no section headers.
    pub mapped_sections: Option<Vec<(u32, u32)>>,
    /// Section, start, end and module of each contribution, ascending.
    contributions: Vec<(u16, u32, u32, u16)>,
}

impl Dbi {
    /// Reads the stream.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn read(bytes: &[u8]) -> Result<Dbi, String> {
        let short = || format!("the DBI stream has {} bytes, its header needs {HEADER}", bytes.len());
        let u32_at = |at| bytes.u32_at(at).ok_or_else(short);
        let u16_at = |at| bytes.u16_at(at).ok_or_else(short);
        if u32_at(0)? != u32::MAX {
            return Err("the DBI stream has a header from before Visual C++ 5".to_owned());
        }
        let stream = |number: u16| (number != NO_STREAM).then_some(number);
        let size = |at| u32_at(at).map(|n| n as usize);
        let (modules, contributions) = (size(24)?, size(28)?);
        let behind = [size(32)?, size(36)?, size(40)?, size(52)?];
        let debug = behind.into_iter().fold(HEADER + modules + contributions, usize::saturating_add);
        let debug = bytes.sub(debug, size(48)?).unwrap_or(&[]);
        let optional = |number: usize| debug.u16_at(number * 2).and_then(stream).filter(|s| *s != 0);
        let mut dbi = Dbi {
            age: u32_at(8)?,
            machine: u16_at(58)?,
            symbol_records: stream(u16_at(20)?),
            // "Optional Debug Header Stream": the fifth, sixth and eleventh.
            omap_from_source: optional(4),
            section_headers: optional(5),
            original_headers: optional(10),
            ..Dbi::default()
        };
        if dbi.section_headers.is_none() {
            let map = bytes.sub(HEADER + modules + contributions, size(32)?).unwrap_or(&[]);
            dbi.mapped_sections = Some(mapped_sections(map));
        }
        dbi.read_modules(
            bytes.sub(HEADER, modules).ok_or("the list of modules does not fit the DBI stream")?,
        );
        dbi.read_contributions(bytes.sub(HEADER + modules, contributions).unwrap_or(&[]));
        Ok(dbi)
    }

    fn read_modules(&mut self, bytes: &[u8]) {
        let mut at = 0usize;
        // Fixed part of 64 bytes, two names, then aligned to 4.
        while let Some(fixed) = bytes.sub(at, 64) {
            let get = |at| fixed.u32_at(at).unwrap_or(0);
            let stream = fixed.u16_at(34).filter(|s| *s != NO_STREAM);
            self.modules.push(Module { stream, symbols: get(36), c11_lines: get(40), c13: get(44) });
            at += 64;
            for _ in 0..2 {
                at += bytes.text_at(at).map_or(0, |name| name.len()) + 1;
            }
            at = at.next_multiple_of(4);
        }
    }

    fn read_contributions(&mut self, bytes: &[u8]) {
        // Ver60 and V2 of `DBISCImpv`.
        let size = match bytes.u32_at(0) {
            Some(0xF12E_BA2D) => 28,
            Some(0xF131_51E4) => 32,
            _ => return,
        };
        for row in bytes.get(4..).unwrap_or(&[]).chunks_exact(size) {
            let get = |at| row.u32_at(at).unwrap_or(0);
            let (section, module) = (row.u16_at(0).unwrap_or(0), row.u16_at(16).unwrap_or(0));
            let start = get(4);
            self.contributions.push((section, start, start.saturating_add(get(8)), module));
        }
        if !self.contributions.is_sorted() {
            self.contributions.sort_unstable();
        }
    }

    /// Whether `module` is not the one that the code at a place is of: the linker threw its copy away.
    pub fn is_folded(&self, module: usize, section: u16, offset: u32) -> bool {
        let at = self.contributions.partition_point(|c| (c.0, c.1) <= (section, offset));
        let found = at.checked_sub(1).and_then(|at| self.contributions.get(at));
        found.is_some_and(|c| c.0 == section && offset < c.2 && usize::from(c.3) != module)
    }
}

/// Sections of an image whose PDB has no section headers, as NGEN and Crossgen write them: one after the other from the
/// first page on. The sum of `mscorlib.ni.pdb`, `System.ni.pdb` and `System.Xml.ni.pdb` is the `SizeOfImage` of their
/// images to the byte.
fn mapped_sections(map: &[u8]) -> Vec<(u32, u32)> {
    const PAGE: u32 = 0x1000;
    let mut next = PAGE;
    let mut sections = Vec::new();
    // Two counts, then for each section flags, overlay, group, frame, two names, offset and size.
    for entry in map.get(4..).unwrap_or(&[]).chunks_exact(20) {
        let (flags, size) = (entry.u16_at(0).unwrap_or(0), entry.u32_at(16).unwrap_or(0));
        // `SEG_FLAGS`: fSel; the last entry, fAbs, is that of absolute values.
        if flags & 0x100 == 0 || size == u32::MAX {
            continue;
        }
        sections.push((next, size));
        next = next.saturating_add(size).checked_next_multiple_of(PAGE).unwrap_or(u32::MAX);
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_a_map_begin_at_pages() {
        let mut map = vec![3, 0, 3, 0];
        for (flags, size) in [(0x10D_u16, 2_528_256_u32), (0x10D, 299_008), (0x208, u32::MAX)] {
            map.extend(flags.to_le_bytes());
            map.extend([0; 14]);
            map.extend(size.to_le_bytes());
        }
        assert_eq!(mapped_sections(&map), [(0x1000, 2_528_256), (0x26B000, 299_008)]);
        assert_eq!(mapped_sections(&map[..30]).len(), 1);
    }
}
