//! Who works at a time, by kind of work.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// What an answer takes; each kind has a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// What is known already: it never waits for anything that is computed.
    Known,
    /// What panels draw: passes over tables.
    Panel,
    /// A question in SQL, which may take as long as its limits allow.
    Query,
    /// The trace is read again.
    Reading,
}

/// Who works at a time, by kind: what is endless in one line does not hold up the others.
pub(crate) struct Lines {
    known: Arc<Semaphore>,
    panels: Arc<Semaphore>,
    queries: Arc<Semaphore>,
    reading: Arc<Semaphore>,
}

impl Lines {
    pub(crate) fn new() -> Lines {
        let processors = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let line = |places: usize| Arc::new(Semaphore::new(places));
        Lines { known: line(8), panels: line(processors), queries: line(2), reading: line(1) }
    }

    pub(crate) fn of_work(&self, work: Work) -> Arc<Semaphore> {
        let line = match work {
            Work::Known => &self.known,
            Work::Panel => &self.panels,
            Work::Query => &self.queries,
            Work::Reading => &self.reading,
        };
        line.clone()
    }
}
