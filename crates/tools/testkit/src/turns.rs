//! Taking turns.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tests that hold this run one after another: those that take the whole machine or measure time.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
