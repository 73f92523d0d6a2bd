//! A stretch of a trace as a trace of its own.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::Part;
use crate::reply::Reply;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "part_file",
    about: "`range` of a trace as an .etl file: its buffers, whole, and those that say who is who",
    work: Work::Reading,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let range = Part::parse(call)?.range.ok_or_else(|| Fault::wrong("which part? (range)"))?;
    let (name, bytes) = call.trace()?.save_part(range)?;
    Ok(Reply::File { name, media: "application/octet-stream", bytes })
}
