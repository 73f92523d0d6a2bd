//! UTF-16 that is ASCII, as nearly all texts of logs are, sixteen units at a time.

use wide::{i16x8, u8x16};

/// Units that are narrowed at a time.
pub const UNITS: usize = 16;

/// Sixteen units as bytes.
pub struct Narrow {
    /// The bytes; only those before `len` mean something.
    pub bytes: [u8; UNITS],
    /// Units up to the first NUL, at most as many as were asked for.
    pub len: usize,
    /// All these units are ASCII.
    pub ascii: bool,
    /// One of them is a percent sign.
    pub percent: bool,
}

/// Eight units.
#[inline(always)]
fn units(half: &[[u8; 2]]) -> i16x8 {
    let mut units = [0i16; 8];
    for (to, unit) in units.iter_mut().zip(half) {
        *to = i16::from_le_bytes(*unit);
    }
    i16x8::from(units)
}

/// Narrows the first `n` units of a block. What stands behind them may be anything.
#[inline(always)]
pub fn narrow(block: &[u8; UNITS * 2], n: usize) -> Narrow {
    let pairs = block.as_chunks::<2>().0;
    let (low, high) = pairs.split_at(UNITS / 2);
    // Units up to 0x7FFF become bytes up to 0xFF, those above, which are negative here, become 0.
    let bytes = u8x16::narrow_i16x8(units(low), units(high));
    let zeros = bytes.simd_eq(u8x16::ZERO).to_bitmask();
    let len = n.min(zeros.trailing_zeros() as usize).min(UNITS);
    let counted = !(u32::MAX << len);
    let plain = bytes.to_bitmask() & counted == 0;
    // What ends the text must be a NUL indeed.
    let ends = len == n || pairs.get(len).is_some_and(|unit| *unit == [0, 0]);
    let percent = bytes.simd_eq(u8x16::splat(b'%')).to_bitmask() & counted != 0;
    Narrow { bytes: bytes.to_array(), len, ascii: plain && ends, percent }
}

/// Narrows sixteen units if all of them are ASCII and none is NUL; tells whether one is a percent sign.
#[inline(always)]
pub fn plain(block: &[u8; UNITS * 2]) -> Option<([u8; UNITS], bool)> {
    let (low, high) = block.as_chunks::<2>().0.split_at(UNITS / 2);
    // As above: what is not ASCII has the highest bit or becomes 0.
    let bytes = u8x16::narrow_i16x8(units(low), units(high));
    let percent = bytes.simd_eq(u8x16::splat(b'%')).to_bitmask() != 0;
    ((bytes.simd_eq(u8x16::ZERO) | bytes).to_bitmask() == 0).then(|| (bytes.to_array(), percent))
}
