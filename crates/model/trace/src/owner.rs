//! Whom sums over events belong to: the process of a thread, which may be named only after the event.

use crate::model::Model;

/// A process, or a thread whose process is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A process.
    Process(u32),
    /// A thread.
    Thread(u32),
    /// The event named nobody.
    Unknown,
}

impl Owner {
    /// The owner of what a thread does.
    pub(crate) fn for_thread(model: &Model, utid: Option<u32>) -> Owner {
        match utid {
            None => Owner::Unknown,
            Some(utid) => model.upid_of(utid).map_or(Owner::Thread(utid), Owner::Process),
        }
    }

    /// The process, at the end of the pass.
    pub(crate) fn upid(self, model: &Model) -> Option<u32> {
        match self {
            Owner::Process(upid) => Some(upid),
            Owner::Thread(utid) => model.upid_of(utid),
            Owner::Unknown => None,
        }
    }
}
