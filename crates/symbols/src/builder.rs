//! Takes functions, lines and names in any order and makes a [`ModuleSymbols`] of them.

use hashbrown::HashMap;

use crate::interner::Interner;
use crate::module::{Function, InlineRow, Line, ModuleSymbols, NO_NAME, Public};

/// One address range of an inlined call.
#[derive(Clone, Copy, Debug)]
pub struct InlineRange {
    /// How deeply it is nested; 0 is inlined into the function itself.
    pub depth: u32,
    /// Line of the call in the caller.
    pub call_line: u32,
    /// Number of the caller's source file, see [`ModuleBuilder::file`].
    pub call_file: u32,
    /// Number of the inlined function, see [`ModuleBuilder::inline_origin`].
    pub origin: u32,
    /// First address, relative to the module.
    pub start: u32,
    /// Bytes.
    pub size: u32,
}

/// Collects the symbols of one module. Addresses are relative to the start of the module; lines and
/// inlined calls belong to the function added last.
#[derive(Debug, Default)]
pub struct ModuleBuilder {
    names: Interner,
    functions: Vec<Function>,
    lines: Vec<Line>,
    inlines: Vec<InlineRow>,
    publics: Vec<Public>,
    files: HashMap<u32, u32, foldhash::fast::RandomState>,
    origins: HashMap<u32, u32, foldhash::fast::RandomState>,
    malformed: u64,
}

impl ModuleBuilder {
    /// An empty module.
    pub fn new() -> ModuleBuilder {
        ModuleBuilder::default()
    }

    /// Gives source file `number` its name.
    pub fn file(&mut self, number: u32, name: &str) {
        if let Some(id) = self.names.intern(name) {
            self.files.insert(number, id);
        }
    }

    /// Gives inlined function `number` its name.
    pub fn inline_origin(&mut self, number: u32, name: &str) {
        if let Some(id) = self.names.intern(name) {
            self.origins.insert(number, id);
        }
    }

    /// Adds a function of `size` bytes at `start`.
    pub fn function(&mut self, start: u32, size: u32, name: &str) {
        self.close_function();
        let name = self.names.intern(name).unwrap_or(NO_NAME);
        let (line, inline) = (self.lines.len() as u32, self.inlines.len() as u32);
        self.functions.push(Function { start, size, name, lines: (line, line), inlines: (inline, inline) });
    }

    /// Adds a line to the function added last; false if there is none.
    pub fn line(&mut self, start: u32, size: u32, line: u32, file: u32) -> bool {
        // Without a function it could never be found; indices are 32-bit.
        if self.functions.is_empty() || self.lines.len() >= NO_NAME as usize {
            return false;
        }
        self.lines.push(Line { start, size, line, file });
        true
    }

    /// Adds an inlined call to the function added last; false if there is none.
    pub fn inline(&mut self, range: InlineRange) -> bool {
        if self.functions.is_empty() || self.inlines.len() >= NO_NAME as usize {
            return false;
        }
        self.inlines.push(InlineRow {
            depth: range.depth,
            start: range.start,
            size: range.size,
            origin: range.origin,
            call_line: range.call_line,
            call_file: range.call_file,
        });
        true
    }

    /// Adds a name without a size.
    pub fn public(&mut self, start: u32, name: &str) {
        let name = self.names.intern(name).unwrap_or(NO_NAME);
        self.publics.push(Public { start, name });
    }

    /// Counts a line that could not be understood.
    pub fn malformed(&mut self) {
        self.malformed = self.malformed.saturating_add(1);
    }

    /// Sorts everything for lookups.
    pub fn finish(mut self) -> ModuleSymbols {
        self.close_function();
        // Stable, so of several names at one address (identical code folding) the first stays.
        self.functions.sort_by_key(|f| f.start);
        self.functions.dedup_by_key(|f| f.start);
        self.publics.sort_by_key(|p| p.start);
        self.publics.dedup_by_key(|p| p.start);
        self.functions.shrink_to_fit();
        self.lines.shrink_to_fit();
        self.inlines.shrink_to_fit();
        self.publics.shrink_to_fit();
        ModuleSymbols {
            starts: self.functions.iter().map(|f| f.start).collect(),
            functions: self.functions,
            lines: self.lines,
            inlines: self.inlines,
            publics: self.publics,
            files: self.files,
            origins: self.origins,
            names: self.names.finish(),
            malformed: self.malformed,
        }
    }

    fn close_function(&mut self) {
        let Some(last) = self.functions.last_mut() else { return };
        last.lines.1 = self.lines.len() as u32;
        last.inlines.1 = self.inlines.len() as u32;
        let lines = self.lines.get_mut(last.lines.0 as usize..).unwrap_or_default();
        if !lines.is_sorted_by_key(|l| l.start) {
            lines.sort_by_key(|l| l.start);
        }
        let inlines = self.inlines.get_mut(last.inlines.0 as usize..).unwrap_or_default();
        inlines.sort_by_key(|i| (i.depth, i.start));
    }
}
