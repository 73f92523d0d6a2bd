//! Under which names stores and servers have the files of a module.

use crate::{FileKind, ModuleKey, SafeName, WantedModule};

/// Age under which stores file portable PDBs: `.NET` writes no age ("SSQP Key Conventions", dotnet/symstore).
const PORTABLE_AGE: &str = "FFFFFFFF";

/// Names that stores, and our caches, have for themselves ("Symbol Storage Format"): no module can be called so.
const RESERVED: [&str; 7] =
    ["file.ptr", "refs.ptr", "index2.txt", "pingme.txt", "000admin", "lastid.txt", ".etwhy"];

/// A name from a trace, if a store could have it.
fn usable(name: &str) -> Option<SafeName> {
    let name = SafeName::of_path(name)?;
    (!RESERVED.iter().any(|reserved| name.as_str().eq_ignore_ascii_case(reserved))).then_some(name)
}

/// One file that is looked for. All parts are safe components of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What it is.
    pub kind: FileKind,
    /// First folder in a store: the name of PDB or image.
    pub folder: SafeName,
    /// Second folder: what identifies the build.
    pub id: String,
    /// The file.
    pub file: SafeName,
    /// False for what is so rare that servers are not asked for it.
    pub ask_servers: bool,
}

impl Ask {
    /// The name that a compressed file has: its last character is an underscore ("SymStore: /compress").
    pub fn compressed(&self) -> Option<SafeName> {
        let mut name = self.file.as_str().to_owned();
        name.pop()?;
        name.push('_');
        SafeName::of_component(&name)
    }

    /// `name.pdb/GUIDAGE/name.pdb`, for messages.
    pub fn shown(&self) -> String {
        format!("{}/{}/{}", self.folder, self.id, self.file)
    }
}

/// Files that may hold the symbols of a module, the best first; not its image.
pub fn of_pdb(key: &ModuleKey) -> Vec<Ask> {
    let Some(name) = usable(&key.pdb_name) else { return Vec::new() };
    let id = key.store_id();
    let ask = |kind, id: &str, file: &SafeName, ask_servers| Ask {
        kind,
        folder: name.clone(),
        id: id.to_owned(),
        file: file.clone(),
        ask_servers,
    };
    let mut asks = vec![ask(FileKind::Pdb, &id, &name, true)];
    let portable = format!("{}{PORTABLE_AGE}", id.get(..32).unwrap_or(""));
    if portable != id {
        asks.push(ask(FileKind::Pdb, &portable, &name, false));
    }
    if let Some(sym) = SafeName::of_component(&name.with_symbol_extension("sym")) {
        asks.push(ask(FileKind::Breakpad, &id, &sym, true));
    }
    asks
}

/// The image itself.
pub fn of_image(wanted: &WantedModule) -> Option<Ask> {
    let image = wanted.image.as_ref()?;
    let name = usable(&image.name)?;
    // Without a time stamp it is no build that a store could have.
    (image.time_date_stamp != 0 && image.size_of_image != 0).then(|| Ask {
        kind: FileKind::Image,
        folder: name.clone(),
        id: image.store_id(),
        file: name,
        ask_servers: true,
    })
}
