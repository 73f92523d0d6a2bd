//! Arrays of numbers: the bytes of all elements, read one by one when somebody asks.

use crate::scalar::number;
use crate::schema::InType;
use crate::value::{Numbers, Value};

impl<'a> Numbers<'a> {
    /// `bytes` holds whole elements of `width` bytes; `width` must be the type's own (1 or 4 for
    /// [`InType::Boolean`]) and is the pointer size for pointers.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], in_type: InType, out_type: u16, width: u8) -> Numbers<'a> {
        Numbers { bytes, out_type, in_type, width }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() / usize::from(self.width.max(1))
    }

    /// True when there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One element; `None` behind the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        let at = index.checked_mul(usize::from(self.width))?;
        self.element(self.bytes.get(at..)?)
    }

    #[inline]
    fn element(&self, bytes: &'a [u8]) -> Option<Value<'a>> {
        let width = usize::from(self.width);
        number(self.in_type, self.out_type, bytes, width, self.width == 1)
    }

    /// All elements.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let numbers = *self;
        numbers.bytes.chunks_exact(usize::from(self.width.max(1))).filter_map(move |b| numbers.element(b))
    }

    /// The elements as they stand in the payload, and the width of one.
    #[inline]
    pub fn raw(&self) -> (&'a [u8], usize) {
        (self.bytes, usize::from(self.width))
    }
}

impl<'a> Value<'a> {
    /// A copy of the elements of an array; `None` for everything else.
    pub fn elements(&self) -> Option<Vec<Value<'a>>> {
        match self {
            Value::Numbers(numbers) => Some(numbers.iter().collect()),
            Value::Array(items) => Some(items.clone()),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Numbers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_the_meaning_of_their_types() {
        let bytes = [1, 0, 2, 0, 3, 0, 4, 0];
        let ports = Numbers::new(&bytes, InType::UInt16, crate::scalar::out::PORT, 2);
        assert_eq!(ports.iter().collect::<Vec<_>>(), [0x100, 0x200, 0x300, 0x400].map(Value::Port));
        assert_eq!((ports.len(), ports.get(3), ports.get(4)), (4, Some(Value::Port(0x400)), None));
        let pointers = Numbers::new(&bytes, InType::Pointer, 0, 4);
        assert_eq!(pointers.iter().collect::<Vec<_>>(), [0x2_0001, 0x4_0003].map(Value::Pointer));
        let flags = Numbers::new(&bytes[..2], InType::Boolean, 0, 1);
        assert_eq!(format!("{flags:?}"), "[Bool(true), Bool(false)]");
    }
}
