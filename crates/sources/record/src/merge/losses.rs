//! Where records of the files may be missing, as marks on the buffers of the result.

use etwhy_etl::read::{EtlFile, Gap};
use std::collections::{HashMap, VecDeque};

/// What a record's buffer says of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The record begins a buffer: losses begin or end here.
    pub begins_buffer: bool,
    /// Events were lost while its buffer was filled: the gap is from the buffer's first record to the first of the next.
    pub events: bool,
    /// A buffer before it was lost: the gap ends with its first record.
    pub buffer: bool,
}

/// Gaps of one processor, and the end of the one that the records are in.
#[derive(Debug, Default)]
struct Cpu {
    gaps: VecDeque<Gap>,
    until: Option<i64>,
}

/// Gaps of all files.
#[derive(Debug, Default)]
pub struct Losses {
    cpus: HashMap<u16, Cpu>,
}

impl Losses {
    /// Those of these files, whose ticks are the same.
    pub fn of(files: &[EtlFile]) -> Losses {
        Losses::new(files.iter().flat_map(EtlFile::gaps).collect())
    }

    fn new(mut gaps: Vec<Gap>) -> Losses {
        let mut losses = Losses::default();
        gaps.sort_by_key(|gap| (gap.from_ticks, gap.to_ticks));
        for gap in gaps {
            let cpu = losses.cpus.entry(gap.cpu).or_default();
            match cpu.gaps.back_mut() {
                // Records of several sessions are missing at the same time.
                Some(last) if gap.from_ticks < last.to_ticks => {
                    last.to_ticks = last.to_ticks.max(gap.to_ticks)
                }
                _ => cpu.gaps.push_back(gap),
            }
        }
        losses
    }

    /// What the buffer of the next record of a processor says.
    #[inline]
    pub fn at(&mut self, cpu: u16, ticks: i64) -> Loss {
        if self.cpus.is_empty() {
            return Loss::default();
        }
        self.cpus.get_mut(&cpu).map_or_else(Loss::default, |cpu| cpu.at(ticks))
    }
}

impl Cpu {
    fn at(&mut self, ticks: i64) -> Loss {
        let mut loss = Loss::default();
        if self.until.is_some_and(|until| ticks >= until) {
            self.until = None;
            loss.begins_buffer = true;
        }
        while let Some(gap) = self.gaps.pop_front_if(|gap| ticks >= gap.from_ticks) {
            loss.begins_buffer = true;
            if ticks < gap.to_ticks || ticks == gap.from_ticks {
                self.until = Some(gap.to_ticks);
                break;
            }
            // No record is left at its beginning.
            loss.buffer = true;
        }
        loss.events = self.until.is_some();
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(from_ticks: i64, to_ticks: i64) -> Gap {
        Gap { cpu: 1, from_ticks, to_ticks }
    }

    /// Marks of records at these times: `|` begins a buffer, `e` events, `b` a buffer lost.
    fn marks(gaps: &[Gap], ticks: &[i64]) -> String {
        let mut losses = Losses::new(gaps.to_vec());
        let mark = |loss: Loss| {
            let signs = [(loss.begins_buffer, '|'), (loss.events, 'e'), (loss.buffer, 'b')];
            signs.iter().filter(|sign| sign.0).map(|sign| sign.1).chain(['.']).collect::<String>()
        };
        ticks.iter().map(|ticks| mark(losses.at(1, *ticks))).collect()
    }

    #[test]
    fn buffers_are_cut_where_records_are_missing() {
        assert_eq!(marks(&[], &[1, 2]), "..");
        // The last record before the gap begins the marked buffer, the first behind it ends it.
        assert_eq!(marks(&[gap(2, 5)], &[1, 2, 5, 6]), ".|e.|..");
        // Another session has records inside.
        assert_eq!(marks(&[gap(2, 5)], &[1, 2, 3, 4, 5]), ".|e.e.e.|.");
        assert_eq!(marks(&[gap(2, 5), gap(3, 7)], &[2, 3, 5, 6, 7]), "|e.e.e.e.|.");
        // One behind the other.
        assert_eq!(marks(&[gap(2, 5), gap(5, 7)], &[2, 5, 7]), "|e.|e.|.");
        assert_eq!(marks(&[gap(2, i64::MAX)], &[1, 2, 9]), ".|e.e.");
        // Nothing is known before the first record: its buffer cannot say more than that.
        assert_eq!(marks(&[gap(i64::MIN, 3)], &[3, 4]), "|b..");
        assert_eq!(marks(&[gap(i64::MIN, 3)], &[1, 3, 4]), "|e.|..");
        assert_eq!(marks(&[gap(2, 2)], &[1, 2, 2, 3]), ".|e.|..");
        // Other processors are none of it.
        assert_eq!(Losses::new(vec![gap(2, 5)]).at(0, 3), Loss::default());
    }
}
