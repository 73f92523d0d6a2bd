//! The lines of a file within its limits, and those that were not understood.

use crate::policy::{Policy, Unknown};

/// More lines than this are counted and not read.
const MAX_LINES: u64 = 50_000;

/// So many lines that were not understood are kept with their text.
const MAX_UNKNOWN: usize = 50;

/// Texts of a file are cut to this many characters.
const MAX_TEXT: usize = 300;

/// The lines that are read, numbered from 1.
pub fn lines<'t>(text: &'t str, policy: &mut Policy) -> Vec<(u64, &'t str)> {
    let mut taken = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at as u64 + 1;
        if number > MAX_LINES {
            policy.left_out += u64::from(!line.trim().is_empty());
        } else {
            taken.push((number, line));
        }
    }
    taken
}

pub fn unknown(policy: &mut Policy, line: u64, text: &str, reason: &'static str) {
    policy.unknown_count += 1;
    if policy.unknown.len() < MAX_UNKNOWN {
        policy.unknown.push(Unknown { line, text: cut(text), reason });
    }
}

pub fn cut(text: &str) -> String {
    text.trim().chars().filter(|c| *c != '\0').take(MAX_TEXT).collect()
}
