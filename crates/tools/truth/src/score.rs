//! Compares a report with what was planted.

use crate::cause::{DUE, Names, Planted, SILENT, Whom};
use crate::machine::Cause;
use crate::report::{Hit, Report};

/// What became of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Named, and no other finding comes before.
    First,
    /// Named.
    Named,
    /// Named, but not which of two processes with that name.
    Unsaid,
    /// Somebody else is said to have done it.
    Wrong,
    /// The report says that it cannot tell.
    CannotTell,
    /// Not named.
    Missed,
    /// So small that it must not be named, and it is not.
    Silent,
    /// So close to its limit that either answer is right.
    Either,
}

/// How a cause was judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// What became of it.
    pub verdict: Verdict,
    /// How far the cost is off, as a share of the truth; none where it is not known exactly or not given.
    pub cost_error: Option<f64>,
    /// What the report says of it.
    pub said: String,
}

/// How a machine was judged.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// The causes, in their order.
    pub causes: Vec<Judged>,
    /// Findings above info that no cause explains: finding, culprit and sentence.
    pub accused: Vec<(String, String, String)>,
}

/// Judges a report. What findings say of a trace with losses accuses nobody, nor does *\[unknown\]* where what tells who it was is lost.
pub fn judge(causes: &[Cause], report: &Report, lossy: bool) -> Score {
    let accused = report
        .outcomes
        .iter()
        .flat_map(|outcome| outcome.hits.iter().map(|hit| (outcome.id.as_str(), hit)))
        .filter(|(id, hit)| !(lossy && (id.starts_with("trace.") || hit.culprit == "[unknown]")))
        .filter(|(id, hit)| hit.serious && !causes.iter().any(|cause| explains(cause, id, hit)))
        .map(|(id, hit)| (id.to_owned(), hit.culprit.clone(), hit.headline.clone()))
        .collect();
    Score { causes: causes.iter().map(|cause| one(cause, causes.len() == 1, report)).collect(), accused }
}

/// Whether a cause is a reason for this finding to name this culprit.
fn explains(cause: &Cause, id: &str, hit: &Hit) -> bool {
    let it = |planted: &Planted| matches!(planted.target.named_by(&hit.culprit), Names::It | Names::ItOrTwin);
    if cause.kind.answers.contains(&id) {
        return cause.multiple >= SILENT && it(&cause.planted);
    }
    cause.planted.also.iter().filter(|(finding, _)| *finding == id).any(|(_, whom)| match whom {
        Whom::Same => it(&cause.planted),
        Whom::Named(name) => hit.culprit == *name || hit.culprit.starts_with(&format!("{name} (")),
        Whom::Anybody => true,
    })
}

fn one(cause: &Cause, alone: bool, report: &Report) -> Judged {
    let answers: Vec<_> = cause.kind.answers.iter().filter_map(|id| report.outcome(id)).collect();
    let hits = || answers.iter().flat_map(|outcome| outcome.hits.iter());
    let named = |names: Names| hits().find(|hit| cause.planted.target.named_by(&hit.culprit) == names);
    let right = named(Names::It);
    let said = |hit: Option<&Hit>| match hit {
        Some(hit) => hit.headline.clone(),
        None => answers
            .iter()
            .map(|outcome| format!("{} {} {}", outcome.id, outcome.answer, outcome.reasons.join("; ")))
            .collect(),
    };
    if cause.multiple < DUE {
        // Named below its limit: among the accused.
        let verdict = if cause.multiple < SILENT { Verdict::Silent } else { Verdict::Either };
        return Judged { verdict, cost_error: None, said: said(right) };
    }
    let error = |hit: &Hit| {
        let figure = cause.planted.figure?;
        Some((hit.figure(figure.column)? - figure.value).abs() / figure.value.abs().max(1e-9))
    };
    let (verdict, hit) = if let Some(hit) = right {
        (if alone && is_first(cause, report) { Verdict::First } else { Verdict::Named }, Some(hit))
    } else if let Some(hit) = named(Names::ItOrTwin) {
        (Verdict::Unsaid, Some(hit))
    } else if let Some(hit) = named(Names::Twin).or_else(|| hits().next().filter(|_| alone)) {
        (Verdict::Wrong, Some(hit))
    } else if answers.iter().any(|outcome| outcome.answer == "cannot_tell") {
        (Verdict::CannotTell, None)
    } else {
        (Verdict::Missed, None)
    };
    let cost_error = hit.filter(|_| verdict <= Verdict::Unsaid).and_then(error);
    Judged { verdict, cost_error, said: said(hit) }
}

/// The first finding that matters (if none does: the first one) is about this cause.
fn is_first(cause: &Cause, report: &Report) -> bool {
    let hits = || {
        report.outcomes.iter().flat_map(|outcome| outcome.hits.iter().map(|hit| (outcome.id.as_str(), hit)))
    };
    let first = hits()
        .find(|(_, hit)| hit.serious)
        .or_else(|| hits().find(|(id, _)| cause.kind.answers.contains(id)));
    first.is_some_and(|(id, hit)| explains(cause, id, hit))
}
