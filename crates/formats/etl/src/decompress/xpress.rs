//! Plain LZ77 XPRESS (\[MS-XCA\] 2.4), the format of all compressed traces seen so far.

use super::copy_match;
use etwhy_base::Bytes;

/// Unpacks until `want` bytes are out or the input ends. See [`super::Format::decompress`].
///
/// The end of the input is the normal end of a stream, also right behind a flag word: an encoder whose
/// last item used up the 32 flags writes one more word just for the end mark.
pub fn decompress(input: &[u8], out: &mut [u8], want: usize) -> usize {
    if out.len() < want + super::SLACK {
        return 0;
    }
    let mut state = State { at: 0, pos: 0, flags: 0, left: 0, half: None };
    fast(input, out, want, &mut state);
    careful(input, out, want, &mut state);
    state.at.min(want)
}

/// Where the decoder stands.
struct State {
    /// In the output.
    at: usize,
    /// In the input.
    pos: usize,
    /// Flags not used yet, most significant bit first: 1 = match.
    flags: u32,
    /// How many of them.
    left: u32,
    /// High nibble kept for the next long match.
    half: Option<u8>,
}

/// Input bytes that one round of the fast loop may look at: a flag word, 32 literals, a match with the
/// longest length code.
const WINDOW: usize = 64;

/// Rounds of "literals, then a match" while both sides have room for the widest copies, so that each round
/// needs one check per side. Leaves at the first thing that is not plain; [`careful`] takes over.
#[inline]
fn fast(input: &[u8], out: &mut [u8], want: usize, state: &mut State) {
    let State { mut at, mut pos, mut flags, mut left, mut half } = *state;
    while at < want {
        let Some(window) = input.get(pos..).and_then(|s| s.first_chunk::<WINDOW>()) else { break };
        let mut used = 0usize;
        if left == 0 {
            flags = u32::from_le_bytes([window[0], window[1], window[2], window[3]]);
            left = 32;
            used = 4;
        }
        let run = flags.leading_zeros().min(left) as usize;
        // 16 literals at once, and 16 more for long runs; those behind the run are overwritten by what follows.
        let (Some(source), Some(target)) =
            (window.get(used..).and_then(|s| s.first_chunk::<32>()), out.get_mut(at..at + 32))
        else {
            break;
        };
        if let (Some(target), Some(source)) = (target.first_chunk_mut::<16>(), source.first_chunk::<16>()) {
            *target = *source;
        }
        if run > 16 {
            target.copy_from_slice(source);
        }
        at += run;
        used += run;
        left -= run as u32;
        if left == 0 {
            pos += used;
            continue;
        }
        flags = (flags << (run as u32 & 31)) << 1;
        left -= 1;
        let Some(word) = window.u16_at(used) else { break };
        used += 2;
        let dist = usize::from(word >> 3) + 1;
        let mut len = usize::from(word & 7);
        if len == 7 {
            let Some(long) = long_length(window, &mut used, &mut half) else { break };
            len = long;
        }
        pos += used;
        len += 3;
        let from = at.wrapping_sub(dist);
        if dist >= 16 && len <= 32 {
            let Some(first) = out.get(from..).and_then(|s| s.first_chunk::<16>()).copied() else {
                (pos, left) = (input.len(), 0);
                break;
            };
            let Some(target) = out.get_mut(at..).and_then(|s| s.first_chunk_mut::<16>()) else { break };
            *target = first;
            if len > 16 {
                let Some(second) = out.get(from + 16..).and_then(|s| s.first_chunk::<16>()).copied() else {
                    break;
                };
                let Some(target) = out.get_mut(at + 16..).and_then(|s| s.first_chunk_mut::<16>()) else {
                    break;
                };
                *target = second;
            }
        } else {
            len = len.min(want.saturating_sub(at));
            if !copy_match(out, at, dist, len) {
                // The source lies before the start: the stream is damaged from here on.
                pos = input.len();
                left = 0;
                break;
            }
        }
        at += len;
    }
    *state = State { at, pos, flags, left, half };
}

/// The rest of the stream, byte by byte where it must be.
fn careful(input: &[u8], out: &mut [u8], want: usize, state: &mut State) {
    let State { mut at, mut pos, mut flags, mut left, mut half } = *state;
    while at < want {
        if left == 0 {
            let Some(word) = input.u32_at(pos) else { break };
            pos += 4;
            flags = word;
            left = 32;
        }
        let run = flags.leading_zeros().min(left) as usize;
        if run > 0 {
            let n = run.min(input.len().saturating_sub(pos)).min(want - at);
            let (Some(source), Some(target)) = (input.get(pos..pos + n), out.get_mut(at..at + n)) else {
                break;
            };
            target.copy_from_slice(source);
            pos += n;
            at += n;
            if n < run {
                break;
            }
            left -= run as u32;
            flags = flags.checked_shl(run as u32).unwrap_or(0);
            continue;
        }
        flags <<= 1;
        left -= 1;
        let Some(word) = input.u16_at(pos) else { break };
        pos += 2;
        let dist = usize::from(word >> 3) + 1;
        let mut len = usize::from(word & 7);
        if len == 7 {
            let Some(long) = long_length(input, &mut pos, &mut half) else { break };
            len = long;
        }
        len = (len + 3).min(want - at);
        if !copy_match(out, at, dist, len) {
            break;
        }
        at += len;
    }
    *state = State { at, pos, flags, left, half };
}

/// The length of a match whose three bits are all set, without the 3 that every match adds.
#[inline]
fn long_length(input: &[u8], pos: &mut usize, half: &mut Option<u8>) -> Option<usize> {
    let nibble = match half.take() {
        Some(high) => high,
        None => {
            let byte = input.u8_at(*pos)?;
            *pos += 1;
            *half = Some(byte >> 4);
            byte & 15
        }
    };
    if nibble < 15 {
        return Some(usize::from(nibble) + 7);
    }
    let byte = input.u8_at(*pos)?;
    *pos += 1;
    if byte < 255 {
        return Some(usize::from(byte) + 15 + 7);
    }
    let word = input.u16_at(*pos)?;
    *pos += 2;
    let len = if word != 0 {
        usize::from(word)
    } else {
        let long = input.u32_at(*pos)?;
        *pos += 4;
        usize::try_from(long).ok()?
    };
    (len >= 15 + 7).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(input: &[u8], want: usize) -> Vec<u8> {
        let mut out = vec![0xAA; want + super::super::SLACK];
        let n = decompress(input, &mut out, want);
        out.truncate(n);
        out
    }

    // The two examples of [MS-XCA] 3.1.
    #[test]
    fn published_vectors() {
        let mut packed = vec![0x3f, 0, 0, 0];
        packed.extend(b"abcdefghijklmnopqrstuvwxyz");
        assert_eq!(unpack(&packed, 26), b"abcdefghijklmnopqrstuvwxyz");
        let packed = [0xff, 0xff, 0xff, 0x1f, b'a', b'b', b'c', 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
        assert_eq!(unpack(&packed, 300), b"abc".repeat(100));
    }

    #[test]
    fn stream_that_ends_with_a_flag_word() {
        // 32 literals use up the flags; the encoder adds a word of ones for the end mark.
        let mut packed = vec![0, 0, 0, 0];
        packed.extend([b'x'; 32]);
        packed.extend([0xff; 4]);
        assert_eq!(unpack(&packed, 100), [b'x'; 32]);
    }

    #[test]
    fn distances_and_lengths() {
        for dist in 1..40usize {
            for len in [3usize, 8, 9, 17, 40, 300, 70_000] {
                // `dist` literals, then one match of `len` at `dist`.
                let literals: Vec<u8> = (0..dist).map(|i| i as u8).collect();
                let mut packed = Vec::new();
                let mut flags = vec![false; dist];
                flags.push(true);
                let mut items: Vec<Vec<u8>> = literals.iter().map(|&b| vec![b]).collect();
                let (code, extra) = match len - 3 {
                    n @ 0..=6 => (n as u16, vec![]),
                    n @ 7..=21 => (7, vec![(n - 7) as u8]),
                    n @ 22..=276 => (7, vec![15, (n - 22) as u8]),
                    n @ 277..=65535 => (7, [&[15, 255][..], &(n as u16).to_le_bytes()].concat()),
                    n => (7, [&[15, 255, 0, 0][..], &(n as u32).to_le_bytes()].concat()),
                };
                items.push([&(((dist - 1) << 3) as u16 | code).to_le_bytes()[..], &extra].concat());
                for (flags, items) in flags.chunks(32).zip(items.chunks(32)) {
                    let word = flags.iter().enumerate().fold(0u32, |w, (i, &f)| w | u32::from(f) << (31 - i));
                    packed.extend(word.to_le_bytes());
                    packed.extend(items.concat());
                }
                let want: Vec<u8> = literals.iter().copied().cycle().take(dist + len).collect();
                assert_eq!(unpack(&packed, dist + len), want, "dist {dist} len {len}");
                // Truncation anywhere gives a prefix.
                for cut in 0..packed.len().min(60) {
                    assert!(want.starts_with(&unpack(&packed[..cut], dist + len)));
                }
            }
        }
    }

    #[test]
    fn source_before_the_start_stops() {
        let packed = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(unpack(&packed, 100).is_empty());
    }
}
