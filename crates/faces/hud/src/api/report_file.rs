//! The verdict as one file to keep or send.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "report_file",
    about: "the report of `etwhy why --html` as a file",
    work: Work::Known,
    answer,
};

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let trace = call.trace()?;
    let mut bytes = Vec::new();
    etwhy_report::html::write(&trace.report, &mut bytes).map_err(Fault::wrong)?;
    Ok(Reply::File { name: format!("{}.why.html", trace.name), media: "text/html; charset=utf-8", bytes })
}
