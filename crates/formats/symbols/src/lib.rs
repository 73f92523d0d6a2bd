//! Addresses to names. Knows nothing of traces: a module is named by its PDB, GUID and age, an address is
//! relative to the start of the module.
//!
//! A [`Locate`] knows where symbol files are; readers ([`pdb`], [`breakpad`], [`exports`]) make the same
//! [`ModuleSymbols`] of each kind, one piece of bytes that is also a file of the compact cache; the [`Resolver`]
//! brings both together.
//!
//! PDB names come from traces and are hostile: only a validated last component ([`SafeName`]) ever
//! becomes part of a path.
#![forbid(unsafe_code)]

pub mod breakpad;
mod builder;
mod cache;
mod decorated;
mod error;
pub mod exports;
mod image;
mod interner;
mod key;
mod locate;
mod module;
mod names;
pub mod path;
pub mod pdb;
pub mod portable;
mod resolver;
mod safe_name;
pub mod server;
pub mod source;
mod stamp;
mod store;
pub mod verify;
mod wanted;

pub use builder::{InlineRange, ModuleBuilder};
pub use error::SymbolError;
pub use image::Origin;
pub use key::{ModuleKey, parse_store_id, store_id};
pub use locate::{Candidate, FileKind, Locate, Problem};
pub use module::{ModuleSymbols, Name, Places, SourceFrame, Symbol};
pub use names::NameStyle;
pub use path::SymbolPath;
pub use portable::PortableLines;
pub use resolver::{Resolver, cache_folder};
pub use safe_name::SafeName;
pub use source::{SourceOptions, Sources};
pub use store::{StoreEntry, SymbolStore};
pub use wanted::{ImageKey, WantedModule};
