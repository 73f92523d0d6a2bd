//! What a trace without kernel events shows.

use super::table;
use crate::Report;
use etwhy_analysis::activity::Operation;
use etwhy_base::units::{duration_ns, thousands};
use etwhy_export::markdown::{code, prose};
use std::io::{self, Write};

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(activity) = &report.activity else { return Ok(()) };
    let number = |n: i64| thousands(n.into());
    let time = |ns: Option<i64>| ns.map_or("–".to_owned(), duration_ns);
    let process = |name: &Option<String>| name.as_deref().map_or("–".to_owned(), code);
    let share = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{share:.1} %"));
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{rate:.2}"));
    writeln!(out, "## What the trace shows\n\n{}\n", prose(&activity.cannot))?;
    writeln!(out, "{}.\n", activity.tally())?;
    if !activity.longest.is_empty() {
        let rows: Vec<Vec<String>> = activity
            .longest
            .iter()
            .map(|one| {
                vec![
                    code(&one.name),
                    code(&one.provider),
                    process(&one.process),
                    process(&one.activity),
                    one.tid.map_or("–".to_owned(), |tid| tid.to_string()),
                    duration_ns(one.start_ns),
                    duration_ns(one.dur_ns),
                ]
            })
            .collect();
        let head = ["longest operation", "provider", "process", "activity", "thread", "begin", "time"];
        table(out, &head, 4, &rows)?;
    }
    let operations = |list: &[Operation]| -> Vec<Vec<String>> {
        let row = |one: &Operation| {
            vec![
                code(&one.name),
                code(&one.provider),
                process(&one.process),
                number(one.count),
                rate(one.per_second),
                number(one.unfinished),
                number(one.doubtful),
                duration_ns(one.total_ns),
                time(one.median_ns),
                time(one.p95_ns),
                time(one.longest_ns),
            ]
        };
        list.iter().map(row).collect()
    };
    for (title, list) in
        [("operation by total time", &activity.by_total), ("operation by number", &activity.by_count)]
    {
        if !list.is_empty() {
            let head = [
                title,
                "provider",
                "process",
                "number",
                "per second",
                "without an end",
                "doubtful",
                "total",
                "median",
                "95 %",
                "longest",
            ];
            table(out, &head, 3, &operations(list))?;
        }
    }
    if !activity.rates.is_empty() {
        let rows: Vec<Vec<String>> = activity
            .rates
            .iter()
            .map(|one| {
                vec![
                    code(&one.name),
                    code(&one.provider),
                    number(one.count),
                    share(one.share_percent),
                    rate(one.per_second),
                    number(one.peak),
                    duration_ns(one.peak_ns),
                ]
            })
            .collect();
        let head = ["event", "provider", "number", "share", "per second", "most in one second", "at"];
        table(out, &head, 2, &rows)?;
    }
    if !activity.problems.is_empty() {
        let rows: Vec<Vec<String>> = activity
            .problems
            .iter()
            .map(|one| vec![code(&one.provider), code(&one.most), number(one.errors), number(one.warnings)])
            .collect();
        table(out, &["provider", "most of them", "errors", "warnings"], 2, &rows)?;
    }
    if activity.undecoded.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "Could not be decoded: {} of {} events.\n",
        number(activity.undecoded_events),
        number(activity.events)
    )?;
    let rows: Vec<Vec<String>> = activity
        .undecoded
        .iter()
        .map(|one| {
            vec![
                code(&one.provider),
                prose(&one.reason),
                one.needs.as_deref().map_or("–".to_owned(), code),
                one.option.as_deref().map_or("–".to_owned(), code),
                one.command.as_deref().map_or("–".to_owned(), code),
                number(one.count),
                share(one.share_percent),
            ]
        })
        .collect();
    table(out, &["provider", "why", "needs", "read by", "written by", "events", "share"], 5, &rows)
}
