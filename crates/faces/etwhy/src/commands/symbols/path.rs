//! `etwhy symbols path`: how the symbol path is understood.

use crate::exit::Exit;
use crate::report::symbols::paragraph;
use crate::report::terminal::{out, width};
use crate::symbol_args::{SymbolArgs, VARIABLES, compact_cache};
use etwhy_export::sanitize;
use etwhy_export::text::hanging;
use etwhy_symbols::path::{DEFAULT_SERVER, Element, StoreLocation, local_path};
use etwhy_symbols::server::{Failure, Server, ServerOptions, shown};
use etwhy_symbols::source::default_store;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    symbols: SymbolArgs,
    /// Ask each server for one file, to see whether it answers
    #[arg(long, conflicts_with = "offline")]
    check: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A store, folder or server of the path.
struct Line {
    origin: &'static str,
    /// Number of the element.
    number: usize,
    element: String,
    what: &'static str,
    place: String,
    state: String,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut lines = Vec::new();
    let mut number = 0;
    let mut online = false;
    for part in args.symbols.parts()? {
        online |= part.path.names_a_server();
        for element in &part.path.elements {
            number += 1;
            for (what, place) in places(element) {
                let state = match what {
                    "server" => server_state(&place, &args),
                    _ => folder_state(&place, what == "cache" || what == "default store"),
                };
                let (origin, element) = (part.origin, shown(&element.to_string()));
                lines.push(Line { origin, number, element, what, place: shown(&place), state });
            }
        }
    }
    for folder in &args.symbols.images {
        let place = folder.display().to_string();
        let state = folder_state(&place, false);
        number += 1;
        lines.push(Line { origin: "--images", number, element: place.clone(), what: "images", place, state });
    }
    online &= !args.symbols.offline;
    let mut out = out();
    if args.json {
        let elements: Vec<_> = lines
            .iter()
            .map(|line| {
                json!({ "origin": line.origin, "element": line.element, "kind": line.what, "place": line.place, "state": line.state })
            })
            .collect();
        let value = json!({
            "elements": elements,
            "asks_servers": online,
            "default_store": default_store(),
            "compact_cache": compact_cache(),
        });
        super::json(&mut out, &value)?;
    } else if lines.is_empty() {
        writeln!(
            out,
            "The symbol path is empty: --symbols is not given, and {} are not set. Only files next to a trace are used.",
            VARIABLES.join(" and ")
        )?;
    } else {
        let kinds = lines.iter().map(|line| line.what.len()).max().unwrap_or(0);
        let mut last = None;
        for line in &lines {
            if last != Some((line.number, line.origin)) {
                writeln!(out, "{}", sanitize(&format!("{}  {}", line.origin, line.element)))?;
                last = Some((line.number, line.origin));
            }
            let head = format!("  {:kinds$}  ", line.what);
            let text = sanitize(&format!("{}: {}", line.place, line.state)).into_owned();
            for line in hanging(&head, &" ".repeat(head.len()), &text, width()) {
                writeln!(out, "{line}")?;
            }
        }
        let asked = if online { "Servers are asked." } else { "No server is asked." };
        let kept = compact_cache().map_or(String::new(), |folder| {
            format!(" What was read from symbol files is kept in {}.", folder.display())
        });
        paragraph(&mut out, &format!("{asked}{kept}"))?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What an element consists of, in the order in which it is searched.
fn places(element: &Element) -> Vec<(&'static str, String)> {
    let place = |what, place: &StoreLocation| match place {
        StoreLocation::Default => ("default store", default_store().display().to_string()),
        StoreLocation::Folder(folder) => (what, folder.clone()),
        StoreLocation::Server(server) => ("server", server.clone()),
    };
    match element {
        Element::Folder(folder) => vec![("folder", folder.clone())],
        Element::Cache(places) => places.iter().map(|p| place("cache", p)).collect(),
        Element::Stores { places, .. } => match places.split_last() {
            Some((StoreLocation::Default, [])) => vec![
                ("default store", default_store().display().to_string()),
                ("server", DEFAULT_SERVER.to_owned()),
            ],
            Some((last, before)) => {
                let mut out: Vec<_> = before.iter().map(|p| place("cache", p)).collect();
                if before.is_empty() && matches!(last, StoreLocation::Server(_)) {
                    out.push(place("cache", &StoreLocation::Default));
                }
                out.push(place("store", last));
                out
            }
            None => Vec::new(),
        },
        Element::DebugInfoD { caches, server } => {
            let mut out: Vec<_> = caches.iter().map(|p| place("cache", p)).collect();
            out.push(("server", server.clone()));
            out
        }
    }
}

fn folder_state(text: &str, made: bool) -> String {
    let Some(path) = local_path(text) else {
        return "a path of Windows, not to be reached from here; copy or mount it and name that folder"
            .to_owned();
    };
    if path.is_dir() {
        let two = if path.join("index2.txt").is_file() { ", store of two tiers" } else { "" };
        return format!("exists{two}");
    }
    if path.exists() {
        return "is no folder".to_owned();
    }
    if made {
        "does not exist yet, is made when a file comes".to_owned()
    } else {
        "does not exist".to_owned()
    }
}

fn server_state(url: &str, args: &Args) -> String {
    if args.symbols.offline {
        return "is not asked (--offline)".to_owned();
    }
    if !args.check {
        return "is asked for what is missing (--check tries it)".to_owned();
    }
    let options = ServerOptions { whole: Duration::from_secs(30), retries: 0, ..ServerOptions::default() };
    let folder = match etwhy_scratch::Scratch::new(None) {
        Ok(folder) => folder,
        Err(error) => return format!("cannot be tried: {error}"),
    };
    answer(&Server::new(url, options), folder.path())
}

/// SymSrv looks for this file in each store, so that asking for it tells nothing new.
fn answer(server: &Server, folder: &Path) -> String {
    match server.fetch(&["index2.txt"], folder) {
        Ok(_) => "answers, store of two tiers".to_owned(),
        Err(Failure::NotFound { .. }) => "answers".to_owned(),
        Err(failure) => failure.to_string(),
    }
}
