//! Who has the locks, what is in the queues, until when the disks are busy, and who wants a processor.

use crate::value::{Dist, Draw};
use crate::world::World;
use etwhy_base::rng::Xoshiro;
use std::collections::VecDeque;

/// A thread that waits, and what it does then.
pub(crate) struct Waiter {
    pub(crate) thread: usize,
    pub(crate) since: i64,
    /// Nanoseconds from readied to running.
    pub(crate) ready: i64,
    pub(crate) go: super::Action,
}

/// A lock: its owner, and who waits for it.
#[derive(Default)]
pub(crate) struct LockState {
    pub(crate) owner: Option<usize>,
    pub(crate) waiters: VecDeque<Waiter>,
}

/// A queue: items that nobody took yet, or threads that wait for some.
#[derive(Default)]
pub(crate) struct QueueState {
    pub(crate) items: u64,
    pub(crate) waiters: VecDeque<Waiter>,
}

/// A ready thread without a processor.
pub(crate) struct Wanting {
    pub(crate) thread: usize,
    pub(crate) priority: u8,
    /// Any if empty.
    pub(crate) cpus: std::rc::Rc<[u16]>,
}

/// The states of all of them.
#[derive(Default)]
pub(crate) struct ObjectStates {
    pub(crate) locks: Vec<LockState>,
    pub(crate) queues: Vec<QueueState>,
    /// By disk: when each of its places is free again.
    disks: Vec<Vec<i64>>,
    pub(crate) wanting: Vec<Wanting>,
    rng: Option<Xoshiro>,
    transfers: u64,
}

impl ObjectStates {
    pub(crate) fn new(w: &World) -> ObjectStates {
        ObjectStates {
            locks: w.objects.locks.iter().map(|_| LockState::default()).collect(),
            queues: w
                .objects
                .queues
                .iter()
                .map(|q| QueueState { items: q.items, ..QueueState::default() })
                .collect(),
            disks: w.objects.disks.iter().map(|d| vec![0; d.depth as usize]).collect(),
            wanting: Vec::new(),
            rng: Some(Xoshiro::seeded(w.facts.seed ^ 0xD15C)),
            transfers: 0,
        }
    }

    /// How long a transfer that comes now takes: what is left of those before it, and `own`. A disk without a `[[disk]]` serves all at
    /// once.
    pub(crate) fn transfer(&mut self, w: &World, disk: u32, now: i64, own: i64) -> i64 {
        let at = w.objects.disks.iter().position(|d| d.number == disk);
        let places = at.and_then(|at| self.disks.get_mut(at));
        let Some(free) = places.and_then(|p| p.iter_mut().min()) else { return own };
        let end = now.max(*free) + own;
        *free = end;
        end - now
    }

    /// The service time of a disk: its own, unless a table or step says another.
    pub(crate) fn service(&mut self, w: &World, disk: u32, other: Option<&Dist>) -> i64 {
        let own = w.objects.disks.iter().find(|d| d.number == disk).and_then(|d| d.service.as_ref());
        let Some((dist, rng)) = other.or(own).zip(self.rng.as_mut()) else { return 2_000_000 };
        self.transfers += 1;
        dist.ns(&mut Draw { rng, n: self.transfers, x: 0.0 }).max(1000)
    }
}
