//! Findings of whatever was read, for people and programs: what was found, what to do, what cannot be determined, what was not found.

use super::terminal::color;
use etwhy_doc::terminal::Terminal;
use etwhy_doc::{Doc, Finding};
use etwhy_rules::{Answer, Outcome, Severity};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Culprits of one finding that are named beside the first.
const MORE_CULPRITS: usize = 3;

/// What precedes the name of a profile in the texts of findings.
const RECORD: &str = "etwhy record --print ";

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

/// Prints what was found behind an empty line.
pub fn print(out: &mut impl Write, outcomes: &[Outcome], words: Words, width: usize) -> io::Result<()> {
    let mut doc = Doc::default();
    add(&mut doc, outcomes, words);
    write!(out, "\n{}", Terminal { columns: width, color: color() }.render(&doc))
}

/// Adds what was found, the worst first, and how many questions have no answer.
pub fn add(doc: &mut Doc, outcomes: &[Outcome], words: Words) {
    let found: Vec<Finding> =
        outcomes.iter().filter(|o| o.answer == Answer::Found).filter_map(finding).collect();
    if !found.is_empty() {
        doc.heading("Findings");
    }
    found.into_iter().for_each(|finding| doc.finding(finding));
    let was = |n: usize| format!("{n} {}", if n == 1 { "was" } else { "were" });
    let count = |answer: Answer| outcomes.iter().filter(|o| o.answer == answer).count();
    let hint = match (words.untold, words.absent) {
        (true, true) => String::new(),
        (true, false) => format!(" ({} names them all; etwhy rules explains them)", words.more),
        (false, _) => format!(" ({} says why; etwhy rules explains them)", words.more),
    };
    doc.space();
    doc.text(format!(
        "Of {} patterns {} found and {} not; {} cannot be determined from {}{hint}.",
        outcomes.len(),
        was(count(Answer::Found)),
        was(count(Answer::NotFound)),
        count(Answer::CannotTell),
        words.of,
    ));
    if words.untold {
        untold(doc, outcomes);
    }
    let absent: Vec<&str> =
        outcomes.iter().filter(|o| o.answer == Answer::NotFound).map(|o| o.id.as_str()).collect();
    if words.absent && !absent.is_empty() {
        doc.bullet(format!("not found: {}", absent.join(", ")));
    }
}

/// The same for programs: the outcomes with all that they hold.
///
/// # Errors
/// Never for outcomes; those of the serializer.
pub fn json(outcomes: &[Outcome]) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(outcomes)
}

/// Recording profiles that the findings that were found advise (`etwhy record --print NAME`), in order of the findings.
pub fn profiles(outcomes: &[Outcome]) -> Vec<&'static etwhy_record::Profile> {
    let mut seen = BTreeSet::new();
    let mut profiles = Vec::new();
    for hit in outcomes.iter().filter(|o| o.answer == Answer::Found).filter_map(|o| o.hits.first()) {
        for text in hit.fix.split(RECORD).skip(1) {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
            let name = text.get(..end).unwrap_or("");
            if let Some(profile) = etwhy_record::profile(name).filter(|profile| seen.insert(profile.name)) {
                profiles.push(profile);
            }
        }
    }
    profiles
}

fn finding(outcome: &Outcome) -> Option<Finding> {
    let (first, others) = outcome.hits.split_first()?;
    let mut finding = Finding {
        severity: outcome.severity.map_or("", Severity::name).to_owned(),
        title: outcome.title.clone(),
        headline: first.headline.as_str().into(),
        also: others.iter().take(MORE_CULPRITS).map(|hit| hit.headline.as_str().into()).collect(),
        more: others.len().saturating_sub(MORE_CULPRITS),
        see: format!("etwhy rules show {}", outcome.id),
        ..Finding::default()
    };
    if outcome.severity > Some(Severity::Info) {
        finding.why = first.explanation.as_str().into();
        finding.fix = first.fix.as_str().into();
        finding.caveats = outcome.caveats.iter().map(Into::into).collect();
    }
    Some(finding)
}

/// Why questions cannot be answered, those of one reason together.
fn untold(doc: &mut Doc, outcomes: &[Outcome]) {
    let mut by_reason: BTreeMap<(String, Option<String>), Vec<&str>> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|o| o.answer == Answer::CannotTell) {
        for reason in &outcome.reasons {
            by_reason.entry((reason.text.clone(), reason.record.clone())).or_default().push(&outcome.id);
        }
    }
    for ((text, record), ids) in by_reason {
        let record = record.map(|record| format!("record: {record}"));
        doc.item(format!("cannot tell {}: {text}", ids.join(", ")), record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_rules::{Hit, Reason, Subject};
    use std::collections::BTreeMap;

    fn outcome(id: &str, answer: Answer, fix: &str) -> Outcome {
        let hit = Hit {
            culprit: "c".into(),
            culprit_kind: "k".into(),
            severity: Severity::Warning,
            headline: format!("{id} was \u{1b}[31mseen"),
            effect: None,
            explanation: "because".into(),
            fix: fix.into(),
            cost_ns: None,
            share: None,
            confidence: None,
            values: BTreeMap::new(),
        };
        Outcome {
            id: id.into(),
            title: id.into(),
            topic: "t".into(),
            over: Subject::Trace,
            severity: (answer == Answer::Found).then_some(Severity::Warning),
            answer,
            reasons: if answer == Answer::CannotTell {
                vec![Reason { text: "nothing".into(), record: None }]
            } else {
                Vec::new()
            },
            caveats: Vec::new(),
            hits: if answer == Answer::Found { vec![hit] } else { Vec::new() },
            disproof: String::new(),
            sql: String::new(),
            thresholds: BTreeMap::new(),
        }
    }

    #[test]
    fn found_untold_and_absent() {
        let outcomes = [
            outcome("a.b", Answer::Found, "try `etwhy record --print dpc`, or etwhy record --print cpu."),
            outcome("c.d", Answer::CannotTell, ""),
            outcome("e.f", Answer::CannotTell, ""),
            outcome("g.h", Answer::NotFound, ""),
        ];
        let text = |untold, absent| {
            let mut out = Vec::new();
            let words = Words { of: "these logs", more: "etwhy x --all", untold, absent };
            print(&mut out, &outcomes, words, 80).unwrap();
            String::from_utf8(out).unwrap()
        };
        let all = text(true, true);
        assert!(all.contains("warning  a.b was") && !all.contains('\u{1b}'), "{all}");
        assert!(
            all.contains("Of 4 patterns 1 was found and 1 was not; 2 cannot be determined from these logs.")
        );
        assert!(all.contains("- cannot tell c.d, e.f: nothing") && all.contains("- not found: g.h"));
        // Lines end anywhere.
        let short = text(false, false).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(short.contains("etwhy x --all says why") && !short.contains("cannot tell c.d"));
        let names: Vec<&str> = profiles(&outcomes).iter().map(|p| p.name).collect();
        assert_eq!(names, ["dpc", "cpu"]);
        let json = json(&outcomes).unwrap();
        assert_eq!(json[1]["reasons"][0]["text"], "nothing");
        assert_eq!(
            (&json[0]["severity"], &json[3]["severity"]),
            (&"warning".into(), &serde_json::Value::Null)
        );
    }
}
