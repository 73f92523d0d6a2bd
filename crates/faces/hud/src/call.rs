//! A question of the page, and the work on it.

use crate::reply::Reply;
use crate::server::Hud;
use crate::trace::Trace;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an answer takes; each kind has a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// What is known already: it never waits for anything that is computed.
    Known,
    /// What panels draw: passes over tables.
    Panel,
    /// A question in SQL, which may take as long as its limits allow.
    Query,
    /// Another trace is read.
    Reading,
}

/// Something that the page may ask.
pub struct Endpoint {
    /// The last part of the address: `/{token}/api/v1/{name}`.
    pub name: &'static str,
    /// What it gives, and what the body holds.
    pub about: &'static str,
    /// What it takes.
    pub work: Work,
    /// Answers.
    pub answer: fn(&Call<'_>) -> Result<Reply, Fault>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The question makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// There is no such thing.
    #[error("{0}")]
    Missing(String),
    /// Not allowed here.
    #[error("{0}")]
    Forbidden(String),
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

/// A question.
pub struct Call<'a> {
    /// The server's state.
    pub hud: &'a Hud,
    /// The body.
    pub body: serde_json::Value,
    /// Whether anybody waits.
    pub cancel: Cancel,
}

impl Call<'_> {
    /// The trace that the body names by number (`trace`, else the first).
    ///
    /// # Errors
    /// If there is none.
    pub fn trace(&self) -> Result<Arc<Trace>, Fault> {
        self.trace_named("trace")
    }

    /// As [`Call::trace`], by another key.
    ///
    /// # Errors
    /// If there is none.
    pub fn trace_named(&self, key: &str) -> Result<Arc<Trace>, Fault> {
        self.trace_number(self.body.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0))
    }

    /// The trace with this number.
    ///
    /// # Errors
    /// If there is none.
    pub fn trace_number(&self, number: u64) -> Result<Arc<Trace>, Fault> {
        let traces = self.hud.traces();
        let found = usize::try_from(number).ok().and_then(|n| traces.get(n).cloned());
        found.ok_or_else(|| Fault::Missing(format!("there is no trace {number}")))
    }

    /// The body as a value of `T`.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_value(self.body.clone()).map_err(Fault::wrong)
    }
}
