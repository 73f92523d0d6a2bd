//! Who the numbers of filters are, and which numbers they have in another trace.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::identity::{self, Process, Thread};
use crate::reply::Reply;
use crate::trace::Trace;
use etwhy_table::Pattern;
use etwhy_trace::catalog::{dpc::DpcRow, image::ImageRow, isr::IsrRow, stack::FrameRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// Declaration.
pub static ENDPOINT: Endpoint = Endpoint {
    name: "identity",
    about: "body: asked: [{kind: process or thread, value (number in this trace) or who}, {kind: module or frame, value}]. For each value, \
            label and who (name, pid, start; tid); null if there is none here, or more than one",
    work: Work::Known,
    answer,
};

#[derive(Deserialize)]
struct Body {
    asked: Vec<Asked>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Asked {
    Process { value: Option<i64>, who: Option<Process> },
    Thread { value: Option<i64>, who: Option<Thread> },
    Module { value: String },
    Frame { value: String },
}

#[derive(Serialize, TS)]
pub(crate) struct Identities {
    /// In the order of the questions; none: nobody here, or more than one.
    known: Vec<Option<Known>>,
}

/// Who or what it is in this trace.
#[derive(Serialize, TS)]
struct Known {
    #[ts(type = "number | string")]
    value: Value,
    /// What people read.
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    who: Option<Somebody>,
}

#[derive(Serialize, TS)]
#[serde(untagged)]
enum Somebody {
    Process(Process),
    Thread(Thread),
}

/// More filters no view has.
const MOST: usize = 100;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let trace = call.trace()?;
    let known = body.asked.iter().take(MOST).map(|asked| one(&trace, asked)).collect();
    Reply::json(&Identities { known })
}

fn one(trace: &Trace, asked: &Asked) -> Option<Known> {
    match asked {
        Asked::Process { value, who } => {
            let value = who.as_ref().map_or(*value, |who| identity::find_process(trace, who))?;
            let who = identity::process(trace, value)?;
            let label = format!("{} ({})", who.name, who.pid);
            Some(Known { value: value.into(), label, who: Some(Somebody::Process(who)) })
        }
        Asked::Thread { value, who } => {
            let value = who.as_ref().map_or(*value, |who| identity::find_thread(trace, who))?;
            let who = identity::thread(trace, value)?;
            let process =
                who.process.as_ref().map_or_else(String::new, |p| format!(" of {} ({})", p.name, p.pid));
            let label = format!("{}{process}", who.tid);
            Some(Known { value: value.into(), label, who: Some(Somebody::Thread(who)) })
        }
        Asked::Module { value } => named(value, |is| {
            trace.db.read_or_empty::<FrameRow>().iter().any(|row| is(row.module()))
                || trace.db.read_or_empty::<ImageRow>().iter().any(|row| is(row.name()))
                || trace.db.read_or_empty::<DpcRow>().iter().any(|row| is(row.module()))
                || trace.db.read_or_empty::<IsrRow>().iter().any(|row| is(row.module()))
        }),
        Asked::Frame { value } => named(value, |is| {
            let frames = trace.db.read_or_empty::<FrameRow>();
            frames.iter().any(|row| is(row.label()) || is(row.module()) || row.category().is_some_and(is))
        }),
    }
}

/// A name or pattern, if something has such a name.
fn named(value: &str, something: impl Fn(&dyn Fn(&str) -> bool) -> bool) -> Option<Known> {
    let pattern = Pattern::parse(value);
    let known = || Known { value: value.into(), label: value.to_owned(), who: None };
    something(&|name| pattern.matches(name)).then(known)
}
