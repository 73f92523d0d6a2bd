//! A binary heap of stream heads that shows its second smallest key, which the standard heap does not.

/// Key of a stream: time first, then the rank of its buffer, so that ties keep file order.
pub(crate) type Key = (i64, u32);

/// Min-heap of `(key, stream)`.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// Time, rank and stream as one number, which processors compare without a branch.
    items: Vec<u128>,
}

/// Time with its sign turned round, rank, stream: from the top.
#[inline]
fn packed((time, rank): Key, stream: u32) -> u128 {
    u128::from(time as u64 ^ 1 << 63) << 64 | u128::from(rank) << 32 | u128::from(stream)
}

#[inline]
fn key_of(item: u128) -> Key {
    (((item >> 64) as u64 ^ 1 << 63) as i64, (item >> 32) as u32)
}

impl Heap {
    /// The smallest.
    #[inline]
    pub(crate) fn top(&self) -> Option<(Key, u32)> {
        self.items.first().map(|&item| (key_of(item), item as u32))
    }

    /// The second smallest key.
    #[inline]
    pub(crate) fn second(&self) -> Option<Key> {
        match self.items.as_slice() {
            [_, a, b, ..] => Some(key_of(*a.min(b))),
            [_, a] => Some(key_of(*a)),
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, key: Key, stream: u32) {
        let mut at = self.items.len();
        self.items.push(packed(key, stream));
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.items.get(parent) <= self.items.get(at) {
                break;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    /// Gives the smallest a new key.
    #[inline]
    pub(crate) fn replace_top(&mut self, key: Key) {
        if let Some(&top) = self.items.first() {
            self.sift_down(packed(key, top as u32));
        }
    }

    /// Removes the smallest.
    pub(crate) fn pop(&mut self) {
        if let Some(last) = self.items.pop() {
            self.sift_down(last);
        }
    }

    /// Puts an item where the top was.
    #[inline]
    fn sift_down(&mut self, item: u128) {
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            let (child, key) = match self.items.get(left..) {
                Some([a, b, ..]) => (left + usize::from(b < a), *a.min(b)),
                Some([a]) => (left, *a),
                _ => break,
            };
            if item <= key {
                break;
            }
            if let Some(place) = self.items.get_mut(at) {
                *place = key;
            }
            at = child;
        }
        if let Some(place) = self.items.get_mut(at) {
            *place = item;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_and_shows_the_second() {
        let mut heap = Heap::default();
        let values = [5, 3, 9, 1, 7, 3, 8, 2, 2, 6];
        for (i, v) in values.iter().enumerate() {
            heap.push((*v, i as u32), i as u32);
        }
        let mut sorted: Vec<Key> = values.iter().enumerate().map(|(i, v)| (*v, i as u32)).collect();
        sorted.sort_unstable();
        for (i, want) in sorted.iter().enumerate() {
            assert_eq!(heap.top().map(|t| t.0), Some(*want));
            assert_eq!(heap.second(), sorted.get(i + 1).copied());
            heap.pop();
        }
        assert_eq!(heap.top(), None);
        for v in [4, 1, 6] {
            heap.push((v, 0), 0);
        }
        heap.replace_top((5, 0));
        assert_eq!(heap.top().map(|t| t.0), Some((4, 0)));
    }
}
