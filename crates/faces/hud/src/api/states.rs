//! Lanes of threads over time: what each did in each bucket, or each interval where there are few, and who woke whom.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::Part;
use crate::reply::Reply;
use crate::who;
use etwhy_analysis::states::lanes::{Detail, lanes};
use etwhy_analysis::states::{State, Switches};
use etwhy_table::{AdHocBuilder, ColumnSpec, ColumnType, Evidence, Memory, Role, TableSpec, Unit, Value};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "states",
    about: "body: range, threads (utids, at most 64), width (buckets), wakeups (most; 500). Arrow: lane, start, dur, state (place in \
            run, ready, wait, unknown), reason (place in fact reasons), cpu, priority, by (utid), row. Facts: lanes, bucket_ns (none: \
            intervals as they are), reasons, wakeups, wakeups_total, from_threads, from_dpcs",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    threads: Vec<u32>,
    #[serde(default = "wide")]
    width: usize,
    #[serde(default = "some")]
    wakeups: usize,
}

/// Of the answer.
#[derive(Serialize, TS)]
pub(crate) struct StatesFacts {
    range: [i64; 2],
    lanes: Vec<ThreadLane>,
    /// None: intervals as they are.
    bucket_ns: Option<i64>,
    /// Wait reasons, by number.
    reasons: Vec<String>,
    /// When, lane that did it, lane that could run then, row of `cswitch`.
    wakeups: Vec<[i64; 4]>,
    wakeups_total: u64,
    from_threads: u64,
    from_dpcs: u64,
}

/// A lane and its time in each state.
#[derive(Serialize, TS)]
struct ThreadLane {
    thread: who::Thread,
    run_ns: i64,
    ready_ns: i64,
    wait_ns: i64,
    open_wait_ns: i64,
    unknown_ns: i64,
}

fn wide() -> usize {
    1000
}

fn some() -> usize {
    500
}

/// Lanes of one picture.
const MOST_LANES: usize = 64;
/// Intervals that travel as they are; above it, buckets.
const EXACT: usize = 12_000;

fn column(name: &'static str, ty: ColumnType, unit: Unit, role: Role, doc: &'static str) -> ColumnSpec {
    ColumnSpec { name: name.into(), ty, unit, role, doc: doc.into(), nullable: true }
}

fn spec() -> TableSpec {
    use ColumnType::{Bool, I32, I64};
    let columns = vec![
        column("lane", I32, Unit::None, Role::Other, "Place of the thread."),
        column("start", I64, Unit::Ns, Role::Time, "Start of the interval or bucket."),
        column("dur", I64, Unit::Ns, Role::Duration, "Time in this state."),
        column("state", I32, Unit::None, Role::Kind, "0 run, 1 ready, 2 wait, 3 unknown."),
        column("reason", I32, Unit::None, Role::Kind, "Place of the wait reason."),
        column("cpu", I32, Unit::None, Role::Cpu, "Processor of the run behind it."),
        column("priority", I32, Unit::None, Role::Other, "Priority with which it came in."),
        column("by", I32, Unit::None, Role::Thread, "Thread that readied it."),
        column("row", I32, Unit::None, Role::Id, "Row of table cswitch."),
        column("open", Bool, Unit::None, Role::Flag, "Its end is not in the trace."),
    ];
    TableSpec {
        name: "states".into(),
        title: "What threads did".into(),
        doc: "What threads did over time.".into(),
        columns: columns.into(),
        sorted_by: None,
        version: 1,
        evidence: Evidence::Documented,
    }
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let mut body: Body = call.parse()?;
    let trace = call.trace()?;
    let part = Part::parse(call)?;
    let extent = trace.extent();
    let [from, to] = part.range.unwrap_or([extent.first_ns, extent.last_ns.saturating_add(1)]);
    body.threads.truncate(MOST_LANES);
    let detail = Detail { width: body.width.clamp(1, 4096), exact: EXACT, wakeups: body.wakeups.min(5000) };
    let found =
        lanes(&trace.db, trace.switches(), &body.threads, (from, to), detail, || !call.cancel.is_set());
    call.cancel.check()?;
    let switches = Switches::read(&trace.db);
    let mut table = AdHocBuilder::new(spec(), &Memory::unlimited());
    for piece in &found.pieces {
        let switch = piece.row.and_then(|row| switches.as_ref().map(|s| s.get(row)));
        let number = |n: Option<i64>| n.map_or(Value::Null, Value::I64);
        let small = |n: Option<u32>| number(n.map(i64::from));
        table
            .push(&[
                Value::I64(i64::from(piece.lane)),
                Value::I64(piece.start),
                Value::I64(piece.dur),
                Value::I64(piece.state.number() as i64),
                small(piece.reason),
                number(switch.filter(|_| piece.state != State::Wait).map(|s| s.cpu)),
                number(switch.map(|s| s.priority)),
                small(switch.and_then(|s| s.by)),
                small(piece.row),
                Value::Bool(piece.open),
            ])
            .map_err(Fault::wrong)?;
    }
    let table = table.finish().map_err(Fault::wrong)?;
    let lanes = found.lanes.iter().map(|lane| {
        let [run_ns, ready_ns, wait, unknown_ns] = lane.ns;
        ThreadLane {
            thread: who::thread(&trace, lane.utid),
            run_ns,
            ready_ns,
            wait_ns: wait.saturating_sub(lane.open_wait_ns),
            open_wait_ns: lane.open_wait_ns,
            unknown_ns,
        }
    });
    let wakeups = found.wakeups.iter().map(|w| [w.ts, i64::from(w.from), i64::from(w.to), i64::from(w.row)]);
    let facts = StatesFacts {
        range: [from, to],
        lanes: lanes.collect(),
        bucket_ns: found.bucket_ns,
        wakeups: wakeups.collect(),
        wakeups_total: found.wakeups_total,
        from_threads: found.from_elsewhere.0,
        from_dpcs: found.from_elsewhere.1,
        reasons: found.reasons,
    };
    Reply::table(&table, &facts)
}
