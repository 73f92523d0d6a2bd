//! Direct access to fields whose offset does not depend on the data.
//!
//! A tracker resolves its fields by name once for each (layout, pointer size) and then reads them from
//! millions of payloads at the cost of a bounds check.

use super::measure::{fixed_width, unsigned};
use crate::schema::{Count, EventSchema, Field, InType, Length};
use etwhy_base::utf16;
use std::sync::Arc;

/// Where a number stands in the payloads of one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    offset: u32,
    width: u8,
}

impl Slot {
    /// The value, zero-extended; `None` if the payload is too short.
    #[inline]
    pub fn u64(&self, payload: &[u8]) -> Option<u64> {
        unsigned(payload, self.offset as usize, usize::from(self.width))
    }

    /// The value as u32; what does not fit is cut off.
    #[inline]
    pub fn u32(&self, payload: &[u8]) -> Option<u32> {
        self.u64(payload).map(|v| v as u32)
    }

    /// The value, sign-extended from its width.
    #[inline]
    pub fn i64(&self, payload: &[u8]) -> Option<i64> {
        let value = self.u64(payload)?;
        let shift = 64u32.saturating_sub(8 * u32::from(self.width));
        Some(((value << shift) as i64) >> shift)
    }

    /// Byte offset in the payload.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }

    /// Width in bytes: 1, 2, 4 or 8.
    pub fn width(&self) -> usize {
        usize::from(self.width)
    }
}

/// Where a field of any kind starts in the payloads of one layout: a string, a GUID, stack frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    offset: u32,
    /// Bytes, when they do not depend on the data.
    len: Option<u32>,
    pointer_size: u8,
}

impl Tail {
    /// The field's bytes; for one of variable length all that follow. `None` if the payload is too short.
    #[inline]
    pub fn bytes<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        let rest = payload.get(self.offset as usize..)?;
        match self.len {
            Some(len) => rest.get(..len as usize),
            None => Some(rest),
        }
    }

    /// The UTF-16 text up to the nul; unpaired surrogates become replacement characters.
    pub fn text(&self, payload: &[u8]) -> Option<String> {
        Some(utf16::text(utf16::until_nul(self.bytes(payload)?)))
    }

    /// 8-bit characters up to the nul, or to the end without one.
    pub fn ansi<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        self.bytes(payload)?.split(|b| *b == 0).next()
    }

    /// Pointers to the end of the payload: stack frames.
    #[inline]
    pub fn pointers<'a>(&self, payload: &'a [u8]) -> impl ExactSizeIterator<Item = u64> + 'a + use<'a> {
        let width = usize::from(self.pointer_size).max(1);
        let frames = self.bytes(payload).unwrap_or(&[]).chunks_exact(width);
        frames.map(move |c| unsigned(c, 0, width).unwrap_or(0))
    }
}

/// The fields of a layout that stand at a fixed offset, for one pointer size.
#[derive(Clone, Debug)]
pub struct Slots {
    fields: Vec<(Arc<str>, InType, Tail, bool)>,
}

impl Slots {
    /// Computes the offsets. `pointer_size` is that of the records: 4 or 8.
    pub fn for_schema(schema: &EventSchema, pointer_size: usize) -> Slots {
        let mut fields = Vec::new();
        let mut at = Some(0u32);
        for field in &schema.fields {
            let Some(offset) = at else { break };
            let len = fixed_len(field, pointer_size);
            let tail = Tail { offset, len, pointer_size: if pointer_size == 4 { 4 } else { 8 } };
            fields.push((field.name.clone(), field.in_type, tail, field.count == Count::One));
            at = len.and_then(|len| offset.checked_add(len));
        }
        Slots { fields }
    }

    /// A single number (also pointer, address, port as it stands) of that name, if its offset is fixed.
    pub fn slot(&self, name: &str) -> Option<Slot> {
        let (_, in_type, tail, single) = self.fields.iter().find(|(n, ..)| n.as_ref() == name)?;
        let width = fixed_width(*in_type, usize::from(tail.pointer_size))?;
        let width = u8::try_from(width).ok().filter(|w| *single && matches!(w, 1 | 2 | 4 | 8))?;
        Some(Slot { offset: tail.offset, width })
    }

    /// A field of any kind of that name, if its offset is fixed.
    pub fn tail(&self, name: &str) -> Option<Tail> {
        self.fields.iter().find(|(n, ..)| n.as_ref() == name).map(|(_, _, tail, _)| *tail)
    }
}

/// Bytes of a field when they do not depend on the data.
fn fixed_len(field: &Field, pointer_size: usize) -> Option<u32> {
    let n = match field.count {
        Count::One => 1,
        Count::Fixed(n) => n,
        _ => return None,
    };
    let one = match (field.in_type, field.length) {
        (InType::Struct, _) => {
            let mut members = field.members.iter().map(|m| fixed_len(m, pointer_size));
            members.try_fold(0u32, |sum, len| sum.checked_add(len?))?
        }
        (InType::UnicodeString, Length::Fixed(n)) => n.checked_mul(2)?,
        (InType::AnsiString | InType::Binary, Length::Fixed(n)) => n,
        (kind, Length::Natural) => u32::try_from(fixed_width(kind, pointer_size)?).ok()?,
        _ => return None,
    };
    one.checked_mul(n)
}

#[cfg(test)]
mod tests {
    use super::super::KernelLayouts;
    use super::*;

    #[test]
    fn numbers_are_read_at_their_width() {
        let k = KernelLayouts::builtin();
        let sample = k.schema(0x0F, 46, 2).unwrap();
        let payload = [1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0x20, 0, 0, 3, 0, 0x81, 9];
        let slots = Slots::for_schema(sample, 8);
        assert_eq!(slots.slot("InstructionPointer").unwrap().u64(&payload), Some(0x0807_0605_0403_0201));
        assert_eq!(slots.slot("ThreadId").unwrap().u32(&payload), Some(0x2010));
        assert_eq!(slots.slot("Count").unwrap().u64(&payload), Some(3));
        assert_eq!(slots.slot("Flags").unwrap().u64(&payload), Some(0x81));
        assert_eq!(slots.slot("Flags").unwrap().i64(&payload), Some(-127));
        assert_eq!(slots.slot("Flags").unwrap().u64(&payload[..14]), None);
        assert_eq!(slots.slot("Nothing"), None);
        let slots = Slots::for_schema(sample, 4);
        assert_eq!(
            (slots.slot("ThreadId").unwrap().offset(), slots.slot("ThreadId").unwrap().width()),
            (4, 4)
        );
    }

    #[test]
    fn priorities_are_signed() {
        let switch = KernelLayouts::builtin().schema(5, 36, 3).unwrap();
        let slots = Slots::for_schema(switch, 8);
        let mut payload = [0u8; 24];
        payload[12] = 0xFF;
        assert_eq!(slots.slot("OldThreadWaitReason").unwrap().i64(&payload), Some(-1));
        assert_eq!(slots.slot("OldThreadState").unwrap().offset(), 14);
    }

    #[test]
    fn what_follows_a_variable_field_has_no_offset() {
        let process = KernelLayouts::builtin().schema(3, 1, 4).unwrap();
        let slots = Slots::for_schema(process, 8);
        assert!(slots.slot("Flags").is_some());
        assert!(slots.slot("UserSID").is_none());
        assert!(slots.tail("UserSID").is_some());
        assert!(slots.tail("ImageFileName").is_none());
    }

    #[test]
    fn strings_and_frames_are_read_from_their_offset() {
        let k = KernelLayouts::builtin();
        let stack = k.schema(0x18, 32, 2).unwrap();
        let mut payload = vec![0u8; 16];
        payload.extend(7u64.to_le_bytes());
        payload.extend(9u64.to_le_bytes());
        payload.push(1);
        assert_eq!(
            Slots::for_schema(stack, 8).tail("Stack").unwrap().pointers(&payload).collect::<Vec<_>>(),
            [7, 9]
        );
        assert_eq!(
            Slots::for_schema(stack, 4).tail("Stack").unwrap().pointers(&payload).collect::<Vec<_>>(),
            [7, 0, 9, 0]
        );
        assert_eq!(Slots::for_schema(stack, 8).tail("Stack").unwrap().pointers(&payload[..3]).len(), 0);
        let image = k.schema(0x14, 3, 3).unwrap();
        let mut payload = vec![0u8; 56];
        payload.extend([b'n', 0, b't', 0, 0, 0, b'x', 0]);
        assert_eq!(
            Slots::for_schema(image, 8).tail("FileName").unwrap().text(&payload).as_deref(),
            Some("nt")
        );
        let id = k.class_schema(&"b3e675d7-2554-4f18-830b-2762732560de".parse().unwrap(), 36, 2).unwrap();
        let mut payload = vec![1u8; 32];
        payload.extend(b"nt.pdb\0");
        let slots = Slots::for_schema(id, 8);
        assert_eq!(slots.tail("PdbFileName").unwrap().ansi(&payload), Some(&b"nt.pdb"[..]));
        assert_eq!(slots.tail("GuidSig").unwrap().bytes(&payload), Some(&[1u8; 16][..]));
    }
}
