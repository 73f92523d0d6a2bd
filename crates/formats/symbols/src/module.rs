//! The symbols of one module, and the lookup.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use etwhy_os::Mapped;

use crate::image::{INNERMOST_LINES, Image, NONE, Origin, Section};
use crate::names::{self, NameStyle};
use crate::{SymbolError, image};

/// The symbols of one module: in memory, or a mapped file of the compact cache.
#[derive(Debug)]
pub struct ModuleSymbols {
    image: Image,
}

/// What stands at an address.
#[derive(Clone, Debug)]
pub struct Symbol<'a> {
    /// The function, not counting what is inlined into it.
    pub function: Name<'a>,
    /// Bytes from the start of the function.
    pub offset: u32,
    /// Source file of the instruction (of the innermost inlined function).
    pub file: Option<&'a str>,
    /// Line of the instruction in `file`.
    pub line: Option<u32>,
    /// Functions at the address, innermost first; the last one is `function`.
    pub places: Places<'a>,
}

/// A name in all its forms.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// As the symbol file has it: a procedure's plain name, or a public's decorated one.
    pub plain: &'a str,
    /// The decorated name of a procedure, if its public is known.
    pub linkage: Option<&'a str>,
    machine: u16,
}

impl<'a> Name<'a> {
    /// The name as wanted.
    pub fn show(&self, style: NameStyle) -> Cow<'a, str> {
        match style {
            NameStyle::Short => names::short(self.plain, self.machine),
            NameStyle::Full => names::full(self.plain, self.linkage, self.machine),
            NameStyle::Raw => Cow::Borrowed(self.linkage.unwrap_or(self.plain)),
        }
    }
}

/// A function at an address and the place in it.
#[derive(Clone, Copy, Debug)]
pub struct SourceFrame<'a> {
    /// The function.
    pub name: Name<'a>,
    /// Source file of the instruction, or of the call of what is inlined here.
    pub file: Option<&'a str>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// The function is inlined into the next one.
    pub inlined: bool,
}

/// Iterates over the functions at an address, innermost first: those inlined there, then the one that is called.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    module: &'a ModuleSymbols,
    function: Option<Name<'a>>,
    address: u32,
    rows: (usize, usize),
    depth: u32,
    /// File and line of the next place of Breakpad, of the function itself otherwise.
    file: Option<&'a str>,
    line: Option<u32>,
}

impl ModuleSymbols {
    pub(crate) fn new(image: Image) -> ModuleSymbols {
        ModuleSymbols { image }
    }

    /// Opens a file of the compact cache; it must be of `key`.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, of another version or of another module.
    pub fn open(file: &Path, key: &str) -> Result<ModuleSymbols, SymbolError> {
        let io = |source| SymbolError::Io { file: file.to_path_buf(), source };
        let mapped = Mapped::new(&File::open(file).map_err(io)?).map_err(io)?;
        let image = Image::open(mapped, key)
            .map_err(|reason| SymbolError::Damaged { file: file.to_path_buf(), reason })?;
        Ok(ModuleSymbols { image })
    }

    /// The bytes of a file of the compact cache.
    pub fn bytes(&self) -> &[u8] {
        self.image.bytes()
    }

    /// Where the names come from.
    pub fn origin(&self) -> Origin {
        self.image.origin
    }

    /// The symbol at `rva`, an address relative to the start of the module.
    ///
    /// A function counts only if it contains the address. A public name has no size, so it reaches up to
    /// the next name or the end of its section; this is the rule of Breakpad's own resolver and of DbgHelp.
    pub fn lookup(&self, rva: u32) -> Option<Symbol<'_>> {
        let starts = self.image.numbers(Section::FunctionStarts);
        let function = starts.last_at_most(rva);
        let start = function.and_then(|at| starts.get(at));
        if let (Some(at), Some(start)) = (function, start)
            && let Some(symbol) = self.in_function(at, start, rva)
        {
            return Some(symbol);
        }
        let publics = self.image.numbers(Section::PublicStarts);
        let at = publics.last_at_most(rva)?;
        let public = publics.get(at)?;
        if start.is_some_and(|start| start >= public) {
            return None;
        }
        let id = self.image.numbers(Section::PublicNames).get(at).filter(|id| *id != NONE)?;
        let name = Name { plain: self.image.text(id)?, linkage: None, machine: self.image.machine };
        // Some compilers and assemblers write lines for code without procedures.
        let (file, line) = self.line(rva).filter(|_| self.image.origin != Origin::Breakpad).unzip();
        let file = file.flatten();
        Some(Symbol {
            function: name,
            offset: rva.saturating_sub(public),
            file,
            line,
            places: Places {
                module: self,
                function: Some(name),
                address: rva,
                rows: (0, 0),
                depth: 0,
                file,
                line,
            },
        })
    }

    fn in_function(&self, at: usize, start: u32, rva: u32) -> Option<Symbol<'_>> {
        let rows = self.image.numbers(Section::FunctionRows);
        let [size, name, linkage, first] = rows.row::<{ image::FUNCTION_ROW }>(at)?;
        if rva.wrapping_sub(start) >= size {
            return None;
        }
        let all = self.image.len(Section::Inlines) / image::INLINE_ROW;
        let end =
            rows.row::<{ image::FUNCTION_ROW }>(at.checked_add(1)?).map_or(all, |next| next[3] as usize);
        let range = (first as usize, end.min(all));
        let (file, line) = self.line(rva).unzip();
        let file = file.flatten();
        let mut depth = 0;
        while self.inline_at(range, depth, rva).is_some() {
            depth = depth.saturating_add(1);
        }
        let function = Name {
            plain: self.image.text(name).unwrap_or(""),
            linkage: self.image.text(linkage),
            machine: self.image.machine,
        };
        let places =
            Places { module: self, function: Some(function), address: rva, rows: range, depth, file, line };
        let innermost = places.clone().next()?;
        Some(Symbol {
            function,
            offset: rva.saturating_sub(start),
            file: innermost.file,
            line: innermost.line,
            places,
        })
    }

    /// File and line of the line table at an address.
    fn line(&self, rva: u32) -> Option<(Option<&str>, u32)> {
        let at = self.image.numbers(Section::LineStarts).last_at_most(rva)?;
        let line = self.image.numbers(Section::LineNumbers).get(at).filter(|line| *line != NONE)?;
        let file = self.image.numbers(Section::FileStarts).last_at_most(rva);
        let file = file.and_then(|at| self.image.numbers(Section::FileNames).get(at));
        Some((file.and_then(|id| self.image.text(id)), line))
    }

    /// The inlined row of one depth at an address: its name, file and line. Rows of a function are sorted by depth
    /// and start.
    fn inline_at(&self, (first, end): (usize, usize), depth: u32, rva: u32) -> Option<[u32; 3]> {
        let rows = self.image.numbers(Section::Inlines);
        let (mut low, mut high) = (first, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let [d, start, ..] = rows.row::<{ image::INLINE_ROW }>(middle)?;
            if (d, start) <= (depth, rva) { low = middle + 1 } else { high = middle }
        }
        let at = low.checked_sub(1).filter(|at| *at >= first)?;
        let [d, start, size, name, file, line] = rows.row(at)?;
        (d == depth && rva.wrapping_sub(start) < size).then_some([name, file, line])
    }

    /// How many functions there are.
    pub fn functions(&self) -> usize {
        self.image.len(Section::FunctionStarts)
    }

    /// How many names without a size there are.
    pub fn publics(&self) -> usize {
        let names = self.image.numbers(Section::PublicNames);
        (0..self.image.len(Section::PublicNames)).filter(|at| names.get(*at) != Some(NONE)).count()
    }

    /// How many rows the table of lines has.
    pub fn lines(&self) -> usize {
        self.image.len(Section::LineStarts)
    }

    /// How many address ranges of inlined calls there are.
    pub fn inlined_ranges(&self) -> usize {
        self.image.len(Section::Inlines) / image::INLINE_ROW
    }

    /// First address, size and name of every function, ascending.
    pub fn all_functions(&self) -> impl Iterator<Item = (u32, u32, Name<'_>)> {
        let starts = self.image.numbers(Section::FunctionStarts);
        let rows = self.image.numbers(Section::FunctionRows);
        (0..self.functions()).filter_map(move |at| {
            let [size, name, linkage, _] = rows.row::<{ image::FUNCTION_ROW }>(at)?;
            let name = Name {
                plain: self.image.text(name)?,
                linkage: self.image.text(linkage),
                machine: self.image.machine,
            };
            Some((starts.get(at)?, size, name))
        })
    }

    /// Records of the symbol file that could not be understood.
    pub fn malformed(&self) -> u64 {
        self.image.malformed
    }

    /// Bytes of memory held, about; pages of a mapped file are the system's.
    pub fn memory(&self) -> usize {
        if self.image.is_mapped() { size_of::<ModuleSymbols>() } else { self.image.bytes().len() }
    }
}

impl<'a> Iterator for Places<'a> {
    type Item = SourceFrame<'a>;

    fn next(&mut self) -> Option<SourceFrame<'a>> {
        let Some(depth) = self.depth.checked_sub(1) else {
            let name = self.function.take()?;
            return Some(SourceFrame { name, file: self.file, line: self.line, inlined: false });
        };
        self.depth = depth;
        let image = &self.module.image;
        let [name, file, line] = self.module.inline_at(self.rows, depth, self.address)?;
        let (file, line) = (image.text(file), Some(line).filter(|l| *l != NONE));
        let name = Name { plain: image.text(name).unwrap_or(""), linkage: None, machine: image.machine };
        if image.flags & INNERMOST_LINES == 0 {
            return Some(SourceFrame { name, file, line, inlined: true });
        }
        // The row has the place of the call, which is that of the next frame outwards.
        let place = SourceFrame { name, file: self.file, line: self.line, inlined: true };
        (self.file, self.line) = (file, line);
        Some(place)
    }
}

#[cfg(test)]
mod tests;
