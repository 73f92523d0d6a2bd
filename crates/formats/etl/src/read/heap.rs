//! A binary heap of stream heads that shows its second smallest key, which the standard heap does not.

/// Key of a stream: time first, then the rank of its buffer, so that ties keep file order.
pub(crate) type Key = (i64, u32);

/// Min-heap of `(key, stream)`.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    items: Vec<(Key, u32)>,
}

impl Heap {
    #[inline]
    fn key(&self, at: usize) -> Option<Key> {
        self.items.get(at).map(|item| item.0)
    }

    /// The smallest.
    #[inline]
    pub(crate) fn top(&self) -> Option<(Key, u32)> {
        self.items.first().copied()
    }

    /// The second smallest key.
    #[inline]
    pub(crate) fn second(&self) -> Option<Key> {
        match (self.key(1), self.key(2)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, _) => a,
        }
    }

    pub(crate) fn push(&mut self, key: Key, stream: u32) {
        let mut at = self.items.len();
        self.items.push((key, stream));
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.key(parent) <= Some(key) {
                break;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    /// Gives the smallest a new key.
    #[inline]
    pub(crate) fn replace_top(&mut self, key: Key) {
        if let Some(top) = self.items.first_mut() {
            top.0 = key;
        }
        self.sift_down();
    }

    /// Removes the smallest.
    pub(crate) fn pop(&mut self) {
        if self.items.is_empty() {
            return;
        }
        self.items.swap_remove(0);
        self.sift_down();
    }

    #[inline]
    fn sift_down(&mut self) {
        let Some(item) = self.top() else { return };
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            let Some(left_key) = self.key(left) else { break };
            let (child, key) = match self.key(left + 1) {
                Some(right_key) if right_key < left_key => (left + 1, right_key),
                _ => (left, left_key),
            };
            if item.0 <= key {
                break;
            }
            self.items.swap(at, child);
            at = child;
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
