//! `etwhy evtx messages list`.

use crate::exit::Exit;
use crate::report::symbols::{columns, paragraph};
use crate::report::terminal::out;
use etwhy_base::units::thousands;
use etwhy_export::sanitize;
use etwhy_messages::{Messages, Options, lang};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// A database, folder, archive or DLL; several are looked at one after the other
    #[arg(required = true, value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Files that the texts come from instead of providers
    #[arg(long)]
    files: bool,
    /// Only providers in whose name this occurs
    #[arg(long, value_name = "TEXT")]
    provider: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let messages = Messages::open(&args.databases, &Options::default())?;
    let n = |count: u64| thousands(count.into());
    let mut out = out();
    let languages = messages.languages()?;
    if args.files {
        let files = messages.files()?;
        if args.json {
            let files: Vec<_> = files
                .iter()
                .map(|f| {
                    json!({ "path": f.path, "version": f.version, "language": f.language, "messages": f.messages,
                            "providers": f.providers, "damage": f.damage })
                })
                .collect();
            etwhy_report::json::to_writer_pretty(&mut out, &files)?;
            writeln!(out)?;
        } else {
            let rows: Vec<Vec<String>> = files
                .iter()
                .map(|f| {
                    vec![
                        n(f.messages),
                        n(f.providers),
                        f.version.clone().unwrap_or_else(|| "-".to_owned()),
                        f.language.clone().unwrap_or_else(|| "-".to_owned()),
                        f.path.clone(),
                    ]
                })
                .collect();
            let headings = [
                ("texts", true),
                ("providers", true),
                ("version", false),
                ("language", false),
                ("file", false),
            ];
            columns(&mut out, &headings, &rows)?;
            let damaged = files.iter().filter(|f| f.damage.is_some()).count();
            if damaged > 0 {
                paragraph(&mut out, &format!("{damaged} of them are damaged; --json says how."))?;
            }
        }
        out.flush()?;
        return Ok(Exit::Done);
    }
    let filter = args.provider.map(|text| text.to_lowercase());
    let providers: Vec<_> = messages
        .providers()?
        .into_iter()
        .filter(|p| {
            filter
                .as_ref()
                .is_none_or(|f| p.name.as_ref().is_some_and(|name| name.to_lowercase().contains(f)))
        })
        .collect();
    if args.json {
        let list: Vec<_> = providers
            .iter()
            .map(|p| {
                json!({ "name": p.name, "guid": p.guid.map(|g| g.braced()), "log": p.log, "registered": p.registered,
                        "events": p.events, "texts": p.texts, "files": p.files, "parameter_files": p.parameter_files })
            })
            .collect();
        let languages: Vec<_> = languages
            .iter()
            .map(|(l, count)| json!({ "language": lang::name(*l), "lcid": l, "texts": count }))
            .collect();
        let notes: serde_json::Map<_, _> =
            messages.notes()?.into_iter().map(|(k, v)| (k, json!(v))).collect();
        etwhy_report::json::to_writer_pretty(
            &mut out,
            &json!({ "providers": list, "languages": languages, "notes": notes }),
        )?;
        writeln!(out)?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = providers
        .iter()
        .map(|p| {
            let kind = match &p.log {
                Some(log) => format!("classic, {log}"),
                None => "manifest".to_owned(),
            };
            let (events, texts) = match p.log {
                Some(_) => ("-".to_owned(), "-".to_owned()),
                None => (n(p.events), n(p.texts)),
            };
            let name =
                p.name.clone().or_else(|| p.guid.map(|g| g.braced())).unwrap_or_else(|| "?".to_owned());
            vec![events, texts, kind, name, p.files.join(", ")]
        })
        .collect();
    if rows.is_empty() {
        writeln!(out, "No providers{}.", if filter.is_some() { " of that name" } else { "" })?;
    } else {
        let headings =
            [("events", true), ("with text", true), ("kind", false), ("provider", false), ("files", false)];
        columns(&mut out, &headings, &rows)?;
    }
    let counts = messages.counts()?;
    let spoken: Vec<String> =
        languages.iter().map(|(l, count)| format!("{} {}", lang::name(*l), n(*count))).collect();
    let mut text = format!(
        "{} providers shown; {} texts in {} files",
        n(rows.len() as u64),
        n(counts.messages),
        n(counts.files)
    );
    if !spoken.is_empty() {
        text.push_str(&format!(" ({})", spoken.join(", ")));
    }
    text.push('.');
    for (_, mapping) in messages.notes()?.into_iter().filter(|(key, _)| key == "mapping") {
        text.push_str(&format!(" Files of providers: {}.", sanitize(&mapping)));
    }
    paragraph(&mut out, &text)?;
    out.flush()?;
    Ok(Exit::Done)
}
