//! Stacks with a frame that a pattern names.

use etwhy_table::{Database, Pattern};

/// For each stack, by number: whether one of its frames is in that function (`module!function`), module or category.
pub(crate) fn stacks_with(db: &Database, pattern: &str) -> Vec<bool> {
    let pattern = Pattern::parse(pattern);
    let mut stacks = Vec::new();
    let (Some(frames), Some(on_stack)) = (db.get("frame"), db.get("stack_frame")) else { return stacks };
    let names = ["label", "module", "category"];
    let matches =
        |row: u32| names.iter().any(|name| frames.text(row, name).is_some_and(|text| pattern.matches(text)));
    let frames: Vec<bool> = (0..frames.rows() as u32).map(matches).collect();
    for row in 0..on_stack.rows() as u32 {
        let number = |name: &str| on_stack.i64(row, name).and_then(|n| usize::try_from(n).ok());
        let (Some(stack), Some(frame)) = (number("stack_id"), number("frame_id")) else { continue };
        // Stacks are numbered from 0: what is beyond their number is damage.
        if frames.get(frame) == Some(&true) && stack < on_stack.rows() {
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
