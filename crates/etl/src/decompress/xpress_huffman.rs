//! XPRESS with Huffman codes (\[MS-XCA\] 2.2): blocks of 64 KiB of output, each with a table of 512 code
//! lengths of 4 bits in front.

use super::copy_match;
use crate::Bytes;

const BLOCK: usize = 65536;
const TABLE: usize = 256;
const SYMBOLS: usize = 512;
const MAX_BITS: usize = 15;

/// Unpacks until `want` bytes are out or the input ends. See [`super::Format::decompress`].
pub fn decompress(input: &[u8], out: &mut [u8], want: usize) -> usize {
    if out.len() < want + super::SLACK {
        return 0;
    }
    let mut decode = vec![0u16; 1 << MAX_BITS];
    let (mut pos, mut at) = (0usize, 0usize);
    while at < want {
        let Some(table) = input.get(pos..pos + TABLE) else { break };
        if !build(table, &mut decode) {
            break;
        }
        pos += TABLE;
        let end = (at + BLOCK).min(want);
        let Some(block_end) = block(input, &mut pos, out, &mut at, end, &decode) else { break };
        if !block_end {
            break;
        }
    }
    at.min(want)
}

/// Fills the table that maps 15 bits to symbol and code length (`length << 9 | symbol`).
fn build(table: &[u8], decode: &mut [u16]) -> bool {
    let mut next = 0usize;
    for bits in 1..=MAX_BITS {
        for symbol in 0..SYMBOLS {
            let Some(&pair) = table.get(symbol / 2) else { return false };
            let length = usize::from(if symbol % 2 == 0 { pair & 15 } else { pair >> 4 });
            if length != bits {
                continue;
            }
            let span = 1usize << (MAX_BITS - bits);
            let Some(slots) = decode.get_mut(next..next + span) else { return false };
            slots.fill((bits as u16) << 9 | symbol as u16);
            next += span;
        }
    }
    next == decode.len()
}

/// One block. `Some(true)`: complete; `Some(false)`: the stream has ended; `None`: damaged.
fn block(
    input: &[u8],
    pos: &mut usize,
    out: &mut [u8],
    at: &mut usize,
    end: usize,
    decode: &[u16],
) -> Option<bool> {
    let word = |pos: usize| u32::from(input.u16_at(pos).unwrap_or(0));
    let mut bits = word(*pos) << 16 | word(*pos + 2);
    *pos += 4;
    let mut extra: i32 = 16;
    while *at < end {
        let entry = *decode.get((bits >> (32 - MAX_BITS)) as usize)?;
        let length = i32::from(entry >> 9);
        let symbol = usize::from(entry & 0x1FF);
        bits = bits.checked_shl(length as u32)?;
        extra -= length;
        if extra < 0 {
            bits |= word(*pos) << (-extra) as u32;
            *pos += 2;
            extra += 16;
        }
        if symbol < 256 {
            if *pos > input.len() + 4 {
                return Some(false);
            }
            *out.get_mut(*at)? = symbol as u8;
            *at += 1;
            continue;
        }
        let symbol = symbol - 256;
        // Symbol 256 with nothing left is the end mark.
        if symbol == 0 && *pos >= input.len() {
            return Some(false);
        }
        let mut len = symbol & 15;
        let dist_bits = (symbol >> 4) as u32;
        if len == 15 {
            let byte = input.u8_at(*pos)?;
            *pos += 1;
            len = usize::from(byte);
            if byte == 255 {
                len = usize::from(input.u16_at(*pos)?);
                *pos += 2;
                if len == 0 {
                    len = usize::try_from(input.u32_at(*pos)?).ok()?;
                    *pos += 4;
                }
                len = len.checked_sub(15)?;
            }
            len += 15;
        }
        len += 3;
        let dist = if dist_bits == 0 { 1 } else { (bits >> (32 - dist_bits)) as usize + (1 << dist_bits) };
        bits = bits.checked_shl(dist_bits)?;
        extra -= dist_bits as i32;
        if extra < 0 {
            bits |= word(*pos) << (-extra) as u32;
            *pos += 2;
            extra += 16;
        }
        // A match may run into the next block; the target is bounded by the output alone.
        let len = len.min(out.len().saturating_sub(*at + 32));
        if !copy_match(out, *at, dist, len) {
            return None;
        }
        *at += len;
    }
    Some(true)
}
