//! `etwhy fleet outliers`.

use super::answer::{Asked, Said, machine, percent};
use crate::exit::Exit;
use etwhy_base::units::{digits, thousands};
use etwhy_doc::{Column, Doc, Line, Table};
use etwhy_fleet::outliers::{LEAST_PEERS, compared, outliers};
use serde_json::json;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    asked: Asked,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let fleet = args.asked.fleet()?;
    let shares = fleet.ask("machine_shares")?;
    let found = outliers(&shares);
    let mut doc = Doc::titled("Machines that differ from those like them");
    doc.heading("Machines that differ from those like them");
    let mut shown = Table::new([
        Column::name("machine"),
        Column::name("takes"),
        Column::number("of its time"),
        Column::number("its peers"),
        Column::number("deviations"),
        Column::number("peers"),
        Column::name("model"),
        Column::number("build"),
        Column::word("kind"),
    ]);
    for outlier in &found {
        shown.row([
            machine(outlier.computer.as_deref(), &outlier.machine_id),
            Line::name(&outlier.culprit),
            percent(Some(outlier.percent)),
            percent(Some(outlier.peers_percent)),
            digits(outlier.deviations).into(),
            outlier.peers.to_string().into(),
            Line::name(outlier.model.as_deref().unwrap_or("not recorded")),
            outlier.os_build.to_string().into(),
            outlier.kind.as_str().into(),
        ]);
    }
    if shown.rows.is_empty() {
        doc.text(match compared(&shares) {
            0 => format!(
                "Cannot tell: of no model and build are there {LEAST_PEERS} machines with a trace that says who used the CPU."
            ),
            machines => format!("No machine stands out, of {} compared.", thousands(machines as i128)),
        });
    }
    doc.table(args.asked.cut(shown));
    doc.text(format!(
        "Peers have the same model and the same build of Windows; models and builds with fewer than {LEAST_PEERS} machines are not compared."
    ));
    let row = |o: &etwhy_fleet::outliers::Outlier| {
        json!({
            "machine_id": o.machine_id, "computer": o.computer, "model": o.model, "os_build": o.os_build, "kind": o.kind,
            "culprit": o.culprit, "percent": o.percent, "peers_percent": o.peers_percent, "deviations": o.deviations,
            "peers": o.peers,
        })
    };
    let rows = found.iter().map(row).collect();
    args.asked.write(&fleet, "outliers", Said { doc, rows })?;
    Ok(Exit::Done)
}
