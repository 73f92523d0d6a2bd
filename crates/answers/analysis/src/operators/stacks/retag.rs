//! Stack tags of an extract, told anew with tags that were given after it was made.
//!
//! # How it is computed
//! As in the pass over a trace: each frame has a tag or none, and of a stack's frames the one whose tag has the highest priority
//! decides, the innermost among equals (`crates/model/knowledge`).

use etwhy_knowledge::{FrameTag, deciding_frame, tag_path};
use etwhy_table::{AdHocBuilder, Database, Memory, Table, Value};
use etwhy_trace::catalog::stack::{FrameRow, StackRow};
use etwhy_trace::stacks::Stacks;

/// Table `stack` with its tags told anew; `None` if there is none.
///
/// # Errors
/// Those of the table builder.
pub fn retag(db: &Database, memory: &Memory) -> etwhy_table::Result<Option<Table>> {
    let Ok(stacks) = db.table::<StackRow>() else { return Ok(None) };
    // All other columns are copied, whichever there are.
    let Some(tag_column) = stacks.spec().column_index("tag") else { return Ok(None) };
    let frames = db.read_or_empty::<FrameRow>();
    let tags: Vec<Option<FrameTag>> =
        frames.iter().map(|row| FrameTag::for_frame(row.module(), row.function().unwrap_or(""))).collect();
    let of_stacks = Stacks::read(db);
    let mut out = AdHocBuilder::new(stacks.spec().clone(), memory);
    for row in 0..stacks.rows() as u32 {
        let list = of_stacks.frames(i64::from(row));
        let best = deciding_frame(list.iter().map(|&frame| tags.get(frame as usize).copied().flatten()));
        let named = |at| frames.get(*list.get(at)?).map(|row| (row.module(), row.function()));
        let path = best.map(|(at, tag)| tag_path(at, tag, named));
        let cells: Vec<Value<'_>> = (0..stacks.spec().columns.len())
            .map(|column| match &path {
                _ if column != tag_column => stacks.cell(row, column),
                Some(path) => Value::Text(path),
                None => Value::Null,
            })
            .collect();
        out.push(&cells)?;
    }
    out.finish().map(Some)
}
