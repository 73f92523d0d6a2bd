//! A store on disk: `name.pdb/GUIDAGE/name.pdb`, as symstore lays it out.
//!
//! Source: "Symbol Storage Format", Debugging Tools for Windows. A file `index2.txt` in the root says that the store has
//! another tier of folders, named by the first two characters.

use super::asks::Ask;
use super::listing::Listings;
use crate::SafeName;
use std::path::{Path, PathBuf};

/// Marks a store with two tiers.
pub const TWO_TIERS: &str = "index2.txt";
/// Holds the path of the file in its place.
pub const POINTER: &str = "file.ptr";

/// A store's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The folder.
    pub root: PathBuf,
}

/// What a store has for a file that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InTree {
    /// The file itself.
    File(PathBuf),
    /// A cabinet with the file inside.
    Cabinet(PathBuf),
    /// A text with the path of the file.
    Pointer(PathBuf),
}

impl InTree {
    /// The file in the store.
    pub fn path(self) -> PathBuf {
        match self {
            InTree::File(path) | InTree::Cabinet(path) | InTree::Pointer(path) => path,
        }
    }
}

impl Tree {
    /// Folders from the root to the file's.
    fn components(&self, ask: &Ask) -> Vec<String> {
        let mut components = Vec::new();
        if self.root.join(TWO_TIERS).is_file() {
            components.extend(first_tier(&ask.folder));
        }
        components.push(ask.folder.as_str().to_owned());
        components.push(ask.id.clone());
        components
    }

    /// What is there, in the order in which SymSrv looks: the file, the compressed file, a pointer.
    pub fn find(&self, ask: &Ask, listings: &Listings) -> Option<InTree> {
        let components = self.components(ask);
        let parts: Vec<&str> = components.iter().map(String::as_str).collect();
        let folder = listings.entry(&self.root, &parts)?;
        if let Some(file) = listings.find(&folder, &[ask.file.as_str()]) {
            return Some(InTree::File(file));
        }
        if let Some(file) = ask.compressed().and_then(|name| listings.find(&folder, &[name.as_str()])) {
            return Some(InTree::Cabinet(file));
        }
        listings.find(&folder, &[POINTER]).map(InTree::Pointer)
    }

    /// Where the file belongs.
    pub fn place(&self, ask: &Ask) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(self.components(ask));
        path.join(ask.file.as_str())
    }
}

/// Name of the folder above `name` in a store with two tiers.
pub fn first_tier(name: &SafeName) -> Option<String> {
    let tier: String = name.as_str().chars().take(2).collect();
    // `.a` or `a.` would be strange folders, and Windows drops a trailing dot.
    SafeName::of_component(&tier).map(|tier| tier.as_str().to_owned())
}

/// Roots that a pointer may point into.
pub fn inside<'a>(roots: &'a [(String, PathBuf)], target: &str) -> Option<(&'a Path, Vec<SafeName>)> {
    let wanted = split(target);
    roots.iter().find_map(|(written, root)| {
        let base = split(written);
        let below = wanted.get(base.len()..)?;
        let same = wanted.iter().zip(&base).all(|(a, b)| a.to_lowercase() == b.to_lowercase());
        // An absolute path and a relative one with the same parts are two.
        let rooted = |text: &str| text.starts_with(['/', '\\']);
        if !same || base.is_empty() || below.is_empty() || rooted(target) != rooted(written) {
            return None;
        }
        let below = below.iter().map(|part| SafeName::of_component(part)).collect::<Option<Vec<_>>>()?;
        Some((root.as_path(), below))
    })
}

fn split(path: &str) -> Vec<&str> {
    path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect()
}
