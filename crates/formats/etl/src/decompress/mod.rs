//! The three compression formats that an event trace may use, in safe code.
//!
//! All follow \[MS-XCA\] and `RtlDecompressBuffer`. Input is untrusted: every read and copy is checked, the
//! output never grows beyond what the caller asked for, and damaged input gives what was unpacked so far.

mod lznt1;
mod xpress;
mod xpress_huffman;

pub use lznt1::decompress as lznt1;
pub use xpress::decompress as xpress;
pub use xpress_huffman::decompress as xpress_huffman;

/// Bytes that an output buffer needs behind the wanted length, so that copies can be done in wide pieces.
pub const SLACK: usize = 64;

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `COMPRESSION_FORMAT_LZNT1`.
    Lznt1,
    /// `COMPRESSION_FORMAT_XPRESS`.
    Xpress,
    /// `COMPRESSION_FORMAT_XPRESS_HUFF`.
    XpressHuffman,
}

impl Format {
    /// The format of an `RtlDecompressBuffer` number.
    pub fn from_number(number: u16) -> Option<Format> {
        use crate::abi::buffer::*;
        match number {
            COMPRESSION_LZNT1 => Some(Format::Lznt1),
            COMPRESSION_XPRESS => Some(Format::Xpress),
            COMPRESSION_XPRESS_HUFF => Some(Format::XpressHuffman),
            _ => None,
        }
    }

    /// Unpacks `input` into `out` and returns how many bytes came out, `want` at most.
    ///
    /// `out` must hold `want + SLACK` bytes; bytes behind the returned length are undefined.
    pub fn decompress(self, input: &[u8], out: &mut [u8], want: usize) -> usize {
        match self {
            Format::Lznt1 => lznt1(input, out, want),
            Format::Xpress => xpress(input, out, want),
            Format::XpressHuffman => xpress_huffman(input, out, want),
        }
    }
}

/// Copies `len` bytes from `dist` before `at` to `at`, as LZ77 does (source and target may overlap).
/// Writes at most 32 bytes beyond `at + len`. False when the source lies before the buffer or the target
/// behind it.
#[inline(always)]
pub(crate) fn copy_match(out: &mut [u8], at: usize, dist: usize, len: usize) -> bool {
    if dist == 0 || dist > at || at + len + 32 > out.len() {
        return false;
    }
    let from = at - dist;
    if dist >= 16 {
        let mut done = 0;
        loop {
            let Some(piece) = out.get(from + done..).and_then(|s| s.first_chunk::<16>()).copied() else {
                return false;
            };
            let Some(target) = out.get_mut(at + done..).and_then(|s| s.first_chunk_mut::<16>()) else {
                return false;
            };
            *target = piece;
            done += 16;
            if done >= len {
                return true;
            }
        }
    }
    if dist == 1 {
        let Some(&byte) = out.get(from) else { return false };
        let Some(target) = out.get_mut(at..at + len) else { return false };
        target.fill(byte);
        return true;
    }
    // Short distances: double the pattern up to 16 bytes, then repeat it in steps of a multiple of `dist`.
    let Some(source) = out.get(from..).and_then(|s| s.first_chunk::<16>()) else { return false };
    let bits = 8 * dist as u32;
    let mut pattern = u128::from_le_bytes(*source) & ((1u128 << bits) - 1);
    let mut have = bits;
    while have < 128 {
        pattern |= pattern << have;
        have *= 2;
    }
    let pattern = pattern.to_le_bytes();
    let step = 16 - 16 % dist;
    let mut done = 0;
    while done < len {
        let Some(target) = out.get_mut(at + done..).and_then(|s| s.first_chunk_mut::<16>()) else {
            return false;
        };
        *target = pattern;
        done += step;
    }
    true
}
