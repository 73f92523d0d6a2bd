//! What a report says, as far as it is judged: read from the JSON of `etwhy why --json`.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// One finding's answer.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The finding.
    pub id: String,
    /// `found`, `not_found` or `cannot_tell`.
    pub answer: String,
    /// Why it cannot be determined.
    pub reasons: Vec<String>,
    /// Who did it, the worst first.
    pub hits: Vec<Hit>,
}

/// A culprit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// How it is named, with its instance if the report says which.
    pub culprit: String,
    /// Matters to a reader: more than info.
    pub serious: bool,
    /// One sentence.
    pub headline: String,
    /// Figures.
    pub values: Value,
}

impl Hit {
    /// A figure.
    pub fn figure(&self, column: &str) -> Option<f64> {
        self.values.get(column).and_then(Value::as_f64)
    }
}

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// The first sentence.
    pub sentence: String,
    /// Answers to all findings, in the order in which the report gives them.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// Reads the JSON of a report.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(json: &str) -> Result<Report> {
        let report: Value = serde_json::from_str(json).context("the report is not JSON")?;
        let findings =
            report.get("findings").and_then(Value::as_array).context("the report has no findings")?;
        Ok(Report { sentence: text(&report, "sentence"), outcomes: findings.iter().map(outcome).collect() })
    }

    /// The answer to a finding.
    pub fn outcome(&self, id: &str) -> Option<&Outcome> {
        self.outcomes.iter().find(|outcome| outcome.id == id)
    }
}

fn outcome(value: &Value) -> Outcome {
    let list = |key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    Outcome {
        id: text(value, "id"),
        answer: text(value, "answer"),
        reasons: list("reasons").iter().map(|reason| text(reason, "text")).collect(),
        hits: list("hits").iter().map(hit).collect(),
    }
}

fn hit(value: &Value) -> Hit {
    let values = value.get("values").cloned().unwrap_or_default();
    let label = text(&values, "culprit");
    Hit {
        culprit: if label.is_empty() { text(value, "culprit") } else { label },
        serious: text(value, "severity") != "info",
        headline: text(value, "headline"),
        values,
    }
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}
