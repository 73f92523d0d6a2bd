//! What all elements of a symbol path share.

use super::folders::default_store;
use super::listing::Listings;
use crate::server::ServerOptions;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How files are looked for.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Ask no server.
    pub offline: bool,
    /// Ask servers for images too: their export tables are better than nothing, but images are many and large.
    pub fetch_images: bool,
    /// Folders with images: they mirror a disk, or images lie in them.
    pub images: Vec<PathBuf>,
    /// Folders beside the trace.
    pub beside: Vec<PathBuf>,
    /// The store where none is named.
    pub default_store: PathBuf,
    /// Most bytes that a cabinet may unpack to.
    pub max_unpacked: u64,
    /// How servers are asked.
    pub server: ServerOptions,
}

impl Default for SourceOptions {
    fn default() -> SourceOptions {
        SourceOptions {
            offline: false,
            fetch_images: false,
            images: Vec::new(),
            beside: Vec::new(),
            default_store: default_store(),
            max_unpacked: 4 << 30,
            server: ServerOptions::default(),
        }
    }
}

/// What all elements of a path share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: SourceOptions,
    pub(super) listings: Listings,
    /// Folders that the user named, as written and on this machine: a `file.ptr` leads nowhere else.
    pub(super) roots: Vec<(String, PathBuf)>,
    /// One thread at a time fetches a file.
    pub(super) busy: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl Shared {
    pub(super) fn lock_of(&self, file: &str) -> Arc<Mutex<()>> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(busy.entry(file.to_owned()).or_default())
    }
}
