//! Symbol stores on disk: `name.pdb/GUIDAGE/name.sym`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::key::parse_store_id;
use crate::{Candidate, FileKind, Locate, SafeName, WantedModule};

const EXTENSION: &str = "sym";

/// Folders laid out as symbol stores (`name.pdb/GUIDAGE/name.pdb`), or with symbol files and images right in them.
#[derive(Debug)]
pub struct SymbolStore {
    dirs: Vec<PathBuf>,
    listings: Mutex<HashMap<PathBuf, Listing>>,
}

/// Names in a folder by their lower-case form. Stores are written on Windows, which has no case, and
/// read on systems that have.
type Listing = HashMap<String, OsString>;

impl SymbolStore {
    /// A store that looks into `dirs` in their order.
    pub fn new(dirs: Vec<PathBuf>) -> SymbolStore {
        SymbolStore { dirs, listings: Mutex::default() }
    }

    /// The file of these components in one folder, if it exists.
    fn find(&self, dir: &Path, components: &[&str]) -> Option<PathBuf> {
        let exact: PathBuf = std::iter::once(dir).chain(components.iter().map(Path::new)).collect();
        if exact.is_file() {
            return Some(exact);
        }
        let mut path = dir.to_path_buf();
        for (level, component) in components.iter().enumerate() {
            // The root is asked for every module, the folders below for one each.
            let real = if level == 0 {
                self.cached_listing(&path, component)
            } else {
                list(&path).remove(&component.to_lowercase())
            };
            path.push(real?);
        }
        path.is_file().then_some(path)
    }

    fn cached_listing(&self, dir: &Path, name: &str) -> Option<OsString> {
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        let listing = listings.entry(dir.to_path_buf()).or_insert_with(|| list(dir));
        listing.get(&name.to_lowercase()).cloned()
    }
}

impl Locate for SymbolStore {
    fn describe(&self) -> String {
        let dirs: Vec<String> = self.dirs.iter().map(|d| d.display().to_string()).collect();
        format!("symbol store {}", dirs.join(", "))
    }

    fn candidates(&self, wanted: &WantedModule) -> Vec<Candidate> {
        let mut found = Vec::new();
        let mut add = |dir: &Path, components: &[&str], kind| {
            found.extend(self.find(dir, components).map(|file| Candidate { file, kind, is_named: true }));
        };
        for dir in &self.dirs {
            if let Some(pdb) = &wanted.pdb
                && let Some(name) = SafeName::of_path(&pdb.pdb_name)
            {
                let (id, symbols) = (pdb.store_id(), name.with_symbol_extension(EXTENSION));
                for (file, kind) in [(name.as_str(), FileKind::Pdb), (symbols.as_str(), FileKind::Breakpad)] {
                    add(dir, &[name.as_str(), &id, file], kind);
                    add(dir, &[file], kind);
                }
            }
            if let Some(image) = &wanted.image
                && let Some(name) = SafeName::of_path(&image.name)
            {
                add(dir, &[name.as_str(), &image.store_id(), name.as_str()], FileKind::Image);
                add(dir, &[name.as_str()], FileKind::Image);
            }
        }
        found
    }
}

/// A folder that cannot be listed holds nothing.
fn list(dir: &Path) -> Listing {
    let Ok(entries) = fs::read_dir(dir) else { return Listing::new() };
    entries
        .flatten()
        .map(|entry| entry.file_name())
        .map(|name| (name.to_string_lossy().to_lowercase(), name))
        .collect()
}

/// A symbol file inside an archive, whose path has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEntry {
    pdb_name: SafeName,
    id: String,
    file_name: SafeName,
}

impl StoreEntry {
    /// Takes `…/symbols/name.pdb/GUIDAGE/name.sym` (either separator, any case) apart; `None` if any part
    /// is not exactly that. Only validated parts are kept.
    pub fn from_packed_path(path: &str) -> Option<StoreEntry> {
        let mut parts = path.rsplit(['/', '\\']);
        let file_name = SafeName::of_component(parts.next()?)?;
        let id = parts.next()?;
        let pdb_name = SafeName::of_component(parts.next()?)?;
        let root = parts.next()?;
        let is_symbol =
            file_name.as_str().rsplit_once('.').is_some_and(|(_, e)| e.eq_ignore_ascii_case(EXTENSION));
        let (guid, age) = parse_store_id(id)?;
        (is_symbol && root.eq_ignore_ascii_case("symbols")).then(|| StoreEntry {
            pdb_name,
            id: crate::key::store_id(guid, age),
            file_name,
        })
    }

    /// Where it belongs in a store at `root`.
    pub fn path_in(&self, root: &Path) -> PathBuf {
        root.join(self.pdb_name.as_str()).join(&self.id).join(self.file_name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModuleKey, Resolver};
    use std::sync::Arc;

    const ID: &str = "00112233445566778899AABBCCDDEEFF1";

    fn wanted(pdb_name: &str, age: u32) -> WantedModule {
        let (guid, _) = parse_store_id(ID).unwrap();
        WantedModule { pdb: Some(ModuleKey { pdb_name: pdb_name.into(), guid, age }), image: None }
    }

    struct TempStore(PathBuf);

    impl TempStore {
        fn new(name: &str) -> TempStore {
            let dir = std::env::temp_dir().join(format!("etwhy-symbols-{}-{name}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            TempStore(dir)
        }

        fn add(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    impl Drop for TempStore {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(id: &str) -> String {
        format!("MODULE windows x86_64 {id} a.pdb\nFUNC 1000 10 0 main\n")
    }

    #[test]
    fn finds_a_module_whatever_the_case() {
        let store = TempStore::new("case");
        store.add(&format!("A.pdb/{}/a.SYM", ID.to_lowercase()), &text(ID));
        let symbols = SymbolStore::new(vec![store.0.join("missing"), store.0.clone()]);
        assert!(symbols.describe().contains("missing"));
        let resolver = Resolver::new(vec![Box::new(symbols)], None);
        let module = resolver.load(&wanted(r"d:\build\a.PDB", 1)).unwrap();
        assert_eq!(module.lookup(0x1004).unwrap().function.plain, "main");
        let again = resolver.load(&wanted(r"d:\build\a.PDB", 1)).unwrap();
        assert!(Arc::ptr_eq(&module, &again));
        assert!(resolver.load(&wanted("a.pdb", 2)).is_none());
        assert_eq!(resolver.problems(), []);
    }

    #[test]
    fn another_build_is_an_error_and_not_used() {
        let store = TempStore::new("mismatch");
        let other = ID.replace("CC", "CD");
        store.add(&format!("a.pdb/{ID}/a.sym"), &text(&other));
        let resolver = |dirs| Resolver::new(vec![Box::new(SymbolStore::new(dirs))], None);
        let only = resolver(vec![store.0.clone()]);
        assert!(only.load(&wanted("a.pdb", 1)).is_none());
        let problems = only.problems();
        assert!(problems[0].mismatch && problems[0].text.contains(&other), "{problems:?}");
        let good = TempStore::new("match");
        good.add(&format!("a.pdb/{ID}/a.sym"), &text(ID));
        let both = resolver(vec![store.0.clone(), good.0.clone()]);
        assert!(both.load(&wanted("a.pdb", 1)).is_some());
        assert_eq!(both.problems().len(), 1);
    }

    #[test]
    fn hostile_pdb_names_never_leave_the_store() {
        let store = TempStore::new("hostile");
        let inside = store.0.join("store");
        // What an escape would find.
        store.add(&format!("evil.pdb/{ID}/evil.sym"), &text(ID));
        store.add(&format!("evil/{ID}/evil.sym"), &text(ID));
        fs::create_dir_all(&inside).unwrap();
        let symbols = SymbolStore::new(vec![inside]);
        let absolute = store.0.join("evil.pdb").display().to_string();
        let long = "x".repeat(100_000);
        for name in [
            r"..\evil.pdb",
            "../evil.pdb",
            r"..\..\evil",
            "..",
            ".",
            "",
            "C:",
            "CON",
            "nul.pdb",
            "a\0.pdb",
            &absolute,
            &long,
            r"\\?\C:\evil.pdb",
            "store/../../evil.pdb",
        ] {
            assert_eq!(symbols.candidates(&wanted(name, 1)), [], "{name:?}");
        }
    }

    #[test]
    fn packed_paths_must_fit_the_layout() {
        let good = format!(r"data\Symbols/a.pdb/{}/a.sym", ID.to_lowercase());
        let entry = StoreEntry::from_packed_path(&good).unwrap();
        assert_eq!(entry.path_in(Path::new("r")), Path::new("r").join("a.pdb").join(ID).join("a.sym"));
        for bad in [
            format!("a.pdb/{ID}/a.sym"),
            format!("symbols/../{ID}/a.sym"),
            format!("symbols/a.pdb/{ID}/.."),
            format!("symbols/a.pdb/{ID}/a.exe"),
            format!("symbols/CON/{ID}/a.sym"),
            "symbols/a.pdb/../a.sym".to_owned(),
            "symbols/a.pdb/00/a.sym".to_owned(),
            "a.sym".to_owned(),
        ] {
            assert_eq!(StoreEntry::from_packed_path(&bad), None, "{bad}");
        }
    }
}
