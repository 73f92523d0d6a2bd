//! Downloads that are not whole yet, in a folder of their own within the cache, with what is needed to resume them.

use etwhy_base::rng::fnv1a;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Folder within the cache for what is not a symbol file.
const HIDDEN: &str = ".etwhy";

/// The file in the cache that belongs to a URL.
pub fn hidden(folder: &Path, what: &str, url: &str) -> PathBuf {
    // The URL stands in the file, so that collisions do no harm.
    folder.join(HIDDEN).join(format!("{what}-{:016x}", fnv1a(url)))
}

/// Writes lines into a file.
pub fn note(path: &Path, lines: &[&str]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, lines.join("\n"))
}

/// A download in progress. The file is locked: two processes do not write into one.
pub struct Partial {
    /// The bytes so far.
    pub file: File,
    /// Where they are.
    pub path: PathBuf,
    state: PathBuf,
    url: String,
    /// `ETag` or `Last-Modified` of what is there; without it nothing can be resumed.
    pub validator: Option<String>,
}

impl Partial {
    /// Opens what an earlier run left of this URL, or begins anew.
    pub fn open(folder: &Path, url: &str) -> io::Result<Partial> {
        let path = hidden(folder, "part", url);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let open =
            |path: &Path| OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        let mut file = open(&path)?;
        let mut path = path;
        let mut state = hidden(folder, "state", url);
        if file.try_lock().is_err() {
            // Another process downloads the same file; both may, the last one wins.
            let own = format!("{url} {}", std::process::id());
            path = hidden(folder, "part", &own);
            state = hidden(folder, "state", &own);
            file = open(&path)?;
            file.set_len(0)?;
        }
        let mut partial = Partial { file, path, state, url: url.to_owned(), validator: None };
        partial.validator = partial.remembered();
        if partial.validator.is_none() {
            partial.file.set_len(0)?;
        }
        Ok(partial)
    }

    fn remembered(&self) -> Option<String> {
        let mut text = String::new();
        File::open(&self.state).ok()?.take(1 << 16).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        (lines.next() == Some(self.url.as_str())).then(|| lines.next().map(str::to_owned)).flatten()
    }

    /// Bytes that are there.
    pub fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Begins anew, with what the server says of the version that comes now.
    pub fn restart(&mut self, validator: Option<String>) -> io::Result<()> {
        self.file.set_len(0)?;
        self.validator = validator;
        match &self.validator {
            Some(validator) => note(&self.state, &[&self.url, validator]),
            None => self.forget_state(),
        }
    }

    fn forget_state(&self) -> io::Result<()> {
        match fs::remove_file(&self.state) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// It is whole: only the bytes stay.
    pub fn finish(self) -> io::Result<PathBuf> {
        self.forget_state()?;
        Ok(self.path)
    }

    /// Nothing of it is worth keeping.
    pub fn discard(self) {
        let _ = self.forget_state();
        let _ = fs::remove_file(&self.path);
    }
}
