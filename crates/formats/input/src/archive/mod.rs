//! Archives and those inside them. One file per format; each feeds members to the [`Collector`].

mod local_headers;
mod seven_zip;
mod stream;
mod zip;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::collect::{Collector, Package, place};
use crate::spool::Head;
use crate::{InputError, Kind, anomaly, shown};

/// Archives may hold archives, those may not.
const MAX_DEPTH: u8 = 1;

impl Collector<'_> {
    /// Opens an archive and keeps its traces; an archive without any is an error.
    pub fn archive(&mut self, path: &Path, shown: &Path, kind: Kind, depth: u8) -> Result<(), InputError> {
        let first = self.files.len();
        let mut package = Package::new(shown, kind, depth);
        unpack(self, &mut package, path)?;
        let symbols = package.symbols.take();
        let new = self.files.get_mut(first..).unwrap_or_default();
        if new.is_empty() {
            return Err(package.why_nothing(self.options.wanted));
        }
        for file in new.iter_mut().filter(|f| f.symbols_dir.is_none()) {
            file.symbols_dir.clone_from(&symbols);
        }
        Ok(())
    }

    /// Opens an archive in an archive.
    pub fn nested(
        &mut self,
        package: &mut Package,
        name: &str,
        kind: Kind,
        claimed: Option<u64>,
        head: Head,
        source: &mut dyn Read,
    ) -> Result<(), InputError> {
        if package.depth >= MAX_DEPTH {
            self.ledger.note(&anomaly::ARCHIVE_NESTED_TOO_DEEP, 1, || place(package, name));
            return Ok(());
        }
        self.budget.claim(claimed.unwrap_or(0))?;
        let shown = shown::member(&package.shown, name);
        let (path, spooled, _guard) = self.unpack_to_temp(&shown, claimed, head, source)?;
        if let Some(problem) = spooled.problem {
            self.damaged(package, name, problem);
        }
        let result = self.archive(&path, &shown, kind, package.depth.saturating_add(1));
        // Free the space now: traces are large. A failure to remove it is repaired with the folder.
        let _ = fs::remove_file(&path);
        match result {
            // An archive beside the trace (an installer, say) need not hold traces.
            Err(InputError::NoTraceInArchive { .. } | InputError::NotATrace { .. }) => Ok(()),
            Err(InputError::Damaged { problem, .. }) => {
                self.damaged(package, name, problem);
                Ok(())
            }
            Err(InputError::Encrypted { member, .. }) => {
                package.encrypted.get_or_insert(member);
                Ok(())
            }
            Err(InputError::UnsupportedMethod { member, method, .. }) => {
                package.unsupported.get_or_insert((member, method));
                Ok(())
            }
            other => other,
        }
    }
}

/// Unpacks what is of use from the archive at `path`.
fn unpack(collector: &mut Collector<'_>, package: &mut Package, path: &Path) -> Result<(), InputError> {
    let file = File::open(path).map_err(|source| InputError::Io {
        file: package.shown.clone(),
        what: "open",
        source,
    })?;
    match package.kind {
        Kind::Zip => zip::unpack(collector, package, file),
        Kind::SevenZip => seven_zip::unpack(collector, package, file),
        kind if kind.is_stream() => stream::unpack(collector, package, kind, file),
        _ => Ok(()),
    }
}
