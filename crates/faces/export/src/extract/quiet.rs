//! Panics of a library that are expected, without a word on standard error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// This thread expects a panic.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; `None` if it panics, of which nobody hears but the caller.
pub fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    // What it was about to change is left out by the caller.
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    result.ok()
}
