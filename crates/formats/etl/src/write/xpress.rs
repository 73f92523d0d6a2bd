//! A small plain-XPRESS (LZ77) compressor, after [MS-XCA] 2.3.
//!
//! One probe per position in a hash table of three-byte prefixes, greedy. It does not reach the ratio of
//! `RtlCompressBuffer`, but what it writes is ordinary XPRESS.

const WINDOW: usize = 8192;
const MIN_MATCH: usize = 3;
const HASH_BITS: u32 = 13;

/// Flag word under construction: where it stands and how many of its bits are used.
struct Flags {
    at: usize,
    bits: u32,
    used: u32,
}

impl Flags {
    fn reserve(out: &mut Vec<u8>) -> Flags {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        Flags { at, bits: 0, used: 0 }
    }

    #[inline]
    fn push(&mut self, bit: u32, out: &mut Vec<u8>) {
        self.bits = self.bits << 1 | bit;
        self.used += 1;
        if self.used == 32 {
            self.store(out);
            *self = Flags::reserve(out);
        }
    }

    fn store(&self, out: &mut [u8]) {
        if let Some(place) = out.get_mut(self.at..self.at + 4) {
            place.copy_from_slice(&self.bits.to_le_bytes());
        }
    }

    /// Unused bits are ones, so that a decoder at the end of its input stops at a match without bytes.
    fn close(mut self, out: &mut [u8]) {
        let free = 32 - self.used;
        self.bits = ((u64::from(self.bits) << free) | ((1u64 << free) - 1)) as u32;
        self.store(out);
    }
}

#[inline]
fn hash(input: &[u8], at: usize) -> Option<usize> {
    let &[a, b, c] = input.get(at..)?.first_chunk::<3>()?;
    let word = u32::from_le_bytes([a, b, c, 0]);
    Some((word.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize)
}

/// Length of the common run of `input[a..]` and `input[b..]`, `a < b`.
#[inline]
fn match_len(input: &[u8], a: usize, b: usize) -> usize {
    let (Some(x), Some(y)) = (input.get(a..), input.get(b..)) else { return 0 };
    let mut len = 0;
    for (p, q) in x.chunks_exact(8).zip(y.chunks_exact(8)) {
        if p != q {
            break;
        }
        len += 8;
    }
    let rest = x.iter().skip(len).zip(y.iter().skip(len));
    len + rest.take_while(|(p, q)| p == q).count()
}

/// Packs `input`. The result may be larger than the input (by up to an eighth).
pub fn compress(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len() / 2 + 16);
    let mut flags = Flags::reserve(&mut out);
    let mut heads = vec![u32::MAX; 1 << HASH_BITS];
    let mut nibble: Option<usize> = None;
    let mut at = 0;
    while at < input.len() {
        let mut found = 0;
        let mut from = 0;
        if let Some(slot) = hash(input, at).and_then(|h| heads.get_mut(h)) {
            from = *slot as usize;
            *slot = at as u32;
            if from < at && at - from <= WINDOW {
                found = match_len(input, from, at);
            }
        }
        if found < MIN_MATCH {
            out.extend(input.get(at));
            flags.push(0, &mut out);
            at += 1;
            continue;
        }
        push_match(&mut out, &mut nibble, at - from, found);
        flags.push(1, &mut out);
        // Positions inside the match are entered sparsely: that costs little ratio and saves half the time.
        for skipped in (at + 1..at + found).step_by(4) {
            if let Some(slot) = hash(input, skipped).and_then(|h| heads.get_mut(h)) {
                *slot = skipped as u32;
            }
        }
        at += found;
    }
    flags.close(&mut out);
    out
}

/// u16 offset and short length, then a shared nibble, a byte, a u16 or a u32, as the length needs.
fn push_match(out: &mut Vec<u8>, nibble: &mut Option<usize>, offset: usize, len: usize) {
    let code = len - MIN_MATCH;
    let short = code.min(7);
    out.extend_from_slice(&(((offset - 1) << 3 | short) as u16).to_le_bytes());
    if code < 7 {
        return;
    }
    let more = code - 7;
    match nibble.take().and_then(|at| out.get_mut(at)) {
        Some(shared) => *shared |= (more.min(15) as u8) << 4,
        None => {
            *nibble = Some(out.len());
            out.push(more.min(15) as u8);
        }
    }
    if more < 15 {
        return;
    }
    let most = more - 15;
    out.push(most.min(255) as u8);
    if most < 255 {
        return;
    }
    if let Ok(code) = u16::try_from(code) {
        out.extend_from_slice(&code.to_le_bytes());
    } else {
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&(code as u32).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    /// A plain decoder straight from the description of the format, independent of the reader's.
    fn decode(input: &[u8]) -> Vec<u8> {
        let (mut out, mut at, mut nibble) = (Vec::new(), 0, None);
        let (mut flags, mut left) = (0u32, 0);
        loop {
            if left == 0 {
                flags = u32::from_le_bytes(input[at..at + 4].try_into().unwrap());
                at += 4;
                left = 32;
            }
            left -= 1;
            if at == input.len() {
                return out;
            }
            if flags >> left & 1 == 0 {
                out.push(input[at]);
                at += 1;
                continue;
            }
            let word = usize::from(u16::from_le_bytes([input[at], input[at + 1]]));
            at += 2;
            let mut len = word & 7;
            if len == 7 {
                let four = match nibble.take() {
                    Some(place) => input[place] as usize >> 4,
                    None => {
                        nibble = Some(at);
                        at += 1;
                        input[at - 1] as usize & 15
                    }
                };
                len += four;
                if four == 15 {
                    len += usize::from(input[at]);
                    at += 1;
                    if input[at - 1] == 255 {
                        len = usize::from(u16::from_le_bytes([input[at], input[at + 1]]));
                        at += 2;
                        if len == 0 {
                            len = u32::from_le_bytes(input[at..at + 4].try_into().unwrap()) as usize;
                            at += 4;
                        }
                    }
                }
            }
            let offset = (word >> 3) + 1;
            for _ in 0..len + 3 {
                out.push(out[out.len() - offset]);
            }
        }
    }

    #[test]
    fn what_is_packed_unpacks_to_itself() {
        let mut rng = Rng::new(1);
        let mut noise = |bits: u32| rng.below(1 << bits) as u8;
        let mut inputs: Vec<Vec<u8>> =
            vec![vec![], vec![1], vec![7; 31], vec![7; 32], vec![0; 70_000], b"abcabcabcabcX".to_vec()];
        inputs.push((0..66_000).map(|_| noise(8)).collect());
        inputs.push((0..66_000).map(|_| noise(1)).collect());
        inputs.push((0..5000u32).flat_map(|i| (i / 3).to_le_bytes()).collect());
        for n in 0..700 {
            let mut text: Vec<u8> = (0..64).map(|_| noise(8)).collect();
            text.extend(std::iter::repeat_n(text.clone(), 12).flatten().take(n));
            inputs.push(text);
        }
        for input in inputs {
            let packed = compress(&input);
            assert_eq!(decode(&packed), input, "{} bytes", input.len());
            assert!(packed.len() <= input.len() + input.len() / 8 + 8);
        }
    }

    #[test]
    fn repetition_gets_small() {
        assert!(compress(&[5; 65536]).len() < 32);
    }
}
