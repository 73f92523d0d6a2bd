//! The text pool of one analysis: each distinct text once, known by a small number.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// An interned text: its number in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Sym(pub u32);

impl Sym {
    /// The empty text, which stands first in every pool.
    pub const EMPTY: Sym = Sym(0);

    /// Stands for a text that is known at the end of the pass: [`TableBuilder::remap_text`](crate::TableBuilder::remap_text)
    /// must exchange it before the table is finished.
    pub const fn provisional(number: u32) -> Sym {
        Sym(number)
    }
}

/// Arrow's `Utf8` addresses its bytes with `i32`, and so the pool ends at 2 GiB, less a little room for
/// the text that says so.
const POOL_LIMIT: usize = i32::MAX as usize - 4096;

/// Stands for every text that no longer fitted into the pool.
pub(crate) const POOL_FULL: &str = "(text pool full)";

/// The growing pool.
///
/// Texts lie one after the other in one allocation, which becomes the Arrow array without a copy. The
/// hash is seeded at random, since the texts come from a trace that somebody else wrote; numbers follow
/// the order of first use and do not depend on the seed.
#[derive(Clone, Debug)]
pub struct Strings {
    text: String,
    /// Where each text begins; one more entry than texts.
    offsets: Vec<i32>,
    index: HashTable<u32>,
    hasher: RandomState,
    limit: usize,
    refused: u64,
    /// Texts that become others.
    renamed: HashMap<String, String>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings::new()
    }
}

impl Strings {
    /// A pool that holds the empty text only.
    pub fn new() -> Strings {
        Strings::with_limit(POOL_LIMIT)
    }

    pub(crate) fn with_limit(limit: usize) -> Strings {
        let mut pool = Strings {
            text: String::new(),
            offsets: vec![0],
            index: HashTable::new(),
            hasher: RandomState::default(),
            limit,
            refused: 0,
            renamed: HashMap::new(),
        };
        pool.intern("");
        pool
    }

    /// The number of `text`, which is added if it is new.
    ///
    /// Once 2 GiB of text are held, new texts all become `(text pool full)`; see [`Strings::refused`].
    pub fn intern(&mut self, text: &str) -> Sym {
        if !self.renamed.is_empty()
            && let Some(other) = self.renamed.get(text)
        {
            let other = other.clone();
            return self.add(&other);
        }
        self.add(text)
    }

    /// As [`Strings::intern`], unless the text is empty.
    pub fn intern_non_empty(&mut self, text: &str) -> Option<Sym> {
        if text.is_empty() { None } else { Some(self.intern(text)) }
    }

    /// From now on texts that are a key become its value.
    pub fn rename(&mut self, renamed: HashMap<String, String>) {
        self.renamed = renamed;
    }

    fn add(&mut self, text: &str) -> Sym {
        let hash = self.hasher.hash_one(text);
        if let Some(found) = self.index.find(hash, |&at| slice(&self.text, &self.offsets, at) == text) {
            return Sym(*found);
        }
        if self.text.len().saturating_add(text.len()) > self.limit && text != POOL_FULL {
            self.refused = self.refused.saturating_add(1);
            return self.add(POOL_FULL);
        }
        // The limit on bytes bounds the number of texts too, as only one of them is empty.
        let at = u32::try_from(self.offsets.len().saturating_sub(1)).unwrap_or(0);
        self.text.push_str(text);
        self.offsets.push(i32::try_from(self.text.len()).unwrap_or(i32::MAX));
        let (all, offsets, hasher) = (&self.text, &self.offsets, &self.hasher);
        self.index.insert_unique(hash, at, |&at| hasher.hash_one(slice(all, offsets, at)));
        Sym(at)
    }

    /// The text with this number; empty for a number of another pool that is not here.
    pub fn get(&self, sym: Sym) -> &str {
        slice(&self.text, &self.offsets, sym.0)
    }

    /// Number of distinct texts, the empty one included.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// True if nothing but the empty text is here.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.offsets.capacity() * 4 + self.index.allocation_size()
    }

    /// How often a text did not fit; for the ledger.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Ends the growth: the values that all tables of the analysis share.
    ///
    /// # Errors
    /// None that a caller could cause; Arrow checks the layout.
    pub fn freeze(self) -> Result<Texts, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let values = StringArray::try_new(offsets, Buffer::from_vec(self.text.into_bytes()), None)?;
        Ok(Texts(Arc::new(Frozen { values: Arc::new(values), index: self.index, hasher: self.hasher })))
    }
}

fn slice<'a>(text: &'a str, offsets: &[i32], at: u32) -> &'a str {
    let at = at as usize;
    let range = offsets.get(at).zip(offsets.get(at + 1));
    range.and_then(|(&from, &to)| text.get(from as usize..to as usize)).unwrap_or("")
}

#[derive(Debug)]
struct Frozen {
    values: Arc<StringArray>,
    index: HashTable<u32>,
    hasher: RandomState,
}

/// The finished pool, shared by reference: cloning costs nothing.
#[derive(Debug, Clone)]
pub struct Texts(Arc<Frozen>);

impl Texts {
    /// The texts as the values of an Arrow dictionary; the position is the [`Sym`].
    pub fn array(&self) -> ArrayRef {
        Arc::clone(&self.0.values) as ArrayRef
    }

    /// The text with this number; empty for a number that is not here.
    pub fn get(&self, sym: Sym) -> &str {
        let at = sym.0 as usize;
        if at < self.len() { self.0.values.value(at) } else { "" }
    }

    /// The number of `text`, if it occurs.
    pub fn find(&self, text: &str) -> Option<Sym> {
        let hash = self.0.hasher.hash_one(text);
        self.0.index.find(hash, |&at| self.get(Sym(at)) == text).map(|&at| Sym(at))
    }

    /// The number that `text` was given when it was interned; that of `(text pool full)` if there was no room, and of the
    /// empty text if it was never.
    pub fn interned(&self, text: &str) -> Sym {
        self.find(text).or_else(|| self.find(POOL_FULL)).unwrap_or(Sym::EMPTY)
    }

    /// True if both are the same pool, so that numbers mean the same.
    pub fn is_same(&self, other: &Texts) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Number of distinct texts, the empty one included.
    pub fn len(&self) -> usize {
        self.0.values.len()
    }

    /// True if nothing but the empty text is here.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_equal_numbers() {
        let mut pool = Strings::new();
        assert_eq!(pool.intern(""), Sym::EMPTY);
        let many: Vec<Sym> = (0..5000).map(|i| pool.intern(&format!("text {i}"))).collect();
        for (i, sym) in many.iter().enumerate() {
            assert_eq!(pool.get(*sym), format!("text {i}"));
            assert_eq!(pool.intern(&format!("text {i}")), *sym);
        }
        assert_eq!(pool.len(), 5001);
        assert_eq!(pool.get(Sym(99_999)), "");
        let texts = pool.freeze().unwrap();
        assert_eq!(texts.find("text 4999"), many.last().copied());
        assert_eq!(texts.find("text 5000"), None);
        assert_eq!(texts.get(Sym(99_999)), "");
    }

    #[test]
    fn a_full_pool_says_so() {
        let mut pool = Strings::with_limit(10);
        let short = pool.intern("12345");
        let over = pool.intern("1234567");
        assert_eq!(pool.get(over), POOL_FULL);
        assert_eq!(pool.intern("another that is too long"), over);
        assert_eq!(pool.intern("12345"), short);
        assert_eq!(pool.refused(), 2);
    }
}
