//! One HTML file: the page of `web/` with the report in it.
//!
//! The page asks for nothing: its policy forbids every request, and its script and style are named by their hashes. The
//! report is data in an element that no browser runs; the script shows names as text, never as markup.

use crate::{Report, json};
use etwhy_export::sanitize;
use etwhy_export::text::truncate_middle;
use etwhy_rules::Answer;
use std::io::{self, Write};

/// The page, built from `web/` (`web/build.mjs`).
const PAGE: &str = include_str!("../../../../web/dist/report.html");
/// Where the report goes.
const PLACE: &str = "@@ETWHY-REPORT@@";
/// More data than this is cut further.
const MAX_DATA: usize = 1_500_000;
/// Longest names, in turn, until the data fit.
const NAMES: [usize; 4] = [300, 120, 48, 16];
/// Keys of texts with several lines.
const LONG: [&str; 5] = ["sql", "caveats", "explanation", "fix", "disproof"];

/// Keys of texts with one line that is longer than a name.
const SENTENCES: [&str; 11] = [
    "sentence",
    "headline",
    "meaning",
    "text",
    "because",
    "why",
    "reference",
    "cannot",
    "reason",
    "needs",
    "command",
];

/// Writes the page.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (head, tail) =
        PAGE.split_once(PLACE).ok_or_else(|| io::Error::other("the page has no place for data"))?;
    out.write_all(head.as_bytes())?;
    out.write_all(data(report)?.as_bytes())?;
    out.write_all(tail.as_bytes())
}

fn data(report: &Report) -> io::Result<String> {
    let mut report = report.clone();
    for finding in report.findings.iter_mut().filter(|f| f.answer != Answer::Found) {
        // What was not found needs no evidence on a page; JSON has it.
        finding.sql.clear();
        finding.disproof.clear();
        finding.thresholds.clear();
    }
    let value = serde_json::to_value(&report).map_err(io::Error::from)?;
    let mut text = String::new();
    for longest in NAMES {
        let mut value = value.clone();
        harmless(&mut value, longest, false);
        text = json::embedded(&value)?;
        if text.len() <= MAX_DATA {
            break;
        }
    }
    Ok(text)
}

/// Cuts texts and makes unsafe characters visible. The depth is that of the model.
fn harmless(value: &mut serde_json::Value, longest: usize, long: bool) {
    use serde_json::Value;
    match value {
        Value::String(text) if long => {
            let lines: Vec<String> = text
                .lines()
                .take(400)
                .map(|line| truncate_middle(&sanitize(&line.replace('\t', "    ")), 2000))
                .collect();
            *text = lines.join("\n");
        }
        Value::String(text) => *text = truncate_middle(&sanitize(text), longest),
        Value::Array(list) => list.iter_mut().for_each(|item| harmless(item, longest, long)),
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                let room = if SENTENCES.contains(&key.as_str()) { 800 } else { longest };
                harmless(item, room, LONG.contains(&key.as_str()));
            }
        }
        _ => {}
    }
}
