//! The progress bar: on standard error, and only if that is a terminal.

use etwhy_symbols::server::{OnTransfer, Transfer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What is done sooner than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(200);

thread_local! {
    /// Says whether anybody waits for what this thread reads.
    static GIVEN_UP: RefCell<Option<Asks>> = const { RefCell::new(None) };
}

type Asks = Box<dyn Fn() -> bool>;

/// What unwinds a thread whose work nobody waits for.
struct GivenUp;

/// Reads with `work`, which shows its progress with a [`Bar`]; `None` if it was given up meanwhile. Where a bar moves on is where it ends: by
/// unwinding, so that readers need not know of it and files that they made go as they go after an error.
pub fn unless_given_up<T>(given_up: Asks, work: impl FnOnce() -> T) -> Option<T> {
    GIVEN_UP.set(Some(given_up));
    let result = catch_unwind(AssertUnwindSafe(work));
    GIVEN_UP.set(None);
    match result {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<GivenUp>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Ends the thread's work if nobody waits for it. Unlike a panic this says nothing on standard error.
pub fn go_on() {
    let over = GIVEN_UP.with_borrow(|asks| asks.as_ref().is_some_and(|given_up| given_up()));
    if over {
        resume_unwind(Box::new(GivenUp));
    }
}

/// Who else hears how far a run is: what it does, bytes that are done, bytes in all (0: not known).
type Hears = Box<dyn Fn(&str, u64, u64) + Send + Sync>;
static HEARS: OnceLock<Hears> = OnceLock::new();

/// From now on somebody else hears how far this process is.
pub fn tell(hears: Hears) {
    // The first one stays.
    let _ = HEARS.set(hears);
}

/// Says what is done, to whoever hears it.
pub fn doing(what: &str, done: u64, total: u64) {
    if let Some(hears) = HEARS.get() {
        hears(what, done, total);
    }
}

/// A bar that shows bytes, hidden when standard error is no terminal or the user wants silence, and until something took a while.
pub struct Bar {
    bar: ProgressBar,
    what: &'static str,
    since: Instant,
    /// Nobody has seen it yet, but somebody may.
    waits: AtomicBool,
}

impl Bar {
    /// A bar under the heading `what`.
    pub fn new(what: &'static str, quiet: bool) -> Bar {
        // Lines of `-v` say the same, and would be drawn over.
        let quiet = quiet || tracing::enabled!(tracing::Level::INFO);
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) =
            ProgressStyle::with_template("{msg:12} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        let waits = AtomicBool::new(!quiet && std::io::stderr().is_terminal());
        Bar { bar, what, since: Instant::now(), waits }
    }

    /// Shows `done` of `total` bytes.
    pub fn set(&self, done: u64, total: u64) {
        go_on();
        doing(self.what, done, total);
        if self.since.elapsed() >= PATIENCE && self.waits.swap(false, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
    }
}

/// Shows files that come from servers, all in one bar that is there while any comes.
pub fn downloads(quiet: bool) -> OnTransfer {
    let files: Mutex<Downloads> = Mutex::default();
    Arc::new(move |transfer: &Transfer<'_>| {
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        files.tell(transfer, quiet);
    })
}

/// Files on their way.
#[derive(Default)]
struct Downloads {
    bar: Option<Bar>,
    /// Bytes that are there and that there will be, by file.
    coming: HashMap<String, (u64, u64)>,
    /// Bytes of files that are done.
    done: u64,
}

impl Downloads {
    fn tell(&mut self, transfer: &Transfer<'_>, quiet: bool) {
        if transfer.over {
            self.coming.remove(transfer.name);
            self.done = self.done.saturating_add(transfer.done);
        } else {
            let total = transfer.total.unwrap_or(transfer.done);
            self.coming.insert(transfer.name.to_owned(), (transfer.done, total));
        }
        if self.coming.is_empty() {
            self.bar = None;
            return;
        }
        let (done, total) = self.sums();
        self.bar.get_or_insert_with(|| Bar::new("fetching", quiet)).set(done, total);
    }

    fn sums(&self) -> (u64, u64) {
        let add = |(done, total): (u64, u64), (d, t): &(u64, u64)| {
            (done.saturating_add(*d), total.saturating_add(*t))
        };
        self.coming.values().fold((self.done, self.done), add)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl etwhy_trace::Progress for Bar {
    fn bytes(&mut self, done: u64, total: u64) {
        self.set(done, total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_ends_where_its_bar_moves() {
        let bar = Bar::new("reading", true);
        let read = || (0..10).map(|n| bar.set(n, 10)).count();
        assert_eq!(unless_given_up(Box::new(|| false), read), Some(10));
        let looks = std::cell::Cell::new(0);
        let third = Box::new(move || looks.replace(looks.get() + 1) == 3);
        assert_eq!(unless_given_up(third, read), None);
        assert_eq!(read(), 10, "it holds for that work alone");
    }

    #[test]
    fn downloads_add_up() {
        let mut files = Downloads::default();
        let mut tell = |name, done, total, over| {
            files.tell(&Transfer { name, done, total, over }, true);
            (files.sums(), files.bar.is_some())
        };
        assert_eq!(tell("a", 0, Some(10), false), ((0, 10), true));
        assert_eq!(tell("b", 3, None, false), ((3, 13), true));
        assert_eq!(tell("a", 10, None, true), ((13, 13), true));
        assert_eq!(tell("b", 3, None, true), ((13, 13), false));
        assert_eq!(tell("c", 1, Some(u64::MAX), false).0, (14, u64::MAX));
    }
}
