//! Threads by what they did in a part: ran, stood ready, waited, and for whom.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::part::{Kind, Part};
use crate::reply::Reply;
use crate::who;
use etwhy_analysis::states::{State, threads};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "thread_states",
    about: "body: part, sort (run, ready, wait, switches), search, limit (500). JSON: threads with run, ready, wait, switches, top \
            wait reason, top readying process; total, sums, sql, unused",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    sort: Sort,
    #[serde(default)]
    search: String,
    #[serde(default = "some")]
    limit: usize,
}

fn some() -> usize {
    500
}

#[derive(Clone, Copy, Default, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "ThreadSort")]
pub(crate) enum Sort {
    #[default]
    Run,
    Ready,
    Wait,
    Switches,
}

#[derive(Serialize, TS)]
pub(crate) struct ThreadStates {
    threads: Vec<Line>,
    total: usize,
    /// Of all, also those that are not listed.
    sums: Whole,
    range: [i64; 2],
    sql: String,
    unused: Vec<&'static str>,
}

#[derive(Serialize, TS)]
#[ts(rename = "ThreadTotals")]
struct Whole {
    run_ns: i64,
    ready_ns: i64,
    wait_ns: i64,
    switches: i64,
}

#[derive(Serialize, TS)]
#[ts(rename = "ThreadLine")]
struct Line {
    #[serde(flatten)]
    thread: who::Thread,
    #[serde(flatten)]
    sums: Figures,
    top_reason: Option<(String, i64)>,
    /// Name of the process, its upid, the time; a DPC has no upid.
    top_readier: Option<(String, Option<u32>, i64)>,
}

#[derive(Serialize, TS)]
#[ts(rename = "ThreadFigures")]
struct Figures {
    run_ns: i64,
    ready_ns: i64,
    wait_ns: i64,
    wait_max_ns: i64,
    open_wait_ns: i64,
    switches: i64,
}

/// The filters of a part as `cswitch` understands them.
pub(super) fn choice(call: &Call<'_>, part: &Part) -> Result<threads::Choice, Fault> {
    let trace = call.trace()?;
    let extent = trace.extent();
    let masks = part.of_stacks(&trace);
    let [from, to] = part.range.unwrap_or([extent.first_ns, extent.last_ns.saturating_add(1)]);
    Ok(threads::Choice {
        range: (from, to),
        processes: masks.processes,
        threads: masks.threads,
        cpus: part.numbers(Kind::Cpu),
    })
}

/// They as conditions.
fn conditions(part: &Part) -> Vec<String> {
    let columns = [(Kind::Process, "new_upid"), (Kind::Thread, "new_utid"), (Kind::Cpu, "cpu")];
    let of = |(kind, column): (Kind, &'static str)| part.numbers(kind).sql(column);
    columns.into_iter().flat_map(of).collect()
}

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let trace = call.trace()?;
    let part = Part::parse(call)?;
    let choice = choice(call, &part)?;
    let index = trace.switches();
    let mut sums = threads::threads(&trace.db, index, &choice, || !call.cancel.is_set());
    call.cancel.check()?;
    let search = body.search.trim().to_lowercase();
    if !search.is_empty() {
        sums.retain(|sum| {
            let thread = who::thread(&trace, sum.utid);
            let number = |id: Option<i64>| id.map_or(String::new(), |id| id.to_string());
            let name = thread.name.unwrap_or_default().to_lowercase();
            thread.process.process.to_lowercase().contains(&search)
                || name.contains(&search)
                || number(thread.tid) == search
                || number(thread.process.pid) == search
        });
    }
    let by = match body.sort {
        Sort::Run => State::Run,
        Sort::Ready => State::Ready,
        Sort::Wait => State::Wait,
        Sort::Switches => State::Unknown,
    };
    sums.sort_by_key(|sum| (std::cmp::Reverse(threads::rank(sum, by)), sum.utid));
    let total = sums.len();
    let all = |of: fn(&threads::ThreadSums) -> i64| sums.iter().map(of).fold(0i64, i64::saturating_add);
    let whole = Whole {
        run_ns: all(|s| s.run_ns),
        ready_ns: all(|s| s.ready_ns),
        wait_ns: all(|s| s.wait_ns),
        switches: all(|s| s.switches),
    };
    let threads: Vec<Line> = sums
        .into_iter()
        .take(body.limit.min(10_000))
        .map(|sum| Line {
            thread: who::thread(&trace, sum.utid),
            sums: Figures {
                run_ns: sum.run_ns,
                ready_ns: sum.ready_ns,
                wait_ns: sum.wait_ns,
                wait_max_ns: sum.wait_max_ns,
                open_wait_ns: sum.open_wait_ns,
                switches: sum.switches,
            },
            top_reason: sum.top_reason,
            top_readier: sum.top_readier.map(|(upid, ns)| match upid {
                Some(_) => (who::process(&trace, upid).process, upid, ns),
                None => ("a DPC (timer, end of a transfer)".to_owned(), None, ns),
            }),
        })
        .collect();
    Reply::json(&ThreadStates {
        threads,
        total,
        sums: whole,
        range: [choice.range.0, choice.range.1],
        sql: threads::sql(choice.range, &conditions(&part)),
        unused: who::unused(&part, &[Kind::Process, Kind::Thread, Kind::Cpu]),
    })
}
