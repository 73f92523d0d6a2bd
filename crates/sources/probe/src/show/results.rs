//! Results of probes as a document.

use super::plot::Plot;
use super::svg::{Bar, Bars};
use super::{contrast, growth, operations};
use crate::law::{self, Curve};
use crate::outcome::{Outcome, ProbeOutcome};
use crate::who::{ONE_OF_SEVERAL, Suspect};
use crate::{amount, compare, summary};
use etwhy_base::time::{UNIX_EPOCH, filetime_text};
use etwhy_doc::{Doc, Line};
use std::ops::Range;

/// The report of a file of results. `scale`: what laws are extended to; `wide`: all tables.
pub fn document(outcome: &Outcome, scale: Option<f64>, wide: bool) -> Doc {
    let mut doc = machine(outcome);
    let curves = law::curves(outcome, scale);
    let mut charts = 0..MOST_CHARTS;
    for result in &outcome.probes {
        // The pair that shows the noise is part of the comparison.
        if !compare::TWICE.contains(&result.state.as_str()) {
            let own = curves.iter().filter(|c| c.probe == result.probe && c.state == result.state);
            probe(&mut doc, result, &own.collect::<Vec<_>>(), wide, &mut charts);
        }
    }
    doc
}

/// The machine that results are of.
pub(super) fn machine(outcome: &Outcome) -> Doc {
    let mut doc = Doc::default();
    let seconds = i64::try_from(outcome.started_utc_s).ok();
    if let Some(ticks) = seconds.and_then(|s| s.checked_mul(10_000_000)?.checked_add(UNIX_EPOCH)) {
        doc.note("Measured (UTC):", filetime_text(ticks, 0));
    }
    let facts = outcome.machine.facts.iter().take(40).map(|fact| fact.shown());
    let facts: Vec<String> = facts.map(|(name, value)| format!("{name} {value}")).collect();
    if !facts.is_empty() {
        doc.note("Machine:", facts.join(" · "));
    }
    let products = outcome.products.iter().take(40).map(|product| {
        let version = product.version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
        format!("{}{version} ({}; {})", product.name, product.kind, product.evidence)
    });
    let products: Vec<String> = products.collect();
    let found = if products.is_empty() { "none found running".to_owned() } else { products.join(" · ") };
    doc.note("Security products:", found);
    doc
}

/// Charts in all: a file of results shall not make a page unbounded. Plots that a terminal shows of one probe, and curves of one.
const MOST_CHARTS: usize = 40;
const MOST_PLOTS: usize = 2;
const MOST_CURVES: usize = 24;

fn probe(doc: &mut Doc, result: &ProbeOutcome, curves: &[&Curve], wide: bool, charts: &mut Range<usize>) {
    let state = if result.state.is_empty() { String::new() } else { format!(" ({})", result.state) };
    doc.heading(format!("{}{state}", result.probe));
    if let Some(probe) = crate::probes::ALL.iter().find(|probe| probe.name == result.probe) {
        for sentence in (probe.conclude)(&result.samples) {
            // The first one of all is what the page is about.
            doc.title.get_or_insert_with(|| sentence.clone());
            doc.text(sentence);
        }
    }
    if charts.next().is_some() {
        typical(doc, result, curves);
    }
    for table in operations(result, wide) {
        doc.space();
        doc.table(table);
    }
    doc.space();
    for one in compare::contrasts(result).iter().take(12) {
        doc.item(contrast(one), None::<Line>);
    }
    for (at, curve) in curves.iter().take(MOST_CURVES).enumerate() {
        doc.space();
        doc.text(growth(curve));
        if charts.next().is_some() {
            doc.figure(Plot { curve: (*curve).clone(), in_text: at < MOST_PLOTS });
        }
    }
    doc.space();
    if !result.ended.is_empty() {
        doc.note(Line::mark("warning"), format!("Ended early: {}", result.ended));
    }
    result.notes.iter().take(40).for_each(|note| doc.note("Note:", note));
    suspects(doc, result.suspects.iter().map(suspect));
}

/// The chart of typical costs, for pages.
fn typical(doc: &mut Doc, result: &ProbeOutcome, curves: &[&Curve]) {
    let series = summary::of_probe(result);
    let bars = series
        .iter()
        .filter(|one| one.key.n.is_none() || curves.is_empty() || series.len() <= 12)
        .take(30)
        .map(|one| Bar {
            name: one
                .key
                .n
                .map_or_else(|| one.key.title(), |n| format!("{} ({})", one.key.title(), amount::size(n))),
            value: one.median,
            unit: one.unit.clone(),
            interval: one.interval,
        });
    let what = "Typical cost of one operation. Logarithmic axis; whiskers are 95 % intervals over rounds.";
    doc.figure(Bars {
        title: result.probe.clone(),
        what: what.to_owned(),
        bars: bars.collect(),
        from_one: false,
    });
}

/// Who was at work meanwhile.
pub(super) fn suspects(doc: &mut Doc, sentences: impl Iterator<Item = String>) {
    let mut sentences = sentences.take(40).peekable();
    if sentences.peek().is_some() {
        doc.subheading("Who it is");
    }
    sentences.for_each(|sentence| doc.item(sentence, None::<Line>));
}

/// A suspect in a sentence.
pub fn suspect(one: &Suspect) -> String {
    let process = one.process.map(|pid| format!(" ({pid})")).unwrap_or_default();
    let time = |what: &str, ns: Option<u64>| {
        ns.map(|ns| format!("; {what} {}", crate::amount::time(ns as f64))).unwrap_or_default()
    };
    format!(
        "{}{process}, {}, {}: {}{}{}",
        one.name,
        one.kind,
        one.confidence,
        one.evidence.join("; "),
        // Unless a sentence of the evidence has it.
        time(
            "CPU time meanwhile",
            one.cpu_ns.filter(|_| {
                let told = |evidence: &String| evidence.contains("CPU time meanwhile");
                !one.evidence.iter().any(told) || one.evidence.iter().any(|e| e == ONE_OF_SEVERAL)
            })
        ),
        time("the probe waited", one.blocked_ns)
    )
}
