//! `etwhy probe list`.

use super::by_name;
use crate::exit::Exit;
use crate::report::terminal::{out, text};
use etwhy_doc::{Column, Doc, Table};
use etwhy_probe::Probe;
use etwhy_probe::probe::Kind;
use serde_json::json;
use std::io::Write;

#[derive(clap::Args)]
pub struct Args {
    /// Probe whose manual page is wanted
    probe: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let probes = match &args.probe {
        Some(name) => vec![by_name(name)?],
        None => etwhy_probe::probes::ALL.to_vec(),
    };
    let mut out = out();
    if args.json {
        let all: Vec<_> = probes.iter().map(|probe| as_json(probe)).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(Exit::Done);
    }
    let mut doc = Doc::default();
    if args.probe.is_some() {
        probes.iter().for_each(|probe| manual(&mut doc, probe));
    } else {
        let mut table = Table::new([Column::word(""), Column::text("")]);
        for probe in probes {
            let here = if probe.runs_here() { String::new() } else { format!(" ({} only)", systems(probe)) };
            table.row([probe.name.into(), format!("{}{here}", probe.about).into()]);
        }
        doc.table(table);
        doc.space();
        doc.text("`etwhy probe list NAME` shows a manual page; `etwhy probe run NAME --quick` runs it.");
    }
    write!(out, "{}", text(&doc))?;
    Ok(Exit::Done)
}

fn systems(probe: &Probe) -> String {
    probe.systems.iter().map(|system| system.name()).collect::<Vec<_>>().join(", ")
}

fn manual(doc: &mut Doc, probe: &Probe) {
    doc.text(format!("{}: {}", probe.name, probe.about));
    for paragraph in probe.manual.split("\n\n") {
        doc.space();
        doc.text(paragraph);
    }
    doc.space();
    doc.text(format!("Runs on {}.", systems(probe)));
    if !probe.parameters.is_empty() {
        doc.heading("Parameters (--set NAME=VALUE)");
    }
    for parameter in probe.parameters {
        let range = match parameter.kind {
            Kind::Number { default, quick, min, max, unit } => {
                format!("{default} {unit} ({quick} with --quick; from {min} to {max})")
            }
            Kind::Choice { default, of } => format!("{default} (of {})", of.join(", ")),
            Kind::Text { default: "" } => "none".to_owned(),
            Kind::Text { default } => default.to_owned(),
        };
        doc.bullet(format!("{}: {}. Default: {range}", parameter.name, parameter.about));
    }
}

fn as_json(probe: &Probe) -> serde_json::Value {
    let parameters: Vec<_> = probe
        .parameters
        .iter()
        .map(|p| match p.kind {
            Kind::Number { default, quick, min, max, unit } => {
                json!({"name": p.name, "about": p.about, "default": default, "quick": quick, "min": min, "max": max, "unit": unit})
            }
            Kind::Choice { default, of } => json!({"name": p.name, "about": p.about, "default": default, "of": of}),
            Kind::Text { default } => json!({"name": p.name, "about": p.about, "default": default}),
        })
        .collect();
    json!({
        "name": probe.name,
        "about": probe.about,
        "manual": probe.manual,
        "systems": probe.systems.iter().map(|s| s.name()).collect::<Vec<_>>(),
        "runs_here": probe.runs_here(),
        "parameters": parameters,
    })
}
