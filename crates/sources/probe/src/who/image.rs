//! Entry points of libraries: what stands there in memory, what stands in the file, and where a patch leads.
//!
//! A hook writes a jump over the first bytes of a function. The file still has the bytes that were there.

use object::LittleEndian as LE;
use object::pe;
use object::read::pe::{
    ExportTarget, ImageNtHeaders as _, ImageOptionalHeader as _, ImageThunkData as _, Import, PeFile64,
};

/// First bytes of a function that are compared: the longest common jump has 14.
const FIRST: usize = 16;

/// Jumps that are followed: hooks lead over a relay near the function, some over two.
const MOST_JUMPS: usize = 8;

/// Imports that are read of one library.
const MOST_IMPORTS: usize = 65_536;

/// Copies memory from an address; false if it cannot be read.
pub type Memory<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// A library's file.
pub struct Image<'data>(PeFile64<'data>);

/// A function whose first bytes are not those of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Its name.
    pub name: String,
    /// What the file has there.
    pub file: Vec<u8>,
    /// What the memory has there.
    pub memory: Vec<u8>,
    /// Where that jumps to, if it is a jump.
    pub to: Option<u64>,
}

impl<'data> Image<'data> {
    /// Reads a file of 64 bits.
    pub fn parse(file: &'data [u8]) -> Option<Image<'data>> {
        PeFile64::parse(file).ok().map(Image)
    }

    /// Libraries that it needs, at its start or later.
    pub fn needs(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut add = |name: object::read::Result<&[u8]>| {
            names.extend(name.ok().map(|name| String::from_utf8_lossy(name).into_owned()));
        };
        if let Ok(Some(table)) = self.0.import_table() {
            let libraries = table.descriptors().into_iter().flatten().flatten();
            libraries.for_each(|one| add(table.name(one.name.get(LE))));
        }
        if let Ok(Some(table)) = self.0.delay_load_import_table() {
            let libraries = table.descriptors().into_iter().flatten().flatten();
            libraries.for_each(|one| add(table.name(one.dll_name_rva.get(LE))));
        }
        names
    }

    /// Functions that it imports by name, and where the loader puts the address of each.
    pub fn slots(&self, base: u64) -> Vec<(String, u64)> {
        let mut slots = Vec::new();
        let Ok(Some(table)) = self.0.import_table() else { return slots };
        for library in table.descriptors().into_iter().flatten().flatten() {
            let names = match library.original_first_thunk.get(LE) {
                0 => library.first_thunk.get(LE),
                names => names,
            };
            let Ok(mut names) = table.thunks(names) else { continue };
            let mut at = base.wrapping_add(u64::from(library.first_thunk.get(LE)));
            while let Ok(Some(one)) = names.next::<pe::ImageNtHeaders64>() {
                if slots.len() >= MOST_IMPORTS {
                    return slots;
                }
                if !one.is_ordinal()
                    && let Ok(Import::Name(_, name)) = table.import::<pe::ImageNtHeaders64>(one)
                {
                    slots.push((String::from_utf8_lossy(name).into_owned(), at));
                }
                at = at.wrapping_add(8);
            }
        }
        slots
    }

    /// Whether what is loaded at `base` is this file: an update may have put another in its place.
    pub fn is_at(&self, base: u64, memory: Memory<'_>) -> bool {
        let head = u64::from(self.0.dos_header().nt_headers_offset());
        // Signature, then `TimeDateStamp` and `SizeOfImage`.
        let number = |at: u64| {
            let mut bytes = [0; 4];
            memory(base.wrapping_add(head).wrapping_add(at), &mut bytes).then(|| u32::from_le_bytes(bytes))
        };
        let header = self.0.nt_headers();
        number(0) == Some(u32::from_le_bytes(*b"PE\0\0"))
            && number(8) == Some(header.file_header().time_date_stamp.get(LE))
            && number(80) == Some(header.optional_header().size_of_image())
    }

    /// Which of these functions begin otherwise in memory, where the file is loaded at `base`.
    pub fn patches(&self, names: &[&str], base: u64, memory: Memory<'_>) -> Vec<Patch> {
        let Ok(Some(table)) = self.0.export_table() else { return Vec::new() };
        let exports = table.exports().unwrap_or_default();
        let address = |target: &ExportTarget<'_>| match target {
            ExportTarget::Address(address) => Some(*address),
            // Another library has it.
            _ => None,
        };
        let mut starts: Vec<u32> = exports.iter().filter_map(|one| address(&one.target)).collect();
        starts.sort_unstable();
        let moved = base.wrapping_sub(self.0.nt_headers().optional_header().image_base());
        let sites = self.relocations();
        let mut found = Vec::new();
        for export in &exports {
            let name = export.name.and_then(|name| std::str::from_utf8(name).ok());
            let Some(name) = name.filter(|name| names.contains(name)) else { continue };
            let Some(start) = address(&export.target) else { continue };
            // What follows a short function is another's.
            let next = starts.get(starts.partition_point(|one| *one <= start));
            let length = next.map_or(FIRST, |next| FIRST.min(next.wrapping_sub(start) as usize));
            let Some(mut file) = self.bytes(start, length).map(<[u8]>::to_vec) else { continue };
            self.relocate(start, &mut file, &sites, moved);
            let mut seen = vec![0; file.len()];
            let at = base.wrapping_add(u64::from(start));
            if !memory(at, &mut seen) || seen == file {
                continue;
            }
            let to = leads_to(&file, &seen, at, memory);
            found.push(Patch { name: name.to_owned(), file, memory: seen, to });
        }
        found
    }

    fn bytes(&self, address: u32, length: usize) -> Option<&'data [u8]> {
        let section = self.0.section_table().pe_data_at(self.0.data(), address)?;
        section.get(..length.min(section.len())).filter(|bytes| !bytes.is_empty())
    }

    /// Where addresses stand that the loader moves, ascending.
    fn relocations(&self) -> Vec<u32> {
        let blocks = self.0.data_directories().relocation_blocks(self.0.data(), &self.0.section_table());
        let sites = blocks.ok().flatten().into_iter().flatten().flatten().flatten();
        let wide = sites.filter(|site| site.typ == pe::IMAGE_REL_BASED_DIR64);
        let mut sites: Vec<u32> = wide.map(|site| site.virtual_address).collect();
        sites.sort_unstable();
        sites
    }

    /// Moves the addresses in some bytes of the file, as the loader did.
    fn relocate(&self, start: u32, bytes: &mut [u8], sites: &[u32], moved: u64) {
        let end = start.saturating_add(bytes.len() as u32);
        let first = sites.partition_point(|site| site.saturating_add(8) <= start);
        for &site in sites.iter().skip(first).take_while(|site| **site < end) {
            let Some(word) = self.bytes(site, 8).and_then(|bytes| bytes.first_chunk()) else { continue };
            let word = u64::from_le_bytes(*word).wrapping_add(moved).to_le_bytes();
            for (byte, at) in word.into_iter().zip(site..) {
                let place = at.checked_sub(start).and_then(|at| bytes.get_mut(at as usize));
                if let Some(place) = place {
                    *place = byte;
                }
            }
        }
    }
}

/// Where bytes lead that are not those of the file: what was changed, or an instruction of which the end was changed.
fn leads_to(file: &[u8], seen: &[u8], at: u64, memory: Memory<'_>) -> Option<u64> {
    let changed = file.iter().zip(seen).position(|(a, b)| a != b)?;
    [changed, 0].into_iter().find_map(|from| {
        let (to, length) = jump(at.wrapping_add(from as u64), memory)?;
        (from.saturating_add(length) > changed).then_some(to)
    })
}

/// Where code at an address ends up that does nothing but jump: at the first place that `is_known`, or where it jumps no more.
pub fn destination(mut at: u64, memory: Memory<'_>, is_known: &dyn Fn(u64) -> bool) -> u64 {
    for _ in 0..MOST_JUMPS {
        if is_known(at) {
            break;
        }
        let Some((to, _)) = jump(at, memory) else { break };
        at = to;
    }
    at
}

/// Where the instructions at an address jump to, and how many bytes they have. The forms that hooks use on x86-64 (Intel's manual,
/// volume 2: `JMP`, `PUSH`, `MOV`, `RET`):
///
/// `jmp rel32`, `jmp rel8`, `jmp [rip+disp32]`, `push imm32; ret`, `push imm32; mov dword [rsp+4], imm32; ret`,
/// `mov reg, imm64; jmp reg`, `mov reg, imm64; push reg; ret`, each with `endbr64` or `nop` before it.
fn jump(at: u64, memory: Memory<'_>) -> Option<(u64, usize)> {
    if cfg!(not(target_arch = "x86_64")) {
        return None;
    }
    let mut bytes = [0; 32];
    // At the end of a page there may be no more than the instruction.
    let length = [32, 24, 16, 14, 12, 6, 5, 2]
        .into_iter()
        .find(|&length| bytes.get_mut(..length).is_some_and(|bytes| memory(at, bytes)))?;
    let all = bytes.get(..length)?;
    let mut code = all;
    while let Some(rest) = [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0x66, 0x90], &[0x90]]
        .iter()
        .find_map(|filler| code.strip_prefix(*filler))
    {
        code = rest;
    }
    let after = |instruction: usize| {
        let done = all.len().saturating_sub(code.len()).saturating_add(instruction);
        (at.wrapping_add(done as u64), done)
    };
    let relative = |instruction: usize, distance: i64| {
        let (next, done) = after(instruction);
        (next.wrapping_add_signed(distance), done)
    };
    match *code {
        [0xe9, a, b, c, d, ..] => Some(relative(5, i32::from_le_bytes([a, b, c, d]).into())),
        [0xeb, a, ..] => Some(relative(2, i64::from(a as i8))),
        [0xff, 0x25, a, b, c, d, ..] => through(relative(6, i32::from_le_bytes([a, b, c, d]).into()), memory),
        [0x48, 0xff, 0x25, a, b, c, d, ..] => {
            through(relative(7, i32::from_le_bytes([a, b, c, d]).into()), memory)
        }
        [0x68, a, b, c, d, 0xc3, ..] => {
            Some((i64::from(i32::from_le_bytes([a, b, c, d])) as u64, after(6).1))
        }
        [0x68, a, b, c, d, 0xc7, 0x44, 0x24, 4, e, f, g, h, 0xc3, ..] => {
            Some((u64::from_le_bytes([a, b, c, d, e, f, g, h]), after(14).1))
        }
        [high @ (0x48 | 0x49), register @ 0xb8..=0xbf, a, b, c, d, e, f, g, h, ref rest @ ..] => {
            let to = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let register = register - 0xb8;
            // Registers 8 to 15 have a prefix; `jmp` may have one that changes nothing.
            let (rest, prefix) = match rest {
                [0x41, rest @ ..] if high == 0x49 => (rest, 1),
                [0x48, rest @ ..] if high == 0x48 => (rest, 1),
                rest if high == 0x48 => (rest, 0),
                _ => return None,
            };
            match *rest {
                [0xff, jmp, ..] if jmp == 0xe0 + register => Some((to, after(12 + prefix).1)),
                [push, 0xc3, ..] if push == 0x50 + register => Some((to, after(12 + prefix).1)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The address that stands at an address.
fn through((at, length): (u64, usize), memory: Memory<'_>) -> Option<(u64, usize)> {
    let mut word = [0; 8];
    memory(at, &mut word).then(|| (u64::from_le_bytes(word), length))
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
