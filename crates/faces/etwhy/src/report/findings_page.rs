//! Findings of whatever was read, for people and programs: what was found, what to do, what cannot be determined, what was not found.

use etwhy_doc::Doc;
pub use etwhy_report::document::findings::Words;
use etwhy_report::document::findings::section;
use etwhy_rules::{Answer, Outcome};
use std::collections::BTreeSet;

/// What precedes the name of a profile in the texts of findings.
const RECORD: &str = "etwhy record --print ";

/// Adds what was found, the worst first, and how many questions have no answer.
pub fn add(doc: &mut Doc, outcomes: &[Outcome], words: Words) {
    section(doc, outcomes, words, false);
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

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_rules::{Hit, Reason, Severity, Subject};
    use std::collections::BTreeMap;

    fn outcome(id: &str, answer: Answer, fix: &str) -> Outcome {
        let hit = Hit {
            culprit: "c".into(),
            culprit_kind: "k".into(),
            instance: None,
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
            let mut doc = Doc::default();
            add(&mut doc, &outcomes, Words { of: "these logs", more: "etwhy x --all", untold, absent });
            etwhy_doc::terminal::Terminal::plain(80).render(&doc)
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
