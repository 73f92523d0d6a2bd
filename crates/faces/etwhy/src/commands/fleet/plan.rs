//! `etwhy fleet plan`.

use super::reading::Reading;
use super::run::{Own, given, processors};
use crate::command::PROGRAM;
use crate::exit::Exit;
use crate::report::terminal::out;
use etwhy_etl::read::joint_trace_id;
use etwhy_export::escape_json;
use etwhy_fleet::inbox;
use etwhy_fleet::runner::Limits;
use etwhy_fleet::session::{Settings, planned};
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    /// Folders with traces (all in them), traces, archives, patterns, or - for a list of these on standard input, one a line
    #[arg(value_name = "INBOX", required = true)]
    inbox: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

/// Most time for looking at some files.
const PATIENCE: Duration = Duration::from_secs(600);
/// Most memory for that.
const MEMORY: u64 = 2 << 30;

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let inbox = inbox::list(&given(&args.inbox)?)?;
    inbox.shut.iter().for_each(super::run::say_shut);
    crate::knowledge::load(&args.reading.knowledge)?;
    let settings_id = args.reading.settings_id()?;
    let jobs = processors();
    let host = Own::new(&args.reading, &settings_id, jobs, MEMORY)?;
    let limits = Limits { time: Some(PATIENCE), memory: Some(MEMORY) };
    let settings = Settings { program: PROGRAM.to_owned(), settings_id, jobs, limits, batch: 1 };
    let (items, plan) = planned(inbox.files, &settings, &host);
    let mut out = out();
    for unit in &plan.units {
        let files: Vec<_> = unit.files.iter().filter_map(|&n| items.get(n)).collect();
        let contents: Vec<String> = files.iter().map(|item| item.content_id.clone()).collect();
        let line = json!({
            "trace_id": joint_trace_id(&contents), "settings_id": settings.settings_id, "bytes": unit.bytes, "content_ids": contents,
            "files": files.iter().map(|item| &item.found.path).collect::<Vec<_>>(),
        });
        writeln!(out, "{}", plain(line.to_string()))?;
    }
    out.flush()?;
    Ok(if inbox.shut.is_empty() { Exit::Done } else { Exit::InPart })
}

/// A line whose names of files, which anybody may choose, do nothing to a terminal.
fn plain(line: String) -> String {
    escape_json(&line).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_nothing_to_a_terminal() {
        let line = plain(json!({ "files": ["in/a\u{202e}lte.etl"] }).to_string());
        assert_eq!(line, r#"{"files":["in/a\u202elte.etl"]}"#);
    }
}
