//! The user's wish to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether the user wants everything to end. Copies share the wish.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Wish>);

#[derive(Debug, Default)]
struct Wish {
    is_set: AtomicBool,
    /// What stays behind if the program ends at once.
    left: Mutex<Vec<String>>,
}

impl Interrupt {
    /// One that nobody has set.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Sets it at Ctrl-C, at `SIGTERM` and `SIGHUP`, and when a console window is closed. The second time ends the program at
    /// once: files that it leaves behind are removed by the next run, and what else stays ([`Interrupt::leaves`]) is said.
    ///
    /// # Errors
    /// If the process has such a handler already.
    pub fn at_ctrl_c(&self) -> Result<(), ctrlc::Error> {
        let flag = Arc::clone(&self.0);
        ctrlc::set_handler(move || {
            if flag.is_set.swap(true, Ordering::Relaxed) {
                for what in flag.left.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    eprintln!("etwhy: {what}");
                }
                std::process::exit(130);
            }
        })
    }

    /// Keeps a sentence for the user until it is [settled](Interrupt::settled): what stays behind if the program ends at once, and what
    /// undoes it.
    pub fn leaves(&self, what: &str) {
        let mut left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
        if !left.iter().any(|known| known == what) {
            left.push(what.to_owned());
        }
    }

    /// Nothing of this stays behind any more.
    pub fn settled(&self, what: &str) {
        self.0.left.lock().unwrap_or_else(PoisonError::into_inner).retain(|known| known != what);
    }

    /// Wishes it.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether it is wished.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }
}
