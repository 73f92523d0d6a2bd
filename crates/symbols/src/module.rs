//! The symbols of one module in compact arrays, and the lookup.

use hashbrown::HashMap;

use crate::interner::{NameId, Names};

/// An id that no name has.
pub(crate) const NO_NAME: NameId = u32::MAX;

type Numbered = HashMap<u32, NameId, foldhash::fast::RandomState>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub start: u32,
    pub size: u32,
    pub name: NameId,
    /// Range in the lines.
    pub lines: (u32, u32),
    /// Range in the inlined calls.
    pub inlines: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub start: u32,
    pub size: u32,
    pub line: u32,
    pub file: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct InlineRow {
    pub depth: u32,
    pub start: u32,
    pub size: u32,
    pub origin: u32,
    pub call_line: u32,
    pub call_file: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Public {
    pub start: u32,
    pub name: NameId,
}

/// The symbols of one module.
#[derive(Debug)]
pub struct ModuleSymbols {
    /// `start` of each function once more: the search touches nothing else.
    pub(crate) starts: Vec<u32>,
    pub(crate) functions: Vec<Function>,
    pub(crate) lines: Vec<Line>,
    pub(crate) inlines: Vec<InlineRow>,
    pub(crate) publics: Vec<Public>,
    pub(crate) files: Numbered,
    pub(crate) origins: Numbered,
    pub(crate) names: Names,
    pub(crate) malformed: u64,
}

/// What stands at an address.
#[derive(Clone, Debug)]
pub struct Symbol<'a> {
    /// The function, not counting what is inlined into it.
    pub function: &'a str,
    /// Bytes from the start of the function.
    pub offset: u32,
    /// Source file of the instruction (of the innermost inlined function).
    pub file: Option<&'a str>,
    /// Line of the instruction in `file`.
    pub line: Option<u32>,
    /// Functions inlined at the address, innermost first.
    pub inlines: Inlines<'a>,
}

/// An inlined function at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline<'a> {
    /// Its name.
    pub function: &'a str,
    /// Source file of the call, in the caller.
    pub call_file: Option<&'a str>,
    /// Line of the call in `call_file`.
    pub call_line: u32,
}

/// Iterates over the functions inlined at an address, innermost first.
#[derive(Clone, Debug)]
pub struct Inlines<'a> {
    module: &'a ModuleSymbols,
    rows: &'a [InlineRow],
    address: u32,
    depth: u32,
}

impl ModuleSymbols {
    /// The symbol at `rva`, an address relative to the start of the module.
    ///
    /// A function counts only if it contains the address. A public name has no size, so it reaches up to
    /// the next name; this is the rule of Breakpad's own resolver.
    pub fn lookup(&self, rva: u32) -> Option<Symbol<'_>> {
        let function = below(&self.starts, |start| *start <= rva).and_then(|at| self.functions.get(at));
        if let Some(function) = function.filter(|f| rva.wrapping_sub(f.start) < f.size) {
            return Some(self.in_function(function, rva));
        }
        let public = self.publics.get(below(&self.publics, |p| p.start <= rva)?)?;
        if function.is_some_and(|f| f.start >= public.start) {
            return None;
        }
        Some(Symbol {
            function: self.names.get(public.name),
            offset: rva.saturating_sub(public.start),
            file: None,
            line: None,
            inlines: Inlines { module: self, rows: &[], address: rva, depth: 0 },
        })
    }

    fn in_function(&self, function: &Function, rva: u32) -> Symbol<'_> {
        let lines = range(&self.lines, function.lines);
        let line = below(lines, |l| l.start <= rva)
            .and_then(|at| lines.get(at))
            .filter(|l| rva.wrapping_sub(l.start) < l.size);
        let rows = range(&self.inlines, function.inlines);
        let mut depth = 0;
        while inline_at(rows, depth, rva).is_some() {
            depth = depth.saturating_add(1);
        }
        Symbol {
            function: self.names.get(function.name),
            offset: rva.saturating_sub(function.start),
            file: line.and_then(|l| self.file_name(l.file)),
            line: line.map(|l| l.line),
            inlines: Inlines { module: self, rows, address: rva, depth },
        }
    }

    fn file_name(&self, number: u32) -> Option<&str> {
        self.files.get(&number).map(|id| self.names.get(*id))
    }

    /// How many functions there are.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// How many names without a size there are.
    pub fn publics(&self) -> usize {
        self.publics.len()
    }

    /// Lines of the symbol file that could not be understood.
    pub fn malformed_lines(&self) -> u64 {
        self.malformed
    }

    /// Bytes of memory held, about.
    pub fn memory(&self) -> usize {
        let tables = size_of_val(self.starts.as_slice())
            + size_of_val(self.functions.as_slice())
            + size_of_val(self.lines.as_slice())
            + size_of_val(self.inlines.as_slice())
            + size_of_val(self.publics.as_slice());
        let numbered = self.files.allocation_size() + self.origins.allocation_size();
        tables.saturating_add(numbered).saturating_add(self.names.memory())
    }
}

impl<'a> Iterator for Inlines<'a> {
    type Item = Inline<'a>;

    fn next(&mut self) -> Option<Inline<'a>> {
        self.depth = self.depth.checked_sub(1)?;
        let row = inline_at(self.rows, self.depth, self.address)?;
        let origin = self.module.origins.get(&row.origin).copied().unwrap_or(NO_NAME);
        Some(Inline {
            function: self.module.names.get(origin),
            call_file: self.module.file_name(row.call_file),
            call_line: row.call_line,
        })
    }
}

/// The inlined call of one depth at an address; rows are sorted by depth and start.
fn inline_at(rows: &[InlineRow], depth: u32, rva: u32) -> Option<&InlineRow> {
    let at = below(rows, |r| (r.depth, r.start) <= (depth, rva))?;
    rows.get(at).filter(|r| r.depth == depth && rva.wrapping_sub(r.start) < r.size)
}

/// Index of the last item that `holds`, in items sorted so that those come first.
fn below<T>(items: &[T], holds: impl Fn(&T) -> bool) -> Option<usize> {
    items.partition_point(holds).checked_sub(1)
}

fn range<T>(items: &[T], (start, end): (u32, u32)) -> &[T] {
    items.get(start as usize..end as usize).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use crate::{InlineRange, ModuleBuilder};

    #[test]
    fn functions_publics_and_gaps() {
        let mut builder = ModuleBuilder::new();
        builder.function(0x2000, 0x10, "second");
        builder.function(0x1000, 0x100, "first");
        builder.function(0x1000, 0x80, "folded");
        builder.public(0x1800, "public");
        builder.public(0x3000, "last");
        let module = builder.finish();
        let at = |rva| module.lookup(rva).map(|s| (s.function, s.offset));
        assert_eq!(at(0), None);
        assert_eq!(at(0xFFF), None);
        assert_eq!(at(0x1000), Some(("first", 0)));
        assert_eq!(at(0x10FF), Some(("first", 0xFF)));
        assert_eq!(at(0x1100), None);
        assert_eq!(at(0x1900), Some(("public", 0x100)));
        assert_eq!(at(0x2000), Some(("second", 0)));
        assert_eq!(at(0x2010), None, "a public name ends where a function starts");
        assert_eq!(at(u32::MAX), Some(("last", u32::MAX - 0x3000)));
        assert_eq!((module.functions(), module.publics()), (2, 2));
        assert!(module.memory() > 0);
    }

    #[test]
    fn inlined_calls_come_innermost_first() {
        let mut builder = ModuleBuilder::new();
        builder.file(1, "a.c");
        builder.file(2, "b.h");
        builder.inline_origin(7, "outer_inline");
        builder.inline_origin(8, "inner_inline");
        builder.function(0x100, 0x100, "f");
        let range =
            InlineRange { depth: 1, call_line: 21, call_file: 2, origin: 8, start: 0x120, size: 0x10 };
        assert!(builder.inline(range));
        assert!(builder.inline(InlineRange {
            depth: 0,
            call_line: 11,
            call_file: 1,
            origin: 7,
            start: 0x110,
            size: 0x40
        }));
        assert!(builder.line(0x110, 0x10, 12, 1));
        assert!(builder.line(0x100, 0x10, 10, 9));
        let module = builder.finish();
        let inlines = |rva| -> Vec<(String, u32)> {
            module.lookup(rva).unwrap().inlines.map(|i| (i.function.to_owned(), i.call_line)).collect()
        };
        assert_eq!(inlines(0x125), [("inner_inline".to_owned(), 21), ("outer_inline".to_owned(), 11)]);
        assert_eq!(inlines(0x130), [("outer_inline".to_owned(), 11)]);
        assert_eq!(inlines(0x100), []);
        let symbol = module.lookup(0x115).unwrap();
        assert_eq!((symbol.file, symbol.line), (Some("a.c"), Some(12)));
        let unknown_file = module.lookup(0x105).unwrap();
        assert_eq!((unknown_file.file, unknown_file.line), (None, Some(10)));
        assert_eq!(module.lookup(0x125).unwrap().line, None);
    }

    #[test]
    fn lines_without_a_function_are_refused() {
        let mut builder = ModuleBuilder::new();
        assert!(!builder.line(0, 1, 1, 1));
        assert!(builder.finish().lookup(0).is_none());
    }
}
