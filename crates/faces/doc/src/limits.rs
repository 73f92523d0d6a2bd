//! How much of hostile text is shown. Lists and tables say themselves how many rows they have ([`crate::Table::at_most`]).

use crate::layout::truncate_middle;
use crate::sanitize;

/// Characters of a name that is shown whole; a longer one loses its middle.
pub const NAME: usize = 200;
/// Characters of a sentence or paragraph that are shown.
pub const PROSE: usize = 4000;
/// Characters of a line that is copied, such as a command; a longer one is no command.
pub const VERBATIM: usize = 32_000;
/// Columns that a terminal's lines have at least, however narrow it is.
pub const LEAST_COLUMNS: usize = 20;

/// A name, visible and cut.
pub(crate) fn name(text: &str) -> String {
    truncate_middle(sanitize(text).trim(), NAME)
}

/// A sentence on one line, visible and cut.
pub(crate) fn prose(text: &str) -> String {
    truncate_middle(&sanitize(&text.split_whitespace().collect::<Vec<_>>().join(" ")), PROSE)
}

/// A line that is to be copied: its blanks stay.
pub(crate) fn verbatim(line: &str) -> String {
    truncate_middle(&sanitize(&line.replace('\t', "    ")), VERBATIM)
}
