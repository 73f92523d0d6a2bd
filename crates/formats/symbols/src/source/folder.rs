//! Plain folders: files lie under their names, in the folder or in the subfolders that the debuggers look into.

use super::asks::Ask;
use super::listing::Listings;
use crate::{ImageKey, SafeName};
use std::path::{Path, PathBuf};

/// Files that have the right name, the likeliest first. Source: "Symbol path for Windows debuggers": for a DLL, `symbols\dll`,
/// `dll` and the folder itself; by the extension of the image. `pdb` is where build machines put them.
pub fn flat(root: &Path, ask: &Ask, image: Option<&ImageKey>, listings: &Listings) -> Vec<PathBuf> {
    let extension = image
        .and_then(|image| SafeName::of_path(&image.name))
        .and_then(|name| name.as_str().rsplit_once('.').map(|(_, e)| e.to_lowercase()))
        .filter(|e| SafeName::of_component(e).is_some());
    let mut kinds: Vec<&str> = extension.iter().map(String::as_str).collect();
    kinds.extend(["pdb", "dll", "exe", "sys"].iter().filter(|kind| extension.as_deref() != Some(**kind)));
    let name = ask.file.as_str();
    let mut found = Vec::new();
    let mut look = |components: &[&str]| {
        if let Some(path) = listings.find(root, components)
            && !found.contains(&path)
        {
            found.push(path);
        }
    };
    look(&[name]);
    for kind in kinds {
        look(&["symbols", kind, name]);
        look(&[kind, name]);
    }
    found
}

/// Files of an image below a folder that mirrors a disk: `C:\Windows\System32\x.dll` as `Windows/System32/x.dll`,
/// `System32/x.dll` or `x.dll`.
pub fn mirrored(root: &Path, image: &ImageKey, listings: &Listings) -> Vec<PathBuf> {
    let parts: Vec<&str> = image.name.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    // Components of a trace's path are hostile: the usable tail begins behind the last that is no name.
    let safe = parts.iter().rev().take_while(|part| SafeName::of_component(part).is_some()).count();
    let tail = parts.get(parts.len().saturating_sub(safe.min(MAX_DEPTH))..).unwrap_or_default();
    (0..tail.len()).filter_map(|from| listings.find(root, tail.get(from..).unwrap_or_default())).collect()
}

/// Folders of an image's path that are looked at.
const MAX_DEPTH: usize = 16;
