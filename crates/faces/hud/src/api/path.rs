//! The critical path of a thread in a range, piece by piece and by what took the time.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::Part;
use crate::reply::Reply;
use crate::trace::Trace;
use crate::who;
use etwhy_analysis::states::State;
use etwhy_analysis::states::path::{Link, MOST_LINKS, causes, path_of};
use etwhy_trace::catalog::stack::StackRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use ts_rs::TS;

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

#[derive(Serialize, TS)]
pub(crate) struct CriticalPath {
    range: [i64; 2],
    thread: who::Thread,
    /// All that pieces and causes name.
    threads: Vec<who::Thread>,
    /// Latest first.
    pieces: Vec<PathPiece>,
    /// Pieces in all.
    total: usize,
    /// It has more pieces than can be followed.
    cut: bool,
    /// Largest first.
    causes: Vec<PathCause>,
    causes_total: usize,
}

#[derive(Serialize, TS)]
struct PathPiece {
    start_ns: i64,
    dur_ns: i64,
    kind: State,
    utid: u32,
    depth: i32,
    cpu: Option<i64>,
    reason: Option<String>,
    in_dpc: bool,
    /// Row of `cswitch`.
    row: Option<u32>,
    /// Innermost frame.
    leaf: Option<String>,
}

#[derive(Serialize, TS)]
struct PathCause {
    kind: State,
    utid: u32,
    reason: Option<String>,
    in_dpc: bool,
    dur_ns: i64,
    pieces: i64,
    longest: Option<PathPiece>,
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
    let [from, to] = Part::parse(call)?.range.unwrap_or(whole);
    let range = (from, to);
    let links = path_of(&trace.db, trace.switches(), body.thread, range, || !call.cancel.is_set());
    call.cancel.check()?;
    // The longest pieces, in their order.
    let length = |link: &Link| link.range.1.saturating_sub(link.range.0);
    let mut places: Vec<usize> = (0..links.len()).collect();
    if places.len() > body.limit {
        places.sort_by_key(|&place| std::cmp::Reverse(links.get(place).map_or(0, length)));
        places.truncate(body.limit);
        places.sort_unstable();
    }
    let piece = |link: &Link| PathPiece {
        start_ns: link.range.0,
        dur_ns: length(link),
        kind: link.kind,
        utid: link.utid,
        depth: link.depth,
        cpu: link.cpu,
        reason: link.reason.map(str::to_owned),
        in_dpc: link.in_dpc,
        row: link.row,
        leaf: leaf(&trace, link.stack),
    };
    let pieces = places.iter().filter_map(|&place| links.get(place)).map(piece).collect();
    let mut sums = causes(&links);
    let total = sums.len();
    sums.truncate(MOST_CAUSES);
    let cause = |cause: &etwhy_analysis::states::path::Cause| PathCause {
        kind: cause.kind,
        utid: cause.utid,
        reason: cause.reason.map(str::to_owned),
        in_dpc: cause.in_dpc,
        dur_ns: cause.dur_ns,
        pieces: cause.pieces,
        longest: links.get(cause.longest).map(piece),
    };
    let utids: BTreeSet<u32> = places
        .iter()
        .filter_map(|&place| links.get(place))
        .map(|link| link.utid)
        .chain(sums.iter().map(|cause| cause.utid))
        .collect();
    Reply::json(&CriticalPath {
        range: [range.0, range.1],
        thread: who::thread(&trace, body.thread),
        threads: utids.iter().map(|&utid| who::thread(&trace, utid)).collect(),
        pieces,
        total: links.len(),
        cut: links.len() >= MOST_LINKS,
        causes: sums.iter().map(cause).collect(),
        causes_total: total,
    })
}
