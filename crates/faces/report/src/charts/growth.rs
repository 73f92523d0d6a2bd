//! Growth curves: what one more call costs, against the number of earlier calls or their size.

use etwhy_table::{Database, RowOf, Rows};
use etwhy_trace::catalog::growth::{GrowthPointRow, GrowthRow};
use serde::Serialize;

/// A growth law with what it was fitted to: a row of the table `growth`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GrowthCurve {
    /// What is called.
    pub operation: String,
    /// Image name of the process that calls it, or of those that were started.
    pub name: String,
    /// What n is: calls (the number of the call, from 1) or size_bytes.
    pub predictor: String,
    /// super_linear, slight, logarithmic, linear or with_time.
    pub verdict: String,
    /// What the verdict says, in words.
    pub why: String,
    /// Law of one call: 1, log n, n^0.5, n, n log n, n^1.5, n^2 or n^3.
    pub model: String,
    /// Law of all calls together.
    pub total_model: String,
    /// Weight of the law among those compared, 0 to 1.
    pub weight: Option<f64>,
    /// Offset: cost of a call is a + b * f(n), ns.
    pub a: Option<f64>,
    /// Factor of the law, ns.
    pub b: Option<f64>,
    /// Exponent p of a + b * n^p, cost of one call; null if it does not grow.
    pub exponent: Option<f64>,
    /// Lower end of its 95 % interval.
    pub exponent_low: Option<f64>,
    /// Upper end.
    pub exponent_high: Option<f64>,
    /// What all calls cost.
    pub total_ns: i64,
    /// Of that, what they would not have cost if each had cost as much as the first ones.
    pub excess_ns: Option<i64>,
    /// Cost of a call at ten times the largest n, by the law.
    pub cost_10x_ns: Option<f64>,
    /// Function that holds the growth, by samples.
    pub function: Option<String>,
    /// Who calls it.
    pub caller: Option<String>,
    /// What was measured: rows of the table `growth_point`.
    pub points: Vec<GrowthPoint>,
}

/// Calls in a bin of n.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthPoint {
    /// Middle of the bin: the n that the law is fitted to.
    pub n_mid: f64,
    /// Typical cost of a call (geometric mean).
    pub cost_ns: f64,
    /// Cost of a call by the law.
    pub fit_ns: Option<f64>,
    /// Calls in the bin.
    pub calls: i64,
}

/// Points of a curve that are kept.
const POINTS: usize = 100;
/// Verdicts that are worth a chart, worst first.
const VERDICTS: [&str; 5] = ["super_linear", "with_time", "linear", "logarithmic", "slight"];

/// The `curves` worst laws that have points: by verdict, then by what growth cost.
pub(super) fn read(db: &Database, curves: usize) -> Vec<GrowthCurve> {
    let (growth, points) = (db.read_or_empty::<GrowthRow>(), db.read_or_empty::<GrowthPointRow>());
    let mut all: Vec<(usize, GrowthCurve)> = growth
        .iter()
        .filter_map(|row| {
            Some((VERDICTS.iter().position(|known| *known == row.verdict())?, curve(row, &points)))
        })
        .filter(|(_, curve)| !curve.points.is_empty())
        .collect();
    all.sort_by(|(x, a), (y, b)| {
        x.cmp(y)
            .then_with(|| b.excess_ns.unwrap_or(0).cmp(&a.excess_ns.unwrap_or(0)))
            .then_with(|| b.total_ns.cmp(&a.total_ns))
            .then_with(|| (&a.operation, &a.name).cmp(&(&b.operation, &b.name)))
    });
    all.into_iter().take(curves).map(|(_, curve)| curve).collect()
}

fn curve(growth: RowOf<'_, '_, GrowthRow>, points: &Rows<'_, GrowthPointRow>) -> GrowthCurve {
    let own = |text: Option<&str>| text.map(str::to_owned);
    let mut points: Vec<GrowthPoint> = points
        .iter()
        .filter(|point| point.growth_id() == growth.growth_id())
        .take(POINTS)
        .map(|point| GrowthPoint {
            n_mid: point.n_mid(),
            cost_ns: point.cost_ns(),
            fit_ns: Some(point.fit_ns()),
            calls: point.calls(),
        })
        .collect();
    points.sort_by(|a, b| a.n_mid.total_cmp(&b.n_mid));
    GrowthCurve {
        operation: growth.operation().to_owned(),
        name: growth.name().to_owned(),
        predictor: growth.predictor().to_owned(),
        verdict: growth.verdict().to_owned(),
        why: growth.why().to_owned(),
        model: growth.model().to_owned(),
        total_model: growth.total_model().to_owned(),
        weight: Some(growth.weight()),
        a: Some(growth.a()),
        b: Some(growth.b()),
        exponent: growth.exponent(),
        exponent_low: growth.exponent_low(),
        exponent_high: growth.exponent_high(),
        total_ns: growth.total_ns(),
        excess_ns: growth.excess_ns(),
        cost_10x_ns: Some(growth.cost_10x_ns()),
        function: own(growth.function()),
        caller: own(growth.caller()),
        points,
    }
}
