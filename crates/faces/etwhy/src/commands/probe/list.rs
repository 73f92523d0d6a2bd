//! `etwhy probe list`.

use super::by_name;
use crate::exit::Exit;
use crate::report::terminal::{out, width};
use etwhy_export::text::wrap;
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
    } else if args.probe.is_some() {
        for probe in probes {
            manual(&mut out, probe)?;
        }
    } else {
        let longest = probes.iter().map(|p| p.name.len()).max().unwrap_or(0);
        for probe in probes {
            let here = if probe.runs_here() { String::new() } else { format!(" ({} only)", systems(probe)) };
            let lines = wrap(&format!("{}{here}", probe.about), width().saturating_sub(longest + 2).max(20));
            for (n, line) in lines.iter().enumerate() {
                let name = if n == 0 { probe.name } else { "" };
                writeln!(out, "{name:longest$}  {line}")?;
            }
        }
        writeln!(
            out,
            "\n`etwhy probe list NAME` shows a manual page; `etwhy probe run NAME --quick` runs it."
        )?;
    }
    Ok(Exit::Done)
}

fn systems(probe: &Probe) -> String {
    probe.systems.iter().map(|system| system.name()).collect::<Vec<_>>().join(", ")
}

fn manual(out: &mut impl Write, probe: &Probe) -> anyhow::Result<()> {
    let width = width();
    writeln!(out, "{}: {}\n", probe.name, probe.about)?;
    for paragraph in probe.manual.split("\n\n") {
        for line in wrap(paragraph, width) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
    }
    writeln!(out, "Runs on {}.", systems(probe))?;
    if !probe.parameters.is_empty() {
        writeln!(out, "\nParameters (--set NAME=VALUE)")?;
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
        for (n, line) in
            wrap(&format!("{}: {}. Default: {range}", parameter.name, parameter.about), width.max(30) - 4)
                .iter()
                .enumerate()
        {
            writeln!(out, "{}{line}", if n == 0 { "  " } else { "    " })?;
        }
    }
    Ok(())
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
