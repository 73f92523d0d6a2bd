//! Fits of `y = a + b * f` with a, b >= 0 by least relative error.
//!
//! Weights are renewed from the fit (iteratively reweighted least squares): 1 / fit², because costs vary in proportion to
//! their size, times Huber's factor, which keeps an outlier from pulling.

use crate::percentile::{median, weighted_percentile};

/// A fitted line and how far the points are from it.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) a: f64,
    pub(super) b: f64,
    /// log(y / fit), less their median: the model is right up to a factor, which the mean of skewed noise makes.
    pub(super) residuals: Vec<f64>,
    /// Their typical size, by the median: 1.4826 * median of absolute values (of normal noise the standard deviation).
    pub(super) scale: f64,
}

impl Fit {
    /// Typical size of residuals, by their 90th percentile: up to a tenth of the points may be outliers. More are no outliers but
    /// another law, which the median would not see.
    pub(super) fn spread(&self) -> f64 {
        let sizes: Vec<(f64, f64)> = self.residuals.iter().map(|r| (r.abs(), 1.0)).collect();
        // The 90th percentile of the absolute value of a standard normal.
        (weighted_percentile(&sizes, 0.9).unwrap_or(0.0) / 1.645).max(LEAST_SCALE)
    }
}

/// Most rounds of reweighting. They settle within some six.
const ROUNDS: usize = 12;
/// Huber's constant: 95 % efficient for normal noise.
const HUBER: f64 = 1.345;
/// Residuals below this are equal: costs are counted in whole units.
pub(super) const LEAST_SCALE: f64 = 1e-3;

/// Fits `y`, all positive, on `f`, all finite; `w` are weights. `f` of all zeros fits a constant.
pub(super) fn affine(f: &[f64], y: &[f64], w: &[f64]) -> Fit {
    // So that powers of large n stay far from the limits of numbers.
    let top = f.iter().fold(0.0_f64, |top, f| top.max(f.abs())).max(f64::MIN_POSITIVE);
    let mut fitted = y.to_vec();
    let mut trust = vec![1.0; y.len()];
    let (mut a, mut b) = (0.0, 0.0);
    let mut fit = Fit { a, b, residuals: Vec::new(), scale: 0.0 };
    for round in 0..ROUNDS {
        let (mut s, mut sf, mut sff, mut sy, mut sfy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for ((((&f, &y), &w), &fitted), &trust) in f.iter().zip(y).zip(w).zip(&fitted).zip(&trust) {
            let (f, u) = (f / top, w * trust / (fitted * fitted));
            s += u;
            sf += u * f;
            sff += u * f * f;
            sy += u * y;
            sfy += u * f * y;
        }
        let det = s * sff - sf * sf;
        let mean = if s > 0.0 { sy / s } else { 0.0 };
        (a, b) = if det > 1e-12 * s * sff && det.is_finite() {
            ((sff * sy - sf * sfy) / det, (s * sfy - sf * sy) / det)
        } else {
            (mean, 0.0)
        };
        if b < 0.0 {
            (a, b) = (mean, 0.0);
        } else if a < 0.0 {
            (a, b) = (0.0, if sff > 0.0 { sfy / sff } else { 0.0 });
        }
        let least = y.iter().copied().fold(f64::INFINITY, f64::min) * 1e-3;
        for (fitted, f) in fitted.iter_mut().zip(f) {
            *fitted = (a + b * f / top).max(least);
        }
        let mut logs: Vec<f64> = y.iter().zip(&fitted).map(|(y, fitted)| (y / fitted).ln()).collect();
        let middle = median(&mut logs.clone()).unwrap_or(0.0);
        logs.iter_mut().for_each(|r| *r -= middle);
        let mut sizes: Vec<f64> = logs.iter().map(|r| r.abs()).collect();
        let scale = (1.4826 * median(&mut sizes).unwrap_or(0.0)).max(LEAST_SCALE);
        if round > 1 {
            for (trust, r) in trust.iter_mut().zip(&logs) {
                *trust = (HUBER * scale / r.abs().max(f64::MIN_POSITIVE)).min(1.0);
            }
        }
        let settled = round > 3 && near(fit.a, a) && near(fit.b, b / top);
        fit = Fit { a, b: b / top, residuals: logs, scale };
        if settled {
            break;
        }
    }
    fit
}

fn near(old: f64, new: f64) -> bool {
    (old - new).abs() <= 1e-5 * new.abs()
}

/// Where a point is an outlier, in units of the best model's scale.
const CUT: f64 = 3.0;

/// How far points are trusted when models are compared: those far from the best model, by its `residuals` and their `scale`, count as
/// if they were three scales away from it. The same for all models, so an outlier speaks for none, and a model that is wrong
/// everywhere pays in full.
pub(super) fn trust(residuals: &[f64], w: &[f64], scale: f64) -> Vec<f64> {
    let share = |r: &f64| (CUT * scale / r.abs().max(f64::MIN_POSITIVE)).min(1.0).powi(2);
    residuals.iter().zip(w).map(|(r, w)| w * share(r)).collect()
}

/// Mean square of residuals; `trust` from [`trust`], `w` the weights.
pub(super) fn mean_square(residuals: &[f64], trust: &[f64], w: &[f64]) -> f64 {
    let sum: f64 = residuals.iter().zip(trust).map(|(r, trust)| trust * r * r).sum();
    let weight: f64 = w.iter().sum();
    (sum / weight.max(f64::MIN_POSITIVE)).max(LEAST_SCALE * LEAST_SCALE)
}

/// Akaike's criterion, corrected for few points: smaller is better. `points` may be fewer than there are, where neighbours
/// depend on each other.
pub(super) fn aicc(mean_square: f64, points: f64, parameters: f64) -> f64 {
    let rest = (points - parameters - 1.0).max(0.5);
    points * mean_square.ln() + 2.0 * parameters + 2.0 * parameters * (parameters + 1.0) / rest
}

/// Autocorrelation that is believed: with more hardly a point would be left to judge by.
const MOST_CORRELATED: f64 = 0.7;

/// How much each residual tells of the next one: lag-1 autocorrelation, 0 to 0.7.
pub(super) fn autocorrelation(residuals: &[f64], scale: f64) -> f64 {
    let cut = |r: &f64| r.clamp(-CUT * scale, CUT * scale);
    let square: f64 = residuals.iter().map(|r| cut(r).powi(2)).sum();
    let product: f64 = residuals.iter().zip(residuals.iter().skip(1)).map(|(a, b)| cut(a) * cut(b)).sum();
    // What is left of exact data is rounding, which is no dependence.
    let rounding = residuals.len() as f64 * LEAST_SCALE * LEAST_SCALE;
    let r = (product / (square + rounding)).clamp(0.0, MOST_CORRELATED);
    // Independent values show as much in one of twenty cases.
    if r > 1.645 / (residuals.len() as f64).sqrt() { r } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_data_gives_the_exact_line() {
        let f: Vec<f64> = (1..=30).map(f64::from).collect();
        let y: Vec<f64> = f.iter().map(|f| 25.0 + 0.08 * f).collect();
        let fit = affine(&f, &y, &[1.0; 30]);
        assert!((fit.a - 25.0).abs() < 1e-6 && (fit.b - 0.08).abs() < 1e-8, "{fit:?}");
    }

    #[test]
    fn outliers_do_not_pull() {
        let f: Vec<f64> = (1..=40).map(f64::from).collect();
        let mut y: Vec<f64> = f.iter().map(|f| 10.0 + f).collect();
        y[3] *= 50.0;
        y[37] *= 50.0;
        let fit = affine(&f, &y, &[1.0; 40]);
        assert!((fit.a - 10.0).abs() < 0.5 && (fit.b - 1.0).abs() < 0.05, "{fit:?}");
    }

    #[test]
    fn nothing_is_negative() {
        let f: Vec<f64> = (1..=30).map(f64::from).collect();
        let falling: Vec<f64> = f.iter().map(|f| 100.0 - f).collect();
        let fit = affine(&f, &falling, &[1.0; 30]);
        assert!(fit.b == 0.0 && fit.a > 70.0 && fit.a < 99.0);
        let square: Vec<f64> = f.iter().map(|f| f * f).collect();
        assert_eq!(affine(&f, &square, &[1.0; 30]).a, 0.0);
    }
}
