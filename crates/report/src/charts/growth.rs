//! Growth curves: cost per call against the number of earlier calls.

use etwhy_table::{Database, Table};
use serde::Serialize;

/// A cost that was fitted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GrowthCurve {
    /// What is called.
    pub operation: String,
    /// By whom; null for all together.
    pub process: Option<String>,
    /// The model that fits best: 1, log n, n, n log n, n^1.5, n^2, n^3.
    pub model: String,
    /// Cost per call at the start: `a` of a + b·f(n).
    pub offset_ns: Option<f64>,
    /// What it grows by: `b`.
    pub slope_ns: Option<f64>,
    /// Exponent of growth.
    pub exponent: Option<f64>,
    /// Lower end of its confidence interval.
    pub exponent_low: Option<f64>,
    /// Upper end of it.
    pub exponent_high: Option<f64>,
    /// How sure the model is, 0 to 1.
    pub weight: Option<f64>,
    /// What a call will cost at ten times the count.
    pub at_ten_times_ns: Option<f64>,
    /// What was measured.
    pub points: Vec<GrowthPoint>,
}

/// Calls in a class of earlier calls.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthPoint {
    /// Earlier calls, in the middle of the class.
    pub n: f64,
    /// Cost of a call.
    pub cost_ns: f64,
    /// The fitted cost, where the table has it.
    pub fit_ns: Option<f64>,
    /// Calls in the class.
    pub calls: i64,
}

/// Curves kept in a report have this many points at most.
const POINTS: usize = 100;

/// The first `curves` rows of `growth`, with their points.
pub(super) fn read(db: &Database, curves: usize) -> Vec<GrowthCurve> {
    let (Some(growth), Some(points)) = (db.get("growth"), db.get("growth_point")) else {
        return Vec::new();
    };
    (0..growth.rows() as u32).take(curves).map(|row| curve(growth, points, row)).collect()
}

fn curve(growth: &Table, points: &Table, row: u32) -> GrowthCurve {
    let text = |column: &str| growth.text(row, column).map(str::to_owned);
    let number = |column: &str| growth.f64(row, column);
    let id = growth.i64(row, "growth_id");
    let own = |point: &u32| points.i64(*point, "growth_id") == id;
    GrowthCurve {
        operation: text("operation").unwrap_or_default(),
        process: text("process"),
        model: text("model").unwrap_or_default(),
        offset_ns: number("offset_ns"),
        slope_ns: number("slope_ns"),
        exponent: number("exponent"),
        exponent_low: number("exponent_low"),
        exponent_high: number("exponent_high"),
        weight: number("weight"),
        at_ten_times_ns: number("at_ten_times_ns"),
        points: (0..points.rows() as u32)
            .filter(own)
            .take(POINTS)
            .map(|point| GrowthPoint {
                n: points.f64(point, "n_mid").unwrap_or(0.0),
                cost_ns: points.f64(point, "cost_ns").unwrap_or(0.0),
                fit_ns: points.f64(point, "fit_ns"),
                calls: points.i64(point, "calls").unwrap_or(0),
            })
            .collect(),
    }
}
