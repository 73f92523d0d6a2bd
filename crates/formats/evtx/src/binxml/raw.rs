//! Values of an instance where they are in the chunk, not read yet.

use super::tokens::Instance;
use super::value::Value;
use crate::abi::value as ty;

/// A value of an instance: where it stands in the chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    at: u32,
    size: u16,
    kind: u8,
}

impl Raw {
    /// A value of this type at this place of the chunk, which has 64 KiB.
    #[inline]
    pub(super) const fn new(at: usize, size: u16, kind: u8) -> Raw {
        Raw { at: at as u32, size, kind }
    }

    /// Type, size, and what stands in the chunk from here on.
    #[inline]
    pub(super) fn tail<'c>(&self, chunk: &'c [u8]) -> (u8, usize, &'c [u8]) {
        (self.kind, usize::from(self.size), chunk.get(self.at as usize..).unwrap_or(&[]))
    }

    #[inline(always)]
    pub(super) fn value<'c>(&self, chunk: &'c [u8]) -> Value<'c> {
        Value::parse(self.kind, self.bytes(chunk))
    }

    #[inline]
    pub(super) fn bytes<'c>(&self, chunk: &'c [u8]) -> &'c [u8] {
        let at = self.at as usize;
        chunk.get(at..at + usize::from(self.size)).unwrap_or(&[])
    }

    #[inline]
    pub(super) const fn is_array(&self) -> bool {
        self.kind & ty::ARRAY != 0
    }

    #[inline]
    pub(super) const fn is_null(&self) -> bool {
        self.kind == ty::NULL
    }

    /// True for what an optional substitution leaves out.
    #[inline]
    pub(super) fn is_empty(&self, chunk: &[u8]) -> bool {
        // Others always have a text.
        let may_be = matches!(self.kind, ty::STRING | ty::ANSI_STRING | ty::BINARY | ty::BIN_XML);
        self.is_null() || (may_be || self.is_array()) && self.value(chunk).is_empty()
    }

    /// Bytes of the value.
    #[inline]
    pub(super) fn size(&self) -> usize {
        usize::from(self.size)
    }

    /// Binary XML: where it stands.
    #[inline]
    pub(super) fn document(&self) -> Option<(usize, usize)> {
        let at = self.at as usize;
        (self.kind == ty::BIN_XML && self.size > 0).then(|| (at, at + usize::from(self.size)))
    }
}

/// Appends where the values of an instance are.
#[inline]
pub(super) fn push_values(values: &mut Vec<Raw>, instance: &Instance<'_>) -> usize {
    let mut at = instance.values;
    values.extend(instance.descriptors.iter().map(|[low, high, kind, _]| {
        let size = u16::from_le_bytes([*low, *high]);
        let raw = Raw::new(at, size, *kind);
        at += usize::from(size);
        raw
    }));
    instance.descriptors.len()
}
