//! `etwhy symbols plan`: what would be asked for, without asking.

use super::modules::{as_json, count, cpu, nothing_to_ask, pdb_id, pdb_name, read, wanted};
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::symbols::{columns, paragraph};
use crate::report::terminal::{out, width};
use etwhy_symbols::source::Planned;
use serde_json::json;
use std::io::Write as _;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// Also modules that are on no stack
    #[arg(long)]
    all: bool,
    /// At most N modules
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// From this width on there is room for GUIDs.
const WIDE: usize = 120;

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let path = args.trace.symbols.path()?;
    let mut modules = read(&args.trace, args.all)?;
    let sources = path.sources(args.trace.symbols.options(&args.trace.traces, args.trace.quiet));
    let total = modules.list.len();
    modules.list.truncate(args.top.unwrap_or(usize::MAX));
    let mut out = out();
    let with_ids = width() >= WIDE;
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    let (mut present, mut online) = (0, 0);
    for module in &modules.list {
        let wanted = wanted(module);
        let plan = sources.plan(&wanted);
        let found = plan.iter().find_map(|place| place.present.as_ref());
        let asked = plan.iter().any(|place| place.server.is_some() && place.known_missing.is_none());
        present += usize::from(found.is_some());
        online += usize::from(found.is_none() && asked && !args.trace.symbols.offline);
        if args.json {
            let mut object = as_json(module, &wanted);
            if let Some(map) = object.as_object_mut() {
                map.insert("present".to_owned(), json!(found));
                map.insert("looked_in".to_owned(), plan.iter().map(place_json).collect());
                map.insert("cannot_ask".to_owned(), json!(nothing_to_ask(&wanted)));
            }
            objects.push(object);
            continue;
        }
        let note = if let Some(file) = found {
            format!("present: {}", file.display())
        } else if let Some(reason) = nothing_to_ask(&wanted) {
            reason
        } else {
            places(&plan, args.trace.symbols.offline)
        };
        let mut row = vec![cpu(module), count(module.frames), module.name.clone(), pdb_name(&wanted)];
        if with_ids {
            row.push(pdb_id(&wanted));
        }
        row.push(note);
        rows.push(row);
    }
    if args.json {
        let path = path.to_string();
        super::json(&mut out, &json!({ "symbol_path": path, "modules": objects, "total": total }))?;
    } else {
        let mut headings = vec![("CPU time", true), ("frames", true), ("module", false), ("PDB", false)];
        if with_ids {
            headings.push(("GUID and age", false));
        }
        headings.push(("where", false));
        columns(&mut out, &headings, &rows)?;
        let what = if args.all { "modules" } else { "modules on stacks" };
        let shown =
            if rows.len() < total { format!(", the first {} shown", rows.len()) } else { String::new() };
        paragraph(
            &mut out,
            &format!(
                "{total} {what}{shown}: {present} of these have a file, {online} would be asked of a server."
            ),
        )?;
        if path.is_empty() {
            paragraph(
                &mut out,
                "The symbol path is empty: give --symbols, or set _NT_SYMBOL_PATH, e.g. \
                 srv*FOLDER*https://msdl.microsoft.com/download/symbols",
            )?;
        }
    }
    out.flush()?;
    Ok(modules.exit)
}

/// Where it would be looked for.
fn places(plan: &[Planned], offline: bool) -> String {
    let mut texts: Vec<String> = Vec::new();
    for place in plan {
        let Some(server) = &place.server else { continue };
        texts.push(match place.known_missing {
            Some(_) => format!("known to be missing at {server}"),
            None if offline => format!("not asked (offline): {server}"),
            None => format!("would ask {server}"),
        });
    }
    texts.dedup();
    if texts.is_empty() { "not there".to_owned() } else { texts.join("; ") }
}

fn place_json(place: &Planned) -> serde_json::Value {
    json!({
        "element": place.place,
        "target": place.target,
        "present": place.present,
        "server": place.server,
        "known_missing_seconds": place.known_missing,
    })
}
