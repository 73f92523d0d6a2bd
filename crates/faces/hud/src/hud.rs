//! What all requests share.

use crate::connections::Patience;
use crate::fault::{Cancel, Fault};
use crate::folders::Folders;
use crate::guard::Hosts;
use crate::host::{Host, Loaded};
use crate::lines::Lines;
use crate::trace::Trace;
use std::sync::{Arc, PoisonError, RwLock};

/// What all requests share.
pub struct Hud {
    /// The program around.
    pub host: Box<dyn Host>,
    /// Nothing may be opened from the page.
    pub readonly: bool,
    /// Folders whose traces may be opened.
    pub folders: Folders,
    pub(crate) traces: RwLock<Vec<Arc<Trace>>>,
    pub(crate) token: String,
    pub(crate) hosts: Hosts,
    pub(crate) patience: Patience,
    pub(crate) lines: Lines,
}

impl Hud {
    /// The traces, in order of their numbers.
    pub fn traces(&self) -> Vec<Arc<Trace>> {
        self.traces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a trace; its number.
    pub fn add(&self, loaded: Loaded) -> usize {
        let trace = Arc::new(Trace::new(loaded));
        let mut list = self.traces.write().unwrap_or_else(PoisonError::into_inner);
        list.push(trace);
        list.len() - 1
    }

    /// The trace with this number. Its deferred tables are made if one of `words` names one.
    ///
    /// # Errors
    /// If there is none, and those of [`Trace::complete`].
    pub fn trace<'a>(
        &self,
        number: u64,
        words: impl Iterator<Item = &'a str> + Clone,
        cancel: &Cancel,
    ) -> Result<Arc<Trace>, Fault> {
        let found = usize::try_from(number).ok().and_then(|n| self.traces().get(n).cloned());
        let trace = found.ok_or_else(|| Fault::Missing(format!("there is no trace {number}")))?;
        if !trace.defers(words) {
            return Ok(trace);
        }
        let complete = trace.complete(cancel)?;
        let mut list = self.traces.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = list.iter_mut().find(|slot| Arc::ptr_eq(slot, &trace)) {
            *slot = Arc::clone(&complete);
        }
        Ok(complete)
    }
}
