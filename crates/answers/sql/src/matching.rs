//! Stacks with a frame that a pattern names.

use etwhy_table::{Database, Pattern};
use etwhy_trace::catalog::stack::{FrameRow, StackFrameRow};

/// For each stack, by number: whether one of its frames is in that function (`module!function`), module or category.
pub fn stacks_with(db: &Database, pattern: &str) -> Vec<bool> {
    let pattern = Pattern::parse(pattern);
    let mut stacks = Vec::new();
    let (frames, on_stack) = (db.read_or_empty::<FrameRow>(), db.read_or_empty::<StackFrameRow>());
    let names = frames.iter().map(|row| [Some(row.label()), Some(row.module()), row.category()]);
    let matches = |names: [Option<&str>; 3]| names.into_iter().flatten().any(|text| pattern.matches(text));
    let frames: Vec<bool> = names.map(matches).collect();
    for row in &on_stack {
        let (Ok(stack), Ok(frame)) = (usize::try_from(row.stack_id()), usize::try_from(row.frame_id()))
        else {
            continue;
        };
        // Stacks are numbered from 0: what is beyond their number is damage.
        if frames.get(frame) == Some(&true) && stack < on_stack.len() {
            if stacks.len() <= stack {
                stacks.resize(stack + 1, false);
            }
            if let Some(found) = stacks.get_mut(stack) {
                *found = true;
            }
        }
    }
    stacks
}
