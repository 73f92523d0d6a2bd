//! Explanations of rising costs that are no growth: they rose at once, or with time.

use super::fit::{Fit, affine};
use super::point::Point;
use crate::percentile::median;

/// Points that each side of a step must have.
const SIDE: usize = 3;

/// Residuals of the best step: one level up to some point, another one behind it. `None` for too few points.
pub(super) fn step(y: &[f64]) -> Option<Vec<f64>> {
    let logs: Vec<f64> = y.iter().map(|y| y.ln()).collect();
    let level = |part: &[f64]| median(&mut part.to_vec()).unwrap_or(0.0);
    let residuals = |at: usize| -> Vec<f64> {
        let (left, right) = logs.split_at(at);
        let (l, r) = (level(left), level(right));
        left.iter().map(|v| v - l).chain(right.iter().map(|v| v - r)).collect()
    };
    let size = |at: usize| residuals(at).iter().map(|r| r.abs()).sum::<f64>();
    let last = logs.len().checked_sub(SIDE)?;
    let sizes = (SIDE..=last).map(|at| (size(at), at));
    let best = sizes.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(residuals(best.1))
}

/// Fits of the two ways in which costs drift: in a straight line with time, and by the same factor in equal times.
/// `None` if a point has no time, or all have the same.
pub(super) fn drift(points: &[Point], y: &[f64], w: &[f64]) -> Option<[Fit; 2]> {
    let times: Vec<f64> = points.iter().map(|p| p.time.filter(|t| t.is_finite())).collect::<Option<_>>()?;
    let (first, last) =
        times.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &t| (l.min(t), h.max(t)));
    if last <= first {
        return None;
    }
    let since: Vec<f64> = times.iter().map(|t| (t - first) / (last - first)).collect();
    Some([affine(&since, y, w), exponential(&since, y)])
}

/// log y = c + d t, by Theil and Sen.
fn exponential(t: &[f64], y: &[f64]) -> Fit {
    let points: Vec<(f64, f64)> = t.iter().zip(y).map(|(&t, y)| (t, y.ln())).collect();
    let slope = crate::rank::mann_kendall(&points).map_or(0.0, |trend| trend.slope.max(0.0));
    let mut residuals: Vec<f64> = points.iter().map(|(t, log)| log - slope * t).collect();
    let middle = median(&mut residuals.clone()).unwrap_or(0.0);
    residuals.iter_mut().for_each(|r| *r -= middle);
    let scale = 1.4826 * median(&mut residuals.iter().map(|r| r.abs()).collect::<Vec<f64>>()).unwrap_or(0.0);
    Fit { a: middle.exp(), b: slope, residuals, scale: scale.max(super::fit::LEAST_SCALE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_where_it_is() {
        let y: Vec<f64> = (0..20).map(|i| if i < 13 { 5.0 } else { 50.0 }).collect();
        assert!(step(&y).unwrap().iter().all(|r| r.abs() < 1e-12));
        assert_eq!(step(&[1.0, 2.0]), None);
    }

    #[test]
    fn drift_needs_times() {
        let point = |n: f64, time| Point { n, cost: 1.0 + n, weight: 1.0, time };
        let with: Vec<Point> = (0..30).map(|i| point(f64::from(i), Some(f64::from(i)))).collect();
        let y: Vec<f64> = with.iter().map(|p| p.cost).collect();
        let [line, _] = drift(&with, &y, &[1.0; 30]).unwrap();
        assert!(line.residuals.iter().all(|r| r.abs() < 1e-9));
        assert!(drift(&[point(1.0, None), point(2.0, Some(1.0))], &[1.0, 2.0], &[1.0; 2]).is_none());
        assert!(drift(&[point(1.0, Some(1.0)), point(2.0, Some(1.0))], &[1.0, 2.0], &[1.0; 2]).is_none());
    }
}
