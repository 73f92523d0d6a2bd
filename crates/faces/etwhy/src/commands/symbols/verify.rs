//! `etwhy symbols verify`: which build a file is for.

use super::modules::{read, wanted};
use crate::exit::Exit;
use crate::open::TraceArgs;
use crate::report::symbols::columns;
use crate::report::terminal::out;
use anyhow::{Context as _, bail};
use clap::{Args as _, FromArgMatches as _};
use etwhy_analysis::operators::stack_modules::StackModule;
use etwhy_symbols::verify::{Identity, identify};
use etwhy_symbols::{ModuleKey, WantedModule};
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    /// A PDB, Breakpad file or image, or a folder of them
    #[arg(value_name = "FILE")]
    what: PathBuf,
    /// Traces that it should fit
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Files of a folder that are looked at.
const MAX_FILES: usize = 100_000;
/// Folders inside folders that are looked at.
const MAX_DEPTH: usize = 8;
/// Endings that are looked for in folders.
const ENDINGS: [&str; 5] = ["pdb", "sym", "dll", "exe", "sys"];

/// How a file stands to the modules of the traces.
enum Fit {
    /// No traces were given.
    NotAsked,
    /// It is for this module.
    Fits(String),
    /// The traces have the module, in another build.
    Other(String),
    /// The traces have no module of that name.
    Unknown,
}

pub fn run(args: Args) -> anyhow::Result<Exit> {
    let mut files = Vec::new();
    let cannot = || format!("{}: cannot open", args.what.display());
    if std::fs::metadata(&args.what).with_context(cannot)?.is_dir() {
        collect(&args.what, 0, &mut files);
        files.sort();
        if files.is_empty() {
            bail!("{}: there is no file with one of the endings {}", args.what.display(), ENDINGS.join(", "));
        }
    } else {
        files.push(args.what.clone());
    }
    let modules = modules(&args.traces)?;
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    let mut bad = 0;
    for file in &files {
        let identity = identify(file);
        let fit = match &identity {
            Ok(identity) => fit(identity, file, modules.as_deref()),
            Err(_) => Fit::NotAsked,
        };
        bad += usize::from(identity.is_err() || matches!(fit, Fit::Other(_) | Fit::Unknown));
        if args.json {
            objects.push(as_json(file, &identity, &fit));
            continue;
        }
        let (kind, id) = match &identity {
            Ok(identity) => {
                let text = identity.to_string();
                let (kind, id) = text.rsplit_once(' ').unwrap_or((&text, ""));
                (kind.to_owned(), id.to_owned())
            }
            Err(_) => ("-".to_owned(), "-".to_owned()),
        };
        let note = match (&identity, &fit) {
            (Err(error), _) => error.to_string(),
            (_, Fit::NotAsked) => named(identity.as_ref().ok()),
            (_, Fit::Fits(module)) => format!("fits {module}"),
            (_, Fit::Other(text)) => text.clone(),
            (_, Fit::Unknown) => "no module of the trace has such a file".to_owned(),
        };
        rows.push(vec![file.display().to_string(), kind, id, note]);
    }
    let mut out = out();
    if args.json {
        super::json(&mut out, &json!({ "files": objects }))?;
    } else {
        let last = if modules.is_some() { "fits" } else { "note" };
        columns(&mut out, &[("file", false), ("kind", false), ("id", false), (last, false)], &rows)?;
    }
    out.flush()?;
    Ok(if bad > 0 { Exit::InPart } else { Exit::Done })
}

/// What the traces want, if any were given.
fn modules(traces: &[PathBuf]) -> anyhow::Result<Option<Vec<(StackModule, WantedModule)>>> {
    if traces.is_empty() {
        return Ok(None);
    }
    // The defaults of everything else that is said of traces.
    let command = TraceArgs::augment_args(clap::Command::new("verify"));
    let line =
        std::iter::once("verify".into()).chain(traces.iter().map(|trace| trace.clone().into_os_string()));
    let matches = command.try_get_matches_from(line).context("traces")?;
    let modules = read(&TraceArgs::from_arg_matches(&matches)?, true)?;
    Ok(Some(modules.list.into_iter().map(|module| (wanted(&module), module)).map(|(w, m)| (m, w)).collect()))
}

fn fit(identity: &Identity, file: &Path, modules: Option<&[(StackModule, WantedModule)]>) -> Fit {
    let Some(modules) = modules else { return Fit::NotAsked };
    if let Some((module, _)) = modules.iter().find(|(_, wanted)| identity.fits(wanted)) {
        return Fit::Fits(module.name.clone());
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let of = |path: &str| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_lowercase();
        name.rsplit_once('.').map_or(name.clone(), |(stem, _)| stem.to_owned())
    };
    let same = modules.iter().find(|(module, wanted)| match identity.is_image() {
        true => of(&module.name) == stem,
        false => wanted.pdb.as_ref().is_some_and(|key| of(&key.pdb_name) == stem),
    });
    let Some((module, wanted)) = same else { return Fit::Unknown };
    let needs = match identity.is_image() {
        true => wanted.image.as_ref().map(|image| image.store_id()),
        false => wanted.pdb.as_ref().map(ModuleKey::store_id),
    };
    Fit::Other(format!("another build: {} needs {}", module.name, needs.unwrap_or_default()))
}

/// The PDB that an image names.
fn named(identity: Option<&Identity>) -> String {
    match identity {
        Some(Identity::Image { pdb: Some(key), .. }) => {
            format!("its PDB is {} {}", key.pdb_name, key.store_id())
        }
        Some(Identity::Image { pdb: None, .. }) => "names no PDB".to_owned(),
        Some(Identity::Pdb { age: Some(age), pdb_age, .. }) if age != pdb_age => {
            format!("written {pdb_age} times")
        }
        _ => String::new(),
    }
}

fn as_json(
    file: &Path,
    identity: &Result<Identity, etwhy_symbols::verify::VerifyError>,
    fit: &Fit,
) -> serde_json::Value {
    let text = identity.as_ref().map(ToString::to_string).unwrap_or_default();
    let (kind, id) = text.rsplit_once(' ').unwrap_or(("", ""));
    let pdb = match identity {
        Ok(Identity::Image { pdb, .. }) => pdb.as_ref(),
        _ => None,
    };
    json!({
        "file": file,
        "kind": kind,
        "id": id,
        "pdb": pdb.map(|key| key.pdb_name.as_str()),
        "pdb_id": pdb.map(ModuleKey::store_id),
        "error": identity.as_ref().err().map(ToString::to_string),
        "fits": match fit { Fit::NotAsked => None, Fit::Fits(_) => Some(true), _ => Some(false) },
        "module": match fit { Fit::Fits(module) => Some(module), _ => None },
        "text": match fit { Fit::Other(text) => Some(text), _ => None },
    })
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        // Links are not followed: they may lead in circles.
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&path, depth + 1, files);
        } else if kind.is_file() && files.len() < MAX_FILES {
            let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
            if ENDINGS.contains(&ending.as_str()) {
                files.push(path);
            }
        }
    }
}
