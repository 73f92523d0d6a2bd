//! Takes functions, lines and names in any order and makes a [`ModuleSymbols`] of them.

use hashbrown::HashMap;

use crate::image::{
    FUNCTION_ROW, INLINE_ROW, INNERMOST_LINES, Image, NONE, Origin, Parts, SECTIONS, Section,
};
use crate::interner::Interner;
use crate::module::ModuleSymbols;
use crate::names::may_be_of;

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

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u32,
    size: u32,
    name: u32,
    linkage: u32,
    /// Of several at one address the one with the lowest rank stays, of these the first.
    rank: u32,
    /// Range in the inlined calls.
    inlines: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct Line {
    start: u32,
    size: u32,
    line: u32,
    file: u32,
}

/// Collects the symbols of one module. Addresses are relative to the start of the module; inlined calls belong to
/// the function added last.
#[derive(Debug)]
pub struct ModuleBuilder {
    names: Interner,
    /// Bytes that names may still have.
    left: usize,
    functions: Vec<Function>,
    lines: Vec<Line>,
    inlines: Vec<[u32; INLINE_ROW]>,
    /// Start and name; `NONE` where names end.
    publics: Vec<(u32, u32)>,
    files: HashMap<u32, u32, foldhash::fast::RandomState>,
    origins: HashMap<u32, u32, foldhash::fast::RandomState>,
    /// Files and inlined functions are given by numbers of the symbol file, as Breakpad has them.
    numbered: bool,
    malformed: u64,
    machine: u16,
}

impl Default for ModuleBuilder {
    fn default() -> ModuleBuilder {
        ModuleBuilder::new()
    }
}

/// Names of a small file, whatever its size, and how many times larger than their file all names together may be: names of members repeat
/// those of their classes. In a hostile file thousands of records name the end of one long text, and each end is another name.
const LEAST_NAMES: usize = 1 << 20;
const NAMES_TIMES: usize = 8;

impl ModuleBuilder {
    /// An empty module.
    pub fn new() -> ModuleBuilder {
        ModuleBuilder {
            names: Interner::default(),
            left: usize::MAX,
            functions: Vec::new(),
            lines: Vec::new(),
            inlines: Vec::new(),
            publics: Vec::new(),
            files: HashMap::default(),
            origins: HashMap::default(),
            numbered: false,
            malformed: 0,
            machine: 0,
        }
    }

    /// An empty module, whose symbols come from a file of so many bytes in which records refer to names.
    pub(crate) fn of_file(bytes: usize) -> ModuleBuilder {
        let left = bytes.saturating_mul(NAMES_TIMES).saturating_add(LEAST_NAMES);
        ModuleBuilder { left, ..ModuleBuilder::new() }
    }

    /// True if no more names are taken: what follows only costs time.
    pub(crate) fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Gives source file `number` its name.
    pub fn file(&mut self, number: u32, name: &str) {
        let id = self.name(name);
        self.files.insert(number, id);
    }

    /// Gives inlined function `number` its name.
    pub fn inline_origin(&mut self, number: u32, name: &str) {
        let id = self.name(name);
        self.origins.insert(number, id);
    }

    /// Adds a function of `size` bytes at `start`.
    pub fn function(&mut self, start: u32, size: u32, name: &str) {
        let name = self.name(name);
        self.ranked_function(start, size, name, 0);
    }

    /// Adds a line to the function added last; false if there is none.
    pub fn line(&mut self, start: u32, size: u32, line: u32, file: u32) -> bool {
        // Without a function it could never be found.
        if self.functions.is_empty() {
            return false;
        }
        self.numbered = true;
        self.named_line(start, size, line, file)
    }

    /// Adds an inlined call to the function added last; false if there is none.
    pub fn inline(&mut self, range: InlineRange) -> bool {
        self.numbered = true;
        let InlineRange { depth, call_line, call_file, origin, start, size } = range;
        self.inline_row([depth, start, size, origin, call_file, call_line])
    }

    /// Adds a name without a size.
    pub fn public(&mut self, start: u32, name: &str) {
        let name = self.name(name);
        self.publics.push((start, name));
    }

    /// Counts a record that could not be understood.
    pub fn malformed(&mut self) {
        self.malformed = self.malformed.saturating_add(1);
    }

    /// Number of a text; `NONE` if the module [is full](ModuleBuilder::is_full), or 4 GiB of texts are.
    pub(crate) fn name(&mut self, name: &str) -> u32 {
        match self.is_full() {
            true => {
                self.malformed();
                NONE
            }
            false => {
                self.left = self.left.saturating_sub(name.len());
                self.names.intern(name).unwrap_or(NONE)
            }
        }
    }

    /// The text of a number of [`ModuleBuilder::name`].
    pub(crate) fn text(&self, name: u32) -> &str {
        self.names.get(name)
    }

    /// Adds a function whose name is a number of [`ModuleBuilder::name`].
    pub(crate) fn ranked_function(&mut self, start: u32, size: u32, name: u32, rank: u32) {
        let inline = self.inlines.len() as u32;
        self.functions.push(Function { start, size, name, linkage: NONE, rank, inlines: (inline, inline) });
    }

    /// Adds a line whose file is a number of [`ModuleBuilder::name`]; false if there is no place.
    pub(crate) fn named_line(&mut self, start: u32, size: u32, line: u32, file: u32) -> bool {
        // Indices are 32-bit.
        let fits = self.lines.len() < NONE as usize / 2;
        if fits {
            self.lines.push(Line { start, size, line, file });
        }
        fits
    }

    /// Adds a row of [`Section::Inlines`]; false if there is no function or no place.
    pub(crate) fn inline_row(&mut self, row: [u32; INLINE_ROW]) -> bool {
        let fits = self.inlines.len() < NONE as usize / INLINE_ROW;
        match self.functions.last_mut() {
            Some(function) if fits => {
                self.inlines.push(row);
                function.inlines.1 = self.inlines.len() as u32;
                true
            }
            _ => false,
        }
    }

    /// Names without a size end here, if they reach so far.
    pub(crate) fn end_of_publics(&mut self, at: u32) {
        self.publics.push((at, NONE));
    }

    /// `IMAGE_FILE_MACHINE_*`: on x86 names of C functions are decorated.
    pub(crate) fn machine(&mut self, machine: u16) {
        self.machine = machine;
    }

    /// How many functions were added.
    pub(crate) fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Sorts everything for lookups. `key` says what the symbols are of, for the cache.
    pub fn finish(mut self, origin: Origin, key: &str) -> ModuleSymbols {
        // Stable, so of several names at one address (identical code folding) the first of the best rank stays.
        self.functions.sort_by_key(|f| (f.start, f.rank));
        self.functions.dedup_by_key(|f| f.start);
        self.publics.sort_by_key(|p| (p.0, p.1 == NONE));
        self.link();
        self.publics.dedup_by_key(|p| p.0);
        if self.numbered {
            self.resolve_numbers();
        }
        let inlines = self.sorted_inlines();
        let lines = LineTable::of(std::mem::take(&mut self.lines));
        let starts: Vec<u32> = self.functions.iter().map(|f| f.start).collect();
        let rows: Vec<u32> =
            self.functions.iter().flat_map(|f| [f.size, f.name, f.linkage, f.inlines.0]).collect();
        debug_assert_eq!(rows.len(), starts.len() * FUNCTION_ROW);
        let (public_starts, public_names): (Vec<u32>, Vec<u32>) = self.publics.iter().copied().unzip();
        let names = self.names.finish();
        let mut numbers: [&[u32]; SECTIONS] = [&[]; SECTIONS];
        let parts: [(Section, &[u32]); 10] = [
            (Section::FunctionStarts, &starts),
            (Section::FunctionRows, &rows),
            (Section::LineStarts, &lines.starts),
            (Section::LineNumbers, &lines.numbers),
            (Section::FileStarts, &lines.file_starts),
            (Section::FileNames, &lines.file_names),
            (Section::Inlines, inlines.as_flattened()),
            (Section::PublicStarts, &public_starts),
            (Section::PublicNames, &public_names),
            (Section::TextEnds, names.ends()),
        ];
        for (section, part) in parts {
            if let Some(place) = numbers.get_mut(section as usize) {
                *place = part;
            }
        }
        ModuleSymbols::new(Image::build(&Parts {
            flags: if self.numbered { INNERMOST_LINES } else { 0 },
            origin,
            machine: self.machine,
            malformed: self.malformed,
            numbers,
            texts: names.text(),
            key,
        }))
    }

    /// Gives functions the decorated names of publics at the same address that may be theirs. Folded code has several.
    fn link(&mut self) {
        let mut publics = self.publics.as_slice();
        for function in &mut self.functions {
            let skip = publics.partition_point(|p| p.0 < function.start);
            publics = publics.get(skip..).unwrap_or(&[]);
            let here = publics.iter().take_while(|p| p.0 == function.start && p.1 != NONE);
            let plain = self.names.get(function.name);
            if let Some(public) = here.into_iter().find(|p| may_be_of(self.names.get(p.1), plain)) {
                function.linkage = public.1;
            }
        }
    }

    fn resolve_numbers(&mut self) {
        let file = |number: u32| self.files.get(&number).copied().unwrap_or(NONE);
        for line in &mut self.lines {
            line.file = file(line.file);
        }
        for row in &mut self.inlines {
            row[3] = self.origins.get(&row[3]).copied().unwrap_or(NONE);
            row[4] = file(row[4]);
        }
    }

    /// The inlined calls in the order of their functions; each range becomes that of its rows there.
    fn sorted_inlines(&mut self) -> Vec<[u32; INLINE_ROW]> {
        let all = std::mem::take(&mut self.inlines);
        let mut sorted = Vec::with_capacity(all.len());
        for function in &mut self.functions {
            let (first, end) = function.inlines;
            let from = sorted.len();
            sorted.extend_from_slice(all.get(first as usize..end as usize).unwrap_or(&[]));
            if let Some(rows) = sorted.get_mut(from..) {
                rows.sort_by_key(|row| (row[0], row[1]));
            }
            function.inlines = (from as u32, sorted.len() as u32);
        }
        sorted
    }
}

/// Lines by address, with a row `NONE` where nothing is known, and files only where they change.
#[derive(Default)]
struct LineTable {
    starts: Vec<u32>,
    numbers: Vec<u32>,
    file_starts: Vec<u32>,
    file_names: Vec<u32>,
}

impl LineTable {
    fn of(mut lines: Vec<Line>) -> LineTable {
        // Stable: of two that begin at one place the first counts.
        if !lines.is_sorted_by_key(|l| l.start) {
            lines.sort_by_key(|l| l.start);
        }
        let mut table = LineTable {
            starts: Vec::with_capacity(lines.len()),
            numbers: Vec::with_capacity(lines.len()),
            ..LineTable::default()
        };
        let mut covered = 0u32;
        for line in &lines {
            let end = line.start.saturating_add(line.size);
            let start = line.start.max(covered);
            if end <= start {
                continue;
            }
            if start > covered {
                table.push(covered, NONE);
            }
            if table.file_names.last() != Some(&line.file) {
                table.file_starts.push(start);
                table.file_names.push(line.file);
                table.starts.push(start);
                table.numbers.push(line.line);
            } else {
                table.push(start, line.line);
            }
            covered = end;
        }
        table.push(covered, NONE);
        table
    }

    /// Begins a line, or a gap, unless it is the one that goes on.
    fn push(&mut self, start: u32, number: u32) {
        if self.numbers.last() != Some(&number) {
            self.starts.push(start);
            self.numbers.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_lines_count_where_nothing_else_was_first() {
        let line = |start, size, line, file| Line { start, size, line, file };
        let table = LineTable::of(vec![
            line(0x20, 0x10, 3, 1),
            line(0x10, 0x20, 1, 0),
            line(0x14, 0x04, 2, 0),
            line(0x30, 0x10, 3, 1),
            line(0x50, 0, 9, 1),
            line(0x50, 4, 5, 1),
        ]);
        assert_eq!(table.starts, [0, 0x10, 0x30, 0x40, 0x50, 0x54]);
        assert_eq!(table.numbers, [NONE, 1, 3, NONE, 5, NONE]);
        assert_eq!((table.file_starts, table.file_names), (vec![0x10, 0x30], vec![0, 1]));
    }

    #[test]
    fn folded_functions_take_only_decorated_names_that_may_be_theirs() {
        let mut builder = ModuleBuilder::new();
        builder.function(0x10, 4, "a::f");
        builder.function(0x20, 4, "helper");
        builder.public(0x10, "?g@b@@YAXXZ");
        builder.public(0x10, "?f@a@@YAXXZ");
        builder.public(0x20, "?other@@YAXXZ");
        let module = builder.finish(Origin::Pdb, "k");
        assert_eq!(module.lookup(0x11).unwrap().function.linkage, Some("?f@a@@YAXXZ"));
        assert_eq!(module.lookup(0x21).unwrap().function.linkage, None);
    }
}
