//! What all requests share.

use crate::fault::{Cancel, Fault};
use crate::guard::Doors;
use crate::host::{Host, Loaded};
use crate::lines::Lines;
use crate::trace::Trace;
use std::sync::{Arc, PoisonError, RwLock};

/// What all requests share.
pub struct Hud {
    /// The program around.
    pub host: Box<dyn Host>,
    pub(crate) traces: RwLock<Vec<Arc<Trace>>>,
    pub(crate) doors: Arc<Doors>,
    pub(crate) lines: Lines,
}

impl Hud {
    /// The traces, in order of their numbers.
    pub fn traces(&self) -> Vec<Arc<Trace>> {
        self.traces.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts the next window in the place of the one that has this number.
    pub fn put(&self, number: usize, loaded: Loaded) {
        let trace = Trace::new(loaded);
        if let Some(slot) = self.traces.write().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
            *slot = Arc::new(trace.after(slot));
        }
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
