//! Why a question has no answer, and how work ends that nobody waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The question makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// There is no such thing.
    #[error("{0}")]
    Missing(String),
    /// It was there in a window that has passed since.
    #[error("that window has passed: what it named is gone")]
    Passed,
    /// Not allowed here.
    #[error("{0}")]
    Forbidden(String),
    /// There is an answer, but not now.
    #[error("{0}")]
    NotNow(String),
    /// More than is taken.
    #[error("{0}")]
    TooLarge(String),
    /// Nobody waits for the answer any more.
    #[error("given up")]
    Cancelled,
}

impl Fault {
    /// The question makes no sense.
    pub fn wrong(error: impl std::fmt::Display) -> Fault {
        Fault::Wrong(error.to_string())
    }
}

type Interrupt = Box<dyn Fn() + Send>;

/// Says whether anybody waits for the answer.
#[derive(Clone, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Default)]
struct CancelState {
    set: AtomicBool,
    interrupt: Mutex<Option<Interrupt>>,
}

impl Cancel {
    /// True if nobody does.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::Relaxed)
    }

    /// Ends the work.
    pub fn set(&self) {
        self.0.set.store(true, Ordering::Relaxed);
        if let Ok(interrupt) = self.0.interrupt.lock()
            && let Some(interrupt) = interrupt.as_ref()
        {
            interrupt();
        }
    }

    /// An error if nobody waits; for loops.
    ///
    /// # Errors
    /// [`Fault::Cancelled`].
    pub fn check(&self) -> Result<(), Fault> {
        if self.is_set() { Err(Fault::Cancelled) } else { Ok(()) }
    }

    /// What ends work that does not look itself (SQLite), while `work` runs.
    pub fn while_running<T>(&self, interrupt: Interrupt, work: impl FnOnce() -> T) -> Result<T, Fault> {
        let put = |value| {
            if let Ok(mut slot) = self.0.interrupt.lock() {
                *slot = value;
            }
        };
        put(Some(interrupt));
        let result = if self.is_set() { Err(Fault::Cancelled) } else { Ok(work()) };
        put(None);
        self.check()?;
        result
    }
}
