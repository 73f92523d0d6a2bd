//! Which types of events have stacks.

/// Which types of events have stacks: the kernel records them for the types that the session asks for.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// By type: how often somebody asked whether it has stacks, and whether one came.
    types: Vec<(u32, bool)>,
    /// The record that was asked about last, and the answer: it is the same for all who ask.
    last: Option<(Key, bool)>,
}

/// A record: where it is, and its time.
pub(super) type Key = (usize, i64);

/// Events of a type that are given tickets before it is taken for one without stacks, and how many of the later ones
/// (one in so many) find out whether they have come up since.
const TRIED: u32 = 4_096;
const TRIED_LATER: u32 = 1_024;
/// A type that is not counted: all after the first 65,535, each of which may have stacks.
pub(super) const NO_KIND: u16 = u16::MAX;

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

    pub(super) fn came(&mut self, kind: u16) {
        if let Some((_, came)) = self.slot(kind) {
            *came = true;
        }
    }

    pub(super) fn expects(&mut self, kind: u16, record: Key) -> bool {
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
        kinds.came(7);
        assert_eq!(tickets(&mut kinds, 100), 100);
        assert!(kinds.expects(8, (0, 0)) && kinds.expects(NO_KIND, (0, 1)));
    }
}
