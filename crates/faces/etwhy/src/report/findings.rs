//! Findings of a trace for people.

use super::findings_page::{self, Words};
use etwhy_rules::Outcome;
use std::io::{self, Write};

/// Prints what was found, the worst first; `all`: also why the other questions have no answer.
pub fn print(out: &mut impl Write, outcomes: &[Outcome], all: bool, width: usize) -> io::Result<()> {
    let words = Words { of: "this trace", more: "etwhy why --all", untold: all, absent: all };
    findings_page::print(out, outcomes, words, width)
}
