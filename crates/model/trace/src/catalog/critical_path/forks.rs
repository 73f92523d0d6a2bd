//! Forks: a thread asks two others at the same time and waits for one after the other. The one that answers last made it wait since it was asked,
//! also while the thread waited for the other, which would have ended the delay no sooner by being quicker.
//!
//! Who had been asked when is what switches tell: a thread that was readied by the other one, has had no time without work since, and readies it
//! in turn. A lock that is handed over looks the same, and a thread without work may wait like one that has asked somebody: only stacks tell
//! these apart, when the trace is read.

use super::walk::{Link, NEVER, NOBODY, Piece, Walked};
use crate::finish::Finish;
use crate::wait_class::{WaitClasses, of_object};
use etwhy_knowledge::WaitClass;
use std::collections::VecDeque;

/// Shorter waits for the other branch matter to nobody.
pub(super) const MIN_FORK_NS: i64 = 5_000_000;
/// Runs that are looked at for who had asked whom.
pub(super) const MOST_RUNS: usize = 512;

/// A fork, and what its waits must have been for.
#[derive(Debug)]
pub(super) struct Fork {
    pub waits: Vec<Checked>,
}

/// A wait whose stacks decide.
#[derive(Debug)]
pub(super) struct Checked {
    reason: u8,
    ticket: i32,
    waker: i32,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// For an answer, or for being asked: for anything but a lock.
    Answer,
    /// While it worked for the answer: not for work.
    Between,
}

impl Checked {
    pub fn of(piece: &Piece, rule: Rule) -> Checked {
        Checked { reason: piece.reason, ticket: piece.ticket, waker: piece.waker, rule }
    }

    fn holds(&self, end: &Finish<'_>, classes: &mut WaitClasses) -> bool {
        use WaitClass::{Condition, Lock, LockOrCondition, Object, Queue};
        let class = classes.class(end, self.reason, self.ticket, self.waker);
        match self.rule {
            Rule::Answer if of_object(class) => end.resolved.stack_of_ticket(self.waker).is_some(),
            Rule::Answer => !matches!(class, Lock | LockOrCondition),
            Rule::Between => !matches!(class, Queue | Condition | LockOrCondition | Object),
        }
    }
}

impl Fork {
    /// Whether the branch that ended last had been asked for at the beginning.
    fn is_one(&self, end: &Finish<'_>, classes: &mut WaitClasses) -> bool {
        self.waits.iter().all(|wait| wait.holds(end, classes))
    }
}

/// When `caller` asked `by`, which at this moment still owes the answer, and the waits that decide.
pub(super) fn asked(
    threads: &[VecDeque<Piece>],
    caller: u32,
    by: u32,
    at: i64,
    left: &mut usize,
) -> Option<(i64, Vec<Checked>)> {
    let pieces = threads.get(by as usize)?;
    let mut waits = Vec::new();
    let next = pieces.partition_point(|piece| piece.from < at);
    // Off the processors at this moment, it may be waiting: the run behind tells.
    let off = next.checked_sub(1).and_then(|last| pieces.get(last)).is_none_or(|piece| piece.to < at);
    for place in (0..next + usize::from(off)).rev() {
        *left = left.checked_sub(1)?;
        let piece = pieces.get(place)?;
        if piece.left == NEVER && piece.ready == NEVER {
            return None;
        }
        if !piece.waited {
            continue;
        }
        if piece.by == caller && piece.ready < at {
            waits.push(Checked::of(piece, Rule::Answer));
            return Some((piece.ready, waits));
        }
        // What it waited for itself: it had asked for it, or the class of the wait tells that it was not for work.
        let nested = (piece.by != NOBODY && piece.left != NEVER)
            .then(|| asked(threads, by, piece.by, piece.left.saturating_add(1), left))
            .flatten();
        match nested {
            Some((_, nested)) => {
                waits.push(Checked::of(piece, Rule::Answer));
                waits.extend(nested);
            }
            None => waits.push(Checked::of(piece, Rule::Between)),
        }
    }
    None
}

/// The pieces of one branch of each fork: of the one that ended last where stacks say so, else of the one that the thread waited for.
pub(super) fn decide(walked: Walked, end: &Finish<'_>, classes: &mut WaitClasses) -> Vec<Link> {
    let Walked { mut links, forks } = walked;
    let are: Vec<bool> = forks.iter().map(|fork| fork.is_one(end, classes)).collect();
    let is_one = |fork: u16| are.get(usize::from(fork)).copied().unwrap_or(false);
    if !forks.is_empty() {
        links.retain(|link| link.fork.is_none_or(|(fork, last)| last == is_one(fork)));
    }
    links
}
