//! `_NT_SYMCACHE_PATH`: where the Windows Performance Toolkit keeps what it has read from symbol files.

use super::parse::{expand, trimmed};
use super::windows::local_path;
use std::path::PathBuf;

/// Folders of this system that a SymCache path names, in their order. Between them stand `;` or, as in chains of stores, `*`.
/// Servers of `.symcache` files are left out, and so are paths of Windows on another system and unknown variables.
pub fn symcache_folders(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let expanded: Vec<String> =
        text.split(';').filter_map(|element| expand(trimmed(element), variable).ok()).collect();
    let mut folders: Vec<PathBuf> = Vec::new();
    for place in expanded.iter().flat_map(|text| text.split([';', '*'])).map(trimmed) {
        let keyword = ["srv", "symsrv", "symsrv.dll", "cache"].iter().any(|k| place.eq_ignore_ascii_case(k));
        if place.is_empty() || keyword || place.contains("://") || place.contains('\0') {
            continue;
        }
        if let Some(folder) = local_path(place)
            && !folders.contains(&folder)
        {
            folders.push(folder);
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_in_their_order() {
        let variable = |name: &str| (name == "TEMP").then(|| "/tmp".to_owned());
        let text = r#""/a" ; /b*/c;srv*/d*https://symcache/x;%TEMP%/e;/a;;%NOPE%/f"#;
        let found: Vec<String> =
            symcache_folders(text, &variable).iter().map(|f| f.display().to_string()).collect();
        assert_eq!(found, ["/a", "/b", "/c", "/d", "/tmp/e"]);
        assert_eq!(symcache_folders(r"C:\SymCache", &variable).len(), usize::from(cfg!(windows)));
    }
}
