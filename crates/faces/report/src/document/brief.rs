//! The report on one screen: the verdict, the findings in a few lines each, the bill, what is missing, and where to look next.

use super::{activity, bill, findings};
use crate::{Quality, Report};
use etwhy_base::units::{bytes, counted, duration_ns, thousands};
use etwhy_doc::{Doc, Line};

/// Lines of the ledger that are shown.
const LEDGER_LINES: usize = 3;

pub(super) fn document(report: &Report) -> Doc {
    let mut doc = Doc::titled("Why was it slow?");
    doc.text(&report.sentence);
    findings::brief(&mut doc, &report.findings);
    bill::section(&mut doc, &report.bill, false);
    // Where no kernel events were recorded, this is the answer.
    if let Some(activity) = &report.activity {
        activity::section(&mut doc, activity);
    }
    doc.heading("The trace");
    quality(&mut doc, &report.quality);
    if !report.cannot_tell.is_empty() {
        let questions: Vec<&str> =
            report.cannot_tell.iter().map(|missing| missing.question.as_str()).collect();
        doc.text(format!(
            "Not recorded, so it cannot be determined {} (etwhy why --full names the recordings that would tell).",
            questions.join("; ")
        ));
    }
    doc.heading("Where to look next");
    let item = |doc: &mut Doc, command: &str, what: &str| {
        doc.item(Line::name(command).and(format!(": {what}")), None::<Line>);
    };
    if let Some(first) = report.findings.iter().find(|outcome| !outcome.hits.is_empty()) {
        item(
            &mut doc,
            &format!("etwhy rules show {}", first.id),
            "how the first finding is computed, and what fools it",
        );
    }
    item(
        &mut doc,
        "etwhy why --full",
        "why each finding matters, processes, modules, functions, stacks, disks, .NET",
    );
    item(&mut doc, "etwhy serve", "all of it in the browser");
    doc
}

fn quality(doc: &mut Doc, quality: &Quality) {
    let files = quality.files.iter().fold(Line::default(), |line, file| {
        let line = if line.is_empty() { line } else { line.and(", ") };
        line.and(etwhy_doc::Span::Name(file.clone()))
    });
    let memory = quality.memory_bytes.map(|b| format!(", {} memory", bytes(b))).unwrap_or_default();
    let (events, lost) = (
        counted(quality.events, "event", "events"),
        quality.events_lost.saturating_add(quality.buffers_lost),
    );
    let lost = match lost {
        // What the session did not notice, the numbers of buffers tell: that follows.
        0 if quality.missing().is_some() => "no loss noted by the session".to_owned(),
        0 => "nothing lost".to_owned(),
        _ => format!(
            "{} and {} lost",
            counted(quality.events_lost, "event", "events"),
            counted(quality.buffers_lost, "buffer", "buffers")
        ),
    };
    doc.text(files.and(format!(
        ": {} recorded, {events}, {lost}; Windows {}, {}{memory}",
        duration_ns(quality.duration_ns),
        quality.os,
        counted(quality.cpus, "processor", "processors")
    )));
    if let Some(missing) = quality.missing() {
        doc.text(missing);
    }
    let serious = quality.ledger.iter().filter(|line| line.severity != "info");
    for line in serious.clone().take(LEDGER_LINES) {
        let meaning = line.meaning.split_once(". ").map_or(line.meaning.as_str(), |(first, _)| first);
        let count = Line::from(format!("{} x ", thousands(line.count.into())));
        let text = count.and(Line::name(&line.name)).and(format!(": {}", meaning.trim_end_matches('.')));
        doc.note(Line::mark(&line.severity), text);
    }
    let more = serious.count().saturating_sub(LEDGER_LINES);
    if more > 0 {
        let kinds = if more == 1 { "kind of anomaly" } else { "kinds of anomalies" };
        doc.text(format!("{more} more {kinds}: etwhy dump ledger"));
    }
}
