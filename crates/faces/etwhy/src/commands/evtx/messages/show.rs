//! `etwhy evtx messages show`.

use crate::exit::Exit;
use crate::report::symbols::{columns, paragraph};
use crate::report::terminal::out;
use anyhow::bail;
use etwhy_export::sanitize;
use etwhy_export::text::truncate_end;
use etwhy_messages::{EventSummary, Messages, Options};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// A database, folder, archive or DLL
    #[arg(value_name = "DB")]
    database: PathBuf,
    /// Name or GUID of a provider
    #[arg(value_name = "PROVIDER")]
    provider: String,
    /// Id of an event: its whole text and its fields
    #[arg(value_name = "ID")]
    id: Option<u16>,
    /// Show texts in this language if they are there
    #[arg(long, value_name = "LANGUAGE")]
    language: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut options = Options::default();
    if !args.language.is_empty() {
        options.languages = super::languages(&args.language)?;
    }
    let messages = Messages::open(std::slice::from_ref(&args.database), &options)?;
    let events = messages.events(&args.provider, args.id)?;
    if events.is_empty() {
        let what = args.id.map_or_else(|| "no events".to_owned(), |id| format!("no event {id}"));
        bail!(
            "{}: {what} of {:?}; `etwhy evtx messages list {}` lists providers",
            args.database.display(),
            args.provider,
            args.database.display()
        );
    }
    let mut out = out();
    if args.json {
        let list: Vec<_> = events.iter().map(as_json).collect();
        etwhy_report::json::to_writer_pretty(&mut out, &list)?;
        writeln!(out)?;
    } else if args.id.is_some() {
        for (at, event) in events.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            whole(&mut out, event)?;
        }
    } else {
        let rows: Vec<Vec<String>> = events
            .iter()
            .map(|event| {
                let text = event
                    .text
                    .as_deref()
                    .map_or_else(|| "- (its text is missing)".to_owned(), Messages::shown);
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let count =
                    if event.fields.is_empty() { "-".to_owned() } else { event.fields.len().to_string() };
                vec![event.id.to_string(), version(event), count, truncate_end(first.trim(), 100)]
            })
            .collect();
        let headings = [("event", true), ("version", true), ("fields", true), ("text", false)];
        columns(&mut out, &headings, &rows)?;
        paragraph(&mut out, "With an id, the whole text and the fields are shown.")?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn version(event: &EventSummary) -> String {
    match (event.version, event.qualifiers) {
        (_, Some(qualifiers)) => format!("q {qualifiers:#06x}"),
        (Some(version), None) => version.to_string(),
        (None, None) => "-".to_owned(),
    }
}

fn whole(out: &mut impl std::io::Write, event: &EventSummary) -> anyhow::Result<()> {
    let mut title = format!("Event {}", event.id);
    if let Some(version) = event.version {
        title.push_str(&format!(", version {version}"));
    }
    if let Some(qualifiers) = event.qualifiers {
        title.push_str(&format!(", qualifiers {qualifiers} ({qualifiers:#06x})"));
    }
    if let Some(message) = event.message {
        title.push_str(&format!(", message {message:#010x}"));
    }
    writeln!(out, "{title}\n")?;
    match &event.text {
        Some(text) => {
            for line in super::lines(&Messages::shown(text)) {
                writeln!(out, "{}", format!("  {line}").trim_end())?;
            }
        }
        None => writeln!(out, "  The files that are here have no text for it.")?,
    }
    if event.fields.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let rows: Vec<Vec<String>> = event
        .fields
        .iter()
        .enumerate()
        .map(|(at, field)| {
            let map = field.map.as_ref().map_or_else(String::new, |map| {
                let values: Vec<String> =
                    map.values.iter().map(|(value, text)| format!("{value} {}", sanitize(text))).collect();
                values.join(", ")
            });
            vec![
                format!("%{}", at + 1),
                field.name.clone(),
                field.in_type.name().into_owned(),
                field.out_type.name().into_owned(),
                map,
            ]
        })
        .collect();
    let headings =
        [("insert", true), ("field", false), ("type", false), ("shown as", false), ("values", false)];
    columns(out, &headings, &rows)?;
    Ok(())
}

fn as_json(event: &EventSummary) -> serde_json::Value {
    let fields: Vec<_> = event
        .fields
        .iter()
        .map(|field| {
            let values: Option<Vec<_>> = field.map.as_ref().map(|map| {
                map.values.iter().map(|(value, text)| json!({ "value": value, "text": text })).collect()
            });
            json!({ "name": field.name, "in_type": field.in_type.name(), "out_type": field.out_type.name(),
                    "values": values, "bits": field.map.as_ref().map(|map| map.bits) })
        })
        .collect();
    json!({ "id": event.id, "version": event.version, "qualifiers": event.qualifiers, "message": event.message,
            "text": event.text, "shown": event.text.as_deref().map(Messages::shown), "fields": fields })
}
