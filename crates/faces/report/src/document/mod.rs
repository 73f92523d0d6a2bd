//! A report in words: one document, which terminals and Markdown show.

mod activity;
mod bill;
mod brief;
mod cpu;
pub mod findings;
mod system;

use crate::{Missing, Quality, Report};
use etwhy_base::units::{bytes, counted, duration_ns, thousands};
use etwhy_doc::{Doc, Line};
use findings::Words;

/// How much is said.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// On one screen: what the rest would say is left out.
    pub brief: bool,
    /// Evidence, limits and all kinds of the bill, for what is read apart from the command.
    pub full: bool,
    /// Why each other pattern was not found or cannot be determined.
    pub all: bool,
    /// Frames of a stack; 0 for all.
    pub frames: usize,
}

impl Form {
    /// A document to keep.
    pub const FULL: Form = Form { brief: false, full: true, all: false, frames: 16 };
}

/// The report as a document. Terminals do not show its title.
pub fn document(report: &Report, form: &Form) -> Doc {
    if form.brief {
        return brief::document(report);
    }
    let mut doc = Doc::titled("Why was it slow?");
    doc.text(&report.sentence);
    doc.space();
    doc.facts("Quality of the trace", quality(&report.quality));
    let words =
        Words { of: "this trace", more: "etwhy why --all", untold: form.all || form.full, absent: form.all };
    findings::section(&mut doc, &report.findings, words, form.full);
    bill::section(&mut doc, &report.bill, form.full);
    if let Some(activity) = &report.activity {
        activity::section(&mut doc, activity);
    }
    cpu::section(&mut doc, &report.cpu, &report.quality, form);
    if let Some(charts) = &report.charts {
        system::interrupts(&mut doc, &charts.histograms);
        system::growth(&mut doc, &charts.growth);
    }
    system::clr(&mut doc, &report.clr);
    system::disk(&mut doc, &report.disk);
    cannot_tell(&mut doc, &report.cannot_tell);
    doc
}

fn quality(quality: &Quality) -> Vec<Line> {
    let mut lines: Vec<Line> = quality.files.iter().map(Line::name).collect();
    let memory = quality.memory_bytes.map(|b| format!(", {} memory", bytes(b))).unwrap_or_default();
    lines.push(
        format!("Windows {}, {}{memory}", quality.os, counted(quality.cpus, "processor", "processors"))
            .into(),
    );
    lines.push(format!("{} UTC, {} recorded", quality.start_utc, duration_ns(quality.duration_ns)).into());
    lines.push(
        format!(
            "{} of {} ({} undecoded), {} and {} lost",
            counted(quality.events, "event", "events"),
            counted(quality.event_types as i128, "kind", "kinds"),
            quality.undecoded_types,
            counted(quality.events_lost, "event", "events"),
            counted(quality.buffers_lost, "buffer", "buffers")
        )
        .into(),
    );
    if let (Some(stacks), Some(named)) = (quality.stacks_percent, quality.named_percent) {
        let interval = quality.sample_interval_ns.map_or("1 ms assumed".to_owned(), duration_ns);
        lines.push(
            format!("CPU samples every {interval}; of the busy time {stacks:.0} % has a stack, {named:.0} % a function name")
                .into(),
        );
    }
    lines.extend(quality.missing().map(Line::from));
    for line in quality.ledger.iter().filter(|line| line.severity != "info") {
        let count = format!(": {} x ", thousands(line.count.into()));
        let meaning = format!(": {}", line.meaning);
        lines.push(Line::mark(&line.severity).and(count).and(Line::name(&line.name)).and(meaning));
    }
    lines
}

fn cannot_tell(doc: &mut Doc, missing: &[Missing]) {
    if !missing.is_empty() {
        doc.heading("Cannot tell from this trace");
    }
    for item in missing {
        doc.item(format!("{}: {}.", item.question, item.because), record(Some(&item.record)));
    }
}

/// The recording that would tell.
fn record(command: Option<&String>) -> Option<Line> {
    command
        .filter(|command| !command.is_empty())
        .map(|command| Line::from("record: ").and(Line::name(command)))
}

/// What is nobody knows.
fn dash() -> String {
    "–".to_owned()
}
