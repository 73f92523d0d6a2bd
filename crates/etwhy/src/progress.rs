//! The progress bar: on standard error, and only if that is a terminal.

use etwhy_symbols::server::{OnTransfer, Transfer};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is done sooner than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(200);

/// A bar that shows bytes, hidden when standard error is no terminal or the user wants silence, and until something took a while.
pub struct Bar {
    bar: ProgressBar,
    since: Instant,
    /// Nobody has seen it yet, but somebody may.
    waits: AtomicBool,
}

impl Bar {
    /// A bar under the heading `what`.
    pub fn new(what: &'static str, quiet: bool) -> Bar {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        if let Ok(style) =
            ProgressStyle::with_template("{msg:12} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        let waits = AtomicBool::new(!quiet && std::io::stderr().is_terminal());
        Bar { bar, since: Instant::now(), waits }
    }

    /// Shows `done` of `total` bytes.
    pub fn set(&self, done: u64, total: u64) {
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
