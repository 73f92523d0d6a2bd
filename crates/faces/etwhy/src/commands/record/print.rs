//! `etwhy record --print` and `--list`: recordings for other recorders.

use super::evidence;
use crate::exit::Exit;
use crate::report::terminal::{out, text};
use anyhow::{Context as _, ensure};
use etwhy_doc::Doc;
use etwhy_record::{Format, Profile, Recording, Session, Size, formats, profiles};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// Profiles to record, separated by commas
    #[arg(long, value_name = "PROFILES", value_delimiter = ',')]
    print: Vec<String>,
    /// List the profiles: what each makes visible, its tables, its cost
    #[arg(long, conflicts_with_all = ["print", "format", "large", "when_taken"])]
    list: bool,
    /// Show what `record start` was tested with
    #[arg(long, conflicts_with_all = ["print", "list", "format", "large", "when_taken"])]
    evidence: bool,
    /// Format of what is printed
    #[arg(long, value_name = "FORMAT", value_parser = format_names(), default_value = "wprp")]
    format: String,
    /// For a machine with more than 64 logical processors: more buffers, and how to start there
    #[arg(
        long,
        value_name = "PROCESSORS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "128",
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    large: Option<u32>,
    /// Memory of the machine that is recorded, in GiB: buffers take at most 4 % of it
    #[arg(
        long,
        value_name = "GIB",
        default_value_t = 8,
        conflicts_with = "large",
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    memory: u32,
    /// For when another product has taken the NT Kernel Logger: use the Circular Kernel Context Logger, or a kernel
    /// session of its own (Windows 8 and later)
    #[arg(
        long,
        value_name = "SESSION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "circular",
        value_parser = ["circular", "system"]
    )]
    when_taken: Option<String>,
    /// Print JSON (of --list)
    // What `requires` asks for is waived where it conflicts with another option that is given.
    #[arg(long, requires = "list", conflicts_with_all = ["print", "evidence"])]
    json: bool,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn format_names() -> Vec<&'static str> {
    formats().iter().map(|format| format.name).collect()
}

/// What is said to whoever names nothing.
const WHAT_NEXT: &str = "what shall be recorded? `etwhy record --list` names the profiles; on Windows \
                         `etwhy record start PROFILES -o FILE.etl` records them, and on any system \
                         `etwhy record --print PROFILES` prints what wpr, xperf and logman need";

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let text = if args.evidence {
        text(&evidence::ladder())
    } else if args.list {
        if args.json { list_json()? } else { text(&list()) }
    } else {
        ensure!(!args.print.is_empty(), "{WHAT_NEXT}");
        let session = match args.when_taken.as_deref() {
            None => Session::NtKernelLogger,
            Some("system") => Session::System,
            Some(_) => Session::Circular,
        };
        let of_memory = if args.memory == 8 { Size::Usual } else { Size::Memory { gib: args.memory } };
        let size = args.large.map_or(of_memory, |processors| Size::Large { processors });
        let names: Vec<&str> = args.print.iter().map(String::as_str).collect();
        let recording = Recording::from_profiles(&names, session, size)?;
        let format: &Format = formats().iter().find(|f| f.name == args.format).context("no such format")?;
        (format.write)(&recording)?
    };
    match &args.output {
        Some(path) => {
            let written = etwhy_export::create(path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.with_context(|| format!("{}: cannot write", path.display()))?;
        }
        None => {
            let mut out = out();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
    }
    Ok(Exit::Done)
}

/// The profiles for people.
fn list() -> Doc {
    let mut doc = Doc::default();
    for profile in profiles() {
        doc.heading(format!("{}: {}.", profile.name, profile.title));
        doc.note("shows", format!("{}.", profile.shows));
        doc.note("cost", format!("{}: {}.", profile.cost, profile.rate));
        let tables = tables(profile).join(", ");
        if !tables.is_empty() {
            doc.note("tables", tables);
        }
        for note in profile.notes.iter().cloned().chain(unproven(profile)) {
            doc.note("note", note);
        }
    }
    doc.space();
    doc.text("Rates are estimates from the sizes of the events.");
    doc.text("Print one, or several at once: etwhy record --print cpu,registry");
    doc
}

/// Which of its keywords no public profile shows.
fn unproven(profile: &Profile) -> Option<String> {
    etwhy_record::unproven(profile.keywords.iter().map(String::as_str))
}

/// The tables that a profile fills, its own first.
fn tables(profile: &Profile) -> Vec<&str> {
    profile.tables.iter().chain(&profile.also).map(String::as_str).collect()
}

fn list_json() -> anyhow::Result<String> {
    let list: Vec<serde_json::Value> = profiles()
        .iter()
        .map(|profile| {
            json!({
                "name": profile.name,
                "title": profile.title,
                "shows": profile.shows,
                "cost": profile.cost.to_string(),
                "rate": profile.rate,
                "tables": profile.tables,
                "also": profile.also,
                "includes": profile.includes,
                "keywords": profile.keywords,
                "stacks": profile.stacks,
                "providers": profile.providers.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(),
                "notes": profile.notes,
                "unproven": unproven(profile),
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_doc::terminal::Terminal;

    #[test]
    fn the_list_tells_of_every_profile_within_the_width() {
        let text = Terminal::plain(80).render(&list());
        for profile in profiles() {
            assert!(
                text.contains(&format!("\n{}: ", profile.name)) || text.starts_with(profile.name),
                "{}",
                profile.name
            );
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&list_json().unwrap()).unwrap()[0]["name"],
            "cpu"
        );
    }
}
