//! Where symbols come from: `--symbols`, `--images`, `--offline` and the variables of the debuggers.

use crate::progress::downloads;
use anyhow::Context as _;
use etwhy_symbols::path::{Element, symcache_folders};
use etwhy_symbols::server::ServerOptions;
use etwhy_symbols::{SourceOptions, SymbolPath, cache_folder};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Variables with symbol paths, in the order in which the debuggers search them ("Symbol path for Windows debuggers").
pub const VARIABLES: [&str; 2] = ["_NT_ALT_SYMBOL_PATH", "_NT_SYMBOL_PATH"];

/// Where symbols come from.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SymbolArgs {
    /// Where symbols are: folders, or a path as in _NT_SYMBOL_PATH (srv*FOLDER*https://SERVER;FOLDER), which is used
    /// too, after this one. Servers are asked only if a path names one. Files next to the trace are picked up automatically
    #[arg(long, value_name = "PATH")]
    pub symbols: Vec<String>,
    /// Folders with images (.exe, .dll, .sys), or copies of disks: functions that they export are named if there are no
    /// symbols
    #[arg(long, value_name = "DIR")]
    pub images: Vec<PathBuf>,
    /// Ask no symbol server, even if the symbol path names one
    #[arg(long)]
    pub offline: bool,
}

/// A part of the symbol path and where it comes from.
pub struct PathPart {
    /// `--symbols` or the name of the variable.
    pub origin: &'static str,
    /// What it says.
    pub path: SymbolPath,
}

impl SymbolArgs {
    /// The whole path, by origin. Elements of variables that make no sense are told and left out.
    ///
    /// # Errors
    /// `--symbols` makes no sense.
    pub fn parts(&self) -> anyhow::Result<Vec<PathPart>> {
        // Several parts of a command ask for the path; what is wrong with it is said once.
        static TOLD: AtomicBool = AtomicBool::new(false);
        let told = TOLD.swap(true, Ordering::Relaxed);
        let mut parts = Vec::new();
        for text in &self.symbols {
            // A folder may have any name, even one that looks like a path.
            let path = if Path::new(text).is_dir() {
                SymbolPath { elements: vec![Element::Folder(text.clone())] }
            } else {
                SymbolPath::parse(text).context("--symbols")?
            };
            parts.push(PathPart { origin: "--symbols", path });
        }
        for origin in VARIABLES {
            let Some(text) = std::env::var(origin).ok().filter(|text| !text.is_empty()) else { continue };
            let (path, faults) = SymbolPath::parse_with(&text, &|name| std::env::var(name).ok());
            for fault in faults.into_iter().filter(|_| !told) {
                say!("etwhy: {origin}: {fault} (left out)");
            }
            parts.push(PathPart { origin, path });
        }
        Ok(parts)
    }

    /// The whole path.
    ///
    /// # Errors
    /// `--symbols` makes no sense.
    pub fn path(&self) -> anyhow::Result<SymbolPath> {
        let mut whole = SymbolPath::default();
        for part in self.parts()? {
            whole.append(part.path);
        }
        Ok(whole)
    }

    /// How files are looked for, for these traces. Downloads are shown, unless `quiet`.
    pub fn options(&self, traces: &[PathBuf], quiet: bool) -> SourceOptions {
        let on_transfer = Some(downloads(quiet));
        let server = ServerOptions { on_transfer, ..ServerOptions::default() };
        SourceOptions {
            server,
            offline: self.offline,
            images: self.images.clone(),
            beside: beside(traces),
            ..SourceOptions::default()
        }
    }
}

/// Where symbols are kept that were read: the first folder of `_NT_SYMCACHE_PATH`, as the Windows Performance Toolkit has it, unless
/// `ETWHY_CACHE` says otherwise; else the usual one. The files there have names that `.symcache` files do not.
pub fn compact_cache() -> Option<PathBuf> {
    if std::env::var_os("ETWHY_CACHE").is_some() {
        return cache_folder();
    }
    let text = std::env::var("_NT_SYMCACHE_PATH").unwrap_or_default();
    let named = symcache_folders(&text, &|name| std::env::var(name).ok()).into_iter().next();
    named.or_else(cache_folder)
}

/// Folders that lie beside traces: `symbols` (as PerfView and we write it), `NAME.etl.NGENPDB` (Windows Performance Recorder,
/// "Loading Symbols"), and the trace's own.
fn beside(traces: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for trace in traces {
        let Some(folder) = (if trace.is_dir() { Some(trace.as_path()) } else { trace.parent() }) else {
            continue;
        };
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let mut ngen = trace.as_os_str().to_owned();
        ngen.push(".NGENPDB");
        for candidate in [folder.join("symbols"), PathBuf::from(ngen), folder.to_path_buf()] {
            if candidate.is_dir() && !folders.contains(&candidate) {
                folders.push(candidate);
            }
        }
    }
    folders
}
