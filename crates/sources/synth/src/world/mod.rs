//! What a scenario's names stand for: images with addresses, processes, threads, stacks, files, keys.

mod images;
mod machine;
mod names;
mod objects;
mod processes;
mod stack_style;
mod stacks;
mod switch;

pub(crate) use images::{Images, Module};
pub(crate) use machine::{Factors, Facts, LossRange};
pub(crate) use names::Names;
pub(crate) use objects::{FAULT, FLUSH, Objects, READ, SLEEP, WRITE, Wait};
pub(crate) use processes::{Process, Processes, parse_sid};
pub(crate) use stack_style::Style;
pub(crate) use stacks::{Frame, Stack, StackSet, Stacks};
pub(crate) use switch::Switch;

use crate::error::{Result, SourceText};
use crate::model::{Common, Text};
use std::ops::Range;

/// Everything the engine asks for while it writes.
pub(crate) struct World {
    pub(crate) facts: Facts,
    pub(crate) images: Images,
    pub(crate) processes: Processes,
    pub(crate) stacks: Stacks,
    pub(crate) files: Names,
    pub(crate) keys: Names,
    pub(crate) objects: Objects,
    pub(crate) place: SourceText,
}

impl World {
    /// Builds everything but addresses: those come with [`World::settle`], when all frames are known.
    pub(crate) fn build(text: &Text, place: &SourceText, factors: Factors) -> Result<World> {
        let machine = text.machine.clone();
        let span = machine.as_ref().map(toml::Spanned::span);
        let machine = machine.map(toml::Spanned::into_inner).unwrap_or_default();
        let mut facts = Facts::new(&machine, factors).map_err(|e| place.error(span, e))?;
        let mut images = Images::new(facts.pointer_size);
        for image in &text.image {
            images.declare(image.get_ref()).map_err(|e| place.error(Some(image.span()), e))?;
        }
        let processes = Processes::build(text, &facts, &mut images, place)?;
        if machine.until_last_exit {
            let last = processes.list.iter().filter_map(|p| p.end).max();
            facts.duration = last.ok_or_else(|| {
                place.error(
                    text.machine.as_ref().map(toml::Spanned::span),
                    "until_last_exit needs a process with an end",
                )
            })? + 10_000_000;
        }
        let volume = facts.volumes.first().map_or("\\Device\\HarddiskVolume3\\", |v| v.0.as_str());
        let narrow = facts.pointer_size == 4;
        let files = Names::new(volume, if narrow { 0x8800_0000 } else { 0xFFFF_C008_0000_0000 }, 0x140);
        let keys = Names::new(
            "\\REGISTRY\\MACHINE\\",
            if narrow { 0x9800_0000 } else { 0xFFFF_E101_0000_0000 },
            0xA8,
        );
        let objects = Objects::new(text, place)?;
        Ok(World {
            facts,
            images,
            processes,
            stacks: Stacks::default(),
            files,
            keys,
            objects,
            place: place.clone(),
        })
    }

    /// Assigns addresses to all images and functions, then to all stacks.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.images.layout().map_err(|e| self.place.error(None, e))?;
        self.stacks.settle(&self.images).map_err(|e| self.place.error(None, e))?;
        Ok(())
    }

    /// Module and `module!function` of a frame; empty where there is none.
    pub(crate) fn frame_names(&self, frame: Option<&Frame>) -> (String, String) {
        let (module, function) = match frame {
            Some(Frame::Function(m, f, _)) => (self.images.modules.get(*m), Some(*f)),
            Some(Frame::Module(m, _)) => (self.images.modules.get(*m), None),
            _ => (None, None),
        };
        let name = module.map_or("", |m| m.name.as_str());
        let function = module.and_then(|m| m.functions.get(function?));
        (name.into(), function.map_or_else(String::new, |f| format!("{name}!{}", f.name)))
    }

    /// The stacks of a table for one process.
    pub(crate) fn stack_set(
        &mut self,
        common: &Common,
        process: usize,
        span: Range<usize>,
    ) -> Result<StackSet> {
        let (images, processes) = (&mut self.images, &mut self.processes);
        let set = self.stacks.set(common, process, images, processes);
        set.map_err(|e| self.place.error(Some(span), e))
    }
}
