//! The critical path of a thread in a range, piece by piece and by what took the time.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::Part;
use crate::reply::Reply;
use crate::trace::Trace;
use crate::who;
use etwhy_analysis::states::path::{Link, MOST_LINKS, causes, of};
use etwhy_trace::catalog::stack::StackRow;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "path",
    about: "body: range, thread (utid), limit (pieces; 2,000). JSON: pieces, latest first; causes, largest first; total, cut",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    thread: u32,
    #[serde(default = "some")]
    limit: usize,
}

fn some() -> usize {
    2000
}

/// Causes worth a line.
const MOST_CAUSES: usize = 200;

fn leaf(trace: &Trace, stack: Option<i64>) -> Option<String> {
    trace.db.read_or_empty::<StackRow>().get(stack?)?.leaf().map(str::to_owned)
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let trace = call.trace()?;
    let extent = trace.extent();
    let whole = [extent.first_ns, extent.last_ns.saturating_add(1)];
    let [from, to] = Part::of(call)?.range.unwrap_or(whole);
    let range = (from, to);
    let links = of(&trace.db, trace.switches(), body.thread, range, || !call.cancel.is_set());
    call.cancel.check()?;
    // The longest pieces, in their order.
    let length = |link: &Link<'_>| link.range.1.saturating_sub(link.range.0);
    let mut places: Vec<usize> = (0..links.len()).collect();
    if places.len() > body.limit {
        places.sort_by_key(|&place| std::cmp::Reverse(links.get(place).map_or(0, length)));
        places.truncate(body.limit);
        places.sort_unstable();
    }
    let piece = |link: &Link<'_>| {
        json!({
            "start_ns": link.range.0, "dur_ns": length(link), "kind": link.kind.name(), "utid": link.utid,
            "depth": link.depth, "cpu": link.cpu, "reason": link.reason, "in_dpc": link.in_dpc, "row": link.row,
            "leaf": leaf(&trace, link.stack),
        })
    };
    let pieces: Vec<Value> = places.iter().filter_map(|&place| links.get(place)).map(piece).collect();
    let mut sums = causes(&links);
    let total = sums.len();
    sums.truncate(MOST_CAUSES);
    let cause = |cause: &etwhy_analysis::states::path::Cause<'_>| {
        let longest = links.get(cause.longest);
        json!({
            "kind": cause.kind.name(), "utid": cause.utid, "reason": cause.reason, "in_dpc": cause.in_dpc,
            "dur_ns": cause.dur_ns, "pieces": cause.pieces, "longest": longest.map(piece),
        })
    };
    let utids: BTreeSet<u32> = places
        .iter()
        .filter_map(|&place| links.get(place))
        .map(|link| link.utid)
        .chain(sums.iter().map(|cause| cause.utid))
        .collect();
    Reply::json(&json!({
        "range": [range.0, range.1],
        "thread": who::thread(&trace, body.thread),
        "threads": utids.iter().map(|&utid| who::thread(&trace, utid)).collect::<Vec<_>>(),
        "pieces": pieces,
        "total": links.len(),
        "cut": links.len() >= MOST_LINKS,
        "causes": sums.iter().map(cause).collect::<Vec<_>>(),
        "causes_total": total,
    }))
}
