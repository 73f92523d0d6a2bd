//! Names for the addresses of an extract, without the trace.
//!
//! # How it is computed
//! Frames without a function (and those that an export table named) are looked up by the build of their image and their
//! offset in it, as in the pass over a trace: a return address stands one byte before what follows the call, functions
//! that are inlined become frames of their own. Stacks are written anew, and in all tables the text `module!+0xoffset` of a place
//! becomes its name. Tables that are made from others are made anew, so that costs by function are those of the functions.
//!
//! # What fools it
//! What the pass over the trace recognised by name only (the calls of `growth`) is not found again: for that symbols must be
//! there when the trace is read. If two builds of a module have a place at the same offset, texts in other tables than `frame` keep it.

use crate::catalog::specs;
use anyhow::{Context as _, Result};
use etwhy_analysis::derive;
use etwhy_analysis::derived::ALL as DERIVED;
use etwhy_base::Guid;
use etwhy_export::extract::Folder;
use etwhy_knowledge::{FrameTag, deciding_frame, stack_tag, tag_path};
use etwhy_symbols::{ImageKey, ModuleKey, ModuleSymbols, NameStyle, Origin, Problem, Resolver, WantedModule};
use etwhy_table::{
    AdHocBuilder, Database, Memory, Role, RowOf, Rows, Strings, Table, TableBuilder, TableError, TableLoader,
    Value,
};
use etwhy_trace::catalog::image::ImageRow;
use etwhy_trace::catalog::stack::{FrameRow, StackFrameRow, StackRow};
use etwhy_trace::stacks::Stacks;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Tables that are written anew.
const STACKS: [&str; 3] = ["stack", "stack_frame", "frame"];
/// Tables that they are written from.
const READ: [&str; 4] = ["stack", "stack_frame", "frame", "image"];
/// Functions at one address, inlined ones included, as in the pass over a trace.
const MOST_PLACES: usize = 64;

/// What came of it.
pub struct Applied {
    /// All tables, the derived ones too.
    pub db: Database,
    /// Frames that had no function.
    pub unnamed: usize,
    /// Frames of these that have one now.
    pub named: usize,
    /// What went wrong with symbol files.
    pub problems: Vec<Problem>,
}

/// Reads an extract and names what `resolver` knows.
///
/// # Errors
/// If the extract has no stacks, and those of reading it.
pub fn apply(
    extract: &mut Folder,
    resolver: &Resolver,
    names: NameStyle,
    memory: &Memory,
) -> Result<Applied> {
    let old = read_stacks(extract, memory)?;
    let mut resolving = Resolving::new(&old, resolver, names)?;
    let stacks = resolving.stacks(&old);
    let mut strings = Strings::new();
    strings.rename(resolving.renamed());
    let derived = |name: &str| DERIVED.iter().any(|d| d.tables.iter().any(|t| t.name == name));
    let has = |name: &str| extract.has(name);
    let kept: Vec<_> =
        specs().filter(|s| has(&s.name) && !derived(&s.name) && !STACKS.contains(&s.name.as_ref())).collect();
    let made: BTreeSet<String> =
        specs().filter(|s| has(&s.name) && derived(&s.name)).map(|s| s.name.to_string()).collect();
    let mut loaders: Vec<TableLoader> = Vec::new();
    for spec in kept {
        loaders.push(extract.load(spec, &mut strings, memory)?);
    }
    let builders = resolving.tables(&old, &stacks, &mut strings, memory);
    let texts = strings.freeze().map_err(TableError::texts)?;
    let mut db = Database::new();
    for loader in loaders {
        let table = loader.finish(&texts)?;
        let columns: Vec<usize> = (0..table.spec().columns.len())
            .filter(|&at| table.spec().columns.get(at).is_some_and(|c| c.role == Role::Frame))
            .collect();
        db.insert(match columns.is_empty() {
            true => table,
            false => resolving.renumbered(&table, &columns, memory)?,
        });
    }
    let (stack, frame, stack_frame) = builders;
    db.insert(stack.finish(&texts)?);
    db.insert(frame.finish(&texts)?);
    db.insert(stack_frame.finish(&texts)?);
    derive(&mut db, Some(&made), memory, 1)?;
    let (unnamed, named) = (resolving.unnamed, resolving.named);
    Ok(Applied { db, unnamed, named, problems: resolver.problems() })
}

fn read_stacks(extract: &mut Folder, memory: &Memory) -> Result<Database> {
    let mut strings = Strings::new();
    let mut loaders = Vec::new();
    for name in READ {
        let spec = specs().find(|spec| spec.name == name).context("no such table")?;
        if !extract.has(name) {
            let folder = extract.path().display();
            anyhow::bail!("{folder}: has no table {name}; extract the trace with its stacks");
        }
        loaders.push(extract.load(spec, &mut strings, memory)?);
    }
    let texts = strings.freeze().map_err(TableError::texts)?;
    let mut db = Database::new();
    for loader in loaders {
        db.insert(loader.finish(&texts)?);
    }
    Ok(db)
}

/// A frame as it will be written.
struct NewFrame {
    /// The row that it comes from.
    old: u32,
    function: Option<String>,
    file: Option<String>,
    line: Option<i32>,
    label: String,
    source: String,
    inlined: bool,
}

/// Frames of one place: the innermost, and how many.
type Run = (u32, u32);

struct Resolving<'a> {
    frames: Rows<'a, FrameRow>,
    images: Rows<'a, ImageRow>,
    resolver: &'a Resolver,
    names: NameStyle,
    modules: HashMap<WantedModule, Option<Arc<ModuleSymbols>>>,
    new: Vec<NewFrame>,
    /// By old frame, and whether it was seen as a return address.
    runs: HashMap<(u32, bool), Run>,
    unnamed: usize,
    named: usize,
}

/// A stack as it will be written: frames innermost first, and how many of them are the kernel's.
struct NewStack {
    frames: Vec<u32>,
    kernel: usize,
}

impl<'a> Resolving<'a> {
    fn new(old: &'a Database, resolver: &'a Resolver, names: NameStyle) -> Result<Resolving<'a>> {
        Ok(Resolving {
            frames: old.read()?,
            images: old.read()?,
            resolver,
            names,
            modules: HashMap::new(),
            new: Vec::new(),
            runs: HashMap::new(),
            unnamed: 0,
            named: 0,
        })
    }

    /// All stacks with their new frames.
    fn stacks(&mut self, old: &Database) -> Vec<NewStack> {
        let stacks = Stacks::read(old);
        let mut out = Vec::with_capacity(stacks.len());
        for old in (0..stacks.len() as i64).map(|number| stacks.get(number)) {
            let mut new = NewStack { frames: Vec::new(), kernel: 0 };
            // An inlined frame has the address of the one that it is inlined into: both are the leaf, or neither.
            let mut is_return = false;
            for (position, frame) in old.frames().enumerate() {
                let Some(inlined) = self.frames.get(frame).map(|row| row.inlined()) else { continue };
                let (first, count) = self.run(frame, is_return);
                is_return |= !inlined;
                new.frames.extend(first..first.saturating_add(count));
                if position < old.kernel.len() {
                    new.kernel = new.frames.len();
                }
            }
            out.push(new);
        }
        // Places that stand on no stack: routines of DPCs, starts of threads.
        for frame in 0..self.frames.len() as u32 {
            if !self.runs.contains_key(&(frame, false)) && !self.runs.contains_key(&(frame, true)) {
                self.run(frame, false);
            }
        }
        out
    }

    /// The new frames of an old one.
    fn run(&mut self, frame: u32, is_return: bool) -> Run {
        if let Some(&run) = self.runs.get(&(frame, is_return)) {
            return run;
        }
        let resolvable = self.resolvable(frame);
        let has_symbols = resolvable && self.module(frame).is_some();
        // A place that keeps the name it has, or has none, is one frame, however it is seen.
        if !has_symbols && let Some(&run) = self.runs.get(&(frame, !is_return)) {
            self.runs.insert((frame, is_return), run);
            return run;
        }
        let first = self.new.len() as u32;
        let seen_before = self.runs.contains_key(&(frame, !is_return));
        if resolvable && !seen_before {
            self.unnamed += 1;
        }
        let found = if resolvable { self.places(frame, is_return) } else { Vec::new() };
        if found.is_empty() {
            self.new.extend(self.frames.get(frame).map(|row| NewFrame {
                old: frame,
                function: row.function().map(str::to_owned),
                file: row.file().map(str::to_owned),
                line: row.line().and_then(|line| i32::try_from(line).ok()),
                label: row.label().to_owned(),
                source: row.symbol_source().to_owned(),
                inlined: row.inlined(),
            }));
        } else {
            self.named += usize::from(!seen_before);
            self.new.extend(found);
        }
        let run = (first, (self.new.len() as u32).saturating_sub(first));
        self.runs.insert((frame, is_return), run);
        run
    }

    /// A frame of an image without a name, or with one that is only near.
    fn resolvable(&self, frame: u32) -> bool {
        let open = |row: RowOf<'_, '_, FrameRow>| {
            matches!(row.symbol_source(), "none" | "export") && row.image_id().is_some()
        };
        self.frames.get(frame).is_some_and(open)
    }

    /// The functions at the place of a frame, innermost first.
    fn places(&mut self, frame: u32, is_return: bool) -> Vec<NewFrame> {
        let Some((symbols, row)) = self.module(frame).zip(self.frames.get(frame)) else { return Vec::new() };
        let rva = row.rva().and_then(|rva| u32::try_from(rva.saturating_sub(i64::from(is_return))).ok());
        let Some(symbol) = rva.and_then(|rva| symbols.lookup(rva)) else { return Vec::new() };
        let module = row.module();
        let near = if symbols.origin() == Origin::Export { "~" } else { "" };
        let mut out: Vec<NewFrame> = Vec::new();
        for place in symbol.places {
            if place.inlined && out.len() >= MOST_PLACES {
                continue;
            }
            let function = format!("{near}{}", place.name.show(self.names));
            out.push(NewFrame {
                old: frame,
                label: format!("{module}!{function}"),
                function: Some(function),
                file: place.file.map(str::to_owned),
                line: place.line.and_then(|line| i32::try_from(line).ok()),
                source: symbols.origin().name().to_owned(),
                inlined: place.inlined,
            });
        }
        out
    }

    /// The symbols of a frame's image.
    fn module(&mut self, frame: u32) -> Option<Arc<ModuleSymbols>> {
        let image = self.images.get(self.frames.get(frame)?.image_id()?)?;
        let pdb = || {
            let guid: Guid = image.pdb_guid()?.parse().ok()?;
            let key =
                ModuleKey { pdb_name: image.pdb_name()?.to_owned(), guid, age: image.pdb_age()? as u32 };
            (!guid.is_zero()).then_some(key)
        };
        let key = || {
            // Table `image` has the number as SQL has it: signed.
            let time_date_stamp = image.time_date_stamp() as u32;
            let size_of_image = u32::try_from(image.size_bytes()).ok()?;
            let name = image.name().to_owned();
            (time_date_stamp != 0).then_some(ImageKey { name, time_date_stamp, size_of_image })
        };
        let wanted = WantedModule { pdb: pdb(), image: key() };
        let resolver = self.resolver;
        self.modules.entry(wanted).or_insert_with_key(|wanted| resolver.load(wanted)).clone()
    }

    /// The frame that stands for an old one in other tables: the function itself, not what is inlined into it.
    fn outermost(&self, frame: u32) -> Option<u32> {
        let run = self.runs.get(&(frame, false)).or_else(|| self.runs.get(&(frame, true)))?;
        run.0.checked_add(run.1.checked_sub(1)?)
    }

    /// What texts of places become, where that is certain.
    fn renamed(&self) -> HashMap<String, String> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (row, frame) in self.frames.iter().zip(0..).filter(|&(_, frame)| self.resolvable(frame)) {
            let new = self.outermost(frame).and_then(|at| self.new.get(at as usize));
            all.entry(row.label()).or_default().extend(new.map(|new| new.label.as_str()));
        }
        let certain = |(old, new): (&str, BTreeSet<&str>)| {
            let only = new.first().filter(|_| new.len() == 1)?;
            (*only != old).then(|| (old.to_owned(), (*only).to_owned()))
        };
        all.into_iter().filter_map(certain).collect()
    }

    /// The new rows of stacks, frames and frames of stacks.
    fn tables(
        &self,
        old: &Database,
        stacks: &[NewStack],
        strings: &mut Strings,
        memory: &Memory,
    ) -> (TableBuilder<StackRow>, TableBuilder<FrameRow>, TableBuilder<StackFrameRow>) {
        let mut frame_rows = TableBuilder::<FrameRow>::new(memory);
        let mut tags = Vec::with_capacity(self.new.len());
        for (number, new) in self.new.iter().enumerate() {
            let Some(old) = self.frames.get(new.old) else { continue };
            let function = new.function.as_deref().unwrap_or("");
            tags.push(FrameTag::for_frame(old.module(), function));
            frame_rows.push(FrameRow {
                frame_id: number as i32,
                address: old.address(),
                image_id: old.image_id().and_then(|i| i32::try_from(i).ok()),
                module: strings.intern(old.module()),
                rva: old.rva(),
                function: new.function.as_deref().map(|text| strings.intern(text)),
                file: new.file.as_deref().map(|text| strings.intern(text)),
                line: new.line,
                kind: strings.intern(old.kind()),
                label: strings.intern(&new.label),
                symbol_source: strings.intern(&new.source),
                inlined: new.inlined,
                guessed: old.guessed(),
                category: old.category().map(|text| strings.intern(text)),
                tag: stack_tag(old.module(), function).map(|tag| strings.intern(tag.category)),
            });
        }
        let mut stack_rows = TableBuilder::<StackRow>::new(memory);
        let mut places = TableBuilder::<StackFrameRow>::new(memory);
        let old_stacks = old.read_or_empty::<StackRow>();
        for (number, stack) in stacks.iter().enumerate() {
            let frame = |at: usize| self.new.get(*stack.frames.get(at)? as usize);
            let named = |at: usize| {
                let frame = frame(at)?;
                Some((self.frames.get(frame.old)?.module(), frame.function.as_deref()))
            };
            let best = deciding_frame(stack.frames.iter().map(|&f| tags.get(f as usize).copied().flatten()));
            let tag = best.map(|(at, tag)| tag_path(at, tag, named));
            let mut label = |at: Option<&u32>| Some(strings.intern(&self.new.get(*at? as usize)?.label));
            let (leaf, root) = (label(stack.frames.first()), label(stack.frames.last()));
            let old = old_stacks.get(number);
            stack_rows.push(StackRow {
                stack_id: number as i32,
                upid: old.and_then(|old| i32::try_from(old.upid()?).ok()),
                depth: stack.frames.len() as i32,
                kernel_depth: stack.kernel as i32,
                leaf_only: old.is_some_and(|old| old.leaf_only()),
                leaf_frame_id: stack.frames.first().map(|&f| f as i32),
                root_frame_id: stack.frames.last().map(|&f| f as i32),
                leaf,
                root,
                tag: tag.map(|tag| strings.intern(&tag)),
            });
            for (position, &frame) in stack.frames.iter().enumerate() {
                places.push(StackFrameRow {
                    stack_id: number as i32,
                    position: position as i32,
                    frame_id: frame as i32,
                });
            }
        }
        (stack_rows, frame_rows, places)
    }

    /// A table whose columns with frames have the new numbers.
    fn renumbered(&self, table: &Table, columns: &[usize], memory: &Memory) -> Result<Table> {
        let mut out = AdHocBuilder::new(table.spec().clone(), memory);
        let mut cells: Vec<Value<'_>> = Vec::new();
        for row in 0..table.rows() as u32 {
            cells.clear();
            for column in 0..table.spec().columns.len() {
                let cell = table.cell(row, column);
                cells.push(match cell {
                    Value::I64(frame) if columns.contains(&column) => u32::try_from(frame)
                        .ok()
                        .and_then(|frame| self.outermost(frame))
                        .map_or(Value::Null, |frame| Value::I64(i64::from(frame))),
                    cell => cell,
                });
            }
            out.push(&cells)?;
        }
        Ok(out.finish()?)
    }
}
