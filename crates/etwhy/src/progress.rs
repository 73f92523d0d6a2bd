//! The progress bar: on standard error, and only if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar that shows bytes, hidden when standard error is no terminal or the user wants silence.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar under the heading `what`.
    pub fn new(what: &'static str, quiet: bool) -> Bar {
        let bar = ProgressBar::new(0);
        if quiet || !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) =
            ProgressStyle::with_template("{msg:12} [{bar:40}] {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        Bar { bar }
    }

    /// Shows `done` of `total` bytes.
    pub fn set(&self, done: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
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
