//! Findings in a terminal: the list and the manual page.

use super::terminal::width;
use etwhy_export::sanitize;
use etwhy_export::text::{hanging, wrap};
use etwhy_rules::{Rule, manual::markdown};
use std::collections::BTreeMap;
use std::io::{Result, Write};

/// From this width on, a line has room for what a finding needs.
const WIDE: usize = 150;

/// All findings by topic: id, severity, title.
pub fn list(out: &mut impl Write, rules: &[Rule]) -> Result<()> {
    let mut topics: BTreeMap<&str, Vec<&Rule>> = BTreeMap::new();
    for rule in rules {
        topics.entry(rule.topic.as_str()).or_default().push(rule);
    }
    let columns = width();
    let ids = rules.iter().map(|r| r.id.len()).max().unwrap_or(0);
    let wide = columns >= WIDE;
    let titles = rules.iter().map(|r| r.title.chars().count()).max().unwrap_or(0);
    for (n, (topic, rules)) in topics.into_iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", sanitize(topic))?;
        for rule in rules {
            let head = format!("  {:ids$}  {:8}  ", rule.id, rule.severity.name());
            let mut text = sanitize(&rule.title).into_owned();
            if wide && !rule.needs.is_empty() {
                let needs: Vec<&str> = rule.needs.iter().map(|n| n.what.as_str()).collect();
                let gap = " ".repeat(titles.saturating_sub(rule.title.chars().count()));
                let rest = format!("  needs {}", needs.join(" and "));
                let line = format!("{head}{text}{gap}{}", sanitize(&rest));
                if line.chars().count() <= columns {
                    writeln!(out, "{line}")?;
                    continue;
                }
                text.push_str(&sanitize(&rest));
            }
            let indent = " ".repeat(head.chars().count());
            for line in hanging(&head, &indent, &text, columns) {
                writeln!(out, "{line}")?;
            }
        }
    }
    writeln!(out, "\n{} findings. `etwhy rules show ID` has the manual of one.", rules.len())
}

/// The manual page.
pub fn page(out: &mut impl Write, rule: &Rule) -> Result<()> {
    let columns = width();
    let mut paragraph = String::new();
    let mut code = false;
    let page = markdown(rule, 1);
    for line in page.lines().chain(std::iter::once("")) {
        let ends =
            line.is_empty() || line.starts_with('#') || line.starts_with("```") || line.starts_with("- ");
        if ends && !paragraph.is_empty() && !code {
            write_paragraph(out, &std::mem::take(&mut paragraph), columns)?;
        }
        if line.starts_with("```") {
            code = !code;
        } else if code {
            writeln!(out, "    {}", sanitize(line))?;
        } else if let Some(heading) = line.strip_prefix("## ") {
            writeln!(out, "{}", sanitize(&heading.to_uppercase()))?;
        } else if let Some(title) = line.strip_prefix("# ") {
            writeln!(out, "{}", sanitize(title))?;
        } else if line.is_empty() {
            writeln!(out)?;
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            // The only emphasis that the page itself has.
            let plain = if line.starts_with("Severity *") { line.replace('*', "") } else { line.to_owned() };
            paragraph.push_str(plain.trim());
        }
    }
    if let Some(file) = &rule.file {
        writeln!(out, "File: {}", sanitize(&file.display().to_string()))?;
    }
    Ok(())
}

fn write_paragraph(out: &mut impl Write, text: &str, columns: usize) -> Result<()> {
    let text = sanitize(text);
    let lines = match text.strip_prefix("- ") {
        Some(item) => hanging("- ", "  ", item, columns),
        None => wrap(&text, columns),
    };
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
