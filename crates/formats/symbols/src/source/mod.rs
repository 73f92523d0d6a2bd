//! Where symbol files are: folders, stores and servers of a symbol path.

mod asks;
mod attempt;
pub mod cabinet;
mod chain;
mod folder;
mod folders;
mod listing;
mod online;
mod place;
mod plan;
mod shared;
mod tree;

pub use attempt::{Attempt, Outcome};
pub use folders::default_store;
pub use plan::Planned;
pub use shared::SourceOptions;

use crate::path::{DEFAULT_SERVER, Element, StoreLocation, SymbolPath, local_path};
use crate::server::Server;
use crate::{Candidate, Locate, Problem, WantedModule};
use chain::{Chain, Far};
use listing::Listings;
use shared::Shared;
use std::sync::{Arc, Mutex, PoisonError};
use tree::Tree;

/// Everything that a symbol path, image folders and the trace's folder offer.
#[derive(Debug)]
pub struct Sources {
    chains: Vec<Chain>,
    shared: Arc<Shared>,
    problems: Mutex<Vec<Problem>>,
}

impl SymbolPath {
    /// What finds files along this path, for a reader. It is one: PDBs anywhere come before images anywhere.
    pub fn locators(&self, options: SourceOptions) -> Vec<Box<dyn Locate>> {
        vec![Box::new(self.sources(options))]
    }

    /// What finds files along this path.
    pub fn sources(&self, options: SourceOptions) -> Sources {
        let mut roots = Vec::new();
        for place in self.elements.iter().flat_map(places) {
            if let Some(path) = local_path(&place) {
                roots.push((place, path));
            }
        }
        let mut options = options;
        options.server.named.extend(self.elements.iter().flat_map(servers));
        let default = Tree { root: options.default_store.clone() };
        let shared =
            Arc::new(Shared { options, listings: Listings::default(), roots, busy: Mutex::default() });
        let mut chains = Vec::new();
        // What the trace brings along comes first: it is for exactly these modules.
        for folder in &shared.options.beside {
            let shown = folder.display().to_string();
            let chain = Chain::new(&shared, shown, Vec::new(), Far::Folder(folder.clone()));
            chains.push(Chain { is_beside: true, ..chain });
        }
        let mut kept: Vec<Tree> = Vec::new();
        for element in &self.elements {
            chains.push(chain(&shared, element, &mut kept, &default));
        }
        for folder in &shared.options.images {
            chains.push(Chain::new(
                &shared,
                folder.display().to_string(),
                Vec::new(),
                Far::Images(folder.clone()),
            ));
        }
        Sources { chains, shared, problems: Mutex::default() }
    }
}

/// Servers that an element names.
fn servers(element: &Element) -> Vec<String> {
    match element {
        Element::Stores { places, .. } => places
            .iter()
            .filter_map(|p| if let StoreLocation::Server(url) = p { Some(url.clone()) } else { None })
            .collect(),
        Element::DebugInfoD { server, .. } => vec![server.clone()],
        Element::Folder(_) | Element::Cache(_) => Vec::new(),
    }
}

/// Folders that an element names.
fn places(element: &Element) -> Vec<String> {
    let folders = |places: &[StoreLocation]| {
        places
            .iter()
            .filter_map(|p| if let StoreLocation::Folder(f) = p { Some(f.clone()) } else { None })
            .collect()
    };
    match element {
        Element::Folder(folder) => vec![folder.clone()],
        Element::Cache(places)
        | Element::Stores { places, .. }
        | Element::DebugInfoD { caches: places, .. } => folders(places),
    }
}

/// One element. `kept` are the caches that stand to its left.
fn chain(shared: &Arc<Shared>, element: &Element, kept: &mut Vec<Tree>, default: &Tree) -> Chain {
    let options = &shared.options;
    let mut unreachable = false;
    let mut tree = |place: &StoreLocation| match place {
        StoreLocation::Default => Some(default.clone()),
        StoreLocation::Folder(text) => {
            let root = local_path(text);
            unreachable |= root.is_none();
            root.map(|root| Tree { root })
        }
        StoreLocation::Server(_) => None,
    };
    let mut caches = kept.clone();
    let server = |base: &str| Server::new(base, options.server.clone());
    let far = match element {
        Element::Folder(text) => match tree(&StoreLocation::Folder(text.clone())) {
            Some(tree) => Far::Folder(tree.root),
            None => Far::None,
        },
        Element::Cache(places) => {
            let new: Vec<Tree> = places.iter().filter_map(&mut tree).collect();
            // The nearest is the last one named.
            kept.splice(0..0, new.iter().cloned());
            caches = new;
            Far::None
        }
        Element::Stores { places, .. } => match places.split_last() {
            Some((StoreLocation::Default, [])) => Far::Server(server(DEFAULT_SERVER)),
            Some((last, before)) => {
                caches.extend(before.iter().filter_map(&mut tree));
                match last {
                    StoreLocation::Server(base) => Far::Server(server(base)),
                    place => tree(place).map_or(Far::None, Far::Tree),
                }
            }
            None => Far::None,
        },
        Element::DebugInfoD { caches: places, server: base } => {
            caches.extend(places.iter().filter_map(&mut tree));
            Far::DebugInfoD(server(base))
        }
    };
    if caches.is_empty() && matches!(far, Far::Server(_) | Far::DebugInfoD(_)) {
        caches.push(default.clone());
    }
    let mut chain = Chain::new(shared, element.to_string(), caches, far);
    chain.unreachable = unreachable;
    chain
}

impl Sources {
    /// Looks for the symbols of a module, first PDBs and Breakpad files everywhere, then its image. Says what was tried.
    pub fn search(&self, wanted: &WantedModule) -> (Vec<Candidate>, Vec<Attempt>) {
        let mut attempts = Vec::new();
        for look in [Chain::symbols, Chain::image] {
            for chain in &self.chains {
                if let Some(candidate) = look(chain, wanted, &mut attempts) {
                    return (vec![candidate], attempts);
                }
            }
        }
        (Vec::new(), attempts)
    }

    /// Where symbols of a module would be looked for, without asking a server.
    pub fn plan(&self, wanted: &WantedModule) -> Vec<Planned> {
        self.chains.iter().flat_map(|chain| chain.plan(wanted)).collect()
    }

    /// How it was set up.
    pub fn options(&self) -> &SourceOptions {
        &self.shared.options
    }
}

impl Locate for Sources {
    fn describe(&self) -> String {
        let names: Vec<&str> = self.chains.iter().map(|chain| chain.shown.as_str()).collect();
        format!("symbol path {}", names.join(";"))
    }

    fn candidates(&self, wanted: &WantedModule) -> Vec<Candidate> {
        let (candidates, attempts) = self.search(wanted);
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        for attempt in &attempts {
            let Some(text) = attempt.problem() else { continue };
            let problem = Problem { file: None, text, mismatch: attempt.outcome.is_mismatch() };
            if problems.len() < MAX_PROBLEMS && !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        candidates
    }

    fn problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Problems that are kept; a server that is down gives the same for each module.
const MAX_PROBLEMS: usize = 1000;
