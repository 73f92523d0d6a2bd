//! Symbol paths: what `_NT_SYMBOL_PATH`, `_NT_ALT_SYMBOL_PATH` and `_NT_SYMCACHE_PATH` say.
//!
//! Sources: "Symbol path for Windows debuggers" and "Advanced SymSrv Use" in the documentation of Debugging Tools for Windows;
//! "Loading Symbols" in that of the Windows Performance Toolkit; `IDebugEngine3::SetSymbolPath` (`folder*URL` without a keyword).

mod parse;
mod symcache;
mod windows;

pub use parse::Fault;
pub use symcache::symcache_folders;
pub use windows::{is_windows_path, local_path};

use std::fmt;

/// What `srv*` alone stands for: the default symbol store of Microsoft's tools (".symfix (Set Symbol Store Path)").
pub const DEFAULT_SERVER: &str = "https://msdl.microsoft.com/download/symbols";

/// Elements in the order in which they are searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymbolPath {
    /// The elements.
    pub elements: Vec<Element>,
}

/// What stands between two semicolons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// A plain folder; files lie in it under their names.
    Folder(String),
    /// `cache*FOLDER`: whatever stands to its right is kept there.
    Cache(Vec<StoreLocation>),
    /// `srv*…*…`: stores, the nearest first. What a store has is copied into all before it.
    Stores {
        /// How it was written.
        keyword: Keyword,
        /// The stores. A server can only be the last.
        places: Vec<StoreLocation>,
    },
    /// `DebugInfoD*…*URL`: a server that files by build id.
    DebugInfoD {
        /// Where it is kept.
        caches: Vec<StoreLocation>,
        /// The server's URL.
        server: String,
    },
}

/// How an element with stores was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// `srv*`.
    Srv,
    /// `symsrv*DLL*`.
    SymSrv(String),
    /// A URL, or folders and a URL, as Visual Studio writes them.
    None,
}

/// A store or a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// Nothing was written: the default store; alone in an element, the [default server](DEFAULT_SERVER).
    Default,
    /// A folder, local or on a share.
    Folder(String),
    /// `http://` or `https://`.
    Server(String),
}

impl SymbolPath {
    /// Takes a path apart, with the variables of this process.
    ///
    /// # Errors
    /// The first element that cannot be understood.
    pub fn parse(text: &str) -> Result<SymbolPath, Fault> {
        let (path, faults) = SymbolPath::parse_with(text, &|name| std::env::var(name).ok());
        faults.into_iter().next().map_or(Ok(path), Err)
    }

    /// Takes a path apart. Elements that cannot be understood are left out and told.
    pub fn parse_with(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> (SymbolPath, Vec<Fault>) {
        parse::parse(text, variable)
    }

    /// True if any element names a server: only then is anything asked over the network.
    pub fn names_a_server(&self) -> bool {
        self.elements.iter().any(|element| match element {
            Element::Folder(_) | Element::Cache(_) => false,
            Element::Stores { places, .. } => {
                matches!(places.as_slice(), [StoreLocation::Default])
                    || places.iter().any(|p| matches!(p, StoreLocation::Server(_)))
            }
            Element::DebugInfoD { .. } => true,
        })
    }

    /// True if there is nothing to search.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Puts the elements of another path behind these.
    pub fn append(&mut self, other: SymbolPath) {
        self.elements.extend(other.elements);
    }
}

impl fmt::Display for SymbolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, element) in self.elements.iter().enumerate() {
            if n > 0 {
                f.write_str(";")?;
            }
            write!(f, "{element}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let starred = |f: &mut fmt::Formatter<'_>, places: &[StoreLocation]| {
            places.iter().try_for_each(|place| write!(f, "*{place}"))
        };
        match self {
            Element::Folder(folder) => f.write_str(folder),
            Element::Cache(places) => {
                f.write_str("cache")?;
                starred(f, places)
            }
            Element::Stores { keyword: Keyword::Srv, places } => {
                f.write_str("srv")?;
                starred(f, places)
            }
            Element::Stores { keyword: Keyword::SymSrv(dll), places } => {
                write!(f, "symsrv*{dll}")?;
                starred(f, places)
            }
            Element::Stores { keyword: Keyword::None, places } => {
                let texts: Vec<String> = places.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("*"))
            }
            Element::DebugInfoD { caches, server } => {
                f.write_str("DebugInfoD")?;
                starred(f, caches)?;
                write!(f, "*{server}")
            }
        }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::Default => Ok(()),
            StoreLocation::Folder(text) | StoreLocation::Server(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests;
