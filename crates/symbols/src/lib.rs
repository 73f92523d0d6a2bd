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
mod image;
mod interner;
mod key;
mod locate;
mod module;
mod names;
pub mod pdb;
mod safe_name;
mod store;
mod wanted;

pub use builder::{InlineRange, ModuleBuilder};
pub use error::SymbolError;
pub use key::ModuleKey;
pub use locate::{Candidate, FileKind, Locate};
pub use image::Origin;
pub use module::{ModuleSymbols, Name, Place, Places, Symbol};
pub use names::NameStyle;
pub use safe_name::SafeName;
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
