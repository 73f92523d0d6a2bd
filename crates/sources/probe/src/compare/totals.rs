//! What many operations cost together: means with an interval.
//!
//! A median times a number is no total: where one operation in ten waits for a scanner, the median does not know of it. Totals are means
//! of *all* operations, and their interval comes from drawing rounds anew (bootstrap), as pairs where they are pairs. Of few rounds the
//! middle 95 % of draws are too narrow; the ends go outwards by what Student's t adds to the normal distribution and by the lost degree of freedom
//! (Hesterberg, *What Teachers Should Know About the Bootstrap*, 2015, 3.2.1: expanded percentiles).

use super::cells::{Cell, Cells};
use super::family;
use crate::summary::CONFIDENCE;
use etwhy_stats::Interval;
use etwhy_stats::normal::{above, quantile};
use etwhy_stats::resample::Bootstrap;

/// Enough that the far ends of the expanded interval (1 in 400 for six rounds) are not single draws; more take time only.
const DRAWS: usize = 1_000;

/// By how much a mean of all operations is more after than before. Absent if a round does not tell it.
pub(super) fn more(
    before: &Cells,
    after: &Cells,
    paired: bool,
    of: fn(&Cell) -> Option<f64>,
) -> Option<Interval> {
    let [b, a] = [before, after].map(|side| {
        side.rounds
            .values()
            .map(|cell| Some((of(cell)?, cell.operations)))
            .collect::<Option<Vec<(f64, f64)>>>()
    });
    let (b, a) = (b?, a?);
    let rounds = b.len().min(a.len());
    let bootstrap = Bootstrap { draws: DRAWS, confidence: expanded(rounds), ..Bootstrap::default() };
    // Rounds are drawn by their numbers.
    let numbers = |side: &[(f64, f64)]| (0..side.len()).map(|at| at as f64).collect::<Vec<f64>>();
    if paired {
        return bootstrap.interval(&numbers(&b), |drawn| mean(&a, drawn) - mean(&b, drawn));
    }
    let i = bootstrap
        .of_two(&numbers(&b), &numbers(&a), |b_drawn, a_drawn| mean(&a, a_drawn) - mean(&b, b_drawn))?;
    // Rounds of one file resemble each other.
    let end = |end: f64| i.value + family::caution(rounds) * (end - i.value);
    Some(Interval { value: i.value, low: end(i.low), high: end(i.high) })
}

/// The mean of all operations of the rounds that were drawn.
fn mean(rounds: &[(f64, f64)], drawn: &[f64]) -> f64 {
    let chosen = drawn.iter().filter_map(|at| rounds.get(*at as usize));
    let (sum, count) = chosen.fold((0.0, 0.0), |(sum, count), (mean, n)| (sum + mean * n, count + n));
    sum / count
}

/// How sure the bootstrap must be asked to be, so that its interval of few rounds holds as often as it says.
fn expanded(rounds: usize) -> f64 {
    let n = rounds as f64;
    let z = quantile(f64::midpoint(1.0, CONFIDENCE));
    1.0 - 2.0 * above(student(z, n - 1.0) * (n / (n - 1.0)).sqrt())
}

/// Student's quantile from the normal one: Abramowitz and Stegun 26.7.5.
fn student(z: f64, freedom: f64) -> f64 {
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_base::rng::Rng;

    #[test]
    fn quantiles_are_those_of_the_table() {
        for (freedom, quantile) in [(5.0, 2.571), (9.0, 2.262), (30.0, 2.042)] {
            assert!((student(1.959_964, freedom) - quantile).abs() < 0.005, "{freedom}");
        }
    }

    fn cells(rng: &mut Rng, rounds: u32, more: f64) -> Cells {
        let mut cells = Cells { unit: "ns".into(), ..Cells::default() };
        for round in 0..rounds {
            // One operation in twenty takes fifty times as long.
            let operations = 200.0;
            let slow = (0..200).filter(|_| rng.uniform() < 0.05).count() as f64;
            let mean = (operations + slow * 49.0) / operations * (0.1 * rng.normal()).exp() + more;
            cells.rounds.insert((0, round), Cell { typical: 1.0, mean, operations, ..Cell::default() });
        }
        cells
    }

    #[test]
    fn totals_with_rare_slow_operations_hold_the_truth() {
        let mut rng = Rng::new(9);
        for (paired, rounds) in [(true, 6), (true, 10), (false, 6)] {
            let trials = 120;
            let held = (0..trials).filter(|_| {
                let (before, after) = (cells(&mut rng, rounds, 0.0), cells(&mut rng, rounds, 2.0));
                more(&before, &after, paired, |cell| Some(cell.mean)).unwrap().holds(2.0)
            });
            let share = held.count() as f64 / f64::from(trials);
            assert!(share >= 0.9, "paired {paired}, {rounds} rounds: {share}");
        }
    }
}
