//! Any table or view, before and after.
//!
//! # How it is computed
//!
//! Rows are added up by the text columns (names, kinds, paths); of numbers those are compared that can be added: times, bytes,
//! counts. Times become shares of the observed time of the processors, bytes and counts become rates. Ids mean nothing in another trace and
//! are left out.

use super::scale::{Observed, Scale};
use etwhy_table::{Role, Table, Unit};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One line: a key and a figure of it in each trace.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Values of the key columns.
    pub key: Vec<String>,
    /// Column that was added up.
    pub metric: String,
    /// Sums, one for each trace, in the column's unit.
    pub sums: Vec<f64>,
    /// Normalised: shares of the observed time of the processors for times, per second for others.
    pub normal: Vec<f64>,
    /// Normalised, each other trace divided by the first; none if that is nothing.
    pub ratios: Vec<Option<f64>>,
    /// Sums of the whole runs, each other trace divided by the first; none if that is nothing.
    pub run_ratios: Vec<Option<f64>>,
}

/// Compares the same table of several traces. `keys` and `metrics` choose columns; empty ones are chosen by role.
///
/// # Errors
/// If a column is not there, or nothing can be added up.
pub fn compare(
    tables: &[&Table],
    scales: &[Scale],
    keys: &[String],
    metrics: &[String],
) -> Result<(Vec<String>, Vec<Line>), String> {
    let Some(first) = tables.first() else { return Ok((Vec::new(), Vec::new())) };
    let spec = first.spec();
    let observed = Observed::by_table(&spec.name);
    let known = |name: &String| match spec.column(name) {
        Some(_) => Ok(name.clone()),
        None => Err(format!("`{}` has no column `{name}`", spec.name)),
    };
    let keys: Vec<String> = if keys.is_empty() {
        let key =
            |c: &&etwhy_table::ColumnSpec| c.ty.is_text() && !matches!(c.role, Role::Message | Role::Guid);
        spec.columns.iter().filter(key).map(|c| c.name.to_string()).collect()
    } else {
        keys.iter().map(known).collect::<Result<_, _>>()?
    };
    let metrics: Vec<String> = if metrics.is_empty() {
        spec.columns.iter().filter(|c| can_be_added(c)).map(|c| c.name.to_string()).collect()
    } else {
        metrics.iter().map(known).collect::<Result<_, _>>()?
    };
    if metrics.is_empty() {
        return Err(format!("`{}` has no numbers that can be added up; name them with --metric", spec.name));
    }
    let sums: Vec<_> = tables.iter().map(|table| add_up(table, &keys, &metrics)).collect();
    let all: BTreeSet<&Vec<String>> = sums.iter().flat_map(BTreeMap::keys).collect();
    let mut lines = Vec::new();
    for key in all {
        for (at, metric) in metrics.iter().enumerate() {
            let is_time = spec.column(metric).is_some_and(|c| c.unit == Unit::Ns);
            let values: Vec<f64> =
                sums.iter().map(|s| s.get(key).and_then(|v| v.get(at)).copied().unwrap_or(0.0)).collect();
            let normal: Vec<f64> = values
                .iter()
                .zip(scales)
                .map(|(value, scale)| match is_time {
                    true => scale.share_of(observed, *value),
                    false => scale.rate_of(observed, *value),
                })
                .collect();
            let over_first = |figures: &[f64]| -> Vec<Option<f64>> {
                let base = figures.first().copied().unwrap_or(0.0);
                figures.iter().skip(1).map(|n| (base > 0.0).then(|| n / base)).collect()
            };
            let (ratios, run_ratios) = (over_first(&normal), over_first(&values));
            if values.iter().any(|v| *v != 0.0) {
                lines.push(Line {
                    key: key.clone(),
                    metric: metric.clone(),
                    sums: values,
                    normal,
                    ratios,
                    run_ratios,
                });
            }
        }
    }
    let change = |line: &Line| {
        let base = line.normal.first().copied().unwrap_or(0.0);
        line.normal.iter().map(|n| (n - base).abs()).fold(0.0, f64::max)
    };
    lines.sort_by(|a, b| {
        let place = |line: &Line| metrics.iter().position(|m| *m == line.metric);
        place(a).cmp(&place(b)).then_with(|| change(b).total_cmp(&change(a))).then_with(|| a.key.cmp(&b.key))
    });
    Ok((keys, lines))
}

fn can_be_added(column: &etwhy_table::ColumnSpec) -> bool {
    let name = column.name.as_ref();
    let figure = ["mean_", "p50_", "p90_", "p95_", "p99_", "max_", "min_", "avg_", "above_", "up_to_"];
    matches!(column.unit, Unit::Ns | Unit::Bytes | Unit::Count)
        && matches!(column.role, Role::Duration | Role::Weight | Role::Bytes | Role::Count)
        && !figure.iter().any(|part| name.starts_with(part))
        && !LEVELS.contains(&name)
}

/// Counts of what is there at once: the depths of processes or requests, and the processors of interrupts, add up to nothing.
const LEVELS: [&str; 6] = ["cpus", "depth", "hot_cpus", "hot_nodes", "nested", "peak"];

fn add_up(table: &Table, keys: &[String], metrics: &[String]) -> BTreeMap<Vec<String>, Vec<f64>> {
    let columns = |names: &[String]| -> Vec<Option<usize>> {
        names.iter().map(|name| table.spec().column_index(name)).collect()
    };
    let (keys, metrics) = (columns(keys), columns(metrics));
    let mut sums: BTreeMap<Vec<String>, Vec<f64>> = BTreeMap::new();
    for row in 0..table.rows() as u32 {
        let text = |column: &Option<usize>| match column.map(|c| table.cell(row, c)) {
            Some(etwhy_table::Value::Text(text)) => text.to_owned(),
            Some(etwhy_table::Value::I64(n)) => n.to_string(),
            Some(etwhy_table::Value::Bool(b)) => b.to_string(),
            _ => String::new(),
        };
        let sum = sums.entry(keys.iter().map(text).collect()).or_insert_with(|| vec![0.0; metrics.len()]);
        for (sum, metric) in sum.iter_mut().zip(&metrics) {
            *sum += metric.and_then(|c| table.cell(row, c).as_f64()).unwrap_or(0.0);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_trace::catalog::disk_io::DISK_IO;

    #[test]
    fn depths_are_not_added_up() {
        let of = |name: &str| DISK_IO.column(name).is_some_and(can_be_added);
        assert!(!of("depth"));
        assert!(of("size_bytes"));
    }
}
