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
    /// For each whether only large tables, which are made on demand, have it.
    large_only: Vec<bool>,
}

impl Places {
    /// The number of a place.
    #[inline]
    pub(crate) fn number(&mut self, place: Place, for_large_table: bool) -> u32 {
        let (all, large_only) = (&mut self.all, &mut self.large_only);
        let number = *self.known.entry(place).or_insert_with(|| {
            all.push(place);
            large_only.push(true);
            (all.len() - 1) as u32
        });
        if !for_large_table && let Some(large) = large_only.get_mut(number as usize) {
            *large = false;
        }
        number
    }

    /// True if only large tables have the place.
    pub fn is_large_only(&self, number: usize) -> bool {
        self.large_only.get(number).copied().unwrap_or(false)
    }

    /// All, in the order of their numbers.
    pub fn all(&self) -> &[Place] {
        &self.all
    }
}
