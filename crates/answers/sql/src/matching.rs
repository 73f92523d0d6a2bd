//! Stacks with a frame that a pattern names.

use etwhy_table::{Database, Pattern};
use etwhy_trace::{catalog::stack::FrameRow, stacks::Stacks};

/// For each stack, by number: whether one of its frames is in that function (`module!function`), module or category.
pub fn stacks_with(db: &Database, pattern: &str) -> Vec<bool> {
    let pattern = Pattern::parse(pattern);
    let frames = db.read_or_empty::<FrameRow>();
    let names = frames.iter().map(|row| [Some(row.label()), Some(row.module()), row.category()]);
    let matches = |names: [Option<&str>; 3]| names.into_iter().flatten().any(|text| pattern.matches(text));
    let frames: Vec<bool> = names.map(matches).collect();
    let has = |frame: &u32| frames.get(*frame as usize) == Some(&true);
    Stacks::read(db).iter().map(|stack| stack.iter().any(has)).collect()
}
