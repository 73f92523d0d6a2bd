//! Walks a payload along a kernel layout without interpreting it.

use crate::schema::{Count, EventSchema, Field, InType, Length};
use etwhy_base::Bytes;

/// No array of a payload is longer: records have at most 64 KiB.
const MAX_ELEMENTS: usize = 0x1_0000;

/// How far a layout goes in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Bytes covered by fields that are there in full.
    pub consumed: usize,
    /// Index of the first field that the payload is too short for; `None` when all are there, or when only
    /// optional ones are missing.
    pub short: Option<usize>,
}

/// Walks all fields of a layout.
pub fn measure(schema: &EventSchema, pointer_size: usize, payload: &[u8]) -> Measured {
    let mut short = None;
    let mut at = 0;
    let all = walk(&schema.fields, pointer_size, payload, 0, |_, _, end| {
        at = end;
        true
    });
    if let Err(index) = all {
        let may_end = at == payload.len() && schema.fields.get(index).is_some_and(|f| f.optional);
        short = (!may_end).then_some(index);
    }
    Measured { consumed: at, short }
}

/// The bytes of a field, whatever stands in front of it. Strings come with their nul.
pub fn raw_field<'a>(
    schema: &EventSchema,
    pointer_size: usize,
    payload: &'a [u8],
    name: &str,
) -> Option<&'a [u8]> {
    let index = schema.fields.iter().position(|f| f.name.as_ref() == name)?;
    let mut range = None;
    let _ = walk(&schema.fields, pointer_size, payload, 0, |i, start, end| {
        if i == index {
            range = Some((start, end));
        }
        i < index
    });
    let (start, end) = range?;
    payload.get(start..end)
}

/// Calls `visit(index, start, end)` for each field; it returns false to stop. Returns the end of the last
/// field, or the index of the field that the payload is too short for.
fn walk(
    fields: &[Field],
    pointer_size: usize,
    payload: &[u8],
    start: usize,
    mut visit: impl FnMut(usize, usize, usize) -> bool,
) -> Result<usize, usize> {
    let mut at = start;
    // Counts refer to earlier fields of the same level by index.
    let mut values: Vec<u64> = Vec::with_capacity(fields.len());
    for (index, field) in fields.iter().enumerate() {
        let end = field_end(field, pointer_size, payload, at, &values).ok_or(index)?;
        values.push(unsigned(payload, at, end.saturating_sub(at)).unwrap_or(0));
        if !visit(index, at, end) {
            return Ok(end);
        }
        at = end;
    }
    Ok(at)
}

fn field_end(field: &Field, pointer_size: usize, payload: &[u8], at: usize, values: &[u64]) -> Option<usize> {
    let n = match field.count {
        Count::One => return element_end(field, pointer_size, payload, at),
        Count::Fixed(n) => usize::try_from(n).ok()?,
        Count::Field(index) => usize::try_from(*values.get(usize::from(index))?).ok()?,
        Count::Prefixed => return None,
        Count::Rest => {
            let mut at = at;
            while let Some(end) = element_end(field, pointer_size, payload, at).filter(|end| *end > at) {
                at = end;
            }
            return Some(at);
        }
    };
    if n > MAX_ELEMENTS {
        return None;
    }
    let mut at = at;
    for _ in 0..n {
        at = element_end(field, pointer_size, payload, at)?;
    }
    Some(at)
}

fn element_end(field: &Field, pointer_size: usize, payload: &[u8], at: usize) -> Option<usize> {
    let rest = payload.get(at..)?;
    let len = match (field.in_type, field.length) {
        (InType::Struct, _) => {
            return walk(&field.members, pointer_size, payload, at, |_, _, _| true).ok();
        }
        (InType::UnicodeString, Length::Fixed(n)) => usize::try_from(n).ok()?.checked_mul(2)?,
        (InType::AnsiString | InType::Binary, Length::Fixed(n)) => usize::try_from(n).ok()?,
        // A string may run to the end of the payload without its nul.
        (InType::UnicodeString, _) => {
            if rest.is_empty() {
                return None;
            }
            rest.chunks_exact(2).position(|c| c == [0, 0]).map_or(rest.len(), |i| 2 * (i + 1))
        }
        (InType::AnsiString, _) => {
            if rest.is_empty() {
                return None;
            }
            rest.iter().position(|c| *c == 0).map_or(rest.len(), |i| i + 1)
        }
        (InType::WbemSid, _) => wbem_sid_len(rest, pointer_size)?,
        (kind, _) => fixed_width(kind, pointer_size)?,
    };
    at.checked_add(len).filter(|end| *end <= payload.len())
}

/// Bytes of a SID as kernel events carry it: a TOKEN_USER (two pointers) and the SID behind it, or only four
/// zero bytes when there is none.
///
/// The kernel never writes a TOKEN_USER that starts with 0, but programs that imitate its records do; that is
/// told from "none" by what looks like a SID behind it.
pub fn wbem_sid_len(bytes: &[u8], pointer_size: usize) -> Option<usize> {
    let token = 2 * pointer_size;
    let sids = |at: usize| bytes.u8_at(at).map(|n| token + 8 + 4 * usize::from(n));
    if bytes.u32_at(0)? != 0 {
        return sids(token + 1);
    }
    // Revision 1, at most 15 sub-authorities, and an authority below 256 as all real ones are.
    let imitated = bytes.get(..token).is_some_and(|t| t.iter().all(|b| *b == 0))
        && bytes.u8_at(token) == Some(1)
        && bytes.u8_at(token + 1).is_some_and(|n| (1..=15).contains(&n))
        && bytes.sub(token + 2, 5) == Some(&[0; 5])
        && sids(token + 1).is_some_and(|len| len <= bytes.len());
    if imitated { sids(token + 1) } else { Some(4) }
}

/// The pointer size that makes a layout fit a payload exactly: the one that the record states, else the other
/// one, else (none fits exactly) the one stated.
///
/// Classic records written by a program of the other bitness than the traced system state the program's.
pub fn fitting_pointer_size(schema: &EventSchema, stated: usize, payload: &[u8]) -> usize {
    let fits = |size| measure(schema, size, payload) == Measured { consumed: payload.len(), short: None };
    let other = if stated == 4 { 8 } else { 4 };
    if !fits(stated) && fits(other) { other } else { stated }
}

/// Bytes of one element of a type whose width does not depend on the data.
pub(super) fn fixed_width(kind: InType, pointer_size: usize) -> Option<usize> {
    Some(match kind {
        InType::Int8 | InType::UInt8 | InType::AnsiChar => 1,
        InType::Int16 | InType::UInt16 | InType::Port | InType::UnicodeChar => 2,
        InType::Int32
        | InType::UInt32
        | InType::HexInt32
        | InType::Float
        | InType::Boolean
        | InType::IPv4 => 4,
        InType::Int64 | InType::UInt64 | InType::HexInt64 | InType::Double | InType::FileTime => 8,
        InType::Guid | InType::SystemTime | InType::IPv6 => 16,
        InType::Pointer | InType::SizeT => pointer_size,
        _ => return None,
    })
}

/// A little-endian value of 1, 2, 4 or 8 bytes, zero-extended.
#[inline]
pub(super) fn unsigned(payload: &[u8], at: usize, width: usize) -> Option<u64> {
    match width {
        1 => payload.u8_at(at).map(u64::from),
        2 => payload.u16_at(at).map(u64::from),
        4 => payload.u32_at(at).map(u64::from),
        8 => payload.u64_at(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::KernelLayouts;
    use super::*;

    /// Payload sizes that real traces have, or that the structures of ntwmi.h say.
    #[test]
    fn sizes_are_the_known_ones() {
        let k = KernelLayouts::builtin();
        for (group, ty, version, size64, size32) in [
            (0x0F, 46, 2, 16, 12),
            (0x0F, 68, 2, 16, 12),
            (0x0F, 67, 2, 20, 16),
            (0x0F, 50, 2, 24, 20),
            (0x0F, 51, 2, 8, 4),
            (0x0F, 52, 2, 4, 4),
            (5, 36, 1, 16, 16),
            (5, 36, 2, 24, 24),
            (5, 36, 4, 24, 24),
            (5, 50, 2, 8, 8),
            (1, 10, 2, 48, 40),
            (1, 10, 3, 52, 44),
            (1, 12, 3, 12, 8),
            (1, 14, 3, 28, 24),
            (2, 32, 2, 40, 32),
            (2, 98, 2, 24, 16),
            (3, 32, 2, 104, 60),
            (6, 10, 2, 40, 36),
            (6, 11, 2, 32, 28),
            (6, 26, 2, 64, 60),
            (6, 27, 2, 56, 52),
            (6, 31, 2, 72, 68),
            (8, 10, 2, 32, 28),
            (0, 80, 0, 48, 48),
            (0x0B, 10, 3, 828, 820),
        ] {
            let schema = k.schema(group, ty, version).unwrap();
            let zeros = [0u8; 1000];
            for (pointer, size) in [(8, size64), (4, size32)] {
                assert_eq!(
                    measure(schema, pointer, &zeros[..size]),
                    Measured { consumed: size, short: None },
                    "{} v{version}",
                    schema.name
                );
                assert!(measure(schema, pointer, &zeros[..size - 1]).short.is_some(), "{}", schema.name);
            }
        }
    }

    #[test]
    fn missing_optional_fields_are_no_error() {
        let thread = KernelLayouts::builtin().schema(5, 3, 3).unwrap();
        assert_eq!(measure(thread, 8, &[0; 72]), Measured { consumed: 72, short: None });
        assert_eq!(measure(thread, 8, &[0; 74]), Measured { consumed: 74, short: None });
        assert_eq!(measure(thread, 8, &[0; 70]).short, Some(12));
    }

    #[test]
    fn fields_behind_strings_and_sids_are_found() {
        let process = KernelLayouts::builtin().schema(3, 1, 4).unwrap();
        let mut payload = vec![0u8; 36];
        payload.extend([1u8; 16]);
        payload.extend([1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]);
        payload.extend(b"a.exe\0");
        payload.extend([b'x', 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(measure(process, 8, &payload), Measured { consumed: payload.len(), short: None });
        assert_eq!(raw_field(process, 8, &payload, "ImageFileName"), Some(&b"a.exe\0"[..]));
        assert_eq!(raw_field(process, 8, &payload, "CommandLine"), Some(&b"x\0\0\0"[..]));
        assert_eq!(raw_field(process, 8, &payload[..50], "CommandLine"), None);
        assert_eq!(raw_field(process, 8, &payload, "Nothing"), None);
    }

    #[test]
    fn a_sid_behind_a_token_of_zeros_is_seen() {
        let sid = [1u8, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
        assert_eq!(wbem_sid_len(&[&[0u8; 16][..], &sid].concat(), 8), Some(28));
        assert_eq!(wbem_sid_len(&[&[0u8; 8][..], &sid].concat(), 4), Some(20));
        assert_eq!(wbem_sid_len(&[&[9u8; 16][..], &sid].concat(), 8), Some(28));
        assert_eq!(wbem_sid_len(b"\0\0\0\0Idle\0\0\0", 8), Some(4));
        assert_eq!(wbem_sid_len(&[0; 64], 8), Some(4));
        assert_eq!(wbem_sid_len(&[0; 3], 8), None);
    }

    #[test]
    fn the_pointer_size_that_fits_is_chosen() {
        let sample = KernelLayouts::builtin().schema(0x0F, 46, 2).unwrap();
        assert_eq!(fitting_pointer_size(sample, 4, &[0; 16]), 8);
        assert_eq!(fitting_pointer_size(sample, 8, &[0; 12]), 4);
        assert_eq!(fitting_pointer_size(sample, 8, &[0; 13]), 8);
    }

    #[test]
    fn a_count_from_the_data_cannot_run_away() {
        let dropped = KernelLayouts::builtin().schema(0, 82, 2).unwrap();
        let mut payload = vec![0xFFu8; 64];
        assert_eq!(measure(dropped, 8, &payload).short, Some(2));
        payload[..4].copy_from_slice(&7u32.to_le_bytes());
        assert_eq!(measure(dropped, 8, &payload), Measured { consumed: 64, short: None });
    }
}
