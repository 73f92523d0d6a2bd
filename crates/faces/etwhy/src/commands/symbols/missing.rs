//! `etwhy symbols missing`: modules whose functions have no names, and why.

use super::modules::{
    as_json, attempts_json, count, cpu, nothing_to_ask, pdb_name, read, reason, reason_word, wanted,
};
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::symbols::{columns, paragraph};
use crate::report::terminal::out;
use etwhy_base::units::duration_ns;
use serde_json::json;
use std::io::Write as _;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    trace: TraceArgs,
    /// At most N modules
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let path = args.trace.symbols.path()?;
    let modules = read(&args.trace, false)?;
    // It tells what is; `fetch` asks.
    let mut options = args.trace.symbols.options(&args.trace.traces, args.trace.quiet);
    options.offline = true;
    let sources = path.sources(options);
    let on_stacks = modules.list.len();
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    let (mut missing, mut frames, mut own) = (0usize, 0u64, 0i64);
    for module in modules.list.iter().filter(|module| module.lacks_names()) {
        let wanted = wanted(module);
        let (word, text, attempts) = match nothing_to_ask(&wanted) {
            Some(text) => ("no PDB recorded", text, Vec::new()),
            None => {
                let (candidates, attempts) = sources.search(&wanted);
                match candidates.first() {
                    Some(file) => (
                        "named in part",
                        format!("{} does not name all of it", file.file.display()),
                        attempts,
                    ),
                    None => (reason_word(&attempts), reason(&attempts), attempts),
                }
            }
        };
        missing += 1;
        frames += module.frames - module.named_frames;
        own = own.saturating_add(module.cpu_exclusive_ns);
        if rows.len().max(objects.len()) >= args.top.unwrap_or(usize::MAX) {
            continue;
        }
        if args.json {
            let mut object = as_json(module, &wanted);
            if let Some(map) = object.as_object_mut() {
                map.insert("reason".to_owned(), json!(word));
                map.insert("text".to_owned(), json!(text));
                map.insert("attempts".to_owned(), attempts_json(&attempts));
            }
            objects.push(object);
        } else {
            let own = if module.cpu_exclusive_ns == 0 {
                "-".to_owned()
            } else {
                duration_ns(module.cpu_exclusive_ns)
            };
            let unnamed =
                format!("{} of {}", count(module.frames - module.named_frames), count(module.frames));
            rows.push(vec![cpu(module), own, unnamed, module.name.clone(), pdb_name(&wanted), text]);
        }
    }
    let mut out = out();
    if args.json {
        let value = json!({ "symbol_path": path.to_string(), "missing": objects, "count": missing, "on_stacks": on_stacks });
        super::json(&mut out, &value)?;
    } else if missing == 0 {
        writeln!(out, "All {on_stacks} modules on stacks have names.")?;
    } else {
        let headings = [
            ("CPU time", true),
            ("own CPU", true),
            ("no name", true),
            ("module", false),
            ("PDB", false),
            ("why", false),
        ];
        columns(&mut out, &headings, &rows)?;
        let text = format!(
            "{missing} of {on_stacks} modules on stacks lack names: {} places, {} of CPU time in their own code. \
             `etwhy symbols fetch` gets what servers have.",
            count(frames),
            duration_ns(own)
        );
        paragraph(&mut out, &text)?;
    }
    out.flush()?;
    Ok(modules.exit)
}
