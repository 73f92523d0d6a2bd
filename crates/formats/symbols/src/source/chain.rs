//! One element of a symbol path: caches, and what lies behind them.

use super::asks::{self, Ask};
use super::attempt::{Attempt, Outcome};
use super::shared::Shared;
use super::tree::{InTree, Tree, inside};
use super::{cabinet, folder, place};
use crate::server::{Server, shown};
use crate::stamp::Stamp;
use crate::verify::identify;
use crate::{Candidate, FileKind, WantedModule};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// Longest text of a pointer.
const MAX_POINTER: u64 = 4096;

/// What lies behind the caches.
#[derive(Debug)]
pub enum Far {
    /// Nothing.
    None,
    /// A plain folder, which may be laid out as a store too.
    Folder(PathBuf),
    /// A store.
    Tree(Tree),
    /// A folder of images.
    Images(PathBuf),
    /// A symbol server.
    Server(Server),
    /// A server that files by build id.
    DebugInfoD(Server),
}

/// An element.
#[derive(Debug)]
pub struct Chain {
    pub(super) shown: String,
    pub(super) caches: Vec<Tree>,
    pub(super) far: Far,
    pub(super) shared: Arc<Shared>,
    /// A folder of it cannot be reached from this system.
    pub(super) unreachable: bool,
    /// It is a folder beside a trace, which the user did not name.
    pub(super) is_beside: bool,
}

impl Chain {
    pub(super) fn new(shared: &Arc<Shared>, shown_as: String, caches: Vec<Tree>, far: Far) -> Chain {
        let shared = Arc::clone(shared);
        Chain { shown: shown(&shown_as), caches, far, shared, unreachable: false, is_beside: false }
    }

    pub(super) fn candidate(&self, file: PathBuf, ask: &Ask) -> Candidate {
        Candidate { file, kind: ask.kind, is_named: !self.is_beside }
    }

    /// A PDB or Breakpad file of the module.
    pub(super) fn symbols(&self, wanted: &WantedModule, attempts: &mut Vec<Attempt>) -> Option<Candidate> {
        let asks = asks::of_pdb(wanted.pdb.as_ref()?);
        self.find(&asks, wanted, attempts)
    }

    /// The image itself.
    pub(super) fn image(&self, wanted: &WantedModule, attempts: &mut Vec<Attempt>) -> Option<Candidate> {
        self.find(&[asks::of_image(wanted)?], wanted, attempts)
    }

    fn find(&self, asks: &[Ask], wanted: &WantedModule, attempts: &mut Vec<Attempt>) -> Option<Candidate> {
        let first = asks.first()?;
        if self.unreachable && matches!(self.far, Far::None) {
            self.note(attempts, first, Outcome::Unreachable);
            return None;
        }
        let lock = self.shared.lock_of(&first.shown());
        let _one_at_a_time = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let before = attempts.len();
        for ask in asks {
            for (n, tree) in self.caches.iter().enumerate() {
                let near = self.caches.get(..n).unwrap_or_default();
                if let Some(found) = self.in_tree(tree, near, ask, wanted, attempts) {
                    return Some(found);
                }
            }
        }
        let found = match &self.far {
            Far::None => None,
            Far::Tree(tree) => {
                asks.iter().find_map(|ask| self.in_tree(tree, &self.caches, ask, wanted, attempts))
            }
            Far::Folder(root) => asks.iter().find_map(|ask| self.in_folder(root, ask, wanted, attempts)),
            Far::Images(root) => self.in_images(root, first, wanted, attempts),
            Far::Server(server) => self.online(server, asks, wanted, attempts),
            Far::DebugInfoD(server) => self.by_build_id(server, asks, wanted, attempts),
        };
        if found.is_none() && attempts.len() == before && first.kind != FileKind::Image {
            self.note(attempts, first, Outcome::NotFound);
        }
        found
    }

    pub(super) fn note(&self, attempts: &mut Vec<Attempt>, ask: &Ask, outcome: Outcome) {
        attempts.push(Attempt { place: self.shown.clone(), file: ask.shown(), outcome });
    }

    fn in_tree(
        &self,
        tree: &Tree,
        near: &[Tree],
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Candidate> {
        match tree.find(ask, &self.shared.listings)? {
            InTree::File(file) => self.accept(&file, near, ask, wanted, attempts),
            InTree::Cabinet(file) => self.unpack(&file, near, tree, ask, wanted, attempts),
            InTree::Pointer(file) => {
                let mut text = String::new();
                let read = File::open(&file).and_then(|f| f.take(MAX_POINTER).read_to_string(&mut text));
                let target = match read {
                    Ok(_) => self.pointed(&text),
                    Err(error) => Err(error.to_string()),
                };
                match target {
                    Ok(target) => self.accept(&target, near, ask, wanted, attempts),
                    Err(reason) => {
                        self.note(attempts, ask, Outcome::Failed(format!("{}: {reason}", file.display())));
                        None
                    }
                }
            }
        }
    }

    /// The file that a pointer leads to, if that lies in a folder which the user named: a store's pointers are
    /// data of whoever wrote the store.
    pub(super) fn pointed(&self, text: &str) -> Result<PathBuf, String> {
        let text = text.trim().trim_matches('\0').trim();
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("msg:") {
            return Err(format!("the store says: {}", text.get(4..).unwrap_or("").trim()));
        }
        let target = if lower.starts_with("path:") { text.get(5..).unwrap_or("").trim() } else { text };
        let Some((root, below)) = inside(&self.shared.roots, target) else {
            return Err(format!(
                "it points to {target}, outside of the folders in the symbol path; add that folder to the path to allow it"
            ));
        };
        let parts: Vec<&str> = below.iter().map(|part| part.as_str()).collect();
        let found = self.shared.listings.find(root, &parts);
        let Some(found) = found else { return Err(format!("it points to {target}, which is not there")) };
        // A link below the root could lead out of it.
        match (fs::canonicalize(&found), fs::canonicalize(root)) {
            (Ok(real), Ok(root)) if real.starts_with(&root) => Ok(found),
            _ => Err(format!("it points to {target}, which leads out of {}", root.display())),
        }
    }

    fn in_folder(
        &self,
        root: &Path,
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Candidate> {
        let tree = Tree { root: root.to_path_buf() };
        if let Some(found) = self.in_tree(&tree, &self.caches, ask, wanted, attempts) {
            return Some(found);
        }
        // Under its plain name the file is the same for every id.
        if !ask.ask_servers {
            return None;
        }
        let files = folder::flat(root, ask, wanted.image.as_ref(), &self.shared.listings);
        files.iter().find_map(|file| self.accept(file, &self.caches, ask, wanted, attempts))
    }

    fn in_images(
        &self,
        root: &Path,
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Candidate> {
        if ask.kind != FileKind::Image {
            return None;
        }
        if let Some(found) = self.in_folder(root, ask, wanted, attempts) {
            return Some(found);
        }
        let files = folder::mirrored(root, wanted.image.as_ref()?, &self.shared.listings);
        files.iter().find_map(|file| self.accept(file, &[], ask, wanted, attempts))
    }

    /// A file that is on this machine: if it fits, it is copied into the caches before it.
    fn accept(
        &self,
        file: &Path,
        near: &[Tree],
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Candidate> {
        self.check(file, &file.display().to_string(), ask, wanted, attempts)?;
        let mut place = file.to_path_buf();
        for tree in near.iter().rev() {
            let to = tree.place(ask);
            match place::copy_to(file, &tree.root, &to) {
                Ok(()) => place = to,
                Err(error) => self.cannot_keep(&to, &error, ask, attempts),
            }
        }
        self.note(attempts, ask, Outcome::Found(place.clone()));
        Some(self.candidate(place, ask))
    }

    fn cannot_keep(&self, to: &Path, error: &std::io::Error, ask: &Ask, attempts: &mut Vec<Attempt>) {
        self.note(attempts, ask, Outcome::Failed(format!("{}: cannot keep it there: {error}", to.display())));
    }

    /// Says if the file is not what was looked for. `origin` is the file or the URL it came from.
    pub(super) fn check(
        &self,
        file: &Path,
        origin: &str,
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<()> {
        let outcome = match identify(file) {
            Ok(identity) if identity.fits(wanted) => return Some(()),
            Ok(identity) => Outcome::Mismatch { file: origin.to_owned(), found: identity.to_string() },
            Err(error) => {
                // The name of a temporary file says nothing.
                let text = error.to_string();
                let reason = text.strip_prefix(&format!("{}: ", file.display())).unwrap_or(&text);
                Outcome::Failed(format!("{origin}: {reason}; it is not used"))
            }
        };
        self.note(attempts, ask, outcome);
        None
    }

    fn unpack(
        &self,
        cabinet: &Path,
        near: &[Tree],
        tree: &Tree,
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<Candidate> {
        let mut default = Tree { root: self.shared.options.default_store.clone() };
        if self.is_beside {
            // What came with one trace is not for others: it gets a place that only this cabinet leads to.
            default.root = default.root.join(".etwhy").join(Stamp::of(cabinet)?.short());
        }
        // A cache keeps what it unpacks; of a store that is not ours, the default store does.
        let is_cache = self.caches.contains(tree);
        let targets: Vec<Tree> = match (near.is_empty(), is_cache) {
            (false, _) => near.to_vec(),
            (true, true) => vec![tree.clone()],
            (true, false) => vec![default],
        };
        // It may have been unpacked before.
        for target in &targets {
            if let Some(InTree::File(file)) = target.find(ask, &self.shared.listings)
                && identify(&file).is_ok_and(|identity| identity.fits(wanted))
            {
                self.note(attempts, ask, Outcome::Found(file.clone()));
                return Some(self.candidate(file, ask));
            }
        }
        let origin = cabinet.display().to_string();
        let file = self.unpacked(cabinet, &origin, &targets, ask, wanted, attempts)?;
        self.note(attempts, ask, Outcome::Fetched { file: file.clone(), bytes: 0 });
        Some(self.candidate(file, ask))
    }

    /// Unpacks into the nearest cache, checks, and puts it into the others.
    pub(super) fn unpacked(
        &self,
        cabinet: &Path,
        origin: &str,
        targets: &[Tree],
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<PathBuf> {
        let first = targets.first()?;
        let (scratch, mut file) = match place::scratch(&first.root) {
            Ok(scratch) => scratch,
            Err(error) => {
                self.cannot_keep(&first.root, &error, ask, attempts);
                return None;
            }
        };
        let limit = self.shared.options.max_unpacked;
        let done = cabinet::unpack(cabinet, ask.file.as_str(), limit, &mut file);
        drop(file);
        match done {
            Ok(_) => self.keep(&scratch, origin, targets, ask, wanted, attempts),
            Err(error) => {
                let _ = fs::remove_file(&scratch);
                self.note(attempts, ask, Outcome::Failed(format!("{origin}: {error}")));
                None
            }
        }
    }

    /// Checks a temporary file in the nearest cache, moves it into place there and copies it into the others. It is gone
    /// afterwards in any case.
    pub(super) fn keep(
        &self,
        scratch: &Path,
        origin: &str,
        targets: &[Tree],
        ask: &Ask,
        wanted: &WantedModule,
        attempts: &mut Vec<Attempt>,
    ) -> Option<PathBuf> {
        let (first, others) = targets.split_first()?;
        let to = first.place(ask);
        let moved = self.check(scratch, origin, ask, wanted, attempts).map(|()| {
            place::move_to(scratch, &to).map_err(|error| self.cannot_keep(&to, &error, ask, attempts))
        });
        if !matches!(moved, Some(Ok(()))) {
            let _ = fs::remove_file(scratch);
            return None;
        }
        for tree in others {
            let other = tree.place(ask);
            if let Err(error) = place::copy_to(&to, &tree.root, &other) {
                self.cannot_keep(&other, &error, ask, attempts);
            }
        }
        Some(to)
    }
}
