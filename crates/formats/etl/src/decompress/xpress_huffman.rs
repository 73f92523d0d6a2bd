//! XPRESS with Huffman codes (\[MS-XCA\] 2.2): blocks of 64 KiB of output, each with a table of 512 code
//! lengths of 4 bits in front.

use super::copy_match;
use etwhy_base::Bytes;

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

#[cfg(test)]
mod tests {
    use super::*;

    /// All 512 codes are 9 bits long, so the stream can be written by hand; `dissect.util` unpacks it to the
    /// same text.
    const PACKED: &str = "1a3aa20c1903e884392003c8b8793141d3e6d0093277c8341834824e74eaa157855e2b3aafd0bd42f40ad02b42\
        af159d57e85ea142850000080804068102e08048801628060c818300e148881426850ae182c88036680e1c838701e288082446891\
        2e6847418053a000000000000";

    fn unpack(input: &[u8], want: usize) -> Vec<u8> {
        let mut out = vec![0; want + super::super::SLACK];
        let n = decompress(input, &mut out, want);
        out.truncate(n);
        out
    }

    #[test]
    fn literals_and_matches() {
        let mut packed = vec![0x99; TABLE];
        packed.extend(
            (0..PACKED.len() / 2).map(|i| u8::from_str_radix(&PACKED[2 * i..2 * i + 2], 16).unwrap()),
        );
        let mut want = b"the cat sat on the mat; the cat sat on the hat. ".repeat(6);
        want.extend(0..40);
        want.extend([b'a'; 40]);
        assert_eq!(unpack(&packed, want.len()), want);
        for cut in 0..packed.len() {
            let part = unpack(&packed[..cut], want.len());
            assert!(part.len() <= want.len());
        }
    }

    #[test]
    fn damaged_tables_stop() {
        assert!(unpack(&[0; TABLE + 8], 100).is_empty());
        assert!(unpack(&[0xFF; TABLE + 8], 100).is_empty());
    }
}
