//! Time of file operations.

use crate::operators::stacks::{Metric, Rows, Source};
use etwhy_table::Unit;
use etwhy_trace::catalog::file_io::FILE_IO;

/// Declaration.
pub static METRIC: Metric = Metric {
    name: "file-time",
    about: "time of file operations",
    manual: "From start to end in the file system and below: filters above it are not in it (see \
             minifilter-time and cpu).",
    unit: Unit::Ns,
    source: Source::Rows(Rows::weighted(&FILE_IO, "dur_ns")),
};
