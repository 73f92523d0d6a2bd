//! What the user adds to the knowledge base.

use anyhow::Context as _;
use etwhy_knowledge::{Extension, StackTagFiles};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Facts about all drivers there are take a tenth of this.
const MOST_BYTES: u64 = 16 << 20;

/// Reads the user's own facts: first those of the configuration folder, then the files that were named. Of several
/// facts about one image the last counts.
///
/// # Errors
/// A file that was named and cannot be read, and a line that makes no sense.
pub fn load(files: &[PathBuf]) -> anyhow::Result<()> {
    let mut extension = Extension::default();
    for file in configured().into_iter().filter(|f| f.is_file()).chain(files.iter().cloned()) {
        let text = read(&file).with_context(|| format!("{}: cannot read", file.display()))?;
        extension.read(&text, &file.display().to_string())?;
    }
    // Once per run: a command opens its traces once.
    etwhy_knowledge::extend(extension);
    Ok(())
}

/// Reads files of stack tags; true if there are any.
///
/// # Errors
/// A file that cannot be read, and what makes no sense in one.
pub fn load_tags(files: &[PathBuf]) -> anyhow::Result<bool> {
    let mut tags = StackTagFiles::default();
    for file in files {
        let text = read(file).with_context(|| format!("{}: cannot read", file.display()))?;
        tags.read(&text, &file.display().to_string())?;
    }
    let any = !tags.is_empty();
    if any {
        etwhy_knowledge::use_stack_tags(tags);
    }
    Ok(any)
}

/// The folder of what the user configured: `etwhy` in ~/.config or %APPDATA%.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".config"));
    let folder = if cfg!(windows) { set("APPDATA") } else { set("XDG_CONFIG_HOME").or_else(home) };
    folder.map(|folder| folder.join("etwhy"))
}

/// Where facts lie that are always used.
pub fn configured() -> Vec<PathBuf> {
    let names = ["knowledge.csv", "knowledge.tsv"];
    folder().map_or_else(Vec::new, |folder| names.map(|name| folder.join(name)).to_vec())
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(file)?.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
