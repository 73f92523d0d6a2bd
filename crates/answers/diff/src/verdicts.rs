//! Findings before and after: resolved, new, worse, better, the same.
//!
//! A finding is compared by id and culprit: its name, and where it names several of that name, their services or application pools too (a process
//! id is another one in each run). Costs are divided by the time of the processors in which the events were recorded that it rests on (samples, the
//! kernel's, or others), and those that are elapsed time (waits, delays) by the time of the trace in which they were; a fifth more or less counts as
//! worse or better. On another number of processors the same work is another share of them, and a single long delay is another share of a longer
//! trace: where the time per second, or the sum of a few long pieces, is the same, so is the finding. What one of the traces cannot tell is neither
//! resolved nor new, and a difference that lost records of one of them could make is not called better or worse. Nor is a finding resolved or new
//! that the other trace misses by less than that: limits are crossed by chance.

use super::scale::{Costs, Observed, Scale, Side};
use etwhy_rules::{Answer, Hit, Severity, evaluate_below};
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;
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
    /// Cost in each trace as share of the observed time of the processors, or of the trace where the cost is elapsed time, if the finding tells.
    pub shares: Vec<Option<f64>>,
    /// The same as time.
    pub costs_ns: Vec<Option<i64>>,
    /// From the first trace to each other one: resolved, new, worse, better, same, absent, cannot_tell.
    pub changes: Vec<&'static str>,
    /// What it says in the last trace that has it.
    pub headline: String,
}

/// How names begin that could not be determined.
pub(crate) const UNKNOWN: &str = "[unknown";

/// More than this factor is worse, less than its inverse better.
const FACTOR: f64 = 1.2;

/// A sum of which the largest piece is at least this part is that of a few: in a longer trace there need not be more of them.
const LARGE_PIECE: f64 = 0.25;

/// Columns with the largest piece of the cost, in findings that have it.
const LARGEST: [&str; 2] = ["max_ns", "longest_ns"];

/// What a finding cost in one trace.
#[derive(Clone, Copy, Debug)]
struct Figure {
    /// As share of the observed time.
    share: f64,
    /// The sum.
    ns: f64,
    /// Its largest piece, if the finding tells.
    largest: Option<f64>,
}

impl Figure {
    /// The sum is one of a few large pieces.
    fn is_of_few(&self) -> bool {
        self.largest.is_some_and(|largest| largest >= LARGE_PIECE * self.ns)
    }
}

/// How a figure went: by a factor more, less, or neither.
fn course(before: f64, after: f64) -> Ordering {
    if after > before * FACTOR {
        Ordering::Greater
    } else if after * FACTOR < before {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}

/// How the cost of a finding went that both traces have. Where measures disagree of which each would do, nothing has changed.
fn changed(base: (&Scale, Figure), other: (&Scale, Figure), costs: Costs) -> &'static str {
    let ((base, before), (scale, after)) = (base, other);
    let share = course(before.share, after.share);
    let mut measures = vec![share];
    if base.cpus != scale.cpus && !costs.elapsed {
        let time = |scale: &Scale, figure: Figure| figure.share * scale.cpus.max(1) as f64;
        measures.push(course(time(base, before), time(scale, after)));
    }
    if super::other_length(base, scale).is_some() && (before.is_of_few() || after.is_of_few()) {
        measures.push(course(before.ns, after.ns));
    }
    match share {
        _ if measures.iter().any(|measure| *measure != share) => "same",
        Ordering::Greater => "worse",
        Ordering::Less => "better",
        Ordering::Equal => "same",
    }
}

/// A finding of somebody, in whatever trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key<'a> {
    id: &'a str,
    culprit: &'a str,
    role: Option<&'a str>,
    /// The traces name several of this name, by their roles.
    several: bool,
}

/// True if both are the same, or hosts of services that have one in common: one more may have been started.
fn alike(a: Option<&str>, b: Option<&str>) -> bool {
    a.zip(b).is_some_and(|(a, b)| a.split(", ").any(|service| b.split(", ").any(|other| other == service)))
}

impl Key<'_> {
    fn is(&self, hit: &Hit) -> bool {
        hit.culprit == self.culprit && (!self.several || alike(hit.role(), self.role))
    }

    /// Who that is.
    fn name(&self) -> String {
        let culprit = self.culprit;
        match self.role.map(|role| format!(" ({role})")) {
            Some(role) if !culprit.ends_with(&role) => format!("{culprit}{role}"),
            _ => culprit.to_owned(),
        }
    }
}

/// What any of the traces has found.
fn keys<'a>(sides: &[Side<'a>]) -> Vec<Key<'a>> {
    let mut all: BTreeMap<(&str, &str), Roles<'_>> = BTreeMap::new();
    for outcome in sides.iter().flat_map(|side| side.findings) {
        for hit in &outcome.hits {
            all.entry((outcome.id.as_str(), hit.culprit.as_str())).or_default().add(hit.role());
        }
    }
    let of = |((id, culprit), roles): ((&'a str, &'a str), Roles<'a>)| {
        // One without a role could be any of them.
        let several = !roles.unknown && roles.known.len() > 1;
        let roles = if several { roles.known.into_iter().map(Some).collect() } else { vec![None] };
        roles.into_iter().map(move |role| Key { id, culprit, role, several })
    };
    all.into_iter().flat_map(of).collect()
}

/// Roles of those of one name, in all traces.
#[derive(Default)]
struct Roles<'a> {
    known: Vec<&'a str>,
    unknown: bool,
}

impl<'a> Roles<'a> {
    fn add(&mut self, role: Option<&'a str>) {
        match role {
            None => self.unknown = true,
            Some(role) if self.known.iter().any(|other| alike(Some(role), Some(other))) => {}
            Some(role) => self.known.push(role),
        }
    }
}

/// What the recordings lost is no change of the machine: it is said of each trace, before all comparisons.
const LOSSES: &str = "trace.events-lost";

/// All findings that were found in any of the traces, but for losses.
pub fn compare(sides: &[Side<'_>], scales: &[Scale]) -> Vec<Verdict> {
    let rules = etwhy_rules::builtin().unwrap_or_default();
    let unknown = Costs { observed: Observed::Samples, elapsed: false };
    let costs = |id: &str| rules.iter().find(|rule| rule.id == id).map_or(unknown, Costs::by_rule);
    let keys = keys(sides).into_iter().filter(|key| key.id != LOSSES);
    let mut all: Vec<Verdict> = keys.map(|key| verdict(sides, scales, key, costs(key.id))).collect();
    all.sort_by(|a, b| {
        b.severity.cmp(&a.severity).then_with(|| a.id.cmp(&b.id)).then_with(|| a.culprit.cmp(&b.culprit))
    });
    all
}

fn verdict(sides: &[Side<'_>], scales: &[Scale], key: Key<'_>, costs: Costs) -> Verdict {
    let Key { id, culprit, .. } = key;
    let mut made = Verdict {
        id: id.to_owned(),
        culprit: key.name(),
        severity: Severity::Info,
        answers: Vec::new(),
        shares: Vec::new(),
        costs_ns: Vec::new(),
        changes: Vec::new(),
        headline: String::new(),
    };
    let mut largest: Vec<Option<f64>> = Vec::new();
    for (side, scale) in sides.iter().zip(scales) {
        let outcome = side.findings.iter().find(|o| o.id == id);
        let hit = outcome.and_then(|o| o.hits.iter().find(|hit| key.is(hit)));
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
        made.shares.push(cost.map(|ns| scale.share_of_cost(costs, ns as f64)));
        made.costs_ns.push(cost);
        let piece = |name: &str| hit.and_then(|h| h.values.get(name)).and_then(|cell| cell.number());
        largest.push(LARGEST.into_iter().find_map(piece));
    }
    let missed = only_just_missed(&mut made, sides, scales, key, costs);
    let base_missed = missed.first().copied().unwrap_or(false);
    let before = made.answers.first().copied().unwrap_or(Answer::CannotTell);
    let sums = made.shares.iter().zip(&made.costs_ns).zip(&largest);
    let figures: Vec<Option<Figure>> = sums
        .map(|((share, ns), largest)| Some(Figure { share: (*share)?, ns: (*ns)? as f64, largest: *largest }))
        .collect();
    let cost = figures.first().copied().flatten();
    let Some(base) = scales.first() else { return made };
    let lost = |scale: &Scale, ns: Option<i64>| {
        let both = made.costs_ns.first().copied().flatten().zip(ns);
        both.is_some_and(|(before, after)| {
            let before = base.processor_ns(costs, before as f64);
            base.loss_explains(costs.observed, before, scale, scale.processor_ns(costs, after as f64))
        })
    };
    // What the trace says of itself needs no other proof.
    let about_itself = id.starts_with("trace.");
    let hidden = |scale: &Scale, ns: Option<i64>| {
        let lossy = base.hides(costs.observed) || scale.hides(costs.observed);
        lossy
            && !about_itself
            && ns.is_none_or(|ns| {
                base.loss_explains(costs.observed, 0.0, scale, scale.processor_ns(costs, ns as f64))
            })
    };
    let each = made.answers.iter().zip(&figures).zip(made.costs_ns.iter().zip(scales)).zip(&missed);
    let changes = each.skip(1).map(|(((answer, figure), (ns, scale)), missed)| match (before, answer) {
        // What only one of the two could show is no change.
        (_, Answer::CannotTell) | (Answer::CannotTell, _) => "cannot_tell",
        (Answer::Found, Answer::NotFound) if *missed => "same",
        (Answer::NotFound, Answer::Found) if base_missed => "same",
        (Answer::Found, Answer::NotFound) => "resolved",
        (Answer::NotFound, Answer::Found) if hidden(scale, *ns) => "cannot_tell",
        (Answer::NotFound, Answer::Found) => "new",
        (Answer::NotFound, Answer::NotFound) => "absent",
        (Answer::Found, Answer::Found) if lost(scale, *ns) => "cannot_tell",
        (Answer::Found, Answer::Found) => match cost.zip(*figure) {
            Some((before, after)) => changed((base, before), (scale, after), costs),
            None => "same",
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
    key: Key<'_>,
    costs: Costs,
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
        let outcome = evaluate_below(side.db, key.id, FACTOR);
        let Some(hit) = outcome.as_ref().and_then(|o| o.hits.iter().find(|hit| key.is(hit))) else {
            continue;
        };
        let share = hit.cost_ns.map(|ns| scale.share_of_cost(costs, ns as f64));
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

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_rules::{Instance, Outcome, Subject};
    use etwhy_table::Database;

    /// A finding of these processes of one name, each with its role and process id.
    fn found(instances: &[(Option<&str>, i64)]) -> Vec<Outcome> {
        let hit = |&(role, pid): &(Option<&str>, i64)| Hit {
            culprit: "w3wp.exe".to_owned(),
            culprit_kind: "process".to_owned(),
            instance: Some(Instance {
                label: role.map_or(format!("w3wp.exe ({pid})"), |role| format!("w3wp.exe ({role})")),
                role: role.map(str::to_owned),
                pid,
            }),
            severity: Severity::Warning,
            headline: String::new(),
            effect: None,
            explanation: String::new(),
            fix: String::new(),
            cost_ns: None,
            share: None,
            confidence: None,
            values: BTreeMap::new(),
        };
        vec![Outcome {
            id: "lock.contention".to_owned(),
            title: String::new(),
            topic: String::new(),
            over: Subject::default(),
            severity: Some(Severity::Warning),
            answer: Answer::Found,
            reasons: Vec::new(),
            caveats: Vec::new(),
            hits: instances.iter().map(hit).collect(),
            disproof: String::new(),
            sql: String::new(),
            thresholds: BTreeMap::new(),
        }]
    }

    fn changes(before: &[(Option<&str>, i64)], after: &[(Option<&str>, i64)]) -> Vec<String> {
        let (db, before, after) = (Database::new(), found(before), found(after));
        let side = |findings| Side { label: String::new(), db: &db, findings };
        let sides = [side(before.as_slice()), side(after.as_slice())];
        let scales: Vec<Scale> = sides.iter().map(Scale::read).collect();
        let line = |v: Verdict| format!("{} {}", v.culprit, v.changes.join(" "));
        compare(&sides, &scales).into_iter().map(line).collect()
    }

    #[test]
    fn other_machines_and_lengths_are_no_change() {
        const S: i64 = 1_000_000_000;
        let db = Database::new();
        let empty = Scale::read(&Side { label: String::new(), db: &db, findings: &[] });
        // Of a cost of so many ns, in pieces of which the largest is so large.
        let change = |elapsed: bool, before: (i64, i64, f64, f64), after: (i64, i64, f64, f64)| {
            let costs = Costs { observed: Observed::Kernel, elapsed };
            let side = |(cpus, seconds, cost, largest): (i64, i64, f64, f64)| {
                let all = cpus * seconds * S;
                let scale =
                    Scale { cpus, duration_ns: seconds * S, kernel_capacity_ns: all, ..empty.clone() };
                let ns = cost * S as f64;
                let figure =
                    Figure { share: scale.share_of_cost(costs, ns), ns, largest: Some(largest * S as f64) };
                (scale, figure)
            };
            let ((base, before), (scale, after)) = (side(before), side(after));
            changed((&base, before), (&scale, after), costs)
        };
        // One hang of 4 s, in 10 s and in 30 s; and one of 2 s.
        assert_eq!(change(true, (4, 10, 4.0, 4.0), (4, 30, 4.0, 4.0)), "same");
        assert_eq!(change(true, (4, 30, 4.0, 4.0), (4, 10, 4.0, 4.0)), "same");
        assert_eq!(change(true, (4, 10, 4.0, 4.0), (4, 10, 2.0, 2.0)), "better");
        assert_eq!(change(true, (4, 30, 4.0, 4.0), (4, 10, 8.0, 4.0)), "worse");
        // Many small pieces come at a rate.
        assert_eq!(change(true, (4, 10, 4.0, 0.1), (4, 30, 12.0, 0.1)), "same");
        assert_eq!(change(true, (4, 10, 4.0, 0.1), (4, 30, 4.0, 0.1)), "better");
        // The same work on more processors, twice the work, and a wait.
        assert_eq!(change(false, (4, 10, 2.0, 0.1), (16, 10, 2.0, 0.1)), "same");
        assert_eq!(change(false, (16, 10, 2.0, 0.1), (4, 10, 2.0, 0.1)), "same");
        assert_eq!(change(false, (16, 10, 2.0, 0.1), (4, 10, 4.0, 0.1)), "worse");
        assert_eq!(change(true, (16, 10, 2.0, 0.1), (4, 10, 4.0, 0.1)), "worse");
    }

    #[test]
    fn twins_are_compared_by_their_role_and_not_by_their_process_id() {
        let (shop, blog) = ((Some("Shop"), 7), (Some("Blog"), 8));
        assert_eq!(changes(&[shop], &[blog]), ["w3wp.exe (Blog) new", "w3wp.exe (Shop) resolved"]);
        let both = ["w3wp.exe (Blog) new", "w3wp.exe (Shop) same"];
        assert_eq!(changes(&[shop], &[blog, (Some("Shop"), 9)]), both);
        assert_eq!(changes(&[shop], &[(Some("Shop"), 9)]), ["w3wp.exe same"]);
        assert_eq!(changes(&[(None, 7)], &[(None, 9)]), ["w3wp.exe same"]);
        // One more service was started in the same host.
        assert_eq!(changes(&[(Some("A, B"), 7)], &[(Some("A, B, C"), 9)]), ["w3wp.exe same"]);
        let two = ["w3wp.exe (A, B) same", "w3wp.exe (X) resolved"];
        assert_eq!(changes(&[(Some("A, B"), 7), (Some("X"), 8)], &[(Some("B, C"), 9)]), two);
        // One of the recordings has no command lines.
        assert_eq!(changes(&[(None, 7)], &[shop, blog]), ["w3wp.exe same"]);
        assert_eq!(changes(&[(None, 7)], &[shop]), ["w3wp.exe same"]);
    }
}
