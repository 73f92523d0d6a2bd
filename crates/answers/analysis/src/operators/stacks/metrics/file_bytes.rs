//! Bytes that file reads and writes moved.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::file_io::FILE_IO;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "file-bytes",
    about: "bytes that file reads and writes moved",
    manual: "Of each read and write what it moved, as the file system says when it ends. Reads from the cache \
             are in it, reads of mapped files are not.",
    unit: Unit::Bytes,
    source: Source::Rows(Rows::weighted(&FILE_IO, "done_bytes")),
};
