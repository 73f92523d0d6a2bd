//! Forks: a thread asks two others at the same time and waits for one after the other. The one that answers last made it wait since it was asked,
//! also while the thread waited for the other, which would have ended the delay no sooner by being quicker.
//!
//! Who had been asked when is what switches tell: a thread that was readied by the other one, has had no time without work since, and readies it
//! in turn. A lock that is handed over looks the same, and a thread without work may wait like one that has asked somebody: only stacks tell
//! these apart, when the trace is read. Where they were not recorded or have no names, nobody is charged with the time in which the thread waited for
//! the one while the other may have owed it an answer: it is unknown, unless both are of one process.

use super::walk::{Link, NEVER, NOBODY, Piece, Threads, Walked};
use crate::wait_class::{Named, WaitClasses, of_object};
use etwhy_knowledge::WaitClass;
use std::collections::BTreeSet;

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

    /// Whether the wait was for that; `None` where no stack tells.
    fn holds(&self, end: &impl Named, classes: &mut WaitClasses) -> Option<bool> {
        use WaitClass::{Condition, Lock, LockOrCondition, Object, Queue};
        let class = classes.class(end, self.reason, self.ticket, self.waker);
        let told = || WaitClasses::names_any(end, self.ticket);
        match self.rule {
            Rule::Answer if of_object(class) => WaitClasses::names_waker(end, self.waker).then_some(true),
            Rule::Answer if class == LockOrCondition && !told() => None,
            Rule::Answer => Some(!matches!(class, Lock | LockOrCondition)),
            Rule::Between if matches!(class, LockOrCondition | Object) && !told() => None,
            Rule::Between => Some(!matches!(class, Queue | Condition | LockOrCondition | Object)),
        }
    }
}

impl Fork {
    /// Whether the branch that ended last had been asked for at the beginning; `None` where no stacks tell.
    fn is_one(&self, end: &impl Named, classes: &mut WaitClasses) -> Option<bool> {
        let each: Vec<Option<bool>> = self.waits.iter().map(|wait| wait.holds(end, classes)).collect();
        match each.contains(&Some(false)) {
            true => Some(false),
            false => each.into_iter().collect::<Option<Vec<bool>>>().map(|_| true),
        }
    }
}

/// When `caller` asked `by`, which at this moment still owes the answer, and the waits that decide.
pub(super) fn asked(
    threads: &impl Threads,
    caller: u32,
    by: u32,
    at: i64,
    left: &mut usize,
) -> Option<(i64, Vec<Checked>)> {
    let pieces = threads.runs(by)?;
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

/// The pieces of one branch of each fork: of the one that ended last where stacks say so, of the one that the thread waited for where they deny it, else
/// of nobody.
pub(super) fn decide(walked: Walked, end: &impl Named, classes: &mut WaitClasses) -> Vec<Link> {
    let Walked { mut links, forks } = walked;
    if forks.is_empty() {
        return links;
    }
    let mut are: Vec<Option<bool>> = forks.iter().map(|fork| fork.is_one(end, classes)).collect();
    // Two threads of one process: it is that process's time, whichever of them the thread waited for.
    for (number, one) in are.iter_mut().enumerate().filter(|(_, one)| one.is_none()) {
        let of_fork = links.iter().filter(|link| link.fork.is_some_and(|fork| usize::from(fork.0) == number));
        let processes: BTreeSet<Option<u32>> = of_fork.map(|link| end.process(link.utid)).collect();
        *one = (processes.len() == 1 && !processes.contains(&None)).then_some(false);
    }
    let is_one = |fork: u16| are.get(usize::from(fork)).copied().flatten();
    links.retain(|link| link.fork.is_none_or(|(fork, last)| last == is_one(fork).unwrap_or(false)));
    let undecided = links.iter_mut().filter(|link| link.fork.is_some_and(|fork| is_one(fork.0).is_none()));
    undecided.for_each(|link| *link = link.of_nobody());
    links
}
