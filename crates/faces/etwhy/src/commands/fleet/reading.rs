//! How traces of a fleet are read: what `fleet run` is given and hands on to each process.

use crate::command::PROGRAM;
use crate::open::TraceArgs;
use crate::rules::RuleArgs;
use crate::symbol_args::{SymbolArgs, VARIABLES};
use anyhow::Context as _;
use etwhy_base::rng::fnv1a;
use etwhy_etl::read::file_sha256;
use etwhy_fleet::ids::settings_id;
use etwhy_symbols::NameStyle;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What decides what is found in a trace.
#[derive(clap::Args, Clone, Debug)]
pub struct Reading {
    #[command(flatten)]
    pub symbols: SymbolArgs,
    /// How functions are named: short (without parameters), full (with them) or raw (as the linker has them)
    #[arg(long, value_name = "FORM", default_value = "short")]
    pub names: NameStyle,
    /// Folders or files of provider manifests (.man, .xml)
    #[arg(long, value_name = "DIR")]
    pub manifests: Vec<PathBuf>,
    /// Folders or files of WPP message formats (.tmf)
    #[arg(long, value_name = "DIR")]
    pub tmf: Vec<PathBuf>,
    /// Files (CSV) with facts of your own about drivers, libraries and programs
    #[arg(long, value_name = "FILE")]
    pub knowledge: Vec<PathBuf>,
    /// Files with stack tags in the format of WPA (.stacktags)
    #[arg(long, value_name = "FILE")]
    pub tags: Vec<PathBuf>,
    #[command(flatten)]
    pub rules: RuleArgs,
    /// The machine that all of these traces are of; without it each trace says (computer name, else its boot)
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// Each trace is of the machine that its folder is called
    #[arg(long, conflicts_with = "machine")]
    pub machine_by_folder: bool,
    /// Most bytes that an archive may unpack to
    #[arg(long, value_name = "SIZE", value_parser = crate::open::size)]
    pub max_unpacked: Option<u64>,
    /// Folder for temporary files
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
}

impl Reading {
    /// Name of all of this: traces are read again when it is another.
    ///
    /// # Errors
    /// A file that was named and cannot be read.
    pub fn settings_id(&self) -> anyhow::Result<String> {
        let mut facts = vec![format!("{:?}", self.symbols.symbols), format!("{:?}", self.symbols.images)];
        facts.push(format!("{} {:?} {}", self.symbols.offline, self.names, self.machine_by_folder));
        facts.push(format!("{:?}", self.machine));
        for variable in VARIABLES {
            facts.push(format!("{variable} {:?}", std::env::var_os(variable)));
        }
        // Knowledge that ships, and files by what they hold: another one of that name is another.
        facts.push(format!("{:016x}", knowledge_version()?));
        for (kind, paths) in [
            ("manifests", &self.manifests),
            ("tmf", &self.tmf),
            ("knowledge", &self.knowledge),
            ("tags", &self.tags),
            ("rules", &self.rules.rules),
        ] {
            for path in paths {
                facts.push(format!("{kind} {:016x}", content(path)?));
            }
        }
        for path in crate::knowledge::configured().iter().filter(|path| path.is_file()) {
            facts.push(format!("configured {:016x}", content(path)?));
        }
        Ok(settings_id(PROGRAM, &facts))
    }

    /// How a trace is opened.
    pub fn trace_args(&self, traces: Vec<PathBuf>, threads: usize, memory: Option<u64>) -> TraceArgs {
        TraceArgs {
            traces,
            demo: false,
            symbols: self.symbols.clone(),
            names: self.names,
            manifests: self.manifests.clone(),
            tmf: self.tmf.clone(),
            knowledge: self.knowledge.clone(),
            tags: self.tags.clone(),
            loggers: Vec::new(),
            memory,
            threads: Some(threads),
            temp_dir: self.temp_dir.clone(),
            max_unpacked: self.max_unpacked,
            max_unpack_ratio: None,
            merge: false,
            recursive: false,
            chunk: None,
            quiet: true,
        }
    }

    /// The options for another process.
    pub fn options(&self) -> Vec<OsString> {
        let mut line: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: OsString| {
            // One word, so that a value may begin with a dash.
            let mut word = OsString::from(format!("--{name}="));
            word.push(value);
            line.push(word);
        };
        self.symbols.symbols.iter().for_each(|path| add("symbols", path.into()));
        for (name, paths) in [
            ("images", &self.symbols.images),
            ("manifests", &self.manifests),
            ("tmf", &self.tmf),
            ("knowledge", &self.knowledge),
            ("tags", &self.tags),
            ("rules", &self.rules.rules),
        ] {
            paths.iter().for_each(|path| add(name, path.into()));
        }
        add("names", format!("{:?}", self.names).to_lowercase().into());
        self.machine.iter().for_each(|machine| add("machine", machine.into()));
        self.max_unpacked.iter().for_each(|bytes| add("max-unpacked", bytes.to_string().into()));
        self.temp_dir.iter().for_each(|folder| add("temp-dir", folder.into()));
        line.extend(self.symbols.offline.then(|| "--offline".into()));
        line.extend(self.machine_by_folder.then(|| "--machine-by-folder".into()));
        line
    }

    /// The machine that the caller names for a trace at this path.
    pub fn machine_of(&self, path: &Path) -> Option<String> {
        let folder = || {
            let path = std::path::absolute(path).ok()?;
            Some(path.parent()?.file_name()?.to_string_lossy().into_owned())
        };
        self.machine.clone().or_else(|| if self.machine_by_folder { folder() } else { None })
    }
}

/// What this program knows of drivers and programs, as a number.
fn knowledge_version() -> anyhow::Result<u64> {
    let mut all = String::new();
    let table = etwhy_fleet::store::knowledge()?;
    for row in 0..table.rows() as u32 {
        for column in ["kind", "name", "vendor", "product", "category"] {
            all.push_str(table.text(row, column).unwrap_or_default());
            all.push('\t');
        }
        all.push('\n');
    }
    Ok(fnv1a(all))
}

/// What a file holds, or all files of a folder, as a number.
fn content(path: &Path) -> anyhow::Result<u64> {
    let cannot = || format!("cannot read {}", path.display());
    if path.is_dir() {
        let list = std::fs::read_dir(path).with_context(cannot)?;
        let mut parts: Vec<(PathBuf, u64)> = Vec::new();
        for entry in list {
            let path = entry.with_context(cannot)?.path();
            // A link to a folder may lead in a circle, and a pipe or a device has no end.
            if path.symlink_metadata().is_ok_and(|link| link.is_dir()) || path.is_file() {
                parts.push((path.clone(), content(&path)?));
            }
        }
        parts.sort();
        let sums: Vec<String> = parts.iter().map(|(_, sum)| format!("{sum:016x}")).collect();
        return Ok(fnv1a(sums.join(" ")));
    }
    Ok(fnv1a(file_sha256(path).with_context(cannot)?))
}
