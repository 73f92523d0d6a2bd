//! How the cost of culprits goes over the days.

use etwhy_stats::rank::mann_kendall;
use etwhy_table::Table;
use std::collections::{BTreeMap, BTreeSet};

/// Chance of naming a trend that is none, over all culprits.
const FALSE_ALARMS: f64 = 0.05;

/// A culprit over the days.
#[derive(Clone, Debug)]
pub struct Course {
    /// machine, process, driver, product or category.
    pub kind: String,
    /// Its name.
    pub culprit: String,
    /// Share of the time on each day that could tell, in per cent, in the order of the days.
    pub percent: Vec<(String, f64)>,
    /// Mean of the days.
    pub mean_percent: f64,
    /// Change for each day (Theil and Sen), in per cent of the time; `None` for fewer than three days.
    pub slope: Option<f64>,
    /// It rises or falls, also when all culprits are looked at.
    pub certain: bool,
}

/// The courses of a kind of view `trend`, the costliest first. A day that could tell and has no row of a culprit has none of it.
pub fn courses(table: &Table, kind: &str) -> Vec<Course> {
    let mut days: BTreeSet<String> = BTreeSet::new();
    let mut shares: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for row in 0..u32::try_from(table.rows()).unwrap_or(u32::MAX) {
        let text = |column: &str| table.text(row, column).unwrap_or_default().to_owned();
        if text("kind") != kind {
            continue;
        }
        days.insert(text("captured_day"));
        let of = shares.entry(text("culprit")).or_default();
        of.insert(text("captured_day"), table.f64(row, "share_percent").unwrap_or(0.0));
    }
    let compared = shares.len().max(1) as f64;
    let mut all: Vec<Course> = shares
        .into_iter()
        .map(|(culprit, of)| {
            let percent: Vec<(String, f64)> =
                days.iter().map(|day| (day.clone(), of.get(day).copied().unwrap_or(0.0))).collect();
            let points: Vec<(f64, f64)> = percent.iter().map(|(day, share)| (number(day), *share)).collect();
            let trend = mann_kendall(&points);
            Course {
                kind: kind.to_owned(),
                culprit,
                mean_percent: percent.iter().map(|(_, share)| share).sum::<f64>()
                    / percent.len().max(1) as f64,
                slope: trend.map(|trend| trend.slope),
                certain: trend.is_some_and(|trend| trend.p < FALSE_ALARMS / compared),
                percent,
            }
        })
        .collect();
    all.sort_by(|a, b| b.mean_percent.total_cmp(&a.mean_percent).then_with(|| a.culprit.cmp(&b.culprit)));
    all
}

/// A day as a number of days.
fn number(day: &str) -> f64 {
    let mut parts = day.split('-').map(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().flatten();
    let days = next().zip(next()).zip(next()).and_then(|((y, m), d)| etwhy_base::time::days(y, m, d));
    days.map_or(0.0, |days| days as f64)
}
