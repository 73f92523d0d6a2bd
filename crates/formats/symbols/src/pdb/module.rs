//! The stream of one compiland: procedures and inlined calls, then lines (C13 subsections).
//!
//! Layout: "The Module Information Stream" and "CodeView Symbol Records" of the LLVM documentation; `cvinfo.h` of
//! microsoft-pdb.

use hashbrown::HashMap;

use super::addresses::Addresses;
use super::bytes::{Record, Records};
use super::dbi::{Dbi, Module};
use super::inlinees::{self, Range};
use super::types::Types;
use crate::builder::ModuleBuilder;
use crate::image::NONE;
use etwhy_base::Bytes as _;

/// `CV_SIGNATURE_C13`
const C13: u32 = 4;
/// Inlined calls stand in each other; deeper ones are damage.
const MAX_DEPTH: u32 = 1000;

type Numbered<T> = HashMap<u32, T, foldhash::fast::RandomState>;

/// Reads compilands one after the other.
pub struct Reader<'a> {
    dbi: &'a Dbi,
    addresses: &'a Addresses,
    types: Types<'a>,
    /// Texts of the string table behind its header.
    texts: &'a [u8],
    builder: &'a mut ModuleBuilder,
    /// Names of files by offset in the string table.
    files: Numbered<u32>,
    /// Names of inlined functions by id.
    inlined: Numbered<u32>,
    /// Name of each procedure by address, for what is cut off from it.
    procedures: Numbered<u32>,
    /// Code that the compiler moved away from its procedure: address, size, address of the procedure.
    separated: Vec<(u32, u32, u32)>,
    /// Jumps that the linker made: address, size, target.
    trampolines: Vec<(u32, u32, u32)>,
    ranges: Vec<Range>,
    lines: Vec<(u32, u32, u32)>,
}

/// The procedure whose records are read.
#[derive(Clone, Copy)]
struct Procedure {
    section: u16,
    offset: u32,
}

/// The subsections of one compiland that others refer to.
#[derive(Default)]
struct Tables<'s> {
    checksums: &'s [u8],
    /// File and line of each inlined function's beginning.
    inlinees: Numbered<(u32, u32)>,
}

impl<'a> Reader<'a> {
    /// `names` is the stream of that name: file names.
    pub fn new(
        dbi: &'a Dbi,
        addresses: &'a Addresses,
        types: Types<'a>,
        names: &'a [u8],
        builder: &'a mut ModuleBuilder,
    ) -> Reader<'a> {
        // Signature, version and size stand in front.
        let texts = if names.u32_at(0) == Some(0xEFFE_EFFE) { names.get(12..).unwrap_or(&[]) } else { &[] };
        Reader {
            dbi,
            addresses,
            types,
            texts,
            builder,
            files: HashMap::default(),
            inlined: HashMap::default(),
            procedures: HashMap::default(),
            separated: Vec::new(),
            trampolines: Vec::new(),
            ranges: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Reads compiland `number`.
    pub fn module(&mut self, number: usize, module: &Module, stream: &[u8]) {
        let symbols = stream.get(..module.symbols as usize).unwrap_or(stream);
        let c13 = (module.symbols as usize)
            .checked_add(module.c11_lines as usize)
            .and_then(|at| stream.sub(at, module.c13 as usize))
            .unwrap_or(&[]);
        let mut tables = Tables::default();
        for (kind, data) in Subsections(c13) {
            match kind {
                CHECKSUMS => tables.checksums = data,
                INLINEE_LINES => inlinee_lines(data, &mut tables.inlinees),
                _ => {}
            }
        }
        if symbols.u32_at(0) == Some(C13) {
            self.symbols(number, &tables, symbols);
        } else if !symbols.is_empty() {
            self.builder.malformed();
        }
        for (kind, data) in Subsections(c13) {
            if kind == LINES && self.lines(number, &tables, data).is_none() {
                self.builder.malformed();
            }
        }
    }

    fn symbols(&mut self, number: usize, tables: &Tables<'_>, symbols: &[u8]) {
        let mut procedure = None;
        let mut depth = 0u32;
        for record in Records::new(symbols, 4) {
            let read = match record.kind {
                // S_LPROC32, S_GPROC32, S_LPROC32_ID, S_GPROC32_ID, S_LPROC32_DPC, S_LPROC32_DPC_ID, and
                // S_GMANPROC, S_LMANPROC of managed code
                0x110F | 0x1110 | 0x1146 | 0x1147 | 0x1155 | 0x1156 | 0x112A | 0x112B => {
                    depth = 0;
                    procedure = None;
                    let managed = matches!(record.kind, 0x112A | 0x112B);
                    let name = record.data.text_at(if managed { 37 } else { 35 });
                    self.procedure(number, record, name).map(|p| procedure = p)
                }
                // S_LPROC32_ST, S_GPROC32_ST: the name's length stands in front of it
                0x100A | 0x100B => {
                    depth = 0;
                    procedure = None;
                    let size = record.data.get(35).copied().map(usize::from);
                    let name = size.and_then(|size| record.data.sub(36, size));
                    self.procedure(number, record, name).map(|p| procedure = p)
                }
                // S_THUNK32
                0x1102 => {
                    procedure = None;
                    self.thunk(number, record)
                }
                // S_TRAMPOLINE
                0x112C => self.trampoline(record),
                // S_SEPCODE
                0x1132 => self.separated(record),
                // S_INLINESITE, S_INLINESITE2
                0x114D | 0x115D => {
                    let at = if record.kind == 0x114D { 12 } else { 16 };
                    let read = match procedure {
                        Some(procedure) if depth < MAX_DEPTH => {
                            self.inlined(procedure, depth, tables, record.data, at)
                        }
                        _ => Some(()),
                    };
                    depth = depth.saturating_add(1);
                    read
                }
                // S_INLINESITE_END
                0x114E => {
                    depth = depth.saturating_sub(1);
                    Some(())
                }
                _ => Some(()),
            };
            if read.is_none() {
                self.builder.malformed();
            }
        }
    }

    /// Parent, end, next, size, start and end for debuggers, type, offset, section, flags, name. The inner `None` is
    /// a procedure that the linker left out.
    fn procedure(
        &mut self,
        number: usize,
        record: Record<'_>,
        name: Option<&[u8]>,
    ) -> Option<Option<Procedure>> {
        let data = record.data;
        let (size, offset, section) = (data.u32_at(12)?, data.u32_at(28)?, data.u16_at(32)?);
        let name = self.builder.name(&String::from_utf8_lossy(name?));
        let Some(rva) = self.addresses.rva(section, offset) else { return Some(None) };
        let rank = u32::from(self.dbi.is_folded(number, section, offset));
        let builder = &mut *self.builder;
        self.addresses.pieces(section, offset, size, |start, size| {
            builder.ranked_function(start, size, name, rank);
        });
        self.procedures.entry(rva).or_insert(name);
        Some(Some(Procedure { section, offset }))
    }

    /// Parent, end, next, offset, section, size, kind, name.
    fn thunk(&mut self, number: usize, record: Record<'_>) -> Option<()> {
        let data = record.data;
        let (offset, section, size) = (data.u32_at(12)?, data.u16_at(16)?, data.u16_at(18)?);
        let name = self.builder.name(&String::from_utf8_lossy(data.text_at(21)?));
        if let Some(rva) = self.addresses.rva(section, offset) {
            let rank = u32::from(self.dbi.is_folded(number, section, offset));
            self.builder.ranked_function(rva, u32::from(size), name, rank);
        }
        Some(())
    }

    /// Kind, size, offset, target's offset, section, target's section.
    fn trampoline(&mut self, record: Record<'_>) -> Option<()> {
        let data = record.data;
        let size = u32::from(data.u16_at(2)?);
        let own = self.addresses.rva(data.u16_at(12)?, data.u32_at(4)?);
        let target = self.addresses.rva(data.u16_at(14)?, data.u32_at(8)?);
        if let (Some(own), Some(target)) = (own, target) {
            self.trampolines.push((own, size, target));
        }
        Some(())
    }

    /// Parent, end, size, flags, offset, parent's offset, section, parent's section.
    fn separated(&mut self, record: Record<'_>) -> Option<()> {
        let data = record.data;
        let own = self.addresses.rva(data.u16_at(24)?, data.u32_at(16)?);
        let parent = self.addresses.rva(data.u16_at(26)?, data.u32_at(20)?);
        if let (Some(own), Some(parent)) = (own, parent) {
            self.separated.push((own, data.u32_at(8)?, parent));
        }
        Some(())
    }

    /// Parent, end, id of the function, (calls,) annotations.
    fn inlined(
        &mut self,
        procedure: Procedure,
        depth: u32,
        tables: &Tables<'_>,
        data: &[u8],
        at: usize,
    ) -> Option<()> {
        let id = data.u32_at(8)?;
        let name = match self.inlined.get(&id) {
            Some(name) => *name,
            None => {
                let known = if self.builder.is_full() { None } else { self.types.function(id) };
                let name = known.map_or(NONE, |name| self.builder.name(&name));
                self.inlined.insert(id, name);
                name
            }
        };
        let (file, line) = tables.inlinees.get(&id).copied().unwrap_or((NONE, 0));
        let mut ranges = std::mem::take(&mut self.ranges);
        inlinees::ranges(data.get(at..)?, line, file, &mut ranges);
        let mut last: Option<[u32; 6]> = None;
        for range in &ranges {
            let file = self.file(tables, range.file);
            let offset = procedure.offset.saturating_add(range.start);
            let builder = &mut *self.builder;
            self.addresses.pieces(procedure.section, offset, range.size, |start, size| {
                let row = [depth, start, size, name, file, range.line];
                // Columns make many ranges of one line.
                match &mut last {
                    Some(last) if last[1].saturating_add(last[2]) == start && last[3..] == row[3..] => {
                        last[2] = last[2].saturating_add(size);
                    }
                    _ => {
                        if let Some(done) = last.replace(row).filter(|done| done[2] > 0) {
                            builder.inline_row(done);
                        }
                    }
                }
            });
        }
        if let Some(done) = last.filter(|done| done[2] > 0) {
            self.builder.inline_row(done);
        }
        self.ranges = ranges;
        Some(())
    }

    /// Lines of one contribution: offset, section, flags, size, then blocks of one file each.
    fn lines(&mut self, number: usize, tables: &Tables<'_>, data: &[u8]) -> Option<()> {
        let (offset, section, flags, size) =
            (data.u32_at(0)?, data.u16_at(4)?, data.u16_at(6)?, data.u32_at(8)?);
        if self.dbi.is_folded(number, section, offset) || self.addresses.rva(section, offset).is_none() {
            return Some(());
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        // CV_LINES_HAVE_COLUMNS
        let has_columns = flags & 1 != 0;
        let mut at = 12;
        while let (Some(file), Some(count), Some(bytes)) =
            (data.u32_at(at), data.u32_at(at + 4), data.u32_at(at + 8))
        {
            let file = self.file(tables, file);
            let rows = data.sub(at + 12, (count as usize).checked_mul(8)?)?;
            for row in rows.as_chunks::<8>().0 {
                let (start, line) = (row.u32_at(0)?, row.u32_at(4)? & 0x00FF_FFFF);
                // Marks for debuggers: code of the compiler's own, not to be stepped onto or into.
                let line = if matches!(line, 0x00FE_EFEE | 0x00F0_0F00) { NONE } else { line };
                lines.push((start, line, file));
            }
            let least = 12 + (count as usize).checked_mul(if has_columns { 12 } else { 8 })?;
            at = at.checked_add((bytes as usize).max(least))?;
        }
        if !lines.is_sorted_by_key(|l| l.0) {
            lines.sort_by_key(|l| l.0);
        }
        // Code inlined at the beginning may come before the first line; it is that line's, as LLVM takes it.
        if let Some(first) = lines.first_mut() {
            first.0 = 0;
        }
        let ends = lines.iter().skip(1).map(|l| l.0).chain(std::iter::once(size));
        for (&(start, line, file), end) in lines.iter().zip(ends) {
            if end <= start {
                continue;
            }
            let builder = &mut *self.builder;
            self.addresses.pieces(section, offset.saturating_add(start), end - start, |rva, size| {
                builder.named_line(rva, size, line, file);
            });
        }
        self.lines = lines;
        Some(())
    }

    /// Number of the name of a file: checksums have its offset in the string table.
    fn file(&mut self, tables: &Tables<'_>, checksum: u32) -> u32 {
        let Some(text) = tables.checksums.u32_at(checksum as usize) else { return NONE };
        if let Some(name) = self.files.get(&text) {
            return *name;
        }
        let text_of =
            |text: u32| if self.builder.is_full() { None } else { self.texts.text_at(text as usize) };
        let name = match text_of(text) {
            Some(name) => self.builder.name(&String::from_utf8_lossy(name)),
            None => NONE,
        };
        self.files.insert(text, name);
        name
    }

    /// Adds what refers to procedures of any compiland.
    pub fn finish(mut self) {
        for (start, size, parent) in std::mem::take(&mut self.separated) {
            if let Some(name) = self.procedures.get(&parent) {
                self.builder.ranked_function(start, size, *name, 0);
            }
        }
        // DbgHelp names a jump of incremental linking by its place in the table and its target.
        let trampolines = std::mem::take(&mut self.trampolines);
        let first = trampolines.iter().map(|t| t.0).min().unwrap_or(0);
        for (start, size, target) in trampolines {
            if let Some(target) = self.procedures.get(&target).filter(|_| !self.builder.is_full()) {
                let name = format!("@ILT+{}({})", start.saturating_sub(first), self.builder.text(*target));
                let name = self.builder.name(&name);
                self.builder.ranked_function(start, size, name, 1);
            }
        }
    }
}

/// `DEBUG_S_LINES`, `DEBUG_S_FILECHKSMS`, `DEBUG_S_INLINEELINES`
const LINES: u32 = 0xF2;
const CHECKSUMS: u32 = 0xF4;
const INLINEE_LINES: u32 = 0xF6;

/// Kind and bytes of each subsection.
struct Subsections<'s>(&'s [u8]);

impl<'s> Iterator for Subsections<'s> {
    type Item = (u32, &'s [u8]);

    fn next(&mut self) -> Option<(u32, &'s [u8])> {
        let (kind, size) = (self.0.u32_at(0)?, self.0.u32_at(4)? as usize);
        let rest = self.0.get(8..)?;
        let data = rest.get(..size)?;
        self.0 = rest.get(size.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, data))
    }
}

/// Id, file and line of each inlined function; with signature 1 further files follow.
fn inlinee_lines(data: &[u8], found: &mut Numbered<(u32, u32)>) {
    let has_files = data.u32_at(0) == Some(1);
    let mut at = 4;
    while let (Some(id), Some(file), Some(line)) = (data.u32_at(at), data.u32_at(at + 4), data.u32_at(at + 8))
    {
        found.insert(id, (file, line));
        at += 12;
        if has_files {
            let Some(count) = data.u32_at(at) else { return };
            at += 4 + (count as usize).saturating_mul(4);
        }
    }
}
