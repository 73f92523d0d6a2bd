//! Symbols of a module from whatever has them: memory, then the files that are found, or what the compact cache has of these.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cache::Cache;
use crate::locate::Problem;
use crate::stamp::Stamp;
use crate::{
    Candidate, FileKind, Locate, ModuleKey, ModuleSymbols, PortableLines, SafeName, SymbolError,
    WantedModule, breakpad, exports, image, pdb, portable,
};

/// Symbols that stay in memory, in bytes. Those of the compact cache are mapped and do not count.
const DEFAULT_MEMORY: usize = 1 << 30;
/// Largest symbol file that is read. Chrome's Breakpad files are about 1.3 GiB; PDBs end at 4 GiB with pages of 4 KiB.
const MAX_FILE: u64 = 8 << 30;
/// Symbol files from this size on are worth a file in the compact cache; smaller ones are read in no time.
const LEAST_CACHED: u64 = 1 << 20;
/// Problems that are kept until somebody asks.
const MAX_PROBLEMS: usize = 1000;

/// Finds, reads and keeps the symbols of modules.
pub struct Resolver {
    locators: Vec<Box<dyn Locate>>,
    folder: Option<PathBuf>,
    least_cached: u64,
    memory: Mutex<Cache>,
    problems: Mutex<Vec<Problem>>,
}

impl Resolver {
    /// Asks `locators` in their order; what was read is kept in `folder` (see [`cache_folder`]) for the next time.
    pub fn new(locators: Vec<Box<dyn Locate>>, folder: Option<PathBuf>) -> Resolver {
        Resolver::with_memory(locators, folder, DEFAULT_MEMORY)
    }

    /// A resolver that keeps at most about `memory` bytes of symbols beside what callers hold.
    pub fn with_memory(locators: Vec<Box<dyn Locate>>, folder: Option<PathBuf>, memory: usize) -> Resolver {
        Resolver {
            locators,
            folder,
            least_cached: LEAST_CACHED,
            memory: Mutex::new(Cache::new(memory)),
            problems: Mutex::default(),
        }
    }

    /// Keeps small symbol files in the compact cache too.
    pub fn caching_all(self) -> Resolver {
        Resolver { least_cached: 0, ..self }
    }

    /// Where symbols are looked for, in words.
    pub fn describe(&self) -> Vec<String> {
        self.locators.iter().map(|l| l.describe()).collect()
    }

    /// The symbols of a module; `None` if nobody has any that fit. The best that is found counts: a PDB, then a
    /// Breakpad file, then the export table of the image.
    pub fn load(&self, wanted: &WantedModule) -> Option<Arc<ModuleSymbols>> {
        if let Some(module) = lock(&self.memory).get(wanted) {
            return Some(module);
        }
        let Some(module) = self.find(wanted) else {
            tracing::debug!("no symbols for {wanted:?}");
            return None;
        };
        let module = Arc::new(module);
        lock(&self.memory).put(wanted, &module);
        Some(module)
    }

    /// The source lines of an assembly's methods, from its portable PDB. Stores file those without an age (`FFFFFFFF`: "SSQP Key
    /// Conventions", dotnet/symstore), whatever `RSDS` record and runtime say. The caller keeps them.
    pub fn lines(&self, pdb: &ModuleKey) -> Option<PortableLines> {
        let pdb = ModuleKey { age: u32::MAX, ..pdb.clone() };
        let wanted = WantedModule { pdb: Some(pdb.clone()), image: None };
        let candidates = self.locators.iter().flat_map(|locator| locator.candidates(&wanted));
        for candidate in candidates.filter(|c| c.kind == FileKind::Pdb) {
            match portable::open(&candidate.file, Some(&pdb)) {
                Ok(lines) => return Some(lines),
                Err(error) => self.note(&candidate.file, &error),
            }
        }
        None
    }

    /// What went wrong since the last call.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = std::mem::take(&mut *lock(&self.problems));
        problems.extend(self.locators.iter().flat_map(|l| l.problems()));
        problems
    }

    fn find(&self, wanted: &WantedModule) -> Option<ModuleSymbols> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for locator in &self.locators {
            for candidate in locator.candidates(wanted) {
                if !candidates.contains(&candidate) {
                    candidates.push(candidate);
                }
            }
        }
        // Stable: the order of the locators decides between files of one kind.
        candidates.sort_by_key(|c| c.kind);
        self.read_any(&candidates, wanted)
    }

    /// The first of several files that fits.
    fn read_any(&self, candidates: &[Candidate], wanted: &WantedModule) -> Option<ModuleSymbols> {
        for candidate in candidates {
            let entry = self.entry(candidate, wanted);
            if let Some(module) = entry.as_ref().and_then(|entry| self.cached(entry)) {
                return Some(module);
            }
            match self.read(candidate, wanted, entry.as_ref().map_or("", |entry| entry.key.as_str())) {
                Ok(Some(module)) => {
                    tracing::debug!("{}: symbols read", candidate.file.display());
                    if let Some(entry) = &entry {
                        keep(entry, &module);
                    }
                    return Some(module);
                }
                Ok(None) => tracing::debug!("{}: not what is wanted, skipped", candidate.file.display()),
                Err(error) => self.note(&candidate.file, &error),
            }
        }
        None
    }

    /// `None` if it is of a kind that cannot be checked against what is known of the module.
    fn read(
        &self,
        candidate: &Candidate,
        wanted: &WantedModule,
        key: &str,
    ) -> Result<Option<ModuleSymbols>, SymbolError> {
        let file = candidate.file.as_path();
        let io = |source| SymbolError::Io { file: file.to_path_buf(), source };
        let bytes = fs::metadata(file).map_err(io)?.len();
        if bytes > MAX_FILE {
            return Err(SymbolError::TooLarge { file: file.to_path_buf(), bytes, limit: MAX_FILE });
        }
        match (candidate.kind, &wanted.pdb, &wanted.image) {
            (FileKind::Pdb, Some(wanted), _) => pdb::open(file, Some(wanted), key).map(Some),
            (FileKind::Breakpad, Some(wanted), _) => {
                let source = fs::File::open(file).map_err(io)?;
                breakpad::read(source, file, Some(wanted), key).map(Some)
            }
            (FileKind::Image, _, Some(wanted)) => {
                let module = exports::open(file, Some(wanted), key)?;
                Ok((module.publics() > 0).then_some(module))
            }
            _ => Ok(None),
        }
    }

    fn note(&self, file: &Path, error: &SymbolError) {
        tracing::debug!("skipped: {error}");
        let mut problems = lock(&self.problems);
        if problems.len() < MAX_PROBLEMS {
            let mismatch = matches!(error, SymbolError::Mismatch { .. });
            problems.push(Problem { file: Some(file.to_path_buf()), text: error.to_string(), mismatch });
        }
    }

    /// Where the compact cache has what was read from a file, if it may have it: GUID and age are what the file itself says, so the key is
    /// also which file it is, and what came with a trace stays out.
    fn entry(&self, candidate: &Candidate, wanted: &WantedModule) -> Option<CacheEntry> {
        let folder = self.folder.as_ref().filter(|_| candidate.is_named)?;
        let (name, id) = cache_names(wanted, candidate.kind)?;
        let stamp = Stamp::of(&candidate.file).filter(|stamp| stamp.bytes >= self.least_cached)?;
        let file = format!("{id}-{}.v{}", stamp.short(), image::VERSION);
        Some(CacheEntry {
            file: folder.join(name.as_str()).join(file),
            key: format!("{name}/{id}, {}", stamp.text()),
        })
    }

    fn cached(&self, entry: &CacheEntry) -> Option<ModuleSymbols> {
        match ModuleSymbols::open(&entry.file, &entry.key) {
            Ok(module) => {
                tracing::debug!("{}: symbols from the compact cache", entry.file.display());
                Some(module)
            }
            Err(SymbolError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                // It is made again from the symbol file.
                self.note(&entry.file, &error);
                None
            }
        }
    }
}

/// A file of the compact cache.
struct CacheEntry {
    file: PathBuf,
    /// What it says that it is of.
    key: String,
}

/// Writes a file of the compact cache. Without a place for it there is none the next time, and nothing worse.
fn keep(entry: &CacheEntry, module: &ModuleSymbols) {
    let Some(folder) = entry.file.parent() else { return };
    let written = fs::create_dir_all(folder)
        .and_then(|()| etwhy_scratch::Scratch::beside(&entry.file))
        .and_then(|scratch| {
            let whole = scratch.path().join("whole");
            fs::write(&whole, module.bytes())?;
            // Readers see the whole file or none.
            fs::rename(&whole, &entry.file)
        });
    // A folder that cannot be written is no reason to tell anything: all works but slower.
    drop(written);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names of folder and file in the compact cache. Only a validated name becomes one.
fn cache_names(wanted: &WantedModule, kind: FileKind) -> Option<(SafeName, String)> {
    match (kind, &wanted.pdb, &wanted.image) {
        (FileKind::Image, _, Some(image)) => Some((SafeName::of_path(&image.name)?, image.store_id())),
        (FileKind::Pdb | FileKind::Breakpad, Some(pdb), _) => {
            Some((SafeName::of_path(&pdb.pdb_name)?, pdb.store_id()))
        }
        _ => None,
    }
}

/// The folder of the compact cache: `symbols` in `ETWHY_CACHE`, or else in etwhy's folder where this system keeps
/// caches. `None` if there is no such place, or `ETWHY_CACHE` is empty.
pub fn cache_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let folder = match variable("ETWHY_CACHE") {
        Some(folder) => folder,
        None if cfg!(windows) => absolute(variable("LOCALAPPDATA"))?.join("etwhy"),
        None if cfg!(target_os = "macos") => absolute(variable("HOME"))?.join("Library/Caches/etwhy"),
        // "XDG Base Directory Specification": relative paths are to be ignored.
        None => match absolute(variable("XDG_CACHE_HOME")) {
            Some(folder) => folder.join("etwhy"),
            None => absolute(variable("HOME"))?.join(".cache/etwhy"),
        },
    };
    (!folder.as_os_str().is_empty()).then(|| folder.join("symbols"))
}

fn absolute(path: Option<PathBuf>) -> Option<PathBuf> {
    path.filter(|p| p.is_absolute())
}
