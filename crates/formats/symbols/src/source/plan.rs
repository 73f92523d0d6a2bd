//! Where a module's symbols would be looked for.

use super::asks;
use super::chain::{Chain, Far};
use super::folder;
use super::tree::Tree;
use crate::WantedModule;
use crate::server::Server;
use std::path::PathBuf;

/// One place, without having asked a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The element of the symbol path.
    pub place: String,
    /// The file or the URL that would be asked for first.
    pub target: String,
    /// The file that is there now. It may be of another build.
    pub present: Option<PathBuf>,
    /// The server, if one would be asked.
    pub server: Option<String>,
    /// Seconds since the server was found not to have it, if it would not be asked again.
    pub known_missing: Option<u64>,
}

impl Chain {
    pub(super) fn plan(&self, wanted: &WantedModule) -> Vec<Planned> {
        let asks = wanted.pdb.as_ref().map(asks::of_pdb).unwrap_or_default();
        let image = asks::of_image(wanted);
        let first = match &self.far {
            Far::Images(_) => image.as_ref(),
            _ => asks.first(),
        };
        let Some(first) = first else { return Vec::new() };
        let listings = &self.shared.listings;
        let in_tree =
            |tree: &Tree| asks.iter().find_map(|ask| tree.find(ask, listings)).map(|found| found.path());
        let line = |target: PathBuf, present| Planned {
            place: self.shown.clone(),
            target: target.display().to_string(),
            present,
            server: None,
            known_missing: None,
        };
        let mut lines: Vec<Planned> =
            self.caches.iter().map(|tree| line(tree.place(first), in_tree(tree))).collect();
        match &self.far {
            Far::None => {}
            Far::Tree(tree) => lines.push(line(tree.place(first), in_tree(tree))),
            Far::Folder(root) => {
                let flat = || {
                    asks.iter()
                        .flat_map(|ask| folder::flat(root, ask, wanted.image.as_ref(), listings))
                        .next()
                };
                let present = in_tree(&Tree { root: root.clone() }).or_else(flat);
                lines.push(line(root.join(first.file.as_str()), present));
            }
            Far::Images(root) => {
                let present = wanted
                    .image
                    .as_ref()
                    .and_then(|image| folder::mirrored(root, image, listings).into_iter().next());
                lines.push(line(root.join(first.file.as_str()), present));
            }
            Far::Server(server) => {
                let parts = [first.folder.as_str(), first.id.as_str(), first.file.as_str()];
                lines.push(self.asked(server, &parts, &[first.folder.as_str(), &first.id]));
            }
            Far::DebugInfoD(server) => {
                let id = first.id.get(..32).unwrap_or("").to_ascii_lowercase();
                lines.push(self.asked(server, &["buildid", &id, "debuginfo"], &["buildid", &id]));
            }
        }
        lines
    }

    fn asked(&self, server: &Server, parts: &[&str], key: &[&str]) -> Planned {
        let key = server.missing_key(key);
        Planned {
            place: self.shown.clone(),
            target: server.shown_target(parts),
            present: None,
            server: Some(server.shown()),
            known_missing: self.caches.first().and_then(|tree| server.remembers_missing(&key, &tree.root)),
        }
    }
}
