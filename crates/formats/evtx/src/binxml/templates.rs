//! Templates that were compiled, known again by their content.

use super::cell::Cell;
use super::plan::Item;
use super::program::Program;
use super::shape::Shape;
use super::tokens::{self, Broken, Instance};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// More different templates than any log that was seen has; a log with more is read, more slowly.
const MOST_PROGRAMS: usize = 20_000;
/// Shapes of a template that are remembered; a log has one or two.
const MOST_SHAPES: usize = 8;
/// Places of definitions in a chunk that are told apart: definitions have at least 24 bytes.
const PLACES: usize = crate::abi::chunk::SIZE / 16;

/// A template and the shapes of its instances.
struct Entry {
    program: Arc<Program>,
    shapes: Vec<Shape>,
    /// The shape that was seen last.
    last: usize,
}

/// A definition in the present chunk.
#[derive(Clone, Copy, Default)]
struct DefinitionAt {
    /// The chunk.
    chunk: u64,
    at: u32,
    entry: u32,
}

/// Compiled templates of all chunks, and which of them stand where in the present one.
#[derive(Default)]
pub struct Templates {
    entries: Vec<Entry>,
    /// Number of the first of `entries`: numbers are not given twice.
    first: u32,
    /// Numbers by the first four bytes of the template's GUID.
    by_id: HashMap<u32, Vec<u32>>,
    /// By log and the same bytes, the first that the log had: a damaged definition is taken for that, whatever other logs have.
    of_log: HashMap<(u32, u32), u32>,
    /// The present log.
    log: u32,
    /// Names of fields, each once: equal names of different programs are the same text, and are compared as such.
    names: HashSet<Arc<str>>,
    /// The same by their UTF-16 bytes, of records without a template.
    inline_names: HashMap<Box<[u8]>, Arc<str>, RandomState>,
    /// Which definition of the present chunk is which program.
    here: Vec<DefinitionAt>,
    /// Number of the present chunk.
    chunk: u64,
    /// Identities that were given.
    identities: Identities,
}

/// The last identity that was given. Those of two decoders differ, so that what is remembered by them stays true for both.
#[derive(Debug)]
struct Identities(u64);

/// Identities that one decoder may give.
const PER_DECODER: u64 = 1 << 40;

impl Default for Identities {
    fn default() -> Identities {
        static DECODERS: AtomicU64 = AtomicU64::new(0);
        Identities(DECODERS.fetch_add(PER_DECODER, Ordering::Relaxed))
    }
}

impl Templates {
    /// The name of a field that stands in UTF-16 in a chunk, once for all.
    pub fn name(&mut self, utf16: &[u8]) -> Arc<str> {
        if let Some(name) = self.inline_names.get(utf16) {
            return Arc::clone(name);
        }
        let mut text = String::new();
        super::text::push_utf16(&mut text, utf16);
        let text: Arc<str> = match self.names.get(text.as_str()) {
            Some(known) => Arc::clone(known),
            None => text.into(),
        };
        if self.inline_names.len() < MOST_PROGRAMS {
            self.names.insert(Arc::clone(&text));
            self.inline_names.insert(utf16.into(), Arc::clone(&text));
        }
        text
    }

    /// Another log begins, or goes on.
    pub fn next_log(&mut self, number: u32) {
        self.log = number;
    }

    /// Forgets what stands where: another chunk begins.
    pub fn next_chunk(&mut self) {
        self.chunk += 1;
        self.here.resize(PLACES, DefinitionAt::default());
        if self.entries.len() > MOST_PROGRAMS {
            self.first = self.first.wrapping_add(self.entries.len() as u32);
            self.entries.clear();
            self.names.clear();
            self.inline_names.clear();
            self.by_id.clear();
            self.of_log.clear();
        }
    }

    /// Number of the present chunk.
    pub const fn chunk(&self) -> u64 {
        self.chunk
    }

    #[inline]
    fn entry(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number.wrapping_sub(self.first) as usize)
    }

    /// A program by its number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Arc<Program>> {
        self.entry(number).map(|entry| &entry.program)
    }

    /// A program and one of its shapes.
    #[inline]
    pub fn shape(&self, number: u32, shape: u32) -> Option<(&Program, &Shape)> {
        let entry = self.entry(number)?;
        Some((&entry.program, entry.shapes.get(shape as usize)?))
    }

    /// A number for provider, GUID, channel and computer of an instance.
    #[inline]
    pub fn identity(
        &mut self,
        number: u32,
        shape: u32,
        chunk: &[u8],
        instance: &Instance<'_>,
    ) -> Option<u64> {
        let entry = self.entries.get_mut(number.wrapping_sub(self.first) as usize)?;
        Some(entry.shapes.get_mut(shape as usize)?.identity(chunk, instance, &mut self.identities.0))
    }

    /// Number of the shape of an instance.
    #[inline]
    pub fn shape_of(&mut self, number: u32, instance: &Instance<'_>) -> u32 {
        let at = number.wrapping_sub(self.first) as usize;
        let Some(entry) = self.entries.get_mut(at) else { return 0 };
        if let Some(shape) = entry.shapes.get(entry.last)
            && shape.fits(&entry.program.plan, instance)
        {
            return entry.last as u32;
        }
        entry.other_shape(instance)
    }

    /// The program of the definition at this place, and whether it is only the one of the same id from another chunk.
    #[inline]
    pub fn find(&mut self, chunk: &[u8], id: u32, at: usize) -> (Option<u32>, bool) {
        if let Some(place) = self.here.get(at / 16 % PLACES)
            && place.chunk == self.chunk
            && place.at as usize == at
        {
            return (Some(place.entry), false);
        }
        self.look(chunk, id, at)
    }

    fn remember(&mut self, at: usize, entry: u32) {
        if let (Some(place), Ok(at)) = (self.here.get_mut(at / 16 % PLACES), u32::try_from(at)) {
            *place = DefinitionAt { chunk: self.chunk, at, entry };
        }
    }

    #[cold]
    fn look(&mut self, chunk: &[u8], id: u32, at: usize) -> (Option<u32>, bool) {
        let known = self.by_id.get(&id).map(Vec::as_slice).unwrap_or_default();
        let found = tokens::definition(chunk, at).filter(|(guid, ..)| {
            guid.first_chunk::<4>().is_some_and(|first| u32::from_le_bytes(*first) == id)
        });
        let Some((guid, from, to)) = found else {
            // The definition is damaged; another chunk of the log may have had it.
            return (self.of_log.get(&(self.log, id)).copied(), true);
        };
        let same =
            |number: &&u32| self.get(**number).is_some_and(|p| p.guid == guid && p.is(chunk, from, to));
        if let Some(number) = known.iter().find(same).copied() {
            self.of_log.entry((self.log, id)).or_insert(number);
            self.remember(at, number);
            return (Some(number), false);
        }
        match Program::compile(chunk, guid, from, to) {
            Ok(mut program) => {
                for item in &mut program.plan.items {
                    if let Item::Field(Some(name), ..) = item {
                        match self.names.get(name) {
                            Some(known) => *name = Arc::clone(known),
                            None => {
                                self.names.insert(Arc::clone(name));
                            }
                        }
                    }
                }
                program.plan.cells = program.plan.simple_cells();
                program.plan.straight = program.plan.cells.as_deref().is_some_and(Cell::are_straight);
                let number = self.first.wrapping_add(self.entries.len() as u32);
                self.entries.push(Entry { program: Arc::new(program), shapes: Vec::new(), last: 0 });
                self.by_id.entry(id).or_default().push(number);
                self.of_log.entry((self.log, id)).or_insert(number);
                self.remember(at, number);
                (Some(number), false)
            }
            Err(Broken::Short(_) | Broken::Token(..) | Broken::Deep | Broken::Large) => {
                (self.of_log.get(&(self.log, id)).copied(), true)
            }
        }
    }
}

impl Entry {
    #[cold]
    fn other_shape(&mut self, instance: &Instance<'_>) -> u32 {
        let plan = &self.program.plan;
        self.last = match self.shapes.iter().position(|shape| shape.fits(plan, instance)) {
            Some(at) => at,
            None if self.shapes.len() < MOST_SHAPES => {
                self.shapes.push(Shape::from_instance(plan, instance));
                self.shapes.len() - 1
            }
            None => {
                let at = (self.last + 1) % MOST_SHAPES;
                if let Some(shape) = self.shapes.get_mut(at) {
                    *shape = Shape::from_instance(plan, instance);
                }
                at
            }
        };
        self.last as u32
    }
}
