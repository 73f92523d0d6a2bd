//! Which types of events have stacks.

use super::Key;

/// Which types of events have stacks: the kernel records them for the types that the session asks for.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// By type: how often somebody asked whether it has stacks, and whether one came.
    types: Vec<(u32, bool)>,
    /// The record that was asked about last, and the answer: it is the same for all who ask.
    last: Option<(Record, bool)>,
    /// Events that were given tickets of late, each in the place that its key has, with their types.
    late: Vec<(Key, u16)>,
}

/// A record: where it is, and its time.
type Record = (usize, i64);

/// Events of late that are remembered: the first half of a stack comes within a few records.
const REMEMBERED: usize = 1 << 12;

/// Events of a type that are given tickets before it is taken for one without stacks, and how many of the later ones
/// (one in so many) find out whether they have come up since.
const TRIED: u32 = 4_096;
const TRIED_LATER: u32 = 1_024;
/// A type that is not counted: all after the first 65,535, each of which may have stacks.
const NO_KIND: u16 = u16::MAX;

impl Kinds {
    pub(super) fn number(type_index: u32) -> u16 {
        u16::try_from(type_index).unwrap_or(NO_KIND)
    }

    fn slot(&mut self, kind: u16) -> Option<&mut (u32, bool)> {
        if kind != NO_KIND && self.types.len() <= usize::from(kind) {
            self.types.resize(usize::from(kind) + 1, (0, false));
        }
        self.types.get_mut(usize::from(kind))
    }

    fn remembered(&mut self, (ticks, tid): Key) -> Option<&mut (Key, u16)> {
        if self.late.is_empty() {
            self.late.resize(REMEMBERED, ((0, 0), NO_KIND));
        }
        let mixed = (ticks as u64 ^ u64::from(tid) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.late.get_mut((mixed >> 52) as usize)
    }

    /// An event of this type was given a ticket.
    #[inline]
    pub(super) fn asked(&mut self, key: Key, kind: u16) {
        if let Some(slot) = self.remembered(key) {
            *slot = (key, kind);
        }
    }

    /// A stack has come for the event with this key.
    #[inline]
    pub(super) fn came(&mut self, key: Key) {
        let kind = self.remembered(key).filter(|(of, _)| *of == key).map_or(NO_KIND, |slot| slot.1);
        if let Some((_, came)) = self.slot(kind) {
            *came = true;
        }
    }

    pub(super) fn expects(&mut self, kind: u16, record: Record) -> bool {
        if let Some((_, answer)) = self.last.filter(|(of, _)| *of == record) {
            return answer;
        }
        let Some((asked, came)) = self.slot(kind) else { return true };
        *asked = asked.saturating_add(1);
        let answer = *came || *asked <= TRIED || (*asked).is_multiple_of(TRIED_LATER);
        self.last = Some((record, answer));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_begin_late_are_found() {
        let mut kinds = Kinds::default();
        let mut time = 0;
        let mut tickets = |kinds: &mut Kinds, n: u32| {
            let mut expected = |_: &u32| {
                time += 1;
                // Whoever asks about a record gets the same answer.
                let answer = kinds.expects(7, (0, time));
                assert_eq!(kinds.expects(7, (0, time)), answer);
                answer
            };
            (0..n).filter(|n| expected(n)).count()
        };
        assert_eq!(tickets(&mut kinds, TRIED), TRIED as usize);
        // Without stacks so far one in so many tries; from the first stack on all do.
        assert_eq!(tickets(&mut kinds, 10 * TRIED_LATER), 10);
        kinds.asked((5, 6), 7);
        kinds.came((5, 6));
        assert_eq!(tickets(&mut kinds, 100), 100);
        assert!(kinds.expects(8, (0, 0)) && kinds.expects(NO_KIND, (0, 1)));
    }
}
