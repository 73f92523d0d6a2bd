//! LZNT1 (\[MS-XCA\] 2.5): chunks of 4 KiB, each with its own header.

use super::copy_match;
use etwhy_base::Bytes;

const CHUNK: usize = 4096;
const COMPRESSED: u16 = 0x8000;

/// Unpacks until `want` bytes are out or the input ends. See [`super::Format::decompress`].
pub fn decompress(input: &[u8], out: &mut [u8], want: usize) -> usize {
    if out.len() < want + super::SLACK {
        return 0;
    }
    let (mut pos, mut at) = (0usize, 0usize);
    while at < want {
        let Some(header) = input.u16_at(pos) else { break };
        if header == 0 {
            break;
        }
        let len = usize::from(header & 0x0FFF) + 1;
        let body = input.get(pos + 2..).unwrap_or(&[]);
        let whole = body.len() >= len;
        let body = body.get(..len).unwrap_or(body);
        let room = (want - at).min(CHUNK);
        if header & COMPRESSED == 0 {
            let n = body.len().min(room);
            let (Some(target), Some(source)) = (out.get_mut(at..at + n), body.get(..n)) else { break };
            target.copy_from_slice(source);
            at += n;
        } else {
            let (n, good) = chunk(body, out, at, room);
            at += n;
            if !good {
                break;
            }
        }
        if !whole {
            break;
        }
        pos += 2 + len;
    }
    at
}

/// One compressed chunk; returns the bytes written and whether it was sound.
fn chunk(body: &[u8], out: &mut [u8], start: usize, room: usize) -> (usize, bool) {
    let (mut pos, mut done) = (0usize, 0usize);
    while pos < body.len() && done < room {
        let Some(flags) = body.u8_at(pos) else { break };
        pos += 1;
        for bit in 0..8 {
            if pos >= body.len() || done >= room {
                break;
            }
            if flags >> bit & 1 == 0 {
                let (Some(byte), Some(target)) = (body.u8_at(pos), out.get_mut(start + done)) else {
                    return (done, false);
                };
                *target = byte;
                pos += 1;
                done += 1;
                continue;
            }
            let Some(word) = body.u16_at(pos) else { return (done, false) };
            pos += 2;
            // The further into the chunk, the more bits the distance gets: 4 at first, 12 at the end.
            let mut distance_bits = 4;
            while distance_bits < 12 && (1usize << distance_bits) < done {
                distance_bits += 1;
            }
            let length_bits = 16 - distance_bits;
            let dist = usize::from(word >> length_bits) + 1;
            let len = (usize::from(word) & ((1 << length_bits) - 1)) + 3;
            let len = len.min(room - done);
            if dist > done || !copy_match(out, start + done, dist, len) {
                return (done, false);
            }
            done += len;
        }
    }
    (done, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(input: &[u8], want: usize) -> Vec<u8> {
        let mut out = vec![0; want + super::super::SLACK];
        let n = decompress(input, &mut out, want);
        out.truncate(n);
        out
    }

    // The example of [MS-XCA] 3.3.
    #[test]
    fn published_vector() {
        let packed = [
            0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47, 0x01,
            0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20, 0x05, 0x24,
            0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09, 0x16, 0x01, 0x48,
            0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00,
        ];
        let want = b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
        assert_eq!(unpack(&packed, want.len()), want);
        for cut in 0..packed.len() {
            assert!(want.starts_with(&unpack(&packed[..cut], want.len())));
        }
    }

    #[test]
    fn stored_chunk() {
        let packed = [&[0x04u8, 0x30][..], b"hello"].concat();
        assert_eq!(unpack(&packed, 5), b"hello");
    }
}
