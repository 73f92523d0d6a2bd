//! A limit on what happens at the same time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Lets a number of threads in.
#[derive(Debug)]
pub struct Gate {
    free: Mutex<usize>,
    left: Condvar,
}

/// Held by a thread that is in.
#[derive(Debug)]
pub struct Pass<'a>(&'a Gate);

impl Gate {
    /// For so many threads.
    pub fn new(limit: usize) -> Gate {
        Gate { free: Mutex::new(limit), left: Condvar::new() }
    }

    /// Waits until there is room.
    pub fn enter(&self) -> Pass<'_> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.left.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Pass(self)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}
