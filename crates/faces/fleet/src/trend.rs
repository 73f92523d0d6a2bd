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

    /// A row's point: its place in the order, and its day or path.
    fn point(self, table: &Table, row: u32) -> (Point, String) {
        let text = |column: &str| table.text(row, column).unwrap_or_default().to_owned();
        match self {
            By::Day => {
                let day = text("captured_day");
                ((number(&day), String::new()), day)
            }
            By::Run => {
                let path = text("path");
                let order = table.i64(row, "captured_unix_ns").unwrap_or(0);
                ((order, format!("{path} {}", text("trace_id"))), path)
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
    let named: Vec<String> = points.values().cloned().collect();
    let named = if by == By::Run { file_names(&named) } else { named };
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
                percent: named.iter().cloned().zip(values).collect(),
            }
        })
        .collect();
    all.sort_by(|a, b| b.mean_percent.total_cmp(&a.mean_percent).then_with(|| a.culprit.cmp(&b.culprit)));
    all
}

/// The names of files, with as much of their folders as tells them apart: each build of a benchmark has its `run1.etl`.
fn file_names(paths: &[String]) -> Vec<String> {
    let mut names: Vec<Option<String>> = vec![None; paths.len()];
    for folders in 0..=MOST_FOLDERS {
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for path in paths {
            *times.entry(end(path, folders)).or_default() += 1;
        }
        for (name, path) in names.iter_mut().zip(paths).filter(|(name, _)| name.is_none()) {
            if times.get(end(path, folders)) == Some(&1) {
                *name = Some(end(path, folders).to_owned());
            }
        }
        if names.iter().all(Option::is_some) {
            break;
        }
    }
    // A path may be there twice, of a file that was replaced.
    names.into_iter().zip(paths).map(|(name, path)| name.unwrap_or_else(|| end(path, 0).to_owned())).collect()
}

/// Folders that a name has at most: the path in a store may be of any length.
const MOST_FOLDERS: usize = 32;
/// Traces may come from any system.
const SEPARATORS: [char; 2] = ['/', '\\'];

/// The name of a file with so many folders.
fn end(path: &str, folders: usize) -> &str {
    let begin = path.rmatch_indices(SEPARATORS).nth(folders).map_or(0, |(at, _)| at + 1);
    path.get(begin..).unwrap_or(path)
}

/// A day as a number of days.
fn number(day: &str) -> i64 {
    let mut parts = day.split('-').map(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().flatten();
    let days = next().zip(next()).zip(next()).and_then(|((y, m), d)| etwhy_base::time::days(y, m, d));
    days.map_or(0, i64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_name_are_told_apart_by_their_folders() {
        let names =
            |paths: &[&str]| file_names(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["/x/run1.etl", "/x/run2.etl"]), ["run1.etl", "run2.etl"]);
        assert_eq!(
            names(&["/x/b1/run1.etl", r"c:\x\b2\run1.etl", "/x/b2/last.etl"]),
            ["b1/run1.etl", r"b2\run1.etl", "last.etl"]
        );
        assert_eq!(names(&["/b/x/run.etl", "/c/x/run.etl"]), ["b/x/run.etl", "c/x/run.etl"]);
        assert_eq!(
            names(&["run.etl", "/run.etl", "/x/a.etl", "/x/a.etl"]),
            ["run.etl", "/run.etl", "a.etl", "a.etl"]
        );
        assert_eq!(names(&[]), Vec::<String>::new());
    }
}
