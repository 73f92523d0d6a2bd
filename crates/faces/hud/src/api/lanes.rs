//! The timeline: lanes of a range, in buckets.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::{Kind as Speaks, Part};
use crate::reply::Reply;
use crate::trace::Trace;
use crate::who;
use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use etwhy_analysis::lanes::{Ask, Extent, Grid, Lane, kinds};
use etwhy_rules::Severity;
use etwhy_trace::catalog::{cpu_time::CpuRow, trace::TraceRow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "lanes",
    about: "body: range (that is shown), width (buckets at most), lanes (kinds; all unless given), filters, modes (user and kernel too), findings (when they were, too). \
            Rows `series, bucket, value`, by series; facts: grid, lanes with title, unit, shape, series and SQL, kinds that are empty",
    work: Work::Panel,
    answer,
};

/// Buckets at most.
const MOST: usize = 4096;

#[derive(Deserialize)]
struct Body {
    #[serde(default = "usual")]
    width: usize,
    lanes: Option<Vec<String>>,
    #[serde(default)]
    modes: bool,
    #[serde(default)]
    findings: bool,
}

/// Of the answer. Series are numbered through all lanes.
#[derive(Serialize, TS)]
pub(crate) struct LanesFacts {
    start_ns: i64,
    bucket_ns: i64,
    /// Buckets.
    count: usize,
    lanes: Vec<Lane>,
    empty: Vec<EmptyLane>,
    unused: Vec<&'static str>,
    /// Where processors are: number, group and NUMA node.
    places: Vec<[Option<i64>; 3]>,
    /// If asked for.
    findings: Option<Vec<FindingMark>>,
    events_lost: i64,
    buffers_lost: i64,
    /// By the clock; none: the trace does not say.
    start_unix_ns: Option<i64>,
}

/// A kind of lane of which there is nothing.
#[derive(Serialize, TS)]
struct EmptyLane {
    kind: &'static str,
    about: &'static str,
    why: Option<String>,
    recording: String,
}

/// A culprit that a finding names, with the time range that a click on its card selects; without one it happened all the time.
#[derive(Clone, Serialize, TS)]
struct FindingMark {
    finding: String,
    hit: usize,
    title: String,
    #[ts(type = "string")]
    severity: Severity,
    headline: String,
    culprit: String,
    range: Option<[i64; 2]>,
}

fn usual() -> usize {
    1024
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let part = Part::parse(call)?;
    let trace = call.trace()?;
    let whole = trace.extent();
    let extent = Extent { first_ns: whole.first_ns, end_ns: whole.last_ns.saturating_add(1) };
    let range = part.range.unwrap_or([extent.first_ns, extent.end_ns]);
    let ask = Ask {
        grid: Grid::covering(range, extent, body.width.clamp(1, MOST)),
        processes: part.numbers(Speaks::Process),
        cpus: part.numbers(Speaks::Cpu),
        modes: body.modes,
        given_up: &|| call.cancel.is_set(),
    };
    let (mut lanes, mut empty): (Vec<Lane>, Vec<EmptyLane>) = (Vec::new(), Vec::new());
    for kind in kinds::ALL {
        if body.lanes.as_ref().is_some_and(|wanted| !wanted.iter().any(|name| name == kind.name)) {
            continue;
        }
        call.cancel.check()?;
        let rows = |table: &&str| trace.rows_of(table);
        if kind.tables.iter().all(|table| rows(table) == 0) {
            let table = kind.tables.first().copied().unwrap_or("");
            empty.push(EmptyLane {
                kind: kind.name,
                about: kind.about,
                why: call.hud.host.why_empty(&trace.db, table),
                recording: call.hud.host.recording_for(table),
            });
            continue;
        }
        let source = trace.once(&format!("lanes {}", kind.name), || (kind.open)(&trace.db, extent));
        lanes.extend(source.draw(&trace.db, &ask));
    }
    call.cancel.check()?;
    let of_trace = trace.db.read_or_empty::<TraceRow>();
    let sum = |lost: &mut dyn Iterator<Item = i64>| lost.fold(0i64, i64::saturating_add);
    let facts = LanesFacts {
        start_ns: ask.grid.start_ns,
        bucket_ns: ask.grid.bucket_ns,
        count: ask.grid.count,
        lanes,
        empty,
        unused: who::unused(&part, &[Speaks::Process, Speaks::Cpu]),
        places: places(&trace),
        findings: body.findings.then(|| findings(&trace).as_ref().clone()),
        events_lost: sum(&mut of_trace.iter().map(|row| row.events_lost())),
        buffers_lost: sum(&mut of_trace.iter().map(|row| row.buffers_lost())),
        start_unix_ns: of_trace.first().map(|row| row.start_unix_ns()),
    };
    reply(&facts)
}

fn places(trace: &Trace) -> Vec<[Option<i64>; 3]> {
    let table = trace.db.read_or_empty::<CpuRow>();
    table.iter().map(|row| [Some(row.cpu()), row.group(), row.numa_node()]).collect()
}

fn findings(trace: &Trace) -> Arc<Vec<FindingMark>> {
    trace.once("lanes findings", || {
        let found = trace.report.findings.iter().filter(|outcome| !outcome.hits.is_empty());
        let hits =
            found.flat_map(|outcome| outcome.hits.iter().take(20).enumerate().map(move |hit| (outcome, hit)));
        let marks = hits.map(|(outcome, (number, hit))| FindingMark {
            finding: outcome.id.clone(),
            hit: number,
            title: outcome.title.clone(),
            severity: hit.severity,
            headline: hit.headline.clone(),
            culprit: hit.culprit.clone(),
            range: super::select::selection(trace, outcome, hit).range,
        });
        marks.collect()
    })
}

fn reply(facts: &LanesFacts) -> Result<Reply, Fault> {
    let all = || facts.lanes.iter().flat_map(|lane| &lane.series).zip(0i32..);
    let number = all().flat_map(|(series, number)| series.values.iter().map(move |_| number));
    let bucket = all().flat_map(|(series, _)| series.values.iter().map(|(bucket, _)| *bucket as i32));
    let value = all().flat_map(|(series, _)| series.values.iter().map(|(_, value)| *value));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(number)),
        Arc::new(Int32Array::from_iter_values(bucket)),
        Arc::new(Float64Array::from_iter_values(value)),
    ];
    let field = |name: &str, ty| Field::new(name, ty, false);
    let schema = Arc::new(Schema::new(vec![
        field("series", DataType::Int32),
        field("bucket", DataType::Int32),
        field("value", DataType::Float64),
    ]));
    let batch = RecordBatch::try_new(schema.clone(), columns).map_err(Fault::wrong)?;
    Reply::batches(&schema, &[batch], facts)
}
