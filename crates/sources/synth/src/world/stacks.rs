//! Stacks: from frame texts to addresses.

use super::{Images, Processes};
use crate::hash_text;
use crate::model::{Common, Frames};
use crate::value::parse_number;
use etwhy_base::rng::{Xoshiro, mix};
use std::collections::HashMap;

/// Where a frame points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    /// Module, function, offset in it (`None`: chosen).
    Function(usize, usize, Option<u32>),
    /// Module and RVA, without a name.
    Module(usize, u32),
    /// A bare address.
    Address(u64),
}

/// One stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stack {
    /// Outermost first.
    pub(crate) frames: Vec<Frame>,
    /// Addresses, innermost first.
    pub(crate) kernel: Vec<u64>,
    /// Addresses, innermost first.
    pub(crate) user: Vec<u64>,
    /// Start and length of the innermost function, when its instruction pointer may roam in it.
    pub(crate) leaf: Option<(u64, u32)>,
}

impl Stack {
    /// An instruction pointer in the innermost frame.
    pub(crate) fn instruction(&self, rng: &mut Xoshiro, roam: bool) -> u64 {
        match self.leaf {
            Some((start, size)) if roam => start + rng.below(u64::from(size)),
            _ => self.kernel.first().or(self.user.first()).copied().unwrap_or(0),
        }
    }
}

/// Stacks by weight, for one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackSet {
    weights: Vec<f64>,
    stacks: Vec<usize>,
    /// What each is owed, for picking in exact proportion.
    owed: Vec<f64>,
}

impl StackSet {
    /// Index of a stack in exact proportion to the weights: after any number of picks each was picked as often
    /// as its share says, give or take one.
    pub(crate) fn pick_exact(&mut self) -> Option<usize> {
        let total: f64 = self.weights.iter().sum();
        self.owed.resize(self.weights.len(), 0.0);
        self.owed.iter_mut().zip(&self.weights).for_each(|(owed, w)| *owed += w / total);
        let (at, _) = self.owed.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        if let Some(owed) = self.owed.get_mut(at) {
            *owed -= 1.0;
        }
        self.stacks.get(at).copied()
    }

    /// Index of a stack; `None` when there is none.
    pub(crate) fn pick(&self, rng: &mut Xoshiro) -> Option<usize> {
        match self.stacks.as_slice() {
            [] => None,
            [one] => Some(*one),
            _ => self.stacks.get(crate::value::pick(&self.weights, rng)).copied(),
        }
    }
}

/// All stacks of the scenario, each once.
#[derive(Default)]
pub(crate) struct Stacks {
    pub(crate) list: Vec<Stack>,
    index: HashMap<Vec<Frame>, usize>,
}

/// True for addresses of the kernel half.
pub(crate) fn is_kernel(address: u64, pointer_size: u8) -> bool {
    if pointer_size == 4 { address >= 0x8000_0000 } else { address >= 0xFFFF_0000_0000_0000 }
}

impl Stacks {
    pub(crate) fn set(
        &mut self,
        common: &Common,
        process: usize,
        images: &mut Images,
        processes: &mut Processes,
    ) -> Result<StackSet, String> {
        let mut set = StackSet::default();
        let single = common.stack.iter().map(|s| (None, s));
        for (weight, frames) in common.stacks.iter().map(|w| (w.weight, &w.frames)).chain(single) {
            let weight = weight.unwrap_or(1.0);
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(format!("weight = {weight}: a weight is a number from 0"));
            }
            set.stacks.push(self.intern(frames, process, images, processes)?);
            set.weights.push(weight);
        }
        Ok(set)
    }

    /// Index of a stack.
    pub(crate) fn intern(
        &mut self,
        frames: &Frames,
        process: usize,
        images: &mut Images,
        processes: &mut Processes,
    ) -> Result<usize, String> {
        if frames.0.len() > 190 {
            return Err(format!("{} frames; Windows records at most 192", frames.0.len()));
        }
        let frames = frames
            .0
            .iter()
            .map(|text| frame(text, process, images, processes))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(&at) = self.index.get(&frames) {
            return Ok(at);
        }
        let at = self.list.len();
        self.index.insert(frames.clone(), at);
        self.list.push(Stack { frames, ..Stack::default() });
        Ok(at)
    }

    /// Gives all frames their addresses.
    pub(crate) fn settle(&mut self, images: &Images) -> Result<(), String> {
        for stack in &mut self.list {
            for frame in &stack.frames {
                lies_inside(*frame, images)?;
            }
            (stack.kernel, stack.user, stack.leaf) = Default::default();
            let mut outer = 0;
            for (depth, frame) in stack.frames.iter().enumerate() {
                let (address, kernel, leaf) = place(*frame, outer, images);
                outer = mix(outer ^ address);
                if kernel {
                    stack.kernel.push(address)
                } else {
                    stack.user.push(address)
                }
                if depth + 1 == stack.frames.len() {
                    stack.leaf = leaf;
                }
            }
            stack.kernel.reverse();
            stack.user.reverse();
            // The innermost frame is where the processor was: in the kernel half if there is one.
            let inner_is_kernel = matches!(stack.frames.last(), Some(f) if place(*f, 0, images).1);
            if !inner_is_kernel && !stack.kernel.is_empty() {
                stack.leaf = None;
            }
        }
        Ok(())
    }
}

/// An offset behind a function may name another function, but not leave the image.
fn lies_inside(frame: Frame, images: &Images) -> Result<(), String> {
    let Frame::Function(module, function, Some(offset)) = frame else { return Ok(()) };
    let Some(m) = images.modules.get(module) else { return Ok(()) };
    let Some(f) = m.functions.get(function) else { return Ok(()) };
    if u64::from(f.rva) + u64::from(offset) < u64::from(m.size) {
        return Ok(());
    }
    Err(format!(
        "frame {}!{}+{offset:#x} lies behind its image, which has {:#x} bytes",
        m.name, f.name, m.size
    ))
}

/// Address, half, and the range of a function that is innermost. The same call site always has the same
/// return address: it depends on the frames around it.
fn place(frame: Frame, outer: u64, images: &Images) -> (u64, bool, Option<(u64, u32)>) {
    match frame {
        Frame::Address(address) => {
            (address, is_kernel(address, 8) || address >> 32 == 0 && address >= 0x8000_0000, None)
        }
        Frame::Module(module, rva) => {
            images.modules.get(module).map_or((0, false, None), |m| (m.base + u64::from(rva), m.kernel, None))
        }
        Frame::Function(module, function, offset) => {
            let Some(m) = images.modules.get(module) else { return (0, false, None) };
            let Some(f) = m.functions.get(function) else { return (m.base, m.kernel, None) };
            let start = m.base + u64::from(f.rva);
            let room = u64::from(f.size.saturating_sub(8)).max(1);
            let chosen = (5 + mix(outer ^ hash_text(&f.name)) % room).min(u64::from(f.size - 1));
            let leaf = offset.is_none().then_some((start, f.size));
            (start + offset.map_or(chosen, u64::from), m.kernel, leaf)
        }
    }
}

/// Reads `module!function`, `module!function+0x10`, `module+0x1234`, `0xfffff800...`, `jit!Name.Space.Method`.
fn frame(
    text: &str,
    process: usize,
    images: &mut Images,
    processes: &mut Processes,
) -> Result<Frame, String> {
    let text = text.trim();
    if text.starts_with("0x") {
        let digits = text.trim_start_matches("0x").replace(['_', '`'], "");
        return u64::from_str_radix(&digits, 16)
            .map(Frame::Address)
            .map_err(|_| format!("{text:?} is no address"));
    }
    let (path, offset) = match text.rsplit_once("+0x") {
        Some((path, offset)) => (path, Some(parse_number(&format!("0x{offset}"))? as u32)),
        None => (text, None),
    };
    let narrow = processes.list.get(process).is_some_and(|p| p.narrow);
    let (module, function) = match path.split_once('!') {
        Some((module, function)) => (module.trim(), Some(function.trim())),
        None if offset.is_some() || path.contains('.') => (path, None),
        None => {
            return Err(format!(
                "frame {text:?}: write module!function, module!function+0x10, module+0x1234, 0xaddress or jit!Method"
            ));
        }
    };
    let at = if matches!(module, "jit" | "JIT" | "clr-jit") {
        images.jit(process, narrow)
    } else {
        // `nt` is what debuggers call the kernel; a name without an extension is a DLL.
        let name = match module {
            "nt" => "ntoskrnl.exe".to_string(),
            name if name.contains('.') => name.to_string(),
            name => format!("{name}.dll"),
        };
        images.get(&name, narrow, None)
    };
    let Some(m) = images.modules.get_mut(at) else { return Ok(Frame::Address(0)) };
    let (kernel, jit) = (m.kernel, m.jit.is_some());
    let frame = match function {
        Some(function) => Frame::Function(at, m.function(function), offset),
        None => {
            let rva = offset.unwrap_or(0x1000);
            m.reaches(rva);
            Frame::Module(at, rva)
        }
    };
    let owner = if kernel { 1 } else { process };
    if let Some(owner) = processes.list.get_mut(owner)
        && !jit
        && !owner.images.iter().any(|i| i.0 == at)
    {
        // Named by a frame: it was loaded.
        owner.images.push((at, owner.start, owner.end));
    }
    Ok(frame)
}
