//! `etwhy fleet trend`.

use super::answer::{Asked, Said, percent};
use super::rank::What;
use crate::exit::Exit;
use anyhow::bail;
use etwhy_doc::{Column, Doc, Line, Span, Table};
use etwhy_fleet::trend::{Course, courses};
use serde_json::json;

#[derive(clap::Args)]
pub struct Args {
    /// drivers, processes, products or categories; without it all busy time
    #[arg(long, value_name = "WHAT")]
    of: Option<What>,
    #[command(flatten)]
    asked: Asked,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let kind = match args.of {
        None => "machine",
        Some(What::Findings) => bail!("--of takes drivers, processes, products or categories"),
        Some(what) => what.kind(),
    };
    let fleet = args.asked.fleet()?;
    let found = courses(&fleet.ask("trend")?, kind);
    let mut doc = Doc::titled("Day by day");
    let days = found.first().map_or(0, |course| course.percent.len());
    doc.heading(format!("Share of the time of all machines, day by day: {days} days"));
    let mut shown = Table::new([
        Column::name(kind),
        Column::number("mean"),
        Column::number("first").below("day"),
        Column::number("last").below("day"),
        Column::word("trend"),
        Column::rest("course"),
    ]);
    for course in &found {
        let day = |at: Option<&(String, f64)>| percent(at.map(|(_, share)| *share));
        let most = course.percent.iter().map(|(_, share)| *share).fold(0.0, f64::max);
        let values = course.percent.iter().map(|(_, share)| Some(*share)).collect();
        shown.row([
            Line::name(&course.culprit),
            percent(Some(course.mean_percent)),
            day(course.percent.first()),
            day(course.percent.last()),
            word(course).into(),
            Span::Spark(values, most).into(),
        ]);
    }
    if shown.rows.is_empty() {
        doc.text("Cannot tell: no trace of this store says who used the CPU (`etwhy record --print cpu`).");
    }
    doc.table(args.asked.cut(shown));
    let row = |c: &Course| {
        let days: Vec<_> =
            c.percent.iter().map(|(day, share)| json!({ "day": day, "percent": share })).collect();
        json!({
            "kind": c.kind, "culprit": c.culprit, "mean_percent": c.mean_percent, "slope_percent_per_day": c.slope,
            "certain": c.certain, "days": days,
        })
    };
    let rows = found.iter().map(row).collect();
    args.asked.write(&fleet, "trend", Said { doc, rows })?;
    Ok(Exit::Done)
}

fn word(course: &Course) -> &'static str {
    match course.slope {
        None => "too few days",
        Some(slope) if course.certain && slope > 0.0 => "rises",
        Some(slope) if course.certain && slope < 0.0 => "falls",
        Some(_) => "none",
    }
}
