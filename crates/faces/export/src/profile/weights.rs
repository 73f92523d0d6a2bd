//! What stacks weigh.

use super::{People, Profile};
use etwhy_table::Unit;
use foldhash::HashMap;

/// Process number ([`Weight::upid`]) of DPCs and ISRs: they are nobody's, and interrupt whom they find.
pub const INTERRUPTS: u32 = u32::MAX;

/// Where a weight stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// Stack (row of table `stack`).
    pub stack: Option<u32>,
    /// Of its frames only so many, the innermost, belong to it: a DPC stands on the stack of the thread that it
    /// interrupted. All if `None`.
    pub own: Option<u32>,
    /// Frame (row of table `frame`) that stands for the stack where none was recorded.
    pub frame: Option<u32>,
}

/// A weight at a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// When; `None` if it is a sum over time.
    pub ts_ns: Option<i64>,
    /// Process (row of table `process`).
    pub upid: Option<u32>,
    /// Thread (row of table `thread`); `None` if it is not known, or if it is a sum over threads.
    pub utid: Option<u32>,
    /// Where.
    pub at: At,
    /// How much, in the unit of its kind.
    pub weight: i64,
    /// How many events it stands for.
    pub count: i64,
}

/// Hands weights over, one by one.
pub type EachWeight<'a> = Box<dyn Fn(&mut dyn FnMut(Weight)) + 'a>;

/// One kind of weight: CPU time, bytes, …
pub struct Weights<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its unit.
    pub unit: Unit,
    /// Hands all of it over.
    pub each: EachWeight<'a>,
}

/// Whose stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Process.
    pub upid: Option<u32>,
    /// Thread.
    pub utid: Option<u32>,
    /// Where.
    pub at: At,
}

/// Sums of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Events.
    pub count: i64,
    /// Weight.
    pub weight: i64,
}

/// The wanted weights of all kinds, added up by process, thread and stack, in order. Memory grows with different stacks,
/// not with events.
pub(crate) fn sums(profile: &Profile<'_>, people: &People) -> Vec<(Key, Vec<Sum>)> {
    let kinds = profile.weights.len();
    let mut found: HashMap<Key, Vec<Sum>> = HashMap::default();
    for (kind, weights) in profile.weights.iter().enumerate() {
        profile.each_weight(weights, people, &mut |weight| {
            let key = Key { upid: weight.upid, utid: weight.utid, at: weight.at };
            let sums = found.entry(key).or_insert_with(|| vec![Sum::default(); kinds]);
            if let Some(sum) = sums.get_mut(kind) {
                sum.count = sum.count.saturating_add(weight.count);
                sum.weight = sum.weight.saturating_add(weight.weight);
            }
        });
    }
    let mut list: Vec<(Key, Vec<Sum>)> = found.into_iter().collect();
    list.sort_unstable_by_key(|(key, _)| *key);
    list
}
