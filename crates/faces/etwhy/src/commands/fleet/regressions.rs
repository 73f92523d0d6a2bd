//! `etwhy fleet regressions`.

use super::answer::{Asked, Said, percent};
use crate::exit::Exit;
use etwhy_base::time::{filetime, filetime_text};
use etwhy_base::units::decimal;
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_fleet::regressions::{FALSE_ALARMS, Regression, pairs, regressions};
use serde_json::json;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    asked: Asked,
    /// Also changes that chance explains
    #[arg(long)]
    all: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let fleet = args.asked.fleet()?;
    let found = regressions(&pairs(&fleet.ask("version_pairs")?));
    let mut doc = Doc::titled("What new versions cost");
    doc.heading("What new versions cost, on the machines that had the old one");
    let asked = found.iter().filter(|change| change.ratio.is_some()).count();
    let mut shown = Table::new([
        Column::name("file"),
        Column::number("cost"),
        Column::number("95 %"),
        Column::number("machines"),
        Column::number("before").below("share of the time"),
        Column::number("after").below("share of the time"),
        Column::name("from version"),
        Column::name("to version"),
        Column::word("since"),
    ]);
    for change in found.iter().filter(|change| change.certain || args.all) {
        shown.row([
            Line::name(&change.change.culprit),
            change.ratio.map(|ratio| times(ratio.value)).unwrap_or_default().into(),
            change
                .ratio
                .map(|ratio| format!("{} to {}", times(ratio.low), times(ratio.high)))
                .unwrap_or_default()
                .into(),
            change.machines.to_string().into(),
            percent(Some(100.0 * change.shares[0])),
            percent(Some(100.0 * change.shares[1])),
            Line::name(&change.change.before),
            Line::name(&change.change.after),
            day(change).into(),
        ]);
    }
    if shown.rows.is_empty() {
        doc.text(match (found.len(), asked) {
            (0, _) => {
                "Cannot tell: no machine has traces before and after a file changed its version.".to_owned()
            }
            (_, 0) => "Cannot tell: no change of a version was seen on six machines or more.".to_owned(),
            _ => "No new version costs more or less than chance explains.".to_owned(),
        });
    }
    doc.table(args.asked.cut(shown));
    doc.text(format!(
        "{} changes of versions, {asked} of them on enough machines to ask. Each machine is compared with itself. With all of them looked at, \
         the chance of naming any by mistake is {} %.",
        found.len(),
        decimal(100.0 * FALSE_ALARMS, 0)
    ));
    let rows = found.iter().map(row).collect();
    args.asked.write(&fleet, "regressions", Said { doc, rows })?;
    Ok(Exit::Done)
}

fn times(factor: f64) -> String {
    format!("{} x", decimal(factor, 3))
}

fn day(change: &Regression) -> String {
    filetime_text(filetime(change.since_unix_ns), 0).get(..10).unwrap_or_default().to_owned()
}

fn row(found: &Regression) -> serde_json::Value {
    json!({
        "kind": found.change.kind, "culprit": found.change.culprit, "version_before": found.change.before,
        "version_after": found.change.after, "machines": found.machines, "traces": found.traces,
        "share_before": found.shares[0], "share_after": found.shares[1], "ratio": found.ratio.map(|r| r.value),
        "ratio_low": found.ratio.map(|r| r.low), "ratio_high": found.ratio.map(|r| r.high), "certain": found.certain,
        "since_utc": day(found),
    })
}
