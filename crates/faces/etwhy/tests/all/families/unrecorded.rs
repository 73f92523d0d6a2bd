//! Recordings that lack a class of events, or the samples of half of the processors: what needs them is undecided.

use super::{PARTLY, Story, accused, answer, drawn, machine, nobody_else, none, stories, why, written};
use crate::Str as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Classes of events as sessions turn them on: all of a class or none.
const CLASSES: [&str; 31] = [
    "CSwitch",
    "ReadyThread",
    "CSwitch,ReadyThread",
    "CSwitch,StackWalk",
    "SampledProfile",
    "StackWalk",
    "DPC,ThreadedDPC,TimerDPC",
    "ISR,ISR-MSI,ISR-PASS",
    "SysClEnter,SysClExit",
    "DiskIo",
    "DiskIo/Read,DiskIo/Write,DiskIo/FlushBuffers",
    "FileIo",
    "FileIo/OperationEnd",
    "FileIo/Create,FileIo/Read,FileIo/Write,FileIo/Cleanup,FileIo/Close,FileIo/SetInfo,FileIo/Delete,FileIo/Rename,FileIo/DirEnum,FileIo/Flush,\
     FileIo/QueryInfo,FileIo/FSControl,FileIo/DirNotify",
    "FileIo/Name,FileIo/FileCreate,FileIo/FileDelete,FileIo/FileRundown",
    "FileIo/PreOpInit,FileIo/PostOpInit,FileIo/PreOpCompletion,FileIo/PostOpCompletion",
    "Registry",
    "Image",
    "Process",
    "Thread",
    "SystemConfig/Services",
    "PageFault",
    "HardFault",
    "VirtualAlloc,VirtualFree",
    "Pool",
    "Object",
    "ALPC",
    "TcpIp,UdpIp",
    "Microsoft-Windows-DotNETRuntime",
    "Microsoft-Windows-Win32k",
    "Microsoft-Windows-WMI-Activity",
];

/// A kind of event of a trace.
#[derive(serde::Deserialize)]
struct Kind {
    provider: String,
    name: String,
}

/// Classes of which a trace has events.
fn recorded(trace: &Path) -> Vec<&'static str> {
    let sql = "SELECT provider, name FROM event_type";
    let kinds: Vec<Kind> = PARTLY.rows(&["sql", trace.str(), sql]);
    let is = |part: &str, kind: &Kind| {
        kind.provider == part || kind.name == part || kind.name.split('/').next() == Some(part)
    };
    let has = |class: &&str| class.split(',').any(|part| kinds.iter().any(|kind| is(part.trim(), kind)));
    CLASSES.into_iter().filter(has).collect()
}

/// Half of a scenario's processors, as `unsampled_cpus` names them: every other one, or those of one end.
fn halves(text: &str) -> Vec<(&'static str, String)> {
    let parsed: toml::Table = text.parse().unwrap();
    let cpus = parsed.get("machine").and_then(|machine| machine.get("cpus")?.as_integer()).unwrap_or(1);
    let list = |of: &dyn Fn(i64) -> bool| {
        let chosen: Vec<String> = (0..cpus).filter(|cpu| of(*cpu)).map(|cpu| cpu.to_string()).collect();
        format!("\"{}\"", chosen.join(","))
    };
    if cpus < 2 {
        return Vec::new();
    }
    vec![
        ("odd processors unsampled", list(&|cpu| cpu % 2 == 1)),
        ("even processors unsampled", list(&|cpu| cpu % 2 == 0)),
        ("the first half unsampled", list(&|cpu| cpu < cpus / 2)),
        ("the second half unsampled", list(&|cpu| cpu >= cpus / 2)),
    ]
}

/// What is planted is not denied.
fn not_denied(story: &Story, variant: &str, base: &Value, report: &Value, faults: &mut Vec<String>) {
    for (id, _) in story.planted() {
        let denied = answer(report, id)["answer"] == "not_found";
        if denied && answer(base, id)["answer"] == "found" && !story.excused(variant) {
            faults.push(format!("{} without {variant}: {id} is denied", story.name));
        }
    }
}

/// Classes of events that were not recorded: what needed them is undecided, not denied, and nobody else is accused. Half of the processors without
/// samples hide what ran there, and make nobody else guilty.
#[test]
fn what_was_not_recorded_is_not_denied() {
    let mut faults = Vec::new();
    for story in drawn("classes", stories("scenarios/findings"), 6) {
        let folder = tempfile::tempdir().unwrap();
        let trace = written(folder.path(), &story.text, &[]).unwrap();
        let base: Value = PARTLY.json(&["why", "--json", "-q", trace.str()]);
        let before = accused(&base);
        for class in drawn(&story.name, recorded(&trace), 3) {
            let Some(report) = why(&story.text, &["--without", class]) else { continue };
            not_denied(&story, class, &base, &report, &mut faults);
            nobody_else(&story, class, &before, &report, &mut faults);
        }
        for (variant, list) in drawn(&story.name, halves(&story.text), 1) {
            let report = why(&machine(&story.text, "unsampled_cpus", &list), &[]).unwrap();
            not_denied(&story, variant, &base, &report, &mut faults);
            // Who is to blame may be blamed for more: a share of what was sampled.
            let guilty: BTreeSet<&String> = before.iter().map(|(_, who)| who).collect();
            let more = accused(&report).into_iter().filter(|(_, who)| guilty.contains(who));
            let before = before.iter().cloned().chain(more).collect();
            nobody_else(&story, variant, &before, &report, &mut faults);
        }
    }
    none(&faults);
}

/// The same for hard cases, which mix several causes: one of them is not denied because the events of another are there.
#[test]
fn hard_cases_are_not_denied_where_events_are_missing() {
    let mut faults = Vec::new();
    for story in drawn("hard classes", stories("scenarios/hard"), 2) {
        let folder = tempfile::tempdir().unwrap();
        let trace = written(folder.path(), &story.text, &[]).unwrap();
        let base: Value = PARTLY.json(&["why", "--json", "-q", trace.str()]);
        for class in drawn(&story.name, recorded(&trace), 1) {
            let Some(report) = why(&story.text, &["--without", class]) else { continue };
            not_denied(&story, class, &base, &report, &mut faults);
        }
        for (variant, list) in drawn(&story.name, halves(&story.text), 1) {
            let report = why(&machine(&story.text, "unsampled_cpus", &list), &[]).unwrap();
            not_denied(&story, variant, &base, &report, &mut faults);
        }
    }
    none(&faults);
}
