//! What a process has reserved and committed: `VirtualAlloc` and `VirtualFree` as a map of intervals.
//!
//! Windows reserves address space in one step and commits pages of it in another, or both at once. Pages that are
//! committed already may be committed again, which changes nothing; parts may be decommitted; a release gives back
//! a reservation with all that is committed in it. So what a call has changed is only known from the map, not from
//! its size.
//!
//! A reservation from before the trace is known only if the trace has a rundown of it, and that says how much of it
//! is committed but not which pages: these bytes are *unplaced*, and what a decommit takes of them is unknown.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Bytes of a page on x86, x64 and ARM64 (`GetSystemInfo`, `dwPageSize`). Windows rounds what it commits to pages.
pub const PAGE: u64 = 4096;

/// Whoever allocated before the trace began.
pub const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reservation {
    end: u64,
    owner: u32,
    /// Committed bytes of which nobody knows where they lie.
    unplaced: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Committed {
    end: u64,
    owner: u32,
}

/// What a call freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Committed bytes that it freed and that were known.
    pub bytes: u64,
    /// All that it freed was known, so `bytes` is exact.
    pub known: bool,
}

/// What was freed of an owner's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreedPart {
    /// Committed bytes.
    Commit(u64),
    /// Reserved bytes.
    Reserve(u64),
}

/// Told of each part that goes.
pub type Gone<'a> = &'a mut dyn FnMut(u32, FreedPart);

/// Reservations and committed pages of one process. An *owner* is whatever number the caller gives an allocation.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// By start; they do not overlap.
    reserved: BTreeMap<u64, Reservation>,
    /// By start; they do not overlap.
    committed: BTreeMap<u64, Committed>,
    /// What is committed, whoever did it: start and end of the longest stretches. A commit finds its holes here
    /// without a look at each of the pieces between them.
    runs: BTreeMap<u64, u64>,
}

/// The pages that a range touches.
fn pages(base: u64, size: u64) -> (u64, u64) {
    let start = base & !(PAGE - 1);
    let end = base.saturating_add(size).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    (start, end)
}

/// Bytes of the pages that a range touches.
pub fn page_bytes(base: u64, size: u64) -> u64 {
    let (start, end) = pages(base, size);
    end.saturating_sub(start)
}

impl AddressSpace {
    /// A reservation of `size` bytes at `base`. What was known there before must have been freed unseen and is
    /// told to `gone`; the return value says whether there was anything.
    pub fn reserve(&mut self, base: u64, size: u64, owner: u32, gone: Gone<'_>) -> bool {
        let (start, end) = pages(base, size);
        let mut any = false;
        let mut tell = |owner: u32, part: FreedPart| {
            any = true;
            gone(owner, part);
        };
        self.take_committed(start, end, &mut tell);
        self.take_reserved(start, end, &mut tell);
        if start < end {
            self.reserved.insert(start, Reservation { end, owner, unplaced: 0 });
        }
        any
    }

    /// Commits the pages of a range; returns the bytes that were not committed before. Outside any known
    /// reservation it makes one, as Windows does for a commit at an address of its choice.
    pub fn commit(&mut self, base: u64, size: u64, owner: u32) -> u64 {
        let (start, end) = pages(base, size);
        if start >= end {
            return 0;
        }
        if self.reservation_of(start).is_none() && !self.any_reserved(start, end) {
            self.reserved.insert(start, Reservation { end, owner: NOBODY, unplaced: 0 });
        }
        let mut new = 0;
        let mut at = start;
        // The stretch that there will be.
        let (mut from, mut to) = (start, end);
        while at <= end {
            // What covers `at` is skipped, and the hole behind it ends where the next one begins. A stretch that
            // begins where the range ends is joined, too.
            let before = self.runs.range((Unbounded, Included(at))).next_back().map(|(&s, &e)| (s, e));
            if let Some((run, run_end)) = before.filter(|&(_, run_end)| run_end >= at) {
                self.runs.remove(&run);
                (from, to) = (from.min(run), to.max(run_end));
                at = at.max(run_end);
                if at >= end {
                    break;
                }
                // Runs do not touch: there is a hole.
            }
            let next = self.runs.range((Included(at), Unbounded)).next().map_or(end, |(&s, _)| s);
            let hole_end = next.min(end);
            if hole_end <= at {
                break;
            }
            new += hole_end - at;
            self.committed.insert(at, Committed { end: hole_end, owner });
            at = hole_end;
        }
        self.runs.insert(from, to);
        new
    }

    /// Decommits the pages of a range; `size` 0 with the start of a reservation means all of it.
    pub fn decommit(&mut self, base: u64, size: u64, gone: Gone<'_>) -> Freed {
        let reservation = self.reservation_of(base).map(|(start, r)| (start, r.end, r.unplaced));
        let (start, end) = match reservation {
            Some((start, end, _)) if size == 0 => (start, end),
            _ => pages(base, size),
        };
        let bytes = self.take_committed(start, end, gone);
        let mut freed = Freed { bytes, known: bytes > 0 };
        match reservation {
            Some((from, to, unplaced)) if unplaced > 0 => {
                // All of it: even what lies nobody knows where is gone.
                freed.known = start <= from && end >= to;
                if freed.known {
                    freed.bytes = freed.bytes.saturating_add(unplaced);
                    if let Some(reservation) = self.reserved.get_mut(&from) {
                        reservation.unplaced = 0;
                    }
                }
            }
            Some(_) => freed.known = true,
            None => {}
        }
        freed
    }

    /// Releases address space and what is committed in it; `size` 0 means the reservation that begins at `base`.
    pub fn release(&mut self, base: u64, size: u64, gone: Gone<'_>) -> Freed {
        let reservation = self.reservation_of(base).map(|(start, r)| (start, r.end));
        let (start, end) = match reservation {
            Some((start, end)) if size == 0 => (start, end),
            None if size == 0 => return Freed::default(),
            _ => pages(base, size),
        };
        let bytes = self.take_committed(start, end, gone);
        let (unplaced, part) = self.take_reserved(start, end, gone);
        let known = !part && (reservation.is_some() || bytes > 0);
        Freed { bytes: bytes.saturating_add(unplaced), known }
    }

    /// A reservation from before the trace with `commit` committed bytes, as a rundown tells.
    pub fn existing(&mut self, base: u64, size: u64, commit: u64) {
        let (start, end) = pages(base, size);
        if start >= end || self.any_reserved(start, end) {
            return;
        }
        let whole = commit >= end - start;
        let unplaced = if whole { 0 } else { commit };
        self.reserved.insert(start, Reservation { end, owner: NOBODY, unplaced });
        if whole {
            self.commit(start, end - start, NOBODY);
        }
    }

    /// Everything goes, as when the process ends.
    pub fn clear(&mut self, gone: Gone<'_>) {
        self.runs.clear();
        for (start, c) in std::mem::take(&mut self.committed) {
            gone(c.owner, FreedPart::Commit(c.end - start));
        }
        for (start, r) in std::mem::take(&mut self.reserved) {
            gone(r.owner, FreedPart::Reserve(r.end - start));
        }
    }

    /// Committed bytes of known place.
    pub fn committed_bytes(&self) -> u64 {
        self.committed.iter().map(|(start, c)| c.end - start).sum()
    }

    /// Reserved bytes, committed ones included.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved.iter().map(|(start, r)| r.end - start).sum()
    }

    fn reservation_of(&self, at: u64) -> Option<(u64, Reservation)> {
        let (&start, &found) = self.reserved.range((Unbounded, Included(at))).next_back()?;
        (found.end > at).then_some((start, found))
    }

    fn any_reserved(&self, start: u64, end: u64) -> bool {
        let before = self.reserved.range((Unbounded, Excluded(end))).next_back();
        before.is_some_and(|(_, r)| r.end > start)
    }

    /// Takes committed pages out of a range, splitting what reaches beyond it; returns their bytes.
    fn take_committed(&mut self, start: u64, end: u64, gone: Gone<'_>) -> u64 {
        let mut taken = 0u64;
        while let Some((&at, &run_end)) = self.runs.range((Unbounded, Excluded(end))).next_back() {
            if run_end <= start {
                break;
            }
            self.runs.remove(&at);
            if run_end > end {
                self.runs.insert(end, run_end);
            }
            if at < start {
                self.runs.insert(at, start);
            }
        }
        while let Some((&at, &c)) = self.committed.range((Unbounded, Excluded(end))).next_back() {
            if c.end <= start {
                break;
            }
            self.committed.remove(&at);
            if c.end > end {
                self.committed.insert(end, c);
            }
            let (from, to) = (at.max(start), c.end.min(end));
            if at < from {
                self.committed.insert(at, Committed { end: from, owner: c.owner });
            }
            taken = taken.saturating_add(to - from);
            gone(c.owner, FreedPart::Commit(to - from));
        }
        taken
    }

    /// Takes reserved space out of a range. Returns the bytes of unknown place that went with whole
    /// reservations, and whether a part was taken of one that has such bytes.
    fn take_reserved(&mut self, start: u64, end: u64, gone: Gone<'_>) -> (u64, bool) {
        let (mut unplaced, mut doubt) = (0u64, false);
        while let Some((&at, &r)) = self.reserved.range((Unbounded, Excluded(end))).next_back() {
            if r.end <= start {
                break;
            }
            self.reserved.remove(&at);
            let (from, to) = (at.max(start), r.end.min(end));
            if from == at && to == r.end {
                unplaced = unplaced.saturating_add(r.unplaced);
            } else {
                doubt |= r.unplaced > 0;
            }
            // Unplaced bytes stay with what is left, at most as many as fit.
            let mut left = r.unplaced;
            if r.end > end {
                let here = left.min(r.end - end);
                left -= here;
                self.reserved.insert(end, Reservation { unplaced: here, ..r });
            }
            if at < from {
                self.reserved.insert(at, Reservation { end: from, unplaced: left.min(from - at), ..r });
            }
            gone(r.owner, FreedPart::Reserve(to - from));
        }
        (unplaced, doubt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    /// What went, added up: committed and reserved bytes by owner.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Went(BTreeMap<u32, (u64, u64)>);

    impl Went {
        fn take(&mut self, owner: u32, part: FreedPart) {
            let entry = self.0.entry(owner).or_default();
            match part {
                FreedPart::Commit(bytes) => entry.0 += bytes,
                FreedPart::Reserve(bytes) => entry.1 += bytes,
            }
        }
    }

    fn gone(call: impl FnOnce(Gone<'_>) -> Freed) -> (Freed, Vec<(u32, u64, u64)>) {
        let mut went = Went::default();
        let freed = call(&mut |owner, part| went.take(owner, part));
        (freed, went.0.into_iter().map(|(o, (c, r))| (o, c, r)).collect())
    }

    fn exact(bytes: u64) -> Freed {
        Freed { bytes, known: true }
    }

    fn space(reservations: &[(u64, u64, u32)]) -> AddressSpace {
        let mut space = AddressSpace::default();
        for &(base, size, owner) in reservations {
            assert!(!space.reserve(base, size, owner, &mut |_, _| ()));
        }
        space
    }

    #[test]
    fn pages_are_committed_once() {
        let mut space = space(&[(0x10000, 0x10000, 0)]);
        assert_eq!(space.commit(0x10000, 0x3000, 1), 0x3000);
        assert_eq!(space.commit(0x11000, 0x1000, 2), 0, "committed already");
        assert_eq!(space.commit(0x12000, 0x4000, 3), 0x3000, "one page of four was there");
        assert_eq!(space.commit(0x18001, 1, 4), 0x1000, "one byte takes a page");
        assert_eq!(space.commit(0x10000, 0x10000, 5), 0x10000 - 0x7000, "the holes");
        assert_eq!(space.committed_bytes(), 0x10000);
        let (freed, went) = gone(|g| space.release(0x10000, 0, g));
        assert_eq!(freed, exact(0x10000));
        assert_eq!(went, [(0, 0, 0x10000), (1, 0x3000, 0), (3, 0x3000, 0), (4, 0x1000, 0), (5, 0x9000, 0)]);
        assert_eq!((space.committed_bytes(), space.reserved_bytes()), (0, 0));
    }

    /// Owners of pages, one by one.
    struct Pages(Vec<Option<u32>>);

    impl Pages {
        fn commit(&mut self, from: usize, to: usize, owner: u32) -> u64 {
            let free = self.0[from..to].iter_mut().filter(|page| page.is_none());
            free.map(|page| *page = Some(owner)).count() as u64 * PAGE
        }

        fn decommit(&mut self, from: usize, to: usize) -> u64 {
            self.0[from..to].iter_mut().filter_map(Option::take).count() as u64 * PAGE
        }
    }

    #[test]
    fn ranges_are_what_pages_one_by_one_are() {
        let mut rng = Rng::new(12345);
        let mut below = |n: u64| rng.below(n);
        let mut space = space(&[(0, 64 * PAGE, 0)]);
        let mut pages = Pages(vec![None; 64]);
        for owner in 1..4000 {
            let from = below(64);
            let longest = (64 - from).min(1 + below(16));
            let to = from + 1 + below(longest);
            let (base, size, range) = (from * PAGE, (to - from) * PAGE, (from as usize, to as usize));
            if below(2) == 0 {
                assert_eq!(space.commit(base, size, owner), pages.commit(range.0, range.1, owner));
            } else {
                let mut went = 0;
                let freed = space.decommit(base, size, &mut |_, part| match part {
                    FreedPart::Commit(bytes) => went += bytes,
                    FreedPart::Reserve(_) => panic!("nothing is released"),
                });
                assert_eq!((freed.bytes, went), (pages.decommit(range.0, range.1), freed.bytes));
            }
            let covered: u64 = space.runs.iter().map(|(start, end)| end - start).sum();
            assert_eq!((covered, space.committed_bytes()), (covered, covered));
            let touching = |(a, b): ((&u64, &u64), (&u64, &u64))| a.1 >= b.0;
            assert!(!space.runs.iter().zip(space.runs.iter().skip(1)).any(touching), "{:?}", space.runs);
        }
    }

    #[test]
    fn a_partial_decommit_splits() {
        let mut space = space(&[(0x10000, 0x10000, 0)]);
        space.commit(0x10000, 0x10000, 1);
        assert_eq!(gone(|g| space.decommit(0x14000, 0x2000, g)), (exact(0x2000), vec![(1, 0x2000, 0)]));
        assert_eq!(gone(|g| space.decommit(0x14000, 0x2000, g)), (exact(0), vec![]), "twice");
        assert_eq!(gone(|g| space.decommit(0x13000, 0x4000, g)), (exact(0x2000), vec![(1, 0x2000, 0)]));
        assert_eq!(space.committed_bytes(), 0xC000);
        assert_eq!(space.reserved_bytes(), 0x10000, "still reserved");
        assert_eq!(space.commit(0x12000, 0x6000, 2), 0x4000, "the hole is filled again");
        let (freed, went) = gone(|g| space.release(0x10000, 0x10000, g));
        assert_eq!((freed, went), (exact(0x10000), vec![(0, 0, 0x10000), (1, 0xC000, 0), (2, 0x4000, 0)]));
    }

    #[test]
    fn a_release_needs_no_size() {
        let mut space = space(&[(0x10000, 0x10000, 0), (0x20000, 0x10000, 1)]);
        space.commit(0x1F000, 0x2000, 2);
        assert_eq!(
            gone(|g| space.release(0x10000, 0, g)),
            (exact(0x1000), vec![(0, 0, 0x10000), (2, 0x1000, 0)])
        );
        assert_eq!(
            gone(|g| space.release(0x20000, 0, g)),
            (exact(0x1000), vec![(1, 0, 0x10000), (2, 0x1000, 0)])
        );
    }

    #[test]
    fn a_release_of_the_middle_leaves_both_ends() {
        let mut space = space(&[(0x10000, 0x10000, 0)]);
        space.commit(0x10000, 0x10000, 0);
        let (freed, _) = gone(|g| space.release(0x14000, 0x4000, g));
        assert_eq!(freed, exact(0x4000));
        assert_eq!((space.reserved_bytes(), space.committed_bytes()), (0xC000, 0xC000));
        assert_eq!(gone(|g| space.release(0x18000, 0, g)).0, exact(0x8000));
        assert_eq!(gone(|g| space.release(0x10000, 0, g)).0, exact(0x4000));
    }

    #[test]
    fn a_commit_anywhere_reserves() {
        let mut space = AddressSpace::default();
        assert_eq!(space.commit(0x50000, 0x2000, 7), 0x2000);
        assert_eq!(gone(|g| space.release(0x50000, 0, g)).0, exact(0x2000));
    }

    #[test]
    fn what_nobody_allocated_is_unknown() {
        let mut space = AddressSpace::default();
        assert_eq!(gone(|g| space.release(0x10000, 0, g)), (Freed::default(), vec![]));
        assert_eq!(gone(|g| space.release(0x10000, 0x1000, g)), (Freed::default(), vec![]));
        assert_eq!(gone(|g| space.decommit(0x10000, 0x1000, g)), (Freed::default(), vec![]));
    }

    #[test]
    fn an_address_that_is_reserved_again_was_freed_unseen() {
        let mut space = space(&[(0x10000, 0x10000, 0)]);
        space.commit(0x10000, 0x4000, 0);
        let mut went = Went::default();
        assert!(space.reserve(0x18000, 0x10000, 1, &mut |o, p| went.take(o, p)));
        assert_eq!(went.0[&0], (0, 0x8000));
        assert!(space.reserve(0x10000, 0x1000, 2, &mut |o, p| went.take(o, p)));
        assert_eq!(went.0[&0], (0x1000, 0x9000));
    }

    #[test]
    fn a_rundown_tells_how_much_but_not_where() {
        let mut space = AddressSpace::default();
        space.existing(0x10000, 0x10000, 0x10000);
        assert_eq!(space.commit(0x10000, 0x1000, 1), 0, "all of it was committed");
        assert_eq!(gone(|g| space.decommit(0x10000, 0x1000, g)).0, exact(0x1000));
        space.existing(0x40000, 0x10000, 0x6000);
        assert_eq!(space.commit(0x40000, 0x1000, 1), 0x1000);
        assert_eq!(gone(|g| space.decommit(0x40000, 0x2000, g)).0, Freed { bytes: 0x1000, known: false });
        assert_eq!(gone(|g| space.release(0x40000, 0, g)).0, exact(0x6000));
        space.existing(0x80000, 0x10000, 0x6000);
        assert_eq!(gone(|g| space.decommit(0x80000, 0, g)).0, exact(0x6000), "all of it");
        assert_eq!(gone(|g| space.release(0x80000, 0, g)).0, exact(0));
    }

    #[test]
    fn absurd_ranges_do_no_harm() {
        let mut space = AddressSpace::default();
        assert_eq!(space.commit(u64::MAX, u64::MAX, 0), PAGE - 1);
        space.reserve(0, u64::MAX, 1, &mut |_, _| ());
        space.commit(0, 0, 2);
        space.commit(0, u64::MAX, 2);
        let (freed, _) = gone(|g| space.release(0, u64::MAX, g));
        assert!(freed.bytes > u64::MAX / 2);
        let mut count = 0;
        space.clear(&mut |_, _| count += 1);
        assert_eq!(space.committed_bytes() + space.reserved_bytes(), 0);
        assert_eq!(count, 0);
    }

    /// Against a model that keeps each page by itself.
    #[test]
    fn random_calls_agree_with_single_pages() {
        let (mut rng, mut space) = (Rng::new(7), AddressSpace::default());
        let mut random = |below: u64| rng.below(below);
        let mut owner_of = [None::<u32>; 64];
        space.reserve(0, 64 * PAGE, 0, &mut |_, _| ());
        for owner in 1..20_000u32 {
            let (from, len) = (random(64), 1 + random(16));
            let to = (from + len).min(64);
            let range = from as usize..to as usize;
            let (base, size) = (from * PAGE, (to - from) * PAGE);
            if random(2) == 0 {
                let holes = owner_of[range.clone()].iter_mut().filter(|o| o.is_none());
                let new = holes.map(|o| *o = Some(owner)).count() as u64;
                assert_eq!(space.commit(base, size, owner), new * PAGE);
            } else {
                let mut want: BTreeMap<u32, u64> = BTreeMap::new();
                for page in owner_of[range].iter_mut() {
                    if let Some(owner) = page.take() {
                        *want.entry(owner).or_default() += PAGE;
                    }
                }
                let (freed, went) = gone(|g| space.decommit(base, size, g));
                assert_eq!(freed, exact(want.values().sum()));
                assert_eq!(went.iter().map(|w| (w.0, w.1)).collect::<BTreeMap<_, _>>(), want);
            }
        }
    }
}
