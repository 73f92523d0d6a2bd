//! A thread or processor over time: stacks as boxes.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::Part;
use crate::reply::Reply;
use crate::stacks::nodes::{column, name_cells, name_columns, spec};
use crate::stacks::{metric_of, weighed};
use crate::trace::Trace;
use etwhy_analysis::stacks::{Class, Lane, TracePart, Weighed, WeightedStack, chart};
use etwhy_table::{AdHocBuilder, ColumnType, Memory, Role, Unit, Value};
use etwhy_trace::catalog::{cswitch::CSwitchRow, sample::SampleRow, thread::ThreadRow};
use foldhash::HashMap;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "stack_chart",
    about: "body: part, utid or cpu (else the thread with most samples in the part), width (pixels). Boxes as Arrow by begin; facts samples, weight, \
            threads (those with most samples), sql",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    utid: Option<i64>,
    cpu: Option<i64>,
    #[serde(default = "width")]
    width: f64,
}

/// Of the picture.
#[derive(Serialize, TS)]
#[ts(rename = "ChartFacts")]
pub(crate) struct Facts {
    from: i64,
    to: i64,
    utid: Option<i64>,
    cpu: Option<i64>,
    samples: i64,
    weight: i64,
    /// Samples under heavier stacks of the same pixel.
    hidden: i64,
    /// Boxes that were too many.
    left_out: u64,
    levels: u32,
    /// Context switches were recorded.
    switches: bool,
    sql: Option<String>,
    threads: Vec<Named>,
    threads_in_all: usize,
    why: Option<String>,
    /// The command that records what is missing.
    record: Option<String>,
}

/// A thread and its CPU time.
#[derive(Clone, Serialize, TS)]
#[ts(rename = "ChartThread")]
struct Named {
    utid: i64,
    name: String,
    weight: i64,
    samples: i64,
}

fn width() -> f64 {
    1000.0
}

/// Threads that are offered.
const THREADS: usize = 100;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let part = Part::parse(call)?;
    let trace = call.trace()?;
    let extent = trace.extent();
    let [from, to] = part.range.unwrap_or([extent.first_ns, extent.last_ns.saturating_add(1)]);
    let busy = metric_of(call, "busy")?;
    let kept = weighed(call, &trace, &busy)?;
    let mut threads = threads(
        call,
        &trace,
        &TracePart { from_ns: Some(from), to_ns: Some(to), ..part.of_stacks(&trace) },
        &kept,
    )?;
    let lane = match (body.cpu, body.utid) {
        (Some(cpu), _) => Some(Lane::Cpu(cpu)),
        (None, Some(utid)) => Some(Lane::Thread(utid)),
        (None, None) => threads.first().map(|thread| Lane::Thread(thread.utid)),
    };
    let pixel = (to.saturating_sub(from) as f64 / body.width.clamp(1.0, 1e5)) as i64;
    let made = match lane {
        Some(lane) => {
            let mine = |sample: &WeightedStack| match lane {
                Lane::Thread(utid) => sample.utid == Some(utid),
                Lane::Cpu(cpu) => sample.cpu == Some(cpu),
            };
            let samples = |give: &mut dyn FnMut(WeightedStack)| match kept.as_ref() {
                Some(kept) => kept.rows_of(from, to, &mine, give),
                None => busy.each(&trace.db, give),
            };
            chart(&trace.db, trace.frames(), &samples, lane, (from, to), pixel, &|| !call.cancel.is_set())
        }
        None => Some(Default::default()),
    };
    let made = made.ok_or(Fault::Cancelled)?;
    let mut columns = vec![
        column("from_ns", ColumnType::I64, Unit::Ns, Role::Time, "Begin."),
        column("to_ns", ColumnType::I64, Unit::Ns, Role::Time, "End."),
        column("depth", ColumnType::I32, Unit::None, Role::Other, "Levels below the top."),
    ];
    columns.extend(name_columns());
    columns.extend([
        column(
            "samples",
            ColumnType::I64,
            Unit::Count,
            Role::Count,
            "Samples in it; 0 if it is no sample but a wait.",
        ),
        column("weight", ColumnType::I64, Unit::Ns, Role::Weight, "CPU time of these samples."),
    ]);
    let mut rows = AdHocBuilder::new(spec("stack_chart", columns), &Memory::unlimited());
    for one in &made.boxes {
        let Some(name) = made.names.get(one.name as usize) else { continue };
        let mut cells = vec![Value::I64(one.from_ns), Value::I64(one.to_ns), Value::I64(one.depth.into())];
        cells.extend(name_cells(name));
        cells.extend([Value::I64(one.samples), Value::I64(one.weight)]);
        rows.push(&cells).map_err(Fault::wrong)?;
    }
    let of_lane = match lane {
        Some(Lane::Cpu(cpu)) => format!("cpu = {cpu}"),
        Some(Lane::Thread(utid)) => format!("utid = {utid} AND NOT in_dpc AND NOT in_isr"),
        None => "0".to_owned(),
    };
    let spec = call.spec(busy.table());
    let sql = spec.and_then(|spec| busy.rows().sql(spec)).map(|(sum, conditions)| {
        let busy = conditions.join(" AND ");
        format!(
            "SELECT {sum} AS total, count(*) AS samples FROM sample WHERE {of_lane} AND {busy} AND ts_ns >= {from} AND ts_ns < {to}"
        )
    });
    let host = &call.hud.host;
    let empty = trace.db.read_or_empty::<SampleRow>().is_empty();
    let threads_in_all = threads.len();
    threads.truncate(THREADS);
    let facts = Facts {
        from,
        to,
        utid: if let Some(Lane::Thread(utid)) = lane { Some(utid) } else { None },
        cpu: if let Some(Lane::Cpu(cpu)) = lane { Some(cpu) } else { None },
        samples: made.samples,
        weight: made.weight,
        hidden: made.hidden,
        left_out: made.left_out,
        levels: made.levels,
        switches: !trace.db.read_or_empty::<CSwitchRow>().is_empty(),
        sql,
        threads,
        threads_in_all,
        why: if empty { host.why_empty(&trace.db, "sample") } else { None },
        record: empty.then(|| host.recording_for("sample")),
    };
    Reply::table(&rows.finish().map_err(Fault::wrong)?, &facts)
}

/// Threads of the part by CPU time.
fn threads(
    call: &Call<'_>,
    trace: &Trace,
    part: &TracePart,
    kept: &Option<Weighed>,
) -> Result<Vec<Named>, Fault> {
    let mut sums: HashMap<i64, (Option<i64>, i64, i64)> = HashMap::default();
    let mut add = |sample: WeightedStack| {
        if let (Some(thread), Class::Thread) = (sample.utid, sample.class) {
            let sum = sums.entry(thread).or_insert((sample.upid, 0, 0));
            sum.1 = sum.1.saturating_add(sample.weight);
            sum.2 += sample.count;
        }
    };
    match kept {
        Some(kept) => kept.each_of(part, &mut add),
        None => metric_of(call, "busy")?.each_of(&trace.db, part, &mut add),
    }
    call.cancel.check()?;
    let processes = etwhy_analysis::operators::process_names(&trace.db);
    let threads = trace.db.read_or_empty::<ThreadRow>();
    let mut out: Vec<Named> = sums
        .into_iter()
        .map(|(utid, (upid, weight, samples))| {
            let process = upid.and_then(|p| processes.get(usize::try_from(p).ok()?));
            let (tid, own) = threads.get(utid).map_or((-1, ""), |row| (row.tid(), row.name().unwrap_or("")));
            let (name, pid) = process.map_or(("[unknown process]", -1), |(name, pid)| (name.as_str(), *pid));
            let name = format!("{name} ({pid}) thread {tid} {own}").trim_end().to_owned();
            Named { utid, name, weight, samples }
        })
        .collect();
    out.sort_by_key(|thread| (std::cmp::Reverse(thread.weight), thread.utid));
    Ok(out)
}
