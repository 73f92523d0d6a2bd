//! Findings before and after: resolved, new, worse, better, the same.
//!
//! A finding is compared by id and culprit. Costs are divided by the time of the processors in which the events were recorded that it rests on
//! (samples, the kernel's, or others); a fifth more or less counts as worse or better. What one of the traces cannot tell is neither resolved nor new, and a difference that lost records of one of
//! them could make is not called better or worse. Nor is a finding resolved or new that the other trace misses by less than that: limits are
//! crossed by chance.

use super::scale::{Observed, Scale, Side};
use etwhy_rules::{Answer, Severity, evaluate_below};
use serde::Serialize;
use std::collections::BTreeSet;
use ts_rs::TS;

/// How a finding went.
#[derive(Clone, Debug, Serialize, TS)]
#[ts(rename = "DiffVerdict")]
pub struct Verdict {
    /// The finding.
    pub id: String,
    /// Who.
    pub culprit: String,
    /// How much it matters at its worst.
    #[ts(type = "string")]
    pub severity: Severity,
    /// In each trace: found, not_found or cannot_tell.
    #[ts(type = "string[]")]
    pub answers: Vec<Answer>,
    /// Cost in each trace as share of the observed time of the processors, if the finding tells.
    pub shares: Vec<Option<f64>>,
    /// The same as time.
    pub costs_ns: Vec<Option<i64>>,
    /// From the first trace to each other one: resolved, new, worse, better, same, absent, cannot_tell.
    pub changes: Vec<&'static str>,
    /// What it says in the last trace that has it.
    pub headline: String,
}

/// How names begin that could not be determined.
const UNKNOWN: &str = "[unknown";

/// More than this factor is worse, less than its inverse better.
const FACTOR: f64 = 1.2;

/// All findings that were found in any of the traces.
pub fn compare(sides: &[Side<'_>], scales: &[Scale]) -> Vec<Verdict> {
    let mut keys: BTreeSet<(&str, &str)> = BTreeSet::new();
    for side in sides {
        for outcome in side.findings {
            keys.extend(outcome.hits.iter().map(|hit| (outcome.id.as_str(), hit.culprit.as_str())));
        }
    }
    let rules = etwhy_rules::builtin().unwrap_or_default();
    let observed =
        |id: &str| rules.iter().find(|rule| rule.id == id).map_or(Observed::Samples, Observed::by_rule);
    let mut all: Vec<Verdict> =
        keys.into_iter().map(|(id, culprit)| verdict(sides, scales, id, culprit, observed(id))).collect();
    all.sort_by(|a, b| {
        b.severity.cmp(&a.severity).then_with(|| a.id.cmp(&b.id)).then_with(|| a.culprit.cmp(&b.culprit))
    });
    all
}

fn verdict(sides: &[Side<'_>], scales: &[Scale], id: &str, culprit: &str, observed: Observed) -> Verdict {
    let mut made = Verdict {
        id: id.to_owned(),
        culprit: culprit.to_owned(),
        severity: Severity::Info,
        answers: Vec::new(),
        shares: Vec::new(),
        costs_ns: Vec::new(),
        changes: Vec::new(),
        headline: String::new(),
    };
    for (side, scale) in sides.iter().zip(scales) {
        let outcome = side.findings.iter().find(|o| o.id == id);
        let hit = outcome.and_then(|o| o.hits.iter().find(|h| h.culprit == culprit));
        // Whether the culprit that nobody could name there is this one cannot be said.
        let nameless = || outcome.is_some_and(|o| o.hits.iter().any(|h| h.culprit.starts_with(UNKNOWN)));
        let answer = match (hit, outcome.map(|o| o.answer)) {
            (Some(hit), _) => {
                made.severity = made.severity.max(hit.severity);
                made.headline.clone_from(&hit.headline);
                Answer::Found
            }
            (None, Some(Answer::CannotTell) | None) => Answer::CannotTell,
            (None, Some(Answer::Found)) if nameless() || culprit.starts_with(UNKNOWN) => Answer::CannotTell,
            _ => Answer::NotFound,
        };
        made.answers.push(answer);
        let cost = hit.and_then(|h| h.cost_ns);
        made.shares.push(cost.map(|ns| scale.share_of(observed, ns as f64)));
        made.costs_ns.push(cost);
    }
    let missed = only_just_missed(&mut made, sides, scales, observed);
    let base_missed = missed.first().copied().unwrap_or(false);
    let before = made.answers.first().copied().unwrap_or(Answer::CannotTell);
    let cost = made.shares.first().copied().flatten();
    let Some(base) = scales.first() else { return made };
    let lost = |scale: &Scale, ns: Option<i64>| {
        let costs = made.costs_ns.first().copied().flatten().zip(ns);
        costs.is_some_and(|(before, after)| base.loss_explains(before as f64, scale, after as f64))
    };
    // What the trace says of itself needs no other proof.
    let about_itself = id.starts_with("trace.");
    let hidden = |scale: &Scale, ns: Option<i64>| {
        let lossy = base.is_lossy() || scale.is_lossy();
        lossy && !about_itself && ns.is_none_or(|ns| base.loss_explains(0.0, scale, ns as f64))
    };
    let each = made.answers.iter().zip(&made.shares).zip(made.costs_ns.iter().zip(scales)).zip(&missed);
    let changes = each.skip(1).map(|(((answer, share), (ns, scale)), missed)| match (before, answer) {
        // What only one of the two could show is no change.
        (_, Answer::CannotTell) | (Answer::CannotTell, _) => "cannot_tell",
        (Answer::Found, Answer::NotFound) if *missed => "same",
        (Answer::NotFound, Answer::Found) if base_missed => "same",
        (Answer::Found, Answer::NotFound) => "resolved",
        (Answer::NotFound, Answer::Found) if hidden(scale, *ns) => "cannot_tell",
        (Answer::NotFound, Answer::Found) => "new",
        (Answer::NotFound, Answer::NotFound) => "absent",
        (Answer::Found, Answer::Found) if lost(scale, *ns) => "cannot_tell",
        (Answer::Found, Answer::Found) => match cost.zip(*share) {
            Some((before, after)) if after > before * FACTOR => "worse",
            Some((before, after)) if after * FACTOR < before => "better",
            _ => "same",
        },
    });
    made.changes = changes.collect();
    made
}

/// For each trace that does not have the finding, whether it only just misses its limits: with limits easier by [`FACTOR`] the finding is there, and
/// its cost no other than in a trace that has it. Its cost is then known too.
fn only_just_missed(
    made: &mut Verdict,
    sides: &[Side<'_>],
    scales: &[Scale],
    observed: Observed,
) -> Vec<bool> {
    let found: Vec<f64> = made.shares.iter().copied().flatten().collect();
    let mut missed = vec![false; made.answers.len()];
    if !made.answers.contains(&Answer::Found) {
        return missed;
    }
    for (at, (side, scale)) in sides.iter().zip(scales).enumerate() {
        if made.answers.get(at) != Some(&Answer::NotFound) {
            continue;
        }
        let outcome = evaluate_below(side.db, &made.id, FACTOR);
        let Some(hit) = outcome.as_ref().and_then(|o| o.hits.iter().find(|hit| hit.culprit == made.culprit))
        else {
            continue;
        };
        let share = hit.cost_ns.map(|ns| scale.share_of(observed, ns as f64));
        let alike = share.is_none_or(|share| {
            found.iter().any(|other| share <= other * FACTOR && *other <= share * FACTOR)
        });
        let cells = (missed.get_mut(at), made.shares.get_mut(at), made.costs_ns.get_mut(at));
        if let (true, (Some(missed), Some(own), Some(cost))) = (alike, cells) {
            (*missed, *own, *cost) = (true, share, hit.cost_ns);
        }
    }
    missed
}
