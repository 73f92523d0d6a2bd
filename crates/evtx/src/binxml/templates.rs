//! Templates that were compiled, known again by their content.

use super::plan::Item;
use super::program::Program;
use super::tokens::{self, Broken};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// More different templates than any log that was seen has; a log with more is read, more slowly.
const MOST_PROGRAMS: usize = 20_000;

/// Compiled templates of all chunks, and which of them stand where in the present one.
#[derive(Default)]
pub struct Templates {
    programs: Vec<Arc<Program>>,
    /// Programs by the first four bytes of their GUID.
    by_id: HashMap<u32, Vec<u32>>,
    /// Names of fields, each once: equal names of different programs are the same text, and are compared as such.
    names: HashSet<Arc<str>>,
    /// The same by their UTF-16 bytes, of records without a template.
    inline_names: HashMap<Box<[u8]>, Arc<str>, RandomState>,
    /// Place of a definition in the present chunk, and its program.
    here: Vec<(usize, Option<u32>)>,
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

    /// Forgets what stands where: another chunk begins.
    pub fn next_chunk(&mut self) {
        self.here.clear();
        if self.programs.len() > MOST_PROGRAMS {
            self.programs.clear();
            self.names.clear();
            self.inline_names.clear();
            self.by_id.clear();
        }
    }

    /// A program by its number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Arc<Program>> {
        self.programs.get(number as usize)
    }

    /// The program of the definition at this place, and whether it is only the one of the same id from another chunk.
    #[inline]
    pub fn find(&mut self, chunk: &[u8], id: u32, at: usize) -> (Option<u32>, bool) {
        if let Some((_, program)) = self.here.iter().find(|(place, _)| *place == at)
            && program.is_some()
        {
            return (*program, false);
        }
        self.look(chunk, id, at)
    }

    #[cold]
    fn look(&mut self, chunk: &[u8], id: u32, at: usize) -> (Option<u32>, bool) {
        let known = self.by_id.get(&id).map(Vec::as_slice).unwrap_or_default();
        let found = tokens::definition(chunk, at).filter(|(guid, ..)| {
            guid.first_chunk::<4>().is_some_and(|first| u32::from_le_bytes(*first) == id)
        });
        let Some((guid, from, to)) = found else {
            // The definition is damaged; another chunk may have had it.
            return (known.first().copied(), true);
        };
        let same = |number: &&u32| {
            self.programs.get(**number as usize).is_some_and(|p| p.guid == guid && p.is(chunk, from, to))
        };
        if let Some(number) = known.iter().find(same).copied() {
            self.here.push((at, Some(number)));
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
                let number = self.programs.len() as u32;
                self.programs.push(Arc::new(program));
                self.by_id.entry(id).or_default().push(number);
                self.here.push((at, Some(number)));
                (Some(number), false)
            }
            Err(Broken::Short(_) | Broken::Token(..) | Broken::Deep | Broken::Large) => {
                (known.first().copied(), true)
            }
        }
    }
}
