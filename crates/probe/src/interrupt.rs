//! The user's wish to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user wants everything to end. Copies share the wish.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that nobody has set.
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Sets it at Ctrl-C, at `SIGTERM` and `SIGHUP`, and when a console window is closed. The second time ends the program at
    /// once: what it leaves behind is removed by the next run.
    ///
    /// # Errors
    /// If the process has such a handler already.
    pub fn at_ctrl_c(&self) -> Result<(), ctrlc::Error> {
        let flag = Arc::clone(&self.0);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })
    }

    /// Wishes it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is wished.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
