//! Outcomes of findings, as reports show them.

use serde::Serialize;
use serde_json::{Map, Value};

/// What became of one finding.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    /// Its id, `area.pattern`.
    pub id: String,
    /// What it looks for, in a few words.
    pub title: String,
    /// critical, warning, notice or info.
    pub severity: String,
    /// found, not_found or cannot_tell.
    pub answer: String,
    /// Why it cannot be told.
    pub reasons: Vec<Reason>,
    /// Who or what it found, the dearest first.
    pub hits: Vec<Hit>,
    /// What the pattern means.
    pub explanation: String,
    /// What to do.
    pub fix: String,
    /// What would disprove it.
    pub disproof: String,
    /// The query that is its evidence.
    pub sql: String,
    /// The limits it judges by.
    pub thresholds: Vec<Threshold>,
    /// Its manual page, Markdown.
    pub manual: String,
}

/// Why something cannot be told, and what to record.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reason {
    /// Why.
    pub text: String,
    /// The command that prints the recording that would tell; empty if there is none.
    pub record: String,
}

/// One culprit of a finding.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Hit {
    /// Who or what did it.
    pub culprit: String,
    /// process, driver, product, file and so on.
    pub culprit_kind: String,
    /// One sentence.
    pub headline: String,
    /// What it means here.
    pub explanation: String,
    /// What to do here.
    pub fix: String,
    /// critical, warning, notice or info.
    pub severity: String,
    /// What it cost, where that is a time.
    pub cost_ns: Option<i64>,
    /// Share of the machine, 0 to 1.
    pub share: Option<f64>,
    /// How sure it is: high, medium or low.
    pub confidence: Option<String>,
    /// The row of the query, by column.
    pub values: Map<String, Value>,
}

/// A limit that a finding judges by.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Threshold {
    /// Its name in the query.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Who says so.
    pub source: String,
    /// Where: an address or a title.
    pub reference: String,
}

/// Severities, worst first.
pub const SEVERITIES: [&str; 4] = ["critical", "warning", "notice", "info"];

fn severity_rank(severity: &str) -> usize {
    SEVERITIES.iter().position(|s| *s == severity).unwrap_or(SEVERITIES.len())
}

impl Finding {
    /// True if it found something.
    pub fn found(&self) -> bool {
        self.answer == "found"
    }

    /// True if the trace does not tell.
    pub fn cannot_tell(&self) -> bool {
        self.answer == "cannot_tell"
    }

    /// The worst severity of its hits, else its own.
    pub fn worst(&self) -> &str {
        let worst = self.hits.iter().map(|h| h.severity.as_str()).min_by_key(|s| severity_rank(s));
        worst.unwrap_or(&self.severity)
    }

    fn cost(&self) -> i64 {
        self.hits.iter().filter_map(|h| h.cost_ns).max().unwrap_or(0)
    }
}

/// Found ones by severity and cost, then those that cannot be told, then the others; by id among equals.
pub fn rank(findings: &mut [Finding]) {
    let answer = |f: &Finding| if f.found() { 0 } else { 2 - usize::from(f.cannot_tell()) };
    let severity = |f: &Finding| if f.found() { severity_rank(f.worst()) } else { 0 };
    findings.sort_by(|a, b| {
        (answer(a), severity(a))
            .cmp(&(answer(b), severity(b)))
            .then_with(|| b.cost().cmp(&a.cost()))
            .then_with(|| a.id.cmp(&b.id))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, answer: &str, severity: &str, cost_ns: i64) -> Finding {
        let hit = Hit { severity: severity.into(), cost_ns: Some(cost_ns), ..Hit::default() };
        let hits = if answer == "found" { vec![hit] } else { Vec::new() };
        Finding { id: id.into(), answer: answer.into(), severity: "info".into(), hits, ..Finding::default() }
    }

    #[test]
    fn the_worst_comes_first() {
        let mut all = [
            finding("e", "not_found", "", 0),
            finding("d", "cannot_tell", "", 0),
            finding("c", "found", "notice", 9),
            finding("b", "found", "critical", 1),
            finding("a", "found", "critical", 5),
        ];
        rank(&mut all);
        let order: Vec<&str> = all.iter().map(|f| f.id.as_str()).collect();
        assert_eq!(order, ["a", "b", "c", "d", "e"]);
    }
}
