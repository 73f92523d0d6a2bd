//! The repository's folder and what is done with it.

use anyhow::{Context as _, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository.
pub struct Repo {
    root: PathBuf,
}

impl Repo {
    /// The repository whose `cargo` runs this program. Not the one that it was built from: clones may share a
    /// target folder, and then that is another one.
    ///
    /// # Errors
    /// If it is not there.
    pub fn here() -> Result<Repo> {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").context("run it as `cargo xtask`")?;
        let root = Path::new(&package).join("..");
        let root = root.canonicalize().with_context(|| format!("{}: cannot find it", root.display()))?;
        Ok(Repo { root })
    }

    /// A path inside the repository.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, inside: &str) -> Result<String> {
        std::fs::read_to_string(self.path(inside)).with_context(|| format!("{inside}: cannot read"))
    }

    /// Writes a file, and its folder if there is none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, inside: &str, text: &str) -> Result<()> {
        let path = self.path(inside);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make", folder.display()))?;
        }
        std::fs::write(path, text).with_context(|| format!("{inside}: cannot write"))
    }

    /// Stems of the `.rs` files of a folder but `mod.rs`, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn modules(&self, folder: &str) -> Result<Vec<String>> {
        let mut names: Vec<String> = self
            .entries(folder)?
            .into_iter()
            .filter(|path| path.extension() == Some(OsStr::new("rs")))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| name != "mod")
            .collect();
        names.sort();
        Ok(names)
    }

    /// All files below a folder, as paths with `/` inside the repository, sorted. Folders that hold no
    /// sources (`target`, version control, virtual environments) are left out.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn files(&self, folder: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            for path in self.entries(&folder)? {
                let Some(name) = path.file_name().and_then(OsStr::to_str) else { continue };
                let inside = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
                if !path.is_dir() {
                    found.push(inside);
                } else if !["target", ".git", ".venv", "__pycache__"].contains(&name) {
                    open.push(inside);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    fn entries(&self, folder: &str) -> Result<Vec<PathBuf>> {
        let path = self.path(folder);
        let entries = std::fs::read_dir(&path).with_context(|| format!("{}: cannot list", path.display()))?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }

    /// What `cargo` prints, run in the repository.
    ///
    /// # Errors
    /// If it fails; its messages go to standard error.
    pub fn cargo(&self, arguments: &[&str]) -> Result<String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(arguments)
            .current_dir(&self.root)
            // Help is wrapped to this width whoever asks.
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        if !output.status.success() {
            bail!("`cargo {}` failed", arguments.join(" "));
        }
        String::from_utf8(output.stdout).context("cargo printed something that is no text")
    }
}
