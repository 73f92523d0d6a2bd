//! When it happened: the shortest stretch of a trace that holds most of what somebody cost.
//!
//! # How it is computed
//!
//! Rows of the culprit (CPU samples of a process, samples and DPCs of a driver, operations on a file) are added up in [`BINS`] equal
//! bins of the trace. Of all stretches that hold at least [`MOST`] of the sum the shortest one is taken, with a bin more on either
//! side.
//!
//! # What fools it
//!
//! Two bursts far from each other are one stretch with a quiet middle. Who works evenly has no episode: a stretch that covers nearly
//! the whole trace says nothing, and none is told.

use super::interrupts::{Class, each_interrupt};
use etwhy_trace::catalog::{dpc::DpcRow, file_io::FileIoRow, sample::SampleRow};

use etwhy_sql::matching::stacks_with;
use etwhy_table::Database;

/// Who did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// A process, by `upid`.
    Process(i64),
    /// A module: its own DPCs and ISRs, and samples that have it on the stack.
    Module(String),
    /// A processor.
    Cpu(i64),
    /// A file, by path.
    Path(String),
}

/// Bins of the whole trace.
pub const BINS: usize = 2_000;
/// Share of the sum that an episode holds. A definition, not a measurement: 19 of 20 parts.
pub const MOST: f64 = 0.95;
/// What covers more of the trace than this is no episode.
pub const TOO_LONG: f64 = 0.9;

/// Sums in bins.
struct Bins {
    first_ns: i64,
    span: i64,
    sums: Vec<f64>,
}

impl Bins {
    fn add(&mut self, ts: i64, weight: i64) {
        let Some(after) = ts.checked_sub(self.first_ns).filter(|after| *after >= 0) else {
            return;
        };
        let bin = (i128::from(after) * BINS as i128 / i128::from(self.span)) as usize;
        if let Some(sum) = self.sums.get_mut(bin) {
            *sum += weight.max(0) as f64;
        }
    }
}

/// The stretch `[from, to)` of a trace from `first_ns` to `last_ns` in which it happened; `None` if it happened all the time, or never.
pub fn episode(db: &Database, first_ns: i64, last_ns: i64, who: &Who) -> Option<(i64, i64)> {
    let span = last_ns.checked_sub(first_ns).filter(|span| *span >= BINS as i64)?;
    let mut bins = Bins { first_ns, span, sums: vec![0.0; BINS] };
    match who {
        Who::Process(upid) => {
            for row in db.read_or_empty::<SampleRow>().iter().filter(|&row| row.upid() == Some(*upid)) {
                bins.add(row.ts_ns(), row.weight_ns());
            }
        }
        Who::Cpu(cpu) => {
            for row in db.read_or_empty::<DpcRow>().iter().filter(|&row| row.cpu() == *cpu) {
                bins.add(row.ts_ns(), row.exclusive_ns());
            }
        }
        Who::Module(module) => {
            for class in Class::ALL {
                each_interrupt(db, class, |row| {
                    if row.module.eq_ignore_ascii_case(module) {
                        bins.add(row.ts_ns, row.exclusive_ns);
                    }
                });
            }
            if bins.sums.iter().all(|sum| *sum == 0.0) {
                let stacks = stacks_with(db, module);
                for row in &db.read_or_empty::<SampleRow>() {
                    let stack = row.stack_id().and_then(|n| usize::try_from(n).ok());
                    if stack.and_then(|n| stacks.get(n)) == Some(&true) {
                        bins.add(row.ts_ns(), row.weight_ns());
                    }
                }
            }
        }
        Who::Path(path) => {
            for row in db.read_or_empty::<FileIoRow>().iter().filter(|&row| row.path() == Some(path)) {
                if let Some(ts) = row.ts_ns() {
                    bins.add(ts, row.dur_ns().unwrap_or(1));
                }
            }
        }
    }
    let (from, to) = shortest(&bins.sums)?;
    let (from, to) = (from.saturating_sub(1), (to + 1).min(BINS));
    if (to - from) as f64 > TOO_LONG * BINS as f64 {
        return None;
    }
    let edge = |bin: usize| first_ns.saturating_add((i128::from(span) * bin as i128 / BINS as i128) as i64);
    Some((edge(from), edge(to).max(edge(from).saturating_add(1))))
}

/// The shortest run of bins that holds [`MOST`] of all.
fn shortest(sums: &[f64]) -> Option<(usize, usize)> {
    let all: f64 = sums.iter().sum();
    if all <= 0.0 {
        return None;
    }
    let (mut best, mut from, mut held) = (None::<(usize, usize)>, 0, 0.0);
    for (to, sum) in sums.iter().enumerate() {
        held += sum;
        while let Some(first) = sums.get(from).filter(|first| from < to && held - **first >= MOST * all) {
            held -= first;
            from += 1;
        }
        if held >= MOST * all && best.is_none_or(|(a, b)| to + 1 - from < b - a) {
            best = Some((from, to + 1));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::tests::table;
    use etwhy_table::Value;

    #[test]
    fn the_shortest_run_is_found() {
        assert_eq!(shortest(&[1.0, 0.0, 50.0, 49.0, 0.0]), Some((2, 4)));
        assert_eq!(shortest(&[0.0, 0.0]), None);
        assert_eq!(shortest(&[5.0]), Some((0, 1)));
    }

    #[test]
    fn a_burst_is_an_episode_and_steady_work_is_none() {
        let mut db = Database::new();
        let burst = (500..600).map(|ms| (ms, 1));
        let steady = (0..1_000).map(|ms| (ms, 2));
        let rows: Vec<Vec<Value<'_>>> = burst
            .chain(steady)
            .map(|(ms, upid)| vec![Value::I64(ms * 1_000_000), Value::I64(upid), Value::I64(1_000_000)])
            .collect();
        db.insert(table("sample", "ts_ns upid weight_ns", &rows));
        let (from, to) = episode(&db, 0, 1_000_000_000, &Who::Process(1)).unwrap();
        assert!(
            (495_000_000..=506_000_000).contains(&from) && (594_000_000..=601_000_000).contains(&to),
            "{from} {to}"
        );
        assert_eq!(episode(&db, 0, 1_000_000_000, &Who::Process(2)), None);
        assert_eq!(episode(&db, 0, 1_000_000_000, &Who::Process(3)), None);
    }
}
