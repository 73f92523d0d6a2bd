//! Sums by stack, made while the pass runs.

use super::Stacks;

/// Items that wait for the stacks of their tickets to be found. Those whose stack is known are folded together now and
/// then, so that memory grows with distinct stacks.
#[derive(Debug)]
pub(crate) struct Unsettled<T> {
    items: Vec<(i32, T)>,
    /// How many are gathered before somebody looks.
    most: usize,
}

/// Finding out ends the other thread for a moment.
const GATHERED: usize = 1 << 16;

impl<T> Default for Unsettled<T> {
    fn default() -> Unsettled<T> {
        Unsettled { items: Vec::new(), most: GATHERED }
    }
}

impl<T> Unsettled<T> {
    /// Another item, with its ticket. Now and then those whose stacks are found go to `settled`, each with its ticket and
    /// a number that tickets of the same stack share; equal stacks may have several.
    pub fn push(&mut self, ticket: i32, item: T, stacks: &mut Stacks, mut settled: impl FnMut(u32, i32, T)) {
        self.items.push((ticket, item));
        if self.items.len() < self.most {
            return;
        }
        let matcher = stacks.worker.here();
        let number = |ticket: i32| matcher.shared_by(u32::try_from(ticket).ok()?);
        for (ticket, item) in self.items.extract_if(.., |(ticket, _)| number(*ticket).is_some()) {
            if let Some(number) = number(ticket) {
                settled(number, ticket, item);
            }
        }
        self.most = GATHERED.max(2 * self.items.len());
    }

    /// The items that are left, with their tickets.
    pub fn into_items(self) -> Vec<(i32, T)> {
        self.items
    }
}
