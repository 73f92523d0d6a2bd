//! Stack tags of an extract, told anew with tags that were given after it was made.
//!
//! # How it is computed
//! As in the pass over a trace: each frame has a tag or none, and of a stack's frames the one whose tag has the highest priority
//! decides, the innermost among equals (`crates/model/knowledge`).

use crate::operators::cpu::StackFrames;
use etwhy_knowledge::{FrameTag, deciding_frame, tag_path};
use etwhy_table::{AdHocBuilder, Database, Memory, Table, Value};
use etwhy_trace::catalog::stack::FrameRow;

/// Table `stack` with its tags told anew; `None` if there is none.
///
/// # Errors
/// Those of the table builder.
pub fn retag(db: &Database, memory: &Memory) -> etwhy_table::Result<Option<Table>> {
    let Some(stacks) = db.get("stack") else { return Ok(None) };
    let Some(tag_column) = stacks.spec().column_index("tag") else { return Ok(None) };
    let mut frames: Vec<(String, Option<String>, Option<FrameTag>)> = Vec::new();
    for row in &db.read_or_empty::<FrameRow>() {
        let (module, function) = (row.module(), row.function());
        let tag = FrameTag::of(module, function.unwrap_or(""));
        frames.push((module.to_owned(), function.map(str::to_owned), tag));
    }
    let of_stacks = StackFrames::read(db);
    let mut out = AdHocBuilder::new(stacks.spec().clone(), memory);
    for row in 0..stacks.rows() as u32 {
        let list = of_stacks.of(i64::from(row));
        let frame = |at: usize| frames.get(*list.get(at)? as usize);
        let best = deciding_frame((0..list.len()).map(|at| frame(at)?.2));
        let named = |at: usize| frame(at).map(|(module, function, _)| (module.as_str(), function.as_deref()));
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
