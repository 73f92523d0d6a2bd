//! The living instance of each process or thread id.

use foldhash::HashMap;

/// Ids that are looked up again and again: nearly every record names one of the few that run.
const RECENT: usize = 256;
/// No instance.
const NONE: u32 = u32::MAX;

/// From an id to the number of its latest instance.
#[derive(Clone, Debug)]
pub(crate) struct Living {
    all: HashMap<u32, u32>,
    /// The last that were looked up, by the low bits of their ids, of which the lowest two are always 0.
    recent: Box<[(u32, u32); RECENT]>,
}

impl Default for Living {
    fn default() -> Living {
        Living { all: HashMap::default(), recent: Box::new([(0, NONE); RECENT]) }
    }
}

fn slot(id: u32) -> usize {
    (id >> 2) as usize % RECENT
}

impl Living {
    /// The instance, which is remembered.
    #[inline]
    pub(crate) fn find(&mut self, id: u32) -> Option<u32> {
        let slot = self.recent.get_mut(slot(id))?;
        if slot.0 == id && slot.1 != NONE {
            return Some(slot.1);
        }
        let found = self.all.get(&id).copied()?;
        *slot = (id, found);
        Some(found)
    }

    /// The instance.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<u32> {
        match self.recent.get(slot(id)) {
            Some(&(recent, number)) if recent == id && number != NONE => Some(number),
            _ => self.all.get(&id).copied(),
        }
    }

    /// From now on the id means this instance.
    pub(crate) fn set(&mut self, id: u32, number: u32) {
        self.all.insert(id, number);
        if let Some(slot) = self.recent.get_mut(slot(id)) {
            *slot = (id, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_instance_of_an_id_is_found_whatever_was_looked_up_before() {
        let mut living = Living::default();
        assert_eq!(living.find(0), None);
        // Two ids that share a slot, and one that comes again.
        for (number, id) in [4, 4 + 4 * RECENT as u32, 0, 4].into_iter().enumerate() {
            living.set(id, number as u32);
            assert_eq!((living.find(id), living.get(id)), (Some(number as u32), Some(number as u32)));
        }
        assert_eq!(living.find(4 + 4 * RECENT as u32), Some(1));
        assert_eq!((living.get(4), living.find(4), living.get(8)), (Some(3), Some(3), None));
    }
}
