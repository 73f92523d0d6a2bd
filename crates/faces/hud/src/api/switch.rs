//! One context switch in full: who readied the thread, from where, and where it had waited.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::reply::Reply;
use crate::who;
use etwhy_analysis::states::Switches;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "switch",
    about: "body: row (of cswitch). JSON: thread, times, wait reason, priority, who readied it, stacks of both, sql",
    work: Work::Panel,
    answer,
};

#[derive(Deserialize)]
struct Body {
    row: u32,
}

#[derive(Serialize, TS)]
pub(crate) struct SwitchDetail {
    thread: who::Thread,
    ts_ns: i64,
    cpu: i64,
    run_ns: Option<i64>,
    wait_ns: Option<i64>,
    ready_ns: Option<i64>,
    since_last_ns: Option<i64>,
    waited: bool,
    reason: Option<String>,
    priority: i64,
    in_dpc: Option<bool>,
    readier: Option<who::Thread>,
    /// Where it waited.
    stack: Option<who::FrameList>,
    /// Where the thread that readied it was.
    ready_stack: Option<who::FrameList>,
    sql: String,
}

/// Frames of a stack that are worth a look without scrolling for long.
const FRAMES: usize = 60;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let Body { row } = call.parse()?;
    let trace = call.trace()?;
    let switches = Switches::read(&trace.db).filter(|s| (row as usize) < s.rows());
    let Some(switches) = switches else {
        return Err(Fault::Missing(format!("table cswitch has no row {row}")));
    };
    let one = switches.get(row);
    Reply::json(&SwitchDetail {
        thread: who::thread(&trace, one.utid),
        ts_ns: one.ts,
        cpu: one.cpu,
        run_ns: one.run,
        wait_ns: one.wait,
        ready_ns: one.ready,
        since_last_ns: one.since_last,
        waited: one.waited,
        reason: one.reason.map(str::to_owned),
        priority: one.priority,
        in_dpc: one.in_dpc,
        readier: one.by.map(|by| who::thread(&trace, by)),
        stack: who::frames(&trace, one.stack, FRAMES),
        ready_stack: who::frames(&trace, one.ready_stack, FRAMES),
        sql: format!(
            "SELECT * FROM cswitch WHERE ts_ns = {} AND cpu = {} AND new_utid = {}",
            one.ts, one.cpu, one.utid
        ),
    })
}
