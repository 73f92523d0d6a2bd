//! Every distinct name once, in one piece of memory.

use std::hash::BuildHasher;

use hashbrown::HashTable;

/// Number of a name in [`Names`].
pub type NameId = u32;

/// Finished names: text in one arena, ends in a table.
#[derive(Debug, Default)]
pub struct Names {
    text: String,
    ends: Vec<u32>,
}

impl Names {
    /// The name, or an empty one for an id that does not exist.
    pub fn get(&self, id: NameId) -> &str {
        let id = id as usize;
        let start = match id.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(u32::MAX),
            None => 0,
        };
        let end = self.ends.get(id).copied().unwrap_or(0);
        self.text.get(start as usize..end as usize).unwrap_or("")
    }

    /// All names in one.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where each name ends in the text.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }
}

/// Builds [`Names`].
#[derive(Debug, Default)]
pub struct Interner {
    names: Names,
    table: HashTable<NameId>,
    hasher: foldhash::fast::RandomState,
}

impl Interner {
    /// The id of `name`; `None` if 4 GiB of names are full.
    pub fn intern(&mut self, name: &str) -> Option<NameId> {
        let hash = self.hasher.hash_one(name);
        let (names, hasher) = (&self.names, &self.hasher);
        if let Some(id) = self.table.find(hash, |id| names.get(*id) == name) {
            return Some(*id);
        }
        let id = NameId::try_from(names.ends.len()).ok()?;
        let end = u32::try_from(names.text.len().checked_add(name.len())?).ok()?;
        self.table.insert_unique(hash, id, |id| hasher.hash_one(names.get(*id)));
        self.names.text.push_str(name);
        self.names.ends.push(end);
        Some(id)
    }

    /// The name of an id.
    pub fn get(&self, id: NameId) -> &str {
        self.names.get(id)
    }

    /// Gives the names away; the table for finding them is dropped.
    pub fn finish(mut self) -> Names {
        self.names.text.shrink_to_fit();
        self.names.ends.shrink_to_fit();
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_an_id() {
        let mut interner = Interner::default();
        let ids: Vec<_> = ["a", "", "bc", "a", "", "ä"].iter().map(|n| interner.intern(n).unwrap()).collect();
        assert_eq!(ids, [0, 1, 2, 0, 1, 3]);
        let names = interner.finish();
        assert_eq!([names.get(0), names.get(1), names.get(2), names.get(3)], ["a", "", "bc", "ä"]);
        assert_eq!(names.get(4), "");
        assert_eq!(names.get(u32::MAX), "");
    }
}
