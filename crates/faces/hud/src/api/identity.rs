//! Who the numbers of filters are, and which numbers they have in another trace.

use crate::call::{Call, Endpoint, Fault, Work};
use crate::identity::{self, Process, Thread};
use crate::reply::Reply;
use crate::trace::Trace;
use etwhy_table::Pattern;
use etwhy_trace::catalog::{dpc::DpcRow, image::ImageRow, isr::IsrRow, stack::FrameRow};
use serde::Deserialize;
use serde_json::{Value, json};

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

/// More filters no view has.
const MOST: usize = 100;

fn answer(call: &Call<'_>) -> Result<Reply, Fault> {
    let body: Body = call.parse()?;
    let trace = call.trace()?;
    let known: Vec<Value> = body.asked.iter().take(MOST).map(|asked| one(&trace, asked)).collect();
    Reply::json(&json!({ "known": known }))
}

fn one(trace: &Trace, asked: &Asked) -> Value {
    match asked {
        Asked::Process { value, who } => {
            let value = who.as_ref().map_or(*value, |who| identity::find_process(trace, who));
            let found = value.and_then(|value| Some((value, identity::process(trace, value)?)));
            found.map_or(Value::Null, |(value, who)| {
                json!({ "value": value, "label": format!("{} ({})", who.name, who.pid), "who": who })
            })
        }
        Asked::Thread { value, who } => {
            let value = who.as_ref().map_or(*value, |who| identity::find_thread(trace, who));
            let found = value.and_then(|value| Some((value, identity::thread(trace, value)?)));
            found.map_or(Value::Null, |(value, who)| {
                let process =
                    who.process.as_ref().map_or_else(String::new, |p| format!(" of {} ({})", p.name, p.pid));
                json!({ "value": value, "label": format!("{}{process}", who.tid), "who": who })
            })
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
fn named(value: &str, something: impl Fn(&dyn Fn(&str) -> bool) -> bool) -> Value {
    let pattern = Pattern::parse(value);
    if something(&|name| pattern.matches(name)) {
        json!({ "value": value, "label": value })
    } else {
        Value::Null
    }
}
