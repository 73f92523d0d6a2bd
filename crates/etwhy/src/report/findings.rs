//! Findings for people: what was found, what to do, and what cannot be told.

use etwhy_export::sanitize;
use etwhy_export::text::wrap;
use etwhy_query::findings::{Answer, Hit, Outcome, Severity};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Culprits of one finding that are named beside the first.
const MORE_CULPRITS: usize = 3;

/// Prints what was found, the worst first; `all`: also why the other questions have no answer.
pub fn print(out: &mut impl Write, outcomes: &[Outcome], all: bool, width: usize) -> io::Result<()> {
    let found: Vec<&Outcome> = outcomes.iter().filter(|o| o.answer == Answer::Found).collect();
    if !found.is_empty() {
        writeln!(out, "\nFindings")?;
    }
    for outcome in found {
        finding(out, outcome, width)?;
    }
    let count = |answer: Answer| outcomes.iter().filter(|o| o.answer == answer).count();
    let counts = format!(
        "Of {} patterns {} were found and {} were not; {} cannot be told from this trace{}.",
        outcomes.len(),
        count(Answer::Found),
        count(Answer::NotFound),
        count(Answer::CannotTell),
        if all { "" } else { " (etwhy why --all says why; etwhy rules explains them)" }
    );
    writeln!(out)?;
    for line in wrap(&counts, width) {
        writeln!(out, "{line}")?;
    }
    if all { untold(out, outcomes, width) } else { Ok(()) }
}

fn finding(out: &mut impl Write, outcome: &Outcome, width: usize) -> io::Result<()> {
    let Some(first) = outcome.hits.first() else { return Ok(()) };
    paragraph(out, &format!("{:<9}", outcome.severity.name()), &first.headline, width)?;
    for hit in outcome.hits.iter().skip(1).take(MORE_CULPRITS) {
        paragraph(out, "          also ", &hit.headline, width)?;
    }
    if let Some(more) = outcome.hits.len().checked_sub(MORE_CULPRITS + 1).filter(|more| *more > 0) {
        paragraph(out, "          ", &format!("and {more} more"), width)?;
    }
    if outcome.severity > Severity::Info {
        details(out, outcome, first, width)?;
    }
    let ask = format!("etwhy rules show {}", outcome.id);
    paragraph(out, "          see   ", &ask, width)
}

fn details(out: &mut impl Write, outcome: &Outcome, hit: &Hit, width: usize) -> io::Result<()> {
    paragraph(out, "          why   ", &hit.explanation, width)?;
    paragraph(out, "          do    ", &hit.fix, width)?;
    for caveat in &outcome.caveats {
        paragraph(out, "          but   ", caveat, width)?;
    }
    Ok(())
}

/// A text behind a head, its other lines indented alike.
fn paragraph(out: &mut impl Write, head: &str, text: &str, width: usize) -> io::Result<()> {
    let text = sanitize(text).replace('\n', " ");
    let indent = head.chars().count() + usize::from(!head.ends_with(' '));
    let lines = wrap(&text, width.saturating_sub(indent).max(20));
    for (n, line) in lines.iter().enumerate() {
        if n == 0 {
            writeln!(out, "{head}{}{line}", if head.ends_with(' ') { "" } else { " " })?;
        } else {
            writeln!(out, "{:indent$}{line}", "")?;
        }
    }
    Ok(())
}

fn untold(out: &mut impl Write, outcomes: &[Outcome], width: usize) -> io::Result<()> {
    let mut by_reason: BTreeMap<(String, Option<String>), Vec<&str>> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|o| o.answer == Answer::CannotTell) {
        for reason in &outcome.reasons {
            by_reason.entry((reason.text.clone(), reason.record.clone())).or_default().push(&outcome.id);
        }
    }
    for ((text, record), ids) in by_reason {
        paragraph(out, "- ", &format!("cannot tell {}: {text}", ids.join(", ")), width)?;
        if let Some(record) = record {
            paragraph(out, "    record: ", &record, width)?;
        }
    }
    let absent: Vec<&str> =
        outcomes.iter().filter(|o| o.answer == Answer::NotFound).map(|o| o.id.as_str()).collect();
    if !absent.is_empty() {
        paragraph(out, "- ", &format!("not found: {}", absent.join(", ")), width)?;
    }
    Ok(())
}
