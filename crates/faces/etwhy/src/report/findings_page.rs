//! Findings of whatever was read, for people and programs: what was found, what to do, what cannot be determined, what was not found.

use etwhy_export::sanitize;
use etwhy_export::text::wrap;
use etwhy_rules::{Answer, Hit, Outcome, Severity};
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

/// Prints what was found, the worst first, and how many questions have no answer.
pub fn print(out: &mut impl Write, outcomes: &[Outcome], words: Words, width: usize) -> io::Result<()> {
    let found: Vec<&Outcome> = outcomes.iter().filter(|o| o.answer == Answer::Found).collect();
    if !found.is_empty() {
        writeln!(out, "\nFindings")?;
    }
    for outcome in found {
        finding(out, outcome, width)?;
    }
    let was = |n: usize| format!("{n} {}", if n == 1 { "was" } else { "were" });
    let count = |answer: Answer| outcomes.iter().filter(|o| o.answer == answer).count();
    let hint = match (words.untold, words.absent) {
        (true, true) => String::new(),
        (true, false) => format!(" ({} names them all; etwhy rules explains them)", words.more),
        (false, _) => format!(" ({} says why; etwhy rules explains them)", words.more),
    };
    let counts = format!(
        "Of {} patterns {} found and {} not; {} cannot be determined from {}{hint}.",
        outcomes.len(),
        was(count(Answer::Found)),
        was(count(Answer::NotFound)),
        count(Answer::CannotTell),
        words.of,
    );
    writeln!(out)?;
    for line in wrap(&counts, width) {
        writeln!(out, "{line}")?;
    }
    if words.untold {
        untold(out, outcomes, width)?;
    }
    let absent: Vec<&str> =
        outcomes.iter().filter(|o| o.answer == Answer::NotFound).map(|o| o.id.as_str()).collect();
    if words.absent && !absent.is_empty() {
        paragraph(out, "- ", &format!("not found: {}", absent.join(", ")), width)?;
    }
    Ok(())
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

fn finding(out: &mut impl Write, outcome: &Outcome, width: usize) -> io::Result<()> {
    let Some(first) = outcome.hits.first() else { return Ok(()) };
    paragraph(out, &format!("{:<9}", outcome.severity.map_or("", Severity::name)), &first.headline, width)?;
    for hit in outcome.hits.iter().skip(1).take(MORE_CULPRITS) {
        paragraph(out, "          also ", &hit.headline, width)?;
    }
    if let Some(more) = outcome.hits.len().checked_sub(MORE_CULPRITS + 1).filter(|more| *more > 0) {
        paragraph(out, "          ", &format!("and {more} more"), width)?;
    }
    if outcome.severity > Some(Severity::Info) {
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
pub fn paragraph(out: &mut impl Write, head: &str, text: &str, width: usize) -> io::Result<()> {
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

/// Why questions cannot be answered, those of one reason together.
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use etwhy_rules::{Reason, Subject};
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
