//! What threads and processes are called, and frames of stacks, for answers in JSON.

use crate::part::{Kind, Part};
use crate::trace::Trace;
use etwhy_analysis::stacks::{Frames, WeightedStack};
use etwhy_trace::catalog::{process::ProcessRow, thread::ThreadRow};
use serde::Serialize;
use ts_rs::TS;

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, TS)]
pub struct Process {
    /// Number of the instance.
    pub upid: Option<u32>,
    /// Image name.
    pub process: String,
    /// Process id.
    pub pid: Option<i64>,
    /// A security product.
    pub security: bool,
}

/// A thread of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, TS)]
pub struct Thread {
    /// Number of the instance.
    pub utid: u32,
    /// Thread id.
    pub tid: Option<i64>,
    /// What the program or Windows calls it: its description, its service, where it began.
    pub name: Option<String>,
    /// Its process.
    #[serde(flatten)]
    pub process: Process,
}

/// A process by its number.
pub fn process(trace: &Trace, upid: Option<u32>) -> Process {
    let table = trace.db.read_or_empty::<ProcessRow>();
    let row = upid.and_then(|upid| table.get(upid));
    let name = row.map_or("[unknown]", |row| row.name()).to_owned();
    let known = etwhy_knowledge::category_of(&name, "");
    let security = known.is_some_and(|known| etwhy_knowledge::is_security(known.category));
    Process { upid, pid: row.map(|row| row.pid()), security, process: name }
}

/// A thread by its number.
pub fn thread(trace: &Trace, utid: u32) -> Thread {
    let table = trace.db.read_or_empty::<ThreadRow>();
    let Some(row) = table.get(utid) else {
        return Thread { utid, process: process(trace, None), ..Thread::default() };
    };
    let names = [row.name(), row.service(), row.start_function()];
    let name = names.into_iter().flatten().find(|name| !name.is_empty());
    let upid = row.upid().and_then(|upid| u32::try_from(upid).ok());
    Thread { utid, tid: Some(row.tid()), name: name.map(str::to_owned), process: process(trace, upid) }
}

/// Frames of a stack, innermost first.
#[derive(Clone, Debug, Serialize, TS)]
pub struct FrameList {
    frames: Vec<Frame>,
    /// There are more.
    more: bool,
}

/// A frame.
#[derive(Clone, Debug, Serialize, TS)]
pub struct Frame {
    label: String,
    kind: &'static str,
    security: bool,
}

/// Frames of a stack, at most `most`.
pub fn frames(trace: &Trace, stack: Option<i64>, most: usize) -> Option<FrameList> {
    stack?;
    let frames: &Frames = trace.frames();
    let weight = WeightedStack { stack, ..WeightedStack::default() };
    let named = frames.frames_of(&weight).filter_map(|frame| frames.name(frames.name_of(frame)?));
    let line = |name: &etwhy_analysis::stacks::FrameName| Frame {
        label: name.label.clone(),
        kind: name.kind.name(),
        security: etwhy_knowledge::is_security(&name.category),
    };
    let mut frames: Vec<Frame> = named.take(most.saturating_add(1)).map(line).collect();
    let more = frames.len() > most;
    frames.truncate(most);
    Some(FrameList { frames, more })
}

/// Kinds of filters that a question has no use for.
pub fn unused(part: &Part, used: &[Kind]) -> Vec<&'static str> {
    let mut list: Vec<&'static str> =
        part.filters.iter().map(|f| f.kind).filter(|kind| !used.contains(kind)).map(Kind::name).collect();
    list.dedup();
    list
}
