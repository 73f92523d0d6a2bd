//! How the cost of culprits goes over days, or over the runs of a benchmark.

use etwhy_stats::FALSE_ALARMS;
use etwhy_stats::rank::mann_kendall;
pub use etwhy_stats::steps::Step;
use etwhy_stats::steps::steps;
use etwhy_table::Table;
use std::collections::BTreeMap;

/// What a point of a course is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// All traces of a day, UTC.
    Day,
    /// A trace.
    Run,
}

impl By {
    /// The view that has the points.
    pub fn view(self) -> &'static str {
        match self {
            By::Day => "trend",
            By::Run => "runs",
        }
    }

    /// A row's point: its place in the order, and what it is called.
    fn point(self, table: &Table, row: u32) -> (Point, String) {
        let text = |column: &str| table.text(row, column).unwrap_or_default().to_owned();
        match self {
            By::Day => {
                let day = text("captured_day");
                ((number(&day), String::new()), day)
            }
            By::Run => {
                let path = text("path");
                let name = path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
                let order = table.i64(row, "captured_unix_ns").unwrap_or(0);
                ((order, format!("{path} {}", text("trace_id"))), name)
            }
        }
    }
}

/// Day, or nanosecond with file and trace: runs may begin at the same tick.
type Point = (i64, String);

/// A culprit over days or runs.
#[derive(Clone, Debug)]
pub struct Course {
    /// machine, process, driver, product or category.
    pub kind: String,
    /// Its name.
    pub culprit: String,
    /// Share of the time at each point that could tell, in per cent, in order.
    pub percent: Vec<(String, f64)>,
    /// Mean of the points.
    pub mean_percent: f64,
    /// Change for each day or run (Theil and Sen), in per cent of the time; `None` for fewer than three points.
    pub slope: Option<f64>,
    /// It rises or falls, also when all culprits are looked at.
    pub certain: bool,
    /// Where the level changes, also when all culprits are looked at.
    pub steps: Vec<Step>,
}

/// The courses of a kind, the costliest first. A point that could tell and has no row of a culprit has none of it.
pub fn courses(table: &Table, kind: &str, by: By) -> Vec<Course> {
    let mut points: BTreeMap<Point, String> = BTreeMap::new();
    let mut shares: BTreeMap<String, BTreeMap<Point, f64>> = BTreeMap::new();
    for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
        if table.text(row, "kind") != Some(kind) {
            continue;
        }
        let (point, name) = by.point(table, row);
        let culprit = table.text(row, "culprit").unwrap_or_default().to_owned();
        points.insert(point.clone(), name);
        shares.entry(culprit).or_default().insert(point, table.f64(row, "share_percent").unwrap_or(0.0));
    }
    let alpha = FALSE_ALARMS / shares.len().max(1) as f64;
    let mut all: Vec<Course> = shares
        .into_iter()
        .map(|(culprit, of)| {
            let values: Vec<f64> = points.keys().map(|point| of.get(point).copied().unwrap_or(0.0)).collect();
            let place = |at: usize, point: &Point| if by == By::Day { point.0 as f64 } else { at as f64 };
            let placed = points.keys().enumerate().zip(&values);
            let trend =
                mann_kendall(&placed.map(|((at, point), v)| (place(at, point), *v)).collect::<Vec<_>>());
            Course {
                kind: kind.to_owned(),
                culprit,
                mean_percent: values.iter().sum::<f64>() / values.len().max(1) as f64,
                slope: trend.map(|trend| trend.slope),
                certain: trend.is_some_and(|trend| trend.p < alpha),
                steps: steps(&values, alpha),
                percent: points.values().cloned().zip(values).collect(),
            }
        })
        .collect();
    all.sort_by(|a, b| b.mean_percent.total_cmp(&a.mean_percent).then_with(|| a.culprit.cmp(&b.culprit)));
    all
}

/// A day as a number of days.
fn number(day: &str) -> i64 {
    let mut parts = day.split('-').map(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().flatten();
    let days = next().zip(next()).zip(next()).and_then(|((y, m), d)| etwhy_base::time::days(y, m, d));
    days.map_or(0, i64::from)
}
