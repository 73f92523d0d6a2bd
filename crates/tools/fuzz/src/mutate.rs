//! Mutations that know nothing of the format.

use etwhy_base::rng::Rng;

/// Values that programs trip over.
pub const EXTREMES: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x1_0000,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFE,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Writes the low `width` bytes of `value` at `at`, as far as they fit.
pub fn put(data: &mut [u8], at: usize, width: usize, value: u64) {
    for (i, byte) in value.to_le_bytes().into_iter().take(width).enumerate() {
        if let Some(place) = at.checked_add(i).and_then(|at| data.get_mut(at)) {
            *place = byte;
        }
    }
}

/// A length: mostly short, at times up to `max`.
fn length(rng: &mut Rng, max: usize) -> usize {
    let bits = rng.index(usize::BITS as usize - max.max(1).leading_zeros() as usize + 1);
    rng.index(1 << bits.min(40)).min(max)
}

/// One mutation of `data`. `other` is another seed to take pieces from.
pub fn once(rng: &mut Rng, data: &mut Vec<u8>, other: &[u8]) {
    let len = data.len();
    let at = rng.index(len);
    match rng.index(16) {
        0..=2 => {
            if let Some(byte) = data.get_mut(at) {
                *byte ^= 1 << rng.index(8);
            }
        }
        3 => {
            let value = rng.bits();
            put(data, at, 1, value);
        }
        4 => {
            let value = rng.pick(&EXTREMES).copied().unwrap_or(0);
            put(data, at, 1, value);
        }
        5 | 6 => {
            let value = rng.pick(&EXTREMES).copied().unwrap_or(0);
            put(data, at & !1, 2, value);
        }
        7 | 8 => {
            let value = rng.pick(&EXTREMES).copied().unwrap_or(0);
            put(data, at & !3, 4, value);
        }
        9 => {
            let value = rng.pick(&EXTREMES).copied().unwrap_or(0);
            put(data, at & !7, 8, value);
        }
        10 => data.truncate(at),
        11 => {
            // A piece of another seed over this one.
            let n = length(rng, other.len().min(4096));
            let from = rng.index(other.len().saturating_sub(n) + 1);
            let piece = other.get(from..from + n).unwrap_or(&[]).to_vec();
            for (i, byte) in piece.into_iter().enumerate() {
                put(data, at.saturating_add(i), 1, byte.into());
            }
        }
        12 => {
            // A piece of itself once more.
            let n = length(rng, len.saturating_sub(at).min(4096));
            let piece = data.get(at..at + n).unwrap_or(&[]).to_vec();
            let to = rng.index(len + 1);
            data.splice(to..to, piece);
        }
        13 => {
            let n = length(rng, len.saturating_sub(at).min(4096));
            data.drain(at..at + n);
        }
        14 => {
            let n = length(rng, len.saturating_sub(at).min(256));
            let value = rng.pick(&[0u8, 0xFF, b'%', b'A']).copied().unwrap_or(0);
            if let Some(range) = data.get_mut(at..at + n) {
                range.fill(value);
            }
        }
        _ => {
            // Add or take a little: lengths and counts that are almost right.
            let value = data.get(at).copied().unwrap_or(0);
            let step = rng.index(5) as u8;
            put(data, at, 1, value.wrapping_add(step).wrapping_sub(2).into());
        }
    }
}

/// A few mutations.
pub fn several(rng: &mut Rng, data: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=rng.index(6) {
        once(rng, data, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_depend_on_the_seed_alone_and_empty_input_is_no_problem() {
        let seed: Vec<u8> = (0..200u8).collect();
        let make = |n| {
            let mut data = seed.clone();
            several(&mut Rng::new(n), &mut data, &seed);
            data
        };
        assert_eq!(make(5), make(5));
        assert!((0..100).filter(|&n| make(n) != seed).count() > 90);
        for n in 0..2000 {
            several(&mut Rng::new(n), &mut Vec::new(), &[]);
        }
    }
}
