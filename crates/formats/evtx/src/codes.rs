//! Short texts that come again and again, as numbers.

use crate::binxml::Value;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Numbers for texts, in order of first use. Texts are compared as they stand in the log; those of different spelling
/// (UTF-16 in one record, a literal in another) that say the same get the same number.
#[derive(Default)]
pub struct Codes {
    texts: Vec<String>,
    /// Bytes as they stand, and the number.
    seen: Vec<(Box<[u8]>, u32)>,
    index: HashTable<u32>,
    /// Numbers by their texts.
    by_text: HashTable<u32>,
    hasher: RandomState,
    /// Those that were asked for last: several fields take turns.
    recent: [u32; 4],
    turn: usize,
    /// The number of no value.
    none: Option<u32>,
}

/// Texts that are told apart; what stands for further ones.
const MOST: usize = 1 << 20;
const OTHERS: &str = "(further codes)";

impl Codes {
    /// The number of a value's text.
    #[inline]
    pub fn code_of(&mut self, value: &Value<'_>) -> u32 {
        if let (Value::Null, Some(none)) = (value, self.none) {
            return none;
        }
        let mut owned = String::new();
        let bytes: &[u8] = match value {
            Value::Utf16(bytes) => bytes,
            Value::Utf8(text) => text.as_bytes(),
            Value::Guid(guid) => &guid.0,
            Value::Sid(bytes) => bytes,
            other => {
                other.push_text(&mut owned);
                owned.as_bytes()
            }
        };
        // The last one first.
        for n in 0..self.recent.len() {
            let recent = self.recent[(self.turn + n) % 4];
            if let Some((text, number)) = self.seen.get(recent as usize)
                && **text == *bytes
            {
                return *number;
            }
        }
        let hash = self.hasher.hash_one(bytes);
        let found = self.index.find(hash, |n| self.seen.get(*n as usize).is_some_and(|(b, _)| **b == *bytes));
        if let Some(n) = found {
            let n = *n;
            self.remember(n);
            return self.seen.get(n as usize).map_or(0, |(_, number)| *number);
        }
        self.add(value, bytes, hash)
    }

    fn remember(&mut self, n: u32) {
        self.turn = (self.turn + 1) % self.recent.len();
        if let Some(place) = self.recent.get_mut(self.turn) {
            *place = n;
        }
    }

    #[cold]
    fn add(&mut self, value: &Value<'_>, bytes: &[u8], hash: u64) -> u32 {
        let mut text = String::new();
        value.push_text(&mut text);
        if self.seen.len() >= MOST {
            let known = self.find(&text);
            return known.unwrap_or_else(|| self.number(OTHERS));
        }
        let number = self.number(&text);
        let at = self.seen.len();
        self.seen.push((bytes.into(), number));
        let seen = &self.seen;
        let hasher = &self.hasher;
        let rehash = |n: &u32| seen.get(*n as usize).map_or(0, |(b, _)| hasher.hash_one(&**b));
        self.index.insert_unique(hash, at as u32, rehash);
        self.remember(at as u32);
        if matches!(value, Value::Null) {
            self.none = Some(number);
        }
        number
    }

    /// The number of a text.
    fn number(&mut self, text: &str) -> u32 {
        if let Some(known) = self.find(text) {
            return known;
        }
        let (texts, hasher) = (&self.texts, &self.hasher);
        let number = texts.len() as u32;
        let rehash = |n: &u32| hasher.hash_one(texts.get(*n as usize).map_or("", String::as_str));
        self.by_text.insert_unique(hasher.hash_one(text), number, rehash);
        self.texts.push(text.to_owned());
        number
    }

    fn find(&self, text: &str) -> Option<u32> {
        self.by_text.find(self.hasher.hash_one(text), |n| self.text(*n) == text).copied()
    }

    /// A text by its number.
    pub fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_beyond_what_is_told_apart_are_not_taken_for_the_first() {
        let mut codes = Codes::default();
        let first = codes.code_of(&Value::Utf8("first"));
        for n in 0..MOST {
            codes.code_of(&Value::UInt(n as u64));
        }
        let beyond = codes.code_of(&Value::Utf8("beyond"));
        assert_eq!(codes.text(beyond), OTHERS);
        assert_eq!((codes.code_of(&Value::Utf8("first")), codes.text(first)), (first, "first"));
        // The same text in another spelling.
        assert_eq!(codes.code_of(&Value::Utf16(b"f\0i\0r\0s\0t\0")), first);
    }
}
