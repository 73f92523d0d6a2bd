//! `etwhy fleet trend`.

use super::answer::{Asked, Said, percent};
use super::rank::What;
use crate::exit::Exit;
use anyhow::bail;
use etwhy_base::units::digits;
use etwhy_doc::{Column, Doc, Line, Span, Table};
use etwhy_fleet::outliers::NAMELESS;
use etwhy_fleet::trend::{By, Course, Step, courses};
use serde_json::json;

#[derive(clap::Args)]
pub struct Args {
    /// drivers, processes, products or categories; without it all busy time
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
    of: Option<What>,
    /// Each trace for itself instead of day by day: the runs of a benchmark
    #[arg(long)]
    runs: bool,
    /// Exit with 5 if a step of the last ten days or runs leads at least 2 % up (slower) or down (faster)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ["slower", "faster"])]
    fail_on: Vec<String>,
    #[command(flatten)]
    asked: Asked,
}

/// A step matters to `--fail-on` for so many days or runs.
const RECENT: usize = 10;
/// Least change of a level that matters to it.
const LEAST_CHANGE: f64 = 0.02;

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let kind = match args.of {
        None => "machine",
        Some(What::Findings) => bail!("--of takes drivers, processes, products or categories"),
        Some(what) => what.kind(),
    };
    let by = if args.runs { By::Run } else { By::Day };
    let (each, point) = if args.runs { ("Run by run", "run") } else { ("Day by day", "day") };
    let fleet = args.asked.fleet()?;
    let found = courses(&fleet.ask(by.view())?, kind, by);
    let mut doc = Doc::titled(each);
    let points = found.first().map_or(0, |course| course.percent.len());
    doc.heading(format!(
        "Share of the time of all machines, {}: {}",
        each.to_lowercase(),
        format_args!("{points} {point}{}", if points == 1 { "" } else { "s" })
    ));
    let mut shown = Table::new([
        Column::name(kind),
        Column::number("mean"),
        Column::number("first").below(point),
        Column::number("last").below(point),
        Column::word("trend"),
        Column::word("last step"),
        Column::rest("course"),
    ]);
    for course in &found {
        let end = |at: Option<&(String, f64)>| percent(at.map(|(_, share)| *share));
        let most = course.percent.iter().map(|(_, share)| *share).fold(0.0, f64::max);
        let values = course.percent.iter().map(|(_, share)| Some(*share)).collect();
        shown.row([
            Line::name(&course.culprit),
            percent(Some(course.mean_percent)),
            end(course.percent.first()),
            end(course.percent.last()),
            word(course).into(),
            last_step(course),
            Span::Spark(values, most).into(),
        ]);
    }
    if shown.rows.is_empty() {
        doc.text("Cannot tell: no trace of this store says who used the CPU (`etwhy record --print cpu`).");
    }
    doc.table(args.asked.cut(shown));
    let row = |c: &Course| {
        let label = |at: usize| c.percent.get(at).map(|(label, _)| label);
        let points: Vec<_> =
            c.percent.iter().map(|(label, share)| json!({ point: label, "percent": share })).collect();
        let step = |s: &Step| {
            json!({
                point: label(s.at), "before_percent": s.before, "after_percent": s.after, "p": s.p,
                "ratio_low": s.ratio.map(|r| r.low), "ratio_high": s.ratio.map(|r| r.high),
            })
        };
        json!({
            "kind": c.kind, "culprit": c.culprit, "mean_percent": c.mean_percent, format!("slope_percent_per_{point}"): c.slope,
            "certain": c.certain, "steps": c.steps.iter().map(step).collect::<Vec<_>>(), format!("{point}s"): points,
        })
    };
    let rows = found.iter().map(row).collect();
    args.asked.write(&fleet, "trend", Said { doc, rows })?;
    let met: Vec<String> = found.iter().filter_map(|course| recent_step(course, &args.fail_on)).collect();
    for line in &met {
        say!("etwhy: {line}");
    }
    Ok(if met.is_empty() { Exit::Done } else { Exit::ConditionMet })
}

/// What `--fail-on` minds of a course.
fn recent_step(course: &Course, conditions: &[String]) -> Option<String> {
    // Where names are missing there is more of it, whoever it was.
    if course.culprit.starts_with(NAMELESS) {
        return None;
    }
    let step = course.steps.last().filter(|step| step.at + RECENT >= course.percent.len())?;
    let way = if step.after > step.before { "slower" } else { "faster" };
    let large = (step.after - step.before).abs() >= LEAST_CHANGE * step.before;
    let (label, _) = course.percent.get(step.at)?;
    (large && conditions.iter().any(|condition| condition == way))
        .then(|| format!("{way}: {} {} from {label} on", course.kind, course.culprit))
}

/// `2026-05-03: x1.12`.
fn last_step(course: &Course) -> Line {
    let Some(step) = course.steps.last() else { return Line::default() };
    let label = course.percent.get(step.at).map_or("", |(label, _)| label.as_str());
    let change =
        if step.before > 0.0 { format!("x{}", digits(step.after / step.before)) } else { "new".to_owned() };
    Line::name(label).and(format!(": {change}"))
}

fn word(course: &Course) -> &'static str {
    match course.slope {
        None => "too few",
        Some(slope) if course.certain && slope > 0.0 => "rises",
        Some(slope) if course.certain && slope < 0.0 => "falls",
        Some(_) => "none",
    }
}
