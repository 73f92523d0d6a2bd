//! Places in code that events name by themselves: routines of DPCs and filters, system calls, start addresses.
//!
//! Rows keep the number of a place until the end of the pass, when images and symbols are known.

use foldhash::HashMap;

/// An address in an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Process, if the address may be one of user mode.
    pub upid: Option<u32>,
    /// Epoch of its address space, see [`super::image::Images::epoch`].
    pub epoch: u32,
    /// The address.
    pub address: u64,
}

/// All distinct places; the number is the index.
#[derive(Debug, Default)]
pub struct Places {
    all: Vec<Place>,
    known: HashMap<Place, u32>,
}

impl Places {
    /// The number of a place.
    #[inline]
    pub(crate) fn number(&mut self, place: Place) -> u32 {
        let all = &mut self.all;
        *self.known.entry(place).or_insert_with(|| {
            all.push(place);
            (all.len() - 1) as u32
        })
    }

    /// All, in the order of their numbers.
    pub fn all(&self) -> &[Place] {
        &self.all
    }
}
