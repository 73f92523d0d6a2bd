//! The end of the pass: stacks are numbered.

use super::{KEYED, NO_PART, NO_STACK, Stacks};
use crate::anomalies::{STACK_KEYS_UNDEFINED, STACKS_LATE};
use crate::model::halves::Halves;
use crate::model::image::Images;
use crate::model::thread::Threads;
use etwhy_etl::Ledger;
use foldhash::HashMap;

/// A distinct stack of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DistinctStack {
    /// Its process instance.
    pub upid: Option<u32>,
    /// Epoch of the process's address space, see [`crate::model::image::Images::epoch`].
    pub epoch: u32,
    /// No stack was recorded: the only frame is the instruction pointer.
    pub leaf_only: bool,
    pub(crate) kernel: u32,
    pub(crate) user: u32,
}

/// What the pass knows of stacks at its end.
#[derive(Debug, Default)]
pub struct FinishedStacks {
    /// Distinct stacks; the stack number is the index.
    pub stacks: Vec<DistinctStack>,
    /// Stack number of each ticket, [`NO_STACK`] without one.
    pub of_ticket: Vec<i32>,
}

impl Stacks {
    /// Ends the pass: closes all tickets, merges stacks that turned out to be equal, and numbers them in the order of
    /// the first events that have them.
    pub(crate) fn finish(
        &mut self,
        threads: &Threads,
        images: &Images,
        ledger: &mut Ledger,
    ) -> FinishedStacks {
        let late = self.late;
        let matcher = self.worker.here();
        matcher.end();
        ledger.count(&STACKS_LATE, late);
        ledger.count(&STACK_KEYS_UNDEFINED, matcher.halves.undefined());
        let provisional = std::mem::take(&mut matcher.provisional);
        let first_ns = std::mem::take(&mut matcher.first_ns);
        let mut known: HashMap<DistinctStack, u32> = HashMap::default();
        let mut stacks: Vec<(i64, DistinctStack)> = Vec::new();
        let mut merged: Vec<u32> = Vec::with_capacity(provisional.len());
        for (stack, ns) in provisional.into_iter().zip(first_ns) {
            let (kernel, user) = (matcher.halves.defined(stack.kernel), matcher.halves.defined(stack.user));
            if kernel == NO_PART && user == NO_PART {
                merged.push(NO_PART);
                continue;
            }
            let (upid, epoch) = match stack.who {
                NO_PART => (None, 0),
                utid if utid & KEYED != 0 => {
                    let upid = threads.get(utid & !KEYED).and_then(|t| t.upid);
                    (upid, upid.map_or(0, |upid| images.epoch_at(upid, ns)))
                }
                upid => (Some(upid), stack.epoch),
            };
            let distinct = DistinctStack { upid, epoch, leaf_only: stack.leaf_only, kernel, user };
            let next = stacks.len() as u32;
            let number = *known.entry(distinct).or_insert(next);
            match stacks.get_mut(number as usize) {
                Some((first, _)) => *first = (*first).min(ns),
                None => stacks.push((ns, distinct)),
            }
            merged.push(number);
        }
        drop(known);
        let numbers = sort(&matcher.halves, &mut stacks);
        // In place: there may be a hundred million of them.
        let number = |ticket: u32| {
            let stack = merged.get(ticket as usize)?;
            numbers.get(*stack as usize).map(|&number| number as i32)
        };
        let of_ticket: Vec<i32> = std::mem::take(&mut matcher.tickets)
            .into_iter()
            .map(|ticket| number(ticket).unwrap_or(NO_STACK))
            .collect();
        FinishedStacks { stacks: stacks.into_iter().map(|(_, stack)| stack).collect(), of_ticket }
    }

    /// Frames of a half, innermost first.
    pub(crate) fn frames_of(&self, part: u32) -> &[u64] {
        self.worker.if_here().map_or(&[], |matcher| matcher.halves.frames_of(part))
    }
}

/// Sorts stacks by their first event, those of one moment by what they are. Returns the new number of each.
fn sort(halves: &Halves, stacks: &mut Vec<(i64, DistinctStack)>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
    let content = |stack: &DistinctStack| {
        let frames = (halves.frames_of(stack.kernel), halves.frames_of(stack.user));
        (frames, stack.upid, stack.epoch, stack.leaf_only)
    };
    order.sort_unstable_by(|&a, &b| {
        let (Some(a), Some(b)) = (stacks.get(a as usize), stacks.get(b as usize)) else {
            return a.cmp(&b);
        };
        a.0.cmp(&b.0).then_with(|| content(&a.1).cmp(&content(&b.1)))
    });
    let mut numbers = vec![0; stacks.len()];
    for (new, &old) in order.iter().enumerate() {
        if let Some(number) = numbers.get_mut(old as usize) {
            *number = new as u32;
        }
    }
    *stacks = order.iter().filter_map(|&old| stacks.get(old as usize).copied()).collect();
    numbers
}
