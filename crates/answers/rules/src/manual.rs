//! The manual page of a finding, from its file: for `etwhy rules show` and for the reference.

use super::rule::{Rule, Source};
use super::text::label;
use std::fmt::Write as _;

/// The page in Markdown. `level`: how many `#` its title has.
pub fn markdown(rule: &Rule, level: usize) -> String {
    let title = "#".repeat(level);
    let part = "#".repeat(level + 1);
    let mut text = String::new();
    // Writing into a `String` cannot fail.
    let _ = writeln!(text, "{title} {}\n\n{}.\n", rule.id, rule.title);
    let _ = writeln!(text, "Severity *{}*, topic *{}*.\n", rule.severity.name(), rule.topic);
    for line in rule.with_thresholds(&rule.manual).lines() {
        match line.strip_prefix("# ") {
            Some(heading) => drop(writeln!(text, "{part} {heading}\n")),
            None => drop(writeln!(text, "{line}")),
        }
    }
    let _ = writeln!(text, "\n{part} What to do\n");
    for step in rule.fix.steps() {
        let whose: Vec<&str> = step.classes.iter().map(|class| class.meaning()).collect();
        let who = step.of.as_deref().map_or("the culprit".to_owned(), |of| format!("what is named as {of}"));
        let condition =
            if whose.is_empty() { String::new() } else { format!("*If {who} is {}:* ", whose.join(" or ")) };
        let _ = writeln!(text, "{condition}{}\n", rule.fill(&step.text, None));
    }
    let _ = writeln!(text, "{part} What would disprove it\n\n{}\n", rule.fill(&rule.disproof, None));
    if !rule.needs.is_empty() {
        let _ = writeln!(text, "{part} Needs\n");
        for need in &rule.needs {
            let names: Vec<String> =
                need.events.iter().chain(&need.providers).map(|n| format!("`{n}`")).collect();
            let any = if names.len() > 1 { "any of " } else { "" };
            let only = if need.to_rule_out.is_some() { ", only to rule it out" } else { "" };
            let names = names.join(", ");
            let _ = writeln!(text, "- {}{only}: {any}{names} (profile `{}`)", need.what, need.record);
        }
        text.push('\n');
    }
    if !rule.counters.is_empty() {
        let _ = writeln!(text, "{part} Counters that it needs\n");
        for path in &rule.counters {
            let _ = writeln!(text, "- `{path}`");
        }
        text.push('\n');
    }
    if !rule.thresholds.is_empty() {
        let _ = writeln!(text, "{part} Thresholds\n");
        for (name, t) in &rule.thresholds {
            let kind = source(t.source);
            let _ = writeln!(
                text,
                "- {}: {} {} (`{name}`; {kind}: {})",
                label(name),
                t.value,
                t.unit,
                t.reference.trim()
            );
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{part} Query\n\n```sql\n{}\n```", rule.query());
    if let Some(query) = &rule.cannot_tell {
        let query = rule.with_thresholds(query);
        let _ = writeln!(text, "\nIt cannot be determined where this has rows:\n\n```sql\n{query}\n```");
    }
    for need in &rule.needs {
        let Some(query) = &need.to_rule_out else { continue };
        let query = rule.with_thresholds(query);
        let _ = writeln!(
            text,
            "\nWithout {} it cannot be ruled out where this has rows:\n\n```sql\n{query}\n```",
            need.what
        );
    }
    text
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Doc => "documented",
        Source::Derived => "derived",
        Source::Case => "from a case",
        Source::Heuristic => "heuristic",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_has_everything() {
        for rule in crate::builtin().unwrap() {
            let page = super::markdown(&rule, 2);
            assert!(page.starts_with(&format!("## {}\n", rule.id)));
            for part in ["What fools it", "What to do", "What would disprove it", "Query"] {
                assert!(page.contains(&format!("\n### {part}\n\n")), "{}: {part}", rule.id);
            }
            for name in rule.thresholds.keys() {
                assert!(page.contains(&format!(" (`{name}`; ")), "{}", rule.id);
                assert!(!page.contains(&format!("{{{name}}}")), "{}: {name}", rule.id);
            }
        }
    }
}
