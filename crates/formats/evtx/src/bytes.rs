//! Comparing of few bytes.

/// True if the bytes are the same. For a few bytes, as names and what stands between them have, a
/// call costs more than looking.
#[inline(always)]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    let ends = |a: &[u8], b: &[u8]| {
        (a.first_chunk::<8>(), a.last_chunk::<8>()) == (b.first_chunk::<8>(), b.last_chunk::<8>())
    };
    match (a.len(), b.len()) {
        (m, n) if m != n => false,
        (0..=3, _) => a.iter().zip(b).all(|(a, b)| a == b),
        (4..=7, _) => {
            (a.first_chunk::<4>(), a.last_chunk::<4>()) == (b.first_chunk::<4>(), b.last_chunk::<4>())
        }
        (8..=16, _) => ends(a, b),
        (17..=32, _) => {
            let middle = |x: &[u8]| {
                x.get(x.len() / 2 - 8..x.len() / 2 + 8).and_then(<[u8]>::first_chunk::<16>).copied()
            };
            ends(a, b) && middle(a) == middle(b)
        }
        (33..=256, _) => {
            let blocks = a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0);
            blocks.fold(true, |same, (a, b)| same & (a == b)) && a.last_chunk::<16>() == b.last_chunk::<16>()
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compared_to_the_last() {
        for len in 0..=255u8 {
            let a: Vec<u8> = (0..len).collect();
            assert!(same(&a, &a));
            assert!(!same(&a, &[&a[..], &[0]].concat()));
            for at in 0..a.len() {
                let mut b = a.clone();
                b[at] ^= 0x80;
                assert!(!same(&a, &b), "{len} bytes, {at}");
            }
        }
    }
}
