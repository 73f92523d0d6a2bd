//! Gathers the traces of all inputs: decides what a member of an archive is and unpacks it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use etwhy_etl::Ledger;
use etwhy_scratch::Scratch;

use crate::budget::Budget;
use crate::etl_magic::may_be_etl;
use crate::file::{InputFile, TempGuard};
use crate::spool::{self, Head, Spooled};
use crate::{InputError, InputOptions, Kind, Progress, WantedFiles, anomaly, shown, sniff};

/// The reader numbers its files with 16 bits.
pub const MAX_FILES: usize = 65_535;
/// Names of members that an error message lists.
const MAX_EXAMPLES: usize = 3;

/// The state of one call of [`open`](crate::open()).
pub struct Collector<'a> {
    pub options: &'a InputOptions,
    pub ledger: &'a mut Ledger,
    pub budget: Budget,
    pub files: Vec<InputFile>,
    progress: &'a mut dyn FnMut(Progress<'_>),
    temp: Option<Arc<Scratch>>,
    next_name: u32,
}

/// One archive while it is being unpacked.
pub struct Package {
    /// As shown to the user.
    pub shown: PathBuf,
    pub kind: Kind,
    /// 0 for an archive that the user named, 1 for one inside it.
    pub depth: u8,
    /// Members seen.
    pub members: usize,
    /// The first member that could not be read for want of a password.
    pub encrypted: Option<String>,
    /// The first member packed with a foreign method, and the method.
    pub unsupported: Option<(String, String)>,
    /// The first damage.
    pub damage: Option<String>,
    examples: Vec<String>,
    /// The folder of the symbol files that it held.
    pub symbols: Option<PathBuf>,
}

impl<'a> Collector<'a> {
    pub fn new(
        options: &'a InputOptions,
        progress: &'a mut dyn FnMut(Progress<'_>),
        ledger: &'a mut Ledger,
    ) -> Collector<'a> {
        Collector {
            options,
            ledger,
            budget: Budget::new(options),
            files: Vec::new(),
            progress,
            temp: None,
            next_name: 0,
        }
    }

    /// Looks at one member of an archive and unpacks it if it is of use.
    pub fn member(
        &mut self,
        package: &mut Package,
        name: &str,
        claimed: Option<u64>,
        source: &mut dyn Read,
    ) -> Result<(), InputError> {
        package.seen(name);
        let head = spool::read_head(source);
        let kind = sniff(&head.bytes);
        let named_etl = self.options.wanted.is_named(name);
        if let (Kind::Empty, Some(problem)) = (kind, &head.problem) {
            if named_etl {
                self.damaged(package, name, problem.clone());
            }
            return Ok(());
        }
        match kind {
            kind if self.options.wanted.is(kind) => {
                self.take(package, shown::member(&package.shown, name), claimed, head, source)
            }
            Kind::Unknown if named_etl && self.may_be_wanted(&head.bytes) => {
                self.take(package, shown::member(&package.shown, name), claimed, head, source)
            }
            _ if is_symbol_file(name) => self.symbol_file(package, name, claimed, head, source),
            _ if kind.is_archive() => self.nested(package, name, kind, claimed, head, source),
            _ => {
                if named_etl {
                    self.ledger.note(&anomaly::MEMBER_UNLIKE_A_TRACE, 1, || place(package, name));
                }
                Ok(())
            }
        }
    }

    /// Takes the only content of a packed stream.
    pub fn only_content(&mut self, package: &mut Package, source: &mut dyn Read) -> Result<(), InputError> {
        package.members = 1;
        let head = spool::read_head(source);
        let kind = sniff(&head.bytes);
        match (kind, head.problem.clone()) {
            (Kind::Empty, Some(problem)) => {
                package.damage = Some(problem);
                Ok(())
            }
            (kind, _)
                if self.options.wanted.is(kind)
                    || (kind == Kind::Unknown && self.may_be_wanted(&head.bytes)) =>
            {
                self.take(package, package.shown.clone(), None, head, source)
            }
            _ if kind.is_archive() => self.nested(package, kind.name(), kind, None, head, source),
            _ => {
                Err(InputError::NotATrace { file: package.shown.clone(), kind, wanted: self.options.wanted })
            }
        }
    }

    /// Whether the reader could make something of a file that begins with these bytes, which are no known kind's. Logs are
    /// found behind damaged beginnings.
    fn may_be_wanted(&self, head: &[u8]) -> bool {
        self.options.wanted == WantedFiles::Logs || may_be_etl(head)
    }

    /// Counts damage that left nothing, or not everything, of a member.
    pub fn damaged(&mut self, package: &mut Package, name: &str, problem: String) {
        self.ledger.note(&anomaly::ARCHIVE_DAMAGED, 1, || format!("{}: {problem}", place(package, name)));
        package.damage.get_or_insert(problem);
    }

    /// Remembers a member that needs a password.
    pub fn encrypted(&mut self, package: &mut Package, name: &str) {
        package.seen(name);
        self.ledger.note(&anomaly::ARCHIVE_MEMBER_ENCRYPTED, 1, || place(package, name));
        package.encrypted.get_or_insert_with(|| shown::clean(name));
    }

    /// Remembers a member packed with a method that is not there.
    pub fn unsupported(&mut self, package: &mut Package, name: &str, method: String) {
        package.seen(name);
        self.ledger.note(&anomaly::ARCHIVE_MEMBER_UNSUPPORTED, 1, || place(package, name));
        package.unsupported.get_or_insert_with(|| (shown::clean(name), method));
    }

    /// Writes a stream to a new temporary file.
    pub fn unpack_to_temp(
        &mut self,
        shown: &Path,
        claimed: Option<u64>,
        head: Head,
        source: &mut dyn Read,
    ) -> Result<(PathBuf, Spooled, TempGuard), InputError> {
        let temp = self.temp_dir(shown)?;
        self.next_name = self.next_name.saturating_add(1);
        // A name of our own: nothing of the archive's name gets near the disk.
        let path = temp.path().join(format!("{:05}.etl", self.next_name));
        let spooled =
            spool::spool(head, source, &path, shown, claimed, &mut self.budget, &mut *self.progress)?;
        Ok((path, spooled, TempGuard::new(temp)))
    }

    /// Adds a file to the result.
    pub fn push(&mut self, file: InputFile) -> Result<(), InputError> {
        if self.files.len() >= MAX_FILES {
            return Err(InputError::TooManyFiles { limit: MAX_FILES });
        }
        self.files.push(file);
        Ok(())
    }

    fn take(
        &mut self,
        package: &mut Package,
        shown: PathBuf,
        claimed: Option<u64>,
        head: Head,
        source: &mut dyn Read,
    ) -> Result<(), InputError> {
        self.budget.claim(claimed.unwrap_or(0))?;
        let (path, spooled, guard) = self.unpack_to_temp(&shown, claimed, head, source)?;
        let complete = spooled.problem.is_none();
        if let Some(problem) = spooled.problem {
            self.ledger.note(&anomaly::ARCHIVE_DAMAGED, 1, || {
                format!("{}: {problem} after {} bytes", shown.display(), spooled.bytes)
            });
            package.damage.get_or_insert(problem);
        }
        self.push(InputFile { shown, path, symbols_dir: None, complete, temp: Some(guard) })
    }

    fn symbol_file(
        &mut self,
        package: &mut Package,
        name: &str,
        claimed: Option<u64>,
        head: Head,
        source: &mut dyn Read,
    ) -> Result<(), InputError> {
        let Some(entry) = etwhy_symbols::StoreEntry::from_packed_path(name) else {
            self.ledger.note(&anomaly::PACKED_SYMBOL_SKIPPED, 1, || place(package, name));
            return Ok(());
        };
        let shown = shown::member(&package.shown, name);
        let io = |what, source| InputError::Io { file: shown.clone(), what, source };
        let root = match &package.symbols {
            Some(root) => root.clone(),
            None => {
                let temp = self.temp_dir(&shown)?;
                self.next_name = self.next_name.saturating_add(1);
                let root = temp.path().join(format!("symbols-{:05}", self.next_name));
                package.symbols.insert(root).clone()
            }
        };
        self.budget.claim(claimed.unwrap_or(0))?;
        let path = entry.path_in(&root);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| io("unpack", e))?;
        }
        if path.exists() {
            self.ledger.note(&anomaly::PACKED_SYMBOL_SKIPPED, 1, || place(package, name));
            return Ok(());
        }
        let spooled =
            spool::spool(head, source, &path, &shown, claimed, &mut self.budget, &mut *self.progress)?;
        if let Some(problem) = spooled.problem {
            // Half a symbol file names addresses wrongly.
            fs::remove_file(&path).map_err(|e| io("unpack", e))?;
            self.damaged(package, name, problem);
        }
        Ok(())
    }

    fn temp_dir(&mut self, shown: &Path) -> Result<Arc<Scratch>, InputError> {
        if let Some(temp) = &self.temp {
            return Ok(temp.clone());
        }
        let made = Scratch::new(self.options.temp_dir.as_deref()).map_err(|source| InputError::Io {
            file: shown.to_path_buf(),
            what: "make a temporary folder for",
            source,
        })?;
        Ok(self.temp.insert(Arc::new(made)).clone())
    }
}

impl Package {
    /// An archive from which nothing was read yet.
    pub fn new(shown: &Path, kind: Kind, depth: u8) -> Package {
        Package {
            shown: shown.to_path_buf(),
            kind,
            depth,
            members: 0,
            encrypted: None,
            unsupported: None,
            damage: None,
            examples: Vec::new(),
            symbols: None,
        }
    }

    fn seen(&mut self, name: &str) {
        self.members = self.members.saturating_add(1);
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(shown::clean(name));
        }
    }

    /// Why an archive without traces has none.
    pub fn why_nothing(self, wanted: WantedFiles) -> InputError {
        let file = self.shown;
        if let Some(member) = self.encrypted {
            InputError::Encrypted { file, member }
        } else if let Some((member, method)) = self.unsupported {
            InputError::UnsupportedMethod { file, member, method }
        } else if let Some(problem) = self.damage {
            InputError::Damaged { file, kind: self.kind, problem }
        } else {
            InputError::NoTraceInArchive { file, members: self.members, examples: self.examples, wanted }
        }
    }
}

/// How a member is called in the ledger.
pub fn place(package: &Package, name: &str) -> String {
    shown::member(&package.shown, name).display().to_string()
}

/// True for Breakpad symbol files in a `symbols/` folder of a package.
pub fn is_symbol_file(name: &str) -> bool {
    ends_with_ignore_case(name, ".sym")
}

/// True for names of archives that may hold a trace.
pub fn is_named_archive(name: &str) -> bool {
    [".zip", ".7z", ".gz", ".zst", ".lz4", ".xz", ".bz2", ".diagsession"]
        .iter()
        .any(|end| ends_with_ignore_case(name, end))
}

fn ends_with_ignore_case(name: &str, end: &str) -> bool {
    let (name, end) = (name.as_bytes(), end.as_bytes());
    name.len()
        .checked_sub(end.len())
        .and_then(|at| name.get(at..))
        .is_some_and(|t| t.eq_ignore_ascii_case(end))
}
