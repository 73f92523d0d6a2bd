//! Results as text.

use super::{Grid, contrast, growth, operations, plot};
use crate::compare;
use crate::law::{self, Curve};
use crate::outcome::{Outcome, ProbeOutcome};
use crate::who::{ONE_OF_SEVERAL, Suspect};
use etwhy_export::sanitize;
use etwhy_export::text::{hanging, pad_end, pad_start, truncate_end, truncate_middle, width, wrap};

/// Lines of the report of a file of results, `columns` wide. `scale`: what laws are extended to.
pub fn report(outcome: &Outcome, scale: Option<f64>, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let facts: Vec<String> = outcome
        .machine
        .facts
        .iter()
        .map(|fact| fact.shown())
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if !facts.is_empty() {
        lines.extend(clean_hanging("Machine: ", &facts.join(" · "), columns));
    }
    let products: Vec<String> = outcome
        .products
        .iter()
        .map(|p| {
            let version = p.version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
            format!("{}{version} ({})", p.name, p.kind)
        })
        .collect();
    let found = if products.is_empty() { "none found running".to_owned() } else { products.join(" · ") };
    lines.extend(clean_hanging("Security products: ", &found, columns));
    let curves = law::curves(outcome, scale);
    for result in &outcome.probes {
        // The pair that shows the noise is part of the comparison.
        if compare::TWICE.contains(&result.state.as_str()) {
            continue;
        }
        lines.push(String::new());
        let own = curves.iter().filter(|c| c.probe == result.probe && c.state == result.state);
        lines.extend(probe(result, own, columns));
    }
    lines
}

fn clean_hanging(first: &str, text: &str, columns: usize) -> Vec<String> {
    let rest = " ".repeat(width(first).min(8));
    // `hanging` reserves the wider of both prefixes on all lines.
    let all = wrap(&format!("{first}{}", sanitize(text)), columns.saturating_sub(rest.len()));
    all.iter()
        .enumerate()
        .map(|(at, line)| if at == 0 { line.clone() } else { format!("{rest}{line}") })
        .collect()
}

fn paragraph(text: &str, columns: usize) -> Vec<String> {
    hanging("  ", "    ", &sanitize(text), columns)
}

/// Plots that are shown of one probe.
const MOST_PLOTS: usize = 2;

/// One probe.
fn probe<'a>(result: &ProbeOutcome, curves: impl Iterator<Item = &'a Curve>, columns: usize) -> Vec<String> {
    let state = if result.state.is_empty() { String::new() } else { format!(" ({})", result.state) };
    let mut lines = vec![sanitize(&format!("{}{state}", result.probe)).into_owned()];
    if let Some(probe) = crate::probes::ALL.iter().find(|probe| probe.name == result.probe) {
        for sentence in (probe.conclude)(&result.samples) {
            lines.extend(paragraph(&sentence, columns));
        }
    }
    let (grids, left) = operations(result, columns >= 140);
    for table in &grids {
        lines.push(String::new());
        lines.extend(grid(table, columns));
    }
    if left > 0 {
        lines.extend(paragraph(&format!("… and {left} more; --dump probe_series has all"), columns));
    }
    let against = compare::contrasts(result);
    if !against.is_empty() {
        lines.push(String::new());
    }
    for one in against.iter().take(12) {
        lines.extend(paragraph(&contrast(one), columns));
    }
    for (at, curve) in curves.enumerate().take(24) {
        lines.push(String::new());
        lines.extend(paragraph(&growth(curve), columns));
        if at < MOST_PLOTS {
            lines.extend(plot::plot(curve, columns, 11).iter().map(|line| sanitize(line).into_owned()));
        }
    }
    if !result.ended.is_empty() {
        lines.extend(paragraph(&format!("Ended early: {}", result.ended), columns));
    }
    for note in result.notes.iter().take(20) {
        lines.extend(paragraph(&format!("Note: {note}"), columns));
    }
    if !result.suspects.is_empty() {
        lines.push(String::new());
        lines.push("  Who it is".to_owned());
        for one in result.suspects.iter().take(8) {
            lines.extend(hanging("    ", "      ", &sanitize(&suspect(one)), columns));
        }
    }
    lines
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

/// A table within `columns`. What does not fit is cut, the first column in its middle.
pub fn grid(grid: &Grid, columns: usize) -> Vec<String> {
    let clean =
        |row: &Vec<String>| row.iter().map(|cell| sanitize(cell).into_owned()).collect::<Vec<String>>();
    let all: Vec<Vec<String>> = std::iter::once(&grid.head).chain(&grid.rows).map(clean).collect();
    let count = grid.head.len();
    let mut widths = vec![0; count];
    for row in &all {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = width(cell).max(*most);
        }
    }
    let others: usize = widths.iter().skip(1).map(|w| w + 2).sum();
    let first = widths.first().copied().unwrap_or(0).min(columns.saturating_sub(others + 2).max(12));
    all.iter()
        .map(|row| {
            let mut line = String::from("  ");
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if at == 0 {
                    line.push_str(&pad_end(&truncate_middle(cell, first), first));
                } else {
                    line.push_str("  ");
                    line.push_str(&pad_start(cell, *width));
                }
            }
            truncate_end(line.trim_end(), columns).to_string()
        })
        .collect()
}
