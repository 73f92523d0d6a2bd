//! Findings: what was found, what to do, what cannot be determined, what was not found.

use super::record;
use etwhy_base::units::duration_ns;
use etwhy_doc::{Doc, Finding, Line, Span};
use etwhy_rules::rule::{Source, Threshold};
use etwhy_rules::text::label;
use etwhy_rules::{Answer, Hit, Outcome, Severity};
use std::collections::BTreeMap;

/// Culprits of one finding that are named beside the first, and whose figures are shown in full.
const MORE_CULPRITS: usize = 3;

/// How the findings are spoken of.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// What was asked: `this trace`, `these counter logs`.
    pub of: &'static str,
    /// What to type for the reasons that are not shown: `etwhy why --all`.
    pub more: &'static str,
    /// Say why questions cannot be answered.
    pub untold: bool,
    /// Name what was not found.
    pub absent: bool,
}

/// What was found, the worst first, and how many questions have no answer; `full`: with evidence and limits.
pub fn section(doc: &mut Doc, outcomes: &[Outcome], words: Words, full: bool) {
    let of = |answer: Answer| outcomes.iter().filter(move |outcome| outcome.answer == answer);
    if full || of(Answer::Found).next().is_some() {
        doc.heading("Findings");
    }
    for outcome in of(Answer::Found) {
        found(doc, outcome, full);
    }
    let was = |n: usize| format!("{n} {}", if n == 1 { "was" } else { "were" });
    let hint = match (words.untold, words.absent) {
        (true, true) => String::new(),
        (true, false) => format!(" ({} names them all; etwhy rules explains them)", words.more),
        (false, _) => format!(" ({} says why; etwhy rules explains them)", words.more),
    };
    doc.space();
    doc.text(format!(
        "Of {} patterns {} found and {} not; {} cannot be determined from {}{hint}.",
        outcomes.len(),
        was(of(Answer::Found).count()),
        was(of(Answer::NotFound).count()),
        of(Answer::CannotTell).count(),
        words.of,
    ));
    if words.untold {
        untold(doc, of(Answer::CannotTell));
    }
    let absent: Vec<&str> = of(Answer::NotFound).map(|outcome| outcome.id.as_str()).collect();
    if words.absent && !absent.is_empty() {
        doc.item(format!("not found: {}", absent.join(", ")), None::<Line>);
    }
}

/// Findings that are shown where there is room for one screen.
const SHOWN: usize = 8;

/// What was found, the worst first, each with the first step of what to do.
pub(super) fn brief(doc: &mut Doc, outcomes: &[Outcome]) {
    let of = |answer: Answer| outcomes.iter().filter(move |outcome| outcome.answer == answer);
    let found: Vec<&Outcome> = of(Answer::Found).collect();
    doc.heading("Findings");
    for outcome in found.iter().take(SHOWN) {
        let Some((first, others)) = outcome.hits.split_first() else { continue };
        let above_info = outcome.severity > Some(Severity::Info);
        let (also, more) = others_named(first, others);
        let step = |text: &str| if above_info { first_sentence(text).to_owned() } else { String::new() };
        doc.finding(Finding {
            severity: outcome.severity.map_or("", Severity::name).to_owned(),
            headline: (&first.headline).into(),
            also: also.into_iter().collect(),
            more,
            fix: step(&first.fix).into(),
            caveats: outcome.caveats.iter().take(1).map(|caveat| step(caveat).into()).collect(),
            ..Finding::default()
        });
    }
    let (more, untold) = (found.len().saturating_sub(SHOWN), of(Answer::CannotTell).count());
    if more > 0 {
        doc.text(format!("and {more} more: etwhy why --full"));
    }
    let open = if untold == 0 {
        String::new()
    } else {
        format!("; {untold} cannot be determined (etwhy why --all says why)")
    };
    doc.text(format!("{} of {} patterns found{open}.", found.len(), outcomes.len()));
}

/// Names of other culprits that fit on a line.
const OTHERS_NAMED: usize = 5;

/// Who else is above info for the same reason, in one line, and how many hits are neither theirs nor told: a second culprit is not less
/// guilty for standing below the first.
fn others_named(first: &Hit, others: &[Hit]) -> (Option<Line>, usize) {
    let label =
        |hit: &Hit| hit.instance.as_ref().map_or(hit.culprit.as_str(), |i| i.label.as_str()).to_owned();
    let of_first = label(first);
    let mut named: Vec<String> = Vec::new();
    for other in others.iter().filter(|hit| hit.severity > Severity::Info).map(label) {
        if named.len() < OTHERS_NAMED && other != of_first && !named.contains(&other) {
            named.push(other);
        }
    }
    let untold = others.iter().filter(|hit| !named.contains(&label(hit))).count();
    (Some(named).filter(|named| !named.is_empty()).map(|named| named.join(", ").into()), untold)
}

/// The first sentence, if the text has several. Names of files and commands have dots too, but no space and capital behind them.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at);
    let mut ends =
        ends.filter(|at| text.get(at + 2..).is_some_and(|rest| rest.starts_with(char::is_uppercase)));
    ends.next().and_then(|at| text.get(..=at)).unwrap_or(text)
}

fn found(doc: &mut Doc, outcome: &Outcome, full: bool) {
    let Some((first, others)) = outcome.hits.split_first() else { return };
    // What is only worth knowing is said in a line.
    let said = |text: &String| {
        Line::from(if full || outcome.severity > Some(Severity::Info) { text.as_str() } else { "" })
    };
    doc.finding(Finding {
        severity: outcome.severity.map_or("", Severity::name).to_owned(),
        title: outcome.title.clone(),
        headline: (&first.headline).into(),
        also: others.iter().take(MORE_CULPRITS).map(|hit| (&hit.headline).into()).collect(),
        more: others.len().saturating_sub(MORE_CULPRITS),
        why: said(&first.explanation),
        fix: said(&first.fix),
        caveats: outcome.caveats.iter().map(said).filter(|caveat| !caveat.is_empty()).collect(),
        disproof: if full { (&outcome.disproof).into() } else { Line::default() },
        see: format!("etwhy rules show {}", outcome.id),
    });
    if full {
        doc.details("Evidence and limits", evidence(outcome));
    }
}

fn evidence(outcome: &Outcome) -> Doc {
    let mut doc = Doc::default();
    for (at, hit) in outcome.hits.iter().take(MORE_CULPRITS + 1).enumerate() {
        // What is said of the first stands above.
        let texts = [&hit.explanation, &hit.fix].into_iter().filter(|text| at > 0 && !text.is_empty());
        doc.item(figures(hit), texts);
    }
    for (name, limit) in &outcome.thresholds {
        let (name, source) = (label(name), source(limit));
        let text = Line::from(format!("{name}: {} {} ({source}): ", limit.value, limit.unit));
        doc.item(text.and(Span::Link(limit.reference.clone())), None::<Line>);
    }
    if !outcome.sql.trim().is_empty() {
        doc.verbatim("sql", outcome.sql.trim());
    }
    doc
}

fn source(limit: &Threshold) -> &'static str {
    match limit.source {
        Source::Doc => "documented",
        Source::Derived => "derived",
        Source::Case => "a real case",
        Source::Heuristic => "rule of thumb",
    }
}

/// A culprit with its figures.
fn figures(hit: &Hit) -> Line {
    let figures = [
        hit.cost_ns.map(|ns| format!(" · cost {}", duration_ns(ns))),
        hit.share.map(|share| format!(" · share {:.1} %", share * 100.0)),
        hit.confidence.as_ref().map(|confidence| format!(" · confidence {confidence}")),
    ];
    let who = Line::from(format!("{} ", hit.culprit_kind)).and(Line::name(&hit.culprit));
    figures.into_iter().flatten().fold(who, Line::and)
}

/// Why questions cannot be answered, those of one reason together.
fn untold<'o>(doc: &mut Doc, outcomes: impl Iterator<Item = &'o Outcome>) {
    let mut by_reason: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for outcome in outcomes {
        for reason in &outcome.reasons {
            by_reason.entry((&reason.text, &reason.record)).or_default().push(&outcome.id);
        }
    }
    for ((text, command), ids) in by_reason {
        doc.item(format!("cannot tell {}: {text}", ids.join(", ")), record(command.as_ref()));
    }
}
