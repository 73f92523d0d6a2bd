//! Addresses to names. Knows nothing of traces: a module is named by its PDB, GUID and age, an address is
//! relative to the start of the module.
//!
//! The first source is a [`SymbolStore`] of Breakpad `.sym` files; others (PDB files, a symbol server)
//! implement [`SymbolSource`] and produce the same [`ModuleSymbols`].
//!
//! PDB names come from traces and are hostile: only a validated last component ([`SafeName`]) ever
//! becomes part of a path.
#![forbid(unsafe_code)]

pub mod breakpad;
mod builder;
mod cache;
mod error;
mod interner;
mod key;
mod locate;
mod module;
pub mod path;
mod safe_name;
pub mod server;
pub mod source;
mod store;
pub mod verify;
mod wanted;

pub use builder::{InlineRange, ModuleBuilder};
pub use error::SymbolError;
pub use key::{ModuleKey, parse_store_id, store_id};
pub use locate::{Candidate, FileKind, Locate};
pub use module::{Inline, Inlines, ModuleSymbols, Symbol};
pub use path::SymbolPath;
pub use safe_name::SafeName;
pub use source::{SourceOptions, Sources};
pub use store::{StoreEntry, SymbolStore};
pub use wanted::{ImageKey, Wanted};

use std::sync::Arc;

/// Something that finds the symbols of a module.
pub trait SymbolSource: Send + Sync {
    /// What it is, for messages, e.g. the folders of a store.
    fn describe(&self) -> String;

    /// The symbols of exactly this module; `None` if this source has none.
    ///
    /// # Errors
    /// Symbols were found but cannot be used; another source may still have better ones.
    fn load(&self, key: &ModuleKey) -> Result<Option<Arc<ModuleSymbols>>, SymbolError>;
}
