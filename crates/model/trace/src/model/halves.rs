//! Halves of stacks: the frames of the kernel or of the user, each distinct list once, and keys that stand for them.
//!
//! Keys are bound to frames whenever their definition comes: *the definition of a key at time T is the first one
//! written at or after T*, because the kernel writes it when the cache slot is given up.

use super::image::is_kernel;
use etwhy_base::Bytes;
use foldhash::HashMap;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Most frames of one stack (kernel and user): the kernel records 192 at most.
const MAX_FRAMES: usize = 1024;
/// No half.
pub(crate) const NO_PART: u32 = u32::MAX;
/// Set in numbers of halves that are keys without a definition yet.
pub(crate) const KEYED: u32 = 1 << 31;

/// All distinct halves of the trace.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    /// Frames of all halves, one after the other.
    frames: Vec<u64>,
    /// Where each half starts in `frames`; one more for the end.
    starts: Vec<u64>,
    known: HashTable<u32>,
    hasher: foldhash::fast::FixedState,
    /// Keys in use without a definition: key to number in `bound`.
    open_keys: HashMap<u64, u32>,
    /// Halves of keys, once defined.
    bound: Vec<u32>,
    scratch: Vec<u64>,
}

impl Halves {
    /// Numbers of the kernel and the user half of frames in a record.
    pub(crate) fn split(&mut self, bytes: &[u8], width: usize) -> (u32, u32) {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        frames.extend(bytes.chunks_exact(width).take(MAX_FRAMES).filter_map(|b| b.ptr_at(0, width)));
        let split = frames.iter().position(|&f| !is_kernel(f, width)).unwrap_or(frames.len());
        let (kernel, user) = frames.split_at(split);
        let parts = (self.number(kernel), self.number(user));
        self.scratch = frames;
        parts
    }

    /// The number of these frames; equal frames have equal numbers.
    pub(crate) fn number(&mut self, frames: &[u64]) -> u32 {
        if frames.is_empty() {
            return NO_PART;
        }
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let hash = self.hasher.hash_one(frames);
        let Halves { frames: all, starts, known, hasher, .. } = self;
        let get = |part: u32| {
            let from = starts.get(part as usize).copied().unwrap_or(0) as usize;
            let to = starts.get(part as usize + 1).copied().unwrap_or(0) as usize;
            all.get(from..to).unwrap_or(&[])
        };
        if let Some(&part) = known.find(hash, |&part| get(part) == frames) {
            return part;
        }
        let part = (starts.len() - 1) as u32;
        if part >= KEYED - 1 {
            return NO_PART;
        }
        all.extend_from_slice(frames);
        starts.push(all.len() as u64);
        let get = |part: u32| {
            let from = starts.get(part as usize).copied().unwrap_or(0) as usize;
            let to = starts.get(part as usize + 1).copied().unwrap_or(0) as usize;
            all.get(from..to).unwrap_or(&[])
        };
        known.insert_unique(hash, part, |&part| hasher.hash_one(get(part)));
        part
    }

    /// The half that a key stands for now.
    pub(crate) fn key(&mut self, key: u64) -> u32 {
        let bound = &mut self.bound;
        let number = *self.open_keys.entry(key).or_insert_with(|| {
            bound.push(NO_PART);
            (bound.len() - 1) as u32
        });
        KEYED | number
    }

    /// A key's definition: whoever used it since its last definition meant these frames.
    pub(crate) fn define(&mut self, key: u64, bytes: &[u8], width: usize) {
        let Some(number) = self.open_keys.remove(&key) else { return };
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        frames.extend(bytes.chunks_exact(width).take(MAX_FRAMES).filter_map(|b| b.ptr_at(0, width)));
        let part = self.number(&frames);
        self.scratch = frames;
        if let Some(slot) = self.bound.get_mut(number as usize) {
            *slot = part;
        }
    }

    /// A half with its key exchanged for what the key was found to mean.
    pub(crate) fn defined(&self, part: u32) -> u32 {
        if part != NO_PART && part & KEYED != 0 {
            self.bound.get((part & !KEYED) as usize).copied().unwrap_or(NO_PART)
        } else {
            part
        }
    }

    /// Keys that were used and never defined.
    pub(crate) fn undefined(&self) -> u64 {
        self.bound.iter().filter(|&&b| b == NO_PART).count() as u64
    }

    /// Frames of a half, innermost first.
    pub(crate) fn frames_of(&self, part: u32) -> &[u64] {
        if part == NO_PART {
            return &[];
        }
        let from = self.starts.get(part as usize).copied().unwrap_or(0) as usize;
        let to = self.starts.get(part as usize + 1).copied().unwrap_or(0) as usize;
        self.frames.get(from..to).unwrap_or(&[])
    }
}
