//! Where records of processors may be missing, and what that makes doubtful.

use super::Cpus;

/// A pair may lie across gaps of at most one in so many processors, see [`Cpus::parted`].
const FEW_PROCESSORS: usize = 8;

/// Whether some of `gaps`, which are sorted and do not overlap, touches a stretch of time.
fn touches(gaps: &[(i64, i64)], from_ns: i64, to_ns: i64) -> bool {
    let first = gaps.partition_point(|gap| gap.1 < from_ns);
    gaps.get(first).is_some_and(|gap| gap.0 <= to_ns)
}

impl Cpus {
    /// Whether records of any processor may be missing between two moments, the later one being now: what began before may have ended
    /// and begun again unseen.
    pub fn doubtful(&self, from_ns: i64, to_ns: i64) -> bool {
        self.missed_since(from_ns) || touches(&self.gaps, from_ns, to_ns)
    }

    /// Whether records of one processor may be missing between two moments, the later one being now. Decides about what happens on
    /// that processor alone.
    pub fn doubtful_on(&self, cpu: u16, from_ns: i64, to_ns: i64) -> bool {
        let mixed = self.mixed.contains(&true);
        self.missed_since(from_ns)
            || touches(if mixed { &self.gaps } else { self.gaps_on(cpu) }, from_ns, to_ns)
    }

    /// Whether two events that share an identity (an IRP, a message, a callback), each given as processor and time, the later one being
    /// now, may belong to two different things.
    ///
    /// Identities are used again at once: a freed IRP is the next one that its processor hands out. For a wrong pair, though, the end of
    /// the first thing and the beginning of the second must both be among the missing records. What was begun on a processor mostly
    /// ends there or goes on there, so a gap of one of the two processors is always in doubt. A gap of others hides both only if the
    /// first thing ended over there and the second one, begun over there, came back. On a small machine that is common; where at most
    /// one in `FEW_PROCESSORS` has a gap meanwhile, it takes two moves in a row of which each has that chance at best, and is less
    /// likely than the damage that leaving out most pairs does: a quiet processor's buffer covers half a second.
    pub fn parted(&self, from: (u16, i64), to: (u16, i64)) -> bool {
        if !self.doubtful(from.1, to.1) {
            return false;
        }
        let lacking = |cpu: u16| touches(self.gaps_on(cpu), from.1, to.1);
        if self.missed_since(from.1) || self.mixed.contains(&true) || lacking(from.0) || lacking(to.0) {
            return true;
        }
        let few = self.processors as usize / FEW_PROCESSORS;
        let lacking = self.lacking.iter().filter_map(|&cpu| self.list.get(cpu));
        lacking.filter(|cpu| touches(&cpu.gaps, from.1, to.1)).nth(few).is_some()
    }

    /// Sessions also lose single events, which leave no gap in the numbers of buffers: whether that was noticed since then.
    fn missed_since(&self, from_ns: i64) -> bool {
        self.missed_until_ns.is_some_and(|missed| missed >= from_ns)
    }

    /// The first time range that ends behind a moment in which records of a processor may be missing.
    pub(crate) fn gap_behind(&self, cpu: u16, from_ns: i64) -> Option<(i64, i64)> {
        let gaps = if self.mixed.contains(&true) { self.gaps.as_slice() } else { self.gaps_on(cpu) };
        gaps.get(gaps.partition_point(|gap| gap.1 <= from_ns)).copied()
    }

    /// The end of the last such time range before a moment that lies in none itself.
    pub(crate) fn gap_before(&self, cpu: u16, ns: i64) -> Option<i64> {
        let gaps = self.gaps_on(cpu);
        let behind = gaps.partition_point(|gap| gap.1 <= ns);
        if gaps.get(behind).is_some_and(|gap| gap.0 <= ns) {
            return None;
        }
        gaps.get(behind.checked_sub(1)?).map(|gap| gap.1)
    }

    /// Since when, up to a moment that is now, no records of any processor are missing; `None` if some may be missing now, or none ever were.
    pub(crate) fn complete_since(&self, ns: i64) -> Option<i64> {
        let behind = self.gaps.partition_point(|gap| gap.1 < ns);
        if self.gaps.get(behind).is_some_and(|gap| gap.0 <= ns) {
            return None;
        }
        let end = self.gaps.get(behind.checked_sub(1)?).map(|gap| gap.1)?;
        (!self.missed_since(end)).then_some(end)
    }

    fn gaps_on(&self, cpu: u16) -> &[(i64, i64)] {
        self.list.get(usize::from(cpu)).map_or(&[], |cpu| &cpu.gaps)
    }
}

#[cfg(test)]
impl Cpus {
    /// A machine of two processors, of which one has these gaps.
    pub(crate) fn lacking(cpu: u16, gaps: &[(i64, i64)]) -> Cpus {
        let mut cpus = Cpus { gaps: gaps.to_vec(), processors: 2, ..Cpus::default() };
        if let Some(cpu) = cpus.cpu(cpu) {
            cpu.gaps = gaps.to_vec();
        }
        cpus.lacking.push(usize::from(cpu));
        cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_around_gaps_is_doubtful() {
        let cpus = Cpus { gaps: vec![(10, 20), (40, i64::MAX)], ..Cpus::default() };
        assert!(!cpus.doubtful(0, 9));
        assert!(cpus.doubtful(0, 10) && cpus.doubtful(15, 16) && cpus.doubtful(20, 30));
        assert!(!cpus.doubtful(21, 39));
        assert!(cpus.doubtful(50, 60));
    }

    /// A machine of which some processors have a gap from 10 to 20.
    fn machine(processors: u16, lacking: &[u16]) -> Cpus {
        let mut cpus = Cpus { gaps: vec![(10, 20)], processors: u32::from(processors), ..Cpus::default() };
        for &cpu in lacking {
            cpus.cpu(cpu).unwrap().gaps.push((10, 20));
            cpus.lacking.push(usize::from(cpu));
        }
        cpus
    }

    #[test]
    fn gaps_are_found_around_a_moment() {
        let cpus = machine(2, &[1]);
        assert_eq!((cpus.gap_behind(1, 5), cpus.gap_behind(1, 20)), (Some((10, 20)), None));
        assert_eq!(cpus.gap_behind(0, 5), None, "another processor's");
        assert_eq!(
            (cpus.gap_before(1, 20), cpus.gap_before(1, 15), cpus.gap_before(1, 9)),
            (Some(20), None, None)
        );
        let mixed = Cpus { mixed: vec![true], ..machine(2, &[1]) };
        assert_eq!(mixed.gap_behind(0, 5), Some((10, 20)));
    }

    #[test]
    fn a_gap_of_others_parts_pairs_of_small_machines_only() {
        assert!(machine(4, &[3]).parted((0, 5), (1, 25)));
        assert!(machine(7, &[6]).parted((0, 5), (1, 25)));
        let large = machine(16, &[3]);
        assert!(!large.parted((0, 5), (1, 25)) && !large.parted((0, 12), (0, 13)));
        // One of the two processors has it.
        assert!(
            large.parted((3, 5), (1, 25)) && large.parted((0, 5), (3, 25)) && large.parted((0, 12), (3, 13))
        );
        assert!(!large.parted((3, 5), (1, 9)) && !large.parted((3, 21), (1, 29)));
        assert!(!machine(16, &[3, 4]).parted((0, 5), (1, 25)));
        assert!(machine(16, &[3, 4, 5]).parted((0, 5), (1, 25)));
    }

    #[test]
    fn a_lost_event_or_shared_buffers_part_pairs_everywhere() {
        let missed = Cpus { missed_until_ns: Some(15), ..machine(16, &[3]) };
        assert!(missed.parted((0, 5), (1, 9)) && !missed.parted((0, 16), (1, 25)));
        let mixed = Cpus { mixed: vec![false, true], ..machine(16, &[3]) };
        assert!(mixed.parted((0, 5), (1, 25)) && mixed.doubtful_on(0, 5, 25));
    }

    #[test]
    fn what_happens_on_one_processor_does_not_care_for_others() {
        let cpus = machine(2, &[1]);
        assert!(cpus.doubtful_on(1, 5, 15) && !cpus.doubtful_on(0, 5, 15) && !cpus.doubtful_on(1, 21, 25));
    }
}
