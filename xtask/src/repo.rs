//! The repository's folder and what is done with it.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file of the repository that is made from others.
pub struct Generated {
    /// Path inside the repository.
    pub path: &'static str,
    /// Its text.
    pub text: String,
}

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

    /// Names without ending of the files in a folder that end so, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn stems(&self, folder: &str, ending: &str) -> Result<Vec<String>> {
        let entries = self.entries(folder)?;
        let stem =
            |path: &std::path::PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(ending)?.to_owned());
        let mut names: Vec<String> = entries.iter().filter_map(stem).collect();
        names.sort();
        Ok(names)
    }

    /// All files below a folder, as paths with `/` inside the repository, sorted. Folders that hold no
    /// sources (`target`, version control, virtual environments, packages) are left out.
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
                } else if !["target", ".git", ".venv", "__pycache__", "node_modules"].contains(&name) {
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

    /// The folder that builds go to.
    ///
    /// # Errors
    /// If `cargo metadata` does not say.
    pub fn target(&self) -> Result<PathBuf> {
        let metadata = self.metadata()?;
        let folder = metadata.get("target_directory").and_then(Value::as_str);
        Ok(folder.context("cargo metadata names no target folder")?.into())
    }

    /// What cargo knows of the workspace.
    ///
    /// # Errors
    /// If it fails.
    pub fn metadata(&self) -> Result<Value> {
        let text = self.cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
        serde_json::from_str(&text).context("cargo metadata printed no JSON")
    }

    /// What `cargo` prints.
    ///
    /// # Errors
    /// As [`Repo::run`].
    pub fn cargo(&self, arguments: &[&str]) -> Result<String> {
        self.run(Path::new(&std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())), arguments)
    }

    /// What a program prints, run in the repository.
    ///
    /// # Errors
    /// If it fails; its messages go to standard error.
    pub fn run(&self, program: &Path, arguments: &[&str]) -> Result<String> {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.root)
            // Texts are wrapped to this width whoever asks.
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let line = format!("{} {}", program.display(), arguments.join(" "));
        if !output.status.success() {
            bail!("`{line}` failed");
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("`{line}` printed something that is no text"))
    }
}
