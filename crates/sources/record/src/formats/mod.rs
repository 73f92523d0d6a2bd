//! What a recording can be written as: one file per recorder.

mod lines;
mod logman;
mod wpr;
mod wprp;
mod xperf;

use crate::recording::{RecordError, Recording};

/// A way to write a recording.
pub struct Format {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// The recording as text.
    pub write: fn(&Recording) -> Result<String, RecordError>,
}

/// All formats; the first one is used unless another is asked for.
pub fn formats() -> &'static [Format] {
    &[
        Format {
            name: "wprp",
            about: "Recording profile of Windows Performance Recorder (XML)",
            write: wprp::write,
        },
        Format { name: "wpr", about: "Commands of wpr that use the .wprp file", write: wpr::write },
        Format { name: "xperf", about: "Commands of xperf", write: xperf::write },
        Format {
            name: "logman",
            about: "Commands of logman, which every Windows has: no stacks, documented kernel flags only",
            write: logman::write,
        },
    ]
}
